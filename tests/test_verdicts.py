"""The precedence, row by row: what was seen, what must come of it, and why."""

from dataclasses import replace

import pytest

from mailverdict.model.evidence import (
    BlacklistEvidence,
    Classification,
    DnsOutcome,
    DomainEvidence,
    Evidence,
    Flags,
    MailboxEvidence,
    MailExchange,
    SyntaxEvidence,
)
from mailverdict.model.verification import Verification
from mailverdict.model.words import REASON_MEANING, Reason, ValidationType, Verdict
from mailverdict.verdicts import (
    PRECEDENCE,
    contradiction_in,
    order_reasons,
    settle,
    settle_saturated,
    verdict_of,
)
from tests.doubles.tables import each_row

OK = SyntaxEvidence(ok=True, normalized="ada@example.org", local="ada", ascii_domain="example.org")
BAD = SyntaxEvidence(ok=False, message="there is no @")
MX = DomainEvidence("example.org", DnsOutcome.MX, (MailExchange(10, "mx.example.org"),))
ACCEPTED = MailboxEvidence(
    Classification(None, "accepted"),
    host="mx.example.org",
    port_open=True,
    connected=True,
    rcpt_accepted=True,
    catch_all=False,
    protected=False,
)


def dns(outcome, message=""):
    return DomainEvidence("example.org", outcome, message=message)


def refused(reason, **changes):
    classification = Classification(reason, "rule", **changes)
    return replace(
        ACCEPTED, classification=classification, rcpt_accepted=False, catch_all=None, reply="550 no"
    )


def test_every_reason_has_a_rank_and_a_meaning():
    assert list(PRECEDENCE) == list(Reason) == list(REASON_MEANING)


@each_row("kind", ["regex", "mx", "mx_blacklist", "smtp"])
def test_a_malformed_address_is_invalid_whatever_was_asked(kind):
    decision = settle(ValidationType(kind), Evidence(BAD))
    assert decision.result == "invalid"
    assert decision.reason == "REGEX"
    assert decision.errors[0].message == "there is no @"
    assert decision.checks == {"syntax": False}
    assert decision.reasons == (("syntax_error",) if kind == "smtp" else ())


DOMAIN_CASES = [
    pytest.param("mx", MX, None, "valid", {"syntax": True, "dns": True}, None, id="has exchanges"),
    pytest.param("mx", dns(DnsOutcome.IMPLICIT_MX), None, "valid", {"syntax": True, "dns": True}, None, id="implicit MX"),
    pytest.param("mx", dns(DnsOutcome.NULL_MX), None, "invalid", {"syntax": True, "dns": False}, "DNS", id="null MX"),
    pytest.param("mx", dns(DnsOutcome.NO_EXCHANGE), None, "invalid", {"syntax": True, "dns": False}, "DNS", id="localhost"),
    pytest.param("mx", dns(DnsOutcome.NXDOMAIN), None, "invalid", {"syntax": True, "dns": False}, "DNS", id="NXDOMAIN"),
    pytest.param("mx", dns(DnsOutcome.NODATA), None, "invalid", {"syntax": True, "dns": False}, "DNS", id="NODATA"),
    pytest.param("mx", dns(DnsOutcome.UNDETERMINED), None, "unknown", {"syntax": True}, "DNS", id="a time-out refuses nobody"),
    pytest.param(
        "mx_blacklist", MX, BlacklistEvidence(True, "listed", ("static ips",)),
        "invalid", {"syntax": True, "dns": True, "blacklist": False}, "BLACKLIST", id="listed",
    ),
    pytest.param(
        "mx_blacklist", MX, BlacklistEvidence(None, "no answer", ("bl.example",)),
        "unknown", {"syntax": True, "dns": True}, "BLACKLIST", id="undetermined is never clean",
    ),
    pytest.param(
        "mx_blacklist", MX, BlacklistEvidence(False, "", ("static ips",)),
        "valid", {"syntax": True, "dns": True, "blacklist": True}, None, id="clean",
    ),
    pytest.param(
        "mx_blacklist", MX, BlacklistEvidence(False),
        "valid", {"syntax": True, "dns": True}, None, id="no list configured: no check is claimed",
    ),
    pytest.param(
        "mx_blacklist", dns(DnsOutcome.NXDOMAIN), None,
        "invalid", {"syntax": True, "dns": False}, "DNS", id="no domain, no list asked",
    ),
]  # fmt: skip


