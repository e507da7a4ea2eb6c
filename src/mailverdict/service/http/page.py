"""The status page: one HTML file, whose policy allows its own script and style only."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from starlette.responses import Response

from ...model.words import Verdict
from ...theme import badge, stylesheet

INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)


def policy_of(html: str) -> str:
    """A Content-Security-Policy with the hashes of the page's inline scripts and styles."""
    allowed: dict[str, list[str]] = {"script": [], "style": []}
    for kind, content in INLINE.findall(html):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        allowed[kind].append(f"'sha256-{digest}'")
    return (
        f"default-src 'none'; script-src {' '.join(allowed['script'])}; "
        f"style-src {' '.join(allowed['style'])}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class StatusPage:
    """The page and its headers, read once."""

    def __init__(self) -> None:
        page = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
        badges = ""
        for name in map(str, Verdict):
            badges += f'<template id="badge-{name}">{badge(name)}</template>'
        page = page.replace("/* theme */", stylesheet())
        self.html = page.replace("<!-- badges -->", badges)
        self.headers = {
            "content-security-policy": policy_of(self.html),
            "cache-control": "no-cache",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
        }

    def response(self) -> Response:
        """A new response with the page."""
        return Response(self.html, media_type="text/html", headers=self.headers)
