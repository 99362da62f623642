"""Recurrent cells, and a module that puts one in front of dense layers."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen

from brax.errors import ConfigError, closest
from brax.training.nn.layers import KERNEL_INIT


class Cell(NamedTuple):
    """A recurrent cell: how its memory changes in a step. Its output is the end of the memory."""

    gates: int
    """Numbers that a unit computes from the inputs and from the units' outputs."""
    parts: int
    """Numbers that a unit remembers; the last of them is its output."""
    step: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    """Function of the memory (..., parts * units), and of the products of the inputs and of the
    outputs with their weights, (..., gates * units), to the next memory.
    """


def gru(memory: jax.Array, inputs: jax.Array, outputs: jax.Array) -> jax.Array:
    """Return the next memory of a gated recurrent unit, which is its output.

    Source: Cho et al. 2014 (1406.1078), eq. 5 to 8, with the reset gate behind the product with the
    weights, as libraries for GPUs have it.
    """
    (reset, keep, new), (reset_of, keep_of, new_of) = (
        jnp.split(x, 3, axis=-1) for x in (inputs, outputs)
    )
    share = jax.nn.sigmoid(keep + keep_of)
    candidate = jnp.tanh(new + jax.nn.sigmoid(reset + reset_of) * new_of)
    return share * memory + (1.0 - share) * candidate


def lstm(memory: jax.Array, inputs: jax.Array, outputs: jax.Array) -> jax.Array:
    """Return the next memory of a long short-term memory: the cells, then the outputs.

    Source: Gers, Schmidhuber, Cummins 2000, with the bias of 1 of the forget gate of Jozefowicz,
    Zaremba, Sutskever 2015.
    """
    add, forget, new, out = jnp.split(inputs + outputs, 4, axis=-1)
    cell, _ = jnp.split(memory, 2, axis=-1)
    cell = jax.nn.sigmoid(forget + 1.0) * cell + jax.nn.sigmoid(add) * jnp.tanh(new)
    return jnp.concatenate([cell, jax.nn.sigmoid(out) * jnp.tanh(cell)], axis=-1)


CELLS = {"gru": Cell(3, 1, gru), "lstm": Cell(4, 2, lstm)}
"""Cells by their names in settings and checkpoints."""


def cell_of(name: str) -> Cell:
    """Return the cell of a name.

    Raises:
        ConfigError: if there is none.
    """
    if name not in CELLS:
        raise ConfigError(
            f"unknown memory '{name}'. Allowed: {', '.join(CELLS)}.{closest(str(name), CELLS)}"
        )
    return CELLS[name]


class Recurrent(linen.Module):
    """A module whose input is features beside what a recurrent cell made of all features so far.

    The features pass the cell by too: a network with memory can thus compute whatever one without
    memory can.
    """

    head: linen.Module
    cell: Cell
    units: int

    @linen.compact
    def __call__(
        self, features: jax.Array, memory: jax.Array, first: jax.Array | None = None
    ) -> tuple[jax.Array, jax.Array]:
        """Return the outputs of `head` and the memory after them.

        Args:
            features: features of one step (..., n), or of a sequence (rows, time, n).
            memory: memory before the step, (..., parts * units); before the first step of a
                sequence, (rows, parts * units).
            first: for a sequence, 1 at the first steps of episodes, which begin without memory,
                else 0, (rows, time).
        """
        size = self.cell.gates * self.units
        # Products with the inputs are computed for all steps at once, outside of the loop.
        inputs = linen.Dense(size, kernel_init=KERNEL_INIT, name="inputs")(features)
        kernel = self.param("kernel", _orthogonal, (self.units, size))
        bias = self.param("bias", jax.nn.initializers.zeros, (size,))

        def step(memory: jax.Array, inputs: jax.Array) -> jax.Array:
            return self.cell.step(memory, inputs, memory[..., -self.units :] @ kernel + bias)

        if first is None:
            memory = memories = step(memory, inputs)
        else:
            # Time is the first axis of what is looped over.
            steps = jnp.swapaxes(inputs, 0, 1), first.T
            memory, memories = jax.lax.scan(functools.partial(_scanned, step), memory, steps)
            memories = jnp.swapaxes(memories, 0, 1)
        data = jnp.concatenate([features, memories[..., -self.units :]], axis=-1)
        return self.head(data), memory


def _scanned(
    step: Callable[[jax.Array, jax.Array], jax.Array],
    memory: jax.Array,
    now: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array]:
    """Take one step of a sequence, without memory where an episode begins."""
    inputs, first = now
    memory = step(jnp.where(first[:, None] > 0, 0.0, memory), inputs)
    return memory, memory


def _orthogonal(key: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """Return weights from outputs to gates, (units, gates * units): an orthogonal matrix a gate."""
    units, size = shape
    make = jax.nn.initializers.orthogonal()
    keys = jax.random.split(key, size // units)
    return jnp.concatenate([make(key, (units, units)) for key in keys], axis=1)
