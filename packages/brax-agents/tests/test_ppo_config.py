"""Settings that are refused, before any long work."""

import functools
import math
import types
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from agent_toys import SMALL, Point

from brax import _cores
from brax.env import Env, EpisodeWrapper, State, Wrapper, wrap
from brax.errors import ConfigError, TrainingError
from brax.training.agents.ppo import PPO
from brax.training.agents.ppo import config as ppo_config
from brax.training.agents.ppo import networks as ppo_networks
from brax.training.agents.ppo import train as ppo
from brax.training.agents.sac.networks import make_sac_networks
from brax.training.checkpoints import checkpoint
from brax.training.distributed import devices
from brax.training.runner import program
from brax.training.runner.seeds import train_seeds

FACTORY: Any = ppo_networks.make_ppo_networks


REFUSED = [
    ({"episode_length": 0}, "episode_length=0 must be at least 1"),
    ({"episode_length": None}, "episode_length=None"),
    ({"action_repeat": 0}, "action_repeat=0 must be at least 1"),
    ({"action_repeat": 30}, "action_repeat=30 must not exceed episode_length=20"),
    ({"num_eval_envs": 0}, "num_eval_envs=0"),
    (
        {"num_envs": 24},
        r"batch_size=16 \* num_minibatches=2 = 32 .* num_envs=24; .* num_envs=(16|32)",
    ),
    ({"num_timesteps": -1}, "num_timesteps=-1 must be at least 0"),
    ({"num_timesteps": 1.5}, "num_timesteps=1.5 must be a whole number"),
    ({"discounting": 1.1}, r"discounting=1.1 must be in \[0, 1\]"),
    ({"gae_lambda": -0.1}, r"gae_lambda=-0.1 must be in \[0, 1\]"),
    ({"learning_rate": 0.0}, "learning_rate=0.0 must be above 0"),
    ({"learning_rate": math.nan}, "learning_rate=nan must be above 0"),
    ({"learning_rate": "fast"}, "learning_rate='fast' must be a number"),
    ({"clipping_epsilon": 0.0}, "clipping_epsilon=0.0 must be above 0"),
    ({"entropy_cost": -1e-3}, "entropy_cost=-0.001 must be at least 0"),
    ({"max_grad_norm": 0.0}, "max_grad_norm=0.0 must be above 0"),
    ({"leraning_rate": 1e-3}, "unknown setting 'leraning_rate'. Did you mean 'learning_rate'?"),
    ({"madrona_backend": True}, "madrona_backend=True is not supported yet"),
    (
        {"learning_rate_schedule": "ADAPTIVE"},
        "learning_rate_schedule='ADAPTIVE' must be one of None, NONE, ADAPTIVE_KL, LINEAR. "
        ".*'ADAPTIVE_KL'",
    ),
    (
        {"learning_rate_schedule": "ADAPTIVE_KL", "learning_rate": 0.1},
        "learning_rate=0.1 must be between .*min_lr=1e-05 and .*max_lr=0.01; the nearest is 0.01",
    ),
    ({"desired_kl": 0.0}, "desired_kl=0.0 must be above 0"),
    ({"advantage_estimator": "gea"}, "advantage_estimator='gea' must be one of .*'gae'"),
    ({"clipping_epsilon_value": -1.0}, "clipping_epsilon_value=-1.0 must be above 0"),
    ({"normalize_until_count": 0}, "normalize_until_count=0 must be at least 1"),
    ({"normalize_advantage": "no"}, "normalize_advantage='no' must be true or false"),
    (
        {"restore_value_fn": False, "restore_checkpoint_path": "runs/a"},
        "restore_value_fn=False needs restore_params",
    ),
    (
        {
            "network_factory": lambda *sizes, preprocess_observations_fn: None,
            "use_distributional_critic": True,
        },
        "network_factory takes no use_distributional_critic",
    ),
    (
        {"network_factory": {"policy_network_kernel_init_fn": "ortogonal"}},
        "unknown initializer 'ortogonal'.*'orthogonal'",
    ),
    (
        {
            "network_factory": {
                "policy_network_kernel_init_fn": "normal",
                "policy_network_kernel_init_kwargs": {"size": 1},
            }
        },
        "initializer 'normal': .*'size'",
    ),
    (
        {"network_factory": {"distribution_type": "normal", "noise_std_type": "lgo"}},
        "unknown noise_std_type 'lgo'.*'log'",
    ),
    (
        {"network_factory": {"distribution_type": "normal", "init_noise_std": 0.0}},
        "init_noise_std=0.0 must be above 0.001",
    ),
    (
        {"network_factory": {"distribution_type": "normal", "mean_clip_scale": 0}},
        "mean_clip_scale=0 must be a number above 0, or None",
    ),
    ({"normalize_observations_mode": "emma"}, "normalize_observations_mode='emma'.*'ema'"),
    ({"network_factory": {"activation": "swich"}}, "unknown activation 'swich'.*'swish'"),
    ({"restore_params": (1,)}, "restore_params must be"),
    ({"restore_params": (1, 2)}, "restore_params has the structure"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda x: str(x)[:40])
def test_refused(change, message):
    settings: dict[str, Any] = {"num_timesteps": 1000, **SMALL, **change}
    with pytest.raises(ConfigError, match=message):
        ppo.train(Point(), **settings)


def test_memory_that_does_not_suffice(monkeypatch, tmp_path):
    def full(*args):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 7 bytes.")

    monkeypatch.setattr(program.Program, "compile_init", full)
    with pytest.raises(TrainingError, match="full with num_envs=16: use fewer, such as 8"):
        ppo.train(Point(), 0, **SMALL, run_evals=False)
    folders = [tmp_path / "0", tmp_path / "1"]
    with pytest.raises(TrainingError, match=r"num_envs=16: .* or --one-by-one, since 2 seeds"):
        train_seeds(PPO, Point(), [0, 1], print, folders, **SMALL, run_evals=False)


def test_a_factory_that_passes_settings_on_gets_them():
    def factory(*sizes, **settings):
        got.append(settings)
        return FACTORY(*sizes, **settings)

    got: list[Any] = []
    settings: dict[str, Any] = SMALL | {"network_factory": factory, "run_evals": False}
    ppo.train(Point(), 0, **settings, use_distributional_critic=True)
    assert got and all(given["use_distributional_critic"] is True for given in got)


def test_sizes_may_be_numbers_of_numpy(tmp_path):
    """As an environment has them that computes its sizes from shapes."""

    class Counted(Point):
        observation_size: Any = np.prod((2, 1))
        action_size: Any = np.int64(1)

    class Named(Counted):
        observation_size: Any = types.MappingProxyType({"state": np.int64(2)})

        def reset(self, rng):
            state = super().reset(rng)
            return state.replace(obs={"state": state.obs})

        def step(self, state, action):
            new = super().step(state.replace(obs=state.obs["state"]), action)
            return new.replace(obs={"state": new.obs})

    settings: dict[str, Any] = SMALL | {"run_evals": False}
    for environment in (Counted(), Named()):
        folder = tmp_path / type(environment).__name__
        ppo.train(environment, 0, **settings, save_checkpoint_path=folder)
        record = checkpoint.load(folder).record
        size = record["observation_size"]
        assert (size["state"] if isinstance(size, dict) else size) == 2
        assert record["action_size"] == 1


def test_no_devices_are_too_few():
    with pytest.raises(ConfigError, match="max_devices_per_host=0 must be at least 1"):
        ppo.train(Point(), 1000, **SMALL, max_devices_per_host=0)


def test_all_wrong_numbers_are_named_at_once():
    with pytest.raises(ConfigError, match=r"discounting=2.*gae_lambda=3"):
        ppo.train(Point(), 1000, **{**SMALL, "discounting": 2, "gae_lambda": 3})


def test_more_devices_than_there_are():
    have = jax.device_count()
    with pytest.raises(ConfigError, match=f"asked for {have + 6} devices, have {have}"):
        ppo.train(Point(), 1000, **SMALL, max_devices_per_host=have + 6)


def test_devices_that_do_not_divide_the_environments(monkeypatch):
    """An error where the user made the devices; of those of the command `brax` one is used."""
    monkeypatch.setattr(jax, "devices", lambda: [jax.local_devices()[0]] * 8)
    with pytest.raises(
        ConfigError, match=r"num_envs=100 cannot be split over 8 devices\. Use 96 or"
    ):
        devices.env_mesh(100)
    monkeypatch.setattr(_cores, "cores_are_devices", True)
    assert devices.env_mesh(100).size == 1 and devices.env_mesh(100, 4).size == 4
    with pytest.raises(ConfigError, match="num_envs=100 cannot be split over 8 devices"):
        devices.env_mesh(100, 8)


def test_googles_defaults_of_what_is_not_supported_are_accepted():
    accepted = {name: values[0] for name, values in ppo_config.PPOConfig.unsupported.items()}
    config, _ = ppo_config.parse({"num_timesteps": 5, **accepted})
    assert config.num_timesteps == 5


def test_an_environment_without_truncation_is_refused():
    class Bare(Point):
        """Batched by itself, without the wrappers' accounts."""

        def reset(self, rng):
            return jax.vmap(super().reset)(rng)

    with pytest.raises(ConfigError, match="info has no truncation"):
        ppo.train(Bare(), 1000, **SMALL, wrap_env=False)


def test_an_environment_that_keeps_no_last_observation_is_warned_of_once():
    class Forgets(Wrapper):
        """Wrapped by other wrappers than ours."""

        def reset(self, rng):
            state = self.env.reset(rng)
            return state.replace(info={k: v for k, v in state.info.items() if k != "terminal_obs"})

        def step(self, state, action):
            info = state.info | {"terminal_obs": state.obs}
            state = self.env.step(state.replace(info=info), action)
            return state.replace(info={k: v for k, v in state.info.items() if k != "terminal_obs"})

    env = Forgets(wrap(Point(), 20))
    settings: dict[str, Any] = {**SMALL, "wrap_env": False, "num_evals": 0}
    with pytest.warns(UserWarning, match="info has no terminal_obs.* stands for it") as told:
        ppo.train(env, 0, **settings, bootstrap_on_timeout=True)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ppo.train(env, 0, **settings, bootstrap_on_timeout=False)


def test_an_environment_that_is_not_batched_is_refused():
    class Single(Env):
        action_size = 1

        def reset(self, rng):
            x = jnp.zeros(2)
            return State(x, x, jnp.zeros(()), jnp.zeros(()))

        def step(self, state, action):
            return state

    with pytest.raises(ConfigError, match="one for each of num_envs"):
        ppo.train(Single(), 1000, **SMALL, wrap_env=False)


class Sized(Point):
    """Says what size its observations have."""

    observation_size = 3


class Idle(Point):
    """Takes no actions."""

    action_size = 0


class Gym:
    """An environment as another package has them."""

    def reset(self):
        """Start an episode."""

    def step(self, action):
        """Advances."""


class Listed(Point):
    """Observes a list of numbers."""

    def reset(self, rng):
        state = super().reset(rng)
        return state.replace(obs=[*state.obs])


class Wide(Point):
    """Observes three numbers."""

    def reset(self, rng):
        state = super().reset(rng)
        return state.replace(obs=jnp.append(state.obs, 0.0))


@pytest.mark.parametrize(
    ("environment", "settings", "message"),
    [
        (
            "fast",
            {},
            r"environment is the name 'fast': give .*, brax.envs.get_environment\('fast'\)",
        ),
        (EpisodeWrapper(Point(), 20), {"eval_env": 3}, "eval_env=3 must be an environment"),
        (Wrapper(wrap(Point(), 20)), {}, r"wrapped already: Wrapper is around AutoResetWrapper"),
        (Point(), {"eval_env": Wide()}, "eval_env has observation_size 3; the .* trained for 2"),
        (Sized(), {}, r"observation_size is 3, but reset returns .* {'state': \(2,\)}"),
        (Idle(), {}, "environment: action_size is 0; expected at least 1"),
        (Point, {}, "environment is the class Point: give an instance, Point"),
        (Gym(), {}, r"is not an environment: .* this has no method or property action_size"),
        (Listed(), {}, "observation 'state' is a list; agents read arrays"),
        (Point(), {"wrap_env_fn": lambda env, **_: None}, "what wrap_env_fn returned=None is no"),
        *(
            (Point(), {"network_factory": {name: sizes}}, r"such as \[64, 64\]; got")
            for name, sizes in (
                ("policy_hidden_layer_sizes", 64),
                ("policy_hidden_layer_sizes", [-3]),
                ("value_hidden_layer_sizes", "64"),
                ("value_hidden_layer_sizes", [64.0]),
            )
        ),
        (Point(), {"network_factory": {"num_quantiles": 0}}, "num_quantiles=0 must be a whole"),
        (Point(), {"network_factory": {"activation": ["relu"]}}, "unknown activation '"),
        (Point(), {"network_factory": lambda: None}, "network_factory cannot be called: .* Its"),
        (
            Point(),
            {"network_factory": make_sac_networks},
            "returned a SACNetworks without value_network; ppo needs",
        ),
        (
            Point(),
            {"network_factory": {"policy_hidden_layer_size": [3]}},
            r"takes no policy_hidden_layer_size. Did you mean 'policy_hidden_layer_sizes'\?",
        ),
        (
            Point(),
            {"network_factory": functools.partial(FACTORY, typo=3)},
            "network_factory cannot be called: .*incorrect arguments",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_compiled(
    environment, settings, message, monkeypatch
):
    monkeypatch.setattr(program.Program, "compile_init", pytest.fail)
    with pytest.raises(ConfigError, match=message):
        ppo.train(environment, 1000, **{**SMALL, **settings})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda x: x * np.nan, "is not finite"),
        (lambda x: x[..., :-1], "has shape"),
    ],
)
def test_parameters_to_start_from_must_fit(spoil, message):
    factory = functools.partial(FACTORY, **SMALL["network_factory"])
    networks = factory(2, 1)
    key = jax.random.key(0)
    policy = jax.tree.map(spoil, networks.policy_network.init(key))
    params = ((), policy, networks.value_network.init(key))
    settings: dict[str, Any] = {**SMALL, "normalize_observations": False}
    with pytest.raises(ConfigError, match=rf"restore_params: policy/.* {message}"):
        ppo.train(Point(), 1000, **settings, restore_params=params)


@pytest.mark.parametrize("params", [None, 3, (1,), (1, 2, 3, 4), {"policy": 1}])
def test_make_policy_says_what_it_needs(params):
    make_policy = ppo_networks.make_inference_fn(ppo_networks.make_ppo_networks(2, 1))
    with pytest.raises(ConfigError, match=r"expected the params that train\(\) returned"):
        make_policy(params)


@pytest.mark.slow
def test_make_policy_misses_the_normalizer():
    networks = ppo_networks.make_ppo_networks(2, 1)
    key = jax.random.key(0)
    params = networks.policy_network.init(key), networks.value_network.init(key)
    with pytest.raises(ConfigError, match=r"got \(policy, value\) without the normalizer"):
        ppo_networks.make_inference_fn(networks)(params)


@pytest.mark.slow
def test_dictionaries_of_observations():
    size = {"state": (3,), "privileged_state": (5,)}
    networks = ppo_networks.make_ppo_networks(size, 2, value_obs_key="privileged_state")
    obs = {"state": jnp.ones((4, 3)), "privileged_state": jnp.ones((4, 5))}
    key = jax.random.key(0)
    policy, value = networks.policy_network, networks.value_network
    assert policy.apply((), policy.init(key), obs).shape == (4, 4)
    assert value.apply((), value.init(key), obs).shape == (4,)
    with pytest.raises(ConfigError, match=r"no observation 'sate'.*Did you mean 'state'"):
        ppo_networks.make_ppo_networks(size, 2, policy_obs_key="sate")
