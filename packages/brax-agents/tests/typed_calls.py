"""Right and wrong calls of every agent's `train`, for mypy; nothing runs them.

`hatch run check` reads this file. A call that mypy should refuse has a comment with the error's
code, and a comment without an error is one too.
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, assert_type

from brax.env import Env
from brax.training.agents.apg.train import train as apg
from brax.training.agents.ars.train import train as ars
from brax.training.agents.bc.train import train as bc
from brax.training.agents.es.train import FitnessShaping
from brax.training.agents.es.train import train as es
from brax.training.agents.ppo.networks import PPOParams
from brax.training.agents.ppo.train import train as ppo
from brax.training.agents.reppo.train import train as reppo
from brax.training.agents.sac.train import train as sac
from brax.training.agents.settings import PPOSettings
from brax.training.agents.shac.train import train as shac
from brax.training.agents.td3.train import train as td3
from brax.training.policies import ActorCriticParams, PolicyParams


def progress(steps: int, metrics: Mapping[str, Any]) -> None:
    """Do nothing."""


def right(env: Env, act: Callable[..., Any]) -> None:
    """Call each agent with settings of its own, of all agents, and of Google's."""
    _, params, metrics = ppo(env, 10, num_envs=8, learning_rate=1e-3, progress_fn=progress)
    assert_type(params, PPOParams)
    assert_type(metrics, dict[str, Any])
    ppo(environment=env, num_timesteps=10, max_grad_norm=None, use_pmap_on_reset=True)
    ppo(env, 10, network_factory={"activation": "relu"}, save_checkpoint_path=Path("runs"))
    assert_type(reppo(env, 10, kl_bound=0.1)[1], ActorCriticParams)
    assert_type(sac(env, 10, tau=0.01, checkpoint_logdir="runs")[1], PolicyParams)
    td3(env, num_timesteps=10, num_atoms=51, learning_rate=1)
    es(env, 10, population_size=8, fitness_shaping=FitnessShaping.ORIGINAL)
    ars(env, 10, number_of_directions=8, reward_shift=1.0)
    apg(env, policy_updates=3, adam_b=(0.7, 0.9), use_float64=False)
    bc(env=env, dagger_steps=3, teacher_inference_fn=act, eval_length=100, scramble_time=0)
    shac(env, 10, critic_updates=2, max_state_gradient=None)


def dictionaries(env: Env, presets: dict[str, Any]) -> None:
    """Pass settings by `**` and by `functools.partial`, as many projects do."""
    ppo(env, 10, **presets)
    typed: PPOSettings = {"num_envs": 8, "learning_rate": 1e-3}
    ppo(env, 10, **typed)
    functools.partial(ppo, num_timesteps=10, num_envs=8)(environment=env, progress_fn=progress)
    functools.partial(ppo, num_env=8)  # type: ignore[call-arg]


def unknown_names(env: Env) -> None:
    """Call each agent with a setting that it does not have; some are another agent's."""
    ppo(env, 10, learning_rat=1e-3)  # type: ignore[call-arg]
    reppo(env, 10, clipping_epsilon=0.3)  # type: ignore[call-arg]
    sac(env, 10, num_minibatches=4)  # type: ignore[call-arg]
    td3(env, 10, alpha_learning_rate=1e-3)  # type: ignore[call-arg]
    es(env, 10, num_envs=8)  # type: ignore[call-arg]
    ars(env, 10, learning_rate=1e-3)  # type: ignore[call-arg]
    apg(env, 10, dagger_steps=3)  # type: ignore[call-arg]
    bc(env, 10, policy_updates=3)  # type: ignore[call-arg]
    shac(env, 10, batch_size=32)  # type: ignore[call-arg]


def wrong_types(env: Env) -> None:
    """Call each agent with a value of a wrong type, or one that is not supported."""
    ppo(env, 10, num_envs=8.0)  # type: ignore[arg-type]
    ppo(env, 10, madrona_backend=True)  # type: ignore[arg-type]
    ppo(env, 10, eval_env=env, progress_fn=print, num_evals=None)  # type: ignore[arg-type]
    reppo(env, 10, kl_bound="0.1")  # type: ignore[arg-type]
    sac(env, 10, max_replay_size=None)  # type: ignore[arg-type]
    td3(env, 10, learning_rate_schedule=True)  # type: ignore[arg-type]
    es(env, "10")  # type: ignore[arg-type]
    ars(env, 10, top_directions=0.5)  # type: ignore[arg-type]
    apg(env, policy_updates=3, adam_b=0.9)  # type: ignore[arg-type]
    bc(env, 10, teacher_inference_fn="runs/ant")  # type: ignore[arg-type]
    shac(env, 10, seed=None)  # type: ignore[arg-type]


def missing_arguments(env: Env) -> None:
    """Leave out what must be given."""
    ppo(env)  # type: ignore[call-arg]
    es(num_timesteps=10)  # type: ignore[call-arg]
