"""Settings of networks that Google's agents have, against arithmetic, and names of its modules."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.errors import ConfigError
from brax.training import policies, types
from brax.training.acme import running_statistics, specs
from brax.training.acme import types as acme_types
from brax.training.agents.ars import networks as ars_networks
from brax.training.agents.bc import BC
from brax.training.agents.bc import networks as bc_networks
from brax.training.agents.bc.networks import make_bc_networks
from brax.training.agents.ppo.networks import make_ppo_networks
from brax.training.agents.sac.networks import make_sac_networks
from brax.training.replay_buffers import ReplayBuffer


@pytest.mark.parametrize("bound", [0.5, 2.0, 5.0])
def test_means_are_bounded_by_a_scaled_softsign(bound):
    """`c m / (1 + |m|)` of the means without the bound; the deviations stay as they are."""
    settings: dict[str, Any] = {"distribution_type": "normal", "policy_hidden_layer_sizes": (4,)}
    plain, bounded = (
        make_ppo_networks(3, 2, **settings, **more).policy_network
        for more in ({}, {"mean_clip_scale": bound})
    )
    weights = plain.init(jax.random.key(0))
    seen = 30.0 * jax.random.normal(jax.random.key(1), (50, 3))
    means, rest = np.split(np.asarray(plain.apply((), weights, seen), np.float64), 2, axis=-1)
    found, kept = np.split(np.asarray(bounded.apply((), weights, seen)), 2, axis=-1)
    np.testing.assert_allclose(found, bound * means / (1 + abs(means)), rtol=1e-5)
    np.testing.assert_array_equal(kept, rest)
    assert bound > abs(found).max() > 0.9 * bound


def test_sacs_networks_take_distributions_and_initializers():
    """A policy of deviation 0.3 whose means are zero, and critics that are zero."""
    made = make_sac_networks(
        3,
        2,
        hidden_layer_sizes=(4,),
        distribution_type="normal",
        noise_std_type="log",
        init_noise_std=0.3,
        policy_network_kernel_init_fn=jax.nn.initializers.constant,
        policy_network_kernel_init_kwargs={"value": 0.0},
        q_network_kernel_init_fn="zeros",
        policy_network_layer_norm=True,
    )
    actions, seen = made.parametric_action_distribution, jnp.ones((5, 3))
    policy = made.policy_network.init(jax.random.key(0))
    assert "norm_0" in policy["params"]["trunk"]
    loc, scale = actions.loc_scale(made.policy_network.apply((), policy, seen))
    np.testing.assert_array_equal(loc, 0.0)
    np.testing.assert_allclose(scale, 0.3, rtol=1e-6)
    np.testing.assert_array_equal(actions.postprocess(jnp.array([7.0])), [7.0])
    q = made.q_network.init(jax.random.key(0))
    np.testing.assert_array_equal(made.q_network.apply((), q, seen, jnp.ones((5, 2))), 0.0)


def test_a_students_actions_are_squashed_or_not():
    made = make_bc_networks(3, 2, policy_hidden_layer_sizes=())
    make_policy = bc_networks.make_inference_fn(made)
    params, seen = ((), made.policy_network.init(jax.random.key(0))), jnp.full(3, 5.0)
    layer = params[1]["params"]["hidden_0"]
    mean = (np.full(3, 5.0) @ layer["kernel"] + layer["bias"])[:2]
    for squash, expected in ((None, np.tanh(mean)), (True, np.tanh(mean)), (False, mean)):
        policy = make_policy(params, deterministic=True, tanh_squash=squash)
        action, _ = policy(seen, jax.random.key(0))
        np.testing.assert_allclose(action, expected, rtol=1e-5)
        policy = policies.with_normalizer(make_policy, types.PolicyParams(*params))(
            (params[1], {}), tanh_squash=squash, deterministic=True
        )
        np.testing.assert_allclose(policy(seen, jax.random.key(0))[0], expected, rtol=1e-5)
    assert BC.check({"teacher": "runs/a"})[0].network_settings == {}
    free, _ = BC.check({"teacher": "runs/a", "tanh_squash": False})
    assert free.network_settings == {"distribution_type": "normal"}
    with pytest.raises(ConfigError, match="reads vectors: use make_bc_networks_vision"):
        make_bc_networks(3, 2, vision=True)


def test_forks_of_trainers_find_these_names():
    """Names that annotations and first lines of programs use."""
    state = running_statistics.init_state(specs.Array((3,), jnp.dtype("float32")))
    assert state.mean.shape == (3,)

    def train(
        factory: types.NetworkFactory[bc_networks.BCNetworks],
        params: types.PolicyParams,
        obs: acme_types.NestedArray,  # type: ignore[valid-type]
    ) -> types.PreprocessorParams: ...

    class Buffer(ReplayBuffer[Any, Any]):  # type: ignore[type-arg]
        """A buffer of a user's own."""

    assert issubclass(Buffer, ReplayBuffer)
    make_policy = ars_networks.make_inference_fn(ars_networks.make_policy_network(3, 2))
    layer = {"kernel": jnp.ones((3, 2)), "bias": jnp.zeros(2)}
    params = types.PolicyParams((), {"params": {"hidden_0": layer}})
    assert make_policy(params)(jnp.ones(3), jax.random.key(0))[0].tolist() == [3.0, 3.0]
