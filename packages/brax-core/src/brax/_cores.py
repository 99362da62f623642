"""CPU cores as devices of JAX, for the command `brax`. This module must not import JAX."""

import os

cores_are_devices = False
"""True if `use_all_cores` made the devices; then it is no mistake to use only one of them."""


def use_all_cores() -> None:
    """Make every core a device of JAX, unless the user has set the number of devices.

    On two cores, simulation is faster by a tenth to a third, and several seeds train in
    parallel. A single agent trains on one device, whose work all cores share.
    """
    global cores_are_devices
    told = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    if not told and "JAX_NUM_CPU_DEVICES" not in os.environ:
        affinity = getattr(os, "sched_getaffinity", None)  # Linux only
        cores = len(affinity(0)) if affinity else os.cpu_count() or 1
        os.environ["JAX_NUM_CPU_DEVICES"] = str(cores)
        cores_are_devices = True
