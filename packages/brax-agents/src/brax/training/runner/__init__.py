"""The training loop that all agents share, with its parts: program, acting, presets, progress.

The runner knows a `Learner` only by its interface; no module here imports an agent.
`brax.training.agent` and the commands in `cli` import it. Start reading at `loop`, then `parts`,
which makes the parts that the loop is given.
"""
