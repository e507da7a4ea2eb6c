"""The states of recipients, and what answers lead to: no socket, and a clock that is a number."""

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest

from mailverdict.checks.lists.flags import load_lists
from mailverdict.checks.smtp.classify.classification import (
    Action,
    Classification,
    ConnectionFailure,
    FailureKind,
    classify_failure,
)
from mailverdict.checks.smtp.classify.classifier import classify_reply
from mailverdict.checks.smtp.protocol.steps import RecipientAnswers, SessionEnd, SessionPlan, WindowRequest
from mailverdict.checks.smtp.protocol.windows import domain_of
from mailverdict.checks.smtp.replies import Reply
from mailverdict.local.batch import observe_batch
from mailverdict.local.smtp.politeness import ClosedExchange, ExchangeState
from mailverdict.local.smtp.probes import Probe
from mailverdict.local.smtp.queues import ExchangeSet
from mailverdict.local.smtp.results import ResultBuffer
from mailverdict.local.smtp.scheduler import Assignment
from mailverdict.local.smtp.tracker import (
    DOUBTED_AFTER,
    MOVES,
    SUSPICIOUS,
    ActiveSession,
    RecipientState,
    RecipientTracker,
    closed_evidence,
    end_evidence,
    pick_closed,
    reply_evidence,
)
from mailverdict.model.evidence import DnsOutcome, DomainEvidence, MailExchange
from mailverdict.model.settings import Lists, LocalSettings
from mailverdict.model.words import Reason

OK = Reply(250, "2.1.5", "Ok")
UNKNOWN = Reply(550, "5.1.1", "User unknown")
FULL = Reply(452, "4.2.2", "Mailbox full")
GREY = Reply(451, "4.7.1", "Greylisted, try again in 60 seconds")
BLOCKED = Reply(554, "5.7.1", "Client host blocked using dnsbl.example")
SENDER = Reply(550, "5.7.1", "Sender rejected")
BARE = Reply(550, None, "Rejected")


class Bench:
    """Six addresses of two domains, waiting for two exchanges."""

    def __init__(self, **settings):
        emails = [f"ada{n}@{domain}.example" for domain in "xy" for n in range(3)]
        self.settings = LocalSettings(**settings)
        self.results = ResultBuffer(observe_batch(pa.array(emails), load_lists(Lists())))
        for code, domain in enumerate(("x.example", "y.example")):
            self.results.domains[code] = DomainEvidence(domain, DnsOutcome.MX, (MailExchange(10, "mx1"),))
        self.now = 1000.0
        self.tracker = RecipientTracker(self.settings, self.results, lambda: self.now, random.Random(1))
        self.hosts = [
            ExchangeState(n, self.settings, SessionPlan("c.example"), addresses=(f"ip-{n}",)) for n in ("mx1", "mx2")
        ]
        self.exchanges = ExchangeSet(self.hosts, 3)
        self.tracker.add(self.exchanges, np.arange(6))

    def active(self, mx_index=0):
        host = self.hosts[mx_index]
        return ActiveSession(Assignment(self.exchanges, mx_index, host, host.addresses[0]), self.now)

    def window(self, active, count):
        return self.tracker.next_window(active, WindowRequest(count, 0, 0, can_pipeline=False)).recipients

    def probes(self, mx_index=0):
        """Codes of the domains whose probe is due at an exchange."""
        return [probe.domain for probe in self.exchanges.queues[mx_index].probes]

    def states(self):
        return [RecipientState(state).name.lower() for state in self.tracker.states]

    def ask(self, active, reply, count=1):
        """Have the session ask the next `count` and get the same reply to each."""
        for recipient in self.window(active, count):
            self.reply(active, recipient, reply)

    def reply(self, active, recipient, reply):
        self.tracker.on_reply(active, RecipientAnswers([recipient], reply, classify_reply(reply, phase="rcpt")))

    def end(self, active, *, is_out_of_step=False):
        """End a session after its last window."""
        self.tracker.on_session_end(active, SessionEnd(is_out_of_step=is_out_of_step))

    def settled(self):
        return {position: seen.reason for position, seen in self.results.items}

    def last(self):
        return self.results.items[-1][1]


