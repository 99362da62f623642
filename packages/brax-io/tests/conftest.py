"""A browser for the tests of the page, where there is one."""

import functools
import os
import shutil

import pytest

SOFTWARE = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")


def _chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("BRAX_BROWSER") or next(filter(None, map(shutil.which, names)), "")


@pytest.fixture(scope="session")
def launch():
    """Start headless Chromium through Playwright; skip if one of them is missing."""
    path, missing = _chromium(), ""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing = "playwright is not installed (pip install playwright)"
    missing = missing or ("" if path else "no Chromium found (apt install chromium)")
    if missing and os.environ.get("BRAX_REQUIRE_BROWSER") == "1":
        pytest.fail(missing)
    if missing:
        pytest.skip(missing)
    with sync_playwright() as driver:
        start = functools.partial(driver.chromium.launch, executable_path=path)
        yield lambda *flags: start(args=["--no-sandbox", *flags])


@pytest.fixture(scope="session")
def browser(launch):
    """Return a browser that draws by software, as machines without a screen do."""
    return launch(*SOFTWARE)
