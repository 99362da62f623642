"""Reads XML into elements, as leniently as MuJoCo's reader does.

Model files contain what the XML specification forbids and MuJoCo accepts: `--` within comments, `<`
and `&` within attributes, a declaration after blank lines. Only the five entities of XML itself and
character references are expanded, which rules out entity-expansion attacks. Nothing is fetched.
"""

import codecs
import re
from collections.abc import Iterator

from brax.errors import ModelError
from brax.io._nodes import Node

MAX_DEPTH = 500
"""Maximum nesting depth of elements."""

_WIDE = r"\u0080-\ud7ff\ue000-\U0010ffff"
_NAME = rf"[A-Za-z_:{_WIDE}][\w:.\-{_WIDE}]*"
_TAG = re.compile(rf"<(?:\s*|(/))({_NAME})")
_ATTRIBUTE = re.compile(rf"\s*({_NAME})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_END = re.compile(r"\s*(/?)>")
_REFERENCE = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#(\d{1,7})|#x([0-9A-Fa-f]{1,6}));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_UNDECODED = re.compile("[\ud800-\udfff]")
_SKIPPED = (("<!--", "-->", "comment"), ("<![CDATA[", "]]>", "CDATA section"), ("<?", "?>", "<?"))

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
"""First bytes of texts in other encodings than UTF-8."""
_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)[\"']")
_CODECS = re.compile(r"(?:iso|latin|windows|cp|gb|big5|shift|euc|koi8|mac|ascii)[\w-]*", re.I)


def decode(text: str | bytes, name: str) -> str:
    r"""Return a text without a byte order mark, with `\n` as the only line end.

    Bytes that are not text become lone surrogates: `parse` reports those that matter.

    Args:
        text: the text; bytes are in UTF-8, in UTF-16 or UTF-32, or in the encoding that their XML
            declaration names.
        name: the name of the text in messages.

    Raises:
        ModelError: if it is neither str nor bytes, or cannot be decoded.
    """
    if not isinstance(text, str | bytes):
        raise ModelError(
            f"{name}: a model's text must be str or bytes, got {type(text).__name__}; "
            "a file is read by load(path)"
        )
    decoded = text if isinstance(text, str) else _decode(text, name)
    return decoded.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _decode(raw: bytes, name: str) -> str:
    wide = next((encoding for mark, encoding in _MARKS if raw.startswith(mark)), None)
    try:
        return raw.decode(wide or "utf-8")
    except UnicodeDecodeError as error:
        if wide:
            raise ModelError(f"{name}: not text in {wide.upper()} ({error.reason})") from None
    declared = _DECLARED.match(raw.lstrip()[:300])
    encoding = declared[1].decode() if declared else ""
    # Only character sets: Python also has codecs, such as unicode_escape, that rewrite the text.
    if _CODECS.fullmatch(encoding):
        try:
            return raw.decode(encoding)
        except (LookupError, UnicodeDecodeError):
            raise ModelError(
                f"{name}: not text in {encoding}, its declared encoding; save it as UTF-8"
            ) from None
    # A comment may hold any bytes, so the error is raised only where an attribute needs them.
    return raw.decode("utf-8", "surrogateescape")


def parse(text: str, name: str) -> list[Node]:
    """Parse a decoded text.

    Args:
        text: from `decode`.
        name: the file's name, for places.

    Returns:
        The top-level elements; the first one is the model.

    Raises:
        ModelError: if it is not XML, with the line.
    """
    top = Node("", {}, name, 0)
    stack = [top]
    for node, closes in _Tags(text, name).read(stack):
        if node is not None:
            stack[-1].children.append(node)
            stack.append(node)
            if len(stack) > MAX_DEPTH:
                raise ModelError(f"{node.place}: elements are nested deeper than {MAX_DEPTH}")
        if closes:
            stack.pop()
    if len(stack) > 1:
        line = text.count("\n") + 1
        raise ModelError(
            f"{name}:{line}: not well-formed XML: the text ends within {stack[-1]} "
            f"(line {stack[-1].line}), which </{stack[-1].tag}> must close"
        )
    return top.children


