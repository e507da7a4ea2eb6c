"""The limits of one exchange; the clock is a parameter."""

import datetime

import pytest

from mailverdict.checks.smtp.classify.classification import (
    Action,
    Classification,
    ConnectionFailure,
    FailureKind,
    classify_failure,
)
from mailverdict.checks.smtp.classify.classifier import classify_reply
from mailverdict.checks.smtp.protocol.steps import LimitObserved, SessionEnd, SessionPlan, WindowRequest
from mailverdict.checks.smtp.providers import Provider
from mailverdict.checks.smtp.replies import Reply
from mailverdict.local.smtp.politeness import ExchangeState
from mailverdict.model.settings import LocalSettings
from mailverdict.model.words import Reason

PLAN = SessionPlan("client.example")
OK = Reply(250, None, "Ok")
BLOCKED = Reply(554, "5.7.1", "Client host [192.0.2.1] blocked using dnsbl.example")
UNKNOWN = Reply(550, "5.1.1", "User unknown")
BUSY = SessionEnd(
    Classification(Reason.INCONCLUSIVE, "capacity", action=Action.BACK_OFF), "banner", "421 too many connections"
)


def state(**settings):
    return ExchangeState("mx.x.example", LocalSettings(**settings), PLAN, addresses=("127.0.0.1", "127.0.0.2"))


def broken(kind, phase, **how):
    return SessionEnd(classify_failure(ConnectionFailure(kind)), phase, kind.value, **how)


def hear(host, *replies):
    for reply in replies:
        host.on_reply(classify_reply(reply, phase="rcpt"), reply)


# --- leaving alone ---------------------------------------------------------------------------------------

ROWS = [
    ([BLOCKED] * 3, True, "three in a row"),
    ([BLOCKED] * 2, False, "two are not enough"),
    ([BLOCKED, BLOCKED, UNKNOWN, BLOCKED, BLOCKED], False, "an answer between them counts from new"),
    ([BLOCKED, BLOCKED, OK, BLOCKED, BLOCKED, BLOCKED], True, "three after it do"),
    ([Reply(550, "5.7.1", "Sender rejected")] * 5, False, "that is about our sender, and perhaps about one domain"),
]


@pytest.mark.parametrize(("replies", "is_closed", "why"), ROWS)
def test_refusals_of_us_close_an_exchange(replies, is_closed, why):
    host = state()
    hear(host, *replies)
    assert (host.closed is not None) is is_closed, why
    if host.closed:
        assert (host.closed.classification.reason, host.closed.is_inferred) == (Reason.PROTECTED, True)
        assert "blocked" in host.closed.detail


def test_the_number_of_refusals_is_a_setting():
    host = state(protected_after=1)
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


@pytest.mark.parametrize(("ends", "reason", "why"), ENDINGS)
def test_sessions_that_end_badly_close_an_exchange(ends, reason, why):
    host = state()
    for end in ends:
        host.on_session_end(end, 9, "127.0.0.1", 0.0)
    assert (host.closed and host.closed.classification.reason) == reason, why


def test_every_address_of_an_exchange_is_tried_before_it_is_left():
    host = state()
    host.on_session_end(broken(FailureKind.REFUSED, "connect"), 0, "127.0.0.1", 0.0)
    assert (host.open_addresses(), host.closed) == (("127.0.0.2",), None)
    host.on_session_end(broken(FailureKind.REFUSED, "connect"), 0, "127.0.0.2", 0.0)
    assert host.closed.classification.reason is Reason.PORT_CLOSED
    assert not host.has_no_address


def test_one_failed_connection_does_not_close_an_exchange_that_has_answered():
    refused = broken(FailureKind.REFUSED, "connect")
    host = ExchangeState("mx", LocalSettings(), PLAN, addresses=("127.0.0.1",))
    for _ in range(2):
        hear(host, OK)
        host.on_session_end(refused, 0, "127.0.0.1", 0.0)
        assert (host.open_addresses(), host.closed) == (("127.0.0.1",), None)
    host.on_session_end(refused, 0, "127.0.0.1", 0.0)
    assert host.closed.classification.reason is Reason.PORT_CLOSED


def test_not_more_than_three_addresses_are_tried():
    host = ExchangeState("mx", LocalSettings(), PLAN, addresses=tuple(f"127.0.0.{n}" for n in range(9)))
    for n in range(3):
        assert host.closed is None
        host.on_session_end(broken(FailureKind.CONNECT_TIMEOUT, "connect"), 0, f"127.0.0.{n}", 0.0)
    assert host.closed.classification.reason is Reason.TIMEOUT


