"""The text of an HTML page as lines, for bounces that have no plain text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

MAX_PAGE = 128 * 1024  # characters that are read; styles stand before the text
# Elements within a line; every other one begins a line of its own.
WITHIN_LINE = frozenset(
    [
        "a",
        "b",
        "code",
        "em",
        "font",
        "i",
        "o:p",
        "q",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
        "tt",
        "u",
    ]
)
UNSEEN = frozenset(("head", "script", "style", "template", "title"))


class PageText(HTMLParser):
    """Collects the text of a page; `page_text` keeps from the parser what it would raise for."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.unseen = ""  # the element that is left out and still open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body":  # also after a head that is not closed
            self.unseen = ""
        elif tag in UNSEEN:
            self.unseen = self.unseen or tag
        elif tag not in WITHIN_LINE:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == self.unseen:
            self.unseen = ""
        elif tag not in WITHIN_LINE:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.unseen:
            self.pieces.append(re.sub(r"\s+", " ", data))


def page_text(page: str) -> str:
    """The lines of a page that are not empty.

    >>> print(page_text("<p>Mail to <b>ada@web.de</b> failed:<br>550 &lt;ada&gt; unknown</p>"))
    Mail to ada@web.de failed:
    550 <ada> unknown
    """
    parser = PageText()
    # The parser raises for a marked section that it does not know, such as "<![x["; as a
    # declaration it skips it.
    page = page.replace("<![", "<!")
    # Not closed: where a comment or tag does not end, `close` would look for its end again at each
    # "<" that follows.
    parser.feed(page[:MAX_PAGE] + "\n")
    lines = []
    for text in "".join(parser.pieces).split("\n"):
        line = " ".join(text.split())
        if line:
            lines.append(line)
    return "\n".join(lines)
