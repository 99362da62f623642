"""Agents that learn on Brax environments, and what they share: networks, loop, checkpoints."""
