"""What the servers share: addresses, domains, names in the DNS, and processes."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mailverdict.sandbox.dns import DomainRecords
from tests.doubles.waiting import wait_until
from tests.servers.install import FOLDER

DNS = "127.0.50.53"
CLOSED = "127.0.50.240"  # nobody listens there
KNOWN = (
    r"ada|bob|jörg|known[0-9]+"  # the local parts that every server knows, as a regular expression
)
FORGED_SENDER = "probe@nowhere.example"  # of a domain that does not exist
PROGRAMS = FOLDER / "usr/sbin"
PATIENCE = 20.0  # seconds that a server may take to start or to stop


@dataclass(frozen=True)
class Listener:
    """A server, or one of the configurations of a server, at its own address.

    Attributes
    ----------
    name : str
        The first label of its domain.
    host : str
        Loopback address; it listens on port 25.
    domain : str
        Whose mail it takes.
    options : mapping of str to str
        What is special about it, in the terms of its server.
    """

    name: str
    host: str
    domain: str
    options: Mapping[str, str] = field(default_factory=dict)


def records_of(listener: Listener) -> dict[str, DomainRecords]:
    """A domain whose only exchange is the listener."""
    return {
        **exchanges(listener.domain, f"mx.{listener.domain}"),
        **host(f"mx.{listener.domain}", listener.host),
    }


def exchanges(domain: str, *hosts: str) -> dict[str, DomainRecords]:
    """A domain with exchanges, the preferred one first."""
    return {
        domain: DomainRecords(
            {"MX": tuple(f"{10 * n} {name}" for n, name in enumerate(hosts, start=1))}
        )
    }


def host(name: str, address: str) -> dict[str, DomainRecords]:
    """A host with one address."""
    return {name: DomainRecords({"A": (address,)})}


def is_free(address: str, port: int) -> bool:
    """Whether it can be listened on."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((address, port))
        except OSError:
            return False
        return True


def await_listening(
    address: str, port: int, process: subprocess.Popen[bytes] | None = None
) -> None:
    """Return once a server listens there."""
    wait_until(lambda: has_ended(process) or is_listening(address, port), PATIENCE)
    if has_ended(process) or not is_listening(address, port):
        raise RuntimeError(f"no server listens at {address} port {port}")


def has_ended(process: subprocess.Popen[bytes] | None) -> bool:
    return process is not None and process.poll() is not None


def is_listening(address: str, port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((address, port)) == 0


def start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a server in the foreground; it writes to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a server that `start` started."""
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
