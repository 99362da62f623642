"""The elements of MuJoCo's compiled model, one kind a module, as the model builder takes them.

A module here reads `MjModel` and returns arguments for `ModelBuilder`, or the reason why an element
is left out. `build` and `support` import these modules. Start reading at `geoms`.
"""
