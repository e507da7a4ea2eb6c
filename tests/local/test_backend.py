"""The local backend against the sandbox's DNS: real packets on loopback."""

import pickle
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.backend import Batch, Settled
from mailverdict.errors import SettingsError
from mailverdict.local.backend import iso_timestamp
from mailverdict.local.screen import Screener
from mailverdict.loop import run_sync
from mailverdict.model.evidence import DnsOutcome
from mailverdict.model.table import table_to_rows
from mailverdict.model.words import ValidationType
from mailverdict.sandbox import World
from mailverdict.sandbox.zones import CASES

pytestmark = pytest.mark.usefixtures("skipped_waits")

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
VERDICT_OF = {
    DnsOutcome.MX: "valid",
    DnsOutcome.IMPLICIT_MX: "valid",
    DnsOutcome.NULL_MX: "invalid",
    DnsOutcome.NO_EXCHANGE: "invalid",
    DnsOutcome.NXDOMAIN: "invalid",
    DnsOutcome.NODATA: "invalid",
    DnsOutcome.UNDETERMINED: "unknown",
}


@pytest.fixture(scope="module")
def world():
    with World(dns_timeout=0.3) as opened:
        yield opened


def rows_of(backend, emails, kind):
    """Every row of a batch, in the order of the batch."""

    async def collect():
        rows = {}
        async for event in backend.verify(Batch(pa.array(emails), kind)):
            if isinstance(event, Settled):
                positions = (
                    range(len(event.rows)) if event.positions is None else event.positions.tolist()
                )
                rows |= dict(zip(positions, table_to_rows(event.rows), strict=True))
        await backend.aclose()
        return [rows[i] for i in range(len(emails))]

    return run_sync(collect())


@pytest.mark.parametrize("kind", ["mx", "mx_blacklist"])
def test_every_dns_case_gets_its_verdict(world, kind):
    emails = [f"ada@{case.domain}" for case in CASES]
    found = rows_of(world.make_backend(dns_timeout=0.3), emails, kind)
    wrong = {
        case.domain: (row.result, case.why)
        for case, row in zip(CASES, found, strict=True)
        if row.result != VERDICT_OF[case.outcome]
    }
    assert wrong == {}


def test_a_free_batch_has_only_the_fields_that_are_used():
    emails = pa.array(["Info@gmial.com", "ada@@gmail.com"])
    for fields in ({"status", "result"}, {"normalized", "role"}, {"free", "suggestion", "errors"}):
        batch = Batch(emails, "regex", fields=frozenset(fields))
        (event,) = run_sync(all_events(mv.LocalBackend(), batch))
        (whole,) = run_sync(all_events(mv.LocalBackend(), Batch(emails, "regex")))
        assert set(event.rows.column_names) == fields
        assert event.rows.to_pylist() == whole.rows.select(event.rows.column_names).to_pylist()


async def all_events(backend, batch):
    return [event async for event in backend.verify(batch)]


def test_a_setting_that_does_not_exist_is_named_with_the_nearest_one():
    with pytest.raises(
        SettingsError,
        match=r"^LocalBackend has no setting 'dns_concurency' \(did you mean 'dns_concurrency'\?\)$",
    ):
        mv.LocalBackend(dns_concurency=3)  # type: ignore[call-arg]
    with pytest.raises(SettingsError, match=r"^LocalBackend has no setting 'quux'$"):
        mv.LocalBackend(quux=3)  # type: ignore[call-arg]


def test_each_domain_is_asked_once_however_many_rows_it_has(world):
    before = world.dns.count("one.example", "MX")
    emails = [f"user{i}@one.example" for i in range(500)] + [
        f"USER{i}@One.Example" for i in range(500)
    ]
    out = mv.verify(emails, validation_type="mx", backend=world.make_backend())
    assert set(out["verdict"]) == {"valid"}
    assert world.dns.count("one.example", "MX") - before == 1


def test_rows_carry_exchanges_and_the_moment(world):
    (row,) = rows_of(world.make_backend(clock=lambda: NOW), ["ada@three.example"], "mx")
    assert row.metadata["mx_records"] == [
        "mx1.cases.example",
        "mx2.cases.example",
        "mx3.cases.example",
    ]
    assert row.metadata["validated_at"] == NOW.isoformat()
    assert row.metadata["lists"].startswith("disposable ")
    assert row.catch_all is None
    assert "catch_all" not in row.to_dict()


def test_flags_are_determined_for_every_type(world):
    for kind in ("regex", "mx", "mx_blacklist"):
        (row,) = rows_of(world.make_backend(), ["info@gmail.com"], kind)
        assert (row.role, row.free, row.disposable, row.spamtrap) == (True, True, False, None)
        assert (row.result, row.reasons) == ("valid", ())


