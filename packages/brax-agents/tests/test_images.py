"""Networks that read images, shifts of images, and what is refused of them."""

import functools
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import SMALL, Dot, Point
from flax import linen

from brax.errors import ConfigError
from brax.training import policies
from brax.training.agents.ppo import PPO
from brax.training.agents.ppo import learner as ppo_learner
from brax.training.agents.ppo import train as ppo
from brax.training.agents.ppo.losses import Batch
from brax.training.agents.ppo.networks import make_ppo_networks
from brax.training.agents.ppo.networks_vision import make_ppo_networks_vision
from brax.training.agents.sac import train as sac
from brax.training.checkpoints import checkpoint
from brax.training.checkpoints import policies as saved_policies
from brax.training.distributed import devices
from brax.training.learner import Learned
from brax.training.learning.vectors import Vectors
from brax.training.nn import images

KEY = jax.random.key(0)
TINY: dict[str, Any] = {
    "policy_hidden_layer_sizes": (4,),
    "value_hidden_layer_sizes": (4,),
    "cnn_output_channels": (3, 5),
    "cnn_kernel_size": (4, 3),
    "cnn_stride": (2, 1),
}
VISION: dict[str, Any] = {**SMALL, "vision": True, "network_factory": TINY, "run_evals": False}


def drawn(shape, seed=0):
    return np.random.default_rng(seed).uniform(0, 1, shape).astype(np.float32)


def cnn(kernel, stride, bias=0.0, padding="zeros", max_pool=False, global_pool="avg"):
    """Return a CNN of one convolution of one channel, and its parameters."""
    kernel = jnp.asarray(kernel, jnp.float32)[..., None, None]
    init = jax.nn.initializers.zeros
    layer = (1,), kernel.shape[:1], (stride,), linen.relu, init
    module = images.CNN(*layer, padding, max_pool, global_pool)
    return module, {"params": {"conv_0": {"kernel": kernel, "bias": jnp.array([bias])}}}


def test_a_convolution_by_hand():
    """Its four windows give 34, 54, 114 and 134; less 60, the negative ones cut, 0, 0, 54, 74."""
    module, params = cnn([[1, 2], [3, 4]], 2, bias=-60.0)
    image = jnp.arange(16.0).reshape(4, 4, 1)
    np.testing.assert_allclose(module.apply(params, image), [32.0], rtol=1e-6)


def test_the_edge_is_continued_by_zeros():
    """Nine ones under a kernel of ones: 4 at the corners, 6 at the edges, 9 in the middle."""
    module, params = cnn(np.ones((3, 3)), 1)
    np.testing.assert_allclose(module.apply(params, jnp.ones((3, 3, 1))), [49 / 9], rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"padding": "valid"}, [16, 20, 28, 32]),
        ({"padding": "valid", "max_pool": True}, [32]),
        ({}, [16, 20, 11, 28, 32, 17, 17, 19, 10]),
        ({"max_pool": True}, [32, 17, 19, 10]),
    ],
)
def test_padding_and_pools_by_hand(settings, expected):
    """A kernel of ones sums 2 x 2 numbers of 2 to 10; max-pooling rounds 3 rows up to 2."""
    image = jnp.arange(2.0, 11.0).reshape(3, 3, 1)
    for pool, features in (("none", expected), ("max", [max(expected)]), ("avg", None)):
        module, params = cnn(np.ones((2, 2)), 1, **settings, global_pool=pool)
        features = [np.mean(expected)] if features is None else features
        np.testing.assert_allclose(module.apply(params, image), features, rtol=1e-6)


