"""Collider of shapes that are known by a signed distance.

`signed_distance` is the collider, and `descent` is the projected gradient descent by which it finds
the nearest points. Only `brax.colliders.dispatch` imports this folder. Start reading at
`signed_distance`.
"""
