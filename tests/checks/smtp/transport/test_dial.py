"""What becomes of attempts to connect."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterator

import pytest

from mailverdict.checks.smtp.classify.classification import ConnectionFailure, FailureKind
from mailverdict.checks.smtp.transport.dial import Target, dial

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is taken, and not listened on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port whose queue of connections is full, so that no more are taken in."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        callers = [socket.socket() for _ in range(4)]
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex(sock.getsockname())
        yield sock.getsockname()[1]
        for caller in callers:
            caller.close()


@pytest.fixture
def open_port() -> Iterator[int]:
    """A port that takes connections."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(5)
        yield sock.getsockname()[1]


class HangUp(asyncio.Protocol):
    """Closes at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def attempt(
    addresses: tuple[str, ...], port: int, patience: float = 0.3
) -> str | ConnectionFailure:
    target = Target(addresses, port, None, LOOPBACK)
    return asyncio.run(dial(target, HangUp, patience))


def test_dial_gives_the_address_that_answered(open_port: int) -> None:
    assert attempt(("127.0.0.1",), open_port) == "127.0.0.1"


def test_dial_goes_on_to_the_next_address(open_port: int) -> None:
    assert attempt(("127.0.0.2", "127.0.0.1"), open_port) == "127.0.0.1"


def test_dial_reports_a_refusal(closed_port: int) -> None:
    failure = attempt(("127.0.0.1",), closed_port)

    assert isinstance(failure, ConnectionFailure)
    assert failure.kind is FailureKind.REFUSED
    assert "127.0.0.1" in failure.detail


def test_dial_reports_a_time_out_even_beside_a_refusal(deaf_port: int) -> None:
    failure = attempt(("127.0.0.2", "127.0.0.1"), deaf_port, patience=0.4)

    assert isinstance(failure, ConnectionFailure)
    assert failure.kind is FailureKind.CONNECT_TIMEOUT


def test_dial_does_not_dial_what_it_may_not() -> None:
    failure = attempt(("10.0.0.1", "192.168.0.1"), 25)

    assert isinstance(failure, ConnectionFailure)
    assert failure.kind is FailureKind.NOT_DIALLED
    assert "10.0.0.1" in failure.detail


def test_a_server_without_an_address_is_not_dialled() -> None:
    failure = attempt((), 25)

    assert failure == ConnectionFailure(FailureKind.NOT_DIALLED, "the mail server has no address")
