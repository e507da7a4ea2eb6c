"""Which addresses are contacted, and what becomes of attempts."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterator

import pytest

from mailverdict.checks.smtp.classify.classification import ConnectionFailure, FailureKind
from mailverdict.checks.smtp.transport.dial import Target, dial, may_dial
from tests.doubles.clock import PatientLoop

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)

ADDRESSES = [
    ("8.8.8.8", True, "public"),
    ("2001:4860:4860::8888", True, "public, IPv6"),
    ("127.0.0.1", False, "loopback"),
    ("::1", False, "loopback, IPv6"),
    ("10.0.0.1", False, "private"),
    ("172.16.5.5", False, "private"),
    ("192.168.1.1", False, "private"),
    ("100.64.0.1", False, "shared address space"),
    ("169.254.1.1", False, "link-local"),
    ("fe80::1", False, "link-local, IPv6"),
    ("fe80::1%eth0", False, "with a zone"),
    ("fd00::1", False, "unique local"),
    ("224.0.0.1", False, "multicast"),
    ("ff02::1", False, "multicast, IPv6"),
    ("233.252.0.1", False, "multicast that is global"),
    ("0.0.0.0", False, "unspecified, which connects to ourselves"),
    ("255.255.255.255", False, "broadcast"),
    ("240.0.0.1", False, "reserved"),
    ("::ffff:127.0.0.1", False, "loopback in IPv6 clothes"),
    ("::ffff:8.8.8.8", True, "public in IPv6 clothes"),
    ("2002:7f00:1::", False, "6to4 to loopback"),
    ("192.0.2.1", False, "documentation"),
    ("mx.example.org", False, "a name"),
    ("", False, "nothing"),
]


@pytest.mark.parametrize(("address", "expected", "why"), ADDRESSES)
def test_may_dial_public_unicast_only(address: str, expected: bool, why: str) -> None:
    assert may_dial(address) is expected, why


@pytest.mark.parametrize("address", ["127.0.0.1", "127.25.0.9", "::ffff:127.0.0.1"])
def test_may_dial_networks_that_were_allowed(address: str) -> None:
    assert may_dial(address, LOOPBACK)


def test_may_dial_only_the_networks_that_were_allowed() -> None:
    assert not may_dial("10.0.0.1", LOOPBACK)


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


def attempt(addresses: tuple[str, ...], port: int, patience: float = 0.3) -> str | ConnectionFailure:
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


def test_dial_does_not_count_a_pause_of_this_process(open_port: int) -> None:
    async def dial_and_pause() -> str | ConnectionFailure:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, PatientLoop)
        loop.call_soon(loop.pause, 60.0)
        return await dial(Target(("127.0.0.1",), open_port, None, LOOPBACK), HangUp, 0.3)

    assert asyncio.run(dial_and_pause()) == "127.0.0.1"


def test_dial_does_not_dial_what_it_may_not() -> None:
    failure = attempt(("10.0.0.1", "192.168.0.1"), 25)

    assert isinstance(failure, ConnectionFailure)
    assert failure.kind is FailureKind.NOT_DIALLED
    assert "10.0.0.1" in failure.detail


def test_dial_without_addresses() -> None:
    failure = attempt((), 25)

    assert failure == ConnectionFailure(FailureKind.NOT_DIALLED, "the mail server has no address")
