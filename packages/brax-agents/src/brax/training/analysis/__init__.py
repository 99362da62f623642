"""Learning curves, their plots, and the statistical comparison of runs.

These modules read run directories and never train. The commands in `cli` import them. Start reading
at `curves`.
"""
