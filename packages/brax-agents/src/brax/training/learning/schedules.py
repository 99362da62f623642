"""Learning rates that may fall during a run."""

from typing import Any

import optax

LINEAR = "LINEAR"
"""The schedule of a learning rate that falls linearly to zero over a run."""


def learning_rate(config: Any, updates: float) -> float | optax.Schedule:
    """Return the learning rate, which falls linearly to zero over a run if it is to.

    It is a function of the number of updates so far, which Adam counts in its state. Skipped
    updates do not count.

    Args:
        config: the numbers of an agent that has `learning_rate` and `learning_rate_schedule`.
        updates: updates of one training step, on average.
    """
    rate: float = config.learning_rate
    if config.learning_rate_schedule != LINEAR:
        return rate
    return optax.linear_schedule(rate, 0.0, config.training_steps * updates)