def test_only_the_moves_of_the_table_are_legal():
    tracker = Bench().tracker
    for before, after in itertools.product(RecipientState, repeat=2):
        tracker.states[0] = before
        if after in MOVES[before]:
            tracker.move(0, after)
            assert tracker.states[0] == after
        else:
            with pytest.raises(ValueError, match=f"no move from {before.name} to {after.name}"):
                tracker.move(0, after)


def test_addresses_are_queued_once():
    bench = Bench()
    with pytest.raises(ValueError, match="were queued before"):
        bench.tracker.add(bench.exchanges, np.array([5]))


def test_every_legal_move_happens():
    bench = Bench(retry_greylisted=60)
    seen = set()

    def noting(position, state, move=bench.tracker.move):
        seen.add((bench.tracker.states[position], state))
        move(position, state)

    bench.tracker.move = noting
    active = bench.active()
    bench.ask(active, UNKNOWN)
    bench.end(active)
    bench.ask(bench.active(), FULL)
    bench.ask(bench.active(), OK)
    bench.ask(bench.active(), GREY, 2)  # and the probe
    bench.ask(bench.active(), BLOCKED, 2)
    list(bench.tracker.queue_retries(bench.now + 99))
    probes = bench.tracker.probes["mx1"]
    probes.accepted, probes.missing_in_a_row = "ada@x.example", DOUBTED_AFTER
    doubted = bench.active()
    bench.ask(doubted, UNKNOWN, 2)
    bench.end(doubted)
    for host in bench.hosts:
        host.close_without_address("none")
    bench.tracker.requeue_or_fail(bench.exchanges)
    new = (RecipientState.NEW, RecipientState.QUEUED)  # in one go for all addresses of a domain
    assert seen | {new} == {(before, after) for before, moves in MOVES.items() for after in moves}
    assert bench.states() == ["answered"] * 4 + ["abandoned"] * 2


def test_probes_are_asked_before_addresses():
    bench = Bench()
    bench.exchanges.add_probe(Probe("mx1", 1))
    probe, first, second = bench.window(bench.active(), 3)
    assert (probe.is_probe, domain_of(probe)) == (True, "y.example")
    assert [first.address, second.address] == ["ada0@x.example", "ada1@x.example"]


def test_what_the_mailbox_says_is_final():
    for reply, reason in ((UNKNOWN, Reason.MAILBOX_NOT_FOUND), (FULL, Reason.MAILBOX_FULL)):
        bench = Bench()
        active = bench.active()
        bench.ask(active, reply)
        bench.end(active)
        assert bench.settled() == {0: reason}
        assert bench.tracker.unsettled == 5


@pytest.mark.parametrize(("is_out_of_step", "reason"), [(False, Reason.MAILBOX_NOT_FOUND), (True, Reason.INCONCLUSIVE)])
def test_a_missing_mailbox_is_settled_when_the_session_is_over(is_out_of_step, reason):
    bench = Bench()
    active = bench.active()
    bench.ask(active, UNKNOWN, 2)
    assert (bench.settled(), bench.states()[:3]) == ({}, ["awaiting_end", "awaiting_end", "queued"])
    bench.end(active, is_out_of_step=is_out_of_step)
    assert bench.settled() == {0: reason, 1: reason}
    assert bench.last().rcpt_accepted is (None if is_out_of_step else False)
    assert bench.last().catch_all is (None if is_out_of_step else False)


def test_an_accepted_address_waits_for_its_domain():
    bench = Bench()
    active = bench.active()
    bench.ask(active, OK, 2)
    assert (bench.settled(), bench.probes()) == ({}, [0])
    (probe,) = bench.window(active, 1)
    bench.reply(active, probe, UNKNOWN)
    assert bench.settled() == {0: None, 1: None}
    assert [seen.catch_all for _, seen in bench.results.items] == [False, False]
    bench.ask(active, OK)
    assert bench.last().catch_all is False


