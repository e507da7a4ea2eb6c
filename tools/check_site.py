"""Check that the built documentation loads nothing from other sites: ``python -m tools.check_site``.

Links may lead to other sites; scripts, styles, images and the like that a browser loads by itself
may not.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

SITE = Path(__file__).parents[1] / "site"
# What a browser loads by itself: element -> attributes.
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
LINKS_NOT_LOADED = {"canonical", "next", "prev", "alternate", "author", "license", "edit"}
OTHER_SITE = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
IN_STYLE = re.compile(
    r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)", re.IGNORECASE
)
IN_SCRIPT = re.compile(
    r"(?:import\s*\(?|from|\.src\s*=|importScripts\()\s*['\"]((?:https?:)?//[^'\"]+)"
)


class LoadedUrls(HTMLParser):
    """Collects the URLs of other sites that one page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.element = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect from attributes and inline styles."""
        given = {name: value or "" for name, value in attrs}
        self.element = tag
        if tag == "link" and LINKS_NOT_LOADED & set(given.get("rel", "").split()):
            return
        self.urls += [
            given[name] for name in LOADING.get(tag, ()) if OTHER_SITE.match(given.get(name, ""))
        ]
        self.urls += IN_STYLE.findall(given.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        """Forget the element, whose text is over."""
        self.element = ""

    def handle_data(self, data: str) -> None:
        """Collect from the text of styles and scripts."""
        pattern = {"style": IN_STYLE, "script": IN_SCRIPT}.get(self.element)
        self.urls += pattern.findall(data) if pattern else []


def loaded_urls(path: Path) -> list[str]:
    """The URLs of other sites that a page or a style sheet loads."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".css":
        return IN_STYLE.findall(text)
    page = LoadedUrls()
    page.feed(text)
    return page.urls


def main() -> int:
    """Print what is loaded; returns exit status 1 if anything is, or if there are no pages."""
    paths = [path for path in sorted(SITE.rglob("*")) if path.suffix in (".html", ".css")]
    found = [
        f"{path.relative_to(SITE)} loads {url[:120]}" for path in paths for url in loaded_urls(path)
    ]
    print("\n".join(found) or f"{len(paths)} pages and style sheets load nothing from other sites")
    return 0 if paths and not found else 1


if __name__ == "__main__":
    sys.exit(main())
