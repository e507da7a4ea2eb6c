"""Is this host fit to ask: the sandbox's servers tell, on loopback."""

import asyncio

import pytest

import mailverdict as mv
from mailverdict.reports.host_audit import audit_here, helo_finding, own_address
from mailverdict.sandbox import World
from tests.doubles.tables import each_row

DOMAINS = ["gmail.com"]


def audit(domains=DOMAINS, address=None, **settings):
    async def run():
        async with World() as world:
            backend = world.make_backend(**settings)
            found = await audit_here(backend, domains, address)
            await backend.aclose()
            stats = world.smtp.stats("mx1.bigmail.example")
            return {each.name: each for each in found.findings}, found, stats

    return asyncio.run(run())


def test_a_host_with_a_name_that_points_back_is_fit():
    findings, found, stats = audit()
    assert {check: each.ok for check, each in findings.items()} == {
        "resolver": True,
        "port_25": True,
        "ptr": True,
        "helo": True,
        "listed": None,
    }
    assert found.address == "127.0.0.1"
    assert found.is_fit
    assert (stats.commands["RCPT"], stats.commands["MAIL"], stats.quits) == (0, 0, 1)


WRONG = [
    ({"smtp_port": 9}, "port_25", False, "outgoing mail ports are closed"),
    ({"helo_name": "other.example"}, "helo", False, "the HELO name must be client.sandbox.example"),
    ({"address": "127.0.99.99"}, "ptr", False, "has no PTR record"),
    ({"domains": []}, "port_25", None, "no domain was given"),
    ({"domains": ["no-such-domain.example"]}, "port_25", False, "no-such-domain.example"),
    ({"domains": ["private.example"]}, "port_25", False, "not in allow_networks"),
    ({"domains": ["closed.example", "private.example"]}, "port_25", False, "mx.closed.example"),
    ({"domains": ["tarpit.example", "gmail.com"], "connect_timeout": 0.2}, "port_25", True, "EHLO accepted"),
    ({"domains": ["plain.example"]}, "ptr", None, "no server reported our address"),
    ({"address": "127.0.40.1", "blacklist": mv.Blacklist(zones=[mv.Zone("bl.sandbox.example", codes=["127.0.0.2"])])}, "listed", False, "127.0.40.1"),
    ({"address": "127.0.10.1", "blacklist": mv.Blacklist(zones=[mv.Zone("bl.sandbox.example", codes=["127.0.0.2"])])}, "listed", True, "is on none of"),
    ({"address": "127.0.10.1", "blacklist": mv.Blacklist(zones=[mv.Zone("broken-bl.sandbox.example", codes=["127.0.0.2"])])}, "listed", None, ""),
]  # fmt: skip


@pytest.mark.slow
@each_row(("changes", "check", "ok", "says"), WRONG)
def test_what_is_wrong_is_said_with_what_to_do(changes, check, ok, says):
    findings, _, _ = audit(**changes)
    assert findings[check].ok is ok
    assert says in findings[check].seen


OWN = [
    ([(0.0, "S", "250-mx at your service, [192.0.2.7]")], "192.0.2.7"),
    ([(0.0, "S", "250-mx Hello client [2001:db8::7]")], "2001:db8::7"),
    ([(0.0, "C", "EHLO [192.0.2.7]")], None),
    ([(0.0, "S", "250-mx [999.1.1.1]")], None),
    ([], None),
]


@each_row(("transcript", "expected"), OWN)
def test_our_address_is_read_from_what_servers_say(transcript, expected):
    assert own_address(transcript) == expected


def test_the_name_is_compared_without_case_and_final_dot():
    assert helo_finding("Client.Example.", ["client.example"]).ok is True
    assert helo_finding("client.example", []).ok is False


def test_audit_host_looks_with_the_settings_of_a_backend():
    with World() as world:
        assert mv.audit_host(world.make_backend(), domains=DOMAINS).is_fit


def test_a_service_asks_from_its_own_host():
    with pytest.raises(mv.SettingsError, match="only a local backend"):
        mv.audit_host(mv.RemoteBackend("http://127.0.0.1:9"))


def test_an_address_that_is_not_one_is_refused():
    with pytest.raises(mv.SettingsError, match=r"address='192\.0\.2': give an IP address"):
        mv.audit_host(address="192.0.2")
