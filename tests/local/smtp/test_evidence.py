"""What replies, ends of sessions and closed exchanges show."""

import random

from mailverdict.checks.smtp.classify.classification import (
    ConnectionFailure,
    FailureKind,
    classify_failure,
)
from mailverdict.checks.smtp.classify.classifier import classify_reply
from mailverdict.checks.smtp.protocol.session import SessionEnd, SessionPlan
from mailverdict.checks.smtp.replies import Reply
from mailverdict.local.smtp.exchange import Route, SmtpExchange
from mailverdict.local.smtp.recipients import (
    closed_evidence,
    end_evidence,
    is_same_refusal,
    random_address,
    reply_evidence,
)
from mailverdict.model.evidence import Classification
from mailverdict.model.settings import LocalSettings
from mailverdict.model.words import Reason
from tests.doubles.tables import each_row

REPLIES = [
    # reply, reason, rcpt_accepted, catch_all, protected
    (Reply(250, None, "Ok"), None, True, None, False),
    (Reply(550, "5.1.1", "User unknown"), Reason.MAILBOX_NOT_FOUND, False, False, False),
    (Reply(452, "4.2.2", "Mailbox full"), Reason.MAILBOX_FULL, False, None, False),
    (
        Reply(554, "5.7.1", "Client host blocked using dnsbl.example"),
        Reason.PROTECTED,
        False,
        None,
        True,
    ),
    (Reply(451, "4.7.1", "Greylisted"), Reason.GREYLISTED, False, None, False),
]


@each_row(("reply", "reason", "accepted", "catch_all", "protected"), REPLIES)
def test_a_reply_to_rcpt_shows(reply, reason, accepted, catch_all, protected):
    seen = reply_evidence("mx", classify_reply(reply, phase="rcpt"), reply)
    assert (seen.reason, seen.rcpt_accepted, seen.catch_all, seen.protected) == (
        reason,
        accepted,
        catch_all,
        protected,
    )
    assert (seen.port_open, seen.connected, seen.host, seen.reply) == (True, True, "mx", str(reply))


def test_a_recipient_that_could_not_be_asked_was_not_refused():
    seen = reply_evidence(
        "mx", Classification(Reason.INCONCLUSIVE, "smtputf8_not_offered", "SMTPUTF8_REQUIRED"), None
    )
    assert (seen.rcpt_accepted, seen.reply, seen.classification.error_code) == (
        None,
        "smtputf8 not offered",
        "SMTPUTF8_REQUIRED",
    )


def test_what_is_kept_of_a_reply_is_bounded():
    reply = Reply(550, None, "x" * 10_000)
    assert len(reply_evidence("mx", classify_reply(reply, phase="rcpt"), reply).reply) == 400


def failed(kind, phase, reached=""):
    return SessionEnd(
        classify_failure(ConnectionFailure(kind)), phase, "what was seen", reached=reached
    )


ENDS = [
    # end, port_open, connected, protected
    (failed(FailureKind.REFUSED, "connect"), False, None, None),
    (failed(FailureKind.CONNECT_TIMEOUT, "connect"), False, None, None),
    (failed(FailureKind.BANNER_TIMEOUT, "banner", "connect"), True, False, None),
    (failed(FailureKind.DROPPED, "ehlo", "banner"), True, False, None),
    (failed(FailureKind.DROPPED, "mail", "ehlo"), True, True, None),
    (failed(FailureKind.DROPPED, "rcpt", "mail"), True, True, None),
    (
        SessionEnd(Classification(Reason.PROTECTED, "client"), "banner", "554", reached="connect"),
        True,
        False,
        True,
    ),
]


@each_row(("end", "port_open", "connected", "protected"), ENDS)
def test_the_end_of_a_session_shows_how_far_it_came(end, port_open, connected, protected):
    seen = end_evidence("mx", end)
    assert (seen.port_open, seen.connected, seen.protected) == (port_open, connected, protected)
    assert (seen.rcpt_accepted, seen.catch_all, seen.reply) == (None, None, end.detail)