def test_what_one_exchange_showed_of_a_domain_says_nothing_about_the_next():
    """A first exchange that refuses unknown users has a backup that accepts everything."""
    bench = Bench()
    first, backup = bench.active(), bench.active(mx_index=1)
    bench.ask(first, OK)
    (probe,) = bench.window(first, 1)
    bench.reply(first, probe, UNKNOWN)
    assert bench.last().catch_all is False
    bench.ask(first, Reply(451, "4.3.0", "Temporary lookup failure"))
    bench.ask(backup, OK)
    assert (bench.settled(), bench.probes(0), bench.probes(1)) == ({0: None}, [], [0])
    (probe,) = bench.window(backup, 1)
    bench.reply(backup, probe, OK)
    assert (bench.settled(), bench.last().catch_all) == ({0: None, 1: None}, True)


def test_the_probe_of_a_closed_exchange_is_sent_to_the_next():
    bench = Bench()
    bench.ask(bench.active(), OK)
    bench.hosts[0].close_without_address("none")
    bench.tracker.requeue_or_fail(bench.exchanges)
    assert (bench.probes(0), bench.probes(1)) == ([], [0])
    backup = bench.active(mx_index=1)
    (probe,) = bench.window(backup, 1)
    bench.reply(backup, probe, OK)
    assert (bench.settled(), bench.last().catch_all) == ({0: None}, True)


def bench_in_doubt():
    """One address accepted, and as many missing after it as are doubted; their session is over."""
    bench = Bench(catch_all_probe=False)
    active = bench.active()
    bench.ask(active, OK)
    bench.ask(active, UNKNOWN, DOUBTED_AFTER)
    bench.end(active)
    return bench


@pytest.mark.parametrize("before", [1, DOUBTED_AFTER - 1])
def test_a_few_missing_mailboxes_in_a_row_are_not_doubted(before):
    bench = Bench(catch_all_probe=False)
    active = bench.active()
    bench.ask(active, UNKNOWN, before)
    bench.ask(active, OK)
    bench.ask(active, UNKNOWN, before)
    bench.end(active)
    assert (bench.tracker.unsettled, bench.probes()) == (6 - 2 * before - 1, [])


def test_missing_mailboxes_are_settled_where_none_was_accepted_and_nothing_else_waits():
    bench = Bench()
    active = bench.active()
    bench.ask(active, UNKNOWN, 6)
    bench.end(active)
    assert bench.settled() == dict.fromkeys(range(6), Reason.MAILBOX_NOT_FOUND)


def bench_without_acceptance(refused=DOUBTED_AFTER, *, before=0):
    """So many missing mailboxes at a server that accepted no address; their session is over."""
    bench = Bench(catch_all_probe=False)
    bench.tracker.probes["mx1"].missing_in_a_row = before
    active = bench.active()
    bench.ask(active, UNKNOWN, refused)
    bench.end(active)
    return bench


def ask_postmaster(bench, reply):
    active = bench.active()
    (probe,) = bench.window(active, 1)
    assert (probe.address, probe.is_probe) == ("postmaster@x.example", True)
    bench.reply(active, probe, reply)
    bench.end(active)


def test_where_no_address_was_accepted_postmaster_is_asked():
    bench = bench_without_acceptance()
    assert (bench.settled(), bench.probes()) == ({}, [None])
    ask_postmaster(bench, OK)
    assert bench.settled() == dict.fromkeys(range(3), Reason.MAILBOX_NOT_FOUND)
    assert bench.tracker.probes["mx1"].accepted == "postmaster@x.example"


@pytest.mark.parametrize("reply", [UNKNOWN, BLOCKED, Reply(451, "4.3.0", "Temporary lookup failure")])
@pytest.mark.parametrize(
    ("before", "reason"), [(SUSPICIOUS - 4, Reason.MAILBOX_NOT_FOUND), (SUSPICIOUS - 3, Reason.INCONCLUSIVE)]
)
def test_where_postmaster_is_refused_many_missing_mailboxes_are_inconclusive(reply, before, reason):
    bench = bench_without_acceptance(before=before)
    ask_postmaster(bench, reply)
    assert (bench.settled(), bench.hosts[0].closed) == ({}, None)
    bench.tracker.settle_held()
    assert bench.settled() == dict.fromkeys(range(3), reason)
    is_told = "(the server accepted no address, not even postmaster)" in bench.last().reply
    assert is_told is (reason is Reason.INCONCLUSIVE)


