"""Settings of every agent that are refused, before any long work."""

import functools
import math
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from agent_toys import Point

from brax import plugins
from brax.errors import CheckpointError, ConfigError
from brax.training.checkpoints.checkpoint import Checkpoint
from brax.training.checkpoints.policies import (
    describe_networks,
    recorded_factory,
    restore_policy,
    to_json,
)

ALL = [
    ({"episode_length": 0}, "episode_length=0 must be at least 1"),
    ({"episode_length": None}, "episode_length=None"),
    ({"action_repeat": 30, "episode_length": 20}, "action_repeat=30 must not exceed .*=20"),
    (
        {"action_repeat": 10, "episode_length": 20, "eval_episode_length": 5},
        "action_repeat=10 must not exceed eval_episode_length=5",
    ),
    ({"num_eval_envs": 0}, "num_eval_envs=0 must be at least 1"),
    ({"num_timesteps": -1}, "num_timesteps=-1 must be at least 0"),
    ({"num_timesteps": 1.5}, "num_timesteps=1.5 must be a whole number"),
    ({"num_timesteps": 10**400}, "num_timesteps=10+ must be a finite number of 64 bits"),
    ({"save_interval_seconds": 10**400}, "save_interval_seconds=10+ must be a finite number"),
    ({"stop_at_reward": math.nan}, "stop_at_reward=nan must be a finite number"),
    (
        {"stop_at_reward": 5.0, "run_evals": False, "num_evals": 10},
        "stop_at_reward=5.0 compares .* run_evals=False with num_evals=10 makes none: evaluate, or",
    ),
    ({"stop_at_reward": 5.0, "num_evals": 0}, "run_evals=True with num_evals=0 makes none"),
    ({"stop_at_reward": "high"}, "stop_at_reward='high' must be a number"),
    ({"seed": 1.5}, "seed=1.5 must be a whole number"),
    ({"seed": "x"}, "seed='x' must be a number"),
    ({"seed": None}, "seed=None must be a number"),
    ({"seed": True}, "seed=True must be a number"),
    ({"seed": math.nan}, "seed=nan must be a whole number"),
    ({"seed": -1}, r"seed=-1 must be in \[0, 4294967295\]"),
    ({"seed": 2**32}, r"seed=4294967296 must be in \[0, 4294967295\]"),
    ({"wrap_env": "no"}, "wrap_env='no' must be true or false"),
    ({"progress_fn": None}, "progress_fn=None must be a function"),
    ({"randomization_fn": 2}, "randomization_fn=2 must be a function or None"),
    ({"network_factory": 3}, "network_factory=3 must be a function or a dictionary or None"),
    ({"save_checkpoint_path": 4}, "save_checkpoint_path=4 must be text or a path or None"),
    ({"eval_env": 3}, "eval_env=3 must be an environment"),
    (
        {"wrap_env": False, "wrap_env_fn": max, "randomization_fn": max},
        "wrap_env=False takes .* without wrap_env_fn and randomization_fn: leave one",
    ),
    (
        {"progress_fn": lambda metrics: None},
        r"progress_fn is called with \(steps, metrics\), which",
    ),
    ({"policy_params_fn": lambda: None}, r"called with \(steps, make_policy, params\)"),
    (
        {"wrap_env_fn": lambda env: env},
        r"wrap_env_fn is called with \(env, episode_length=\.\.\., action_repeat=",
    ),
    ({"num_timestep": 1}, r"unknown setting 'num_timestep'. Did you mean 'num_timesteps'\?"),
]
RATE = [
    ({"learning_rate": 0.0}, "learning_rate=0.0 must be above 0"),
    ({"learning_rate": math.nan}, "learning_rate=nan must be above 0"),
    ({"learning_rate": "fast"}, "learning_rate='fast' must be a number"),
]
OWN: dict[str, Any] = {
    "sac": [
        *RATE,
        ({"discounting": 1.1}, r"discounting=1.1 must be in \[0, 1\]"),
        ({"tau": 0.0}, r"tau=0.0 must be in \(0, 1\]"),
        ({"grad_updates_per_step": 0}, "grad_updates_per_step=0 must be at least 1"),
        ({"target_entropy": math.inf}, "target_entropy=inf"),
        (
            {"min_replay_size": 200, "max_replay_size": 127, "num_envs": 16},
            "min_replay_size=200 must not exceed the 112 .* max_replay_size=127 and num_envs=16",
        ),
        (
            {"max_replay_size": 20, "num_envs": 32},
            "max_replay_size=20 must hold a step of all num_envs=32; the least that does is 32",
        ),
        (
            {"min_replay_size": 500, "num_timesteps": 100, "num_envs": 16},
            "min_replay_size=500 is never reached: num_timesteps=100 makes 112 transitions",
        ),
    ],
    "td3": [
        *RATE,
        ({"weight_decay": -0.1}, "weight_decay=-0.1 must be at least 0"),
        ({"policy_delay": 0}, "policy_delay=0 must be at least 1"),
        ({"num_atoms": 1}, "num_atoms=1 cannot represent a distribution: use at least 2, or 0"),
        ({"num_atoms": 5, "v_min": 3.0, "v_max": 2.0}, "v_min=3.0 must be below v_max=2.0"),
        (
            {"min_exploration_noise": 0.3, "max_exploration_noise": 0.2},
            "min_exploration_noise=0.3 must not exceed max_exploration_noise=0.2",
        ),
        ({"target_noise_clip": -1.0}, "target_noise_clip=-1.0 must be at least 0"),
        ({"n_steps": 0}, "n_steps=0 must be at least 1"),
        (
            {"n_steps": 3, "max_replay_size": 95, "num_envs": 32},
            "max_replay_size=95 must hold n_steps=3 steps of all num_envs=32; .* does is 96",
        ),
        (
            {"n_steps": 4, "num_timesteps": 96, "num_envs": 32},
            "n_steps=4 is never reached: num_timesteps=96 makes 96 transitions",
        ),
        (
            {"min_replay_size": 500, "num_timesteps": 100, "num_envs": 16},
            "min_replay_size=500 is never reached: num_timesteps=100 makes 112 transitions",
        ),
    ],
    "es": [
        *RATE,
        ({"population_size": 7}, "population_size=7 must be even.* the nearest are 6 and 8"),
        ({"population_size": 0}, "population_size=0 must be at least 2"),
        ({"perturbation_std": 0.0}, "perturbation_std=0.0 must be above 0"),
        ({"fitness_shaping": "centred_rank"}, "'centred_rank' must be one of .*'centered_rank'"),
        ({"l2coeff": -1.0}, "l2coeff=-1.0 must be at least 0"),
    ],
    "ars": [
        ({"step_size": 0.0}, "step_size=0.0 must be above 0"),
        ({"exploration_noise_std": -1}, "exploration_noise_std=-1 must be above 0"),
        (
            {"number_of_directions": 8, "top_directions": 9},
            "top_directions=9 must not exceed number_of_directions=8",
        ),
    ],
    "apg": [
        *RATE,
        ({"horizon_length": 0}, "horizon_length=0 must be at least 1"),
        ({"adam_b": (0.9, 1.0)}, r"adam_b=\(0.9, 1.0\) must be two numbers in \[0, 1\)"),
        ({"adam_b": [0.9]}, r"adam_b=\[0.9\] must be two numbers"),
        ({"adam_b": 0.9}, "adam_b=0.9 must be two numbers"),
        ({"adam_b": None}, "adam_b=None must be two numbers"),
        ({"adam_b": ("a", "b")}, r"adam_b=\('a', 'b'\) must be two numbers"),
        ({"schedule_decay": 1.5}, r"schedule_decay=1.5 must be in \(0, 1\]"),
        ({"use_float64": True}, "use_float64=True is not supported"),
        ({"zeroth_order": 1.1}, r"zeroth_order=1.1 must be in \[0, 1\]"),
        ({"zeroth_order": 0.5, "num_envs": 1}, "num_envs=1 must be at least 2, or zeroth_order 0"),
    ],
    "bc": [
        *RATE,
        ({"epochs": 0}, "epochs=0 must be at least 1"),
        (
            {"demo_length": 10, "num_envs": 20, "max_replay_size": 100},
            "max_replay_size=100 must hold .*demo_length=10 .* num_envs=20; the least .* is 200",
        ),
        ({"scramble_time": 5}, "scramble_time=5 is not supported yet; leave it out or use 0"),
        ({"teacher": 5}, "teacher=5 must be text"),
    ],
    "reppo": [
        *RATE,
        ({"td_lambda": 1.1}, r"td_lambda=1.1 must be in \[0, 1\]"),
        ({"kl_bound": 0.0}, "kl_bound=0.0 must be above 0"),
        ({"max_grad_norm": 0.0}, "max_grad_norm=0.0 must be above 0"),
        ({"target_entropy": "low"}, "target_entropy='low' must be a number"),
        (
            {"v_min": 5.0, "v_max": 5.0},
            "v_min=5.0 must be below v_max=5.0: the critic is a histogram over this range",
        ),
        (
            {"num_envs": 8, "unroll_length": 5, "num_minibatches": 7},
            "num_envs=8 .*=5 = 40 must be a multiple of num_minibatches=7; .*num_minibatches=8",
        ),
    ],
    "shac": [
        *RATE,
        ({"critic_learning_rate": 0.0}, "critic_learning_rate=0.0 must be above 0"),
        ({"gae_lambda": -0.1}, r"gae_lambda=-0.1 must be in \[0, 1\]"),
        ({"max_gradient_norm": 0.0}, "max_gradient_norm=0.0 must be above 0"),
        ({"entropy_cost": -1e-3}, "entropy_cost=-0.001 must be at least 0"),
        (
            {"horizon_length": 5, "num_envs": 8, "num_minibatches": 7},
            "5 .* num_envs=8 = 40 must be a multiple of num_minibatches=7; .*num_minibatches=8",
        ),
    ],
}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize(("change", "message"), ALL, ids=lambda x: str(x)[:40])
def test_refused_by_all(name, change, message):
    with pytest.raises(ConfigError, match=message):
        plugins.get("trainer", name).check(change)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [(name, *case) for name, cases in OWN.items() for case in cases],
    ids=lambda x: str(x)[:40],
)
def test_refused(name, change, message):
    with pytest.raises(ConfigError, match=message):
        plugins.get("trainer", name).check(change)


