"""The verification service in a thread, on loopback, with a clock that can be moved on."""

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
PATIENCE = 15.0  # seconds until the server must listen


class ServiceThread:
    """The service as a tutorial or a test needs it: its own store, its own day.

    Parameters
    ----------
    backend : Backend
        What verifies.
    daily_limit : int
        Addresses per client and day.

    Raises
    ------
    TransportError
        If it does not come up.
    """

    def __init__(self, backend: Backend, *, daily_limit: int = 100) -> None:
        self.ahead = 0.0
        self.folder = tempfile.TemporaryDirectory(prefix="mailverdict-sandbox-", ignore_cleanup_errors=True)
        store = f"sqlite:///{Path(self.folder.name) / 'jobs.db'}"
        settings = ServiceSettings(store=store, daily_limit=daily_limit, access_log=False)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted sockets inherit it
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        app = create_app(settings, backend, clock=lambda: time.time() + self.ahead)
        self.server = uvicorn.Server(configure(app, settings, "127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve, name="mailverdict-sandbox-service", daemon=True)
        self.thread.start()
        self.wait_until_up()

    def serve(self) -> None:
        """Serve on the socket that is bound already."""
        self.server.run(sockets=[self.socket])

    def wait_until_up(self) -> None:
        """Return when it answers."""
        until = time.monotonic() + PATIENCE
        while not self.server.started:
            if not self.thread.is_alive() or time.monotonic() > until:
                raise TransportError(f"the sandbox's service at {self.url} did not come up")
            time.sleep(0.01)

    def next_day(self) -> None:
        """Move the service's clock on by a day, so that every quota is new."""
        self.ahead += DAY

    def stop(self) -> None:
        """Stop serving and remove the store."""
        self.server.should_exit = True
        self.thread.join(PATIENCE)
        self.socket.close()
        self.folder.cleanup()
