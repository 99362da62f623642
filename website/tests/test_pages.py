"""The pages of the site in a browser: they fetch nothing, can be searched, read and navigated."""

from html.parser import HTMLParser

import pytest

SHOWN = [
    "index.html",
    "training.html",
    "benchmarks.html",
    "collection.html",
    "gallery.html",
    "notebooks/first-hour.html",
    "reference/index.html",
    "reference/settings.html",
    "reference/python/brax.base.html",
]


class Tags(HTMLParser):
    """The files that a page loads, and its images."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.images = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "img":
            self.images.append(attrs)
        if tag == "link" and attrs.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(attrs["href"])
        if "src" in attrs:
            self.loaded.append(attrs["src"])


def test_pages_load_only_their_own_files(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 100
    for page in pages:
        tags = Tags(page.read_text("utf-8"))
        assert tags.loaded
        for address in tags.loaded:
            if address.startswith("data:"):
                continue
            assert page.name == "404.html" or (page.parent / address.split("?")[0]).exists(), page


def test_images_have_alternative_texts(site):
    images = [i for p in site.rglob("*.html") for i in Tags(p.read_text("utf-8")).images]
    assert len(images) >= 6
    assert [image["src"] for image in images if len(image.get("alt", "")) < 10] == []


def test_styles_load_only_their_own_files(site):
    for style in site.rglob("*.css"):
        assert "url(http" not in style.read_text("utf-8").replace('"', "").replace("'", "")


@pytest.mark.parametrize("name", SHOWN)
def test_no_request_leaves_the_page(show, name):
    page = show(name)
    page.wait_for_timeout(1000)  # for requests of scripts after the page is loaded
    assert page.requested
    assert [url for url in page.requested if not url.startswith(("file:", "data:"))] == []
    assert page.problems == []


@pytest.mark.parametrize("name", SHOWN)
def test_a_narrow_page_does_not_scroll_sideways(show, name):
    page = show(name, width=400)
    assert page.evaluate("document.documentElement.scrollWidth") == 400


# The ratio of WCAG 2.1 from a text's color to the nearest opaque background behind it.
CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => top.slice(0, 3).map((c, i) => c * top[3] + below[i] * (1 - top[3]));
  const background = (element) => {
    if (!element) return [255, 255, 255];
    const own = rgba(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own : over(own, background(element.parentElement));
  };
  const luminance = (color) => {
    const [r, g, b] = color.map((c) => {
      c /= 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const poor = {};
  for (const element of document.querySelectorAll(".md-typeset *, .md-nav *, .md-tabs *")) {
    const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
    const text = own.map((node) => node.data).join("").trim();
    const style = getComputedStyle(element);
    if (!text || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) {
      continue;
    }
    const behind = background(element);
    const ink = rgba(style.color);
    ink[3] *= Number(style.opacity);
    const light = [luminance(over(ink, behind)), luminance(behind)].sort((a, b) => b - a);
    const ratio = (light[0] + 0.05) / (light[1] + 0.05);
    const key = `${element.tagName}.${element.className} ${style.color}`;
    if (ratio < 4.5) poor[key] ??= `${ratio.toFixed(2)} ${text.slice(0, 30)}`;
  }
  return poor;
}"""


@pytest.mark.parametrize("colors", ["light", "dark"])
@pytest.mark.parametrize("name", SHOWN)
def test_texts_are_readable(show, name, colors):
    page = show(name, colors=colors)
    page.wait_for_timeout(500)  # colors fade in
    assert page.evaluate(CONTRAST) == {}


def test_the_search_finds_a_word_from_the_keyboard(show):
    page = show("index.html")
    page.keyboard.press("Tab")
    assert "md-skip" in page.evaluate("document.activeElement.className")
    page.keyboard.press("/")
    page.keyboard.type("restitution")
    found = page.locator(".md-search-result__link")
    found.first.wait_for()
    assert "restitution" in found.first.inner_text().lower()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**h=restitution*")
    assert page.locator("mark").count() > 0


def test_colors_follow_the_system_and_can_be_switched(show):
    page = show("index.html", colors="dark")
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    assert page.evaluate(scheme) == "slate"
    page.get_by_title("Switch to light colors").click()
    assert page.evaluate(scheme) == "default"
