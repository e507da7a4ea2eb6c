"""What the words of another verifier say about an address: reasons of ours, by its layout.

The rows of an export have few different combinations of words, and each is judged once. For Bouncer
the cells ``{"status": "undeliverable", "reason": "rejected_email"}`` are `invalid` with the reason
`mailbox_not_found`. What the caller says that a word means counts before the layout.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..errors import InputError
from ..model.words import Reason, Status, Verdict, count_of, first_of, printable_text
from ..table.columns import plain_word
from ..table.notices import warn_user
from ..table.verifiers import ANYTHING, FLAGS, SKIP, WORDS, Condition, VerifierLayout
from ..verdicts import order_reasons, verdict_of

MEANINGS = (*map(str, Verdict), SKIP, *map(str, Reason))  # of a word, as a caller may give it
SHOWN = 5  # words and columns that a message quotes
LONGEST_WORD = 60  # characters of a word that becomes a reason
LONGEST_CELL = 2_000  # characters of a cell with several words; a longer one is not known
TRUTH = {
    **dict.fromkeys(("true", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "no", "n", "0"), False),
}


class Answer(NamedTuple):
    """What the cells of a row say."""

    status: Status
    verdict: str | None = None
    reasons: str | None = None  # joined by ";"
    flags: Mapping[str, bool | None] = {}
    unknown: str = ""  # a word of the service that is not known


class RowWords(NamedTuple):
    """The filled cells of a row, and the words in each, by our fields."""

    cells: Mapping[str, str]
    words: Mapping[str, frozenset[str]]


def judge_rows(
    layout: VerifierLayout,
    columns: Mapping[str, pa.StringArray],
    outcomes: Mapping[str, str],
    size: int,
) -> tuple[list[Answer], npt.NDArray[Any]]:
    """The answers of distinct cells, and for each row which it has."""
    lists = {name: values.to_pylist() for name, values in columns.items()}
    cells = pd.DataFrame(lists, range(size), dtype=object)
    groups = cells.groupby(list(cells), dropna=False, sort=False)
    codes: npt.NDArray[Any] = groups.ngroup().to_numpy(copy=True)
    distinct = cells.drop_duplicates()
    answers = []
    for row in distinct.to_dict("records"):
        filled = {}
        for name, cell in row.items():
            if cell is not None:
                filled[str(name)] = cell
        answers.append(judge_row(layout, filled, outcomes))
    return answers, codes


def judge_row(
    layout: VerifierLayout, cells: Mapping[str, str], outcomes: Mapping[str, str]
) -> Answer:
    """The answer of the filled cells of a row.

    >>> from mailverdict.table.verifiers import verifier_layouts
    >>> (bouncer,) = [layout for layout in verifier_layouts() if layout.service == "Bouncer"]
    >>> judge_row(bouncer, {"status": "undeliverable", "reason": "rejected_email"}, {}).reasons
    'mailbox_not_found'
    """
    words = {}
    for name, cell in cells.items():
        written = words_in(cell)
        if written:
            words[name] = written
    row = RowWords(cells, words)
    unknown = ""
    meaning = given_meaning(row, outcomes)
    if meaning is None:
        unknown = unknown_word(row, layout)
        meaning = meaning_of(row, layout)
    is_unchecked = meaning == SKIP or (meaning is None and "status" not in words)
    if is_unchecked and not unknown:
        return Answer(Status.PENDING)

    named: list[Reason] = []
    if meaning is not None and not unknown and meaning not in tuple(Verdict):
        named += map(Reason, meaning.split())
    raised = list(named)
    flags: dict[str, bool | None] = {}
    for name in FLAGS:
        flags[name] = truth_of(words.get(name))
        if name in named:
            flags[name] = True
        if flags[name] and name != "free":
            raised.append(Reason(name))
    reasons = order_reasons(raised)

    joined = ";".join(reasons)
    service_word = own_word(unknown or shown_word(row))
    with_own = ";".join([service_word, *reasons])
    if unknown or meaning in (None, Verdict.UNKNOWN):
        return Answer(Status.DONE, Verdict.UNKNOWN, with_own, flags, unknown)
    if meaning == Verdict.INVALID:
        return Answer(Status.DONE, Verdict.INVALID, with_own, flags)
    if meaning == Verdict.RISKY:
        return Answer(Status.DONE, Verdict.RISKY, joined or service_word, flags)
    return Answer(Status.DONE, verdict_of(reasons), joined, flags)


def words_in(cell: str) -> frozenset[str]:
    """The words of a cell, which may be several; none if it has signs alone, as ``-``.

    >>> sorted(words_in("Catch-All; role")), words_in("-")
    (['catchall', 'role'], frozenset())
    """
    pieces = [cell[:LONGEST_CELL]]
    if len(cell) <= LONGEST_CELL:
        pieces = re.split("[,;]", cell)
    return frozenset(map(word_of, pieces)) - {""}


def meaning_of(row: RowWords, layout: VerifierLayout) -> str | None:
    """What the first row of the table that fits says; None if none fits."""
    for conditions, meaning in layout.rows:
        if fits(row, conditions):
            return meaning
    return None


def given_meaning(row: RowWords, outcomes: Mapping[str, str]) -> str | None:
    """What the caller says that a word of the row means; one of the reason counts first."""
    for name in reversed(WORDS):
        if name not in row.words:
            continue
        whole = word_of(row.cells[name])
        for word in (whole, *sorted(row.words[name])):
            if word in outcomes:
                return outcomes[word]
    return None


def unknown_word(row: RowWords, layout: VerifierLayout) -> str:
    """The cell with a word that is not in the table; any other verifier may have own reasons."""
    for name in WORDS:
        is_checked = name == "status" or not layout.is_general
        words = row.words.get(name, frozenset())
        if is_checked and not words <= layout.words[name]:
            return row.cells[name]
    return ""


def shown_word(row: RowWords) -> str:
    """The service's word that becomes a reason."""
    for name in ("shown", "reason", "status"):
        if name in row.words:
            return row.cells[name]
    return ""


