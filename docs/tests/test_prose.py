"""Docstrings have a subject, and names and docstrings use the words of the glossary."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("packages", "docs", "benchmarks", "integration_tests")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
HEADLESS = re.compile(r"\s*(What|Whether|How|Where|Of|Which|Those)\b")
INVENTED = {
    "alike",
    "arena",
    "bond",
    "bonds",
    "cord",
    "cords",
    "crowd",
    "glide",
    "judging",
    "kick",
    "rendezvous",
    "reaching",
    "rope",
    "ropes",
    "strand",
    "strands",
    "stranger",
    "strangers",
    "streams",
    "strung",
    "surroundings",
    "swept",
    "tie",
    "tied",
    "ties",
    "turning",
    "twisting",
}
