"""Readers of model files, the viewer page, pictures, and writers for other programs.

The readers are `mjcf`, `urdf`, `text` and `json`. `html`, `image` and `live` show a trajectory.
`model` stores parameters, and `export` writes policies for other programs. The pipeline `mjx` is in
`brax.mjx`. Modules whose names begin with an underscore are shared by these. Nothing here imports
environments or agents. Start reading at `mjcf`.
"""
