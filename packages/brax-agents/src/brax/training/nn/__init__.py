"""Layers, image encoders, distributions of actions, and the network factories that agents call.

These modules import each other and `brax.training.types` only; everything else in `brax.training`
may import them. Start reading at `networks`.
"""
