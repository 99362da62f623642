"""A browser for the tests of the page, where there is one."""

import os
import shutil

import pytest


def _chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("BRAX_BROWSER") or next(filter(None, map(shutil.which, names)), "")


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium, driven through Playwright; skips where one of them is missing."""
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
        flags = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
        yield driver.chromium.launch(executable_path=path, args=flags)
