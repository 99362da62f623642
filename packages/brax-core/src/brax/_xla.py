"""XLA's settings that the engine is fast with; without importing JAX."""

import os
import sys
import warnings

_SETTINGS = {
    "xla_backend_extra_options": (
        "xla_cpu_use_multi_output_fusion=true,xla_cpu_disable_tiled_emitter=true"
    ),
    "xla_cpu_prefer_vector_width": "512",
}


def prefer_wide_loops() -> None:
    """Lets XLA's CPU compiler make few, wide loops; an option that the user set stays as it is.

    That is for kernels which are left to it, see `brax.native`. Without it each component of a
    vector is a loop of its own, which repeats what they share: left to XLA the ant takes a quarter
    longer to compile in the spring pipeline and six times as long in the generalized one, and a
    tenth longer to run. XLA reads it from the environment only, once, when JAX starts its CPU
    device; where that has happened, a warning says so.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    ours = [f"--{name}={value}" for name, value in _SETTINGS.items() if name not in flags]
    if ours and _has_started():
        warnings.warn(
            "JAX computed something before brax was imported, so XLA's CPU compiler works without "
            "the settings that the engine needs: compiling takes up to six times as long and that "
            "much more memory. Import brax first.",
            RuntimeWarning,
            stacklevel=3,
        )
    os.environ["XLA_FLAGS"] = " ".join([flags, *ours]).strip()


cores_are_devices = False
"""Whether `use_all_cores` made the devices, so that nobody minds if only one is used."""


def use_all_cores() -> None:
    """Makes every core a device of JAX's, where the user has not said how many there are.

    Physics alone is faster so, by a tenth to a third on two cores, and seeds learn side by side.
    One agent does not: it trains on one of the devices, whose work all cores share.
    """
    global cores_are_devices
    told = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not told and "JAX_NUM_CPU_DEVICES" not in os.environ:
        affinity = getattr(os, "sched_getaffinity", None)  # Linux only
        cores = len(affinity(0)) if affinity else os.cpu_count() or 1
        os.environ["JAX_NUM_CPU_DEVICES"] = str(cores)
        cores_are_devices = True


def _has_started() -> bool:
    """Whether JAX, if it is imported at all, has opened its devices."""
    bridge = sys.modules.get("jax._src.xla_bridge")  # no public function tells without opening them
    started = getattr(bridge, "backends_are_initialized", None)
    return bool(started and started())
