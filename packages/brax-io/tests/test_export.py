"""Exported policies give the actions that JAX gives."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.errors import ConfigError
from brax.io import export
from brax.io.export.graph import ELEMENTWISE

WIDTH = 4
KEY = jax.random.key(0)


def drawn(shape, seed=0, scale=1.0):
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def onnx_function(policy, size, *outputs):
    """Return the exported policy as a function that runs onnxruntime; `action` is the output."""
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    content = export.to_onnx(policy, size).SerializeToString()
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])

    def act(**inputs):
        found = session.run(outputs or ["action"], inputs)
        return found if outputs else found[0]

    return act


def operation(name):
    """Return a policy made of one elementwise operation, and observations in its domain."""
    low = drawn((64, WIDTH), scale=2.0)
    if name in ("log", "log1p", "rsqrt", "sqrt"):
        low = np.abs(low) + 0.1
    other = jnp.array([0.5, -0.3, 2.0, low[0, 3]])
    one, two = (lambda x: getattr(jax.lax, f"{name}_p").bind(x)), getattr(jax.lax, f"{name}_p").bind
    if name == "not":
        return (lambda x, _: (jnp.where(one(x > 0), x, 2.0), {})), low
    if name in ("and", "or"):
        return (lambda x, _: (jnp.where(two(x > 0, x < other), x, 2.0), {})), low
    if name in ("eq", "ge", "gt", "le", "lt", "ne"):
        return (lambda x, _: (jnp.where(two(x, other), x, 2.0), {})), low
    if name == "pow":
        return (lambda x, _: (two(jnp.abs(x), other), {})), low
    if name in ("add", "div", "max", "min", "mul", "sub"):
        return (lambda x, _: (two(x, other), {})), low
    return (lambda x, _: (getattr(jax.lax, name)(x), {})), low


@pytest.mark.parametrize("name", sorted(ELEMENTWISE))
def test_each_operation_has_its_meaning_in_both_forms(name):
    policy, observations = operation(name)
    expected = jax.vmap(policy, (0, None))(observations, KEY)[0]
    act = export.to_numpy(policy, WIDTH)
    np.testing.assert_allclose(act(observations), expected, rtol=2e-6, atol=1e-6)
    act = onnx_function(policy, WIDTH)
    np.testing.assert_allclose(act(observation=observations), expected, rtol=2e-6, atol=1e-6)


def shuffled(obs, _):
    """Every operation that moves numbers, of two observations; a third is not read."""
    grid = obs["the/grid"]
    spread = jnp.broadcast_to(obs["state"][:, None], (WIDTH, 3)).T
    top = jnp.concatenate([grid, spread * 2], axis=1)[1:, 2:7]
    mean = jnp.mean(top, axis=1, keepdims=True)
    squeezed = (top - mean).reshape(2, 5) @ drawn((5, 3))
    parts = jnp.split(squeezed, [1], axis=1)
    best = jnp.max(parts[1], axis=(0, 1)) - jnp.min(parts[1])
    whole = (parts[0].squeeze(1) > 0).astype(jnp.float32)
    return jnp.concatenate([whole * best, jnp.tanh(parts[0][:, 0]) ** 3]), {}


def test_shapes_and_dictionaries():
    size = {"the/grid": (3, 5), "state": WIDTH, "unused": (7,)}
    obs = {"the/grid": drawn((6, 3, 5)), "state": drawn((6, WIDTH), 1), "unused": drawn((6, 7))}
    expected = jax.vmap(shuffled, (0, None))(obs, KEY)[0]
    act = export.to_numpy(shuffled, size)
    np.testing.assert_allclose(act(obs), expected, atol=1e-5)
    one = {key: values[0] for key, values in obs.items()}
    np.testing.assert_allclose(act(one), expected[0], atol=1e-5)
    del obs["unused"]
    many = {key: values.reshape(2, 3, *values.shape[1:]) for key, values in obs.items()}
    assert act(many).shape == (2, 3, 4)
    act = onnx_function(shuffled, size)
    inputs = {f"observation_{key}": values for key, values in obs.items()}
    np.testing.assert_allclose(act(**inputs), expected, atol=1e-5)


def linear(obs, _):
    return obs @ drawn((WIDTH, 2)), {}


def test_the_module_needs_numpy_alone(tmp_path):
    export.save(tmp_path / "policy.py", linear, WIDTH)
    program = """
