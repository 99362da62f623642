"""Source files that the documentation names exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "docs/notebooks/*.md", "packages/*/README.md")
    for path in ROOT.glob(pattern)
)
SOURCES = [
    f"/{path.relative_to(ROOT)}"
    for folder in ("packages", "benchmarks", "docs", "integration_tests", "website")
    for path in (ROOT / folder).rglob("*.py")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_modules_exist(page):
    named = re.findall(r"`([\w/]+\.py)`", page.read_text())
    assert [name for name in named if not any(s.endswith(f"/{name}") for s in SOURCES)] == []


def test_the_glossary_s_places_exist():
    roots = [ROOT / "packages/brax-core/src/brax", ROOT / "packages/brax-agents/src/brax/training"]
    rows = re.findall(r"^\|.*\|([^|]*)\|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    places = [place for row in rows for place in re.findall(r"`([\w/.]+)`", row)]
    assert len(places) > 80
    assert [place for place in places if not any((root / place).exists() for root in roots)] == []


def test_the_site_shows_every_page():
    """`hatch run docs:build` fails if it does not, in another environment than this one."""
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    docs = ROOT / "docs"
    found = [*docs.glob("*.md"), *docs.glob("notebooks/*.md")]
    pages = {page.relative_to(docs).as_posix() for page in found} - {"README.md"}
    assert [page for page in sorted(pages) if f"{page}\n" not in navigation] == []
