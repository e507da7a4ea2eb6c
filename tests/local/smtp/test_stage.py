"""The stage that asks mail servers: its events, and the name that it says."""

import asyncio

import pyarrow as pa
import pytest

from mailverdict.backend import Batch, Noticed, Settled, Waiting
from mailverdict.local.smtp.stage import FULL_NAME, find_helo_name
from mailverdict.model.settings import LocalSettings
from mailverdict.model.words import Reason
from mailverdict.runs.retry import ASK_AGAIN
from mailverdict.sandbox import World
from tests.doubles.tables import each_row

pytestmark = pytest.mark.usefixtures("skipped_waits")

NAMES = [
    ("mail.example.org", True),
    ("a-b.example", True),
    ("localhost", False),
    ("my_host.example", False),
    ("192.0.2.1", False),
    ("-a.example", False),
    ("a-.example", False),
    ("mail.example.org\r\nRSET", False),
    ("bücher.example", False),
    ("", False),
]


@each_row(("name", "is_full"), NAMES)
def test_only_full_host_names_are_said(name, is_full):
    assert bool(FULL_NAME.fullmatch(name)) is is_full


def test_the_setting_comes_first():
    assert asyncio.run(find_helo_name(LocalSettings(helo_name="[192.0.2.1]"))) == "[192.0.2.1]"


def test_without_it_something_sendable_is_found():
    name = asyncio.run(find_helo_name(LocalSettings()))
    assert name == "localhost" or FULL_NAME.fullmatch(name)


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


def test_waiting_is_reported_while_no_session_is_under_way():
    events = events_of(["ada@greylisting.example", "grace@greylisting.example"])
    waits = [event for event in events if isinstance(event, Waiting)]
    assert waits
    assert waits[0].why.startswith("2 greylisted")
    assert waits[0].seconds <= 3


def test_nothing_is_noticed_where_nothing_was_dialled():
    events = events_of(["ada@private.example", "ada@gone-exchange.example"])
    assert not any(isinstance(event, Noticed) for event in events)


def test_a_run_and_the_stage_wait_equally_long_for_greylisted_addresses():
    assert LocalSettings().retry_greylisted == ASK_AGAIN[Reason.GREYLISTED]