def test_googles_name_of_the_folder_is_accepted():
    _, runtime = plugins.get("trainer", "sac").check({"checkpoint_logdir": "somewhere"})
    assert runtime.save_checkpoint_path == "somewhere"


def test_an_interval_of_reports_that_are_off_is_told_unless_they_were_turned_off():
    """Programs that give both always are right."""
    agent = plugins.get("trainer", "ppo")
    with pytest.warns(UserWarning, match="training_metrics_steps=5 has no effect without log_"):
        agent.check({"training_metrics_steps": 5})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for on in (True, False):
            agent.check({"training_metrics_steps": 5, "log_training_metrics": on})


@pytest.mark.parametrize(
    ("agent", "given", "needed"),
    [
        ("sac", {"stop_at_reward": 5.0}, "num_evals"),
        ("es", {"normalize_until_count": 7}, "normalize_observations=True"),
        ("ars", {"normalize_observations_std_eps": 0.1}, "normalize_observations=True"),
        ("ppo", {"memory_size": 128}, 'memory="gru" or "lstm"'),
        ("ppo", {"desired_kl": 0.02, "learning_rate_schedule": "LINEAR"}, "ADAPTIVE_KL"),
        ("ppo", {"learning_rate_schedule_min_lr": 1e-6}, "ADAPTIVE_KL"),
        ("ppo", {"learning_rate_schedule_max_lr": 1e-3}, "ADAPTIVE_KL"),
        ("td3", {"v_min": -1.0}, "num_atoms"),
        ("td3", {"v_max": 1.0}, "num_atoms"),
        ("apg", {"schedule_decay": 0.9, "use_schedule": False}, "use_schedule=True"),
    ],
)
def test_a_setting_without_effect_is_warned_of(agent, given, needed):
    name, value = next(iter(given.items()))
    with pytest.warns(
        UserWarning, match=f"{name}={value} has no effect without .*{needed}"
    ) as told:
        plugins.get("trainer", agent).check(given)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("agent", "given"),
    [
        ("sac", {"stop_at_reward": 5.0, "num_evals": 2}),
        ("es", {"normalize_until_count": 7, "normalize_observations": True}),
        ("bc", {"normalize_observations_std_eps": 0.1, "teacher": "runs/a"}),
        ("ppo", {"memory_size": 128, "memory": "gru"}),
        ("ppo", {"desired_kl": 0.02, "learning_rate_schedule": "ADAPTIVE_KL"}),
        ("td3", {"v_min": -1.0, "v_max": 1.0, "num_atoms": 5}),
        ("apg", {"schedule_decay": 0.9}),
        # Programs that give every setting its default change nothing.
        ("ppo", {"memory": None, "memory_size": 64, "normalize_until_count": None}),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_setting_with_an_effect_is_not_warned_of(agent, given):
    plugins.get("trainer", agent).check(given)


@pytest.mark.parametrize(
    ("agent", "old", "new"),
    [
        ("sac", "checkpoint_logdir", "save_checkpoint_path"),
        ("bc", "eval_length", "episode_length"),
    ],
)
def test_a_setting_has_one_of_its_names(agent, old, new):
    with pytest.raises(ConfigError, match=f"{old} is another name of {new}: give one of the two"):
        plugins.get("trainer", agent).check({old: 5, new: 5})


@pytest.mark.parametrize("name", ["save_interval_steps", "save_interval_seconds"])
def test_times_to_save_at_need_a_folder(name):
    with pytest.raises(ConfigError, match=f"{name}=5 needs a folder: set save_checkpoint_path"):
        plugins.get("trainer", "ars").train(Point(), num_timesteps=1000, **{name: 5})


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1])
def test_numbers_of_numpy_are_recorded_as_pythons(seed):
    config, _ = plugins.get("trainer", "ars").check({"seed": np.uint32(seed)})
    assert config.seed == seed and type(config.seed) is int