@pytest.mark.parametrize(("reply", "reason"), [(OK, None), (FULL, Reason.MAILBOX_FULL)])
def test_what_was_held_is_missing_once_an_address_gets_another_reply(reply, reason):
    bench = bench_without_acceptance(before=SUSPICIOUS)
    ask_postmaster(bench, UNKNOWN)
    active = bench.active()
    bench.ask(active, UNKNOWN)
    bench.end(active)
    assert (bench.settled(), bench.probes()) == ({}, [])
    active = bench.active()
    bench.ask(active, reply)
    bench.end(active)
    assert bench.settled() == {**dict.fromkeys(range(4), Reason.MAILBOX_NOT_FOUND), 4: reason}
    assert bench.tracker.notices() == []


def test_a_server_that_defers_an_address_does_not_refuse_everybody():
    bench = Bench(retry_greylisted=0)
    bench.tracker.probes["mx1"].missing_in_a_row = SUSPICIOUS
    active = bench.active()
    bench.ask(active, GREY)
    bench.ask(active, UNKNOWN, 3)
    bench.end(active)
    assert bench.settled() == dict.fromkeys((1, 2, 3), Reason.MAILBOX_NOT_FOUND)
    assert (None in bench.probes(), bench.tracker.notices()) == (False, [])


def test_an_address_that_is_accepted_meanwhile_is_asked_instead_of_postmaster():
    bench = bench_without_acceptance(2, before=SUSPICIOUS)
    other, active = bench.active(), bench.active()
    (probe,) = bench.window(other, 1)
    bench.ask(active, OK)
    bench.end(active)
    bench.reply(other, probe, UNKNOWN)
    assert (bench.settled(), bench.probes()) == ({2: None}, [None])
    (again,) = bench.window(bench.active(), 1)
    assert again.address == "ada2@x.example"


def test_what_waits_for_postmaster_is_held_if_the_exchange_is_closed():
    bench = bench_without_acceptance(before=SUSPICIOUS)
    bench.hosts[0].close_without_address("none")
    bench.tracker.requeue_or_fail(bench.exchanges)
    assert bench.settled() == {}
    bench.tracker.settle_held()
    assert bench.settled() == dict.fromkeys(range(3), Reason.INCONCLUSIVE)


def test_servers_that_accepted_nobody_are_named():
    bench = Bench()
    counts = {"mx1": 12, "mx2": 9, "mx3": 1_200, "mx4": 50}
    for name, count in counts.items():
        bench.tracker.probes[name].missing_in_a_row = count
    bench.tracker.probes["mx4"].accepted = "ada@x.example"
    (notice,) = bench.tracker.notices()
    assert notice.startswith(
        "mail servers that accepted no address, not even postmaster, and refused all as unknown: mx3 (1,200), mx1 (12); "
    )
    for n in range(9):
        bench.tracker.probes[f"more{n}"].missing_in_a_row = 10
    assert ", 6 more; " in bench.tracker.notices()[0]


def test_no_server_is_named_where_few_addresses_were_refused():
    bench = Bench()
    active = bench.active()
    bench.ask(active, UNKNOWN, 6)
    bench.end(active)
    assert bench.tracker.notices() == []


def test_missing_mailboxes_in_a_row_wait_until_an_accepted_address_is_accepted_again():
    bench = bench_in_doubt()
    assert (bench.settled(), bench.probes()) == ({0: None}, [None])
    active = bench.active()
    (probe,) = bench.window(active, 1)
    assert (probe.address, probe.is_probe) == ("ada0@x.example", True)
    bench.reply(active, probe, OK)
    assert bench.settled() == {0: None, **dict.fromkeys((1, 2, 3), Reason.MAILBOX_NOT_FOUND)}
    bench.ask(active, UNKNOWN)
    bench.end(active)
    assert (bench.last().reason, bench.hosts[0].closed) == (Reason.MAILBOX_NOT_FOUND, None)


