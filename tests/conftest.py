"""For every test: loopback only, the same examples each time, event loops whose time-outs do not depend on the machine's speed, a data folder of its own."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import signal
import sys
import tempfile
import warnings

import pytest
from hypothesis import HealthCheck, settings

from tests.doubles.clock import PatientLoop, PatientPolicy, skip_waits

# `make test` tries the same few examples each time, `make test-random` many others: `--hypothesis-profile=random`.
settings.register_profile(
    "random", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fixed", settings.get_profile("random"), max_examples=25, derandomize=True
)
settings.load_profile("fixed")

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.14 has them for one more release
    asyncio.set_event_loop_policy(PatientPolicy())
if sys.platform == "win32":
    asyncio.ProactorEventLoop = PatientLoop  # which the package asks for by its name

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, which the processes that tests interrupt would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as nohup does

gc.disable()  # until the tests are collected, which leaves hardly any garbage

collect_ignore = ["typing"]  # which mypy reads and nobody runs
REFUSED: list[str] = []  # attempts of this process to reach another machine


def pytest_collection_finish():
    """Leave modules and tests, which all stay, out of every later search for garbage: it is a tenth of the time."""
    gc.freeze()
    gc.enable()


def is_loopback(host: object) -> bool:
    """Whether a host of a socket address is this machine."""
    if host in (None, "", "localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


def watch_sockets(event: str, arguments: tuple[object, ...]) -> None:
    """Refuse connections to other machines; an audit hook covers asyncio and every library."""
    if event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        target: object = arguments[1][0]
    elif event == "socket.getaddrinfo":
        target = arguments[0]
    else:
        return
    if not is_loopback(target):
        REFUSED.append(f"{event} {target!r}")
        raise PermissionError(f"tests talk to loopback only, not to {target!r}")


sys.addaudithook(watch_sockets)


@pytest.fixture(autouse=True)
def loopback_only():
    """Fail a test that tried to reach another machine, also if its code caught the error."""
    REFUSED.clear()
    yield
    assert REFUSED == []


@pytest.fixture(autouse=True, scope="session")
def own_data_folder():
    """Keep the tests away from the journals, lists and settings of the user who runs them."""
    with tempfile.TemporaryDirectory() as folder:
        given = {
            name: value for name, value in os.environ.items() if name.startswith("MAILVERDICT_")
        }
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
