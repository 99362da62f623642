"""Custom fields of a model file, and their meaning for Brax."""

import difflib
from typing import NamedTuple

import mujoco
import numpy as np

from brax.base import without_effect
from brax.errors import closest
from brax.io.mjcf.names import names

OPTIONS = ("vel_damping", "ang_damping", "baumgarte_erp")
"""Options of the model, one number each."""

COUNTS = ("max_geom_pairs", "max_contact_points", "sweeps")
"""Options that are whole numbers; zero or a negative number sets no bound."""

HONOURED_NUMERICS = (*OPTIONS, *COUNTS, "elasticity", "init_qpos")

TYPES = {
    "joint_type": "joint",
    "geometry_type": "geom",
    "actuator": "actuator",
    "sensor": "sensor",
}
"""Kinds of plugin, and the elements of each kind.

A tuple named `KIND:NAME` gives the elements that it lists the plugin type with that name.
"""

INTEGRATOR = "integrator"
"""Name of the `<text>` that selects an integrator which MuJoCo does not have."""

IGNORED_NUMERICS = {
    **without_effect.SYSTEM,
    **without_effect.LINK,
    "solver_maxls": "a pipeline has its own solver",
}
"""Fields for other engines that model files contain, and why they have no effect."""


class Custom(NamedTuple):
    """The custom fields of a model."""

    options: dict[str, float | int | str]
    elasticity: np.ndarray
    """Coefficient of restitution of each geom, (ngeom,)."""
    init_q: np.ndarray | None
    types: dict[str, dict[int, str]]
    """Plugin types of elements, by kind of element and id."""
    problems: list[tuple[str, int, str]]
    """Fields that cannot be used: kind ('numeric' or 'tuple'), id and reason."""
    unknown: list[tuple[str, int, str]]
    """Fields with unknown names, which have no effect, in the same form."""

    @property
    def joint_types(self) -> dict[int, str]:
        """Plugin types of joints, by id."""
        return self.types["joint"]


def read_custom(model: mujoco.MjModel) -> Custom:
    """Return the custom fields of a compiled model: `<numeric>`, `<tuple>` and `<text>`."""
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
        "unknown custom field, which has no effect. Known: "
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
    """Write a tuple of elasticities into the table, and return what is wrong with it."""
    if model.tuple(i).name != "elasticity":
        return "only 'elasticity' can be set per element, on geoms"
    rows = slice(model.tuple_adr[i], model.tuple_adr[i] + model.tuple_size[i])
    if (model.tuple_objtype[rows] != mujoco.mjtObj.mjOBJ_GEOM).any():
        return 'elasticity belongs to geoms; use objtype="geom"'
    elasticity[model.tuple_objid[rows]] = model.tuple_objprm[rows]
    return ""


def _set_type(model: mujoco.MjModel, i: int, own: dict[str, dict[int, str]]) -> str:
    """Record the plugin type of the elements in a tuple, and return what is wrong with it."""
    kind, _, name = model.tuple(i).name.partition(":")
    if kind not in TYPES:
        return (
            f"there is no kind '{kind}' of types. Name it KIND:TYPE, where KIND is one of "
            f"{', '.join(TYPES)}.{closest(kind, TYPES)}"
        )
    element = TYPES[kind]
    rows = slice(model.tuple_adr[i], model.tuple_adr[i] + model.tuple_size[i])
    # A tuple refers to elements by type and name, so a wrong objtype would select another element.
    if (model.tuple_objtype[rows] != getattr(mujoco.mjtObj, f"mjOBJ_{element.upper()}")).any():
        article = "an" if kind[0] == "a" else "a"
        words = kind.replace("_", " ")
        return f'{article} {words} belongs to {element}s; use objtype="{element}"'
    own[element] |= dict.fromkeys(model.tuple_objid[rows].tolist(), name)
    return ""


def _integrator(model: mujoco.MjModel, problems: list[tuple[str, int, str]]) -> dict[str, str]:
    """Return the integrator that a `<text>` names, and note a text whose name is misspelt."""
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
"""Similarity from which a text's name counts as misspelt; other texts belong to the user."""
