"""Readers of model files, the viewer page, pictures, and writers for other programs.

The readers are `mjcf`, `urdf`, `text` and `json`. `html`, `image` and `live` show a trajectory.
`model` stores parameters, `export` writes policies for other programs, and `mjx` is a pipeline to
compare with. Modules whose names begin with an underscore are shared by these. Nothing here imports
environments or agents. Start reading at `mjcf`.
"""