def test_the_least_image_of_unpadded_layers_leaves_one_pixel():
    """Kernels 3 and 5 with strides 2 and 1: 5 rows for the second, (5 - 1) 2 + 3 = 11 before."""
    layers: dict[str, Any] = {
        **TINY,
        "cnn_kernel_size": (3, 5),
        "cnn_padding": "valid",
        "cnn_global_pool": "none",
    }
    made = make_ppo_networks_vision({"pixels/a": (11, 12, 1)}, 1, **layers).policy_network
    weights = jax.eval_shape(made.init, KEY)["params"]["head"]["hidden_0"]["kernel"]
    assert weights.shape == (5, 4)
    with pytest.raises(ConfigError, match="is 10 x 12 pixels; what the kernels cover, 11, must no"):
        make_ppo_networks_vision({"pixels/a": (10, 12, 1)}, 1, **layers)
    # With pooling: 9 of the second layer's input need 17 before, (17 - 1) 2 + 3 = 35.
    pooled: dict[str, Any] = {**layers, "cnn_kernel_size": (3, 9), "cnn_max_pool": True}
    with pytest.raises(ConfigError, match="is 34 x 35 pixels; what the kernels cover, 35"):
        make_ppo_networks_vision({"pixels/a": (34, 35, 1)}, 1, **pooled)
    made = make_ppo_networks_vision({"pixels/a": (35, 35, 1)}, 1, **pooled).policy_network
    assert jax.eval_shape(made.init, KEY)["params"]["head"]["hidden_0"]["kernel"].shape == (5, 4)


def test_the_output_layer_has_an_initializer_of_its_own():
    settings: dict[str, Any] = {**TINY, "output_kernel_init_fn": "zeros"}
    made = make_ppo_networks_vision({"pixels/a": (8, 8, 1)}, 1, **settings).policy_network
    head = made.init(KEY)["params"]["head"]
    assert not head["hidden_1"]["kernel"].any() and head["hidden_0"]["kernel"].any()


def test_images_and_vectors_become_features():
    """Channels are scaled by themselves; features come in the order of the names."""
    encoders: Any = lambda name: lambda image: image.reshape(-1)  # noqa: E731
    flat: Any = images.Views(encoders, normalise_channels=True)
    image = np.zeros((2, 2, 2), np.float32)
    image[1, :, 0], image[..., 1] = 1.0, 0.3
    seen = {"state": jnp.array([7.0, 8.0]), "pixels/b": image, "pixels/a": 3.0 - 2.0 * image}
    got = flat.apply({}, seen)
    one = np.array([-1, 0, -1, 0, 1, 0, 1, 0])
    np.testing.assert_allclose(got, [*-one, *one, 7, 8], atol=1e-4)


SIZE = {"pixels/left": (8, 8, 3), "pixels/right": (9, 12, 1), "state": (5,), "goal": (2,)}


def seen(*batch):
    return {name: drawn((*batch, *shape), i) for i, (name, shape) in enumerate(SIZE.items())}


@pytest.mark.parametrize("kind", [pytest.param("tanh_normal", marks=pytest.mark.slow), "normal"])
def test_shapes(kind):
    """A CNN for each view, whatever the batch; the vectors come in behind them."""
    made = make_ppo_networks_vision(SIZE, 2, policy_obs_key="state", distribution_type=kind, **TINY)
    policy, value = made.policy_network.init(KEY), made.value_network.init(KEY)
    eyes = policy["params"]["encoder"]
    assert eyes["view_0"]["conv_0"]["kernel"].shape == (4, 4, 3, 3)
    assert eyes["view_1"]["conv_0"]["kernel"].shape == (4, 4, 1, 3)
    assert eyes["view_1"]["conv_1"]["kernel"].shape == (3, 3, 3, 5)
    head = policy["params"]["head"]
    assert head.get("trunk", head)["hidden_0"]["kernel"].shape == (5 + 5 + 5, 4)
    assert value["params"]["head"]["hidden_0"]["kernel"].shape == (5 + 5, 4)
    for batch in [(), (3,), (2, 3)]:
        assert made.policy_network.apply((), policy, seen(*batch)).shape == (*batch, 4)
        assert made.value_network.apply((), value, seen(*batch)).shape == batch


