"""Starts the servers for these tests, and says why where it cannot."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from mailverdict.checks.dns.self_test import load_probes
from mailverdict.loop import run_sync
from mailverdict.sandbox.dns import DnsServer, DomainRecords
from tests.servers import exim, postfix
from tests.servers.install import is_unpacked, why_not
from tests.servers.postgrey import Postgrey
from tests.servers.world import DNS, exchanges, host, is_free, records_of


@dataclass(frozen=True)
class Servers:
    """What is running.

    Attributes
    ----------
    resolver : str
        The DNS that knows the domains, as the setting takes it.
    mail_log : Path
        Where Postfix writes what it saw.
    """

    resolver: str
    mail_log: Path


def zones() -> dict[str, DomainRecords]:
    """Everything that the DNS of these tests knows; the domains of the test of a resolver among it, as everywhere."""
    records = {
        name: DomainRecords({"MX": ("10 mx.elsewhere.example",)}) for name in load_probes().known
    }
    for listener in (*postfix.LISTENERS.values(), *exim.LISTENERS.values()):
        records |= records_of(listener)
    for name, address in postfix.HOSTS.items():
        records |= host(f"{name}.hosts.example", address)
    for domain, names in postfix.DOMAINS.items():
        records |= exchanges(domain, *(f"{name}.hosts.example" for name in names))
    help_text = '"https://www.example.org/listed?ip=127.0.0.1"'
    records[f"1.0.0.127.{postfix.LIST}"] = DomainRecords({"A": ("127.0.0.2",), "TXT": (help_text,)})
    return records


def why_skipped() -> str | None:
    """Say what is missing for these tests, if something is."""
    if reason := why_not():
        return reason
    if not is_unpacked():
        return "the mail servers are not installed; run make test-rest"
    wanted = [(each.host, 25) for each in (*postfix.LISTENERS.values(), *exim.LISTENERS.values())]
    taken = [place for place in (*wanted, (DNS, 53), postfix.POSTGREY) if not is_free(*place)]
    return f"port {taken[0][1]} of {taken[0][0]} is taken" if taken else None


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Postfix, Exim, postgrey and a DNS, on loopback, for all tests of this directory."""
    if reason := why_skipped():
        pytest.skip(f"no mail servers: {reason}")
    with ExitStack() as stack:
        run = Path(tempfile.mkdtemp(prefix="mailverdict-servers-"))
        stack.callback(shutil.rmtree, run, ignore_errors=True)
        run.chmod(0o755)  # the servers drop root
        dns = DnsServer(zones(), host=DNS, port=53)
        run_sync(dns.start())
        stack.callback(lambda: run_sync(dns.stop()))
        mail = postfix.Postfix(run / "postfix")
        for each in (Postgrey(run / "postgrey"), mail, exim.Exim(run / "exim")):
            stack.callback(each.stop)
            each.start()
        yield Servers(dns.endpoint, mail.log)
