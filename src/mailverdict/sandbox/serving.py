"""The verification service in a thread, on loopback, with a clock that can be moved forward."""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from pathlib import Path

import uvicorn

from ..backend import Backend
from ..errors import TransportError
from ..service import ServiceSettings, create_app
from ..service.server import configure

__all__ = ["ServiceThread"]

DAY = 86_400.0
START_TIMEOUT = 15.0  # seconds


class ServiceThread:
    """A service with a temporary store; it listens when the constructor returns."""

    def __init__(self, backend: Backend, *, daily_limit: int = 100) -> None:
        self.clock_offset = 0.0
        self.folder = tempfile.TemporaryDirectory(
            prefix="mailverdict-sandbox-", ignore_cleanup_errors=True
        )
        store = f"sqlite:///{Path(self.folder.name) / 'jobs.db'}"
        settings = ServiceSettings(store=store, daily_limit=daily_limit, access_log=False)
        self.socket = socket.create_server(("127.0.0.1", 0))
        # Accepted sockets inherit it.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        app = create_app(settings, backend, clock=lambda: time.time() + self.clock_offset)
        self.server = uvicorn.Server(configure(app, settings, "127.0.0.1", 0))
        self.thread = threading.Thread(
            target=self.serve, name="mailverdict-sandbox-service", daemon=True
        )
        self.thread.start()
        self.wait_until_up()

    def serve(self) -> None:
        self.server.run(sockets=[self.socket])

    def wait_until_up(self) -> None:
        until = time.monotonic() + START_TIMEOUT
        while not self.server.started:
            if not self.thread.is_alive() or time.monotonic() > until:
                raise TransportError(f"the sandbox's service at {self.url} did not start")
            time.sleep(0.01)

    def next_day(self) -> None:
        """Move the service's clock forward by a day, so that every quota is reset."""
        self.clock_offset += DAY

    def stop(self) -> None:
        """Stop serving and remove the store."""
        self.server.should_exit = True
        self.thread.join(START_TIMEOUT)
        self.socket.close()
        self.folder.cleanup()
