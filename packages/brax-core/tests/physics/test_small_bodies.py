"""Bodies of millimetres and less: no threshold in SI units may slow or break them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.builder import ModelBuilder
from brax.components import Sym3
from brax.generalized.pipeline import GENERALIZED
from brax.pipeline import Pipeline
from brax.positional.pipeline import POSITIONAL
from brax.spatial import inverse_sym3
from brax.spring.pipeline import SPRING

G, DT = 9.81, 1e-4
PIPELINES: dict[str, Pipeline[Any, Any]] = {
    "spring": SPRING,
    "positional": POSITIONAL,
    "generalized": GENERALIZED,
}


def small_chain(links, length, mass):
    """Return rods in a chain of hinges about y."""
    model, parent = ModelBuilder(), "world"
    model.set_option(timestep=DT)
    moment = mass * length**2 / 12
    for i in range(links):
        name = f"rod{i}"
        model.add_body(
            name,
            parent,
            pos=(0, 0, -length if i else 0),
            mass=mass,
            inertia=(moment, moment, moment / 100),
            ipos=(0, 0, -length / 2),
        )
        model.add_joint(name, axis=(0, 1, 0))
        parent = name
    return model.build()


def accelerations(links, length, mass, angle):
    """Return those of a straight chain at rest: M qdd = -dV/dq, written out for one plane."""
    hinge = length * np.arange(links)
    # Each rod's centre from each hinge above it.
    arm = np.maximum(hinge[:, None] + length / 2 - hinge, 0)
    below = arm > 0
    matrix = mass * arm.T @ arm + mass * length**2 / 12 * (1.0 * below).T @ below
    return np.linalg.solve(matrix, -mass * G * np.sin(angle) * arm.sum(axis=0))


@pytest.mark.parametrize(
    ("pipeline", "links"), [("spring", 1), ("positional", 1), ("spring", 3), ("generalized", 30)]
)
def test_a_small_chain_falls_as_fast_as_it_should(f64, pipeline, links):
    # The long one has no mass matrix, but is solved as a tree.
    length, mass = 4e-3, 1e-6
    sys, engine = small_chain(links, length, mass), PIPELINES[pipeline]
    state = engine.init(sys, jnp.zeros(links).at[0].set(0.5), jnp.zeros(links))
    got = engine.step(sys, state, None).qd
    right = DT * accelerations(links, length, mass, 0.5)
    np.testing.assert_allclose(got, right, rtol=1e-6, atol=1e-9 * np.abs(right).max())


@pytest.mark.parametrize("pipeline", ["spring", "positional"])
@pytest.mark.parametrize("radius", [1e-3, 5e-4, 1e-4, 2e-5])
def test_a_grain_of_sand_rolls(pipeline, radius):
    """Friction turns a ball that slides until it rolls, with 5/7 of its speed."""
    model = ModelBuilder()
    model.set_option(timestep=1e-3)
    mass = 4 / 3 * np.pi * radius**3 * 2650
    model.add_geom("world", "plane", friction=(1, 0, 0))
    model.add_body("grain", mass=mass, inertia=[0.4 * mass * radius**2] * 3, pos=(0, 0, radius))
    model.add_joint("grain", "free")
    model.add_geom("grain", "sphere", size=(radius,), friction=(1, 0, 0))
    sys, engine = model.build(), PIPELINES[pipeline]
    speed = 1e-2
    state = engine.init(sys, sys.init_q, jnp.zeros(6).at[0].set(speed))
    qd = engine.step(sys, state, None).qd
    end = 5 / 7 * speed
    right = [1, 0, 0, 0, 1 / radius, 0]
    np.testing.assert_allclose(qd / end, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1e-20, 1e-14, 1e-8, 1.0, 1e8, 1e14, 1e20])
def test_inverses_of_small_and_large_matrices(size):
    matrix = size * np.array([[2.0, 0.3, -0.4], [0.3, 1.5, 0.2], [-0.4, 0.2, 1.0]])
    places = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    got = inverse_sym3(Sym3(*(jnp.full((1, 1), matrix[p], jnp.float32) for p in places)))
    right = np.linalg.inv(matrix)
    np.testing.assert_allclose(np.ravel(got), [right[p] for p in places], rtol=1e-5)


@pytest.mark.parametrize(("length", "mass"), [(1.0, 1.0), (4e-3, 1e-6)])
def test_coinciding_hinges_share_the_motion(bound, length, mass):
    """Nothing is left of the inertia along the second direction of a stack, as in gimbal lock."""
    model = ModelBuilder()
    model.set_option(timestep=DT)
    moment = mass * length**2 / 12
    inertia = (moment, moment, moment / 100)
    model.add_body("rod", mass=mass, inertia=inertia, ipos=(0, 0, -length / 2))
    for _ in range(2):
        model.add_joint("rod", axis=(0.6, 0.8, 0))
    sys = model.build()
    state = SPRING.step(sys, SPRING.init(sys, jnp.array([0.3, 0.2]), jnp.zeros(2)), None)
    right = DT * accelerations(1, length, mass, 0.5)
    # 1.2e-4 in single precision, 1e-9 in double.
    np.testing.assert_allclose(jnp.sum(state.qd), right[0], rtol=bound(1e-5, 2e-4))


def swimmer(radius, shape=(1, 1, 1)):
    """Return an ellipsoid as heavy as water, in water without viscosity."""
    model, semi_axes = ModelBuilder(), radius * np.array(shape)
    model.set_option(density=1000.0, gravity=(0, 0, 0), timestep=1e-2)
    mass = 4 / 3 * np.pi * 1000 * np.prod(semi_axes)
    model.add_body("swimmer", mass=mass, inertia=[0.4 * mass * radius**2] * 3)
    model.add_joint("swimmer", "free")
    model.add_geom("swimmer", "ellipsoid", size=semi_axes, fluidcoef=(0.5, 0.25, 1.5, 1, 1))
    return model.build()


def drifted(sys, speed):
    """Return the speed after a step, and its derivative by the speed before."""

    def after(speed):
        start = GENERALIZED.init(sys, sys.init_q, jnp.zeros(6).at[0].set(speed))
        return GENERALIZED.step(sys, start, None).qd[0]

    return jax.jit(jax.value_and_grad(after))(jnp.float32(speed))


@pytest.mark.parametrize(("radius", "speed"), [(1e-2, 0.1), (1e-4, 1e-3), (1e-5, 1e-4)])
def test_drag_of_a_small_ball(radius, speed):
    """It is that of the blunt coefficient, .5, times the density and the area: F = .5 rho A v²."""
    rate = 0.5 * np.pi * radius**2 * 1000 / (4 / 3 * np.pi * 1000 * radius**3)
    got, slope = drifted(swimmer(radius), speed)
    # 3.75 percent of the speed. Measured 1e-6 of the speed.
    assert got == pytest.approx(speed - 1e-2 * rate * speed**2, rel=1e-5)
    assert slope == pytest.approx(1 - 2 * 1e-2 * rate * speed, rel=1e-4)


@pytest.mark.parametrize("shape", [(1, 1, 1), (0.2, 0.5, 1)])
def test_an_ellipsoid_that_hardly_moves_keeps_its_speed(shape):
    sys = swimmer(1e-2, shape)
    for speed in (1e-7, 1e-9, 1e-11, 1e-12, 1e-13, 1e-15, 1e-17, 0.0):
        got, slope = drifted(sys, speed)
        assert got == pytest.approx(speed, rel=1e-5)
        assert slope == pytest.approx(1, rel=1e-5)
