"""The cores of a CPU as devices of JAX, for the command `brax`; without importing JAX."""

import os

cores_are_devices = False
"""True if `use_all_cores` made the devices, so that nobody minds if only one is used."""


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
