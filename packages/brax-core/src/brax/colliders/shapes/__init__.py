"""Geometry types, one a file.

A geometry type gives its size parameters, its nearest points or support points, and what rays hit.
This folder knows no collider and no pair of shapes, and builds on `brax.colliders.interface` alone.
The registry imports the types by name; colliders import the few that they are about. Start reading
at `sphere`.
"""
