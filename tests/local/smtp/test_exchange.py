"""The limits of one exchange; the clock is a parameter."""

import datetime

from mailverdict.checks.operators import Operator
from mailverdict.checks.smtp.classify.classification import (
    Action,
    Classification,
    ConnectionFailure,
    FailureKind,
    classify_failure,
)
from mailverdict.checks.smtp.classify.classifier import classify_reply
from mailverdict.checks.smtp.protocol.session import (
    LimitObserved,
    SessionEnd,
    SessionPlan,
    WindowRequest,
)
from mailverdict.checks.smtp.replies import Reply
from mailverdict.local.smtp.exchange import Route, SmtpExchange
from mailverdict.local.smtp.recipients import closed_evidence
from mailverdict.model.settings import LocalSettings
from mailverdict.model.words import Reason
from tests.doubles.tables import each_row

PLAN = SessionPlan("client.example")
OK = Reply(250, None, "Ok")
BLOCKED = Reply(554, "5.7.1", "Client host [192.0.2.1] blocked using dnsbl.example")
UNKNOWN = Reply(550, "5.1.1", "User unknown")
BUSY = SessionEnd(
    Classification(Reason.INCONCLUSIVE, "capacity", action=Action.BACK_OFF),
    "banner",
    "421 too many connections",
)


def exchange(*addresses, **settings):
    made = SmtpExchange("mx.x.example", LocalSettings(**settings), PLAN, clock=float)
    made.addresses = addresses or ("127.0.0.1", "127.0.0.2")
    return made


def broken(kind, phase, **how):
    return SessionEnd(classify_failure(ConnectionFailure(kind)), phase, kind.value, **how)


def hear(host, *replies):
    for reply in replies:
        host.count_reply(classify_reply(reply, phase="rcpt"), reply)


# --- leaving alone ---------------------------------------------------------------------------------------

ROWS = [
    ([BLOCKED] * 3, True, "three in a row"),
    ([BLOCKED] * 2, False, "two are not enough"),
    (
        [BLOCKED, BLOCKED, UNKNOWN, BLOCKED, BLOCKED],
        False,
        "an answer between them counts from new",
    ),
    ([BLOCKED, BLOCKED, OK, BLOCKED, BLOCKED, BLOCKED], True, "three after it do"),
    (
        [Reply(550, "5.7.1", "Sender rejected")] * 5,
        False,
        "that is about our sender, and perhaps about one domain",
    ),
]


@each_row(("replies", "is_closed", "why"), ROWS)
def test_refusals_of_us_close_an_exchange(replies, is_closed, why):
    host = exchange()
    hear(host, *replies)
    assert (host.closed is not None) is is_closed, why
    if host.closed:
        assert (host.closed.classification.reason, host.is_inferred) == (Reason.PROTECTED, True)
        assert "blocked" in host.closed.detail


def test_the_number_of_refusals_is_a_setting():
    host = exchange(protected_after=1)
    hear(host, BLOCKED)
    assert host.closed


ENDINGS = [
    ([broken(FailureKind.DROPPED, "rcpt")] * 2, Reason.CONNECTION_DROPPED, "twice without an answer"),
    ([broken(FailureKind.DROPPED, "rcpt")], None, "once may be chance"),
    ([broken(FailureKind.DROPPED, "rcpt", asked=1)] * 9, None, "each time some are answered"),
    ([broken(FailureKind.BANNER_TIMEOUT, "banner")] * 2, Reason.TIMEOUT, "never greets"),
    ([broken(FailureKind.TLS, "ehlo"), broken(FailureKind.DROPPED, "rcpt")], None, "the first is done without TLS next time"),
    ([SessionEnd(classify_reply(BLOCKED, phase="banner"), "banner", "554")] * 3, Reason.PROTECTED, "refused three times"),
    ([SessionEnd(classify_reply(BLOCKED, phase="banner"), "banner", "554")] * 2, None, "refused twice"),
]  # fmt: skip


@each_row(("ends", "reason", "why"), ENDINGS)
def test_sessions_that_end_badly_close_an_exchange(ends, reason, why):
    host = exchange()
    for end in ends:
        host.learn(end, "127.0.0.1", 0.5)
    assert (host.closed and host.closed.classification.reason) == reason, why


def test_every_address_of_an_exchange_is_tried_before_it_is_left():
    host = exchange()
    host.learn(broken(FailureKind.REFUSED, "connect"), "127.0.0.1", 0.5)
    assert (host.open_addresses(), host.closed) == (["127.0.0.2"], None)
    host.learn(broken(FailureKind.REFUSED, "connect"), "127.0.0.2", 0.5)
    assert host.closed.classification.reason is Reason.PORT_CLOSED
    assert not host.has_no_address


def test_one_failed_connection_does_not_close_an_exchange_that_has_answered():
    refused = broken(FailureKind.REFUSED, "connect")
    host = exchange("127.0.0.1")
    for _ in range(2):
        hear(host, OK)
        host.learn(refused, "127.0.0.1", 0.5)
        assert (host.open_addresses(), host.closed) == (["127.0.0.1"], None)
    host.learn(refused, "127.0.0.1", 0.5)
    assert host.closed.classification.reason is Reason.PORT_CLOSED


def test_not_more_than_three_addresses_are_tried():
    host = exchange(*(f"127.0.0.{n}" for n in range(9)))
    for n in range(3):
        assert host.closed is None
        host.learn(broken(FailureKind.CONNECT_TIMEOUT, "connect"), f"127.0.0.{n}", 0.5)
    assert host.closed.classification.reason is Reason.TIMEOUT


