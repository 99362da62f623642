"""Shapes and types of arrays, under the path and the name that users import."""

import jax

Array = jax.ShapeDtypeStruct
