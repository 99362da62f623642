"""ES's policies out of checkpoints."""

from brax.training.agents.es.trainer import ES

load_policy = ES.load_policy
