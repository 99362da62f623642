"""Polynomial springs and dampers: their coefficient depends on how far or fast they move.

Source: MuJoCo's documentation, XML reference, body/joint/stiffness and body/joint/damping.
"""

import jax


def coefficient(linear: jax.Array, poly: jax.Array, x: jax.Array) -> jax.Array:
    """Return the stiffness or damping c(x) = linear + poly0 x + poly1 x² of a force -c(x) x.

    Args:
        linear: coefficients of the linear terms, (n, batch).
        poly: coefficients of the terms of second and third order, (n, 2, batch).
        x: displacements, or magnitudes of rates, (n or 1, batch).
    """
    return linear + x * (poly[:, 0] + x * poly[:, 1])


def slope(linear: jax.Array, poly: jax.Array, x: jax.Array) -> jax.Array:
    """Return the derivative of c(x) x by x; the arguments are those of `coefficient`."""
    return linear + x * (2.0 * poly[:, 0] + x * 3.0 * poly[:, 1])
