"""Gallery: viewer pages of trained agents, and of scenes whose outcome follows from arithmetic.

`python website/gallery.py` computes the motions, of the agents from their stored policies, and
writes a file for each to docs/gallery/, without the viewer's code. The site puts the code back, and
the pages docs/gallery*.md show them. `python website/gallery.py RUN ...` first stores the policies
of runs of `brax train`, given their folders, and writes only the files of these agents.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gallery_agents as agents
import gallery_scenes as scenes
import numpy as np
import viewers

from brax.base import State, System
from brax.io import html as viewer
from brax.io.viewer import motion

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/gallery"

GRID = 2.0**14
"""Numbers are rounded to multiples of its inverse, whose low bytes are zero and compress well."""

LINK = re.compile(r'^\[Play\]\(gallery/(\w+)\.json "(.*)"\)$', re.M)


def store(
    name: str, title: str, sys: System, states: State, dt: float, series: Mapping[str, Any]
) -> None:
    """Write the page of a trajectory, without the viewer's code, and with rounded numbers."""
    numbers = motion.arrays(sys, states)
    numbers |= {f"series/{key}": np.asarray(values) for key, values in series.items()}
    rounded = {key: np.round(values * GRID) / GRID for key, values in numbers.items()}
    parts = {"title": title, "viewers": viewer._part(sys, rounded, title, dt, None)}
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(parts, indent=1) + "\n", "utf-8")
    print(path.relative_to(ROOT), path.stat().st_size, "bytes")


def frames(markdown: str) -> str:
    """Return a page's text with a frame in the place of each link to a stored viewer."""
    return LINK.sub(lambda link: viewers.frame(f"gallery/{link[1]}.html", link[2], 420), markdown)


def pages() -> dict[str, str]:
    """Return the stored pages with the viewer's code, by address."""
    stored = {path.stem: json.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.json")}
    return {f"gallery/{name}.html": viewers.page(parts) for name, parts in stored.items()}


if __name__ == "__main__":
    given = [agents.keep(Path(folder)) for folder in sys.argv[1:]]
    for name in given or agents.records():
        store(name, *agents.episode(name))
    for name, scene in scenes.SCENES.items() if not given else ():
        store(name, scene.title, *scenes.simulate(name), scenes.SUBSTEPS * scenes.TIMESTEP, {})