@each_row("reason", [Reason.MAILBOX_NOT_FOUND, Reason.MAILBOX_FULL, None])
def test_the_end_of_a_session_is_never_about_a_mailbox(reason):
    assert (
        end_evidence("mx", SessionEnd(Classification(reason, "rule"), "rcpt", "421")).reason
        is Reason.INCONCLUSIVE
    )


def closed_route(*ends, inferred=False):
    exchanges = [
        SmtpExchange(f"mx{n}", LocalSettings(), SessionPlan("c.example"), clock=float)
        for n in range(len(ends))
    ]
    for exchange, end in zip(exchanges, ends, strict=True):
        exchange.close(end, inferred=inferred)
    return Route(tuple(exchanges), 9)


def test_what_is_concluded_from_others_says_so():
    end = SessionEnd(Classification(Reason.PROTECTED, "client"), "rcpt", "554 no", reached="mail")
    seen = closed_evidence(closed_route(end, inferred=True))
    assert (seen.inferred, seen.connected, seen.rcpt_accepted, seen.protected) == (
        True,
        True,
        None,
        True,
    )


PICKS = [
    (["port_closed", "timeout"], "timeout", "a closed port tells least"),
    (["timeout", "protected"], "timeout", "else the best exchange speaks"),
    (
        ["no_mx_record", "timeout"],
        "timeout",
        "one that takes no mail does not speak for the others",
    ),
    (["no_mx_record", "port_closed"], "port_closed", "not even for one that cannot be reached"),
    (["no_mx_record", "no_mx_record"], "no_mx_record", "unless all say so"),
]


@each_row(("reasons", "expected", "why"), PICKS)
def test_one_closed_exchange_is_reported_for_a_domain(reasons, expected, why):
    route = closed_route(
        *(SessionEnd(Classification(Reason(each), "rule"), "banner", "") for each in reasons)
    )
    assert closed_evidence(route).reason == expected, why


def test_the_first_exchange_that_is_not_closed_comes_next():
    route = Route(
        tuple(
            SmtpExchange(name, LocalSettings(), SessionPlan("c.example"), clock=float)
            for name in "abcd"
        ),
        2,
    )
    one, two, three, _ = route.exchanges
    # Two attempts are all it gets.
    assert [route.after(None), route.after(one), route.after(two)] == [
        one,
        two,
        None,
    ]
    one.close_without_address("none")  # that is not an attempt
    assert [route.after(None), route.after(two)] == [two, three]
    two.close(failed(FailureKind.REFUSED, "connect"))
    three.close(failed(FailureKind.REFUSED, "connect"))
    assert route.after(None) is None


OK, BARE = Reply(250, "2.1.5", "Ok"), Reply(550, None, "Rejected")
SAME = [
    (BARE, BARE, True, "the same words for anyone"),
    (BARE, Reply(550, None, "Mail for this user is refused"), False, "other words"),
    (BARE, None, False, "a random address is accepted"),
    (OK, OK, False, "it was accepted"),
    (Reply(550, None, "Rejected ada@x.example"), Reply(550, None, "Rejected zq7k@x.example"), True, "but for the address"),
    (Reply(550, None, "Rejected id=8f3a9c21"), Reply(550, None, "Rejected id=77b0e1d4"), True, "but for a number"),
    (BARE, Reply(551, None, "Rejected"), False, "another code"),
    (Reply(550, "5.0.0", "Rejected"), BARE, False, "another enhanced code"),
]  # fmt: skip


@each_row(("own", "other", "expected", "why"), SAME)
def test_an_ambiguous_refusal_of_every_address_is_about_the_client(own, other, expected, why):
    assert is_same_refusal(own, "ada@x.example", other, "zq7k@x.example") is expected, why


def test_random_addresses_are_plain_and_differ():
    rng = random.Random(3)
    local, _, domain = random_address("x.example", rng).partition("@")
    assert (len(local), local.isalnum(), local.isascii(), domain) == (16, True, True, "x.example")
    assert len({random_address("x.example", rng) for _ in range(1000)}) == 1000
