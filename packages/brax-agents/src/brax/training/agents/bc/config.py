"""The settings of BC."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from brax.errors import ConfigError
from brax.training.config import RunConfig, Runtime
from brax.training.settings import number


def teach_first(step: jax.Array) -> jax.Array:
    """Let the teacher act in the first training step, and the student later; both scalars."""
    # Ross et al. 2011, section 3: the parameter-free choice, beta_i = I(i = 1).
    return jnp.where(step == 0, 1.0, 0.0)


@dataclass(frozen=True)
class BCConfig(RunConfig):
    """The numbers of a BC run. With teacher and environment they make the run repeatable."""

    unsupported: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "scramble_time": (0,),
        "madrona_backend": (False,),
        "reset": (True, False),
    }
    old_names: ClassVar[Mapping[str, str]] = {"eval_length": "episode_length"}
    step_formula = "demo_length * num_envs * action_repeat"

    num_envs: int = number(1, 1)
    """Environments that run in parallel, over all devices."""
    demo_length: int = number(100, 1)
    """Actions that each environment takes per training step."""
    epochs: int = number(50, 1)
    """Passes per training step over as many observations as it adds, drawn from the buffer."""
    batch_size: int = number(256, 1)
    """Observations per update, over all devices."""
    learning_rate: float = number(4e-4, 0, open_low=True)
    """Learning rate of Adam."""
    max_replay_size: int = number(262_144, 1, 2**31 - 1)
    """Capacity of the buffer in observations, rounded down to whole training steps."""
    normalize_observations: bool = True
    """Scale observations by their running statistics."""
    deterministic_eval: bool = True
    """Evaluate the mean action, which is the only thing that is fitted, instead of samples."""
    tanh_squash: bool = True
    """Bound the student's actions to (-1, 1) by tanh; False is `distribution_type="normal"`."""
    teacher: str = ""
    """Run or checkpoint, of any agent, whose policy is the teacher."""
    vision: bool = False
    """Let the student read images, the observations whose names begin with `pixels/`."""
    augment_pixels: bool = False
    """Shift the images of updates by up to 4 pixels, drawn for each sample of each update."""

    @property
    def network_settings(self) -> dict[str, Any]:
        """Settings that `network_factory` gets besides sizes and preprocessing."""
        return {} if self.tanh_squash else {"distribution_type": "normal"}

    @property
    def env_steps_per_training_step(self) -> int:
        """Environment steps per training step."""
        return self.rows * self.action_repeat

    @property
    def rows(self) -> int:
        """Observations that one training step adds."""
        return self.demo_length * self.num_envs

    @property
    def updates(self) -> int:
        """Updates per training step."""
        return max(self.epochs * self.rows // self.batch_size, 1)

    def check(self) -> None:
        """Reject a buffer that does not hold one training step.

        Raises:
            ConfigError: naming the numbers and the least that fits.
        """
        super().check()
        if self.rows > self.max_replay_size:
            raise ConfigError(
                f"max_replay_size={self.max_replay_size} must hold a training step, "
                f"demo_length={self.demo_length} * num_envs={self.num_envs}; the least that does "
                f"is {self.rows}."
            )


@dataclass(frozen=True)
class BCRuntime(Runtime):
    """The objects of a BC run: what cannot be written as a number."""

    teacher_inference_fn: Callable[..., Any] | None = None
    """The teacher as a policy `(observation, key) -> (action, extras)`, instead of `teacher`."""
    dagger_beta_fn: Callable[[jax.Array], jax.Array] = teach_first
    """Function from the training step to the probability that the teacher acts, both scalars."""

    def check(self, config: Any) -> None:
        """Reject a run with no teacher, or with two.

        Raises:
            ConfigError: saying how to name one.
        """
        super().check(config)
        if bool(config.teacher) == (self.teacher_inference_fn is not None):
            raise ConfigError(
                "give teacher, the run of an agent, or teacher_inference_fn, a policy; not both."
            )