def test_missing_mailboxes_of_several_sessions_are_counted_together():
    bench = Bench(catch_all_probe=False)
    active = bench.active()
    bench.ask(active, OK)
    bench.end(active)
    for _ in range(DOUBTED_AFTER):
        active = bench.active()
        bench.ask(active, UNKNOWN)
        bench.end(active)
    assert (len(bench.settled()), bench.probes()) == (DOUBTED_AFTER, [None])


REFUSED_AGAIN = [
    (UNKNOWN, "refuses_accepted_address", True, "the server refuses everybody by now"),
    (BLOCKED, "refusal_not_confirmed", False, "it refuses this client"),
    (Reply(451, "4.3.0", "Temporary lookup failure"), "refusal_not_confirmed", False, "it has trouble"),
]


@pytest.mark.parametrize(("reply", "rule", "closes", "why"), REFUSED_AGAIN)
def test_missing_mailboxes_in_a_row_are_inconclusive_if_an_accepted_address_is_refused(reply, rule, closes, why):
    bench = bench_in_doubt()
    active = bench.active()
    (probe,) = bench.window(active, 1)
    bench.reply(active, probe, reply)
    assert bench.settled() == {0: None, **dict.fromkeys((1, 2, 3), Reason.INCONCLUSIVE)}, why
    assert {seen.classification.rule for _, seen in bench.results.items[1:]} == {rule}
    assert {(seen.rcpt_accepted, seen.catch_all) for _, seen in bench.results.items[1:]} == {(None, None)}
    assert (bench.hosts[0].closed is not None) is closes


def test_doubted_mailboxes_of_an_exchange_that_is_closed_are_inconclusive():
    bench = bench_in_doubt()
    bench.hosts[0].close_without_address("none")
    bench.tracker.requeue_or_fail(bench.exchanges)
    assert bench.settled() == {0: None, **dict.fromkeys((1, 2, 3), Reason.INCONCLUSIVE)}


def test_without_probes_an_accepted_address_is_settled_at_once():
    bench = Bench(catch_all_probe=False)
    bench.ask(bench.active(), OK)
    assert (bench.last().catch_all, bench.probes()) == (None, [])


NO_ANSWERS = [
    (BLOCKED, "the first refuses us"),
    (SENDER, "or our sender"),
    (Reply(451, "4.3.0", "Temporary lookup failure"), "or has trouble"),
    (Reply(556, "5.1.10", "Recipient address has null MX"), "or takes no mail for the domain"),
]


@pytest.mark.parametrize(("reply", "why"), NO_ANSWERS)
def test_an_address_without_an_answer_is_queued_for_the_next_exchange(reply, why):
    bench = Bench()
    bench.ask(bench.active(), reply)
    assert (bench.settled(), len(bench.exchanges.queues[1])) == ({}, 1), why
    active = bench.active(mx_index=1)
    bench.ask(active, UNKNOWN)
    bench.end(active)
    assert bench.settled() == {0: Reason.MAILBOX_NOT_FOUND}


def test_the_last_reply_counts_where_no_exchange_gives_an_answer():
    bench = Bench()
    bench.ask(bench.active(), BLOCKED)
    bench.ask(bench.active(mx_index=1), SENDER)
    assert bench.settled() == {0: Reason.SENDER_BLOCKED}


def test_an_address_that_has_had_its_time_does_not_move_on():
    bench = Bench(deadline=10)
    active = bench.active()
    (recipient,) = bench.window(active, 1)
    bench.now += 10
    bench.reply(active, recipient, BLOCKED)
    assert bench.settled() == {0: Reason.PROTECTED}


