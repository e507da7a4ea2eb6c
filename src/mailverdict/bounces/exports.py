"""Rows of sending services: which layout they have, and what each says about its address.

The word *hard* of a service counts unless the reply beside it says that the sender was refused, or that the mailbox
exists. Its word *soft* counts unless the reply is final and says that the mailbox or domain does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache

from ..checks.bounces.dates import date_of
from ..checks.bounces.outcome import Judgement, Outcome, find_status, is_final_reply, judge
from ..errors import ColumnError, SettingsError
from ..model.words import Reason
from ..table.columns import did_you_mean, listed, plain_word
from .services import FIELDS, JUDGE, SENTENCES, SKIP, ExportLayout, layouts, meanings


def known_exports() -> str:
    return ", ".join(layout.name for layout in layouts())


def choose_layout(names: Sequence[str], columns: Mapping[str, str] | None) -> ExportLayout:
    """The layout that the caller gives, or the first known one that fits the names of the columns."""
    if columns is not None:
        return given_layout(names, columns)
    if layout := known_layout(tuple(names)):
        return layout
    raise ColumnError(
        f"not an export that is known ({known_exports()}); name the columns, "
        f"as columns={{'address': ..., 'outcome': ...}} or --bounce-columns address=...,outcome=..., of {listed(names)}"
    )


@lru_cache(maxsize=1_000)
def known_layout(names: tuple[str, ...]) -> ExportLayout | None:
    """The first known layout that fits, with the columns that are there, as they are written."""
    by_lower = {name.lower(): name for name in names}
    for layout in layouts():
        if layout.fits(frozenset(by_lower)):
            there = {
                ours: tuple(by_lower[each.lower()] for each in theirs if each.lower() in by_lower)
                for ours, theirs in layout.columns.items()
            }
            return replace(
                layout, columns={ours: theirs for ours, theirs in there.items() if theirs}
            )
    return None


def given_layout(names: Sequence[str], columns: Mapping[str, str]) -> ExportLayout:
    allowed = FIELDS[:-1]
    if unknown := [name for name in columns if name not in allowed]:
        raise SettingsError(f"columns: {unknown[0]!r} is not one of {', '.join(allowed)}")
    if "address" not in columns or {"outcome", "status", "diagnostic"}.isdisjoint(columns):
        raise SettingsError(
            "columns: give 'address' and at least one of 'outcome', 'status' and 'diagnostic'"
        )
    if absent := [name for name in columns.values() if name not in names]:
        raise ColumnError(
            f"no column {absent[0]!r}{did_you_mean(absent[0], names)}; there are {listed(names)}"
        )
    return ExportLayout(
        "given columns", {ours: (theirs,) for ours, theirs in columns.items()}, "the caller"
    )


def row_meaning(
    word: str | None, diagnostic: str | None, layout: ExportLayout, given: Mapping[str, str]
) -> tuple[str | None, str | None]:
    """What a row means: an outcome, `JUDGE`, `SKIP`, or None if its word is not known; and the reply that is left.

    A service that did not send the mail, or that has a word for the reply, gives no reply.
    """
    meaning = word_meaning(word, layout, given)
    if (
        layout.is_final
        or meaning in (None, SKIP, Outcome.DELIVERED, Outcome.COMPLAINT)
        or not diagnostic
    ):
        return meaning, diagnostic
    finer = meanings("reasons").get(plain_word(diagnostic)) or next(
        (each for pattern, each in SENTENCES if pattern.search(diagnostic)), None
    )
    if finer is None:
        return meaning, diagnostic
    return (meaning if finer == Outcome.HARD and meaning != JUDGE else finer), None


def word_meaning(text: str | None, layout: ExportLayout, given: Mapping[str, str]) -> str | None:
    """What a word of the export means; None if it is not known."""
    if text is None:
        return layout.without_word if "outcome" not in layout.columns else JUDGE
    if text in given:
        return given[text]
    word = plain_word(text)
    return layout.words.get(word) or meanings("words").get(word) or meanings("reasons").get(word)


CERTAIN = frozenset(
    {
        Reason.MAILBOX_FULL,
        Reason.GREYLISTED,
        Reason.TIMEOUT,
        Reason.PORT_CLOSED,
        Reason.CONNECTION_DROPPED,
    }
)
# RFC 3463: length of the message (x.2.3), mail system (x.3), network and routing (x.4), content (x.6). Unable to route
# (x.4.4; Exchange Online: 5.4.310) is about the domain of the address; x.y.0 says nothing.
NOT_THE_MAILBOX = re.compile(r"5\.2\.3|5\.[36]\.[1-9]\d*|5\.4\.(?!4\b|310\b)[1-9]\d*")


def conclude_row(meaning: str, status: str | None, diagnostic: str | None) -> Judgement:
    """The outcome of a row, from what the service says and the reply of the server; hard needs both to agree.

    >>> conclude_row("hard", None, "550 5.7.1 blocked using zen.spamhaus.org").outcome.value
    'blocked'
    >>> conclude_row("hard", None, None).outcome.value
    'hard'
    """
    if meaning in (Outcome.DELIVERED, Outcome.COMPLAINT):
        return Judgement(Outcome(meaning), None)
    text = diagnostic or ""
    code = status_code(status)
    if status and re.fullmatch(r"[45]\d\d", status) and not re.match(r"\s*[45]\d\d\b", text):
        text = f"{status} {text}"
    found = judge(code, text) if code or text else None
    if meaning == JUDGE:
        return found or Judgement(Outcome.SOFT, Reason.INCONCLUSIVE)
    if meaning == Outcome.HARD:
        if found is None:
            return Judgement(Outcome.HARD, None)
        said = code or find_status(text) or ""
        is_transient = said.startswith("4") or (code is None and text.lstrip().startswith("4"))
        is_elsewhere = found.reason is Reason.INCONCLUSIVE and NOT_THE_MAILBOX.match(said)
        if is_transient or is_elsewhere or found.reason in CERTAIN:
            return Judgement(Outcome.SOFT, found.reason)
        return Judgement(
            found.outcome if found.outcome is Outcome.BLOCKED else Outcome.HARD, found.reason
        )
    if (
        meaning == Outcome.SOFT
        and is_final_reply(text)
        and judge(None, text).outcome is Outcome.HARD
    ):
        return judge(None, text)
    return Judgement(Outcome(meaning), found.reason if found else None)


def status_code(status: str | None) -> str | None:
    """The enhanced status code at the beginning of a cell such as ``4.2.2 (mailbox full)``."""
    match = re.match(r"[245]\.\d{1,3}\.\d{1,3}(?![\d.])", status or "")
    return match[0] if match else None


SECONDS = (
    1e8,
    1e11,
)  # a number in this range is seconds since 1970; a thousand times that, milliseconds


def parse_moment(value: object) -> datetime | None:
    """A time in UTC from ISO 8601, RFC 5322 or seconds since 1970; None for ambiguous forms such as 3/5/2026.

    >>> parse_moment("2026-03-05T10:00:00+01:00").isoformat(), parse_moment("3/5/2026")
    ('2026-03-05T09:00:00+00:00', None)
    """
    if isinstance(value, datetime):
        found: datetime | None = value
    else:
        text = str(value).strip()[:100]
        try:
            number = float(text)
        except ValueError:
            found = date_of(text)
        else:
            number = number / 1000 if SECONDS[0] * 1000 <= number < SECONDS[1] * 1000 else number
            found = (
                datetime.fromtimestamp(number, UTC) if SECONDS[0] <= number < SECONDS[1] else None
            )
    if found is None or not 1980 <= found.year < 2200:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