def test_every_image_and_the_named_vector_count_and_no_other():
    made = make_ppo_networks_vision(SIZE, 2, policy_obs_key="state", **TINY).policy_network
    params, obs = made.init(KEY), seen()
    first = made.apply((), params, obs)
    for name in SIZE:
        other = made.apply((), params, {**obs, name: obs[name] * 0.5})
        assert np.array_equal(first, other) == (name == "goal")


def test_bytes_are_colours_up_to_255():
    made = make_ppo_networks_vision({"pixels/view": (8, 8, 1)}, 1, **TINY).policy_network
    params = made.init(KEY)
    colours = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 1), np.uint8)
    got = made.apply((), params, {"pixels/view": colours})
    want = made.apply((), params, {"pixels/view": colours.astype(np.float32) / 255})
    np.testing.assert_allclose(got, want, rtol=1e-5)  # 2e-6, by rounding
    with pytest.raises(ConfigError, match=r"'pixels/view' is int32; images are floats in \[0, 1\]"):
        made.apply((), params, {"pixels/view": colours.astype(np.int32)})


def test_quantiles_of_what_is_seen():
    made = make_ppo_networks_vision(
        SIZE, 2, use_distributional_critic=True, num_quantiles=6, **TINY
    )
    params = made.value_network.init(KEY)
    assert made.value_quantiles
    quantiles = made.value_quantiles((), params, seen(3))
    assert quantiles.shape == (3, 6)
    np.testing.assert_allclose(made.value_network.apply((), params, seen(3)), quantiles.mean(-1))


def padded_and_cropped(image, by):
    """Kostrikov, Yarats, Fergus 2020, in NumPy."""
    pad = np.pad(image, [(4, 4), (4, 4), (0, 0)], mode="edge")
    return pad[4 + by[0] :, 4 + by[1] :][: image.shape[0], : image.shape[1]]


def test_every_shift_pads_by_the_edge_and_crops():
    image = drawn((6, 9, 2))
    shifts = np.stack(np.meshgrid(range(-4, 5), range(-4, 5)), -1).reshape(-1, 2)
    got = jax.vmap(images.shifted, (None, 0))(jnp.asarray(image), jnp.asarray(shifts))
    for found, by in zip(got, shifts, strict=True):
        np.testing.assert_array_equal(found, padded_and_cropped(image, by))


@pytest.mark.slow
def test_each_sample_is_shifted_by_its_own_draw_and_all_of_its_images_alike():
    left, right, state = drawn((8, 8, 1)), drawn((10, 9, 1), 1), drawn((20, 30, 3))
    obs = {
        "pixels/left": jnp.broadcast_to(left, (20, 30, 8, 8, 1)),
        "pixels/right": jnp.broadcast_to(right, (20, 30, 10, 9, 1)),
        "state": state,
    }
    got = images.randomly_shifted(obs, KEY)
    assert got["state"] is state
    shifts = [(i, j) for i in range(-4, 5) for j in range(-4, 5)]
    wanted = [padded_and_cropped(left, by) for by in shifts]
    found = np.asarray(got["pixels/left"]).reshape(600, 8, 8, 1)
    (drawn_shifts,) = np.nonzero([[np.array_equal(f, w) for w in wanted] for f in found])[1:]
    assert len(drawn_shifts) == 600  # each is one of the 81 of the padded image
    counts = np.bincount(drawn_shifts, minlength=81)
    assert counts.min() > 0 and counts.max() < 25  # 7.4 each if evenly drawn
    others = np.asarray(got["pixels/right"]).reshape(600, 10, 9, 1)
    for image, number in zip(others, drawn_shifts, strict=True):
        np.testing.assert_array_equal(image, padded_and_cropped(right, shifts[number]))


@pytest.mark.slow
def test_a_batch_is_shifted_in_its_images_alone():
    image, state = drawn((5, 4, 8, 8, 1)), drawn((5, 4, 2))
    numbers: dict[str, Any] = {name: name for name in Batch._fields}
    obs = {"pixels/view": image, "state": state}
    numbers |= {"observation": obs}
    got = ppo_learner._shifted(Batch(**numbers), KEY)
    for name in set(Batch._fields) - {"observation"}:
        assert getattr(got, name) == name
    assert not np.array_equal(got.observation["pixels/view"], image)
    np.testing.assert_array_equal(got.observation["state"], state)


