"""Small models and compiled rollouts with their derivatives, for the oracles of gradients.

Each program is compiled once for a pipeline; numbers of the model, among them the time step and
what contacts are like, are its arguments and may be differentiated.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.base import System
from brax.builder import ModelBuilder

RADIUS = 0.1
FAST_COMPILE = {
    "xla_backend_optimization_level": "0",
    "xla_llvm_disable_expensive_passes": True,
}
"""Compiling is most of the work here."""


class Setup(NamedTuple):
    """A pipeline in one of its ways of treating impacts."""

    pipeline: str
    mode: str = ""

    def __str__(self) -> str:
        return f"{self.pipeline} ({self.mode})" if self.mode else self.pipeline


PLAIN = tuple(Setup(name) for name in ("spring", "positional", "generalized"))
"""Every pipeline as it comes."""
BOUNCING = (
    Setup("spring"),
    Setup("spring", "time of impact"),
    Setup("positional"),
    Setup("generalized", "stiff"),
    Setup("generalized", "smooth"),
)
"""Every way in which the pipelines throw back what touches."""
SOLVING = tuple(Setup("generalized", f"{n} iterations") for n in (1, 4, 100))
"""The pipeline that solves for its contacts, with few and many iterations."""


class Knobs(NamedTuple):
    """The numbers that oracles set, and differentiate by."""

    timestep: Any = 1 / 480
    gravity: Any = 0.0
    elasticity: Any = 0.0
    friction: Any = 0.0
    mass: Any = 1.0
    contact_steps: Any = 10.0
    """Steps that a smooth elastic contact lasts, more or less."""
    impact_speed: Any = 2.0
    """Speed of the impact for which a smooth contact is made [m/s]."""


class Start(NamedTuple):
    """The start of a rollout."""

    q: Any
    qd: Any
    push: Any
    """Control of the first step; later there is none."""


def puck(setup: Setup) -> System:
    """Return a ball that slides along x and z, with a floor at z = 0 and a wall at x = 1.75."""
    model = ModelBuilder()
    model.add_body("puck", mass=1.0, inertia=(0.1, 0.1, 0.1))
    for axis in ((1, 0, 0), (0, 0, 1)):
        model.add_actuator(model.add_joint("puck", "slide", axis=axis))
    model.add_geom(type="plane", size=(0, 0, 1), condim=1)
    model.add_geom(type="plane", pos=(1.75, 0, 0), quat=_LEFT, size=(0, 0, 1), condim=1)
    model.add_geom("puck", "sphere", size=(RADIUS,), condim=1)
    return _with_mode(model, setup)


_LEFT = (np.sqrt(0.5), 0.0, -np.sqrt(0.5), 0.0)
"""Turns z to -x."""


def ball(setup: Setup) -> System:
    """Return a solid ball that rolls on the floor z = 0."""
    model = ModelBuilder()
    model.add_body("ball", pos=(0, 0, RADIUS), mass=1.0, inertia=(0.4 * RADIUS**2,) * 3)
    model.add_joint("ball", "free")
    model.add_geom(type="plane", size=(0, 0, 1))
    model.add_geom("ball", "sphere", size=(RADIUS,))
    iterations = int(setup.mode.split()[0]) if setup in SOLVING else 10
    model.set_option(cone="elliptic", iterations=iterations, ls_iterations=10)
    return _with_mode(model, setup)


def arm(setup: Setup) -> System:
    """Two links on hinges along y and x, with motors, springs, dampers and rotors."""
    model = ModelBuilder()
    passive: Any = dict(stiffness=2.0, damping=0.3, armature=0.05)
    for i, axis in enumerate(((0, 1, 0), (1, 0, 0))):
        body: Any = dict(pos=(0, 0, -1.0 * i), ipos=(0.1, 0, -0.5), inertia=(0.1, 0.11, 0.09))
        model.add_body(f"link{i}", "link0" if i else "world", mass=1.0, **body)
        model.add_actuator(model.add_joint(f"link{i}", "hinge", axis=axis, **passive))
    return _with_mode(model, setup)


def _with_mode(model: ModelBuilder, setup: Setup) -> System:
    model.set_option(time_of_impact=setup.mode == "time of impact")
    return model.build()


def turned(sys: System, setup: Setup, knobs: Knobs) -> System:
    """Return the model with other numbers."""
    ones = jnp.ones(len(sys.geom_names))
    new = {
        "opt.timestep": knobs.timestep,
        "opt.gravity": jnp.array([0.0, 0.0, -1.0]) * knobs.gravity,
        "geom.elasticity": ones * knobs.elasticity,
        "geom.friction": sys.geom.friction.at[:, 0].set(knobs.friction),
        "link.inertia.mass": sys.link.inertia.mass * knobs.mass,
    }
    if setup.mode in ("stiff", "smooth"):
        solref, solimp = springs(setup, knobs)
        new |= {"geom.solref": ones[:, None] * solref, "geom.solimp": ones[:, None] * solimp}
    return sys.tree_replace(jax.tree.map(jnp.asarray, new))


STIFF_STEPS = 4.0
"""Steps that a stiff elastic contact lasts; MuJoCo's stiffest last about as long."""


