"""The state of the pipeline `mjx`: that of every pipeline, and all of MJX's data."""

import dataclasses
from typing import Any, Self

import jax

from brax import base
from brax.base import dataclass


@dataclass
class Contact(base.Contact):
    """MJX's contacts, in the form of every pipeline's, and the geoms of each."""

    geom: jax.Array = dataclasses.field(kw_only=True)
    """MuJoCo's numbers of the two geoms, shape (n_contacts, 2)."""
    includemargin: jax.Array = dataclasses.field(kw_only=True)
    """Distance from which each contact is active [m], shape (n_contacts,)."""

    @property
    def geom1(self) -> jax.Array:
        """MuJoCo's number of the first geom, shape (n_contacts,)."""
        return self.geom[..., 0]

    @property
    def geom2(self) -> jax.Array:
        """MuJoCo's number of the second geom, shape (n_contacts,)."""
        return self.geom[..., 1]


@dataclass
class State(base.State):
    """The state of a simulation with MJX.

    The fields of MJX's data, such as `xpos`, `site_xpos`, `subtree_com`, `cinert`, `qfrc_actuator`
    and `sensordata`, are attributes of the state, and can be replaced by their names. What a step
    computes has the values of the step's start, as in MuJoCo; `q`, `qd`, `x` and `xd` are those of
    its end.
    """

    data: Any = dataclasses.field(kw_only=True)
    """MJX's data, a `mujoco.mjx.Data`. Where `q` and `qd` were replaced since the last step, they
    count, not the `qpos` and `qvel` in here."""

    def __getattr__(self, name: str) -> Any:
        """Return a field of MJX's data."""
        # A copy that is being made has no data yet, and asks for methods such as `__setstate__`.
        if not name.startswith("_") and name != "data":
            for owner in _parts(self.data):
                if name in _names(owner):
                    return getattr(owner, name)
        raise AttributeError(f"neither the state nor MJX's data has '{name}'")

    def replace(self, **changes: Any) -> Self:
        """Return a copy with fields replaced, of the state or of MJX's data.

        Raises:
            ModelError: if neither has a field of a name.
        """
        own = {field.name for field in dataclasses.fields(self)} | {"qpos", "qvel"}
        inside = {n: changes.pop(n) for n in [*changes] if n in _names(self.data) - own}
        if inside:
            changes["data"] = changes.get("data", self.data).replace(**inside)
        return super().replace(**changes)


def _parts(data: object) -> tuple[Any, ...]:
    """Return MJX's data, and the part of it that MJX calls its implementation's."""
    return data, getattr(data, "_impl", None)


def _names(owner: object) -> set[str]:
    """Return the names of the fields of a dataclass."""
    # In a tree of axes for `jax.vmap`, the data is not MJX's.
    return {f.name for f in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else set()
