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

    def step(carry: tuple[State, jax.Array], _: None) -> tuple[Any, types.Transition]:
        state, key = carry
        key, now = jax.random.split(key)
        state, transition = actor_step(env, state, policy, now, extra_fields)
        return (state, key), transition

    once = jax.checkpoint(step) if rematerialize else step
    (final, _), transitions = jax.lax.scan(once, (env_state, key), length=unroll_length)
    return final, transitions


def over_batch(policy: types.Policy) -> types.Policy:
    """Return a policy for batches of observations, made from a policy for a single one.

    `load_policy` of a trainer returns a policy for a single observation. Each observation of the
    batch gets its own key.
    """

    def batched(observation: Any, key: jax.Array) -> tuple[jax.Array, types.Extra]:
        size = jax.tree.leaves(observation)[0].shape[0]
        return jax.vmap(policy)(observation, jax.random.split(key, size))

    return batched
