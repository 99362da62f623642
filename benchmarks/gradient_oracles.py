"""Known answers for gradients, and how far each pipeline is from them.

The numbers T77 and so on are rows of docs/known-answers.md.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from gradient_lab import (
    BOUNCING,
    FAST_COMPILE,
    PLAIN,
    RADIUS,
    SOLVING,
    Knobs,
    Setup,
    Start,
    ahead,
    arm,
    arrays,
    back,
    ball,
    moves,
    puck,
    simulate,
)

from brax.base import System

AROUND = 1e-12
"""Errors below are rounding, of whatever size."""


class Row(NamedTuple):
    """One figure."""

    oracle: str
    quantity: str
    setup: str
    error: float
    """Largest relative error; or what `quantity` says."""
    bar: float
    more: bool = False
    """True if the figure must be at least the bar, rather than at most."""

    @property
    def met(self) -> bool:
        """True if the bar is reached."""
        return bool(self.error >= self.bar if self.more else self.error <= self.bar)


class Oracle(NamedTuple):
    """A known answer."""

    name: str
    setups: tuple[Setup, ...]
    run: Callable[[Setup], Iterator[tuple[str, float, float]]]
    """Gives each quantity, its error and its bar."""
    more: bool = False

    def rows(self, setup: Setup) -> list[Row]:
        """Measures one setup, in double precision."""
        with jax.enable_x64(True):
            found = list(self.run(setup))
        return [
            Row(self.name, quantity, str(setup), float(error), bar, self.more)
            for quantity, error, bar in found
        ]


def _relative(found: object, want: object) -> float:
    found, want = np.asarray(found, float), np.asarray(want, float)
    return float(np.max(np.abs(found - want)) / np.max(np.abs(want)))


def _modes(forward: jax.Array, reverse: tuple[Knobs, Start], direction: Any) -> float:
    """Return the relative difference of reverse and forward mode along one direction."""
    pairs = zip(jax.tree.leaves(reverse), jax.tree.leaves(direction), strict=True)
    total = sum(float(jnp.vdot(a, b)) for a, b in pairs)
    return abs(total - float(forward)) / max(abs(float(forward)), AROUND)


# T77: smooth motion

T = TypeVar("T")

_ARM = Knobs(timestep=0.01, gravity=9.81)


def smooth_step(setup: Setup, states: int = 50) -> Iterator[tuple[str, float, float]]:
    """Compare a step from random states with central differences, and both modes."""
    yield from _against_differences(setup, 1, states, 1e-6)


def smooth_rollout(setup: Setup) -> Iterator[tuple[str, float, float]]:
    """Compare 300 steps in the same way."""
    yield from _against_differences(setup, 300, 3, 1e-6)


def _against_differences(
    setup: Setup, steps: int, states: int, bar: float
) -> Iterator[tuple[str, float, float]]:
    sys, errors, modes = arm(setup), [], []
    names = {"q": (0.5, 1.0), "qd": (1.0, 1.0), "push": (0.5, 1.0)}
    for seed in range(states):
        rng = np.random.default_rng(seed)
        start = Start(*(arrays(scale * rng.normal(size=2)) for scale, _ in names.values()))
        knobs = arrays(_ARM)
        unit = jax.tree.map(lambda x, rng=rng: rng.normal(size=x.shape), (knobs, start))
        unit = arrays((_only(unit[0], timestep=1e-2, mass=1.0), unit[1]))
        out, moved = ahead(setup, sys, knobs, start, _stacked(unit), steps)
        ends = [
            ahead(setup, sys, *_moved((knobs, start), unit, s * 1e-6), _stacked(unit), steps)[0]
            for s in (1, -1)
        ]
        errors.append(_relative(moved[0], (ends[0] - ends[1]) / 2e-6))
        if seed < 5:
            weights = jnp.asarray(rng.normal(size=out.shape))
            slopes = back(setup, sys, knobs, start, weights, steps)
            modes.append(_modes(weights @ moved[0], slopes, unit))
    yield "q, qd, act, mass, dt", max(errors), bar
    yield "reverse against forward mode", max(modes), 1e-10


def _only(knobs: Knobs, **scales: float) -> Knobs:
    """Return a direction in which only some knobs move."""
    return Knobs(**{k: v * scales.get(k, 0.0) for k, v in knobs._asdict().items()})


def _stacked(tree: T) -> T:
    return jax.tree.map(lambda x: x[None], tree)


def _moved(at: T, unit: T, h: float) -> T:
    return jax.tree.map(lambda x, t: x + h * t, at, unit)


# T78: rest on the floor


def rest(setup: Setup) -> Iterator[tuple[str, float, float]]:
    """Compare the depth at which a ball rests with m w (1 - d) g / stiffness, or zero.

    The contact's inverse weight w is 1/kg: the ball has a mass of 1 kg, and its body only slides,
    so MuJoCo's `body_invweight0` is the inverse of its mass.
    """
    stiffness, impedance = 100.0, 0.9
    soft = {"geom.solref": [-stiffness, -20.0], "geom.solimp": [impedance, impedance, 1e-3, 0.5, 2]}
    sys = puck(setup)
    rows = {k: jnp.tile(jnp.asarray(v), (len(sys.geom_names), 1)) for k, v in soft.items()}
    sys, knobs = sys.tree_replace(rows), arrays(Knobs(timestep=0.004, gravity=9.81))
    start = arrays(Start([0.0, RADIUS - 1e-3], [0.0, 0.0], [0.0, 0.0]))
    each = [("gravity", None), ("mass", None), ("q", 1)]
    _, slopes = ahead(setup, sys, knobs, start, moves(knobs, start, *each), 1500)
    sinks = (1 - impedance) / stiffness if setup.pipeline == "generalized" else 0.0
    for name, found, want in zip(
        ("gravity", "mass", "height"), slopes[:, 1], (-sinks, -9.81 * sinks, 0), strict=True
    ):
        yield f"by {name}", abs(found - want) / max(abs(want), sinks, 1e-3), 1e-4


# T79: one bounce


def bounce(setup: Setup) -> Iterator[tuple[str, float, float]]:
    """Thrown at the floor without gravity, e = 1: the height after a second."""
    sys, knobs = puck(setup), arrays(Knobs(elasticity=1.0))
    start = arrays(Start([-1.0, 1.0], [2.0, -2.0], [0.0, 0.0]))
    unit = moves(knobs, start, ("q", 1), ("qd", 1), ("push", 1))
    _, slopes = ahead(setup, sys, knobs, start, unit, 480)
    for k, (name, want) in enumerate((("height", -1.0), ("speed", -1.0), ("force", -1 / 480))):
        yield f"by {name}", _relative(slopes[k, 1], want), 0.02
    slope = back(setup, sys, knobs, start, jnp.array([0.0, 1.0, 0.0, 0.0]), 480)
    first = jax.tree.map(lambda x: x[0], unit)
    yield "reverse against forward mode", _modes(slopes[0, 1], slope, first), 1e-10


def bundle(setup: Setup, starts: int = 64) -> Iterator[tuple[str, float, float]]:
    """Compare the mean derivative by the height, over starts within the distance of one step."""
    sys, knobs = puck(setup), arrays(Knobs(elasticity=1.0))
    found = []
    for shift in (np.arange(starts) + 0.5) / starts * 2 / 480:
        start = arrays(Start([-1.0, 1.0 + shift], [2.0, -2.0], [0.0, 0.0]))
        unit = moves(knobs, start, ("q", 1), ("qd", 1), ("push", 1))
        found.append(ahead(setup, sys, knobs, start, unit, 480)[1][0, 1])
    yield "by height, mean of 64", _relative(np.mean(found), -1.0), 0.02


def falling(setup: Setup) -> Iterator[tuple[str, float, float]]:
    """Compare height and speed of a drop under gravity, e = 1, after 0.7 s, on the way up."""
    g, e, drop, end = 9.81, 1.0, 1.0, 336 / 480
    knobs = arrays(Knobs(gravity=g, elasticity=e, impact_speed=4.4))
    start = arrays(Start([0.0, RADIUS + drop], [0.0, 0.0], [0.0, 0.0]))
    unit = moves(knobs, start, ("q", 1), ("elasticity", None), ("gravity", None))
    _, slopes = ahead(setup, puck(setup), knobs, start, unit, 336)
    # z(T) = e v s - g s^2 / 2, with v = sqrt(2 g h) and s = T - v / g; w(T) = e v - g s
    v = np.sqrt(2 * g * drop)
    s = end - v / g
    by_v = np.array([e * s - e * v / g + s, e + 1.0])
    by_h = by_v * (g / v)
    by_e = np.array([v * s, v])
    # v and s both move with g: dv/dg = v / 2g, ds/dg = v / 2g^2
    by_g = np.array(
        [
            e * s * v / (2 * g) + (e * v - g * s) * v / (2 * g * g) - s * s / 2,
            e * v / (2 * g) - s - v / (2 * g),
        ]
    )
    for name, k, want in (("height", 0, by_h), ("gravity", 2, by_g), ("restitution", 1, by_e)):
        if name == "restitution" and setup.pipeline == "generalized":
            continue  # it has none
        found = slopes[k, jnp.array([1, 3])]
        yield f"by {name}", _relative(found, want), 0.02


# T80: a bounce to a target


def target(setup: Setup) -> Iterator[tuple[str, float, float]]:
    """Gradient descent on the initial velocity, over two bounces; iterations until it is hit."""
    sys, knobs = puck(setup), arrays(Knobs(timestep=0.6 / 288, elasticity=0.92, impact_speed=8.0))
    goal, velocity, bar = np.array([-2.0, 1.5]), np.array([5.0, -5.0]), 200
    for iteration in range(bar + 1):  # noqa: B007, counted
        start = arrays(Start([-0.5, 1.0], list(velocity), [0.0, 0.0]))
        unit = moves(knobs, start, ("qd", 0), ("qd", 1), ("q", 1))
        out, slopes = ahead(setup, sys, knobs, start, unit, 288)
        miss = np.asarray(out[:2]) - goal
        if miss @ miss < 1e-2:
            break
        velocity = velocity - 0.5 * np.asarray(slopes[:2, :2]) @ miss
    yield "iterations to a loss of 1e-2", iteration if miss @ miss < 1e-2 else np.inf, bar


# T97: a sweep over heights


def sweep(setup: Setup) -> Iterator[tuple[str, float, float]]:
    """Share of starting heights for which the slope's sign after one bounce is right."""
    for name, steps, count, contact in (("coarse", 20, 2000, 5.0), ("fine", 20_000, 100, 10.0)):
        heights, slopes = heights_and_slopes(setup, steps, count, contact)
        right = np.sign(slopes) == np.where(heights < 2.0, -1.0, 1.0)
        yield f"right signs, {name} ({steps} steps)", right.mean(), 0.95