def test_the_reason_of_a_closed_exchange_is_never_about_a_mailbox():
    host = state()
    host.close(SessionEnd(classify_reply(UNKNOWN, phase="rcpt"), "rcpt", "421 5.1.1 User unknown"))
    assert host.closed.classification.reason is Reason.INCONCLUSIVE


def test_the_first_reason_stays():
    host = state()
    host.close_without_address("no address")
    host.close(broken(FailureKind.DROPPED, "rcpt"))
    assert (host.closed.detail, host.has_no_address) == ("no address", True)


# --- backing off -----------------------------------------------------------------------------------------


def test_capacity_halves_the_sessions_and_doubles_the_wait():
    host = state(max_sessions_per_exchange=8, backoff_min=1, backoff_max=5, capacity_attempts=4)
    waits, limits = [], []
    for _ in range(4):
        host.back_off(BUSY, 100.0, 0.5)
        waits.append(host.not_before - 100.0)
        limits.append(host.limit)
    assert (waits, limits) == ([1.0, 2.0, 4.0, 5.0], [4, 2, 1, 1])
    assert host.closed is None
    host.back_off(BUSY, 100.0, 0.5)
    assert host.closed.classification.reason is Reason.INCONCLUSIVE


def test_an_answer_forgives_earlier_capacity_replies():
    host = state(capacity_attempts=1)
    for _ in range(5):
        host.back_off(BUSY, 0.0, 0.0)
        hear(host, OK)
    assert host.closed is None


def test_jitter_spreads_the_wait_around_its_length():
    host = state(backoff_min=10)
    host.back_off(BUSY, 0.0, 0.0)
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


@pytest.mark.parametrize(("lesson", "expected"), LESSONS)
def test_limits_are_kept_to(lesson, expected):
    host = state()
    host.observe_limit(lesson)
    assert {name: getattr(host.plan, name) for name in expected} == expected


def test_what_is_known_of_a_provider_is_kept_to_from_the_start():
    known = Provider("x.example", "X", "seen", datetime.date(2026, 1, 1), "us", rcpt_per_transaction=1, one_domain=True)
    plan = ExchangeState("mx.x.example", LocalSettings(), PLAN, known).plan
    assert (plan.rcpt_per_transaction, plan.one_domain) == (1, True)


def test_a_server_whose_tls_fails_is_asked_without():
    host = state()
    host.on_session_end(broken(FailureKind.TLS, "ehlo"), 0, "127.0.0.1", 0.0)
    assert (host.plan.starttls, host.closed) == ("never", None)


def test_a_server_that_loses_replies_is_asked_in_step():
    host = state()
    host.on_session_end(
        SessionEnd(Classification(Reason.TIMEOUT, "reply_timeout", action=Action.IN_STEP), "rcpt", ""),
        9,
        "127.0.0.1",
        0.0,
    )
    assert (host.plan.pipelining, host.closed) == (False, None)


# --- the size of a window ----------------------------------------------------------------------------------

UNPUNISHED, PERHAPS = True, False
WINDOWS = [
    # what refusals cost, accepted, refused, room in the budget, at most, size
    (PERHAPS, 0, 0, 9, 17, 9, "nothing is known: all may be refused"),
    (PERHAPS, 0, 9, 9, 17, 9, "all were refused"),
    (PERHAPS, 8, 2, 7, 15, 7, "7 of 10 are unlikely to be refused, but not unlikely enough"),
    (UNPUNISHED, 8, 2, 7, 15, 10, "2.8 refusals are expected of 10, and more than 7 are unlikely"),
    (PERHAPS, 80, 20, 9, 17, 14, "3 refusals are expected of 14, and more than 9 almost impossible"),
    (UNPUNISHED, 80, 20, 9, 17, 17, "4 refusals are expected of 19, which is more than the session allows"),
    (UNPUNISHED, 80, 20, 36, 71, 71, "the larger budget, bounded by what the session allows"),
    (UNPUNISHED, 40, 60, 36, 71, 39, "most are refused: 23.8 are expected of 39"),
    (PERHAPS, 1000, 0, 9, 17, 17, "none was refused"),
    (PERHAPS, 1000, 0, 9, 12, 12, "the session has room for twelve"),
    (PERHAPS, 1000, 0, 0, 0, 0, "nothing is left"),
]


