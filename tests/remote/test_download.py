"""Downloading a file: bounded in size, time and redirections, and unpacked at most once."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest

from mailverdict.errors import TransportError
from mailverdict.remote.client import MAX_REDIRECTS, download
from tests.doubles.tables import each_row
from tests.remote.test_client import raw_server


def get(*answers: bytes | None, **options: Any) -> tuple[bytes | str, list[bytes]]:
    """Download from a server that answers so one after another, the last one always; None: octet by octet, without end.

    Gives the content or the error, and the requests.
    """
    requests: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        octets = answers[min(len(requests), len(answers)) - 1]
        writer.write(octets or b"HTTP/1.1 200 OK\r\n\r\n")
        while octets is None and not writer.is_closing():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)

    async def main() -> bytes:
        async with raw_server(handle) as port:
            return await asyncio.to_thread(download, f"http://127.0.0.1:{port}/list", **options)

    try:
        return asyncio.run(main()), requests
    except TransportError as exc:
        return str(exc), requests


def page(status: str, body: bytes, **fields: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Length: {len(body)}",
        *(f"{k.replace('_', '-')}: {v}" for k, v in fields.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def test_a_download_asks_for_no_coding_and_reads_one() -> None:
    content, requests = get(page("200 OK", b"a.example\n"))
    assert content == b"a.example\n"
    assert b"\r\naccept-encoding: identity\r\n" in requests[0].lower()
    assert (
        get(page("200 OK", gzip.compress(b"a.example\n"), Content_Encoding="gzip"))[0]
        == b"a.example\n"
    )


@pytest.mark.slow
@each_row(
    ("answer", "words"),
    [
        (
            page("200 OK", gzip.compress(gzip.compress(b"a")), Content_Encoding="gzip, gzip"),
            "Content-Encoding 'gzip, gzip'",
        ),
        (
            page("200 OK", gzip.compress(bytes(5000)), Content_Encoding="gzip"),
            "more than 1,000 octets",
        ),
        (page("200 OK", gzip.compress(b"a")[:-2], Content_Encoding="gzip"), "it is truncated"),
        (page("200 OK", bytes(1001)), "more than 1,000 octets"),
        (page("404 Not Found", b""), "HTTP 404"),
        (page("302 Found", b"", Location="/list"), f"redirected more than {MAX_REDIRECTS} times"),
        (None, "not complete within 0.2 seconds"),
    ],
)
def test_a_download_that_is_refused(answer: bytes | None, words: str) -> None:
    timeout = {"timeout": 0.2} if answer is None else {}
    message, requests = get(answer, limit=1000 if answer else 10**9, **timeout)
    assert words in str(message)
    assert "GET http://127.0.0.1" in str(message)
    assert len(requests) <= MAX_REDIRECTS + 1


def test_the_body_of_a_redirection_is_not_read() -> None:
    endless = page("302 Found", b"", Location="/other").replace(
        b"Content-Length: 0", b"Content-Length: 99999999"
    )
    content, requests = get(endless + bytes(1000), page("200 OK", b"a.example\n"))
    assert content == b"a.example\n"
    assert [each.split()[1] for each in requests] == [b"/list", b"/other"]
