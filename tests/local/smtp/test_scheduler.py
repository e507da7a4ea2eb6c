"""Which session is opened next, within every limit."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.smtp.classify.classification import Classification
from mailverdict.checks.smtp.protocol.steps import SessionEnd, SessionPlan
from mailverdict.local.smtp.politeness import ExchangeState
from mailverdict.local.smtp.queues import ExchangeSet
from mailverdict.local.smtp.scheduler import BATCH, Scheduler
from mailverdict.model.settings import LocalSettings
from mailverdict.model.words import Reason

GONE = SessionEnd(Classification(Reason.TIMEOUT, "banner_timeout"), "banner", "")


def host(name, *addresses, config=None):
    return ExchangeState(
        name, config or LocalSettings(), SessionPlan("client.example"), addresses=addresses or (f"ip-{name}",)
    )


def waiting(count, *hosts, run=None):
    exchanges = ExchangeSet(list(hosts), 3, run=run)
    exchanges.add(np.arange(count))
    return exchanges


def scheduler(*sets, **config):
    made = Scheduler(LocalSettings(**config))
    for exchanges in sets:
        made.offer(exchanges)
    return made


def open_all(made, now=0.0):
    """Everything that can be opened now, however many looks it takes."""
    found = list(made.assignments(now))
    while made.has_more():
        found += made.assignments(now)
    return found


def test_the_longest_queue_comes_first():
    sets = [waiting(count, host(f"mx{count}")) for count in (5, 50, 20)]
    assert [a.host.name for a in open_all(scheduler(*sets))] == ["mx50", "mx20", "mx5"]


def test_a_set_gets_its_second_session_once_the_first_has_an_answer():
    made = scheduler(waiting(100, host("mx")))
    (first,) = open_all(made)
    assert open_all(made) == []
    made.on_first_answer(first)
    assert len(open_all(made)) == 1
    assert open_all(made) == []  # two are the limit


def test_an_exchange_that_answers_gets_two_sessions_at_once():
    made = scheduler(waiting(200, host("mx")))
    (first,) = open_all(made)
    made.on_first_answer(first)
    (second,) = open_all(made)
    made.on_first_answer(second)
    for each in (first, second):
        made.end(each, is_answered=True)
    assert len(open_all(made)) == 2


def test_after_a_session_without_an_answer_one_is_opened_at_a_time():
    made = scheduler(waiting(200, host("mx")))
    (first,) = open_all(made)
    made.on_first_answer(first)
    (second,) = open_all(made)
    made.end(second, is_answered=False)
    made.end(first, is_answered=True)
    assert len(open_all(made)) == 1


def test_a_short_queue_gets_one_session():
    made = scheduler(waiting(20, host("mx")))
    made.on_first_answer(*open_all(made))
    assert open_all(made) == []


def test_all_sessions_together_are_limited():
    sets = [waiting(5, host(f"mx{n}")) for n in range(100)]
    made = scheduler(*sets, max_sessions=30)
    opened = open_all(made)
    assert len(opened) == 30
    opened[0].exchanges.queues[0].drain()
    made.end(opened[0], is_answered=False)
    assert len(open_all(made)) == 1


def test_many_hosts_on_one_address_share_its_sessions():
    sets = [waiting(5, host(f"mx{n}", "192.0.2.1")) for n in range(50)]
    made = scheduler(*sets)
    seen, running = 0, open_all(made)
    while running:
        assert len(running) <= 2
        seen += 1
        running[0].exchanges.queues[0].drain()
        made.end(running.pop(0), is_answered=False)
        running += open_all(made)
    assert seen == 50


def test_a_host_in_two_sets_has_one_limit():
    shared = host("shared")
    made = scheduler(waiting(100, shared), waiting(100, shared, host("other")))
    opened = open_all(made)
    for each in opened:
        made.on_first_answer(each)
    assert len([*opened, *open_all(made)]) == 2


def test_a_free_address_of_a_host_is_used_before_a_busy_one():
    two = host("mx", "192.0.2.1", "192.0.2.2")
    made = scheduler(waiting(100, two))
    (first,) = open_all(made)
    made.on_first_answer(first)
    (second,) = open_all(made)
    assert {first.address, second.address} == {"192.0.2.1", "192.0.2.2"}


def test_a_host_without_look_up_is_looked_up_once():
    unknown = ExchangeState("mx", LocalSettings(), SessionPlan("client.example"))
    sets = [waiting(5, unknown) for _ in range(3)]
    made = scheduler(*sets)
    assert open_all(made) == []
    assert [each.name for each, _ in made.pop_unresolved()] == ["mx"]
    assert made.pop_unresolved() == []
    unknown.addresses = ("192.0.2.1",)
    made.resolved(unknown)
    assert len(open_all(made)) == 2


def test_look_ups_are_limited():
    hosts = [ExchangeState(f"mx{n}", LocalSettings(), SessionPlan("client.example")) for n in range(10)]
    made = scheduler(*(waiting(1, each) for each in hosts), dns_concurrency=3)
    served = 0
    while True:
        served += len(open_all(made))
        wanted = made.pop_unresolved()
        if not wanted:
            break
        assert len(wanted) <= 3
        for each, _ in wanted:
            each.addresses = (f"ip-{each.name}",)
            made.resolved(each)
    assert served == 10


def test_a_backing_off_host_is_woken_in_time():
    slow = host("mx")
    slow.not_before = 10.0
    made = scheduler(waiting(5, slow))
    assert open_all(made, now=0.0) == []
    assert made.next_time() == 10.0
    assert len(open_all(made, now=10.0)) == 1
    assert made.next_time() is None


def test_other_queues_are_served_while_the_first_waits():
    first, second = host("first"), host("second")
    first.not_before = 10.0
    exchanges = ExchangeSet([first, second], 3)
    exchanges.add(np.arange(3))
    exchanges.queues[1].append(9)
    (found,) = open_all(scheduler(exchanges))
    assert (found.mx_index, found.host) == (1, second)


def test_a_closed_host_leaves_its_sets_to_the_next():
    first, second = host("first"), host("second")
    first.close(GONE)
    (found,) = open_all(scheduler(waiting(3, first, second)))
    assert (found.mx_index, found.host) == (0, second)


def test_a_set_with_no_host_left_is_not_served():
    only = host("only")
    only.close(GONE)
    assert open_all(scheduler(waiting(3, only))) == []


def test_runs_are_served_in_turn():
    sets = [waiting(100 + n, host(f"mx{n}"), run="long") for n in range(5)]
    made = scheduler(*sets, waiting(1, host("other"), run="short"))
    assert [each.exchanges.run for each in open_all(made)][:2] == ["long", "short"]


def test_a_session_ends_for_a_shorter_queue_of_another_run():
    busy = host("mx", config=LocalSettings(max_sessions_per_exchange=1))
    made = scheduler(waiting(1000, busy, run="long"), max_sessions_per_exchange=1)
    (session,) = open_all(made)
    made.offer(waiting(500, busy, run="long"))
    assert open_all(made) == []
    assert not made.should_end(session, 900)  # only its own run waits
    short = waiting(20, busy, run="short")
    made.offer(short)
    assert open_all(made) == []
    assert [made.should_end(session, asked) for asked in (19, 20)] == [False, True]
    assert not made.should_end(session, 30)  # it ends already
    made.on_first_answer(session)
    made.end(session, is_answered=True)
    (session,) = open_all(made)
    assert session.exchanges.waiting() == 500  # it waited first
    made.on_first_answer(session)
    made.end(session, is_answered=True)
    assert [each.exchanges for each in open_all(made)] == [short]


def test_two_sessions_do_not_both_end_for_one_queue():
    busy = host("mx")
    made = scheduler(waiting(1000, busy, run="long"))
    opened = open_all(made)
    made.on_first_answer(*opened)
    opened += open_all(made)
    made.offer(waiting(1, busy, run="short"))
    assert open_all(made) == []
    assert sorted(made.should_end(each, 9) for each in opened) == [False, True]


def test_a_freed_place_goes_to_the_set_that_waited_and_not_to_one_that_comes():
    busy = host("mx", config=LocalSettings(max_sessions_per_exchange=1))
    first, waited, comes = (waiting(count, busy, run=count) for count in (30, 20, 1000))
    made = scheduler(first, max_sessions_per_exchange=1)
    (session,) = open_all(made)
    made.offer(waited)
    assert open_all(made) == []
    made.end(session, is_answered=True)
    made.offer(comes)
    assert [each.exchanges for each in open_all(made)] == [waited]


def test_the_place_of_a_set_whose_run_has_ended_goes_to_the_next():
    busy = host("mx", config=LocalSettings(max_sessions_per_exchange=1))
    first, gone, waits = (waiting(20, busy, run=run) for run in "abc")
    made = scheduler(first, max_sessions_per_exchange=1)
    (session,) = open_all(made)
    for each in (gone, waits):
        made.offer(each)
        assert open_all(made) == []
    gone.is_closed = first.is_closed = True
    made.end(session, is_answered=True)
    assert [each.exchanges for each in open_all(made)] == [waits]


def test_one_look_opens_a_few():
    made = scheduler(*(waiting(5, host(f"mx{n}")) for n in range(3 * BATCH)))
    assert len(list(made.assignments(0.0))) == BATCH
    assert made.has_more()


@pytest.mark.parametrize("limit", [1, 2, 3])
@given(seed=st.integers(0, 10_000))
def test_nobody_starves_and_no_limit_is_broken(limit, seed):
    rng = random.Random(seed)
    config = LocalSettings(max_sessions_per_exchange=limit, max_sessions=6)
    hosts = [host(f"mx{n}", *rng.sample(["a", "b", "c", "d", "e"], rng.randint(1, 3)), config=config) for n in range(8)]
    sets = [waiting(rng.randint(1, 80), *rng.sample(hosts, rng.randint(1, 3)), run=rng.randrange(4)) for _ in range(25)]
    made = Scheduler(config)
    for exchanges in sets:
        made.offer(exchanges)
    running, now = [], 0.0
    for _ in range(3000):
        running += open_all(made, now)
        assert len(running) <= 6
        for name in "abcde":
            assert sum(each.address == name for each in running) <= limit
        if not running and made.next_time() is None:
            break
        now = made.next_time() if not running else now
        if running:
            each = running.pop(rng.randrange(len(running)))
            is_answered = rng.random() < 0.7
            if is_answered:
                made.on_first_answer(each)
                each.exchanges.queues[each.mx_index].draw(rng.randint(1, 30))
            if rng.random() < 0.1:
                each.host.not_before, each.host.limit = now + 1.0, max(1, each.host.limit // 2)
            if rng.random() < 0.1:
                each.host.dead_addresses.add(each.address) if len(each.host.open_addresses()) > 1 else None
                made.should_end(each, rng.randint(1, 30))
            made.end(each, is_answered=is_answered)
    assert [made.reserved, made.by_host, made.by_address] == [{}, {}, {}]
    assert [exchanges.waiting() for exchanges in sets] == [0] * 25