def test_greylisted_addresses_wait_with_their_probe_and_come_back_once():
    bench = Bench(retry_greylisted=300)
    active = bench.active()
    bench.ask(active, GREY)
    assert (bench.settled(), len(bench.tracker.retries), bench.probes()) == ({}, 1, [0])
    (probe,) = bench.window(active, 1)
    bench.reply(active, probe, GREY)
    bench.exchanges.queues[0].drain()
    assert list(bench.tracker.queue_retries(bench.now + 59)) == []
    assert list(bench.tracker.queue_retries(bench.now + 62)) == [bench.exchanges]
    again, address = bench.window(bench.active(), 9)
    assert (again, address.address) == (probe, "ada0@x.example")


def test_an_address_that_stays_greylisted_is_asked_of_the_next_exchange():
    bench = Bench()
    bench.tracker.retries.retried.add(0)
    bench.ask(bench.active(), GREY)
    assert len(bench.exchanges.queues[1]) == 1
    bench.ask(bench.active(mx_index=1), GREY)
    assert bench.settled() == {0: Reason.GREYLISTED}


def test_nothing_is_asked_of_a_closed_exchange():
    bench = Bench(protected_after=2)
    active = bench.active()
    bench.ask(active, BLOCKED, 2)
    assert bench.hosts[0].closed
    assert not bench.window(active, 9)


def pipelined(size):
    return WindowRequest(size, 0, 0, can_pipeline=True)


TAILS = [
    # budget, room, expected refusals, is tail
    (9, 3, 0.0, False),
    (9, 2, 0.0, True),
    (9, 5, 2.5, True),
    (9, 6, 0.0, False),
    (18, 5, 0.0, True),
    (1, 1, 0.0, False),
]


@pytest.mark.parametrize(("budget", "room", "expected", "is_too_small"), TAILS)
def test_small_windows_are_not_worth_their_round_trip(budget, room, expected, is_too_small):
    bench = Bench(refusal_budget=9)
    bench.hosts[0].plan = SessionPlan("c.example", refusal_budget=budget)
    bench.exchanges.add(np.arange(100))
    active = bench.active()
    assert not bench.tracker.is_too_small(
        active, pipelined(room), expected
    )  # the first window, however small, is asked
    bench.window(active, 1)
    assert bench.tracker.is_too_small(active, pipelined(room), expected) is is_too_small


def test_the_rest_of_a_queue_is_asked_to_the_end():
    bench = Bench()
    active = bench.active()
    bench.window(active, 1)
    assert bench.tracker.is_too_small(active, pipelined(1))
    bench.exchanges.queues[0].draw(3)
    assert not bench.tracker.is_too_small(active, pipelined(2))  # both that are left fit


def test_a_session_under_way_follows_the_budget_of_its_exchange():
    bench = Bench()
    active = bench.active()
    for budget in (7, 4):
        bench.hosts[0].plan = SessionPlan("c.example", refusal_budget=budget)
        assert bench.tracker.next_window(active, pipelined(1)).refusal_budget == budget


def after(asked, refused, size):
    return WindowRequest(size, asked, refused, can_pipeline=True, most=size)


REST = [
    ("the probe of the domain may become due", {}, (3, 0), False),
    ("it was requested before", {"wanted": True}, (3, 0), True),
    ("no probes are made", {"catch_all_probe": False}, (3, 0), True),
    ("others wait", {"wanted": True, "draws": 2}, (3, 0), False),
    ("the first window", {"wanted": True}, (0, 0), False),
]


@pytest.mark.parametrize(("why", "how", "counts", "expected"), REST)
def test_quit_goes_with_the_last_window(why, how, counts, expected):
    bench = Bench(catch_all_probe=how.get("catch_all_probe", True))
    bench.exchanges.queues[0].draw(3)
    if how.get("wanted"):
        bench.tracker.probes["mx1"].wanted.add(1)
    plan = bench.tracker.next_window(bench.active(), after(*counts, how.get("draws", 3)))
    assert len(plan.recipients) == how.get("draws", 3)
    assert plan.is_last is expected, why


