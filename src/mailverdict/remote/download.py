"""Downloading a file, which `mailverdict lists update` does."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import httpx

from ..errors import TransportError
from ..loop import run_sync
from ..model.json_fields import shorten
from .client import NO_CODING, read_body

MAX_REDIRECTS = 10


def download(url: str, *, limit: int = 16 * 1024 * 1024, timeout: float = 30.0) -> bytes:
    """Download a file; `TransportError` if that fails or takes longer, or the file is larger than `limit` octets."""
    try:
        body = run_sync(asyncio.wait_for(fetch(url, limit), timeout))
    except (httpx.RequestError, httpx.InvalidURL) as exc:
        raise TransportError(f"GET {url}: {shorten(str(exc) or type(exc).__name__)}") from exc
    except TimeoutError:
        raise TransportError(f"GET {url}: not complete within {timeout:g} seconds") from None
    if len(body) > limit:
        raise TransportError(f"GET {url}: more than {limit:,} octets")
    return body


async def fetch(url: str, limit: int) -> bytes:
    """The body of a file; httpx itself would read the body of a redirection without a limit."""
    async with httpx.AsyncClient(headers=NO_CODING, timeout=None) as http:  # noqa: S113 - the caller has one
        request = http.build_request("GET", url)
        for _ in range(MAX_REDIRECTS + 1):
            async with aclosing(await http.send(request, stream=True)) as response:
                if response.next_request is not None:
                    request = response.next_request
                    continue
                if not response.is_success:
                    raise TransportError(f"GET {url}: HTTP {response.status_code}")
                return await read_body(response, limit)
    raise TransportError(f"GET {url}: redirected more than {MAX_REDIRECTS} times")