def test_a_user_given_spamtrap_is_true_or_never_determined(world):
    backend = world.make_backend(lists=mv.Lists(spamtrap=["one.example"]))
    hit, miss = rows_of(backend, ["ada@one.example", "ada@three.example"], "regex")
    assert (hit.spamtrap, miss.spamtrap) == (True, None)


def test_malformed_addresses_cost_no_query(world):
    before = world.dns.count()
    found = rows_of(world.make_backend(), ["a b@one.example", "ada@", "@one.example"], "mx")
    assert {row.result for row in found} == {"invalid"}
    assert {row.reason for row in found} == {"REGEX"}
    assert world.dns.count() == before


def test_a_blacklisted_exchange_is_named(world):
    backend = world.make_backend(blacklist=mv.Blacklist(hosts=["cases.example"]))
    listed, other = rows_of(backend, ["ada@one.example", "ada@gmail.com"], "mx_blacklist")
    assert (listed.result, listed.reason, listed.checks["blacklist"]) == (
        "invalid",
        "BLACKLIST",
        False,
    )
    assert "mx1.cases.example" in listed.errors[0].message
    assert (other.result, other.checks["blacklist"]) == ("valid", True)


def test_without_any_blacklist_no_check_is_claimed(world):
    (row,) = rows_of(world.make_backend(), ["ada@one.example"], "mx_blacklist")
    assert row.metadata["blacklist_sources"] == []
    assert row.checks == {"syntax": True, "dns": True}


def test_a_dns_list_that_gives_no_usable_answer_is_unknown(world):
    zone = mv.Zone("refusing-bl.sandbox.example", codes=["127.0.0.2"])
    backend = world.make_backend(blacklist=mv.Blacklist(zones=[zone]))
    (row,) = rows_of(backend, ["ada@one.example"], "mx_blacklist")
    assert (row.result, row.reason) == ("unknown", "BLACKLIST")


@pytest.mark.parametrize("kind", ["regex", "mx", "mx_blacklist"])
def test_the_single_check_is_the_same_as_the_column(world, kind):
    emails = ["info@gmail.com", "ada@gone.example", "no at sign", "ada@three.example"]
    column = rows_of(world.make_backend(clock=lambda: NOW), emails, kind)
    single = [
        mv.check(e, validation_type=kind, backend=world.make_backend(clock=lambda: NOW))
        for e in emails
    ]
    assert [v.to_dict() for v in single] == [v.to_dict() for v in column]


@pytest.mark.parametrize("kind", ["regex", "mx", "mx_blacklist"])
@pytest.mark.parametrize(
    "email", ["Info@GMAIL.com", "ada@gone.example", "no at sign", "ada@three.example"]
)
def test_explain_reaches_the_verdict_of_the_check(world, kind, email):
    explained = mv.explain(
        email, validation_type=kind, backend=world.make_backend(clock=lambda: NOW)
    )
    checked = mv.check(email, validation_type=kind, backend=world.make_backend(clock=lambda: NOW))
    assert explained.verification.to_dict() == checked.to_dict()


@pytest.mark.parametrize(
    ("kind", "email", "shown"),
    [
        (
            "mx",
            "ada@one.example",
            ["one.example MX: 10 mx1.cases.example", "mx1.cases.example A, AAAA: 127.0.30.1"],
        ),
        ("mx", "ada@null.example", ["null.example MX: 0 ."]),
        (
            "mx",
            "ada@implicit.example",
            ["implicit.example MX: NODATA", "implicit.example A: 127.0.30.9"],
        ),
        ("mx", "ada@gone.example", ["gone.example MX: NXDOMAIN", "gone.example A: NXDOMAIN"]),
        ("mx", "ada@servfail.example", ["servfail.example MX: SERVFAIL from 127.0.0.1"]),
        (
            "smtp",
            "nobody@plain.example",
            ["by rule 'postfix_unknown' of the table of replies (Postfix"],
        ),
        (
            "smtp",
            "ada@closed.example",
            ["by rule 'connection_refused' of the table of failed connections: port_closed"],
        ),
        (
            "smtp",
            "ada@mute.example",
            ["by rule 'permanent+same_for_anyone' of the table of replies"],
        ),
    ],
)
def test_explain_shows_what_was_asked_and_answered_and_the_rule_that_decided(
    world, kind, email, shown
):
    lines = str(mv.explain(email, validation_type=kind, backend=world.backend)).splitlines()
    assert f"    asked the resolver {world.backend.settings.resolver}" in lines
    assert [
        line for line in shown if not any(each.startswith(f"    {line}") for each in lines)
    ] == []


