"""Acting: steps and unrolls of a policy in batched environments."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brax.env import Env, State
from brax.env.wrappers.select import select
from brax.training import types
from brax.training.learning.stacking import stacked_scan
from brax.training.policies import RecurrentPolicy


def actor_step(
    env: Env, env_state: State, policy: types.Policy, key: jax.Array, extra_fields: Sequence[str]
) -> tuple[State, types.Transition]:
    """Take one step with a policy.

    Args:
        env: batched environment.
        env_state: its state.
        policy: chooses the actions.
        key: random key of the policy.
        extra_fields: entries of the next state's `info` to keep in `extras['state_extras']`.

    Returns:
        The next state and the transition to it. `next_observation` is the true one, even where
        the environment was reset; see `last_observation`.
    """
    action, policy_extras = policy(env_state.obs, key)
    after = env.step(env_state, action)
    transition = types.Transition(
        observation=env_state.obs,
        action=action,
        reward=after.reward,
        # `done` is 1 at truncation too; `learner.ends` separates the two.
        discount=1.0 - after.done,
        next_observation=last_observation(env_state, after),
        extras={
            "policy_extras": policy_extras,
            "state_extras": {name: after.info[name] for name in extra_fields},
        },
    )
    return after, transition


def last_observation(before: State, after: State) -> Any:
    """Return the true observation after a step, even where an episode ended and the next began.

    An environment that stores it in `info['terminal_obs']` returns that. In others, truncated steps
    return the observation before the step, since the next episode's would be wrong.
    """
    if "terminal_obs" in after.info or "truncation" not in after.info:
        return after.info.get("terminal_obs", after.obs)
    # At termination the observation is not used, so that any will do.
    return select(after.info["truncation"] > 0, before.obs, after.obs)


def generate_unroll(
    env: Env,
    env_state: State,
    policy: types.Policy,
    key: jax.Array,
    unroll_length: int,
    extra_fields: Sequence[str] = (),
    rematerialize: bool = False,
) -> tuple[State, types.Transition]:
    """Take `unroll_length` steps; time is the first axis of the transitions.

    With `rematerialize`, a gradient through the unroll computes each step again, so that memory
    grows with the state and not with everything that a step computes.
    """
    final, _, transitions = generate_recurrent_unroll(
        env, env_state, (), policy, key, unroll_length, extra_fields, rematerialize
    )
    return final, transitions


def generate_recurrent_unroll(
    env: Env,
    env_state: State,
    memory: tuple[Any, ...],
    policy: Callable[..., Any],
    key: jax.Array,
    unroll_length: int,
    extra_fields: Sequence[str] = (),
    rematerialize: bool = False,
) -> tuple[State, tuple[Any, ...], types.Transition]:
    """Take `unroll_length` steps with a policy that may have memory.

    Args:
        env: batched environment.
        env_state: its state.
        memory: one tree of arrays whose first axis is the environment, or nothing without memory.
        policy: function of observation, key and memory; the next memory is its extra `memory`.
        key: random key of the policy.
        unroll_length: number of steps.
        extra_fields: entries of `info` to keep, as for `actor_step`.
        rematerialize: as for `generate_unroll`.

    Returns:
        The last state, the memory to continue with, which is zero where an episode has just begun,
        and the transitions, whose first axis is time.
    """

    def step(carry: tuple[Any, ...], _: None) -> tuple[Any, types.Transition]:
        state, memory, key = carry
        key, now = jax.random.split(key)
        state, transition = actor_step(
            env, state, lambda seen, key: policy(seen, key, *memory), now, extra_fields
        )
        if memory:
            kept = transition.extras["policy_extras"]["memory"]
            memory = (select(state.done > 0, jax.tree.map(jnp.zeros_like, kept), kept),)
        return (state, memory, key), transition

    once = jax.checkpoint(step) if rematerialize else step
    start = env_state, memory, key
    (final, memory, _), transitions = stacked_scan(once, start, length=unroll_length)
    return final, memory, transitions


def over_batch(policy: types.Policy) -> types.Policy:
    """Return a policy for batches of observations, made from a policy for a single one.

    `load_policy` of a trainer returns a policy for a single observation. Each observation of the
    batch gets its own key, and its own memory if the policy has any.
    """

    def batched(
        observation: object, key: jax.Array, *memory: jax.Array
    ) -> tuple[jax.Array, types.Extra]:
        size = jax.tree.leaves(observation)[0].shape[0]
        return jax.vmap(policy)(observation, jax.random.split(key, size), *memory)

    size = getattr(policy, "memory_size", 0)
    return RecurrentPolicy(batched, size) if size else batched