@functools.lru_cache
def heights_and_slopes(
    setup: Setup, steps: int, count: int, contact: float
) -> tuple[np.ndarray, np.ndarray]:
    """Heights over the floor at the start, and the derivative of the height after 2 s by them."""
    heights = 3.0 * (np.arange(count) + 0.5) / count
    with jax.enable_x64(True):
        knobs = arrays(
            Knobs(timestep=2 / steps, elasticity=1.0, contact_steps=contact, impact_speed=1.0)
        )
        found = [
            _slopes(setup, puck(setup), knobs, jnp.asarray(part), steps)
            for part in heights.reshape(-1, 100)
        ]
    return heights, np.concatenate(found)


@functools.partial(jax.jit, static_argnames="setup", compiler_options=FAST_COMPILE)
def _slopes(setup: Setup, sys: System, knobs: Knobs, heights: jax.Array, steps: int) -> jax.Array:
    def end(height: jax.Array) -> jax.Array:
        start = Start(jnp.stack([-1.0, RADIUS + height]), jnp.array([0.0, -1.0]), jnp.zeros(2))
        return simulate(setup, sys, knobs, start, steps, kept=False)[1]

    return jax.vmap(jax.jacfwd(end))(heights)


# Friction


def skid(setup: Setup) -> Iterator[tuple[str, float, float]]:
    """Compare distance and speed after a second of a ball that slips until it rolls."""
    g, mu, v, end = 9.81, 0.2, 2.0, 1.0
    knobs = arrays(Knobs(timestep=0.002, gravity=g, friction=mu))
    start = arrays(Start([0, 0, RADIUS, 1, 0, 0, 0], [v, 0, 0, 0, 0, 0], []))
    unit = moves(knobs, start, ("qd", 0), ("friction", None), ("gravity", None))
    _, slopes = ahead(setup, ball(setup), knobs, start, unit, 500)
    found = np.asarray(slopes)[:, [0, 7]]
    # It slips for 2 v / 7 mu g; x = 5/7 v T + 2/49 v^2 / mu g, and its speed ends at 5/7 v.
    yield "by speed", _relative(found[0], [5 / 7 * end + 4 / 49 * v / (mu * g), 5 / 7]), 0.02
    late = -2 / 49 * v * v / (mu * g)
    yield "by friction", _relative(found[1], [late / mu, 0.0]), 0.02
    yield "by gravity", _relative(found[2], [late / g, 0.0]), 0.02


