"""Counts that add up piece by piece, and how they read in a terminal."""

from __future__ import annotations

import json

import pyarrow as pa

import mailverdict as mv
from mailverdict.frames.alike import Alike
from mailverdict.frames.results import Results
from mailverdict.model.words import Reason, ValidationType
from mailverdict.reports.counts import Counts
from mailverdict.reports.summary import MEANING_OF_VALID, render_counts
from tests.doubles.tables import each_row

CELLS = ["ada@example.org", "info@gmial.com", "x@mailinator.com", "nobody", None, 7]


def counts_of(
    *pieces,
    columns=("verdict", "details", "status", "error", "role", "disposable", "free", "suggestion"),
):
    counts = Counts()
    for piece in pieces:
        out = mv.verify(
            pa.table({"email": pa.array(piece, pa.string())}),
            "email",
            validation_type="regex",
            columns=columns,
        )
        add(counts, out)
    return counts


def add(counts, out):
    counts.add(Results(out, "email", None, ("verdict", "details", "status")))


def test_pieces_add_up():
    cells = [c for c in CELLS if not isinstance(c, int)]
    whole, parts = counts_of(cells * 2), counts_of(cells, [], cells)
    assert whole.to_dict() == parts.to_dict()
    assert whole.to_dict() == {
        "rows": 10,
        "valid": 6,
        "risky": 0,
        "invalid": 2,
        "unknown": 0,
        "error": 0,
        "pending": 0,
        "missing": 2,
        "why": {"syntax_error": 2},
        "flags": {
            "role": 2,
            "disposable": 2,
            "free": 0,
            "spamtrap": 0,
            "catch_all": 0,
            "protected": 0,
        },
        "suggestions": 2,
        "cleaned": 0,
    }
    json.dumps(whole.to_dict())


def test_columns_that_were_not_asked_for_are_not_counted():
    counts = counts_of(["info@gmial.com", "nobody"], columns=("verdict", "details", "status"))
    assert (counts.to_dict()["why"], sum(counts.flags.values()), counts.suggestions) == ({}, 0, 0)


def test_nothing_is_counted_of_nothing():
    assert render_counts(Counts(), ValidationType.MX).splitlines() == [
        f"{'rows':>29}  of all",
        "  Valid                     0    0.0%",
        "  Risky                     0    0.0%",
        "  Invalid                   0    0.0%",
        "  Unknown                   0    0.0%",
        "(valid means that the domain can receive mail, not that the mailbox exists)",
    ]


def test_a_person_reads_bars_reasons_and_what_valid_means():
    counts = Counts()
    counts.alike.update(
        {
            Alike("valid"): 2_985,
            Alike("valid", role=True): 12,
            Alike("valid", is_suggested=True): 3,
            Alike("unknown", str(Reason.GREYLISTED)): 700,
            Alike("unknown", str(Reason.TIMEOUT)): 50,
            Alike("pending"): 250,
        }
    )
    assert render_counts(counts, ValidationType.SMTP).splitlines() == [
        f"{'rows':>29}  of all",
        f"  Valid                 3,000   75.0%  {'█' * 24}",
        "  Risky                     0    0.0%",
        "  Invalid                   0    0.0%",
        f"  Unknown                 750   18.8%  {'█' * 6}",
        f"  Not checked yet         250    6.2%  {'█' * 2}",
        "",
        "rows that are not valid, by reason:",
        f"  {'Mail server asks to try again later':<48}          700",
        f"  {'Mail server did not answer in time':<48}           50",
        "rows by flag: Shared mailbox such as info@ 12",
        "likely typos: 3 rows have a suggestion",
        "(valid means that the mailbox exists and no problem was found)",
    ]


def test_cells_with_several_addresses_have_a_line_as_in_the_summary():
    counts = Counts()
    counts.alike.update({Alike("valid"): 3, Alike("unknown", "several_addresses"): 1})
    lines = render_counts(counts, ValidationType.MX).splitlines()
    assert f"  {'Unknown':<27}           0    0.0%" in lines
    assert f"  Several addresses in a cell           1   25.0%  {'█' * 8}" in lines


def test_a_code_of_two_verdicts_is_counted_by_what_it_means_also_in_a_frame_of_an_earlier_release():
    counts = Counts()
    add(
        counts,
        pa.table(
            {
                "email": [f"a{at}@firm.example" for at in range(5)],
                "email_verdict": ["invalid", "unknown", "unknown", None, "unknown"],
                "email_status": ["done", "done", "done", "error", "done"],
                "email_details": pa.array([None] * 5, pa.string()),
                "email_error": ["DNS", "DNS", "DNS", "DNS", "new:code"],
            }
        ),
    )
    lines = render_counts(counts, ValidationType.MX).splitlines()
    assert f"  {'Domain receives no mail':<48}            1" in lines
    assert f"  {'No answer to the check':<48}            2" in lines
    assert counts.to_dict()["why"] == {"no_answer": 2, "no_mx_record": 1, "new:code": 1}


@each_row("kind", list(ValidationType))
def test_every_type_says_what_valid_means(kind):
    assert MEANING_OF_VALID[kind].startswith("valid means ")
