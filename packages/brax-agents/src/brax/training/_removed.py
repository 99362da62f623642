"""Names of Google's trainers that are gone, and what to write instead of each."""

from collections.abc import Callable
from typing import Any

_QUEUE = "use brax.training.replay_buffers.ReplayBuffer"
_VISION = "use brax.training.agents.ppo.networks_vision.make_ppo_networks_vision"
_NORMAL = 'use make_ppo_networks(distribution_type="normal") of brax.training.agents.ppo.networks'
_OWN_TRAINER = "a trainer of your own starts from docs/adding-a-trainer.md"

INSTEAD: dict[str, str] = {
    "brax.training.gradients": _OWN_TRAINER,
    "brax.training.pmap": f"a step is compiled once for all devices; {_OWN_TRAINER}",
    "brax.training.logger": "set log_training_metrics=True, or use brax.training.loggers",
    "brax.training.spectral_norm": "nothing takes its place",
    "brax.training.checkpoint.network_config": "use that of an agent's checkpoint",
    "brax.training.checkpoint.get_network": "use load_policy of an agent's checkpoint",
    "brax.training.checkpoint.load_config": "use brax.training.checkpoint.load, and its record",
    "brax.training.checkpoint.save": "use that of an agent's checkpoint",
    "brax.training.distribution.TanhBijector": "use NormalTanhDistribution",
    "brax.training.distribution.IdentityPostprocessor": "use NormalDistribution",
    "brax.training.networks.CNN": _VISION,
    "brax.training.networks.VisionMLP": _VISION,
    "brax.training.networks.make_policy_network_vision": _VISION,
    "brax.training.networks.make_value_network_vision": _VISION,
    "brax.training.networks.VisionPolicyWithStd": _NORMAL,
    "brax.training.networks.PolicyModuleWithStd": _NORMAL,
    "brax.training.networks.Param": _NORMAL,
    "brax.training.networks.LogParam": _NORMAL,
    "brax.training.networks.MLPHead": "a policy reads one vector, or images",
    "brax.training.networks.make_policy_network_latents": "a policy reads one vector, or images",
    "brax.training.networks.make_model": "use make_mlp",
    "brax.training.networks.make_models": "use make_mlp",
    "brax.training.networks.normalizer_select": "use make_mlp, which reads a part by its name",
    "brax.training.networks.DistributionalCritic": "set use_distributional_critic=True",
    "brax.training.networks.SNMLP": "nothing takes its place",
    "brax.training.replay_buffers.Queue": _QUEUE,
    "brax.training.replay_buffers.QueueBase": _QUEUE,
    "brax.training.replay_buffers.UniformSamplingQueue": _QUEUE,
    "brax.training.replay_buffers.PmapWrapper": _QUEUE,
    "brax.training.replay_buffers.PjitWrapper": _QUEUE,
    "brax.training.types.UInt64": "counts are exact, and Python's integers to the outside",
    "brax.training.agents.es.train.centered_rank": 'set fitness_shaping="centered_rank"',
    "brax.training.agents.es.train.wierstra": 'set fitness_shaping="wierstra"',
    "brax.training.agents.sac.losses.make_losses": "use compute_sac_loss",
}
"""Sentences by full name, as docs/from-google.md lists them."""


def explain_removed(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which says what to write instead of a removed name.

    It raises `ImportError`, since `from module import name` would replace the message of an
    `AttributeError`.
    """

    def missing(name: str) -> Any:
        full = f"{module}.{name}"
        if full in INSTEAD:
            raise ImportError(
                f"{full} of Google's brax is not here: {INSTEAD[full]}. See docs/from-google.md."
            )
        raise AttributeError(f"module '{module}' has no attribute '{name}'")

    return missing