def learner_of(environment, **settings):
    """PPO's learner by itself, not compiled."""
    config, runtime = PPO.check({**VISION, **settings})
    return PPO.build(environment, config, runtime, devices.env_mesh(config.num_envs, 1), KEY)[0]


@pytest.mark.slow
def test_no_key_of_an_update_is_used_twice():
    learner = learner_of(Dot(), augment_pixels=True, normalize_observations=False)
    made, many = learner.networks, jnp.zeros((2, 3))
    both = (
        made.policy_network.init(jax.random.key(1)),
        made.value_network.init(jax.random.key(2)),
    )
    weights = Vectors(both)
    moments = weights.flatten(learner._optimizer.init(both))
    learned = Learned(weights.first, moments, jnp.int32(0))
    obs = {"pixels/view": jnp.zeros((2, 3, 8, 8, 1))}
    last = {"pixels/view": jnp.zeros((2, 8, 8, 1))}
    batch = Batch(obs, many[..., None], many, many, many, many, many, None, last, jnp.zeros(2))
    with jax.debug_key_reuse(True):
        update = jax.jit(learner._update, static_argnums=1)
        _, (_, finite) = update(learned, weights, (), batch, jax.random.key(3))
    assert finite


def test_statistics_are_kept_of_vectors_alone():
    learner = learner_of(Dot())
    obs = {"pixels/view": drawn((7, 8, 8, 1)), "state": drawn((7, 2), 1)}
    normalizer = learner.normalizer_after(learner.first_normalizer(), obs)
    assert {leaf.shape for leaf in jax.tree.leaves(normalizer)} == {(2,), ()}
    got = policies.preprocessor(True)(obs, normalizer)
    assert got["pixels/view"] is obs["pixels/view"]
    want = (obs["state"] - obs["state"].mean(0)) / obs["state"].std(0)
    np.testing.assert_allclose(got["state"], want, rtol=1e-4, atol=1e-4)


class Blind(Dot):
    """Shows the dot, and nothing in numbers."""

    def _shown(self, state, key):
        state = super()._shown(state, key)
        return state.replace(obs={"pixels/view": state.obs["pixels/view"]})


def test_nothing_is_kept_where_there_are_images_alone():
    learner = learner_of(Blind())
    obs = {"pixels/view": drawn((7, 8, 8, 1))}
    assert learner.first_normalizer() == () == learner.normalizer_after((), obs)
    assert policies.preprocessor(True)(obs, ()) == obs


class Shown(Point):
    """Says whatever it is told to say."""

    def __init__(self, **obs):
        self.obs = {name.replace("__", "/"): jnp.zeros(shape) for name, shape in obs.items()}

    def reset(self, rng):
        return super().reset(rng).replace(obs=self.obs)

    def step(self, state, action):
        return super().step(state, action).replace(obs=self.obs)


class Picture(Point):
    """Its observation is one image."""

    def reset(self, rng):
        return super().reset(rng).replace(obs=jnp.zeros((8, 8, 3)))


DEFAULT: dict[str, Any] = {**VISION, "network_factory": None}
DENSE: dict[str, Any] = {**SMALL, "run_evals": False}


