"""Check that the built documentation fetches nothing from elsewhere: ``python -m tools.check_site [FOLDER]``.

Links that a reader follows may lead anywhere; what a page loads by itself may not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What a browser fetches without being asked to: element -> attributes.
LOADING = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "link": ("href",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}
HARMLESS_LINKS = {"canonical", "next", "prev", "alternate", "author", "license", "edit"}
ELSEWHERE = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
IN_STYLE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)
IN_SCRIPT = re.compile(r"(?:import\s*\(?|from|\.src\s*=|importScripts\()\s*['\"]((?:https?:)?//[^'\"]+)")


class Fetched(HTMLParser):
    """Collects what one page fetches from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at what an element loads."""
        given = {name: value or "" for name, value in attrs}
        self.inside = tag
        if tag == "link" and HARMLESS_LINKS & set(given.get("rel", "").split()):
            return
        self.found += [given[name] for name in LOADING.get(tag, ()) if ELSEWHERE.match(given.get(name, ""))]
        self.found += IN_STYLE.findall(given.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        """Leave a style or script."""
        self.inside = ""

    def handle_data(self, data: str) -> None:
        """Look into styles and scripts."""
        pattern = {"style": IN_STYLE, "script": IN_SCRIPT}.get(self.inside)
        self.found += pattern.findall(data) if pattern else []


def fetched(path: Path) -> list[str]:
    """What a page or a style sheet fetches from elsewhere."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        return IN_STYLE.findall(text)
    page = Fetched()
    page.feed(text)
    return page.found


def complaints(folder: Path) -> Iterator[str]:
    """One line for each thing that is fetched from elsewhere."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".html", ".css"):
            yield from (f"{path.relative_to(folder)} fetches {url[:120]}" for url in fetched(path))


def main(folder: Path) -> int:
    """Tell what is fetched; exit status 1 if anything is, or if nothing was built."""
    found = list(complaints(folder))
    pages = len(list(folder.rglob("*.html")))
    print("\n".join(found) or f"{pages} pages fetch nothing from elsewhere")
    return 0 if pages and not found else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"))
