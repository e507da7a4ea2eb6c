"""The SMTP stage of the local backend: events, and what is handed on when."""

import asyncio
from datetime import UTC, datetime

import pyarrow as pa

from mailverdict.backend import Batch, Noticed, Settled, Waiting
from mailverdict.sandbox import World

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def events_of(emails, **settings):
    async def run():
        async with World(**settings) as world:
            return [event async for event in world.backend.verify(Batch(pa.array(emails), "smtp"))]

    return asyncio.run(run())


def settled(events):
    return [at for event in events if isinstance(event, Settled) for at in event.positions.tolist()]


def test_every_address_is_settled_exactly_once():
    emails = [
        "ada@plain.example",
        "broken",
        "ada@null.example",
        "ada@xn--mller-bau-q9a.example",
        "ada@müller-bau.example",
    ]
    events = events_of(emails)
    assert sorted(settled(events)) == [0, 1, 2, 3, 4]
    assert not any(isinstance(event, Noticed) for event in events)


def test_a_column_of_nothing_to_ask_ends_at_once():
    assert settled(events_of(["broken", "ada@"])) == [0, 1]
    assert settled(events_of(["ada@null.example"])) == [0]


def test_rows_are_handed_on_together():
    events = events_of([f"ada{n}@yahoo.com" for n in range(500)])
    assert len([event for event in events if isinstance(event, Settled)]) < 10


def test_waiting_is_told_while_nothing_else_is_under_way():
    events = events_of(["ada@greylisting.example", "grace@greylisting.example"])
    waits = [event for event in events if isinstance(event, Waiting)]
    assert waits
    assert waits[0].why.startswith("2 greylisted")
    assert waits[0].seconds <= 3


def test_closed_ports_are_noticed_once_for_a_column_and_never_for_one_address():
    many = events_of(["ada@closed.example", "grace@closed.example"])
    assert sum(isinstance(event, Noticed) for event in many) == 1
    assert not any(isinstance(event, Noticed) for event in events_of(["ada@closed.example"]))


def test_nothing_is_noticed_where_nothing_was_dialled():
    events = events_of(["ada@private.example", "ada@gone-exchange.example"])
    assert not any(isinstance(event, Noticed) for event in events)