@pytest.mark.parametrize(
    ("environment", "settings", "message"),
    [
        (Point(), VISION, "no image: .* begins with 'pixels/'. It has: one array. .*vision=False"),
        (Point(), {**VISION, "network_factory": make_ppo_networks}, "has no image"),
        (Shown(state=(3,), pixel=(8, 8, 1)), VISION, "no image: .* It has: pixel, state"),
        (
            Shown(pixels__a=(8, 7, 3), pixels__b=(8, 8, 3), pixels__c=(8, 8)),
            DEFAULT,
            r"^the image 'pixels/a' is 8 x 7 pixels; the product of cnn_stride, 8, .* larger "
            r"images\. the image 'pixels/c' has the shape \(8, 8\); it must be \(height, width, c",
        ),
        (
            Dot(),
            {**VISION, "network_factory": {**TINY, "cnn_stride": (2, 1, 1)}},
            r"cnn_kernel_size=\(4, 3\) and cnn_stride=\(2, 1, 1\) must be of the same length",
        ),
        (
            Dot(),
            {**VISION, "network_factory": {**TINY, "cnn_padding": "zeroes"}},
            "unknown cnn_padding 'zeroes'. Allowed: zeros, valid.*'zeros'",
        ),
        (
            Dot(),
            {**VISION, "network_factory": {**TINY, "cnn_global_pool": "mean"}},
            "unknown cnn_global_pool 'mean'. Allowed: avg, max, none",
        ),
        (
            Dot(),
            {**VISION, "network_factory": {**TINY, "policy_obs_key": "sate"}},
            "no observation 'sate'.*Did you mean 'state'",
        ),
        (
            Dot(),
            {**VISION, "network_factory": {**TINY, "value_obs_key": "pixels/view"}},
            r"'pixels/view' has the shape \(8, 8, 1\); dense networks read vectors",
        ),
        (
            Dot(),
            {**VISION, "network_factory": {**TINY, "cnn_activation": "rellu"}},
            "unknown activation 'rellu'.*'relu'",
        ),
        (Blind(), DENSE, "no observation 'state'. It has: pixels/view. .* set vision=True"),
        (
            Dot(),
            {**DENSE, "network_factory": {"policy_obs_key": "pixels/view"}},
            r"'pixels/view' has the shape \(8, 8, 1\); .* to learn from images, set vision=True",
        ),
        (Picture(), DENSE, r"one array of the shape \(8, 8, 3\); .* such as 'pixels/view'"),
        (Picture(), VISION, r"one array of the shape \(8, 8, 3\); .* such as 'pixels/view'"),
        (Dot(), {**DENSE, "augment_pixels": True}, "augment_pixels=True .* set vision=True"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_refused(environment, settings, message):
    with pytest.raises(ConfigError, match=message):
        ppo.train(environment, 1000, **settings)


def test_an_agent_without_eyes_says_which_has_them():
    with pytest.raises(ConfigError, match="set vision=True, which PPO and BC have"):
        sac.train(Blind(), num_timesteps=100, min_replay_size=10)


def test_where_there_is_a_vector_too_dense_networks_read_it():
    """An environment with both can be learned from either: nothing is guessed."""
    made = learner_of(Dot(), vision=False, network_factory={"policy_hidden_layer_sizes": [4]})
    params = made.networks.policy_network.init(KEY)
    assert params["params"]["hidden_0"]["kernel"].shape == (2, 4)


def test_a_factory_is_described_and_found_again():
    factory: Any = functools.partial(make_ppo_networks_vision, **TINY, normalise_channels=True)
    config, runtime = PPO.check({**VISION, "network_factory": factory})
    mesh = devices.env_mesh(config.num_envs, 1)
    record = PPO.build(Dot(), config, runtime, mesh, KEY)[2]
    assert record["network"]["factory"] == "make_ppo_networks_vision"
    assert record["network"]["cnn_activation"] == "relu"
    assert record["network"]["cnn_stride"] == [2, 1]
    assert record["network"]["normalise_channels"] is True
    read = json.loads(json.dumps(record))
    found = checkpoint.Checkpoint(Path(), 0, {}, read)
    again = saved_policies.recorded_factory(PPO._own_factories, found)(read["observation_size"], 1)
    first = factory(Dot().observation_size, 1)
    one, other = (jax.eval_shape(made.policy_network.init, KEY) for made in (again, first))
    assert jax.tree.map(lambda x: x.shape, one) == jax.tree.map(lambda x: x.shape, other)
