"""What replies and broken sessions show."""

import pytest

from mailverdict.checks.smtp.classify.classification import Classification, Failure, FailureKind, classify_failure
from mailverdict.checks.smtp.classify.classifier import classify_reply
from mailverdict.checks.smtp.protocol.steps import Ended, SessionPlan
from mailverdict.checks.smtp.replies import Reply
from mailverdict.local.smtp.answers import answer_evidence, closed_evidence, ended_evidence, pick_closed
from mailverdict.local.smtp.politeness import Closed, ExchangeState
from mailverdict.local.smtp.queues import ExchangeSet
from mailverdict.model.settings import LocalSettings
from mailverdict.model.words import Reason

REPLIES = [
    # reply, reason, rcpt_accepted, catch_all, protected
    (Reply(250, None, "Ok"), None, True, None, False),
    (Reply(550, "5.1.1", "User unknown"), Reason.MAILBOX_NOT_FOUND, False, False, False),
    (Reply(452, "4.2.2", "Mailbox full"), Reason.MAILBOX_FULL, False, None, False),
    (Reply(554, "5.7.1", "Client host blocked using dnsbl.example"), Reason.PROTECTED, False, None, True),
    (Reply(451, "4.7.1", "Greylisted"), Reason.GREYLISTED, False, None, False),
]


@pytest.mark.parametrize(("reply", "reason", "accepted", "catch_all", "protected"), REPLIES)
def test_a_reply_to_rcpt_shows(reply, reason, accepted, catch_all, protected):
    seen = answer_evidence("mx", classify_reply(reply, phase="rcpt"), reply)
    assert (seen.reason, seen.rcpt_accepted, seen.catch_all, seen.protected) == (reason, accepted, catch_all, protected)
    assert (seen.port_open, seen.connected, seen.host, seen.reply) == (True, True, "mx", str(reply))


def test_a_recipient_that_could_not_be_asked_was_not_refused():
    seen = answer_evidence("mx", Classification(Reason.INCONCLUSIVE, "smtputf8_not_offered", "SMTPUTF8_REQUIRED"), None)
    assert (seen.rcpt_accepted, seen.reply, seen.error_code) == (None, "smtputf8 not offered", "SMTPUTF8_REQUIRED")


def test_what_is_kept_of_a_reply_is_bounded():
    reply = Reply(550, None, "x" * 10_000)
    assert len(answer_evidence("mx", classify_reply(reply, phase="rcpt"), reply).reply) == 400


def failed(kind, phase, reached=""):
    return Ended(classify_failure(Failure(kind)), phase, "what was seen", reached=reached)


ENDS = [
    # end, port_open, connected, protected
    (failed(FailureKind.REFUSED, "connect"), False, None, None),
    (failed(FailureKind.CONNECT_TIMEOUT, "connect"), False, None, None),
    (failed(FailureKind.BANNER_TIMEOUT, "banner", "connect"), True, False, None),
    (failed(FailureKind.DROPPED, "ehlo", "banner"), True, False, None),
    (failed(FailureKind.DROPPED, "mail", "ehlo"), True, True, None),
    (failed(FailureKind.DROPPED, "rcpt", "mail"), True, True, None),
    (Ended(Classification(Reason.PROTECTED, "client"), "banner", "554", reached="connect"), True, False, True),
]


@pytest.mark.parametrize(("end", "port_open", "connected", "protected"), ENDS)
def test_the_end_of_a_session_shows_how_far_it_came(end, port_open, connected, protected):
    seen = ended_evidence("mx", end)
    assert (seen.port_open, seen.connected, seen.protected) == (port_open, connected, protected)
    assert (seen.rcpt_accepted, seen.catch_all, seen.reply) == (None, None, end.detail)


@pytest.mark.parametrize("reason", [Reason.MAILBOX_NOT_FOUND, Reason.MAILBOX_FULL, None])
def test_the_end_of_a_session_never_tells_of_a_mailbox(reason):
    assert ended_evidence("mx", Ended(Classification(reason, "rule"), "rcpt", "421")).reason is Reason.INCONCLUSIVE


def test_what_is_concluded_from_others_says_so():
    closed = Closed(Classification(Reason.PROTECTED, "client"), "554 no", "rcpt", "mail", is_inferred=True)
    seen = closed_evidence("mx", closed)
    assert (seen.inferred, seen.connected, seen.rcpt_accepted, seen.protected) == (True, True, None, True)


PICKS = [
    (["port_closed", "timeout"], "timeout", "a closed port tells least"),
    (["timeout", "protected"], "timeout", "else the best exchange speaks"),
    (["no_mx_record", "timeout"], "timeout", "one that takes no mail does not speak for the others"),
    (["no_mx_record", "port_closed"], "port_closed", "not even for one that cannot be reached"),
    (["no_mx_record", "no_mx_record"], "no_mx_record", "unless all say so"),
]


@pytest.mark.parametrize(("reasons", "expected", "why"), PICKS)
def test_one_exchange_speaks_for_all(reasons, expected, why):
    hosts = [ExchangeState(f"mx{n}", LocalSettings(), SessionPlan("c.example")) for n in range(len(reasons))]
    for host, reason in zip(hosts, reasons, strict=True):
        host.close(Ended(Classification(Reason(reason), "rule"), "banner", ""))
    assert pick_closed(ExchangeSet(hosts, 9))[1].classification.reason == expected, why