class _Tags:
    """Finds the tags of a text, one after another."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._line, self._counted = 1, 0

    def read(self, stack: list[Node]) -> Iterator[tuple[Node | None, bool]]:
        """Yield, for each tag, the element that it opens, if any, and whether it closes one.

        Args:
            stack: the open elements, the innermost last; the caller updates it.
        """
        position, end = 0, len(self._text)
        self._no_nul()
        while (start := self._text.find("<", position)) >= 0:
            self._stray(position, start, stack)
            position = self._skip(start)
            if position == start:
                node, closes, position = self._tag(start, stack)
                yield node, closes
        self._stray(position, end, stack)

    def _fail(self, position: int, problem: str) -> ModelError:
        return ModelError(f"{self._place(position)}: not well-formed XML: {problem}")

    def _place(self, position: int) -> str:
        """Return the file and line of a position.

        Newlines are counted onwards from the last position, so a file takes linear time. Only
        failures ask for an earlier position.
        """
        if position < self._counted:
            return f"{self._name}:{self._text.count(chr(10), 0, position) + 1}"
        self._line += self._text.count("\n", self._counted, position)
        self._counted = position
        return f"{self._name}:{self._line}"

    def _no_nul(self) -> None:
        if (at := self._text.find("\0")) >= 0:
            raise self._fail(at, "it contains a NUL character")

    def _stray(self, start: int, end: int, stack: list[Node]) -> None:
        """Reject text after the end of the root element."""
        over = len(stack) == 1 and stack[0].children
        if not over or self._text[start:end].isspace() or start == end:
            return
        at = start + len(self._text[start:end]) - len(self._text[start:end].lstrip())
        raise self._fail(at, f"text after the end: {self._text[at:end][:40].strip()!r}")

    def _skip(self, start: int) -> int:
        """Return the end of the comment or declaration at `start`, or `start` if there is none."""
        text = self._text
        for opening, closing, what in _SKIPPED:
            if text.startswith(opening, start):
                end = text.find(closing, start + len(opening))
                if end < 0:
                    raise self._fail(start, f"{what} has no end: '{closing}' is missing")
                return end + len(closing)
        if not text.startswith("<!", start):
            return start
        # A DOCTYPE can define entities, which could expand to gigabytes or read other files.
        if text[start + 2 : start + 9].upper() == "DOCTYPE":
            raise ModelError(
                f"{self._place(start)}: DOCTYPE is not allowed in a model; take it out"
            )
        end = text.find(">", start)
        if end < 0:
            raise self._fail(start, "'<!' has no end: '>' is missing")
        return end + 1

    def _tag(self, start: int, stack: list[Node]) -> tuple[Node | None, bool, int]:
        """Return the element that a tag opens, if any, whether it closes one, and where it ends."""
        opened = _TAG.match(self._text, start)
        if opened is None:
            got = self._text[start : start + 20].split("\n")[0]
            raise self._fail(start, f"'<' must begin a tag, got {got!r}; write &lt; for the sign")
        place, tag = self._place(start), opened[2]
        node = Node(tag, {}, self._name, self._line)
        position = self._attributes(node, opened.end())
        end = _END.match(self._text, position)
        if end is None:
            raise ModelError(f"{place}: not well-formed XML: {self._bad_tag(node, position)}")
        if not opened[1]:
            return node, bool(end[1]), end.end()
        self._check_closing(place, tag, stack)
        return None, len(stack) > 1, end.end()

    def _attributes(self, node: Node, position: int) -> int:
        """Read the attributes of a tag into `node`, and return where they end."""
        while found := _ATTRIBUTE.match(self._text, position):
            key, value = found[1], found[2] if found[3] is None else found[3]
            if key in node.attributes:
                raise ModelError(
                    f"{node.place}: not well-formed XML: <{node.tag}> has the attribute '{key}' "
                    "twice"
                )
            if _UNDECODED.search(value):
                raise ModelError(
                    f"{node.file}: not UTF-8 text in line {node.line}: attribute '{key}' of "
                    f"<{node.tag}>; save the file as UTF-8, or name its encoding in its first "
                    'line: <?xml version="1.0" encoding="latin-1"?>'
                )
            node.attributes[key] = _REFERENCE.sub(_character, value)
            position = found.end()
        return position

    def _bad_tag(self, node: Node, position: int) -> str:
        """Return what is wrong with a tag whose attributes end at `position`."""
        rest = self._text[position:].lstrip()
        unquoted = re.match(rf"({_NAME})\s*(=?)", rest)
        if unquoted and not unquoted[2]:
            return f"<{node.tag}>: attribute '{unquoted[1]}' has no value"
        if unquoted and rest[unquoted.end() :].lstrip()[:1] not in ("'", '"'):
            return f"<{node.tag}>: the value of '{unquoted[1]}' needs quotes"
        if unquoted:
            return f"<{node.tag}>: the value of '{unquoted[1]}' has no closing quote"
        # A missing quote lets the value run on to the next one, usually past a line end or a tag.
        odd = [key for key, value in node.attributes.items() if "\n" in value or "<" in value]
        hint = f"; is a quote missing at '{odd[-1]}'?" if odd else ""
        got = repr(rest.split("\n")[0][:20]) if rest else "the end of the text"
        return f"<{node.tag}> must end with '>' or '/>', got {got}{hint}"

    def _check_closing(self, place: str, tag: str, stack: list[Node]) -> None:
        """Reject an end tag that does not match the innermost open element."""
        last = stack[-1]
        if len(stack) > 1 and last.tag != tag:
            raise ModelError(
                f"{place}: not well-formed XML: </{tag}> stands where </{last.tag}> must close "
                f"{last} (line {last.line})"
            )
        if not stack[0].children:
            raise ModelError(f"{place}: not well-formed XML: </{tag}> closes nothing")


def _character(found: re.Match[str]) -> str:
    """Return the character of a reference."""
    if found[1]:
        return _NAMED[found[1]]
    code = int(found[2]) if found[2] else int(found[3], 16)
    # A reference to no valid character stays as it is written, as in MuJoCo.
    allowed = 0 < code < 0xD800 or 0xDFFF < code <= 0x10FFFF
    return chr(code) if allowed else found[0]
