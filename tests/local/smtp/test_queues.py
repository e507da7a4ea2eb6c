"""Queues and exchange sets."""

import numpy as np
import pytest

from mailverdict.checks.smtp.classify.classification import ConnectionFailure, FailureKind, classify_failure
from mailverdict.checks.smtp.protocol.steps import SessionEnd, SessionPlan
from mailverdict.local.smtp.politeness import ExchangeState
from mailverdict.local.smtp.probes import Probe
from mailverdict.local.smtp.queues import ExchangeSet, PreferenceQueue
from mailverdict.model.settings import LocalSettings


def hosts(*names):
    return [ExchangeState(name, LocalSettings(), SessionPlan("client.example")) for name in names]


def close(host, *, dialled=True):
    if dialled:
        host.close(SessionEnd(classify_failure(ConnectionFailure(FailureKind.REFUSED)), "connect", "refused"))
    else:
        host.close_without_address("no address")


def test_a_queue_draws_blocks_in_order_and_splits_them():
    queue = PreferenceQueue()
    queue.add(np.array([1, 2, 3]))
    queue.add(np.array([], np.int64))
    queue.add(np.array([4, 5]))
    assert (len(queue), queue.draw(2), queue.draw(2), queue.draw(9), queue.draw(1)) == (5, [1, 2], [3, 4], [5], [])


def test_what_came_back_goes_first_in_its_order():
    queue = PreferenceQueue()
    queue.add(np.array([1, 2, 3, 4]))
    taken = queue.draw(3)
    queue.put_back(taken[1:])
    queue.append(9)
    assert (len(queue), queue.draw(2), queue.drain(), len(queue)) == (4, [2, 3], [9, 4], 0)


def test_drawing_piece_by_piece_costs_the_same_for_each():
    queue = PreferenceQueue()
    queue.add(np.arange(200_000))
    assert sum(len(queue.draw(9)) for _ in range(22_223)) == 200_000


def test_the_first_host_that_is_not_closed_serves_a_queue():
    one, two, three = hosts("one", "two", "three")
    exchanges = ExchangeSet([one, two, three], 3)
    assert [exchanges.host_for(mx_index) for mx_index in range(3)] == [one, two, three]
    close(one)
    assert [exchanges.host_for(mx_index) for mx_index in range(3)] == [two, two, three]
    close(two)
    close(three)
    assert [exchanges.host_for(mx_index) for mx_index in range(3)] == [None] * 3


@pytest.mark.parametrize(("dialled", "expected"), [(True, None), (False, "three")])
def test_only_hosts_that_could_be_dialled_count_as_attempts(dialled, expected):
    one, two, three = hosts("one", "two", "three")
    exchanges = ExchangeSet([one, two, three], 2)
    for host in (one, two):
        close(host, dialled=dialled)
    found = exchanges.host_for(0)
    assert (found and found.name) == expected


def test_an_address_moves_to_the_queue_after_the_host_that_was_asked():
    one, two, three = hosts("one", "two", "three")
    exchanges = ExchangeSet([one, two, three], 2)
    assert exchanges.mx_index_after(one) == 1
    assert exchanges.mx_index_after(two) is None  # two attempts are all it gets
    close(two)
    assert exchanges.mx_index_after(one) is None


def test_servable_gives_queues_that_are_not_empty():
    one, two = hosts("one", "two")
    exchanges = ExchangeSet([one, two], 2)
    assert list(exchanges.servable()) == []
    exchanges.queues[1].append(7)
    assert list(exchanges.servable()) == [(1, two)]
    exchanges.add_probe(Probe("one", 3))
    assert list(exchanges.servable()) == [(0, one), (1, two)]
    assert exchanges.waiting() == 2


def test_addresses_without_an_exchange_are_drained():
    one, two = hosts("one", "two")
    exchanges = ExchangeSet([one, two], 2)
    exchanges.add(np.array([1, 2]))
    exchanges.queues[1].append(7)
    close(two)
    assert list(exchanges.drain_unservable()) == [[7]]
    close(one)
    assert list(exchanges.drain_unservable()) == [[1, 2]]
    assert list(exchanges.drain_unservable()) == []
