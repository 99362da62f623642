"""Acting: steps and unrolls of a policy in batched environments."""

from collections.abc import Sequence
from typing import Any

import jax

from brax.env import Env, State
from brax.env.wrappers.select import select
from brax.training import types


def actor_step(
    env: Env, env_state: State, policy: types.Policy, key: jax.Array, extra_fields: Sequence[str]
) -> tuple[State, types.Transition]:
    """Takes one step with a policy.

    Args:
        env: batched environment.
        env_state: its state.
        policy: chooses the actions.
        key: for the policy.
        extra_fields: entries of the next state's `info` to keep in `extras['state_extras']`.

    Returns:
        The next state and the transition to it. `next_observation` is the true one, also where
        the environment was reset; see `last_observation`.
    """
    action, policy_extras = policy(env_state.obs, key)
    after = env.step(env_state, action)
    transition = types.Transition(
        observation=env_state.obs,
        action=action,
        reward=after.reward,
        discount=1.0 - after.done,
        next_observation=last_observation(env_state, after),
        extras={
            "policy_extras": policy_extras,
            "state_extras": {name: after.info[name] for name in extra_fields},
        },
    )
    return after, transition


def last_observation(before: State, after: State) -> Any:
    """Returns the true observation after a step, also where an episode ended and the next began.

    Where the environment does not keep it, in `info['terminal_obs']`, the observation before the
    step stands for it in steps that were truncated: the next episode's would be a wrong one.
    """
    if "terminal_obs" in after.info or "truncation" not in after.info:
        return after.info.get("terminal_obs", after.obs)
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
    """Takes `unroll_length` steps; the transitions have time as their first axis.

    `rematerialize` computes each step again for a gradient through it, so that memory grows with
    the state and not with what a step computes.
    """

    def step(carry: tuple[State, jax.Array], _: None) -> tuple[Any, types.Transition]:
        state, key = carry
        key, now = jax.random.split(key)
        state, transition = actor_step(env, state, policy, now, extra_fields)
        return (state, key), transition

    once = jax.checkpoint(step) if rematerialize else step
    (final, _), transitions = jax.lax.scan(once, (env_state, key), length=unroll_length)
    return final, transitions


def over_batch(policy: types.Policy) -> types.Policy:
    """Returns a policy for a batch of observations, made of one for a single observation.

    `load_policy` of a trainer returns a policy for a single observation. Each observation of the
    batch gets a key of its own.
    """

    def batched(observation: Any, key: jax.Array) -> tuple[jax.Array, types.Extra]:
        size = jax.tree.leaves(observation)[0].shape[0]
        return jax.vmap(policy)(observation, jax.random.split(key, size))

    return batched
