"""One address: `LocalBackend.check`, a column of one, `mv.check` and `mv.explain` give the same answer."""

import asyncio
import json
import random
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.backend import Batch, Settled
from mailverdict.local.backend import LISTS_MAX_AGE, CheckRecord, ListCache, LocalBackend
from mailverdict.model.table import table_to_rows
from mailverdict.model.verification import Verification
from mailverdict.model.words import ValidationType
from mailverdict.sandbox import World
from mailverdict.sandbox.zones import CASES as DNS_CASES
from tests import CASES
from tests.doubles.tables import each_row, first_ones, rows_of_csv

MOMENT = datetime(2027, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
LISTS = mv.Lists(
    spamtrap=["trap.example.net"],
    disposable_deny=["throwaway.example.net"],
    role_deny=["Équipe", "crew"],
)


def by_batch(backend: LocalBackend, emails: list[str], kind: str) -> list[Verification]:
    """The rows of a batch, in the order of the addresses."""

    async def verify() -> list[Verification]:
        rows: dict[int, Verification] = {}
        async for event in backend.verify(Batch(pa.array(emails, pa.string()), kind)):
            if isinstance(event, Settled):
                positions = (
                    range(len(event.rows)) if event.positions is None else event.positions.tolist()
                )
                rows |= dict(zip(positions, table_to_rows(event.rows), strict=True))
        return [rows[i] for i in range(len(emails))]

    return asyncio.run(verify())


def one_by_one(backend: LocalBackend, emails: list[str], kind: str) -> list[Verification]:
    async def check() -> list[Verification]:
        return [await backend.check(email, kind) for email in emails]

    return asyncio.run(check())


def payload(verification: Verification) -> dict:
    """The payload without what differs from one attempt to the next."""
    found = verification.to_dict()
    return found | {"metadata": {k: v for k, v in found["metadata"].items() if k != "validated_at"}}


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
SYNTAX = [json.loads(row["address_json"]) for row in rows_of_csv(CASES / "syntax_vectors.csv")]


@pytest.mark.slow
@each_row("lists", [mv.Lists(), LISTS], ids=["packaged", "own"])
def test_regex_of_one_address_is_the_row_of_a_batch(lists: mv.Lists) -> None:
    backend = LocalBackend(clock=lambda: MOMENT, lists=lists)
    emails = [email.strip() for email in KNOWN + SYNTAX if email.strip()]
    assert one_by_one(backend, emails, "regex") == by_batch(backend, emails, "regex")


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(st.emails(), st.text(st.characters(codec="utf-8"), max_size=20)),
        min_size=1,
        max_size=20,
    )
)
def test_regex_of_any_address_is_the_row_of_a_batch(emails: list[str]) -> None:
    backend = LocalBackend(clock=lambda: MOMENT, lists=LISTS)
    stripped = [email.strip() for email in emails]
    assert one_by_one(backend, stripped, "regex") == by_batch(backend, stripped, "regex")


@pytest.fixture(scope="module")
def world():
    with World(dns_timeout=0.3) as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mx", "mx_blacklist"])
def test_each_dns_case_of_one_address_is_the_row_of_a_batch(world, kind: str) -> None:
    backend = world.make_backend(
        clock=lambda: MOMENT,
        dns_timeout=0.3,
        lists=LISTS,
        blacklist=mv.Blacklist(hosts=["mx2.cases.example"]),
    )
    emails = [f"ada@{case.domain}" for case in DNS_CASES]
    assert one_by_one(backend, emails, kind) == by_batch(backend, emails, kind)


@pytest.mark.parametrize("kind", first_ones(reversed(ValidationType), 2))
def test_check_explain_and_a_column_agree(world, kind: ValidationType) -> None:
    """For sandbox addresses whose answer neither changes with the second question nor takes long."""
    slow = ("greylisted", "timeout", "connection_dropped", "inconclusive")
    examples = [each for each in world.addresses if not each.reasons.startswith(slow)]
    # What a mail server answers may depend on what it was asked before.
    one_each = [[each] for each in random.Random(7).sample(examples, 12)]
    groups = one_each if kind is ValidationType.SMTP else [examples]
    for group in groups:
        emails = [each.address for each in group]
        backend, other = (world.make_backend(clock=lambda: MOMENT) for _ in range(2))
        checked = [mv.check(email, validation_type=kind, backend=backend) for email in emails]
        explained = [
            mv.explain(email, validation_type=kind, backend=backend).verification
            for email in emails
        ]
        rows = by_batch(other, [email.strip() for email in emails], kind)
        frame = mv.verify(emails, validation_type=kind, backend=backend, journal=None)
        answers = zip(checked, explained, rows, frame["verdict"], frame["reasons"], strict=True)
        for each, (one, told, row, verdict, reasons) in zip(group, answers, strict=True):
            assert payload(one) == payload(told) == payload(row), each.why
            assert (verdict, reasons) == (row.result, ";".join(row.reasons)), each.why


def test_a_record_holds_the_evidence_and_the_dialogue(world) -> None:
    record = CheckRecord()
    found = asyncio.run(
        world.make_backend().check(world.addresses[0].address, "smtp", record=record)
    )
    assert record.decision.result == found.result
    assert record.evidence.dns.exchanges
    assert any(line.startswith("RCPT TO") for _, _, line in record.transcript)


def test_a_changed_list_is_noticed_after_a_while(tmp_path: Path) -> None:
    file = tmp_path / "deny.txt"
    file.write_text("one.example.net\n")
    now = [0.0]
    cache = ListCache(mv.Lists(disposable_deny=file), monotonic=lambda: now[0])
    before = cache.current()
    file.write_text("one.example.net\ntwo.example.net\n")
    assert cache.current() is before
    now[0] += LISTS_MAX_AGE
    assert cache.current().flags("ada", "two.example.net").disposable is True


def test_concurrent_checks_keep_to_the_sessions_of_one_exchange(world) -> None:
    backend = world.make_backend(max_sessions_per_exchange=2)
    record = CheckRecord()
    asyncio.run(backend.check("ada@plain.example", "smtp", record=record))
    stats = world.smtp.stats(record.evidence.dns.exchanges[0].host)
    stats.most_open = 0

    async def check_all() -> None:
        await asyncio.gather(*(backend.check(f"user{i}@plain.example", "smtp") for i in range(10)))

    asyncio.run(check_all())
    assert 1 <= stats.most_open <= 2
