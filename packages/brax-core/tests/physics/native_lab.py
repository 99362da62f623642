"""A function as the CPU code generator translates it, and as XLA compiles it."""

import jax
import jax.numpy as jnp

from brax.kernels.codegen import cpu
from brax.kernels.codegen.call import Form, Kernel, trace


def by_xla(fun, args):
    """Return the results of a function of arrays with the batch on the last axis, from XLA."""
    return jax.jit(lambda *x: fun(*x))(*args)


def translated(fun, args, known=()):
    """Return the same results from a kernel, and require that the function is translated.

    Args:
        fun: the function.
        args: its operands.
        known: of each operand, its numbers if they are known while the program is lowered.
    """
    kernel, form = kernel_of(fun, args), form_of(args)._replace(known=known)
    assert cpu.supports(kernel, form).native
    return jax.jit(cpu.compile(kernel, form))(*args)


def kernel_of(fun, args):
    """Return the kernel of a function of arrays with the batch on the last axis."""
    return Kernel(trace(fun, [(x.shape[:-1], x.dtype) for x in args]))


def form_of(args, devices=1):
    """Return the form of a kernel's call on a CPU; with several devices it uses one thread."""
    return Form("cpu", tuple(x.shape[-1] for x in args), devices=devices)


def by_environment(fun):
    """Return a function of arrays with the batch last from one of arrays without a batch."""

    def whole(*args):
        return tuple(jax.tree.leaves(jax.vmap(fun, in_axes=-1, out_axes=-1)(*args)))

    return whole


def native(fun, *args):
    """Return what `by_environment` makes of a function, translated."""
    return translated(by_environment(fun), [jnp.asarray(x) for x in args])
