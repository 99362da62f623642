"""Descriptions of environments as tables, for the command line and the documentation."""

import ast
import dataclasses
import functools
import inspect
import itertools
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from brax import plugins
from brax.envs.observation import slices


class Section(NamedTuple):
    """A table about an environment."""

    headers: tuple[str, ...]
    """Column titles; empty if the first column names the values of the second."""
    rows: Sequence[tuple[str, ...]]


def describe(env: object) -> list[Section]:
    """Return everything that an environment's code declares.

    Returns:
        Tables of its sizes, physics, observation, metrics and parameters, without the empty ones.
    """
    sections = _sizes(env), _physics(env), _observation(env), _metrics(env), _parameters(env)
    return [section for section in sections if section.rows]


def presets(name: str) -> Section:
    """Return the presets that the installed trainers have for an environment."""
    rows = []
    for trainer, agent in plugins.all_that_load("trainer").items():
        found = getattr(agent, "presets", {}).get(name, {})
        if found:
            rows.append((trainer, ", ".join(found)))
    return Section(("trainer", "presets"), rows)


def _sizes(env: Any) -> Section:
    # An environment of another package need not be a `brax.env.Env`.
    sizes = {name: getattr(env, f"{name}_size", None) for name in ("observation", "action")}
    rows = [(name, str(size)) for name, size in sizes.items() if size is not None]
    if getattr(env, "backend", ""):
        rows.append(("backend", env.backend))
    if hasattr(env, "dt"):
        rows.append(("step", f"{float(env.dt):g} s"))
    return Section((), rows)


def _physics(env: object) -> Section:
    physics = getattr(env, "physics", {}).items()
    rows = [(backend, f"{p.timestep:g} s", str(p.n_frames)) for backend, p in physics]
    return Section(("pipeline", "physics step", "per step"), rows)


def _observation(env: object) -> Section:
    parts = slices(getattr(env, "observation_layout", ()))
    rows = [(f"{entries.start}:{entries.stop}", part.name, part.unit) for entries, part in parts]
    return Section(("entries", "observation", "unit"), rows)


def _metrics(env: Any) -> Section:
    # Only the names are needed, so nothing is compiled.
    metrics = jax.eval_shape(env.reset, jax.random.key(0)).metrics
    terms = ("term of the reward" if name.startswith("reward_") else "" for name in metrics)
    return Section(("metric", ""), list(zip(metrics, terms, strict=True)))


def _parameters(env: object) -> Section:
    headers = ("parameter", "value", "meaning")
    parameters = getattr(env, "parameters", None)
    if not dataclasses.is_dataclass(parameters):
        return Section(headers, [])
    names = [field.name for field in dataclasses.fields(parameters)]
    kind = type(parameters)
    return Section(headers, [(n, str(getattr(parameters, n)), meaning(kind, n)) for n in names])


def meaning(kind: type, field: str) -> str:
    """Return the docstring of a dataclass's field, from the class that last defined one."""
    return next((m[field] for m in map(_meanings, kind.__mro__[:-1]) if field in m), "")


@functools.cache
def _meanings(kind: type) -> dict[str, str]:
    """Return the docstrings of the fields that a class itself defines."""
    # Python does not keep them, so they are read from the source, if there is one.
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        return {}
    (definition,) = ast.parse(textwrap.dedent(source)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for pair in itertools.pairwise(definition.body):
        match pair:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as text)),
            ):
                found[name] = " ".join(text.split())
    return found
