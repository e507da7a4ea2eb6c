"""How many addresses of each operator got a clear answer, and why not more.

Each address has one of `ANSWERS`, and `OperatorCounts` counts the distinct addresses of each
operator by these::

    operator    dead  catch_all  live  deferred  refused  no_answer  (without a verdict)
    google         3          0    90         0        0          2          1
    yahoo          1         40     0         0        0          0          0

`OperatorCounts.table` makes of them what `breakdown` adds for ``"operator"``: the figures of
`COLUMNS`, and a note where less than half is clear. It cites the packaged table of operators, with
the source and the date.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.operators import Operator, known_operators, name_operators
from ..errors import ColumnError
from ..frames.results import Results
from ..frames.seen_addresses import SeenAddresses
from ..model.arrow import to_bools
from ..model.words import Reason, Verdict
from ..table.columns import label_of
from .counts import count_by_code, first_rows, keys_of

# What came out for an address; the first that holds. An address without a verdict is in none of
# them.
ANSWERS = ("dead", "catch_all", "live", "deferred", "refused", "no_answer")
DEFERRED = pa.array([str(Reason.GREYLISTED)])
REFUSED = pa.array([str(Reason.PROTECTED), str(Reason.SENDER_BLOCKED)])
KINDS: dict[str, Any] = {
    "addresses": "int64",
    "clear": "int64",
    "share": "float64",
    "catch_all": "int64",
    "deferred": "int64",
    "refused": "int64",
    "no_answer": "int64",
    "dead": "int64",
    "note": object,
}
COLUMNS = tuple(KINDS)
LITTLE = 0.5  # share of clear answers below which a sentence says why
CAUSES = {
    "catch_all": "accept every address, so an accepted one proves little",
    "deferred": (
        "are to be verified again later: the mail server defers clients that it does not know"
    ),
    "refused": "are not answered to this computer: verify them from another one",
    "no_answer": "got no usable answer",
}
# What the table of operators may say about each cause.
HINTS = {
    "catch_all": {
        "accepts_all": "accept every recipient at RCPT",
        "depends": "let each customer choose whether unknown recipients are refused",
    },
    "deferred": {"defers": "defer clients"},
    "refused": {"blocks": "refuse clients for their address"},
    "no_answer": {"slow": "answer slowly", "blocks": "refuse clients for their address"},
}


class OperatorCounts:
    """Distinct addresses by operator and answer; pieces of a file add up."""

    def __init__(self) -> None:
        self.seen = SeenAddresses()
        self.by_name: dict[str, npt.NDArray[np.int64]] = {}  # by answer, and without one

    def add(self, rows: Results) -> None:
        """Count a piece; an address counts with the first of its rows."""
        addresses = keys_of(rows)
        first = pa.array(first_rows(addresses, addresses.is_valid(), self.seen))
        operators = operators_of(rows).take(first).dictionary_encode()
        answers = answers_of(rows).take(first)
        counts = count_by_code(operators, answers, len(ANSWERS) + 1)
        for name, row in zip(operators.dictionary.to_pylist(), counts, strict=True):
            self.by_name[name] = self.by_name.get(name, 0) + row

    def table(self, top: int | None = None) -> pd.DataFrame:
        """`COLUMNS` of the operators by name, first those with the most addresses, ties by name."""
        names = sorted(self.by_name)
        names.sort(key=lambda name: -self.by_name[name].sum())
        names = names[:top]
        known = known_operators()
        lines = []
        for name in names:
            rows_of_table = known.get(name, ())
            lines.append(operator_line(self.by_name[name], rows_of_table))
        index = pd.Index(names, dtype=object, name="operator")
        table = pd.DataFrame(lines, index, list(COLUMNS), dtype=object)
        return table.astype(KINDS)


def operators_of(rows: Results) -> pa.StringArray:
    """The operator of each row, from its column or from the mail servers."""
    if "operator" in rows:
        return rows["operator"]
    if "mx_records" not in rows:
        label = label_of(rows.column, rows.prefix, "operator")
        raise ColumnError(
            f"no column {label!r}: verify with columns='all', or with a list that has 'operator'"
        )
    hosts = pc.replace_substring_regex(rows["mx_records"], ";.*$", "")
    return name_operators(hosts, rows.addresses.fill_null(""))


def answers_of(rows: Results) -> pa.Int32Array:
    """The index in `ANSWERS` of each row; the one after the last where there is no verdict."""
    verdict = rows["verdict"]
    has_verdict = verdict.is_valid()
    is_unknown = pc.equal(verdict, str(Verdict.UNKNOWN))
    is_deferred = pc.is_in(rows.why, value_set=DEFERRED)
    is_refused = pc.is_in(rows.why, value_set=REFUSED)
    holds = {
        "dead": pc.equal(verdict, str(Verdict.INVALID)),
        "catch_all": pc.and_(has_verdict, rows["catch_all"]),
        "live": pc.and_(has_verdict, pc.invert(is_unknown)),
        "deferred": pc.and_(is_unknown, is_deferred),
        "refused": pc.and_(is_unknown, is_refused),
        "no_answer": is_unknown,
    }
    codes = np.full(len(rows), len(ANSWERS), np.int32)
    for answer in reversed(ANSWERS):
        is_answer = to_bools(holds[answer].fill_null(False))
        codes[is_answer] = ANSWERS.index(answer)
    return pa.array(codes)


def operator_line(counts: npt.NDArray[np.int64], known: tuple[Operator, ...]) -> dict[str, object]:
    """The cells of an operator, by `COLUMNS`; `known` are its rows of the packaged table."""
    answers = dict(zip(ANSWERS, counts.tolist(), strict=False))
    addresses = int(counts.sum())
    clear = answers["live"] + answers["dead"]
    share = float("nan")
    if addresses:
        share = clear / addresses
    note = None
    if share < LITTLE:
        note = why_little(answers, addresses, known)
    return {**answers, "addresses": addresses, "clear": clear, "share": share, "note": note}


def why_little(
    answers: Mapping[str, int], addresses: int, known: tuple[Operator, ...]
) -> str | None:
    """The main cause: what was seen in these rows, then what others say, with the source."""
    cause = max(CAUSES, key=answers.__getitem__)
    if not answers[cause]:
        return None  # not verified yet
    seen = f"{answers[cause]:,} of {addresses:,} {CAUSES[cause]}"
    last_date = ""
    hint = ""
    for row in known:
        for word in row.rcpt:
            if word not in HINTS[cause] or not row.behaviour_seen:
                continue
            date = str(row.behaviour_seen)
            if date > last_date:
                source, _, _ = row.behaviour_source.partition(";")
                last_date = date
                hint = f"; known to {HINTS[cause][word]} ({source}, {date})"
    return f"{seen}{hint}"
