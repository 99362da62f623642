"""The built site, and a page of a browser that shows it."""

import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory, worker_id):
    """Build the site, strictly, and return its folder; all workers share one."""
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    folder, built = shared / "site", shared / "site-built"
    # Two builds at once would take from each other the folder of modules that `hooks` makes.
    with FileLock(shared / "site-lock"):
        if not built.exists():
            command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
            command += ["--site-dir", str(folder)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            built.touch()
    return folder


@pytest.fixture
def show(site, browser):
    """Return a function that opens a page of the site from disk, and records what goes wrong."""
    contexts = []

    def opened(name, width: int = 1300, colors: str = "light"):
        contexts.append(
            browser.new_context(viewport={"width": width, "height": 900}, color_scheme=colors)
        )
        page = contexts[-1].new_page()
        page.requested, page.problems = [], []
        page.on("request", lambda request: page.requested.append(request.url))
        page.on("requestfailed", lambda request: page.problems.append(request.url))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on(
            "console",
            lambda message: message.type == "error" and page.problems.append(message.text),
        )
        page.goto(f"{(site / name).as_uri()}")
        return page

    yield opened
    for context in contexts:
        context.close()
