"""`regex` without a table: the same answers as from a batch."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailverdict.backend import Batch
from mailverdict.checks.syntax.address import observe_syntax
from mailverdict.local.backend import LocalBackend
from mailverdict.local.instant import FRESH, Instant
from mailverdict.model.settings import Lists
from mailverdict.model.table import table_to_rows
from mailverdict.model.verification import Verification

MOMENT = datetime(2027, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
LISTS = Lists(spamtrap=["trap.example.net"], disposable_deny=["throwaway.example.net"], role_deny=["Équipe", "crew"])


def by_batch(emails: list[str], lists: Lists) -> list[Verification]:
    """What `LocalBackend` says."""

    async def verify() -> list[Verification]:
        backend = LocalBackend(clock=lambda: MOMENT, lists=lists)
        events = [event async for event in backend.verify(Batch(pa.array(emails, pa.string()), "regex"))]
        await backend.aclose()
        return [row for event in events for row in table_to_rows(event.rows)]

    return asyncio.run(verify())


def at_once(emails: list[str], lists: Lists) -> list[Verification]:
    instant = Instant(lists, clock=lambda: MOMENT)
    return [instant.settle(email, observe_syntax(email)) for email in emails]


KNOWN = [
    "ada@example.org",
    "INFO@example.org",
    "info+news@example.org",
    "sales.eu@gmail.com",
    "ada@mailinator.com",
    "ada@sub.trap.example.net",
    "ada@throwaway.example.net",
    "crew@example.org",
    "équipe@example.org",
    "ÉQUIPE+x@example.org",
    "ada@BÜCHER.example",
    "broken",
    "a..b@example.org",
]


@pytest.mark.parametrize("lists", [Lists(), LISTS], ids=["packaged", "own"])
def test_known_addresses_are_settled_as_in_a_batch(lists: Lists) -> None:
    assert at_once(KNOWN, lists) == by_batch(KNOWN, lists)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(st.emails(), st.text(st.characters(codec="utf-8"), max_size=20)), min_size=1, max_size=20))
def test_any_addresses_are_settled_as_in_a_batch(emails: list[str]) -> None:
    stripped = [email.strip() for email in emails]
    assert at_once(stripped, LISTS) == by_batch(stripped, LISTS)


def test_changed_list_is_noticed_after_a_while(tmp_path: Path) -> None:
    file = tmp_path / "deny.txt"
    file.write_text("one.example.net\n")
    now = [0.0]
    instant = Instant(Lists(disposable_deny=file), monotonic=lambda: now[0])
    syntax = observe_syntax("ada@two.example.net")
    assert instant.settle("ada@two.example.net", syntax).disposable is False
    file.write_text("one.example.net\ntwo.example.net\n")
    assert instant.settle("ada@two.example.net", syntax).disposable is False
    now[0] += FRESH
    assert instant.settle("ada@two.example.net", syntax).disposable is True
