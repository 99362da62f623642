"""Notebooks: from a text in docs/notebooks/ to an executed notebook, and from that to a page.

`NAME.md` is the source, Jupytext's Markdown: its Python blocks are the cells. `NAME.ipynb` is the
same with outputs. `python website/notebooks.py [NAME ...]` executes the texts, in a clean kernel
each, and writes these files, from which the site takes the outputs.
"""

import base64
import html
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import jupytext
import nbclient
import nbformat
import viewers

FOLDER = Path(__file__).parents[1] / "docs/notebooks"

VIEWER = "application/vnd.brax.viewer+json"
"""The type of an output that holds a viewer page without its code, which is the same in all."""

FRAME = re.compile(r'<iframe sandbox="allow-scripts" srcdoc="([^"]*)" height="(\d+)"')
PAGE = re.compile(r"<title>(.*?)</title>.*?<body[^>]*>\n(.*?)\n<script>", re.S)


def names() -> list[str]:
    """Return the names of all notebooks."""
    return sorted(path.stem for path in FOLDER.glob("*.md"))


def source(name: str) -> nbformat.NotebookNode:
    """Return a notebook without outputs."""
    notebook = jupytext.read(FOLDER / f"{name}.md", fmt="md")
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # a random one would be another every time
    python = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata = nbformat.from_dict({"kernelspec": python})
    return notebook


def stored(name: str) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of its last execution."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run the cells of a notebook in a clean kernel, in a folder.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell raises, with its traceback.
    """
    client = nbclient.NotebookClient(
        notebook,
        timeout=1800,  # seconds for each cell, also where other programs use the processor
        startup_timeout=600,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # else a line may be in two outputs
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()


def shorten(notebook: nbformat.NotebookNode) -> None:
    """Cut the viewer's code, half a megabyte, out of the outputs of an executed notebook."""
    notebook.metadata.pop("language_info", None)  # the version of the Python that ran it
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            found = FRAME.search(output.get("data", {}).get("text/html", ""))
            if found:
                ((title, shown),) = PAGE.findall(html.unescape(found[1]))
                # Without a height of its own the viewer fills the frame.
                shown = shown.replace(f' data-height="{found[2]}"', "")
                parts = {"title": html.unescape(title), "viewers": shown, "height": found[2]}
                output.data = {VIEWER: parts, "text/plain": "The viewer: run this cell to see it."}


def page(name: str) -> tuple[str, dict[str, str | bytes]]:
    """Return a notebook with its outputs as Markdown, and the files that this shows, by name."""
    parts: list[str] = []
    files: dict[str, str | bytes] = {}
    for cell in stored(name).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            text, content = shown(output, cell.metadata.get("alt", ""), f"{name}-{len(files) + 1}")
            parts.append(text)
            files |= content
    heading, _, text = "\n\n".join(parts).partition("\n")
    link = f"[Download this notebook]({name}.ipynb) to run it in Jupyter or Colab."
    return f"{heading}\n\n{link}\n{text}\n", files


def shown(output: Any, alt: str, file: str) -> tuple[str, dict[str, str | bytes]]:
    """Return an output as Markdown, and the file that this shows, if any.

    Raises:
        ValueError: if a viewer or a plot has no alternative text.
    """
    data = output.get("data", {})
    if not data.keys() & {VIEWER, "image/png"}:
        text = output.get("text") or data["text/plain"]
        return f"``` {{.text .output}}\n{text.rstrip()}\n```", {}
    if not alt:
        raise ValueError(f'{file}: the cell needs alt="...", a text that says what is to be seen')
    if VIEWER in data:
        parts = data[VIEWER]
        frame = viewers.frame(f"{file}.html", alt, parts["height"])
        return frame, {f"{file}.html": viewers.page(parts)}
    return f"![{alt}]({file}.png)", {f"{file}.png": base64.b64decode(data["image/png"])}


if __name__ == "__main__":
    for name in sys.argv[1:] or names():
        notebook = source(name)
        with tempfile.TemporaryDirectory() as folder:
            execute(notebook, Path(folder))
        shorten(notebook)
        nbformat.write(notebook, FOLDER / f"{name}.ipynb")
        print(name)
