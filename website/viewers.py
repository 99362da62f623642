"""Viewers as files of the site: stored pages without the code of the viewer, and their frames."""

import html
from collections.abc import Mapping

from brax.io import html as viewer


def frame(address: str, title: str, height: int | str) -> str:
    """Return a frame with a viewer's page.

    Args:
        address: address of the page, relative to that of the frame.
        title: text that says what is to be seen, for readers who do not see it.
        height: height of the frame [pixels].
    """
    # Without `allow-same-origin` a page cannot access the site.
    return (
        f'<iframe class="viewer" src="{address}" title="{html.escape(title)}" height="{height}" '
        'loading="lazy" sandbox="allow-scripts"></iframe>'
    )


def page(parts: Mapping[str, str]) -> str:
    """Return a page from its stored `title` and `viewers`, with the viewer's code."""
    return viewer._page(parts["title"], parts["viewers"], None)
