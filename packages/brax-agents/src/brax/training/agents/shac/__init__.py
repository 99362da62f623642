"""Short-horizon actor-critic."""
