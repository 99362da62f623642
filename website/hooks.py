"""Makes the pages of the site that are not in docs/, and mends links that lead out of it.

MkDocs calls the functions `on_...`. Pages of the repository's root become pages of the site, source
files that pages link to become texts in it, `reference` writes the reference, `notebooks` the pages
of notebooks, and `gallery` the viewers of the gallery.
"""

import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "website")]

import gallery  # noqa: E402 (are next to this file)
import notebooks  # noqa: E402
import reference  # noqa: E402

CHANGES = {f"changes/{p.parent.name}.md": p for p in sorted(ROOT.glob("packages/*/CHANGELOG.md"))}
PAGES = {
    "index.md": ROOT / "README.md",
    "contributing.md": ROOT / "CONTRIBUTING.md",
    "code-of-conduct.md": ROOT / "CODE_OF_CONDUCT.md",
    "security.md": ROOT / "SECURITY.md",
    **CHANGES,
}
"""The files outside docs/ that are pages of the site."""

LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)")
CODE = re.compile(r"^( *)```.*?^\1```", re.S | re.M)


SOURCE = ROOT / "build/source"
"""The folder with the modules of all packages, which mkdocs.yml names."""


def on_startup(command: str, dirty: bool) -> None:
    """Make the folder of the modules: of one that is not there, Griffe reads what is installed."""
    SOURCE.mkdir(parents=True, exist_ok=True)


def on_pre_build(config: Any) -> None:
    """Put the packages' modules side by side, since their `brax` is one package in four folders."""
    target = SOURCE / "brax"
    shutil.rmtree(target, ignore_errors=True)
    for src in ROOT.glob("packages/*/src/brax"):
        shutil.copytree(
            src, target, ignore=shutil.ignore_patterns("__pycache__", "*.js"), dirs_exist_ok=True
        )
    # Griffe takes a package that extends its path for an empty one.
    init = target / "__init__.py"
    init.write_text(re.sub(r"^__path__ =.*\n", "", init.read_text("utf-8"), flags=re.M), "utf-8")


def on_config(config: Any) -> None:
    """Fill in the parts of the navigation that the source decides."""
    fill = {"Python": reference.navigation(), "Changes": list(CHANGES)}
    for part in config.nav:
        for section in part.values():
            for entry in section:
                if isinstance(entry, dict):
                    entry |= {name: fill[name] for name in entry.keys() & fill}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside docs/, and the texts that pages link to."""
    made: dict[str, str | bytes] = {uri: path.read_text("utf-8") for uri, path in PAGES.items()}
    made |= reference.pages() | gallery.pages()
    for name in notebooks.names():
        text, shown = notebooks.page(name)
        made |= {f"notebooks/{name}.md": text}
        made |= {f"notebooks/{file}": content for file, content in shown.items()}
    for uri, content in made.items():
        if uri in files.src_uris:  # the text of a notebook
            files.remove(files.src_uris[uri])
        files.append(File.generated(config, uri, content=content))
    pages = [(page.content_string, home(page.src_uri)) for page in files.documentation_pages()]
    for path in set().union(*(linked(text, folder) for text, folder in pages)):
        if place(path) is None:
            files.append(File.generated(config, copy(path), content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Lead links to files outside docs/ to where the site has them, and put in the viewers."""
    base = home(page.file.src_uri)
    if page.file.src_uri.startswith("gallery"):
        markdown = gallery.frames(markdown)

    def lead(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if not target or "://" in target:
            return found[0]
        path = (base / target).resolve()
        uri = place(path) or (copy(path) if path.is_file() else None)
        if uri is None:  # a folder
            return f"{text} (`{path.relative_to(ROOT)}`)" if path.is_dir() else found[0]
        if text.endswith(".md"):  # a file to readers of the source, and a page to those of the site
            text = title(path)
        return f"[{text}]({posixpath.relpath(uri, posixpath.dirname(page.file.src_uri))}{anchor})"

    parts, end = [], 0
    for block in CODE.finditer(markdown):
        parts += [LINK.sub(lead, markdown[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, LINK.sub(lead, markdown[end:])])


def on_post_page(output: str, **_: object) -> str:
    """Name the theme's search dialog, for readers who do not see it."""
    return named(output)


def on_post_template(output: str, **_: object) -> str:
    """Do the same in pages that are not from a text, such as 404.html."""
    return named(output)


def named(output: str) -> str:
    """Return a page whose search dialog has a name."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')


def title(path: Path) -> str:
    """Return the heading of a page, its first line."""
    return path.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def home(uri: str) -> Path:
    """Return the folder that links of a page start from."""
    return PAGES[uri].parent if uri in PAGES else (ROOT / "docs" / uri).parent


def place(path: Path) -> str | None:
    """Return the page of the site for a file of the repository, or None."""
    pages = {page: uri for uri, page in PAGES.items()} | {ROOT / "docs/README.md": "index.md"}
    if path in pages:
        return pages[path]
    docs = ROOT / "docs"
    shown = path.suffix in (".md", ".png", ".webp", ".txt", ".ipynb") or not path.exists()
    return str(path.relative_to(docs)) if path.is_relative_to(docs) and shown else None


def copy(path: Path) -> str:
    """Return the address of a source file; as .txt, since a browser would store another."""
    return f"source/{path.relative_to(ROOT)}.txt"


def linked(markdown: str, base: Path) -> set[Path]:
    """Return the files of the repository that a page links to."""
    targets = {found[2] for found in LINK.finditer(CODE.sub("", markdown))}
    paths = {(base / target).resolve() for target in targets if target and "://" not in target}
    return {path for path in paths if path.is_relative_to(ROOT) and path.is_file()}
