"""TD3's losses: `compute_critic_loss` and `compute_policy_loss`.

Critics learn the mean of the return, or its distribution on the atoms of a fixed support.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.training.agents.td3.n_step import NStep
from brax.training.agents.td3.networks import TD3Networks


class TD3LossConfig(NamedTuple):
    """The numbers of TD3's losses."""

    reward_scaling: float
    target_noise: float
    target_noise_clip: float
    atoms: np.ndarray | None
    """Returns that categorical critics give probabilities to, at equal distances, ascending,
    (atoms,); None if the critics learn the mean.
    """


def compute_critic_loss(
    q: object,
    normalizer: object,
    target_policy: object,
    target_q: object,
    batch: NStep,
    key: jax.Array,
    networks: TD3Networks,
    config: TD3LossConfig,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Return the loss of both critics, summed over them and averaged over the batch.

    Args:
        q: parameters of the critics.
        normalizer: statistics of observations.
        target_policy: parameters of the target policy.
        target_q: parameters of the target critics.
        batch: transitions, leaves (n, ...).
        key: random key for the noise on the target policy's actions.
        networks: TD3's networks.
        config: numbers of the losses.

    Returns:
        The loss, and what is reported: `critic_loss` and `q`, the mean value of the first critic.

    Source: Fujimoto et al. 2018 (1802.09477), algorithm 1; with atoms, Bellemare et al. 2017
    (1707.06887), algorithm 1, as in Seo et al. 2025 (2505.22642).
    """
    action = _smoothed_action(
        target_policy, normalizer, batch.next_observation, key, networks, config
    )
    later = networks.q_network.apply(normalizer, target_q, batch.next_observation, action)
    lower = _lower_critic(later, config.atoms)
    now = networks.q_network.apply(normalizer, q, batch.observation, batch.action)
    # Returns after the transition, (n, atoms), or (n, 1) of the mean, seen from before it.
    values = lower if config.atoms is None else config.atoms
    reward = config.reward_scaling * batch.reward
    values = reward[:, None] + batch.discount[:, None] * values
    if config.atoms is None:
        target = jax.lax.stop_gradient(values)
        errors = (now[..., 0] - target) ** 2
    else:
        target = project(jax.nn.softmax(lower), values, config.atoms)
        target = jax.lax.stop_gradient(target)
        errors = -jnp.sum(target[:, None] * jax.nn.log_softmax(now), axis=-1)
    # (n, critics): both critics are fitted to the same target.
    loss = jnp.mean(jnp.sum(errors, axis=-1))
    return loss, {"critic_loss": loss, "q": jnp.mean(mean_value(now[:, 0], config.atoms))}


def compute_policy_loss(
    policy: object,
    normalizer: object,
    q: object,
    observation: object,
    networks: TD3Networks,
    config: TD3LossConfig,
) -> jax.Array:
    """Return the negated mean value of the policy's actions by the first critic.

    Args:
        policy: parameters of the policy.
        normalizer: statistics of observations.
        q: parameters of the critics.
        observation: observations (n, ...).
        networks: TD3's networks.
        config: numbers of the losses.

    Source: Fujimoto et al. 2018 (1802.09477), algorithm 1.
    """
    action = networks.act(normalizer, policy, observation)
    value = networks.q_network.apply(normalizer, q, observation, action)[:, 0]
    return -jnp.mean(mean_value(value, config.atoms))


def mean_value(outputs: jax.Array, atoms: np.ndarray | None) -> jax.Array:
    """Return the mean of the return (...,) from a critic's outputs (..., atoms) or (..., 1)."""
    if atoms is None:
        return outputs[..., 0]
    return jax.nn.softmax(outputs) @ atoms


def project(probabilities: jax.Array, values: jax.Array, atoms: np.ndarray) -> jax.Array:
    """Return probabilities (n, m) of values (n, m) as probabilities of fixed atoms, (n, atoms).

    Each value shares its probability between its two neighbours, so that the mean stays, where it
    is not beyond the first or the last atom.

    Source: Bellemare et al. 2017 (1707.06887), eq. 7.
    """
    distance = atoms[1] - atoms[0]
    values = jnp.clip(values, atoms[0], atoms[-1])

    def add(sums: jax.Array, column: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        value, probability = column
        # An atom's share is 1 at the atom and falls to 0 at its neighbours.
        share = 1.0 - jnp.abs(value - atoms[:, None]) / distance
        return sums + jnp.maximum(share, 0.0) * probability, None

    # One value of every row after the other, with the rows innermost: as one sum over (n, atoms, m)
    # XLA's CPU compiler makes scalar code of it, which takes three times as long.
    kind = jnp.result_type(values, probabilities, atoms)
    sums = jnp.zeros((len(atoms), len(values)), kind)
    sums, _ = jax.lax.scan(add, sums, (values.T, probabilities.T), unroll=4)
    return sums.T


def _smoothed_action(
    policy: object,
    normalizer: object,
    observation: object,
    key: jax.Array,
    networks: TD3Networks,
    config: TD3LossConfig,
) -> jax.Array:
    """Return the policy's actions with bounded noise, within the bounds of actions."""
    action = networks.act(normalizer, policy, observation)
    noise = config.target_noise * jax.random.normal(key, action.shape)
    noise = jnp.clip(noise, -config.target_noise_clip, config.target_noise_clip)
    return jnp.clip(action + noise, -1.0, 1.0)


def _lower_critic(outputs: jax.Array, atoms: np.ndarray | None) -> jax.Array:
    """Return the outputs (n, atoms) of that critic of (n, critics, atoms) whose mean is lowest."""
    lowest = jnp.argmin(mean_value(outputs, atoms), axis=-1)
    return jnp.take_along_axis(outputs, lowest[:, None, None], axis=1)[:, 0]
