"""Settled mailboxes on their way into rows."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from mailverdict.checks.lists.flags import load_lists
from mailverdict.local.batch import observe_batch
from mailverdict.local.smtp.recipients import ResultBuffer, find_aliases
from mailverdict.model.evidence import (
    Classification,
    DnsOutcome,
    DomainEvidence,
    MailboxEvidence,
    MailExchange,
)
from mailverdict.model.settings import Lists
from mailverdict.model.table import table_to_rows
from mailverdict.model.words import Reason

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MX = DomainEvidence("x.example", DnsOutcome.MX, (MailExchange(10, "mx.x.example"),))
FINE = MailboxEvidence(
    Classification(None, "accepted"), "mx.x.example", True, True, True, False, False, "250 Ok"
)
GONE = MailboxEvidence(
    Classification(Reason.MAILBOX_NOT_FOUND, "no_such_user"),
    "mx.x.example",
    True,
    True,
    False,
    False,
    False,
    "550 no",
)


def batch_of(*emails):
    return observe_batch(pa.array(emails), load_lists(Lists()))


def buffer_of(batch):
    made = ResultBuffer(batch)
    made.domains = dict.fromkeys(range(len(batch.domains)), MX)
    return made


def rows_of(results):
    positions, table = results.take(NOW)
    return dict(zip(positions.tolist(), table_to_rows(table), strict=True))


def test_rows_hold_the_verdict_and_its_evidence():
    results = buffer_of(batch_of("ada@x.example", "nobody@x.example", "info@x.example"))
    for position, evidence in ((2, FINE), (0, FINE), (1, GONE)):
        results.add(position, evidence)
    rows = rows_of(results)
    assert [(rows[i].result, rows[i].details) for i in range(3)] == [
        ("valid", None),
        ("invalid", "mailbox_not_found"),
        ("risky", "role"),
    ]
    assert rows[0].metadata["mx_records"] == ["mx.x.example"]
    assert "smtp_error" not in rows[0].metadata
    assert (rows[1].metadata["smtp_error"], rows[1].metadata["rule"]) == ("550 no", "no_such_user")
    assert (rows[1].catch_all, rows[1].protected, rows[1].role) == (False, False, False)
    assert rows[1].errors[0].message == "mx.x.example: 550 no"


def test_rows_are_taken_once():
    results = buffer_of(batch_of("ada@x.example"))
    results.add(0, FINE)
    assert (len(results), len(rows_of(results)), len(results)) == (1, 1, 0)
    assert rows_of(results) == {}


def test_a_domain_without_exchanges_needs_no_mailbox():
    results = buffer_of(batch_of("ada@x.example"))
    results.domains[0] = DomainEvidence("x.example", DnsOutcome.NULL_MX)
    results.add(0, None)
    (row,) = rows_of(results).values()
    assert (row.result, row.reasons, row.catch_all, row.protected) == (
        "invalid",
        ("no_mx_record",),
        None,
        None,
    )


def test_what_is_inferred_is_marked():
    results = buffer_of(batch_of("ada@x.example"))
    results.add(
        0,
        MailboxEvidence(
            Classification(Reason.PROTECTED, "client"), "mx", True, protected=True, inferred=True
        ),
    )
    assert rows_of(results)[0].metadata["inferred"] is True


def test_other_spellings_get_the_same_answer():
    batch = batch_of(
        "ada@bücher.example",
        "ada@xn--bcher-kva.example",
        "Ada@bücher.example",
        "ada@BÜCHER.example",
        "broken",
    )
    leaders, aliases = find_aliases(batch, batch.accepted())
    assert (leaders.tolist(), aliases) == ([0, 2], {0: [1, 3]})
    results = buffer_of(batch)
    results.aliases = aliases
    results.add(0, GONE)
    rows = rows_of(results)
    assert sorted(rows) == [0, 1, 3]
    assert {row.result for row in rows.values()} == {"invalid"}
    assert rows[3].email == "ada@BÜCHER.example"


def test_a_batch_without_aliases_stays_as_it_is():
    batch = batch_of("ada@x.example", "bob@x.example")
    leaders, aliases = find_aliases(batch, np.array([0, 1]))
    assert (leaders.tolist(), aliases) == ([0, 1], {})


def test_an_empty_batch_has_no_aliases():
    batch = batch_of("broken")
    assert find_aliases(batch, batch.accepted())[1] == {}