def ended(kind, *, recipients=(), whose=None, action=None, reason=None, phase="rcpt"):
    classification = (
        classify_failure(ConnectionFailure(kind))
        if kind
        else Classification(reason, "rule", action=action or Action.NONE)
    )
    return SessionEnd(classification, phase, "seen", whose, tuple(recipients), "mail")


def test_what_was_not_reached_goes_back_in_order():
    bench = Bench()
    active = bench.active()
    drawn = bench.window(active, 3)
    bench.tracker.on_session_end(active, SessionEnd(unasked=tuple(drawn)))
    assert bench.exchanges.queues[0].draw(4) == [0, 1, 2, 3]
    assert bench.tracker.began == {}


def test_an_address_on_which_two_sessions_broke_is_settled():
    bench = Bench()
    bench.hosts[1].close_without_address("none")
    for sessions in (1, 2):
        active = bench.active()
        drawn = bench.window(active, 2)
        bench.tracker.on_session_end(active, ended(FailureKind.DROPPED, recipients=drawn, whose=drawn[0]))
        assert bench.settled() == ({} if sessions == 1 else {0: Reason.CONNECTION_DROPPED})
    assert bench.exchanges.queues[0].draw(9) == [1, 2, 3, 4, 5]


NOT_ABOUT_AN_ADDRESS = [
    (ended(None, action=Action.BACK_OFF, reason=Reason.INCONCLUSIVE), "capacity"),
    (ended(None, action=Action.IN_STEP, reason=Reason.TIMEOUT), "a lost reply"),
    (ended(FailureKind.REFUSED, phase="connect"), "no connection"),
    (ended(FailureKind.BANNER_TIMEOUT, phase="banner"), "no greeting"),
]


@pytest.mark.parametrize(("end", "why"), NOT_ABOUT_AN_ADDRESS)
def test_no_address_is_settled_by(end, why):
    bench = Bench()
    for _ in range(3):
        bench.tracker.on_session_end(bench.active(), end)
    assert (bench.settled(), len(bench.exchanges.queues[0])) == ({}, 6), why


def test_a_refusal_before_the_first_rcpt_answers_the_first_address():
    bench = Bench()
    bench.tracker.on_session_end(bench.active(), ended(None, reason=Reason.PROTECTED, phase="banner"))
    assert (len(bench.exchanges.queues[0]), len(bench.exchanges.queues[1])) == (5, 1)
    bench.tracker.on_session_end(bench.active(mx_index=1), ended(None, reason=Reason.PROTECTED, phase="banner"))
    assert bench.settled() == {0: Reason.PROTECTED}
    assert not bench.last().inferred


def test_a_set_that_stays_silent_for_the_whole_deadline_is_given_up():
    bench = Bench(deadline=10)
    for _ in range(2):
        active = bench.active()
        bench.now += 6
        bench.tracker.on_session_end(active, ended(FailureKind.BANNER_TIMEOUT, phase="banner"))
    assert bench.settled() == dict.fromkeys(range(6), Reason.TIMEOUT)
    assert (bench.tracker.unsettled, bench.exchanges.silent_for) == (0, 0.0)


def test_an_answer_breaks_the_silence():
    bench = Bench(deadline=10)
    for _ in range(3):
        active = bench.active()
        bench.now += 6
        bench.ask(active, UNKNOWN)
        bench.tracker.on_session_end(active, ended(FailureKind.BANNER_TIMEOUT, phase="banner"))
    assert len(bench.exchanges.queues[0]) == 3


def test_a_lost_probe_is_sent_again_and_then_given_up():
    bench = Bench()
    active = bench.active()
    bench.ask(active, OK)
    for attempt in (1, 2):
        active = bench.active()
        (probe,) = bench.window(active, 1)
        bench.tracker.on_session_end(active, ended(FailureKind.DROPPED, recipients=[probe], whose=probe))
        assert bench.settled() == ({} if attempt == 1 else {0: None})
    assert bench.last().catch_all is None


