"""The collider of shapes that are known by a signed distance.

`signed_distance` is the collider, and `descent` the projected gradient descent that finds the
points of least distance. Only `brax.colliders.dispatch` imports this folder. Start reading at
`signed_distance`.
"""
