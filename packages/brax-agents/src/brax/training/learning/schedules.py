"""Learning rates that fall as a run goes on."""

from typing import Any

import optax


def falling(config: Any) -> optax.Schedule:
    """Return a learning rate that falls linearly to zero at the last update of a run.

    It is a function of the number of updates so far, which Adam counts in its state. Skipped
    updates do not count.

    Args:
        config: the numbers of an agent that passes over experience in epochs and minibatches.
    """
    updates = config.training_steps * config.num_updates_per_batch * config.num_minibatches
    return optax.linear_schedule(config.learning_rate, 0.0, updates)
