"""A service on a real socket of this machine."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import uvicorn

from tests.doubles.waiting import wait_until


@contextmanager
def serve(app: Any, lifespan: Literal["on", "off"] = "off") -> Iterator[str]:
    """Serve an ASGI application on loopback for as long as the block lasts; gives the base URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan=lifespan, ws="none"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
