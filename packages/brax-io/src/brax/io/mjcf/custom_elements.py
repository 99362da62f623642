"""Custom numbers of a model file: what each name means to Brax."""

import difflib
from typing import NamedTuple

import mujoco
import numpy as np

from brax.errors import closest
from brax.io.mjcf.names import names

OPTIONS = ("vel_damping", "ang_damping", "baumgarte_erp")
"""One number each, set as options of the model."""

COUNTS = ("max_geom_pairs", "max_contact_points", "sweeps")
"""Settings that are whole numbers; a negative one, or none, sets no bound."""

HONOURED_NUMERICS = (*OPTIONS, *COUNTS, "elasticity", "init_qpos")

TYPES = {
    "joint_type": "joint",
    "geometry_type": "geom",
    "actuator": "actuator",
    "sensor": "sensor",
}
"""Kinds of plugin, and the elements that are of one. A tuple named `KIND:NAME` makes the elements
that it lists be of the type that is registered under the name."""

INTEGRATOR = "integrator"
"""Name of the text that names an integrator which MuJoCo has not."""

IGNORED_NUMERICS = {
    "spring_mass_scale": "true masses are used",
    "spring_inertia_scale": "true inertias are used",
    "joint_scale_pos": "tuned an earlier joint solver",
    "joint_scale_ang": "tuned an earlier joint solver",
    "collide_scale": "tuned an earlier contact solver",
    "matrix_inv_iterations": "tuned an earlier solver",
    "solver_maxls": "tuned an earlier solver",
    "constraint_stiffness": "tuned an earlier joint solver",
    "constraint_limit_stiffness": "tuned an earlier joint solver",
    "constraint_ang_damping": "tuned an earlier joint solver",
    "constraint_vel_damping": "tuned an earlier joint solver",
}
"""Names that model files carry for earlier engines, and why they change nothing."""


class Custom(NamedTuple):
    """What a model's custom elements ask for."""

    options: dict[str, float | int | str]
    elasticity: np.ndarray
    """Coefficient of restitution of each geom, (ngeom,)."""
    init_q: np.ndarray | None
    types: dict[str, dict[int, str]]
    """Types that are not MuJoCo's, by kind of element and id."""
    problems: list[tuple[str, int, str]]
    """What cannot be honoured: kind ('numeric' or 'tuple'), id and why."""
    unknown: list[tuple[str, int, str]]
    """Names that mean nothing to Brax, and so change nothing, in the same form."""

    @property
    def joint_types(self) -> dict[int, str]:
        """Types of the joints that are not MuJoCo's, by id."""
        return self.types["joint"]


def read_custom(model: mujoco.MjModel) -> Custom:
    """Reads a compiled model's `<numeric>` and `<tuple>` elements."""
    problems: list[tuple[str, int, str]] = []
    unknown: list[tuple[str, int, str]] = []
    numbers: dict[str, np.ndarray] = {}
    own_types = any(model.tuple(i).name.startswith("joint_type:") for i in range(model.ntuple))
    nq = None if own_types else model.nq  # the builder knows those types' coordinates
    for i in range(model.nnumeric):
        start, size = model.numeric_adr[i], model.numeric_size[i]
        name, value = model.numeric(i).name, model.numeric_data[start : start + size]
        if name not in HONOURED_NUMERICS and name not in IGNORED_NUMERICS:
            unknown.append(("numeric", i, _unknown(name)))
        elif problem := _wrong_size(name, value, nq):
            problems.append(("numeric", i, problem))
        elif name in HONOURED_NUMERICS:
            numbers[name] = value
    elasticity = np.full(model.ngeom, numbers.get("elasticity", np.zeros(1))[0])
    own: dict[str, dict[int, str]] = {element: {} for element in TYPES.values()}
    for i in range(model.ntuple):
        name = model.tuple(i).name
        if ":" in name:
            problem = _set_type(model, i, own)
        elif name in HONOURED_NUMERICS:
            problem = _set_per_geom(model, i, elasticity)
        else:
            problem = ""
            if name not in IGNORED_NUMERICS:
                unknown.append(("tuple", i, _unknown(name)))
        if problem:
            problems.append(("tuple", i, problem))
    options: dict[str, float | int | str] = {}
    options |= {name: float(numbers[name][0]) for name in OPTIONS if name in numbers}
    options |= {name: max(int(numbers[name][0]), 0) for name in COUNTS if name in numbers}
    options |= _integrator(model, problems)
    init_q = numbers.get("init_qpos")
    start = None if init_q is None else init_q.copy()
    return Custom(options, elasticity, start, own, problems, unknown)


