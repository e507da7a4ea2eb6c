"""The stages as pure functions: what is asked, by which task, and how answers come to rows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.checks.lists.suffixes import registered_domain
from mailverdict.distributed.stages import (
    EVIDENCE,
    Routing,
    StageJob,
    add_owners,
    attach,
    evidence_of,
    evidence_table,
    observe,
    settle_domains,
    shard_of,
)
from mailverdict.model.evidence import BlacklistEvidence, DnsOutcome, DomainEvidence, MailExchange
from mailverdict.model.words import ValidationType
from mailverdict.sandbox.zones import sandbox_zones
from mailverdict.table.options import check_options
from tests.doubles.tables import each_row

NOW = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)
CELLS = [
    "ada@gmail.com",
    None,
    "Ada@GMAIL.com",
    "nobody",
    7,
    " ",
    "info@gone.example",
    "ada@gmail.com",
]
PART = pd.DataFrame({"email": pd.Series(CELLS, dtype=object)})
SEEN = [
    DomainEvidence(
        "one.example",
        DnsOutcome.MX,
        (MailExchange(10, "mx.one.example"), MailExchange(20, "mx.two.example")),
    ),
    DomainEvidence("bare.example", DnsOutcome.IMPLICIT_MX, (MailExchange(0, "bare.example"),)),
    DomainEvidence("gone.example", DnsOutcome.NXDOMAIN, message="the domain does not exist"),
    DomainEvidence("slow.example", DnsOutcome.UNDETERMINED, message="MX look-up: no answer"),
]


def job(kind="mx", **changes):
    key = {"regex": "row", "smtp": "address"}.get(kind, "domain")
    given = {name: changes.pop(name) for name in ("columns", "clean") if name in changes}
    options = check_options("verify", given)
    made = StageJob("email", options, ValidationType(kind), key_kind=key, backend=b"")
    return replace(made, **changes)


class TestWhatIsObserved:
    def test_domains_with_their_rows_and_the_counts_of_the_partition(self):
        asked, counts = observe(PART, job())
        assert asked.to_pydict() == {
            "address": [None, None],
            "domain": ["gmail.com", "gone.example"],
            "rows": [3, 1],
        }
        assert counts == {
            "rows": 8,
            "missing": 2,
            "malformed": 2,
            "texts": 6,
            "several": 0,
            "notices": [],
        }

    def test_addresses_each_once_with_their_domain(self):
        asked, _ = observe(PART, job("smtp"))
        assert asked.to_pydict() == {
            "address": ["ada@gmail.com", "Ada@gmail.com", "info@gone.example"],
            "domain": ["gmail.com", "gmail.com", "gone.example"],
            "rows": [2, 1, 1],
        }

    @each_row("kind", ["mx", "smtp"])
    def test_an_empty_partition_has_counts_alone(self, kind):
        asked, counts = observe(PART.iloc[:0], job(kind))
        assert (len(asked), counts["rows"]) == (0, 0)
        assert asked.schema == observe(PART, job(kind))[0].schema

    def test_repaired_cells_are_observed_as_repaired(self):
        part = pd.DataFrame({"email": ["Ada <ada@one.example>"]})
        assert observe(part, job(clean=False))[0]["domain"].to_pylist() == []
        assert observe(part, job())[0]["domain"].to_pylist() == ["one.example"]


class TestShards:
    @given(
        st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1), st.integers(1, 99)
    )
    def test_equal_texts_have_one_shard_wherever_they_are(self, texts, shards):
        whole = shard_of(pa.array(texts, pa.string()), shards)
        assert whole.tolist() == [shard_of(pa.array([text]), shards)[0] for text in texts]
        assert whole.tolist() == shard_of(pa.array(["x", *texts]).slice(1), shards).tolist()
        assert 0 <= whole.min() <= whole.max() < shards

    def test_they_are_the_same_in_every_version(self):
        names = pa.array(["gmail.com", "outlook.com", "web.de", "xn--mller-kva.example", ""])
        assert shard_of(names, 1000).tolist() == SHARDS_OF_NAMES

    def test_they_are_filled_evenly(self):
        names = pa.array([f"company{number}.example" for number in range(20_000)])
        sizes = pd.Series(shard_of(names, 50)).value_counts()
        assert len(sizes) == 50
        assert sizes.min() > 300
        assert sizes.max() < 500


SHARDS_OF_NAMES = [735, 973, 417, 114, 0]


class TestEvidence:
    def test_it_survives_the_table(self):
        listed = BlacklistEvidence(
            listed=True, message="mx on a list", sources=("bl.example", "hosts")
        )
        unknown = BlacklistEvidence(listed=None, message="no answer", sources=("bl.example",))
        pairs = [(SEEN[0], listed), (SEEN[1], None), (SEEN[2], None), (SEEN[3], unknown)]
        table = evidence_table(((dns.domain, dns, blacklist) for dns, blacklist in pairs), NOW)
        assert table.schema == EVIDENCE
        assert [evidence_of(row) for row in table.to_pylist()] == pairs

    def test_each_domain_is_settled_as_in_a_column(self):
        answers = settle_domains(
            evidence_table(((e.domain, e, None) for e in SEEN), NOW), ValidationType.MX, "lists 1"
        )
        assert answers["key"].to_pylist() == [each.domain for each in SEEN]
        assert answers["result"].to_pylist() == ["valid", "valid", "invalid", "unknown"]
        assert json.loads(answers["metadata"][0].as_py()) == {
            "mx_records": ["mx.one.example", "mx.two.example"],
            "lists": "lists 1",
        }


class TestOwners:
    @each_row(
        ("host", "name"),
        [
            ("aspmx.l.google.com", "google.com"),
            ("mx.firm.co.uk", "firm.co.uk"),
            ("a.b.firm.com.br", "firm.com.br"),
            ("mx.firm.de", "firm.de"),
            ("firm.de", "firm.de"),
            ("localhost", "localhost"),
        ],
    )
    def test_an_exchange_belongs_to_an_organisation(self, host, name):
        assert registered_domain(host) == name

    def test_addresses_go_to_the_task_of_their_exchanges(self):
        seen = [
            *SEEN,
            DomainEvidence("three.example", DnsOutcome.MX, (MailExchange(5, "mx.two.example"),)),
        ]
        evidence = evidence_table(((e.domain, e, None) for e in seen), NOW)
        part = pd.DataFrame(
            {"email": ["a@one.example", "b@three.example", "c@bare.example", "d@gone.example"]}
        )
        asked, _ = observe(part, job("smtp"))
        owners = {"one.example": "one.example", "two.example": "one.example"}
        routing = Routing(9, owners, {"one.example": 0}, others=range(1, 9))
        owned, shards = add_owners(asked, evidence, routing)
        assert shards.tolist()[:2] == [0, 0]
        assert shards[2] >= 1
        assert owned["exchanges"].to_pylist()[1:] == ["5 mx.two.example", "0 bare.example", ""]
        assert add_owners(asked.slice(0, 0), EVIDENCE.empty_table(), routing)[1].tolist() == []


class TestAnswersAtTheirRows:
    def test_rows_without_an_answer_are_pending(self):
        out = attach(PART, job(), None)
        assert out["email_status"].tolist() == [
            "pending",
            "missing",
            "pending",
            "done",
            "done",
            "missing",
            "pending",
            "pending",
        ]
        assert out["email_verdict"].dropna().tolist() == ["invalid", "invalid"]
        assert out["email_free"].tolist()[0] is True
        assert out["email_role"].tolist()[6] is True

    def test_an_answer_about_a_domain_is_for_all_its_rows(self):
        dns = DomainEvidence("gmail.com", DnsOutcome.MX, (MailExchange(5, "mx.gmail.com"),))
        answers = settle_domains(evidence_table([("gmail.com", dns, None)], NOW), ValidationType.MX)
        out = attach(PART, job(columns="all"), answers)
        assert out["email_verdict"].astype(object).tolist()[0] == "valid"
        assert out["email_mx_records"].dropna().tolist() == ["mx.gmail.com"] * 3
        assert out["email_status"].value_counts()["pending"] == 1

    @pytest.mark.slow
    @each_row("columns", ["core", "all"])
    @each_row("kind", ["regex", "mx", "smtp"])
    def test_empty_and_full_partitions_have_one_schema(self, kind, columns):
        wanted = job(kind, columns=columns)
        assert (
            attach(PART.iloc[:0], wanted, None).dtypes.to_dict()
            == attach(PART, wanted, None).dtypes.to_dict()
        )
        table = pa.table({"email": pa.array(["ada@one.example"])})
        assert attach(table[:0], wanted, None).schema == attach(table, wanted, None).schema

    def test_regex_needs_no_answers(self):
        expected = mv.verify(PART, "email", validation_type="regex", progress=False)
        pd.testing.assert_frame_equal(attach(PART, job("regex"), None), expected)


def test_the_sandbox_has_domains_with_exchanges_of_several_owners():
    """Else the proof on clusters would not show that those are asked by one task."""
    assert any("MX" in records.records for records in sandbox_zones().values())
