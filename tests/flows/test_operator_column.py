"""The columns about the operator of a mail server: in every way that rows come, and without a change of any verdict."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
import mailverdict.dask
from mailverdict.cli import main
from mailverdict.distributed.spark import final_columns
from mailverdict.distributed.stages import StageJob, evidence_table, settle_domains
from mailverdict.model.evidence import DnsOutcome, DomainEvidence, MailExchange
from mailverdict.model.words import ValidationType
from mailverdict.sandbox.smtp_script import Exchange
from mailverdict.sandbox.zones import mx
from mailverdict.table.columns import COLUMNS
from mailverdict.table.options import check_options

NAMES = ("operator", "parked", "disposable_suspected")
HOSTS = (
    "mta5.am0.yahoodns.net",
    "park-mx.above.com",
    "smtp.yopmail.com",
    "aspmx.l.google.com",
    "mx.bücher.example",
    "mx1.hoster.example",
)
ZONES = {
    "old.example": mx("10 mta5.am0.yahoodns.net", "20 park-mx.above.com"),
    "sale.example": mx("10 park-mx.above.com"),
    "throw.example": mx("10 smtp.yopmail.com"),
    # Both are on the list of disposable domains.
    "yopmail.com": mx("10 smtp.yopmail.com"),
    "mailinator.com": mx("10 aspmx.l.google.com"),
    "xn--bcher-kva.example": mx("10 mx.xn--bcher-kva.example"),
    "client.example": mx("5 mx1.hoster.example"),
}
EXPECTED = {
    "ada@old.example": ("yahoo", False, False),
    "ada@sale.example": ("above", True, False),
    "ada@throw.example": ("yopmail", False, True),
    "ada@yopmail.com": ("yopmail", False, False),
    "ada@mailinator.com": ("google", False, True),
    "ada@bücher.example": ("self", False, False),
    "ada@client.example": ("hoster.example", False, False),
    "ada@gone.example": (None, None, None),
    "nobody": (None, None, None),
}
EMAILS = list(EXPECTED)
NOW = datetime(2026, 11, 27, tzinfo=UTC)


def world():
    hosts = [each.encode("idna").decode() for each in HOSTS]
    return mv.sandbox.World(
        ZONES, exchanges=[Exchange(each, "accepts all", mailboxes=None) for each in hosts]
    )


def found_in(out, prefix=""):
    frame = out.to_pandas() if isinstance(out, (pl.DataFrame, pa.Table)) else out
    rows = frame[[prefix + name for name in NAMES]].astype(object)
    return [tuple(row) for row in rows.where(rows.notna(), None).itertuples(index=False)]


@pytest.mark.parametrize("kind", ["mx", "smtp"])
def test_the_operator_is_known_where_the_mail_servers_are(kind):
    with world() as there:
        out = mv.verify(
            EMAILS, validation_type=kind, backend=there.backend, columns="all", journal=None
        )
    assert found_in(out) == list(EXPECTED.values())


def test_a_type_without_dns_knows_no_operator():
    out = mv.verify(EMAILS, validation_type="regex", columns="all")
    assert found_in(out) == [(None, None, None)] * len(EMAILS)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_every_kind_of_frame_has_it(make):
    with world() as there:
        out = mv.verify(make({"email": EMAILS}), "email", backend=there.backend, columns="all")
    assert found_in(out, "email_") == list(EXPECTED.values())


@pytest.mark.slow
def test_a_journal_and_a_service_know_it(tmp_path):
    options = {
        "validation_type": "smtp",
        "journal": tmp_path / "journal.db",
        "columns": [*NAMES, "source"],
    }
    with world() as there:
        mv.verify(EMAILS, backend=there.backend, **options)
        again = mv.verify(EMAILS, backend=there.backend, **options)
        remote = mv.verify(EMAILS[:5], backend=there.url, **options | {"journal": None})
    assert set(again["source"][:5]) == {"journal"}
    assert found_in(again) == list(EXPECTED.values())
    assert found_in(remote) == list(EXPECTED.values())[:5]


@pytest.mark.slow
def test_dask_has_it():
    dd = pytest.importorskip("dask.dataframe")
    with world() as there:
        frame = dd.from_pandas(pd.DataFrame({"email": EMAILS}), npartitions=2)
        out = mv.dask.verify(
            frame, "email", backend=there.backend, columns="all", progress=False
        ).compute()
    assert found_in(out, "email_") == list(EXPECTED.values())


def test_an_answer_about_a_domain_has_it_on_spark():
    hosts = {"firm.example": "mx.firm.example", "mailinator.com": "aspmx.l.google.com"}
    seen = [
        DomainEvidence(domain, DnsOutcome.MX, (MailExchange(5, host),))
        for domain, host in hosts.items()
    ]
    columns = [each for each in COLUMNS if each.name in NAMES]
    options = check_options("verify", {})
    job = StageJob("email", options, ValidationType.MX, "domain", b"", columns=columns)
    answers = settle_domains(
        evidence_table(((each.domain, each, None) for each in seen), NOW), ValidationType.MX
    )
    made = final_columns(answers, job)
    assert [made[name][0].as_py() for name in NAMES] == ["self", False, False]
    assert [made[name][1].as_py() for name in NAMES] == ["google", False, True]


@pytest.mark.parametrize("kind", ["mx", "smtp"])
def test_a_listed_domain_at_an_operator_for_companies_is_reviewed(kind):
    emails = ["ada@yopmail.com", "ada@mailinator.com"]
    with world() as there:
        options = {"validation_type": kind, "backend": there.backend, "journal": None}
        out = mv.verify(emails, columns="all", **options)
        default = mv.verify(emails, **options)
    assert list(mv.decide(out)["action"]) == ["drop", "review"]
    assert "mail server is one that companies use" in mv.decide(out)["action_why"][1]
    # Without the column only the list is known, which is said.
    assert list(mv.decide(default)["action"]) == ["drop", "drop"]
    assert "was not looked at" in mv.decide(default)["action_why"][1]


def test_the_command_line_reviews_it_whatever_columns_it_writes(tmp_path):
    path, written = tmp_path / "contacts.csv", tmp_path / "out.csv"
    path.write_text("email\nada@yopmail.com\nada@mailinator.com\n")
    with world() as there:
        arguments = ["verify", str(path), "-o", str(written), "-t", "mx", "--policy", "balanced"]
        resolver = ["--resolver", there.dns.endpoint, "--no-resolver-check", "-q"]
        with pytest.raises(SystemExit) as left:
            main([*arguments, *resolver])
    assert (left.value.code or 0) == 0
    assert list(pd.read_csv(written)["email_action"]) == ["drop", "review"]