@pytest.mark.parametrize(("unpunished", "accepted", "refused", "size", "most", "expected", "why"), WINDOWS)
def test_a_window_is_as_large_as_its_refusals_are_likely_to_fit(
    unpunished, accepted, refused, size, most, expected, why
):
    host = state()
    host.tolerates_refusals = unpunished
    for code in [250] * accepted + [550] * refused:
        host.on_reply(Classification(None, "rule"), Reply(code, None, ""))
    assert host.window_size(WindowRequest(size, 0, 0, can_pipeline=True, most=most)) == expected, why
    assert host.window_size(WindowRequest(size, 0, 0, can_pipeline=False, most=most)) == size


def test_refusals_of_the_session_count_where_they_are_more_frequent():
    host = state()
    for _ in range(1000):
        host.on_reply(Classification(None, "rule"), Reply(250, None, ""))
    assert host.window_size(WindowRequest(4, 5, 5, can_pipeline=True, most=12)) == 4


# --- the refusal budget ------------------------------------------------------------------------------------


def trial(host, *, refused=10, pause=0.0, late=0.0, classification=None):
    budget = host.grant_budget(1000, is_pipelining=True)
    host.on_session_end(SessionEnd(classification, refused=refused), budget, "127.0.0.1", pause, late)
    return budget, host.plan.refusal_budget


def test_a_server_without_extra_latency_gets_the_largest_budget():
    assert trial(state()) == (10, 36)


def test_a_server_that_takes_its_time_over_quit_keeps_the_first():
    assert trial(state(), pause=1.0) == (10, 9)


def test_a_slow_connection_is_not_counted_as_a_delay_for_refusals():
    host = state()
    host.on_session_end(SessionEnd(refused=7), 9, "127.0.0.1", 2.0)
    assert trial(host, pause=2.2) == (10, 36)


def test_a_trial_that_was_not_refused_enough_says_nothing():
    host = state()
    assert trial(host, refused=9) == (10, 9)
    assert trial(host) == (10, 36)


def test_a_trial_whose_latency_may_be_a_pause_of_our_own_says_nothing():
    host = state()
    assert trial(host, pause=1.0, late=0.7) == (10, 9)
    assert trial(host, pause=1.0, late=0.3) == (10, 9)
    assert host.budget_is_known
    assert trial(host) == (9, 9)


def test_a_pause_of_our_own_does_not_make_latency_usual():
    host = state()
    host.on_session_end(SessionEnd(refused=7), 9, "127.0.0.1", 1.0, 0.9)
    assert trial(host, pause=1.0) == (10, 9)


def test_a_trial_that_slowed_the_server_settles_it():
    host = state()
    budget = host.grant_budget(1000, is_pipelining=True)
    host.observe_limit(LimitObserved(slowed_after=9))
    host.on_session_end(SessionEnd(refused=10), budget, "127.0.0.1", 0.0)
    assert host.plan.refusal_budget == 8
    assert host.grant_budget(1000, is_pipelining=True) == 8


def test_a_window_with_more_refusals_than_expected_replaces_the_trial():
    host = state()
    host.on_session_end(SessionEnd(refused=10), 9, "127.0.0.1", 0.0)
    assert (host.plan.refusal_budget, host.tolerates_refusals) == (36, True)
    assert host.grant_budget(1000, is_pipelining=True) == 36


def test_the_delay_of_such_a_session_is_not_counted_as_usual():
    host = state()
    host.on_session_end(SessionEnd(refused=10), 9, "127.0.0.1", 1.0)
    assert host.longest_quit == 0.0
    assert (host.plan.refusal_budget, host.budget_is_known, host.tolerates_refusals) == (9, True, False)
    assert trial(host) == (9, 9)


def test_a_server_that_punishes_after_its_trial_gets_small_windows_again():
    host = state()
    assert trial(host) == (10, 36)
    host.observe_limit(LimitObserved(cut_after=31))
    assert (host.plan.refusal_budget, host.tolerates_refusals) == (30, False)


POINTLESS = [
    ({"waiting": 1000, "is_pipelining": False}, "in step, windows do not matter"),
    ({"waiting": 50, "is_pipelining": True}, "little to ask"),
]


@pytest.mark.parametrize(("how", "why"), POINTLESS)
def test_no_trial_is_made_where_nothing_is_to_be_gained(how, why):
    assert state().grant_budget(how["waiting"], is_pipelining=how["is_pipelining"]) == 9, why


def test_one_trial_at_a_time():
    host = state()
    assert [host.grant_budget(1000, is_pipelining=True) for _ in range(2)] == [10, 9]


def test_the_largest_budget_is_a_setting():
    host = state(refusal_budget_max=9)
    assert host.grant_budget(1000, is_pipelining=True) == 9