def fits(row: RowWords, conditions: Mapping[str, Condition]) -> bool:
    """Whether the words of a row's cells are those of a row of the table."""
    for name, wanted in conditions.items():
        written = row.words.get(name, frozenset())
        if isinstance(wanted, bool):
            is_met = truth_of(written) is wanted
        elif wanted == ANYTHING:
            is_met = bool(written)
        else:
            is_met = not wanted.isdisjoint(written)
        if not is_met:
            return False
    return True


def truth_of(words: Collection[str] | None) -> bool | None:
    """A flag; None if the cell is empty or says something else, as ``unknown``."""
    if not words:
        return None
    return TRUTH.get(next(iter(words)))


def word_of(text: str) -> str:
    """A word in the form in which it is compared; a column of numbers with gaps has ``5.0`` for 5.

    >>> word_of("Catch-All"), word_of("5.0")
    ('catchall', '5')
    """
    whole, point, rest = text.strip().partition(".")
    if point and whole.isdecimal() and not rest.strip("0"):
        return whole
    return plain_word(text)


def own_word(text: str) -> str:
    """A word of the service as a reason.

    >>> own_word("Global Suppression")
    'global_suppression'
    """
    word = re.sub(r"\W+", "_", text[:LONGEST_CELL].lower())
    return word.strip("_")[:LONGEST_WORD]


def check_words(
    place: str, layout: VerifierLayout, answers: Sequence[Answer], codes: npt.NDArray[Any]
) -> None:
    """Warn of words that are not known; an error if no other row has an answer."""
    counts: Counter[str] = Counter()
    numbers = np.bincount(codes, minlength=len(answers)).tolist()
    for answer, number in zip(answers, numbers, strict=True):
        if answer.unknown:
            counts[answer.unknown] += number
    if not counts:
        return
    words = []
    counted = []
    for word, number in counts.most_common():
        shown = repr(printable_text(word, LONGEST_WORD))
        words.append(shown)
        counted.append(f"{shown} ({number:,})")
    hint = f"say what a word means, as outcomes={{{words[0]}: ...}} or --map WORD=..."
    if not any(answer.verdict and not answer.unknown for answer in answers):
        raise InputError(
            f"{place} has the columns of {layout.service}, but none of its words: it has "
            f"{first_of(words, SHOWN)}; {hint}"
        )
    rows = count_of(counts.total(), "row has", "rows have")
    warn_user(
        f"{place}: {rows} words of {layout.service} that are not known, and stay unknown: "
        f"{first_of(counted, SHOWN)}; {hint}"
    )