@each_row(("kind", "seen", "listed", "result", "checks", "error"), DOMAIN_CASES)
def test_types_without_a_session_have_no_reasons(kind, seen, listed, result, checks, error):
    decision = settle(
        ValidationType(kind), Evidence(OK, seen, listed, flags=Flags(role=True, disposable=True))
    )
    assert (decision.result, decision.checks, decision.reason) == (result, checks, error)
    assert decision.reasons == ()


MAILBOX_CASES = [
    pytest.param(ACCEPTED, Flags(), "valid", [], id="exists"),
    pytest.param(ACCEPTED, Flags(free=True), "valid", [], id="free never matters"),
    pytest.param(ACCEPTED, Flags(role=True), "risky", ["role"], id="role"),
    pytest.param(replace(ACCEPTED, catch_all=True), Flags(role=True), "risky", ["catch_all", "role"], id="catch-all before role"),
    pytest.param(ACCEPTED, Flags(disposable=True, spamtrap=True), "risky", ["spamtrap", "disposable"], id="lists"),
    pytest.param(refused(Reason.TIMEOUT), Flags(role=True), "unknown", ["timeout", "role"], id="the contract's own example"),
    pytest.param(
        refused(Reason.PROTECTED), Flags(disposable=True), "risky", ["disposable", "protected"], id="disposable outranks unknown"
    ),
    pytest.param(
        refused(Reason.MAILBOX_NOT_FOUND), Flags(disposable=True, role=True),
        "invalid", ["mailbox_not_found", "disposable", "role"], id="no mailbox outranks lists",
    ),
    pytest.param(refused(Reason.MAILBOX_FULL), Flags(), "unknown", ["mailbox_full"], id="full is not gone"),
]  # fmt: skip


@each_row(("mailbox", "flags", "result", "reasons"), MAILBOX_CASES)
def test_smtp_reasons_are_exhaustive_and_in_order(mailbox, flags, result, reasons):
    decision = settle(ValidationType.SMTP, Evidence(OK, MX, mailbox=mailbox, flags=flags))
    assert (decision.result, list(decision.reasons)) == (result, reasons)


@each_row("reason", [r for r, verdict in PRECEDENCE.items() if verdict is Verdict.UNKNOWN])
def test_nothing_established_is_never_invalid(reason):
    assert verdict_of(order_reasons([reason, Reason.ROLE, Reason.CATCH_ALL])) == "unknown"
    assert verdict_of(order_reasons([reason, Reason.DISPOSABLE])) == "risky"


def test_smtp_without_exchanges_needs_no_session():
    gone = settle(
        ValidationType.SMTP, Evidence(OK, dns(DnsOutcome.NULL_MX), flags=Flags(role=True))
    )
    assert (gone.result, list(gone.reasons), gone.checks) == (
        "invalid",
        ["no_mx_record", "role"],
        {"syntax": True, "dns": False},
    )
    silent = settle(
        ValidationType.SMTP, Evidence(OK, dns(DnsOutcome.UNDETERMINED, "SERVFAIL"), flags=Flags())
    )
    assert (silent.result, list(silent.reasons), silent.checks) == (
        "unknown",
        ["inconclusive"],
        {"syntax": True},
    )
    assert silent.errors[0].message == "SERVFAIL"


def test_smtp_checks_name_only_what_was_reached():
    closed = MailboxEvidence(
        Classification(Reason.PORT_CLOSED, "connection_refused"), port_open=False
    )
    decision = settle(ValidationType.SMTP, Evidence(OK, MX, mailbox=closed))
    assert decision.checks == {"syntax": True, "dns": True, "smtp_port": False, "smtp": False}
    assert settle(ValidationType.SMTP, Evidence(OK, MX, mailbox=ACCEPTED)).checks == {
        "syntax": True, "dns": True, "smtp_port": True, "smtp_connection": True, "smtp_rcptto": True, "smtp": True,
    }  # fmt: skip


