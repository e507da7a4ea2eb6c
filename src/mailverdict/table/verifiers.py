"""What other verifiers call their columns and results: the tables of `verifiers.toml`.

The columns of an export name its service: `needs` of a layout are names that only its service has.
The rules of the layout turn the words of a row of the export into reasons of ours. For any other
verifier there is one general layout, whose columns the caller names, or which are found by names
and words that can mean nothing else. A rule:

    {status = "undeliverable", reason = "rejected_email", is = "mailbox_not_found"}

Of the rules of a layout the first one counts whose conditions all fit the words of a row.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from ..model.words import Reason, Verdict
from .columns import plain_word

ANOTHER = "another verifier"  # the service of a file that is not of a known one
WORDS = ("status", "reason")  # fields with words of the service; one that is in no row is not known
# Fields that are columns of ours, too.
FLAGS = ("role", "spamtrap", "disposable", "free", "catch_all")
FIELDS = ("email", "status", "reason", "suggestion", "at", *FLAGS)  # that a caller may name
SKIP = "skip"  # nothing was checked
ANYTHING = frozenset({""})  # in a row of the table: any filled cell

Condition = frozenset[str] | bool


@dataclass(frozen=True)
class VerifierLayout:
    """The result files of a service or tool.

    All names and words are in the form of `plain_word`.
    """

    service: str
    source: str  # where the layout was seen, and when
    needs: tuple[frozenset[str], ...]  # of several sets of columns one is enough
    columns: Mapping[str, tuple[str, ...]]  # ours -> theirs; the first that is there counts
    rows: tuple[tuple[Mapping[str, Condition], str], ...]  # what fits, and what it is

    @property
    def is_general(self) -> bool:
        """Whether it is of any other verifier, which may give a reason in its own words."""
        return self.service == ANOTHER

    def fits(self, names: frozenset[str]) -> int:
        """How many of the columns by which it is known a table has; 0 if one is not there."""
        most = 0
        for needed in self.needs:
            if needed <= names:
                most = max(most, len(needed))
        return most

    @cached_property
    def words(self) -> Mapping[str, frozenset[str]]:
        """The known words of each field of `WORDS`."""
        known: dict[str, set[str]] = {name: set() for name in WORDS}
        for conditions, _ in self.rows:
            for name, words in conditions.items():
                if name in known and not isinstance(words, bool):
                    known[name].update(words)
        return {name: frozenset(words) for name, words in known.items()}


@cache
def verifier_tables() -> dict[str, Any]:
    text = files("mailverdict.data").joinpath("verifiers.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def verifier_layouts() -> tuple[VerifierLayout, ...]:
    """The known layouts, each service once; the last one is that of any other verifier."""
    layouts = []
    for table in verifier_tables()["layout"]:
        layout = VerifierLayout(
            service=table["service"],
            source=table["source"],
            needs=tuple(map(set_of_words, table["needs"])),
            columns=plain_columns(table["columns"]),
            rows=tuple(map(read_row, table["rows"])),
        )
        layouts.append(layout)
    layouts.append(general_layout())
    return tuple(layouts)


def read_row(row: Mapping[str, str | bool]) -> tuple[dict[str, Condition], str]:
    """The conditions of a row of the table, and what it is."""
    conditions: dict[str, Condition] = {}
    for name, value in row.items():
        if isinstance(value, bool):
            conditions[name] = value
        elif name != "is":
            conditions[name] = set_of_words(value)
    return conditions, str(row["is"])


def plain_words(text: str) -> tuple[str, ...]:
    return tuple(map(plain_word, text.split()))


def set_of_words(text: str) -> frozenset[str]:
    return frozenset(plain_words(text))


def plain_columns(columns: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The names of a service's columns by our fields, in the order in which they count."""
    return {ours: plain_words(theirs) for ours, theirs in columns.items()}


# --- any other verifier ---------------------------------------------------------------------------

RISKS = (Reason.SPAMTRAP, Reason.DISPOSABLE, Reason.CATCH_ALL, Reason.ROLE)
MISSING = (Reason.SYNTAX_ERROR, Reason.NO_MX_RECORD, Reason.MAILBOX_NOT_FOUND)
# By the word for the status: the reasons beside it that count. A reason never makes an address
# invalid that the verifier does not call so, and may say that its "invalid" is only a full mailbox.
REFINED_BY = {
    Verdict.VALID: RISKS,
    Verdict.RISKY: (*RISKS, Reason.MAILBOX_FULL),
    Verdict.INVALID: tuple(Reason),
    Verdict.UNKNOWN: tuple(reason for reason in Reason if reason not in MISSING),
}


@cache
def general_layout() -> VerifierLayout:
    """The layout of any other verifier, without a column for the status."""
    table = verifier_tables()["general"]
    words = {meaning: set_of_words(text) for meaning, text in table["words"].items()}
    return VerifierLayout(
        service=ANOTHER,
        source=table["source"],
        needs=(),
        columns=plain_columns(table["columns"]),
        rows=tuple(general_rows(words)),
    )


def general_rows(
    words: Mapping[str, frozenset[str]],
) -> Iterator[tuple[Mapping[str, Condition], str]]:
    """The rows for words that mean the same at all verifiers."""
    for verdict, reasons in REFINED_BY.items():
        status = words[verdict]
        for reason in reasons:
            if reason in words:
                yield {"status": status, "reason": words[reason]}, str(reason)
        meaning = str(verdict)
        if verdict is Verdict.UNKNOWN:
            meaning = str(Reason.INCONCLUSIVE)
        yield {"status": status}, meaning
    for meaning, alike in words.items():
        yield {"status": alike}, meaning


def status_columns(names: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The columns that may be the result of a verification; whether their words must show it."""
    table = verifier_tables()["general"]
    plain = {plain_word(name) for name in names}
    for name in plain_words(table["status"]):
        if name in plain:
            yield name, False
    is_beside = not plain.isdisjoint(plain_words(table["beside"]))
    for name in plain_words(table["short_status"]):
        if name in plain:
            yield name, not is_beside


@cache
def words_of_verifiers() -> frozenset[str]:
    """Words for a result that only verifiers use."""
    return set_of_words(verifier_tables()["general"]["only_theirs"])
