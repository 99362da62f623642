"""Force laws of the soft constraints are the slopes of the energies written here."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax.generalized.constraints.constraint_laws import (
    EllipticCone,
    IndependentLaw,
    PyramidalCone,
    ScalarLaw,
    are_mixed,
    impedance,
    reference_parameters,
)

N = 200


def numbers(low, high, seed):
    return jnp.asarray(np.random.default_rng(seed).uniform(low, high, size=(N, 1)))


MU = numbers(0.2, 1.5, 1)
TURNING = numbers(0.1, 0.5, 5), numbers(0.1, 0.8, 6), numbers(0.1, 0.8, 6)
LAWS = {
    "rows": lambda: _rows(0),
    "pyramid": lambda: PyramidalCone(numbers(0.5, 2, 0), (MU, MU), jnp.ones((N, 1))),
    "pyramid with rolling": lambda: PyramidalCone(
        numbers(0.5, 2, 0), (MU, MU, *TURNING), jnp.ones((N, 1))
    ),
    "ellipse": lambda: _ellipse(()),
    "ellipse with torsion": lambda: _ellipse(TURNING[:1]),
    "ellipse with rolling": lambda: _ellipse(TURNING),
    "ellipse of two frictions": lambda: _ellipse(())._replace(sideways=numbers(0.3, 2, 7)),
    "ellipse without friction": lambda: _smooth(),
    "separate": lambda: IndependentLaw(tuple(_rows(k) for k in range(3))),
}
WIDTH = {"rows": 1, "separate": 3, "pyramid": 3, "ellipse": 3, "ellipse with torsion": 4}
WIDTH |= {"ellipse without friction": 3, "ellipse of two frictions": 3}


def _rows(seed):
    return ScalarLaw(numbers(0.5, 2, seed), numbers(-2, -1, seed + 1), numbers(1, 2, seed + 2))


def _ellipse(turning):
    """As the constraints make it: stiffer along the tangents by `impratio`."""
    normal, ratio = numbers(0.5, 2, 0), numbers(0.5, 4, 2)
    ratios = tuple(x / MU for x in turning)
    return EllipticCone(normal, normal * ratio, MU, MU / jnp.sqrt(ratio), ratios)


def _smooth():
    """Return a contact of `condim` 1 in a model of round cones."""
    nothing = jnp.zeros((N, 1))
    return EllipticCone(numbers(0.5, 2, 0), nothing, nothing, nothing + 1e-5)


def energy(law, v):
    """Return Huber's loss of scalar rows, and the squared distance to cones in their metric."""
    if isinstance(law, ScalarLaw):
        force = jnp.clip(-law.stiffness * v, law.lower, law.upper)
        return -force * (v + 0.5 * force / law.stiffness)
    if isinstance(law, IndependentLaw):
        return sum(energy(rows, x) for rows, x in zip(law.rows, v, strict=True))
    normal, *across = v
    if isinstance(law, PyramidalCone):
        pairs = list(zip(law.friction, across, strict=True))
        edges = [normal + s * mu * t for mu, t in pairs for s in (1, -1)]
        return 0.5 * law.stiffness * sum(jnp.minimum(e, 0.0) ** 2 for e in edges)
    ratios = (1.0, 1.0 if law.sideways is None else law.sideways, *law.ratios)
    speed = jnp.sqrt(sum((r * x) ** 2 for r, x in zip(ratios, across, strict=True)))
    n, t = law.mu * normal, law.friction * speed
    inside = law.normal * normal**2 + law.tangent * speed**2
    beside = law.normal / (law.mu**2 * (1 + law.mu**2)) * (n - law.mu * t) ** 2
    apart, stuck = n >= law.mu * t, law.mu * n + t <= 0
    return 0.5 * jnp.where(apart, 0.0, jnp.where(stuck, inside, beside))


def full(matrix):
    """Return the symmetric matrix, (n, directions, directions)."""
    size = range(len(matrix))
    entries = [[matrix[max(i, j)][min(i, j)] for j in size] for i in size]
    zero = jnp.zeros(N)
    rows = [jnp.stack([zero if x is None else x[:, 0] for x in row], -1) for row in entries]
    return jnp.stack(rows, -2)


