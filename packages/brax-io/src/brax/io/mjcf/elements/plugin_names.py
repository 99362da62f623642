"""MuJoCo's own plugins in compiled models: which one an instance is of, and its attributes."""

import functools
from collections.abc import Mapping
from types import MappingProxyType

import mujoco
import numpy as np

_DRIVEN = """<worldbody><body><joint name="it"/><geom size="1"/></body></worldbody>
<actuator><plugin joint="it" instance="it" plugin="mujoco.pid"/></actuator>"""

KNOWN: Mapping[str, str] = MappingProxyType(
    {
        "mujoco.pid": _DRIVEN,
        **dict.fromkeys([f"mujoco.sdf.{n}" for n in ("bolt", "bowl", "gear", "nut", "torus")], ""),
    }
)
"""The plugins that are supported, with the elements that an instance needs in a model."""


def plugin_name(model: mujoco.MjModel, instance: int) -> str:
    """Return the plugin of an instance; empty for one that is not supported, or no instance."""
    return "" if instance < 0 else _slots().get(int(model.plugin[instance]), "")


def texts(model: mujoco.MjModel, instance: int) -> list[str]:
    """Return the attributes of an instance in the plugin's order; empty for one that is not set."""
    # Each is a text that ends with a zero. The last entries belong to the next instance.
    text = model.plugin_attr[model.plugin_attradr[instance] :].astype(np.uint8)
    return text.tobytes().decode(errors="replace").split("\0")


@functools.cache
def _slots() -> dict[int, str]:
    """Return the plugins by their numbers in compiled models."""
    # The numbers depend on the order in which a process loads plugins, and MuJoCo's Python package
    # does not give the names. A model with one plugin does.
    found = {}
    for name, rest in KNOWN.items():
        text = f"<plugin plugin='{name}'><instance name='it'/></plugin>"
        text = f"<mujoco><extension>{text}</extension>{rest}</mujoco>"
        try:
            model = mujoco.MjModel.from_xml_string(text)
        except ValueError:  # it is not installed
            continue
        found[int(model.plugin[0])] = name
    return found
