"""The state of a process that other people's code depends on.

Run as a program it imports every public module of brax and prints, as JSON, how many there are and
what each of them changed.
"""

import atexit
import contextlib
import faulthandler
import gc
import importlib
import json
import locale
import logging
import os
import pkgutil
import signal
import sys
import threading
import warnings

import jax
import numpy as np

LIBRARIES = (
    *("scipy.special", "scipy.sparse", "llvmlite.binding", "chex", "pluggy", "click", "rich"),
    *("mujoco", "mujoco.mjx", "flax.linen", "optax", "orbax.checkpoint", "PIL.Image", "av"),
    *("gymnasium", "dm_env", "gymnax", "torch", "stable_baselines3", "onnx", "matplotlib", "wandb"),
)
"""Libraries that brax imports. What they change is theirs, so they are imported first."""


def snapshot():
    """Return what a library must leave alone, by name."""
    root, ours = logging.getLogger(), logging.getLogger("brax")
    return {
        "os.environ": dict(os.environ),
        "the working directory": os.getcwd(),
        "sys.path": (list(sys.path), list(sys.path_hooks), list(sys.meta_path)),
        "jax.config": dict(jax.config.values),
        "the default types": (str(jax.dtypes.canonicalize_dtype(float)), str(np.array(0.5).dtype)),
        "JAX's devices are open": jax._src.xla_bridge.backends_are_initialized(),
        "warnings": (list(warnings.filters), warnings.showwarning, warnings.formatwarning),
        "signal handlers": {int(n): signal.getsignal(n) for n in signal.valid_signals()},
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook),
        "standard streams": (sys.stdin, sys.stdout, sys.stderr),
        "the root logger": (root.level, list(root.handlers), root.disabled, root.manager.disable),
        "brax's logger": (ours.level, list(ours.handlers), ours.propagate),
        "JAX's logger": (logging.getLogger("jax").level, list(logging.getLogger("jax").handlers)),
        "numpy's errors": np.geterr(),
        "numpy's print options": str(np.get_printoptions()),
        "numpy's random state": str(np.random.get_state()),
        "the recursion limit": sys.getrecursionlimit(),
        "the thread switch interval": sys.getswitchinterval(),
        "the garbage collector": (gc.isenabled(), gc.get_threshold(), list(gc.callbacks)),
        "the locale": locale.setlocale(locale.LC_ALL),
        "the fault handler": faulthandler.is_enabled(),
        "threads": sorted(t.name for t in threading.enumerate()),
        "functions at exit": atexit._ncallbacks(),
    }


def changed(before, after):
    """Return what differs between two snapshots, as sentences."""
    return [
        f"{name}: {before[name]} -> {after[name]}" for name in before if before[name] != after[name]
    ]


def public_modules():
    """Return the names of all modules of brax without an underscore, the package itself first."""
    import brax

    found = (m.name for m in pkgutil.walk_packages(brax.__path__, "brax."))
    return ["brax", *(name for name in found if not any(p[0] == "_" for p in name.split(".")))]


def main():
    for library in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    before, problems = snapshot(), []
    names = public_modules()
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:  # a wrapper of a library that is not installed
            assert (error.name or "").split(".")[0] != "brax", name
        after = snapshot()
        problems += [f"{name} changes {what}" for what in changed(before, after)]
        before = after
    print(json.dumps({"modules": len(names), "problems": problems}))


if __name__ == "__main__":
    main()
