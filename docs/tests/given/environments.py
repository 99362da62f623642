"""Names for environments.md."""

from pathlib import Path

import jax
import jax.numpy as jnp

import brax
from brax.env import wrap

CART = Path(brax.__file__).parents[4] / "docs/examples/cart.py"
exec(CART.read_text("utf-8"))