def springs(setup: Setup, knobs: Knobs) -> tuple[jax.Array, jax.Array]:
    """MuJoCo's `solref` and `solimp` of contacts that bounce.

    A linear spring that pushes for n steps has the angular frequency pi / (n dt), and bounces with
    exp(-pi z / sqrt(1 - z^2)), z its damping ratio. A stiff contact has all of its force at once;
    that of a smooth one begins at zero and grows with the square of the depth, up to more than
    it reaches.
    """
    smooth = setup.mode == "smooth"
    frequency = np.pi / ((knobs.contact_steps if smooth else STIFF_STEPS) * knobs.timestep)
    loss = -jnp.log(jnp.maximum(knobs.elasticity, 1e-3)) / np.pi
    ratio = loss / jnp.sqrt(1 + loss * loss)
    solref = jnp.stack([-(frequency**2), -2 * ratio * frequency])
    width = 3.0 * knobs.impact_speed / frequency if smooth else 1e-3
    solimp = (1e-4 if smooth else 0.9999, 0.9999, width, 0.999 if smooth else 0.5, 2.0)
    return solref, jnp.stack([jnp.asarray(x, float) for x in solimp])


def simulate(setup: Setup, sys: System, knobs: Knobs, start: Start, steps: Any, kept: bool) -> Any:
    """Coordinates and rates after a number of steps."""
    pipeline, sys = plugins.get("pipeline", setup.pipeline), turned(sys, setup, knobs)
    state = pipeline.init(sys, start.q, start.qd)
    act = jnp.zeros(sys.act_size())

    def step(state: Any, i: Any) -> Any:
        return pipeline.step(sys, state, jnp.where(i == 0, start.push, act)), None

    if kept:
        state = jax.lax.scan(jax.checkpoint(step), state, jnp.arange(steps))[0]
    else:
        state = jax.lax.fori_loop(0, steps, lambda i, s: step(s, i)[0], state)
    return jnp.concatenate([state.q, state.qd])


@functools.partial(jax.jit, static_argnames="setup", compiler_options=FAST_COMPILE)
def ahead(
    setup: Setup, sys: System, knobs: Knobs, start: Start, moves: tuple[Knobs, Start], steps: int
) -> tuple[jax.Array, jax.Array]:
    """Return the end of a rollout and its derivatives along several moves, in forward mode."""

    def end(knobs: Knobs, start: Start) -> jax.Array:
        return simulate(setup, sys, knobs, start, steps, kept=False)

    def push(move: tuple[Knobs, Start]) -> tuple[jax.Array, jax.Array]:
        return jax.jvp(end, (knobs, start), move)

    return jax.vmap(push, out_axes=(None, 0))(moves)


@functools.partial(jax.jit, static_argnames=("setup", "steps"), compiler_options=FAST_COMPILE)
def back(
    setup: Setup, sys: System, knobs: Knobs, start: Start, weights: jax.Array, steps: int
) -> tuple[Knobs, Start]:
    """Return derivatives of a weighted sum of the end by all inputs, in reverse mode."""

    def end(knobs: Knobs, start: Start) -> jax.Array:
        return weights @ simulate(setup, sys, knobs, start, steps, kept=True)

    return jax.grad(end, argnums=(0, 1))(knobs, start)


def arrays(tree: Any) -> Any:
    """Leaves as arrays of the present precision, so that equal shapes share a program."""
    flat, structure = jax.tree.flatten(tree, is_leaf=lambda x: isinstance(x, list))
    return jax.tree.unflatten(structure, [jnp.asarray(x, float) for x in flat])


def moves(knobs: Knobs, start: Start, *each: tuple[str, int | None]) -> tuple[Knobs, Start]:
    """Return unit moves, stacked: of a knob, or of an index in a part of the start."""
    zero = jax.tree.map(lambda x: np.zeros(np.shape(x)), (knobs, start))
    out = []
    for name, index in each:
        which = 0 if name in Knobs._fields else 1
        one = np.array(getattr(zero[which], name))
        one[() if index is None else index] = 1.0
        changed = zero[which]._replace(**{name: one})
        out.append((changed, zero[1]) if which == 0 else (zero[0], changed))
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *out)
