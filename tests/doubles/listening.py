"""The service on a real socket of the loopback, in a thread of the test process."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette

from mailverdict.service import ServiceSettings
from mailverdict.service.server import configure
from tests.doubles.waiting import wait_until

PATIENCE = 60  # seconds; a test that waits so long has failed


@dataclass(frozen=True)
class Answer:
    """What came back over a raw connection."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return self.json()["error"]["code"]


@dataclass(frozen=True)
class Address:
    """Where the service listens."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def send(self, *pieces: bytes) -> Answer:
        """Send octets as they are, and read one answer."""
        with self.connect() as connection:
            for piece in pieces:
                connection.sendall(piece)
            return read_answer(connection)


def read_answer(connection: socket.socket) -> Answer:
    """One whole HTTP/1.1 answer with a length."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65_536)
        assert more, f"the connection ended after {data!r}"
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    while len(body) < int(headers["content-length"]):
        more = connection.recv(65_536)
        assert more, "the connection ended within the body"
        body += more
    return Answer(int(first.split()[1]), headers, body)


@contextmanager
def listening(app: Starlette, settings: ServiceSettings) -> Iterator[Address]:
    """Serve an application on a free port."""
    server = uvicorn.Server(configure(app, settings, "127.0.0.1", 0))
    bound = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive())
    assert server.started, "the server did not start"
    try:
        yield Address(bound.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
