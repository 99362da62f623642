"""Geoms of MuJoCo's compiled model, and explicit pairs of them."""

from collections.abc import Mapping

import mujoco
import numpy as np

from brax import plugins
from brax.builder import ModelBuilder
from brax.io.mjcf import custom_elements
from brax.io.mjcf.elements import distances, hulls
from brax.io.mjcf.elements.collision_filter import excluded_bodies, no_contact
from brax.io.mjcf.names import body_names, names

Places = Mapping[tuple[str, int], str]
"""The place of each element (kind, id) in its file, such as ' (ant.xml:12)'."""


def geoms(
    builder: ModelBuilder, model: mujoco.MjModel, custom: custom_elements.Custom, places: Places
) -> None:
    """Add the geoms whose type is registered; `support` reports the others."""
    bodies, named = body_names(model), names(model, "geom")
    known, only_drawn = plugins.names("geometry_type"), no_contact(model)
    for g, body in enumerate(model.geom_bodyid):
        shape = distances.shape_name(model, g)
        if shape not in known or distances.problem(model, g):
            continue  # refused if it can collide, else reported as not drawn
        builder.add_geom(
            bodies[body],
            custom.types["geom"].get(g, shape),
            named[g],
            model.geom_pos[g],
            _orientation(model, g).tolist(),
            size=_size(model, g).tolist(),
            points=hulls.points(model, g).tolist(),
            heights=_heights(model, g).tolist() or distances.grid(model, g).tolist(),
            friction=model.geom_friction[g].tolist(),
            condim=int(model.geom_condim[g]),
            priority=int(model.geom_priority[g]),
            solref=model.geom_solref[g],
            solimp=model.geom_solimp[g],
            solmix=float(model.geom_solmix[g]),
            margin=float(model.geom_margin[g]),
            gap=float(model.geom_gap[g]),
            adhesion=_adhesion(model, "geom", g),
            surface_velocity=_surface_velocity(model, g),
            elasticity=float(custom.elasticity[g]),
            **_fluid(model, g),
            rgba=_colour(model, g).tolist(),
            contype=0 if only_drawn else int(model.geom_contype[g]),
            conaffinity=0 if only_drawn else int(model.geom_conaffinity[g]),
            line=places.get(("geom", g), ""),
        )
    for first, second in zip(*excluded_bodies(model), strict=True):
        builder.exclude(bodies[first], bodies[second])


def pairs(builder: ModelBuilder, model: mujoco.MjModel, places: Places) -> None:
    """Add the explicit pairs of geoms whose types are registered; `support` refuses the others."""
    named, known = names(model, "geom"), plugins.names("geometry_type")
    for p, name in enumerate(names(model, "pair")):
        ends = [int(model.pair_geom1[p]), int(model.pair_geom2[p])]
        if any(distances.shape_name(model, g) not in known for g in ends) or any(
            distances.problem(model, g) for g in ends
        ):
            continue  # refused
        builder.add_pair(
            named[ends[0]],
            named[ends[1]],
            name,
            condim=int(model.pair_dim[p]),
            friction=model.pair_friction[p],
            solref=model.pair_solref[p],
            solref_friction=model.pair_solreffriction[p],
            solimp=model.pair_solimp[p],
            margin=float(model.pair_margin[p]),
            gap=float(model.pair_gap[p]),
            adhesion=_adhesion(model, "pair", p),
            line=places.get(("pair", p), ""),
        )


def _adhesion(model: mujoco.MjModel, kind: str, index: int) -> float:
    """Return the adhesion of a geom or a pair, which MuJoCo 3 does not have."""
    table = getattr(model, f"{kind}_adhesion", None)
    return 0.0 if table is None else float(table[index])


def _surface_velocity(model: mujoco.MjModel, geom: int) -> list[float]:
    """Return the velocity of a geom's surface, linear and angular, which MuJoCo 3 does not have."""
    table = getattr(model, "geom_surfacevel", None)
    return [0.0] * 6 if table is None else table[geom].tolist()


def _fluid(model: mujoco.MjModel, geom: int) -> dict[str, list[float]]:
    """Return the fluid coefficients of a geom that uses the ellipsoid model.

    Without density and viscosity, and on a body without mass, MuJoCo computes no fluid forces.
    """
    numbers = model.geom_fluid[geom].tolist()
    heavy = model.body_mass[model.geom_bodyid[geom]] > 0
    acts = numbers[0] and heavy and (model.opt.density or model.opt.viscosity)
    return dict(fluidcoef=numbers[1:6], fluid_added=numbers[6:]) if acts else {}


def _heights(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return the heights of a height field (rows, columns) [m]; empty for other geoms."""
    field = model.geom_dataid[geom]
    if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_HFIELD:
        return np.zeros((0, 0))
    begin, shape = model.hfield_adr[field], (model.hfield_nrow[field], model.hfield_ncol[field])
    # MuJoCo normalizes the data to 0..1; the third size is the height of 1.
    normalized = model.hfield_data[begin : begin + shape[0] * shape[1]].reshape(shape)
    return normalized * model.hfield_size[field, 2]


def _size(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return the size parameters of a geom.

    MuJoCo gives a height field the size of its bounding box; its own are half widths and base. So
    it gives one to a shape that is known by its distance.
    """
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_SDF:
        return np.array(distances.size(model, geom))
    if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_HFIELD:
        return model.geom_size[geom]
    return model.hfield_size[model.geom_dataid[geom]][[0, 1, 3]]


def _orientation(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return the orientation (4,) of a geom in its body's frame."""
    half, out = 0.5 * distances.turned(model, geom), np.zeros(4)
    turn = np.array([np.cos(half), 0.0, 0.0, np.sin(half)])
    mujoco.mju_mulQuat(out, model.geom_quat[geom], turn)
    return out


def _colour(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Return the colour of a geom: its own, or its material's tinted by the texture."""
    rgba, material = model.geom_rgba[geom], model.geom_matid[geom]
    # The compiled model does not say whether a file sets rgba. MuJoCo's default, grey, counts as
    # unset, as in MuJoCo's documentation of geom/rgba.
    if material < 0 or not np.allclose(rgba, (0.5, 0.5, 0.5, 1)):
        return rgba
    return model.mat_rgba[material] * (*_tint(model, material), 1.0)


def _tint(model: mujoco.MjModel, material: int) -> np.ndarray:
    """Return the mean colour (3,) of a material's texture; white if it has none."""
    texture = model.mat_texid[material, mujoco.mjtTextureRole.mjTEXROLE_RGB]
    if texture < 0 or model.tex_nchannel[texture] < 3:
        return np.ones(3)
    channels = int(model.tex_nchannel[texture])
    size = int(model.tex_width[texture]) * int(model.tex_height[texture]) * channels
    begin = int(model.tex_adr[texture])
    pixels = model.tex_data[begin : begin + size].reshape(-1, channels)
    return pixels[:, :3].mean(axis=0) / 255.0