def test_the_first_error_keeps_the_contract_code_and_the_finer_one_follows():
    decision = settle(
        ValidationType.SMTP,
        Evidence(OK, MX, mailbox=refused(Reason.MAILBOX_NOT_FOUND, error_code="MAILBOX_DISABLED")),
    )
    assert decision.reason == "SMTP"
    assert [fault.code for fault in decision.errors] == ["SMTP", "MAILBOX_DISABLED"]


@each_row("reason", [Reason.THROTTLED, Reason.RATE_LIMITED])
def test_saturation_says_nothing_of_the_address(reason):
    decision = settle_saturated(reason)
    assert (decision.result, decision.reasons, decision.checks) == ("unknown", (reason,), {})


@each_row("kind", ["mx", "mx_blacklist", "smtp"])
def test_evidence_that_is_missing_is_an_error_not_a_verdict(kind):
    with pytest.raises(ValueError, match="evidence"):
        settle(ValidationType(kind), Evidence(OK, None if kind == "mx" else MX))


@each_row("result", ["valid", "risky", "invalid"])
def test_a_verdict_stands_only_for_a_reason_that_yields_it(result):
    for reason, verdict in PRECEDENCE.items():
        found = Verification("ada@firm.com", "smtp", result, (str(reason),))
        assert (contradiction_in(found) == "") == (verdict == result), reason


CONSISTENT = [
    # type, verdict, reasons
    ("smtp", "valid", ()),
    ("smtp", "valid", ("on_holiday",)),  # the vocabulary is open
    ("smtp", "invalid", ("on_holiday", "greylisted")),
    # One of them yields it, the order is the service's.
    (
        "smtp",
        "invalid",
        ("greylisted", "mailbox_not_found"),
    ),
    ("smtp", "risky", ("disposable", "mailbox_not_found")),  # the contract does not rank these two
    ("smtp", "unknown", ("mailbox_not_found",)),  # claims nothing
    ("smtp", "invalid", ()),
    ("mx", "valid", ("role",)),  # flags decide only for smtp
    ("mx", "invalid", ("disposable",)),
]


@each_row(("kind", "result", "reasons"), CONSISTENT)
def test_a_verdict_that_may_follow_from_its_reasons_stands(kind, result, reasons):
    assert contradiction_in(Verification("ada@firm.com", kind, result, reasons)) == ""


CONTRADICTIONS = [
    (
        "smtp",
        "invalid",
        ("greylisted", "role"),
        None,
        "by the contract greylisted, role means 'unknown'",
    ),
    (
        "smtp",
        "valid",
        ("mailbox_not_found", "on_holiday"),
        None,
        "mailbox_not_found means 'invalid'",
    ),
    ("mx", "valid", ("no_mx_record",), None, "no_mx_record means 'invalid'"),
    ("mx", "invalid", ("timeout",), None, "timeout means 'unknown'"),
    ("smtp", "invalid", ("mailbox_not_found",), True, "the flag protected means 'unknown'"),
    ("smtp", "valid", (), True, "the flag protected means 'unknown'"),
]


@each_row(("kind", "result", "reasons", "protected", "said"), CONTRADICTIONS)
def test_a_verdict_that_its_reasons_exclude_is_described(kind, result, reasons, protected, said):
    found = Verification("ada@firm.com", kind, result, reasons, protected=protected)
    assert contradiction_in(found).startswith(f"{result!r}, but by the contract")
    assert said in contradiction_in(found)


def test_a_disposable_domain_behind_a_server_that_refuses_us_is_risky():
    found = Verification(
        "ada@firm.com", "smtp", "risky", ("disposable", "protected"), protected=True
    )
    assert contradiction_in(found) == ""