def slide(setup: Setup) -> Iterator[tuple[str, float, float]]:
    """Compare the distance and speed of the same ball after 0.1 s, while it slips."""
    g, mu, v, end = 9.81, 0.2, 2.0, 0.1
    knobs = arrays(Knobs(timestep=0.002, gravity=g, friction=mu))
    start = arrays(Start([0, 0, RADIUS, 1, 0, 0, 0], [v, 0, 0, 0, 0, 0], []))
    unit = moves(knobs, start, ("qd", 0), ("friction", None), ("gravity", None))
    _, slopes = ahead(setup, ball(setup), knobs, start, unit, 50)
    found = np.asarray(slopes)[:, [0, 7]]
    yield "by speed", _relative(found[0], [end, 1.0]), 0.02
    yield "by friction", _relative(found[1], [-g * end**2 / 2, -g * end]), 0.02
    yield "by gravity", _relative(found[2], [-mu * end**2 / 2, -mu * end]), 0.02


def pressed(setup: Setup, states: int = 50) -> Iterator[tuple[str, float, float]]:
    """Compare reverse mode with central differences over ten steps of contact.

    A ball is pressed into the floor, sliding and spinning.
    """
    sys, knobs = ball(setup), arrays(Knobs(timestep=0.002, gravity=9.81, friction=1.0))
    rng, errors, h = np.random.default_rng(0), [], 1e-6
    for _ in range(states):
        turn, unit, weights = rng.normal(size=4), rng.normal(size=13), arrays(rng.normal(size=13))
        depth = rng.uniform(0.001, 0.003)
        q = np.array([0, 0, RADIUS - depth, *(turn / np.linalg.norm(turn))])
        at = np.concatenate([q, 0.3 * rng.normal(size=6)])
        slope = back(setup, sys, knobs, _start(at), weights, 10)[1]
        up, down = (weights @ _end(setup, sys, knobs, _start(at + s * unit)) for s in (h, -h))
        found = unit @ np.concatenate([slope.q, slope.qd])
        errors.append(_relative(found, (up - down) / (2 * h)))
    yield f"by state, median of {states}", float(np.median(errors)), 0.05
    yield "by state, 95th percentile", float(np.quantile(errors, 0.95)), 0.05


def _start(state: np.ndarray) -> Start:
    return arrays(Start(state[:7], state[7:], []))


@functools.partial(jax.jit, static_argnames="setup", compiler_options=FAST_COMPILE)
def _end(setup: Setup, sys: System, knobs: Knobs, start: Start) -> jax.Array:
    return simulate(setup, sys, knobs, start, 10, kept=False)


ORACLES = (
    Oracle("T77: a step without contact", PLAIN, smooth_step),
    Oracle("T77: 300 steps without contact", PLAIN, smooth_rollout),
    Oracle("T78: rest on the floor", PLAIN, rest),
    Oracle("T79: a bounce", BOUNCING, bounce),
    Oracle("T79: a bounce, mean over starts", BOUNCING, bundle),
    Oracle("a bounce under gravity", BOUNCING, falling),
    Oracle("T80: a bounce to a target", BOUNCING, target),
    Oracle("T97: a sweep over heights", BOUNCING, sweep, more=True),
    Oracle("T84: ten steps of contact", SOLVING, pressed),
    Oracle("a ball that slips", PLAIN, slide),
    Oracle("a ball that slips, then rolls", PLAIN, skid),
)
