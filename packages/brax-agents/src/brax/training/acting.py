"""Acting: steps and unrolls of batched environments, under the path that users import."""

from brax.training.runner.acting import actor_step as actor_step
from brax.training.runner.acting import generate_unroll as generate_unroll
from brax.training.runner.acting import last_observation as last_observation
from brax.training.runner.acting import over_batch as over_batch
from brax.training.runner.evaluator import Evaluator as Evaluator
