"""Resolvers that answer falsely: no wrong verdict, and an error or a warning each time."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.checks.dns.self_test import load_probes, parse_probes
from mailverdict.checks.lists.files import write_list
from mailverdict.cli import main
from mailverdict.loop import run_sync
from mailverdict.model.settings import LocalSettings
from mailverdict.sandbox.dns import DnsFault, DomainRecords
from mailverdict.sandbox.dns_table import ZoneTable
from mailverdict.sandbox.zones import sandbox_zones
from tests.doubles.lying_resolver import (
    Lie,
    LyingServer,
    always,
    missing,
    portal,
    portal_of_many,
    search_page,
    shared_portal,
)
from tests.doubles.tables import each_row

pytestmark = pytest.mark.usefixtures("skipped_waits")

LIVE = [f"live{i}.example" for i in range(300)]
IMPLICIT = [f"implicit{i}.example" for i in range(20)]
PARKED = [f"parked{i}.example" for i in range(20)]
DEAD = [f"dead{i}.example" for i in range(60)]
PROVIDERS = ["gmail.com", "googlemail.com", "hotmail.fr", "web.de", "hotmail.gr"]
GOOD = {*LIVE, *IMPLICIT, *PROVIDERS}

ZONES: Mapping[str, DomainRecords] = {
    **sandbox_zones(),
    **{name: DomainRecords({"MX": ("10 mx1.cases.example",)}) for name in [*LIVE, "hotmail.gr"]},
    **{name: DomainRecords({"A": ("192.0.2.9",)}) for name in IMPLICIT},
    **{name: DomainRecords({"TXT": ("v=spf1 -all",)}) for name in PARKED},
}
TRUE = ZoneTable(ZONES)


def mixed() -> list[str]:
    """All domains, good and dead ones evenly mixed."""
    others = [*IMPLICIT, *PARKED, *DEAD, *PROVIDERS]
    step = len(LIVE) // len(others)
    for at, name in enumerate(others):
        LIVE_AND_OTHERS[at * (step + 1) : at * (step + 1)] = [name]
    return LIVE_AND_OTHERS


LIVE_AND_OTHERS = list(LIVE)
DOMAINS = mixed()


def exchange_below(name: str, rdtype: str) -> DomainRecords:
    """An exchange below each name."""
    return DomainRecords({"MX": (f"10 mx.{name}.",), "A": ("192.0.2.80",)})


def exchange_of_many(name: str, rdtype: str) -> DomainRecords:
    """Another exchange for each name."""
    return DomainRecords({"MX": (f"10 mx{crc32(name.encode())}.portal.example.",)})


MISSING = DomainRecords(faults={"*": DnsFault.NXDOMAIN})


def no_mail(exchange: str) -> Lie:
    """The same exchange for all domains, which no host can be."""
    records = DomainRecords({"MX": (exchange,)})
    return lambda name, rdtype: records


def denied_at_times(name: str, rdtype: str) -> DomainRecords | None:
    """As one of several resolvers behind an address would: some answers to MX questions and a few of both are denials."""
    if not name.startswith("live"):
        return None
    number = int(name.removeprefix("live").removesuffix(".example"))
    if number < 6 or number % 10 == 5:
        return MISSING if rdtype == "MX" else None
    return MISSING if number >= 20 and number % 10 == 0 else None


@dataclass(frozen=True)
class Outcome:
    """What the caller of `verify` gets."""

    frame: pd.DataFrame | None
    error: Exception | None
    warned: list[str]

    def verdicts(self) -> dict[str, str]:
        """By domain, those that there are."""
        if self.frame is None:
            return {}
        found = zip(DOMAINS, self.frame["verdict"], strict=True)
        return {domain: verdict for domain, verdict in found if isinstance(verdict, str)}


def verify(
    lie: Lie | None, action: Callable[..., Any] = mv.verify, *, settings: Any = None, **given: Any
) -> Outcome:
    """Verify all domains with a resolver that answers falsely."""
    server = LyingServer(TRUE, lie, **given)
    run_sync(server.start())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        own = {
            "resolver": server.endpoint,
            "dns_timeout": 0.5,
            "dns_attempts": 2,
            **(settings or {}),
        }
        try:
            with mv.LocalBackend.from_settings(LocalSettings(**own)) as backend:
                frame = action(
                    [f"ada@{domain}" for domain in DOMAINS], validation_type="mx", backend=backend
                )
            error = None
        except mv.BackendError as exc:
            frame, error = exc.partial, exc
        finally:
            run_sync(server.stop())
    return Outcome(frame, error, [str(each.message) for each in seen])


def wrong(outcome: Outcome) -> dict[str, str]:
    """The verdicts that harm: a good domain that is invalid, another one that is valid."""
    harmful = {True: "invalid", False: "valid"}
    return {
        domain: verdict
        for domain, verdict in outcome.verdicts().items()
        if verdict == harmful[domain in GOOD]
    }


@pytest.mark.slow
def test_a_true_resolver_passes():
    found = verify(None)
    assert found.error is None
    assert found.warned == []
    expected = {domain: "valid" if domain in GOOD else "invalid" for domain in DOMAINS}
    assert found.verdicts() == expected


@dataclass(frozen=True)
class Case:
    why: str
    lie: Lie
    says: str  # a part of the error or of the warning
    given: Mapping[str, Any]
    settles: bool = False  # whether there are verdicts


CASES = [
    Case(
        "NXDOMAIN for all",
        always(DnsFault.NXDOMAIN),
        "for gmail.com, outlook.com and ietf.org, which is false",
        {},
    ),
    *(
        Case(
            f"MX {exchange} for all",
            no_mail(exchange),
            "for gmail.com, outlook.com and ietf.org, which is false",
            {},
        )
        for exchange in ("0 .", "0 0.", "0 localhost.")
    ),
    Case(
        "MX 0 0. for names that do not exist",
        search_page(TRUE, no_mail("0 0.")),
        "cannot be distinguished",
        {},
        settles=True,
    ),
    Case("MX 0 0. begins", no_mail("0 0."), "began", {"begins_after": 250}, settles=True),
    Case(
        "a private address for names that do not exist",
        search_page(TRUE, lambda name, rdtype: DomainRecords({"A": ("10.0.0.1",)})),
        "10.0.0.1",
        {},
        settles=True,
    ),
    Case("REFUSED", always(DnsFault.REFUSED), "REFUSED", {}),
    Case("SERVFAIL", always(DnsFault.SERVFAIL), "SERVFAIL", {}),
    Case(
        "an address for all", portal, "for gmail.com, outlook.com and ietf.org, which is false", {}
    ),
    Case(
        "NXDOMAIN over UDP only",
        always(DnsFault.NXDOMAIN),
        "changes answers over UDP",
        {"only_udp": True},
    ),
    Case("an address over UDP only", portal, "changes answers over UDP", {"only_udp": True}),
    Case("silence over UDP", always(DnsFault.SILENCE), "block DNS over UDP", {"only_udp": True}),
    Case("silence", always(DnsFault.SILENCE), "no answer", {}),
    Case(
        "one provider is missing",
        missing("gmail.com", "googlemail.com"),
        "gmail.com",
        {},
        settles=True,
    ),
    Case(
        "another one is missing",
        missing("hotmail.fr", "hotmail.gr"),
        "hotmail.fr",
        {},
        settles=True,
    ),
    Case("a search page", search_page(TRUE), "192.0.2.80", {}, settles=True),
    Case(
        "another search page each time",
        search_page(TRUE, portal_of_many),
        "cannot be distinguished",
        {},
        settles=True,
    ),
    Case(
        "a search page at addresses of others",
        search_page(TRUE, shared_portal),
        "cannot be distinguished",
        {},
        settles=True,
    ),
    Case(
        "an exchange below each name",
        search_page(TRUE, exchange_below),
        "cannot be distinguished",
        {},
        settles=True,
    ),
    Case(
        "another exchange each time",
        search_page(TRUE, exchange_of_many),
        "cannot be distinguished",
        {},
        settles=True,
    ),
    Case(
        "NXDOMAIN at times",
        denied_at_times,
        "denied records of domains and then gave them",
        {},
        settles=True,
    ),
    Case(
        "NXDOMAIN begins", always(DnsFault.NXDOMAIN), "began", {"begins_after": 250}, settles=True
    ),
    Case("an address for all begins", portal, "began", {"begins_after": 250}, settles=True),
    Case(
        "a search page begins", search_page(TRUE), "192.0.2.80", {"begins_after": 250}, settles=True
    ),
    Case(
        "NXDOMAIN begins late",
        always(DnsFault.NXDOMAIN),
        "began",
        {"begins_after": 420},
        settles=True,
    ),
]


# Cases that are much like others, and take half of the time: `make test-rest` has them.
LIKE_OTHERS = {
    *(
        "another one is missing",
        "another search page each time",
        "a search page at addresses of others",
    ),
    *(
        "an exchange below each name",
        "an address for all begins",
        "NXDOMAIN begins late",
        "NXDOMAIN begins",
    ),
    *("NXDOMAIN at times", "a search page begins"),
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.slow if case.why in LIKE_OTHERS else (), id=case.why)
        for case in CASES
    ],
)
def test_a_resolver_that_answers_falsely_harms_no_row(case):
    found = verify(case.lie, **case.given)
    assert wrong(found) == {}
    assert case.says in " ".join([str(found.error), *found.warned])
    assert bool(found.verdicts()) == case.settles
    if not case.settles:
        assert isinstance(found.error, mv.ResolverError)
        assert "resolver_check=False" in str(found.error)


@pytest.mark.slow
def test_a_few_domains_whose_servers_deny_the_mx_question_harm_no_other_denial():
    odd = {"live7.example", "live123.example"}
    found = verify(lambda name, rdtype: MISSING if name in odd and rdtype == "MX" else None)
    assert found.warned == []
    expected = {domain: "valid" if domain in GOOD else "invalid" for domain in DOMAINS}
    assert found.verdicts() == {**expected, **dict.fromkeys(odd, "unknown")}


@pytest.mark.slow
def test_a_resolver_that_contradicts_itself_is_tested_again_before_the_next_run():
    with serving(TRUE, denied_at_times) as server, backend_for(server) as backend:
        with pytest.warns(UserWarning, match="denied records of domains and then gave them"):
            mv.verify([f"ada@{domain}" for domain in LIVE], backend=backend)
        server.lie = None
        again = mv.verify(["ada@dead1.example", "ada@live20.example"], backend=backend)
    assert list(again["verdict"]) == ["invalid", "valid"]


@pytest.mark.slow
def test_a_resolver_that_begins_to_give_exchanges_for_all_names_is_noticed():
    with (
        serving(TRUE, exchange_of_many, begins_after=200) as server,
        backend_for(server) as backend,
    ):
        with pytest.warns(UserWarning, match="began during a run to give exchanges"):
            mv.verify([f"ada@{domain}" for domain in LIVE], backend=backend)
        with pytest.warns(UserWarning, match="cannot be distinguished from true ones"):
            again = mv.verify(["ada@dead1.example"], backend=backend)
    assert list(again["verdict"]) == ["unknown"]


# --- what the test costs ----------------------------------------------------------------------------


@contextmanager
def serving(
    zones: Mapping[str, DomainRecords] | ZoneTable, lie: Lie | None = None, **given: Any
) -> Iterator[LyingServer]:
    """A server for these zones."""
    server = LyingServer(zones, lie, **given)
    run_sync(server.start())
    try:
        yield server
    finally:
        run_sync(server.stop())


def backend_for(server: LyingServer, **settings: Any) -> mv.LocalBackend:
    quick = {"dns_timeout": 0.5, "dns_attempts": 2}
    wanted = LocalSettings(resolver=server.endpoint, **quick, **settings)
    return mv.LocalBackend.from_settings(wanted)


def questions_of_run(emails: list[str], **settings: Any) -> int:
    with serving(TRUE) as server, backend_for(server, **settings) as backend:
        mv.verify(emails, backend=backend)
        return server.count()


@pytest.mark.slow
@pytest.mark.parametrize(
    "domains",
    [
        DOMAINS,
        LIVE,
        DEAD,
        PROVIDERS,
    ],
    ids=["mixed", "live", "dead", "providers"],
)
def test_the_test_adds_at_most_eight_questions(domains):
    emails = [f"ada@{domain}" for domain in domains]
    added = questions_of_run(emails) - questions_of_run(emails, resolver_check=False)
    assert 1 <= added <= 8


def test_the_test_before_a_run_is_made_once_for_each_backend():
    with serving(TRUE) as server, backend_for(server) as backend:
        mv.verify([f"ada@{LIVE[0]}"], backend=backend)
        first = server.count()
        mv.verify([f"ada@{LIVE[1]}"], backend=backend)
        assert server.count() - first == 1


def test_malformed_rows_alone_need_no_resolver():
    with serving(TRUE, always(DnsFault.REFUSED)) as server, backend_for(server) as backend:
        assert mv.verify(["nonsense", "ada@"], backend=backend)["verdict"].tolist() == [
            "invalid",
            "invalid",
        ]
        assert server.count() == 0


@each_row("address", ["0.0.0.0", "127.0.0.1", "10.0.0.1"])
def test_an_address_that_filters_give_for_what_they_block_is_no_verdict(address):
    def lie(name: str, rdtype: str) -> DomainRecords | None:
        is_blocked = name == IMPLICIT[0] and rdtype == "A"
        return DomainRecords({"A": (address,)}) if is_blocked else None

    with serving(TRUE, lie) as server, backend_for(server) as backend:
        emails = [f"ada@{IMPLICIT[0]}", f"ada@{IMPLICIT[1]}"]
        assert mv.verify(emails, backend=backend)["verdict"].tolist() == ["unknown", "valid"]


# --- one address, other types, private networks -------------------------------------------------------


@each_row("kind", ["mx", "mx_blacklist", "smtp"])
@each_row("lie", [always(DnsFault.NXDOMAIN), always(DnsFault.REFUSED), portal])
def test_a_check_of_one_address_raises_the_error(lie, kind):
    with serving(TRUE, lie) as server, backend_for(server) as backend:
        with pytest.raises(mv.ResolverError, match="resolver_check=False"):
            mv.check("ada@live1.example", validation_type=kind, backend=backend)
        with pytest.raises(mv.ResolverError, match=server.endpoint):
            mv.verify(
                ["ada@live1.example", "nonsense"],
                validation_type=kind,
                backend=backend,
                journal=None,
            )


def test_one_address_notices_answers_that_became_false():
    with (
        serving(TRUE, always(DnsFault.NXDOMAIN), begins_after=250) as server,
        backend_for(server) as backend,
    ):
        assert (
            mv.check("ada@live1.example", validation_type="mx", backend=backend).result == "valid"
        )
        settled = [mv.check(f"ada@{LIVE[2]}", validation_type="mx", backend=backend).result]
        server.begins_after = 0
        with pytest.raises(mv.ResolverError, match="began to answer falsely"):
            mv.check(f"ada@{LIVE[3]}", validation_type="mx", backend=backend)
        assert settled == ["valid"]


def test_a_resolver_that_works_again_is_used_again_by_the_same_backend():
    with serving(TRUE, always(DnsFault.NXDOMAIN)) as server, backend_for(server) as backend:
        with pytest.raises(mv.ResolverError):
            mv.verify(["ada@live1.example"], backend=backend)
        server.lie = None
        assert mv.verify(["ada@live1.example", "ada@dead1.example"], backend=backend)[
            "verdict"
        ].tolist() == [
            "valid",
            "invalid",
        ]


@pytest.mark.slow
def test_answers_of_an_interrupted_run_are_not_used_unconfirmed():
    with (
        serving(TRUE, always(DnsFault.NXDOMAIN), begins_after=250) as server,
        backend_for(server) as backend,
    ):
        with pytest.raises(mv.ResolverError):
            mv.verify([f"ada@{domain}" for domain in LIVE], backend=backend)
        server.lie = None
        assert set(mv.verify([f"ada@{domain}" for domain in LIVE], backend=backend)["verdict"]) == {
            "valid"
        }


def test_a_private_resolver_needs_the_setting():
    own = {"one.lan.example": DomainRecords({"MX": ("10 mx.lan.example",)})}
    emails = ["ada@one.lan.example", "ada@two.lan.example"]
    with serving(own) as server:
        with (
            backend_for(server) as backend,
            pytest.raises(mv.ResolverError, match="resolver_check=False"),
        ):
            mv.verify(emails, backend=backend)
        with backend_for(server, resolver_check=False) as backend:
            assert mv.verify(emails, backend=backend)["verdict"].tolist() == ["valid", "invalid"]


def test_screening_needs_a_resolver_that_works(real_waits):
    with (
        serving(TRUE, always(DnsFault.NXDOMAIN)) as server,
        backend_for(server) as screen,
        mv.sandbox.World() as world,
    ):
        with pytest.raises(mv.ResolverError):
            mv.verify(["ada@live1.example"], backend=world.url, screen=screen, journal=None)
        assert mv.quota(world.url).used == 0


# --- the table ----------------------------------------------------------------------------------------


def test_the_setting_is_true_or_false():
    with pytest.raises(mv.SettingsError, match="resolver_check='no'"):
        mv.LocalBackend(resolver_check="no")


@each_row(
    ("entries", "says"),
    [
        (["gmail.com"], "'gmail.com'"),
        (["a.example TXT 2026-11-22 why"], "TXT"),
        (["a.example MX 2026-11-22 why"], "at least"),
    ],
)
def test_a_wrong_table_is_refused(entries, says):
    with pytest.raises(mv.SettingsError, match=says):
        parse_probes(entries)


def test_a_users_table_replaces_the_packaged_one(tmp_path):
    rows = [f"mail{i}.example MX 2026-11-22 ours" for i in range(3)]
    rows += [f"{name} NXDOMAIN 2026-11-22 ours" for name in ("com", "example")]
    write_list(
        tmp_path,
        "resolver_test",
        rows,
        source="ours",
        licence="MIT",
        day=datetime.date(2026, 11, 22),
    )
    assert load_probes(tmp_path).known == ("mail0.example", "mail1.example", "mail2.example")
    assert load_probes(tmp_path).unused == ("com", "example")


# --- before a run: plan and audit_host ----------------------------------------------------------------


def test_plan_warns_at_the_line_of_its_caller():
    with serving(TRUE, always(DnsFault.NXDOMAIN)) as server, backend_for(server) as backend:
        with pytest.warns(UserWarning, match="which is false") as caught:
            found = mv.plan(["ada@live1.example", "bob@live2.example"], backend=backend)
        assert found.to_submit == 2
        assert [each.filename for each in caught] == [__file__]


def test_plan_asks_nothing_where_nothing_will_be_looked_up():
    with serving(TRUE, always(DnsFault.NXDOMAIN)) as server, backend_for(server) as backend:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mv.plan(["ada@live1.example"], validation_type="regex", backend=backend)
            mv.plan(["ada@live1.example"], offline=True, backend=backend)
            mv.plan(["nonsense"], backend=backend)
        assert server.count() == 0


@each_row(
    ("lie", "settings", "ok", "says"),
    [
        (None, {}, True, "knows domains that exist"),
        (always(DnsFault.NXDOMAIN), {}, False, "which is false"),
        (missing("gmail.com"), {}, False, "gmail.com"),
        (search_page(TRUE), {}, False, "192.0.2.80"),
        (None, {"resolver_check": False}, None, "not tested"),
    ],
)
def test_audit_host_shows_the_resolver(lie, settings, ok, says):
    with serving(TRUE, lie) as server, backend_for(server, smtp_port=9, **settings) as backend:
        finding = mv.audit_host(backend, domains=[]).findings[0]
    assert (finding.name, finding.ok) == ("resolver", ok)
    assert says in finding.seen


def test_audit_host_blames_no_mail_server_for_the_resolver():
    with (
        serving(TRUE, always(DnsFault.NXDOMAIN)) as server,
        backend_for(server, smtp_port=9) as backend,
    ):
        found = mv.audit_host(backend, address="192.0.2.1")
    assert {each.name: each.ok for each in found.findings} == {
        "resolver": False,
        "port_25": None,
        "ptr": None,
        "helo": None,
        "listed": None,
    }
    assert str(found).startswith("not established whether mail servers accept this host")


def test_plan_and_audit_host_report_a_system_without_a_resolver(monkeypatch):
    def find_none() -> Any:
        raise mv.SettingsError("this system has no DNS resolver set up")

    with mv.LocalBackend(smtp_port=9) as backend:
        monkeypatch.setattr(backend.domains.resolver._client, "_find_servers", find_none)
        assert "no DNS resolver" in mv.audit_host(backend).findings[0].seen
        with pytest.warns(UserWarning, match="no DNS resolver"):
            assert mv.plan(["ada@live1.example"], backend=backend).to_submit == 1


def test_the_command_line_needs_a_resolver_that_works(tmp_path, capfd):
    path, out = tmp_path / "contacts.csv", tmp_path / "out.csv"
    path.write_text("email\nada@live1.example\nnonsense\n")
    own = {"live1.example": ZONES["live1.example"]}
    with serving(own) as server:
        arguments = ["verify", str(path), "-o", str(out), "--resolver", server.endpoint, "-q"]
        with pytest.raises(SystemExit) as left:
            main(arguments)
        assert (left.value.code, out.exists()) == (4, False)
        assert "--no-resolver-check" in capfd.readouterr().err
        with pytest.raises(SystemExit) as left:
            main([*arguments, "--no-resolver-check"])
        assert (left.value.code or 0, out.read_text().count("valid")) == (0, 2)


def test_the_command_line_warns_of_a_run_without_verdicts(tmp_path, capfd):
    path, out = tmp_path / "contacts.csv", tmp_path / "out.csv"
    path.write_text("".join(["email\n", *(f"ada@broken{i}.example\n" for i in range(9))]))
    broken = {
        f"broken{i}.example": DomainRecords(faults={"*": DnsFault.SERVFAIL}) for i in range(9)
    }
    with serving({**ZONES, **broken}) as server, pytest.raises(SystemExit) as left:
        main(["verify", str(path), "-o", str(out), "--resolver", server.endpoint, "-q"])
    assert (left.value.code or 0) == 0
    assert (
        "warning: 9 of 9 addresses have no verdict, since the DNS gave no usable answer"
        in capfd.readouterr().err
    )


def test_the_command_line_shows_what_is_wrong_with_the_resolver_as_a_note(capfd):
    with serving(TRUE, search_page(TRUE)) as server, pytest.raises(SystemExit) as left:
        main(["check", "ada@live1.example", "-t", "mx", "--resolver", server.endpoint])
    assert (left.value.code or 0) == 0
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(
        f"note: the resolver {server.endpoint} gives 192.0.2.80 for names that do not exist"
    )
