"""The reference has every public name."""

import re

import public_api
import pytest
from mkdocstrings import Inventory


@pytest.fixture(scope="module")
def inventory(site):
    with (site / "objects.inv").open("rb") as file:
        return Inventory.parse_sphinx(file)


def public():
    """Return the dotted name of every line of public-api.txt that defines one."""
    names, module, owner = [], "", ""
    for line in public_api.PAGE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            module = line.removeprefix("## ")
            continue
        found = re.match(r"( *)(?:def |class )?(\w+)(?: = (brax\.\S+))?", line)
        if line.startswith("#") or not found or line.strip().startswith("@"):
            continue
        indented, name, origin = found.groups()
        if not indented:
            owner = f"{module}.{name}"
        # Elsewhere defined names are links, and the arguments of a class are with the class.
        names.append(f"{owner}.{name}" if indented else origin or owner)
    return [name for name in names if not name.endswith(".__init__")]


def test_every_public_name_is_in_the_reference(inventory):
    names = public()
    assert len(names) > 1400
    assert {"brax.base.System", "brax.base.Motion.vel", "brax.kernels.explain"} <= set(names)
    assert [name for name in names if name not in inventory] == []


def test_names_lead_to_their_place(inventory, site):
    for name in ("brax.joints.JointType.transform", "brax.envs.api.get_environment"):
        page, _, anchor = inventory[name].uri.partition("#")
        assert f'id="{anchor.replace("$", name)}"' in (site / page).read_text("utf-8")


def test_the_index_has_every_module(site):
    index = (site / "reference/index.html").read_text("utf-8")
    modules = [m for m in public_api.public_modules() if public_api.public_names(m)]
    assert [m for m in modules if f'href="python/{m}.html"' not in index] == []


def test_commands_and_settings_are_there(site):
    commands = (site / "reference/command-line.html").read_text("utf-8")
    assert all(f'id="brax-{name}"' in commands for name in ("train", "sweep", "plugins-list"))
    settings = (site / "reference/settings.html").read_text("utf-8")
    assert all(word in settings for word in ("clipping_epsilon", "num_timesteps", "[ant.cpu]"))
    # Each setting has a meaning, the last cell of its row.
    assert "<td></td>\n</tr>" not in settings and "</td>\n</tr>" in settings
