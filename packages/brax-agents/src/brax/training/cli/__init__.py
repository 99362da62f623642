"""The commands that brax-agents adds to `brax`: train, resume, eval, compare, sweep and plot.

A module here reads the options, calls the rest of `brax.training` and prints. Only the plugin
registry imports this folder. Start reading at `train`.
"""
