"""PPO's loss: clipped surrogate, value error and entropy bonus.

Start reading at `compute_ppo_loss`. Advantages come from `compute_gae` of `learning/advantages.py`.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.kernels.fusion_barrier import fusion_barrier
from brax.kernels.rows import weighted_sum
from brax.training.agents.ppo.networks import PPONetworks, PPOParams

# Google's brax has `compute_gae` at this path, so it is public here too.
from brax.training.learning.advantages import compute_gae as compute_gae
from brax.training.nn.distribution import ParametricDistribution


class Memory(NamedTuple):
    """The memory of recurrent networks."""

    policy: jax.Array
    """Memory of the policy network, (n, memory_size)."""
    value: jax.Array
    """Memory of the value network, (n, memory_size)."""


class Batch(NamedTuple):
    """Experience that an update learns from: the first axis is the unroll, the second is time."""

    observation: Any
    """Observations that the policy acted on, leaves (n, time, ...)."""
    raw_action: jax.Array
    """Actions before squashing, (n, time, action_size)."""
    log_prob: jax.Array
    """Log density of the raw actions under the policy that acted, (n, time)."""
    value: jax.Array
    """Values of the observations from the critic at the time of acting, (n, time)."""
    reward: jax.Array
    """Scaled rewards, (n, time)."""
    termination: jax.Array
    """1 where an episode terminated, else 0, (n, time)."""
    truncation: jax.Array
    """1 where the time limit cut an episode, else 0, (n, time)."""
    timeout_value: jax.Array | None
    """Values after each step at the time of acting, used where it was truncated, (n, time); None
    leaves truncated steps out of the policy and value losses."""
    last_observation: Any
    """Observations after the last steps, leaves (n, ...)."""
    last_value: jax.Array
    """Values of the last observations at the time of acting, (n,)."""
    memory: Memory | None = None
    """Memory before the first steps, from the time of acting; None if the networks have none."""
    target: jax.Array | None = None
    """Value targets, (n, time); None where they are still to be computed."""
    advantage: jax.Array | None = None
    """Advantages, (n, time); None where they are still to be computed."""

    @property
    def first(self) -> jax.Array:
        """1 for a step whose episode began after the first step of the unroll, else 0, (n, time).

        The memory before the first step is already that of its episode.
        """
        ended = self.termination + self.truncation
        return jnp.concatenate([jnp.zeros_like(ended[:, :1]), ended[:, :-1]], axis=1)

    @property
    def used(self) -> jax.Array:
        """1 for a step that is learned from, else 0, (n, time)."""
        if self.timeout_value is None:
            # Without a value for its last observation a truncated step has no target.
            return 1.0 - self.truncation
        return jnp.ones_like(self.truncation)


class PPONetworkParams(NamedTuple):
    """The weights of PPO's networks, without the normalizer, under Google's name."""

    policy: Any
    """Parameters of the policy network."""
    value: Any
    """Parameters of the value network."""


class PPOLossConfig(NamedTuple):
    """The numbers of PPO's loss."""

    clipping_epsilon: float
    entropy_cost: float
    vf_loss_coefficient: float
    normalize_advantage: bool
    gae_lambda: float
    discounting: float
    advantage_estimator: str
    clipping_epsilon_value: float | None = None
    recompute_targets: bool = False
    memory_burn_in: int = 0


