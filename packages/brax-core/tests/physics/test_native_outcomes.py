"""Reports of what became of kernels: in warnings, in `brax bench` and in `brax plugins doctor`."""

import inspect
import types
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import cli, plugins
from brax.cli.kernels import PHYSICS, described, of_object, of_plugins
from brax.components import exp_quat
from brax.joints import JointType, Twist
from brax.kernels.batch_last import batch_last
from brax.kernels.codegen.explain import Outcome, collected
from brax.plugins import Spec, hookimpl

pytestmark = pytest.mark.usefixtures("code_generator")


def spectrum(x):
    """Eigenvalues, which are not translated, for each environment."""
    return jnp.linalg.eigvalsh(jnp.moveaxis(x[:, None] * x[None], -1, 0))


def stretched(x):
    """Call the function."""
    return jnp.moveaxis(spectrum(x), 0, -1) + x


def line_of(function):
    """Return the line of a function's last statement."""
    lines, first = inspect.getsourcelines(function)
    return first + len(lines) - 1


EIGH = Outcome(
    "stretched",
    "the operation 'eigh', which has no lowering rule",
    f"{__name__}:{line_of(spectrum)}, in spectrum",
)


def test_a_warning_names_the_operation_and_its_line_once():
    run = jax.jit(jax.vmap(batch_last(stretched)))
    with warnings.catch_warnings(record=True) as caught, collected() as outcomes:
        warnings.simplefilter("always")
        for size in (3, 4, 65):
            run(jnp.ones((size, 3)))
    assert outcomes == [EIGH]
    (said,) = [str(w.message) for w in caught if "XLA compiles" in str(w.message)]
    assert said.startswith(
        "XLA compiles the kernel stretched, because the code generator does not translate "
        f"the operation 'eigh', which has no lowering rule ({EIGH.where}). "
    )
    assert said.endswith("docs/code-generator.md says how to add a rule.")


@pytest.mark.filterwarnings("ignore:XLA compiles the kernel")
def test_the_line_is_the_users_where_jax_has_traced_a_function_before():
    """`jnp.linalg.eigvalsh` is traced once, with the lines of its first use."""

    def other(x):
        return jnp.moveaxis(jnp.linalg.eigvalsh(jnp.moveaxis(x[:, None] * x, -1, 0)), 0, -1)

    with collected() as outcomes:
        for fun in (stretched, other):
            jax.jit(jax.vmap(batch_last(fun)))(jnp.ones((2, 3)))
    assert [o.where.split(".")[-1].split(" ")[-1] for o in outcomes] == ["spectrum", "other"]


def test_native_kernels_and_their_derivatives_are_collected_with_their_names():
    def wave(x):
        return jnp.sin(x)

    with collected() as outcomes:
        jax.jit(jax.vmap(jax.grad(lambda x: batch_last(wave)(x).sum())))(jnp.ones((5, 3)))
    assert [(o.kernel, o.native) for o in outcomes] == [
        ("the transpose of the derivative of wave", True)
    ]


def test_a_kernel_has_what_the_kernels_within_it_need():
    """`top_k` has a rule for arrays in memory only, so that neither kernel may be unrolled."""

    def largest(x):
        return jnp.moveaxis(jax.lax.top_k(jnp.moveaxis(x, 0, -1), 2)[0], -1, 0)

    def around(x):
        return jax.vmap(batch_last(largest), in_axes=-1, out_axes=-1)(x) + 1

    def looped(x):
        return jax.lax.scan(lambda c, _: (around(c), None), around(x), None, length=3)[0]

    rows = jax.random.normal(jax.random.key(0), (70, 5))
    with collected() as outcomes:
        found = [jax.jit(jax.vmap(batch_last(f)))(rows) for f in (around, looped)]
    assert [str(o) for o in outcomes if not o.native] == []
    top = np.sort(rows, axis=1)[:, :-3:-1]
    np.testing.assert_array_equal(found[0], top + np.float32(1))
    expected = top
    for _ in range(4):
        expected = expected + np.float32(1)
    np.testing.assert_array_equal(found[1], expected)


class Wobble(JointType):
    """A hinge whose angle is found by eigenvalues."""

    name = "wobble"
    q_width = 1
    qd_width = 1

    def transform(self, params, q):
        """Return a rotation about the axis."""
        square = jnp.stack([q[0], 0 * q[0], 0 * q[0], q[0]], -1).reshape(*q[0].shape, 2, 2)
        return None, exp_quat(params.axis * jnp.linalg.eigvalsh(square)[..., 0])

    def motion_subspace(self, params, q):
        """Return the axis."""
        return [Twist(params.axis, None)]

    def coordinates(self, params, pos, rot):
        """Return the angle."""
        return (2 * jnp.arctan2(rot.vec.dot(params.axis), rot.w),)


@pytest.fixture
def acme():
    """Return a plugin with such a joint."""
    plugin: Any = types.ModuleType("acme")
    plugin.BRAX_PLUGIN_API = 1
    plugin.brax_joint_types = hookimpl(lambda: [Spec("wobble", Wobble())])
    plugins.register(plugin, "acme-joints")
    yield
    plugins.unregister("acme-joints")


def test_a_plugins_functions_are_translated_one_by_one(acme):
    found = of_plugins(plugins.specs("joint_type").values())
    assert list(found) == ["acme-joints"]
    assert len(found["acme-joints"]) == 8
    (left,) = [o for o in found["acme-joints"] if not o.native]
    assert (left.kernel, left.reason) == ("wobble.transform", EIGH.reason)
    assert left.where == f"{__name__}:{line_of(Wobble.transform)}, in Wobble.transform"


@pytest.mark.slow
def test_doctor_prints_what_became_of_them(acme, capsys):
    assert cli.main(["plugins", "doctor"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("acme-")]
    (left,) = [
        o for o in of_plugins(plugins.specs("joint_type").values())["acme-joints"] if o.reason
    ]
    assert lines == ["acme-joints: native kernels: 7 of 8", f"acme-joints: {left}"]


def test_a_description_has_a_line_for_each_kernel_that_is_not_native():
    assert list(described([])) == []
    assert list(described([Outcome("a")])) == ["native kernels: 1 of 1"]
    assert list(described([Outcome("a"), EIGH])) == ["native kernels: 1 of 2", str(EIGH)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", PHYSICS)
def test_our_own_joints_shapes_colliders_and_actuators_are_native(kind):
    ours = [r for r in plugins.specs(kind).values() if r.ours]
    assert [str(o) for r in ours for o in of_object(r) if not o.native] == []


def test_a_variable_leaves_every_kernel_to_xla(monkeypatch):
    """The results are XLA's, the outcome says why, and nothing warns."""

    def cubed(x):
        """Return cubes, a kernel that no other test has compiled."""
        return x * x * x

    monkeypatch.setenv("BRAX_NATIVE", "0")
    x = jnp.arange(6.0).reshape(2, 3)
    with collected() as found, warnings.catch_warnings():
        warnings.simplefilter("error")
        out = jax.jit(jax.vmap(batch_last(cubed)))(x)
    assert out.tolist() == (x**3).tolist()
    assert found == [Outcome("cubed", "anything while BRAX_NATIVE is 0")]
