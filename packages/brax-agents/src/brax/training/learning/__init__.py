"""Algorithms that several agents share: advantages, replay buffers, gradient estimates, search.

These are pure functions and pytrees. They may import `nn`, `distributed.devices` and the modules at
the top of `brax.training`; agents import them. Start reading at `advantages`.
"""