def compute_ppo_loss(
    params: PPOParams, batch: Batch, key: jax.Array, networks: PPONetworks, config: PPOLossConfig
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Return PPO's loss: clipped surrogate, value error and entropy bonus.

    Targets and advantages are those of the time of acting. With `recompute_targets` they follow the
    critic and the statistics that the updates change. Values that no update fits stay those of the
    time of acting even then: of observations that episodes end with, and of steps that are not
    used.

    Networks with memory run over each unroll from the memory at the time of acting, so that
    gradients go back through time to its first step. With `memory_burn_in` the first steps only
    bring the memory up to date, without a gradient, and are not learned from.

    Args:
        params: parameters; the gradient is taken by `policy` and `value`.
        batch: experience.
        key: random key for the estimate of the entropy.
        networks: PPO's networks.
        config: numbers of the loss.

    Returns:
        The loss and its parts, both scalar.

    Source: Schulman et al. 2017 (1707.06347), eq. 7 and 9.
    """
    actions = networks.parametric_action_distribution
    if config.memory_burn_in:
        batch = _burned_in(params, batch, networks, config.memory_burn_in)
    logits, _ = _over_unrolls(networks.policy_network.apply, params, "policy", batch)
    critic = networks.value_quantiles or networks.value_network.apply
    found, memory = _over_unrolls(critic, params, "value", batch)
    if config.recompute_targets:
        target, advantage = _recomputed_targets(params, batch, found, memory, networks, config)
    else:
        target, advantage = _known_targets(batch, config)
    # At least 1: a minibatch of truncated steps only has none that is used.
    number, steps = jnp.maximum(jnp.sum(batch.used), 1.0), batch.used.size
    # A distribution may have an entropy of its own, such as a closed form.
    estimated = getattr(type(actions), "entropy", None) is ParametricDistribution.entropy
    step = _Step(
        batch.raw_action,
        batch.log_prob,
        batch.value,
        target,
        _normalized(advantage, batch.used, number) if config.normalize_advantage else advantage,
        actions.noise(logits, key) if estimated else None,
    )
    weights = [
        -1.0 / number,
        # Eq. 9, c1 L^VF. The factor 1/2 comes on top of the coefficient: the default weighs the
        # error by 1/4. Truncated steps without a target have `used` 0.
        0.5 * config.vf_loss_coefficient / steps * batch.used,
    ]
    if estimated:
        # Eq. 9, c2 S.
        weights.append(jnp.asarray(-config.entropy_cost / steps, logits.dtype))
    terms = functools.partial(_terms, actions, bool(networks.value_quantiles), config)
    flat = jax.tree.map(_in_one_axis, ((logits, found), step, weights))
    loss, each = weighted_sum(terms, *flat)
    losses = [jnp.sum(w * x) for w, x in zip(flat[2], each, strict=False)]
    if not estimated:
        losses.append(-config.entropy_cost * jnp.mean(actions.entropy(logits, key)))
        loss = loss + losses[-1]
    policy_loss, value_loss, entropy_loss = losses
    return loss, {
        "total_loss": loss,
        "policy_loss": policy_loss,
        "v_loss": value_loss,
        "entropy_loss": entropy_loss,
        "kl_estimate": jnp.mean(each[-1]),
    }


class _Step(NamedTuple):
    """The data of a step that its loss depends on, besides the networks' outputs."""

    raw_action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    target: jax.Array
    advantage: jax.Array
    noise: jax.Array | None
    """Standard normal numbers for the estimate of the entropy, if it is estimated."""


class _Terms(NamedTuple):
    """The terms of the loss of a step; the last one is only reported."""

    gain: jax.Array
    """Eq. 7, the clipped surrogate."""
    value_error: jax.Array
    entropy: jax.Array
    """An estimate by one sample; zero if the distribution has an entropy of its own."""
    kl_estimate: jax.Array
    """Schulman's k3 estimator of KL(old || new): unbiased, and no term is negative, unlike those of
    the mean of -log(ratio)."""


def _terms(
    actions: ParametricDistribution,
    quantiles: bool,
    config: PPOLossConfig,
    outputs: tuple[jax.Array, jax.Array],
    step: _Step,
) -> _Terms:
    """Return the terms of the loss of steps, each (...,).

    Args:
        actions: the distribution of actions.
        quantiles: whether the critic's outputs are quantiles.
        config: numbers of the loss.
        outputs: outputs of the policy (..., param_size) and the critic, (...,) or (..., quantiles).
        step: the other data, leaves (...,) or (..., action_size).
    """
    logits, found = outputs
    values = jnp.mean(found, axis=-1) if quantiles else found
    # Eq. 6, r(theta): from logarithms, since densities of many actions underflow.
    log_ratio = actions.log_prob(logits, step.raw_action) - step.log_prob
    ratio, zero = jnp.exp(log_ratio), jnp.zeros_like(log_ratio)
    clipped = jnp.clip(ratio, 1.0 - config.clipping_epsilon, 1.0 + config.clipping_epsilon)
    return _Terms(
        gain=jnp.minimum(ratio * step.advantage, clipped * step.advantage),
        value_error=_value_error(found, values, step.value, step.target, quantiles, config),
        # A squashed normal distribution has no closed form: one sample estimates it.
        entropy=zero if step.noise is None else actions.entropy_at(logits, step.noise),
        kl_estimate=ratio - 1.0 - log_ratio,
    )


def _in_one_axis(x: jax.Array) -> jax.Array:
    """Return an array (n, time, ...) as (n * time, ...), and a scalar as it is."""
    return x.reshape(-1, *x.shape[2:]) if x.ndim else x


def _over_unrolls(
    apply: Callable[..., Any], params: PPOParams, name: str, batch: Batch
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Return a network's outputs at all steps, (n, time, ...), and its memory after the last.

    The memory, (n, memory_size), is the only entry of a tuple, which is empty without memory.

    Args:
        apply: applies the network.
        params: all parameters.
        name: name of the network in `params` and in a `Memory`.
        batch: experience.
    """
    given = params.normalizer, getattr(params, name), batch.observation
    if batch.memory is None:
        return apply(*given), ()
    outputs, memory = apply(*given, getattr(batch.memory, name), batch.first)
    return outputs, (memory,)


def _burned_in(params: PPOParams, batch: Batch, networks: PPONetworks, steps: int) -> Batch:
    """Return the experience after the first steps, with memory from the current networks."""
    early = batch._replace(observation=jax.tree.map(lambda x: x[:, :steps], batch.observation))
    early = early._replace(
        termination=batch.termination[:, :steps], truncation=batch.truncation[:, :steps]
    )
    _, policy = _over_unrolls(networks.policy_network.apply, params, "policy", early)
    _, value = _over_unrolls(networks.value_network.apply, params, "value", early)
    begins = batch.first[:, steps, None] > 0
    memory = Memory(*(jnp.where(begins, 0.0, x) for x in (*policy, *value)))
    late = {
        name: jax.tree.map(lambda x: x[:, steps:], getattr(batch, name))
        for name in Batch._fields
        if name not in ("last_observation", "last_value", "memory")
    }
    return batch._replace(**late, memory=jax.lax.stop_gradient(memory))


def _recomputed_targets(
    params: PPOParams,
    batch: Batch,
    found: jax.Array,
    memory: tuple[jax.Array, ...],
    networks: PPONetworks,
    config: PPOLossConfig,
) -> tuple[jax.Array, jax.Array]:
    """Return value targets and advantages, both (n, time), by the critic as it is now.

    Args:
        params: all parameters.
        batch: experience.
        found: outputs of the critic, (n, time), or quantiles (n, time, quantiles).
        memory: its memory after the last steps, (n, memory_size); empty without memory.
        networks: PPO's networks.
        config: numbers of the loss.
    """
    values = jnp.mean(found, axis=-1) if networks.value_quantiles else found
    critic = networks.value_network.apply
    last_value = critic(params.normalizer, params.value, batch.last_observation, *memory)
    if memory:
        last_value, _ = last_value
    return targets(batch, values, last_value, config)


def quantile_huber_loss(quantiles: jax.Array, targets: jax.Array, kappa: float = 1.0) -> jax.Array:
    """Return the mean of `quantile_huber_error` over all targets, a scalar."""
    return jnp.mean(quantile_huber_error(quantiles, targets, kappa))


def quantile_huber_error(quantiles: jax.Array, targets: jax.Array, kappa: float = 1.0) -> jax.Array:
    """Return the quantile Huber loss of quantiles (..., n) for targets (...,), shape (...,).

    The i-th of n quantiles is that of probability `(i + 1/2) / n`, the midpoints of lemma 2. Errors
    beyond `kappa` count linearly. The result is the mean over the quantiles.

    Source: Dabney et al. 2018 (1710.10044), eq. 9 and 10.
    """
    number = quantiles.shape[-1]
    share = (jnp.arange(number) + 0.5) / number
    # Positive where the target lies above the quantile; the last axis is the quantile.
    error = targets[..., None] - quantiles
    size = jnp.abs(error)
    huber = jnp.where(size <= kappa, 0.5 * error**2, kappa * (size - 0.5 * kappa))
    # |tau - 1{error < 0}| makes the loss asymmetric, so that its minimum is the quantile.
    return jnp.mean(jnp.abs(share - (error < 0)) * huber / kappa, axis=-1)


def with_targets(batch: Batch, config: PPOLossConfig) -> Batch:
    """Return experience with value targets and advantages from the time of acting.

    They are the same for all updates, so that it is enough to compute them once.
    """
    target, advantage = _known_targets(batch, config)
    return batch._replace(target=target, advantage=advantage)


def _known_targets(batch: Batch, config: PPOLossConfig) -> tuple[jax.Array, jax.Array]:
    """Return value targets and advantages from the time of acting, both (n, time)."""
    if batch.target is None or batch.advantage is None:
        return targets(batch, batch.value, batch.last_value, config)
    return batch.target, batch.advantage


def targets(
    batch: Batch, values: jax.Array, last_value: jax.Array, config: PPOLossConfig
) -> tuple[jax.Array, jax.Array]:
    """Return value targets and advantages, both (n, time) and without gradient.

    Args:
        batch: experience.
        values: values of its observations, (n, time).
        last_value: values of its last observations, (n,).
        config: numbers of the loss.
    """
    values = jnp.where(batch.used > 0, values, batch.value)
    late = None if batch.timeout_value is None else batch.timeout_value.T
    target, advantage = compute_gae(
        batch.truncation.T,
        batch.termination.T,
        batch.reward.T,
        values.T,
        last_value,
        config.gae_lambda,
        config.discounting,
        late,
        config.advantage_estimator,
    )
    return target.T, advantage.T


def _value_error(
    found: jax.Array,
    values: jax.Array,
    before: jax.Array,
    target: jax.Array,
    quantiles: bool,
    config: PPOLossConfig,
) -> jax.Array:
    """Return the errors of the critic's values, (...,); with a bound, the larger of two.

    The error is the square, or that of the quantiles of a distributional critic. The two are that
    of the value and that of the clipped value, which is the value when the policy acted, moved by
    at most `clipping_epsilon_value`. Taking the larger means that an update gains nothing by moving
    a value further than that.

    Args:
        found: what the critic returns: values, or quantiles (..., quantiles).
        values: the values, (...,).
        before: the values at the time of acting, (...,).
        target: value targets, (...,).
        quantiles: whether the critic returns quantiles.
        config: numbers of the loss.
    """
    error_of = quantile_huber_error if quantiles else _squared_error
    error, bound = error_of(found, target), config.clipping_epsilon_value
    if bound is None:
        return error
    # Values are clipped about those at the time of acting, as eq. 7 clips ratios about 1.
    near = before + jnp.clip(values - before, -bound, bound)
    if quantiles:
        # All quantiles move by the same amount: their mean, the value, is `near` then.
        near = found + (near - values)[..., None]
    return jnp.maximum(error, error_of(near, target))


def _squared_error(values: jax.Array, targets: jax.Array) -> jax.Array:
    """Return the squares of the differences."""
    return (targets - values) ** 2


def _normalized(advantages: jax.Array, used: jax.Array, number: jax.Array) -> jax.Array:
    """Return advantages with mean 0 and deviation 1 over the `number` of steps that are used."""
    mean = jnp.sum(advantages * used) / number
    variance = jnp.sum(used * (advantages - mean) ** 2) / number
    # The small number keeps a minibatch of equal advantages at zero instead of 0 / 0.
    normalized = used * (advantages - mean) / (jnp.sqrt(variance) + 1e-8)
    # XLA would compute it anew for each entry of an action in the gradient, from transposed arrays.
    return fusion_barrier(normalized)
