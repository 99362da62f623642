"""Models in and pictures out.

Model formats are `mjcf`, `urdf`, `text` and `json`; what shows a trajectory is `html`, `image` and
`live`; `model` keeps parameters, `export` writes policies for other programs, and `mjx` is a
pipeline to compare with. Modules whose names begin with an underscore are shared by these. Nothing
here imports environments or agents. Start reading at `mjcf`.
"""