def test_a_path_names_a_teacher():
    config, _ = plugins.get("trainer", "bc").check({"teacher": Path("runs/expert")})
    assert config.teacher == "runs/expert"


def test_what_makes_networks_is_described_by_name_and_settings():
    """The same in every process, and not alike where settings are not."""
    leaky = functools.partial(jax.nn.leaky_relu, negative_slope=0.1)
    assert to_json(leaky) == "leaky_relu of [{'negative_slope': 0.1}]"
    assert to_json([jax.nn.swish, Doubled()]) == ["swish", f"{__name__}.Doubled"]
    assert describe_networks([], Doubled()) == {"factory": "Doubled"}


def test_networks_with_a_users_function_have_to_be_passed():
    agent = plugins.get("trainer", "ppo")
    config = {"normalize_observations": False}
    network = {"factory": "make_ppo_networks", "activation": to_json(Doubled())}
    record = {"observation_size": 2, "action_size": 1, "config": config, "network": network}
    found = Checkpoint(Path("runs/a"), 0, {}, record)
    factory = recorded_factory([agent.make_networks], found)
    with pytest.raises(CheckpointError, match=r"'runs/a' .*Doubled'.* as network_factory"):
        restore_policy(found, factory, agent.make_inference_fn, True)


class Doubled:
    """A function that is an object."""

    def __call__(self, x):
        return 2 * x


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["ppo", *OWN])
def test_presets_are_settings_that_the_agent_takes(name):
    agent = plugins.get("trainer", name)
    more: dict[str, Any] = {"teacher": "runs/expert"} if name == "bc" else {}
    for presets in agent.presets.values():
        for settings in presets.values():
            agent.check(settings | more)
