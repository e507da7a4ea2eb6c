"""What holds for every test: loopback only, the same examples each time, nobody's own files."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import sys
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from tests.doubles.clock import PatientPolicy, skip_waits

settings.register_profile("house", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

asyncio.set_event_loop_policy(PatientPolicy())

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A background job of a shell is born deaf to Ctrl-C, and so would be every process that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

STRANGERS: list[str] = []  # whom this process tried to reach, other than itself


def is_loopback(host: object) -> bool:
    """Whether a host, as sockets take it, is this machine."""
    if host in (None, "", "localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


def watch_sockets(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse to leave this machine; an audit hook sees what asyncio and every library do."""
    if event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        target: object = arguments[1][0]
    elif event == "socket.getaddrinfo":
        target = arguments[0]
    else:
        return
    if not is_loopback(target):
        STRANGERS.append(f"{event} {target!r}")
        raise PermissionError(f"tests talk to loopback only, not to {target!r}")


sys.addaudithook(watch_sockets)


@pytest.fixture(autouse=True)
def stay_on_loopback():
    """Fail a test that tried to leave this machine, also where its error was swallowed."""
    STRANGERS.clear()
    yield
    assert STRANGERS == []


@pytest.fixture(autouse=True, scope="session")
def nobody_home():
    """Keep journals and updated lists of whoever runs the tests out of them."""
    with tempfile.TemporaryDirectory() as folder:
        given = {name: value for name, value in os.environ.items() if name.startswith("MAILVERDICT_")}
        for name in given:
            del os.environ[name]
        earlier = os.environ.get("XDG_DATA_HOME")
        os.environ["XDG_DATA_HOME"] = folder
        yield
        os.environ.pop("XDG_DATA_HOME")
        os.environ.update(given if earlier is None else {**given, "XDG_DATA_HOME": earlier})


@pytest.fixture
def skipped_waits():
    """Let event loops skip their waits: for tests whose servers run on the same loop."""
    with skip_waits():
        yield


@pytest.fixture
def real_waits(skipped_waits):
    """Let event loops wait after all, in a module whose other tests skip waits."""
    with skip_waits(is_skipping=False):
        yield


def pytest_make_parametrize_id(val, argname):
    """Give each case the same name in every process: functions by their name, long messages by the argument's."""
    if callable(val):
        return getattr(val, "__name__", None)
    return argname if isinstance(val, bytes) and not val.isalnum() else None