def test_abandoned_addresses_keep_their_own_last_reply_else_the_reason_of_the_exchange():
    bench = Bench()
    bench.ask(bench.active(), Reply(451, "4.3.0", "Temporary lookup failure"))
    for host in bench.hosts:
        host.close(ended(FailureKind.DROPPED))
    bench.tracker.requeue_or_fail(bench.exchanges)
    assert bench.settled() == {0: Reason.INCONCLUSIVE, **dict.fromkeys(range(1, 6), Reason.CONNECTION_DROPPED)}
    assert bench.tracker.unsettled == 0


def test_abandoned_probes_settle_the_addresses_that_wait_for_them():
    bench = Bench()
    bench.ask(bench.active(), OK)
    bench.exchanges.queues[0].drain()
    for host in bench.hosts:
        host.close_without_address("none")
    bench.tracker.requeue_or_fail(bench.exchanges)
    assert bench.settled() == {0: None}


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
    seen = reply_evidence("mx", classify_reply(reply, phase="rcpt"), reply)
    assert (seen.reason, seen.rcpt_accepted, seen.catch_all, seen.protected) == (reason, accepted, catch_all, protected)
    assert (seen.port_open, seen.connected, seen.host, seen.reply) == (True, True, "mx", str(reply))


def test_a_recipient_that_could_not_be_asked_was_not_refused():
    seen = reply_evidence("mx", Classification(Reason.INCONCLUSIVE, "smtputf8_not_offered", "SMTPUTF8_REQUIRED"), None)
    assert (seen.rcpt_accepted, seen.reply, seen.classification.error_code) == (
        None,
        "smtputf8 not offered",
        "SMTPUTF8_REQUIRED",
    )


def test_what_is_kept_of_a_reply_is_bounded():
    reply = Reply(550, None, "x" * 10_000)
    assert len(reply_evidence("mx", classify_reply(reply, phase="rcpt"), reply).reply) == 400


def failed(kind, phase, reached=""):
    return SessionEnd(classify_failure(ConnectionFailure(kind)), phase, "what was seen", reached=reached)


ENDS = [
    # end, port_open, connected, protected
    (failed(FailureKind.REFUSED, "connect"), False, None, None),
    (failed(FailureKind.CONNECT_TIMEOUT, "connect"), False, None, None),
    (failed(FailureKind.BANNER_TIMEOUT, "banner", "connect"), True, False, None),
    (failed(FailureKind.DROPPED, "ehlo", "banner"), True, False, None),
    (failed(FailureKind.DROPPED, "mail", "ehlo"), True, True, None),
    (failed(FailureKind.DROPPED, "rcpt", "mail"), True, True, None),
    (SessionEnd(Classification(Reason.PROTECTED, "client"), "banner", "554", reached="connect"), True, False, True),
]


@pytest.mark.parametrize(("end", "port_open", "connected", "protected"), ENDS)
def test_the_end_of_a_session_shows_how_far_it_came(end, port_open, connected, protected):
    seen = end_evidence("mx", end)
    assert (seen.port_open, seen.connected, seen.protected) == (port_open, connected, protected)
    assert (seen.rcpt_accepted, seen.catch_all, seen.reply) == (None, None, end.detail)


@pytest.mark.parametrize("reason", [Reason.MAILBOX_NOT_FOUND, Reason.MAILBOX_FULL, None])
def test_the_end_of_a_session_is_never_about_a_mailbox(reason):
    assert end_evidence("mx", SessionEnd(Classification(reason, "rule"), "rcpt", "421")).reason is Reason.INCONCLUSIVE


def test_what_is_concluded_from_others_says_so():
    closed = ClosedExchange(Classification(Reason.PROTECTED, "client"), "554 no", "rcpt", "mail", is_inferred=True)
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
def test_one_closed_exchange_is_reported_for_the_set(reasons, expected, why):
    hosts = [ExchangeState(f"mx{n}", LocalSettings(), SessionPlan("c.example")) for n in range(len(reasons))]
    for host, reason in zip(hosts, reasons, strict=True):
        host.close(SessionEnd(Classification(Reason(reason), "rule"), "banner", ""))
    assert pick_closed(ExchangeSet(hosts, 9))[1].classification.reason == expected, why
