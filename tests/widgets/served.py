"""The page of `mailverdict audit` on loopback, in a thread, and a client of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from mailverdict.widgets.server import HOST, OneServer, PageServer, make_config, open_port
from mailverdict.widgets.state import AuditState
from tests.doubles.waiting import wait_until

TOKEN = "t" * 43
TAB = "tab-00000001"


def whole(lines: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """The first line with sections; on a busy machine empty ones come before."""
    return next(line for line in lines if line)


@dataclass
class Served:
    """A page that is served, and a client with its token."""

    page: PageServer
    base: str
    client: httpx.Client

    @property
    def port(self) -> int:
        return int(self.base.rpartition(":")[2])

    @property
    def state(self) -> AuditState:
        return self.page.state

    def act(self, name: str, /, **arguments: Any) -> httpx.Response:
        """An action of the page."""
        return self.client.post("/act", json={"act": name, "tab": TAB, **arguments})

    @contextmanager
    def stream(self, tab: str = TAB) -> Iterator[Iterator[dict[str, Any]]]:
        """The lines of the stream, as they come."""
        with self.client.stream("GET", "/events", params={"tab": tab}) as reply:
            reply.raise_for_status()
            yield (json.loads(line) for line in reply.iter_lines())

    def save(self, which: str, kind: str) -> dict[str, Any]:
        """What the page is told when a file is made."""
        with self.stream() as lines:
            whole(lines)
            self.act("download", which=which, kind=kind)
            found: dict[str, Any] = next(line["save"] for line in lines if "save" in line)
            return found


@contextmanager
def served(
    state: AuditState, port: int = 0, token: str = TOKEN, former: tuple[str, ...] = ()
) -> Iterator[Served]:
    """Serve an audit for as long as the block lasts."""
    listener = open_port(port)
    port = listener.getsockname()[1]
    page = PageServer(state, token, port, former=former)
    server = OneServer(make_config(page))
    server.page, server.on_ready = page, lambda: None
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    base = f"http://{HOST}:{port}"
    try:
        wait_until(lambda: server.started)
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=base, headers=headers, timeout=30) as client:
            yield Served(page, base, client)
    finally:
        server.handle_exit(2, None)
        thread.join()
        state.close()
