"""A scripted service on a real socket of this machine."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from ..remote.scripted import ScriptedService


@contextmanager
def serve(service: ScriptedService) -> Iterator[str]:
    """Serve on loopback for as long as the block lasts; gives the base URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(service, log_level="critical", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.005)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
