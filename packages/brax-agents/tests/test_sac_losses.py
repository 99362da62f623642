"""SAC's losses against the formulas of the paper, written out in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.training.agents.sac.losses import SACLossConfig, SACWeights, compute_sac_loss
from brax.training.agents.sac.networks import make_sac_networks
from brax.training.learning.replay_buffers import Sample

N, OBS, ACT = 6, 3, 2
KEY = jax.random.key(9)
CONFIG = SACLossConfig(discounting=0.9, reward_scaling=3.0, target_entropy=-1.5)


@pytest.fixture(scope="module")
def sac():
    """Linear networks, weights, target critics and experience in which some episodes end."""
    networks = make_sac_networks(OBS, ACT, hidden_layer_sizes=())
    keys = jax.random.split(jax.random.key(5), 8)
    weights = SACWeights(
        networks.policy_network.init(keys[0]), networks.q_network.init(keys[1]), jnp.float32(-0.7)
    )
    batch = Sample(
        observation=jax.random.normal(keys[3], (N, OBS)),
        action=jax.random.uniform(keys[4], (N, ACT), minval=-1.0),
        reward=jax.random.normal(keys[5], (N,)),
        goes_on=jnp.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0]),
        next_observation=jax.random.normal(keys[6], (N, OBS)),
    )
    return networks, weights, networks.q_network.init(keys[2]), batch


def _loss(sac, config=CONFIG, **changes):
    networks, weights, target_q, batch = sac
    return compute_sac_loss(weights._replace(**changes), (), target_q, batch, KEY, networks, config)


def _critics(params, obs, action):
    x = np.concatenate([obs, action], axis=1)
    layers = [params["params"][f"critic_{i}"]["hidden_0"] for i in range(2)]
    layers = [jax.tree.map(np.float64, layer) for layer in layers]
    return np.concatenate([x @ layer["kernel"] + layer["bias"] for layer in layers], axis=1)


def _draw(policy, obs, key):
    layer = jax.tree.map(np.float64, policy["params"]["hidden_0"])
    logits = obs @ layer["kernel"] + layer["bias"]
    loc, scale = logits[:, :ACT], np.log1p(np.exp(logits[:, ACT:])) + 0.001
    unit = np.asarray(jax.random.normal(key, (ACT, N)), np.float64).T
    raw = loc + scale * unit
    log_prob = -0.5 * unit**2 - np.log(scale * np.sqrt(2 * np.pi)) - np.log(1 - np.tanh(raw) ** 2)
    return np.tanh(raw), log_prob.sum(axis=1)


@pytest.mark.slow
def test_the_losses_are_those_of_the_paper(sac):
    _, weights, target_q, batch = sac
    batch = jax.tree.map(np.float64, batch)
    next_key, now_key = jax.random.split(KEY)
    alpha = np.exp(-0.7)

    action, log_prob = _draw(weights.policy, batch.next_observation, next_key)
    soft = _critics(target_q, batch.next_observation, action).min(axis=1) - alpha * log_prob
    target = 3.0 * batch.reward + 0.9 * batch.goes_on * soft
    q = _critics(weights.q, batch.observation, batch.action)
    critic = np.mean([(q[i, j] - target[i]) ** 2 / 2 for i in range(N) for j in range(2)])

    action, log_prob = _draw(weights.policy, batch.observation, now_key)
    value = _critics(weights.q, batch.observation, action).min(axis=1)
    actor = np.mean(alpha * log_prob - value)
    temperature = np.mean(-alpha * (log_prob - 1.5))

    loss, parts = _loss(sac)
    assert float(parts["critic_loss"]) == pytest.approx(critic, rel=1e-4)
    assert float(parts["actor_loss"]) == pytest.approx(actor, rel=1e-4)
    assert float(parts["alpha_loss"]) == pytest.approx(temperature, rel=1e-4)
    assert float(parts["entropy"]) == pytest.approx(-log_prob.mean(), rel=1e-4)
    assert float(loss) == pytest.approx(critic + actor + temperature, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part"), [("q", "critic_loss"), ("policy", "actor_loss"), ("log_alpha", "alpha_loss")]
)
def test_each_loss_moves_its_own_weights_only(sac, name, part):
    """Differences of the part alone, everything else held, against the gradient of the sum."""
    networks, weights, target_q, batch = sac
    grads = jax.grad(compute_sac_loss, has_aux=True)(
        weights, (), target_q, batch, KEY, networks, CONFIG
    )[0]
    leaves, structure = jax.tree.flatten(getattr(weights, name))
    moved = [jnp.asarray(np.linspace(0.3, 1.0, x.size).reshape(x.shape)) for x in leaves]
    slope = sum(
        float(jnp.vdot(g, m))
        for g, m in zip(jax.tree.leaves(getattr(grads, name)), moved, strict=True)
    )

    def part_at(step):
        there = [x + step * m for x, m in zip(leaves, moved, strict=True)]
        changed = {name: jax.tree.unflatten(structure, there)}
        return float(_loss(sac, **changed)[1][part])

    difference = (part_at(1e-2) - part_at(-1e-2)) / 2e-2
    assert slope == pytest.approx(difference, rel=2e-3, abs=1e-4)


def test_an_end_has_no_value_after_it(sac):
    networks, weights, target_q, batch = sac
    ended = batch._replace(goes_on=jnp.zeros(N))
    other = ended._replace(next_observation=batch.next_observation + 1.0)

    def critic(batch):
        return compute_sac_loss(weights, (), target_q, batch, KEY, networks, CONFIG)[1][
            "critic_loss"
        ]

    assert float(critic(ended)) == float(critic(other))
    assert float(critic(batch)) != float(critic(ended))
