"""Pages hinder no reader: axe-core finds nothing serious, in both colors, wide and narrow."""

import pytest
from axe_playwright_python.base import AXE_SCRIPT

COLORS_TOO = [
    "index.html",
    "conventions.html",
    "gallery.html",
    "gallery/ant.html",
    "reference/index.html",
]
"""Pages with every kind of text; to measure its contrasts takes seconds on a long page."""


def hindrances(page, **rules):
    """Return what axe-core finds serious or critical on a page: rules, elements and reasons.

    Frames are left out: their pages are looked at by themselves.
    """
    page.evaluate(AXE_SCRIPT)
    options = {"resultTypes": ["violations"], "iframes": False, "rules": rules}
    found = page.evaluate("(options) => axe.run(options)", options)["violations"]
    return [
        (rule["id"], node["html"][:200], node["failureSummary"])
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("colors", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1300])
@pytest.mark.parametrize("name", COLORS_TOO)
def test_a_page_hinders_no_reader(show, name, width, colors):
    page = show(name, width, colors)
    page.wait_for_timeout(500)  # colors fade in
    assert hindrances(page) == []


def test_no_page_lacks_a_name_or_a_label(site, show):
    """Every page is looked at, and of those of the Python reference, all alike, every eighth."""
    page = show("index.html")
    modules = sorted(site.glob("reference/python/*.html"))
    # From disk, the page for missing addresses lacks its styles: readers do not see it like this.
    paths = sorted({*site.rglob("*.html")} - {*modules, site / "404.html"}) + modules[::8]
    off = ("color-contrast", "link-in-text-block", "landmark-unique", "region")
    found = {}
    for path in paths:
        page.goto(path.as_uri())
        found[path.name] = hindrances(page, **{name: {"enabled": False} for name in off})
    assert len(paths) > 80
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_a_wide_table_scrolls_by_keys(show):
    page = show("training.html", width=400)
    table = page.locator(".md-typeset__scrollwrap").first
    table.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.activeElement.scrollLeft > 0")
