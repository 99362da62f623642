"""The loop that all agents share, and its parts: program, acting, presets, seeds, progress.

The runner knows a `Learner` only by its interface, so that no module here imports an agent.
`brax.training.agent` and the commands in `cli` import it. Start reading at `loop`, then `parts`,
which makes what the loop is given.
"""