import sys
from policy import policy
print(*policy([1, 2, 3, 4]).tolist(), "jax" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    expected = np.array([1, 2, 3, 4], np.float32) @ drawn((WIDTH, 2))
    *got, has_jax = done.stdout.split()
    np.testing.assert_allclose([float(x) for x in got], expected, rtol=1e-6)
    assert has_jax == "False", done.stderr


def agents():
    """Return the agents of brax-agents, and activations for one of them."""
    from brax import plugins

    names = [n for n in plugins.names("trainer") if n != "random_search"]
    return (
        [(name, {}) for name in names]
        + [
            ("ppo", {"activation": a})
            for a in ("gelu", "leaky_relu", "celu", "softplus", "sigmoid")
        ]
        + [
            ("ppo", {"distribution_type": "normal", "state_dependent_std": s})
            for s in (False, True)
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "settings"), agents(), ids=str)
def test_the_policy_of_every_agent_with_its_normalizer(name, settings):
    """Parameters are drawn, so that no layer is zero; observations are ten deviations wide."""
    policies = pytest.importorskip("brax.training.policies")
    from brax import plugins
    from brax.training.acme import running_statistics

    agent = plugins.get("trainer", name)
    networks = agent.make_networks(
        27, 8, preprocess_observations_fn=policies.preprocessor(True), **settings
    )
    start = running_statistics.init_state(jnp.zeros(27))
    seen = jnp.asarray(drawn((256, 27)) * np.linspace(0.1, 5, 27) + np.linspace(-3, 3, 27))
    normalizer = running_statistics.update(start, seen)
    leaves, tree = jax.tree.flatten(networks.policy_network.init(KEY))
    params = [drawn(leaf.shape, i, len(leaf) ** -0.5) for i, leaf in enumerate(leaves)]
    make_policy = agent.make_inference_fn(networks)
    policy = make_policy((normalizer, jax.tree.unflatten(tree, params)), deterministic=True)
    observations = np.asarray(normalizer.mean + 3 * normalizer.std * drawn((100, 27), 1))
    expected, _ = jax.jit(policy)(observations, KEY)
    assert np.std(expected) > 0.1
    act = export.to_numpy(policy, 27)
    np.testing.assert_allclose(act(observations), expected, atol=1e-5)
    act = onnx_function(policy, 27)
    np.testing.assert_allclose(act(observation=observations), expected, atol=1e-5)


@pytest.mark.parametrize("kind", [pytest.param("gru", marks=pytest.mark.slow), "lstm"])
def test_a_policy_with_memory_takes_and_returns_it(kind, tmp_path):
    """Three steps of an episode, each with the memory that the last one returned."""
    ppo = pytest.importorskip("brax.training.agents.ppo.networks")
    from brax import plugins

    networks = ppo.make_ppo_networks(
        WIDTH, 2, policy_hidden_layer_sizes=(8,), memory=kind, memory_size=5
    )
    params = networks.policy_network.init(KEY)
    policy = plugins.get("trainer", "ppo").make_inference_fn(networks)(((), params), True)
    size = {"gru": 5, "lstm": 10}[kind]
    act, run = export.to_numpy(policy, WIDTH), onnx_function(policy, WIDTH, "action", "next_memory")
    export.save(tmp_path / "policy.py", policy, WIDTH)
    assert "def policy(observation, memory):" in (tmp_path / "policy.py").read_text()
    expected = found = ran = np.zeros((6, size), np.float32)
    for step in range(3):
        seen = drawn((6, WIDTH), step)
        action, extras = policy(seen, KEY, expected)
        expected = np.asarray(extras["memory"])
        one, found = act(seen, found)
        two, ran = run(observation=seen, memory=ran)
        for other, memory in ((one, found), (two, ran)):
            np.testing.assert_allclose(other, action, atol=1e-5)
            np.testing.assert_allclose(memory, expected, atol=1e-5)
    single, memory = act(seen[0], np.zeros(size))
    assert single.shape == (2,) and memory.shape == (size,)


def noisy(obs, key):
    return obs + jax.random.normal(key, obs.shape), {}


def sorted_policy(obs, _):
    return jnp.sort(obs), {}


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (noisy, "samples its actions: export the deterministic one"),
        (sorted_policy, "an operation that is not supported: sort"),
        (lambda obs, _: (obs[0], {}), "not a vector that depends"),
        (lambda obs, _: (jnp.ones(2), {}), "not a vector that depends"),
        (lambda obs, _: (jnp.outer(obs, obs) @ obs, {}), "not supported: dot_general of this kind"),
        (lambda obs, _: (jnp.concatenate([obs, jnp.ones(1)]), {}), "concatenate with a constant"),
    ],
)
def test_what_cannot_be_exported_is_refused(policy, said):
    with pytest.raises(ConfigError, match=said):
        export.to_numpy(policy, WIDTH)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tanh_normal", "normal"])
def test_a_policy_that_reads_images_is_refused_as_such(kind):
    vision = pytest.importorskip("brax.training.agents.ppo.networks_vision")
    size = {"pixels/view": (8, 8, 1)}
    networks = vision.make_ppo_networks_vision(size, 2, distribution_type=kind)
    params = (), networks.policy_network.init(KEY)
    policy = vision.make_inference_fn(networks)(params, deterministic=True)
    with pytest.raises(ConfigError, match=r"a policy that reads images, .* cannot be exported"):
        export.to_numpy(policy, size)


def test_names_of_observations_may_begin_with_an_underscore():
    """The action is x + 10 _x + 100 __y, each of one number."""
    sizes = {"x": 1, "_x": 1, "__y": 1}
    policy = export.to_numpy(
        lambda obs, _: (obs["x"] + 10 * obs["_x"] + 100 * obs["__y"], {}), sizes
    )
    values = {"x": np.ones(1), "_x": np.full(1, 2.0), "__y": np.full(1, 3.0)}
    np.testing.assert_array_equal(policy(values), [321])


def test_a_module_needs_no_name_that_some_versions_of_numpy_lack(monkeypatch):
    """NumPy 1.24 to 1.26 have no np.bool."""

    def policy(obs, _):
        return jnp.where(jax.lax.convert_element_type(obs, bool), obs, 7.0), {}

    found = export.to_numpy(policy, 3)
    with monkeypatch.context() as older:
        older.delattr(np, "bool")
        action = found(np.array([2.0, 0.0, -1.0]))
    np.testing.assert_array_equal(action, [2, 7, -1])


def test_other_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match=r"written to \.py or \.onnx\. Did you mean '\.onnx'"):
        export.save(tmp_path / "policy.onn", linear, WIDTH)
    with pytest.raises(ConfigError, match="cannot write"):
        export.save(tmp_path / "missing" / "policy.py", linear, WIDTH)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ConfigError, match=r"pip install 'brax-io\[onnx\]'"):
        export.save(tmp_path / "policy.onnx", linear, WIDTH)
