"""JupyterLab as a process of its own: nobody's settings, loopback only, gone at the end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.doubles.ports import free_port
from tests.doubles.waiting import wait_until

SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}
THEME = "@jupyterlab/apputils-extension/themes"


@contextmanager
def jupyter_lab(folder: Path, *, is_dark: bool = False) -> Iterator[str]:
    """Serve a folder's notebooks; gives the base URL."""
    settings = {**SETTINGS, THEME: {"theme": "JupyterLab Dark" if is_dark else "JupyterLab Light"}}
    for name, values in settings.items():
        file = folder / "lab-settings" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    port = free_port()
    command = [
        *(
            "jupyter",
            "lab",
            "--no-browser",
            "--allow-root",
            f"--port={port}",
            "--ServerApp.port_retries=0",
        ),
        *("--ServerApp.ip=127.0.0.1", "--IdentityProvider.token=", "--ServerApp.password="),
        f"--ServerApp.root_dir={folder}",
    ]
    with process(command, folder, port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def process(command: list[str], folder: Path, port: int) -> Iterator[None]:
    """Run a module of this Python until the block ends."""
    log = folder / "server.log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=folder,
            env={**os.environ, **own_places(folder)},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_until_up(server, port, log)
            yield
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def own_places(folder: Path) -> dict[str, str]:
    """Directories where Jupyter looks for settings and leaves things."""
    return {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "lab-settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "lab-workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
        "XDG_DATA_HOME": str(folder / "share"),
        "JUPYTER_PLATFORM_DIRS": "1",
    }


def wait_until_up(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return when it listens."""
    wait_until(lambda: server.poll() is not None or accepts_connections(port))
    if server.poll() is not None:
        raise RuntimeError(f"the server ended:\n{log.read_text()[-2000:]}")


def accepts_connections(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