@pytest.mark.parametrize("name", LAWS)
def test_force_and_stiffness_are_the_energys_derivatives(name):
    law, size = LAWS[name](), WIDTH.get(name, 6)
    if name == "pyramid with rolling":
        assert len(law.friction) == size - 1
    v = jnp.asarray(np.random.default_rng(3).normal(size=(N, size)))

    def unpack(v):
        return v if size == 1 else tuple(v[:, k : k + 1] for k in range(size))

    def force(v):
        f, _ = law.response(unpack(v))
        return f if size == 1 else jnp.concatenate(f, axis=1)

    values, pull = jax.vjp(lambda v: energy(law, unpack(v)), v)
    np.testing.assert_allclose(pull(jnp.ones_like(values))[0], -force(v), atol=1e-9)
    slopes = jnp.stack([jax.jvp(force, (v,), (jnp.ones((N, 1)) * e,))[1] for e in jnp.eye(size)], 1)
    stiffness = law.response(unpack(v))[1]
    stiffness = stiffness[:, :, None] if size == 1 else full(stiffness)
    np.testing.assert_allclose(stiffness, -slopes, atol=1e-9)
    # Some of them act, and some do not.
    assert 0.1 < np.mean(np.abs(stiffness).max((1, 2)) > 0) < (1.01 if name == "separate" else 0.99)


@pytest.mark.parametrize("name", LAWS)
def test_power_and_curvature_along_a_line_are_the_energys_derivatives(name):
    law, rng = LAWS[name](), np.random.default_rng(4)
    size = WIDTH.get(name, 6)
    columns = [jnp.asarray(rng.normal(size=(N, 1))) for _ in range(2 * size)]
    v, change = (c[0] if size == 1 else tuple(c) for c in (columns[:size], columns[size:]))

    def slope(far):
        there = lambda far: energy(law, jax.tree.map(lambda x, d: x + d * far, v, change))  # noqa: E731
        return jax.jvp(there, (far,), (jnp.ones_like(far),))[1]

    far = jnp.full((N, 1), 0.3)
    first, second = jax.jvp(slope, (far,), (jnp.ones_like(far),))
    power, curvature = law.along(v, change, far)
    np.testing.assert_allclose(power, -first, atol=1e-9)
    np.testing.assert_allclose(curvature, second, atol=1e-9)


SOFTNESS = (
    ".9 .95 .001 .5 2",
    ".2 .9 .03 .3 3",
    ".2 .9 .03 .8 1",
    ".99 1 0",  # no transition: dm_control's rodent has such limits
    "0 .5 0 .2 4",
)


def test_impedance_is_mujocos():
    hinges = "".join(
        f'<body><joint range=".02 1" limited="true" solimplimit="{numbers}"/>'
        '<geom size=".1" contype="0"/></body>'
        for numbers in SOFTNESS
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian"/><worldbody>{hinges}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    for angle in (0.019, 0.01, 0.0, -0.1):
        data.qpos[:] = angle
        mujoco.mj_forward(model, data)
        solimp = tuple(jnp.asarray(model.jnt_solimp.T))
        found = impedance(solimp, jnp.asarray(data.efc_pos))
        np.testing.assert_allclose(found, data.efc_KBIP[:, 2], rtol=1e-12)


def test_friction_of_each_tangent_is_mujocos():
    """Force and stiffness of a contact whose second tangent is rougher, in all three zones."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option cone="elliptic" impratio="3"/><worldbody>
        <geom name="floor" type="plane" size="1 1 1"/>
        <body pos="0 0 .09"><freejoint/><geom name="ball" size=".1"/></body></worldbody>
        <contact><pair geom1="floor" geom2="ball" condim="4" friction=".3 .8 .05 0 0"/></contact>
        </mujoco>"""
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    v = np.random.default_rng(0).normal(size=(60, 4)) * [0.5, 1, 1, 5]
    v[:20, 1:] *= 0.01
    forces, zones = [], set()
    for x in v:
        mujoco.mj_constraintUpdate(model, data, x, None, 0)
        forces.append(data.efc_force.copy())
        zones |= set(data.efc_state.tolist())
    assert len(zones) == 3
    stiff, mu = data.efc_D[:2, None, None], 0.3
    law = EllipticCone(
        jnp.asarray(stiff[0]),
        jnp.asarray(stiff[1]),
        jnp.full((1, 1), mu),
        jnp.asarray(data.contact.mu[:, None]),
        (jnp.full((1, 1), 0.05 / mu),),
        jnp.full((1, 1), 0.8 / mu),
    )
    found, _ = law.response(tuple(jnp.asarray(v[:, k : k + 1]) for k in range(4)))
    np.testing.assert_allclose(np.concatenate(found, axis=1), forces, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("solref", [(np.nan, 1.0), (0.02, np.nan), (np.nan, -1.0), (-9.0, np.nan)])
def test_a_solref_that_is_not_a_number_is_not_replaced_by_the_default(solref):
    given = tuple(map(jnp.asarray, solref))
    assert not are_mixed(*given)
    stiffness, damping = reference_parameters(given, jnp.asarray(0.95), jnp.asarray(0.002))
    assert not np.isfinite([stiffness, damping]).all()
