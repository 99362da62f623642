"""The commands that brax-agents adds to `brax`: train, resume, evaluate, compare, sweep and plot.

A module here reads the options, calls the rest of `brax.training` and prints. Nothing outside this
folder imports it but the plugin registry. Start reading at `train`.
"""