def test_the_reason_of_a_closed_exchange_is_never_about_a_mailbox():
    host = exchange()
    host.close(SessionEnd(classify_reply(UNKNOWN, phase="rcpt"), "rcpt", "421 5.1.1 User unknown"))
    assert closed_evidence(Route((host,), 1)).reason is Reason.INCONCLUSIVE


def test_the_first_reason_stays():
    host = exchange()
    host.close_without_address("no address")
    host.close(broken(FailureKind.DROPPED, "rcpt"))
    assert (host.closed.detail, host.has_no_address) == ("no address", True)


# --- backing off -----------------------------------------------------------------------------------------


def test_capacity_halves_the_sessions_and_doubles_the_wait():
    host = exchange(max_sessions_per_exchange=8, backoff_min=1, backoff_max=5, capacity_attempts=4)
    waits, limits = [], []
    for _ in range(4):
        host.back_off(BUSY, 0.5)
        waits.append(host.not_before)
        limits.append(host.limit)
    assert (waits, limits) == ([1.0, 2.0, 4.0, 5.0], [4, 2, 1, 1])
    assert host.closed is None
    host.back_off(BUSY, 0.5)
    assert host.closed.classification.reason is Reason.INCONCLUSIVE


def test_an_answer_forgives_earlier_capacity_replies():
    host = exchange(capacity_attempts=1)
    for _ in range(5):
        host.back_off(BUSY, 0.0)
        hear(host, OK)
    assert host.closed is None


def test_jitter_spreads_the_wait_around_its_length():
    host = exchange(backoff_min=10)
    host.back_off(BUSY, 0.0)
    assert host.not_before == 5.0


# --- learning --------------------------------------------------------------------------------------------

LESSONS = [
    (LimitObserved(rcpt_per_transaction=3), {"rcpt_per_transaction": 3}),
    (LimitObserved(rcpt_per_transaction=99), {"rcpt_per_transaction": 50}),
    (LimitObserved(rcpt_per_session=5), {"rcpt_per_session": 5}),
    (LimitObserved(one_domain=True), {"one_domain": True}),
    (LimitObserved(loses_replies=True), {"pipelining": False}),
    (LimitObserved(slowed_after=5), {"refusal_budget": 4}),
    (LimitObserved(cut_after=3), {"refusal_budget": 2}),
    (LimitObserved(cut_after=1), {"refusal_budget": 1}),
    (LimitObserved(cut_after=20), {"refusal_budget": 9}),
]


@each_row(("lesson", "expected"), LESSONS)
def test_limits_are_kept_to(lesson, expected):
    host = exchange()
    host.observe_limit(lesson)
    assert {name: getattr(host.plan, name) for name in expected} == expected


def test_what_is_known_of_an_operator_is_kept_to_from_the_start():
    row = ("x.example", "x", "X", "mailbox", datetime.date(2026, 1, 1), "us")
    known = Operator(*row, rcpt_per_transaction=1, one_domain=True, behaviour="seen")
    plan = SmtpExchange("mx.x.example", LocalSettings(), PLAN, known, clock=float).plan
    assert (plan.rcpt_per_transaction, plan.one_domain) == (1, True)


def test_a_server_whose_tls_fails_is_asked_without():
    host = exchange()
    host.learn(broken(FailureKind.TLS, "ehlo"), "127.0.0.1", 0.5)
    assert (host.plan.starttls, host.closed) == ("never", None)


def test_a_server_that_loses_replies_is_asked_in_step():
    host = exchange()
    lost = Classification(Reason.TIMEOUT, "reply_timeout", action=Action.IN_STEP)
    host.learn(SessionEnd(lost, "rcpt", ""), "127.0.0.1", 0.5)
    assert (host.plan.pipelining, host.closed) == (False, None)


# --- the size of a window ----------------------------------------------------------------------------------

WINDOWS = [
    # accepted, refused, room in the budget, at most, size
    (0, 0, 9, 17, 9, "nothing is known: all may be refused"),
    (0, 9, 9, 17, 9, "all were refused"),
    (8, 2, 7, 15, 7, "7 of 10 are unlikely to be refused, but not unlikely enough"),
    (80, 20, 9, 17, 14, "3 refusals are expected of 14, and more than 9 almost impossible"),
    (1000, 0, 9, 17, 17, "none was refused"),
    (1000, 0, 9, 12, 12, "the session has room for twelve"),
    (1000, 0, 0, 0, 0, "nothing is left"),
]


@each_row(("accepted", "refused", "size", "most", "expected", "why"), WINDOWS)
def test_a_window_is_as_large_as_its_refusals_are_likely_to_fit(
    accepted, refused, size, most, expected, why
):
    host = exchange()
    for code in [250] * accepted + [550] * refused:
        host.count_reply(Classification(None, "rule"), Reply(code, None, ""))
    assert host.window_size(WindowRequest(size, 0, 0, can_pipeline=True), size, most) == expected, (
        why
    )
    assert host.window_size(WindowRequest(size, 0, 0, can_pipeline=False), size, most) == size


def test_refusals_of_the_session_count_where_they_are_more_frequent():
    host = exchange()
    for _ in range(1000):
        host.count_reply(Classification(None, "rule"), Reply(250, None, ""))
    assert host.window_size(WindowRequest(4, 5, 5, can_pipeline=True), 4, 12) == 4