def _unknown(name: str) -> str:
    return (
        "unknown custom field, which changes nothing. Known: "
        f"{', '.join(HONOURED_NUMERICS)}.{closest(name, [*HONOURED_NUMERICS, *IGNORED_NUMERICS])}"
    )


def _wrong_size(name: str, value: np.ndarray, nq: int | None) -> str:
    if name == "init_qpos" and nq is not None and value.size != nq:
        return f"has {value.size} numbers; the joints have {nq} coordinates"
    if name in (*OPTIONS, *COUNTS, "elasticity") and value.size != 1:
        return f"needs one number, got {value.size}"
    if name in COUNTS and value[0] != int(value[0]):
        return f"needs a whole number, got {value[0]}"
    return ""


def _set_per_geom(model: mujoco.MjModel, i: int, elasticity: np.ndarray) -> str:
    """Writes a tuple of elasticities into the table; returns what is wrong with it."""
    if model.tuple(i).name != "elasticity":
        return "only 'elasticity' can be set per element, on geoms"
    rows = slice(model.tuple_adr[i], model.tuple_adr[i] + model.tuple_size[i])
    if (model.tuple_objtype[rows] != mujoco.mjtObj.mjOBJ_GEOM).any():
        return 'elasticity belongs to geoms; use objtype="geom"'
    elasticity[model.tuple_objid[rows]] = model.tuple_objprm[rows]
    return ""


def _set_type(model: mujoco.MjModel, i: int, own: dict[str, dict[int, str]]) -> str:
    """Notes the type of the elements that a tuple lists; returns what is wrong with it."""
    kind, _, name = model.tuple(i).name.partition(":")
    if kind not in TYPES:
        return (
            f"there is no kind '{kind}' of types. Name it KIND:TYPE, where KIND is one of "
            f"{', '.join(TYPES)}.{closest(kind, TYPES)}"
        )
    element = TYPES[kind]
    rows = slice(model.tuple_adr[i], model.tuple_adr[i] + model.tuple_size[i])
    if (model.tuple_objtype[rows] != getattr(mujoco.mjtObj, f"mjOBJ_{element.upper()}")).any():
        article = "an" if kind[0] == "a" else "a"
        words = kind.replace("_", " ")
        return f'{article} {words} belongs to {element}s; use objtype="{element}"'
    own[element] |= dict.fromkeys(model.tuple_objid[rows].tolist(), name)
    return ""


def _integrator(model: mujoco.MjModel, problems: list[tuple[str, int, str]]) -> dict[str, str]:
    """The integrator that a text names, as an option; notes a text that nearly does."""
    found = {}
    for i, name in enumerate(names(model, "text")):
        if name == INTEGRATOR:
            begin, size = model.text_adr[i], model.text_size[i]
            data = bytes(model.text_data[begin : begin + size])
            found[INTEGRATOR] = data.rstrip(b"\0").decode()
        elif difflib.SequenceMatcher(None, name, INTEGRATOR).ratio() > _MIN_MISSPELLING_SIMILARITY:
            problems.append(("text", i, f"unknown text. Did you mean '{INTEGRATOR}'?"))
    return found


_MIN_MISSPELLING_SIMILARITY = 0.85
"""How alike a text's name is to a known one that is misspelt; other texts are the user's own."""