def test_explain_shows_what_a_dns_list_was_asked_and_answered(world):
    listing = mv.Blacklist(zones=[mv.Zone("bl.sandbox.example", codes=["127.0.0.2"])])
    backend = world.make_backend(blacklist=listing)
    for email, shown in (
        ("ada@listed.example", "1.40.0.127.bl.sandbox.example A: 127.0.0.2"),
        ("ada@one.example", "1.30.0.127.bl.sandbox.example A: NXDOMAIN"),
    ):
        assert (
            f"    {shown}"
            in str(mv.explain(email, validation_type="mx_blacklist", backend=backend)).splitlines()
        )


def test_explain_escapes_what_it_shows(world):
    explained = mv.explain(
        "<script>alert(1)</script>@one.example", validation_type="mx", backend=world.backend
    )
    assert "<script>" not in explained._repr_html_()
    assert "verdict: invalid" in str(explained)


def test_screening_settles_only_what_is_established(world):
    emails = [
        "ada@one.example",
        "broken",
        "ada@gone.example",
        "ada@gmial.com",
        "ada@localhost.example",
        "ada@numeric-only.example",
    ]

    async def collect():
        screener = Screener(world.make_backend(), with_dns=True)
        positions = pa.array([3, 5, 8, 9, 10, 11]).to_numpy()
        settled = {}
        async for event in screener.settle(pa.array(emails), positions, ValidationType.SMTP):
            settled |= dict(
                zip(positions[event.positions].tolist(), table_to_rows(event.rows), strict=True)
            )
        return settled

    settled = run_sync(collect())
    assert {at: list(row.reasons) for at, row in settled.items()} == {
        5: ["syntax_error"],
        8: ["no_mx_record"],
        9: ["no_mx_record"],
        10: ["no_mx_record"],
    }


def test_the_backend_says_how_it_differs_from_the_defaults():
    assert repr(mv.LocalBackend(resolver="127.0.0.1:53")) == "LocalBackend(resolver='127.0.0.1:53')"
    with pytest.raises(mv.SettingsError, match="resolver='nonsense'"):
        mv.LocalBackend(resolver="nonsense")


def test_answers_under_other_settings_are_kept_apart():
    plain, strict = (
        mv.LocalBackend(),
        mv.LocalBackend(blacklist=mv.Blacklist(hosts=["bad.example"])),
    )
    own = mv.LocalBackend(lists=mv.Lists(disposable_deny=["bad.example"]))
    elsewhere = mv.LocalBackend(resolver="127.0.0.1:53")
    keys = {backend.journal_key("smtp") for backend in (plain, strict, own, elsewhere)}
    assert len(keys) == 4
    patient = mv.LocalBackend(command_timeout=90, helo_name="a.example")
    assert plain.journal_key("smtp") == patient.journal_key("smtp")


def test_a_backend_travels_between_processes():
    backend = mv.LocalBackend(resolver="127.0.0.1:53", blacklist=mv.Blacklist(ips=["192.0.2.0/24"]))
    assert pickle.loads(pickle.dumps(backend)).settings == backend.settings


class CountingBackend(mv.LocalBackend):
    def __init__(self, **settings):
        super().__init__(**settings)
        self.checks = 0


def test_a_subclass_with_attributes_of_its_own_travels_too():
    backend = CountingBackend(resolver="127.0.0.1:53", deadline="1min")
    copy = pickle.loads(pickle.dumps(backend))
    assert (type(copy), copy.settings, copy.checks) == (CountingBackend, backend.settings, 0)


def test_what_is_printed_cannot_move_the_cursor():
    shown = str(mv.explain("a\x1b[31m\r\nverdict: valid@b.example", validation_type="regex"))
    assert "\x1b" not in shown
    assert "\r" not in shown
    assert "\nverdict: valid@" not in shown


@pytest.mark.parametrize("is_sandbox", [True, False])
def test_failed_look_ups_are_not_reused_from_the_journal(tmp_path: Path, is_sandbox: bool) -> None:
    with World(dns_timeout=0.3) as opened:
        settings = replace(opened.backend.settings, resolver_check=False)
        plain = mv.LocalBackend.from_settings(settings)
        backend = opened.backend if is_sandbox else plain
        options = {"validation_type": "mx", "backend": backend, "journal": tmp_path / "kept.db"}
        emails = ["ada@servfail.example", "ada@one.example"]
        sources = [mv.verify(emails, columns="all", **options)["source"].tolist() for _ in range(2)]
    assert sources == [["local", "local"], ["local", "journal"]]


def test_a_timestamp_is_the_present_in_utc_to_the_microsecond() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    written = iso_timestamp()
    assert before <= datetime.fromisoformat(written) <= datetime.now(UTC)
    assert written.endswith("+00:00")
    assert len(written) == len("2026-11-22T20:00:00.000000+00:00")
    assert iso_timestamp(0.25) == "1970-01-01T00:00:00.250000+00:00"
