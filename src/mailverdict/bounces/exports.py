"""Rows of sending services: which layout they have, and what each says about its address.

    email             event   reason                        a row of SendGrid, by its columns
    ada@web.de        bounce  550 5.1.1 User unknown
    -> Statement(words=("bounce",), diagnostic="550 5.1.1 User unknown")
    -> meaning "judge": the word does not say why -> judge the reply -> hard, mailbox_not_found

A row becomes a `Statement`: its words, status and reply as texts, of a known layout by its columns,
else by the general reading (`general.py`). Its words have a meaning together (`words.py` knows
each), and the reply is judged.

The word *hard* of a service counts unless the reply beside it says that the sender was refused, or
that the mailbox exists. Its word *soft* counts unless the reply is final and says that the mailbox
or domain does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from ..checks.bounces.dates import date_of
from ..checks.bounces.message import COMPLAINTS, NO_COMPLAINTS
from ..checks.bounces.notices import causes_in
from ..checks.bounces.outcome import (
    REPLY,
    Judgement,
    Outcome,
    find_status,
    is_final_reply,
    judge,
)
from ..checks.bounces.parts import MAX_ADDRESS
from ..errors import ColumnError, SettingsError
from ..model.words import Reason
from ..table.columns import did_you_mean, listed, plain_word
from .general import (
    believed_words,
    cause_beside,
    general_address,
    general_layout,
    names_several,
    sort_cells,
    why_no_address,
)
from .services import (
    BESIDE,
    CELLS,
    DIRECTION,
    FEEDBACK,
    FIELDS,
    JUDGE,
    SENTENCES,
    SKIP,
    ExportLayout,
    layouts,
    meanings,
    word_parts,
)
from .words import MAX_WORD, ExportRow, known_word, parts_of, word_of_flag

# A bounce that is called blocked or spam: that counts where the reply gives no cause.
REFUSED = "refused"
UNCLEAR = "unclear"  # a feedback type that may be a complaint
UNSENT = frozenset({"drop", "dropped", "suppressed"})  # parts of the word for a mail not sent
REFUSAL = re.compile(
    r"\b(?:reject|refus|bounc|denied|not accepted|blocked|undeliver|greylist)", re.IGNORECASE
)


def known_exports() -> str:
    return ", ".join(layout.name for layout in layouts())


def choose_layout(names: Sequence[str], columns: Mapping[str, str] | None) -> ExportLayout:
    """The layout that the caller gives, the first known one that fits, or the general reading."""
    if columns is not None:
        return given_layout(names, columns)
    layout = known_layout(tuple(names)) or general_layout(tuple(names))
    if layout is None:
        raise unknown_export(names)
    return layout


def unknown_export(names: Sequence[str]) -> ColumnError:
    return ColumnError(
        f"not an export that is known ({known_exports()}), and without an address beside a word, "
        "reply or status that is understood; name the columns, as columns={'address': ..., "
        "'outcome': ...} or --bounce-columns address=...,outcome=..., "
        f"of {listed(names)}"
    )


@lru_cache(maxsize=1_000)
def known_layout(names: tuple[str, ...]) -> ExportLayout | None:
    """The first known layout that fits, with the columns that are there, as they are written."""
    by_lower = {name.lower(): name for name in names}
    for layout in layouts():
        if not layout.fits(frozenset(by_lower)):
            continue
        columns = {}
        for field, theirs in layout.columns.items():
            written = [by_lower.get(name.lower()) for name in theirs]
            there = tuple(filter(None, written))
            if there:
                columns[field] = there
        return replace(layout, columns=columns)
    return None


def given_layout(names: Sequence[str], columns: Mapping[str, str]) -> ExportLayout:
    allowed = FIELDS[:-1]
    for field in columns:
        if field not in allowed:
            raise SettingsError(f"columns: {field!r} is not one of {', '.join(allowed)}")
    if "address" not in columns or {"outcome", "status", "diagnostic"}.isdisjoint(columns):
        raise SettingsError(
            "columns: give 'address' and at least one of 'outcome', 'status' and 'diagnostic'"
        )
    for name in columns.values():
        if name not in names:
            hint = did_you_mean(name, names)
            raise ColumnError(f"no column {name!r}{hint}; there are {listed(names)}")
    by_field = {field: (name,) for field, name in columns.items()}
    return ExportLayout("given columns", by_field, "the caller")


class Statement(NamedTuple):
    """What a row says of a delivery, as texts: None where it says nothing."""

    words: tuple[str, ...]
    status: str | None = None
    diagnostic: str | None = None
    feedback: str | None = None
    reason: str | None = None
    doubtful: tuple[str, ...] = ()  # words that mean other things in other tables
    direction: str | None = None  # of a mail that came in, nobody but ourselves is the recipient


def read_statement(row: ExportRow) -> Statement:
    """What a row says."""
    statement = read_general(row) if row.layout.is_general else read_known(row)
    return statement._replace(feedback=row.first(FEEDBACK), direction=row.first(DIRECTION))


def read_known(row: ExportRow) -> Statement:
    """What a row says whose columns are known."""
    words = []
    for name, cell in row.filled("outcome"):
        word = word_of_flag(name, cell)
        if word is not None:
            words.append(word)
    return Statement(
        words=tuple(words),
        status=row.first("status"),
        diagnostic=row.first("diagnostic"),
        reason=row.first("reason"),
    )


def read_general(row: ExportRow) -> Statement:
    """What a row says in the general reading; without a cause, what cells beside it say."""
    named, status, diagnostic = sort_cells(row.filled(CELLS))
    has_reply = bool(status or (diagnostic and REPLY.search(diagnostic)))
    words, doubtful = believed_words(named, has_reply=has_reply)
    is_open = diagnostic is None and status is None
    if is_open and set(map(known_word, words)) <= {JUDGE, None}:
        causes, diagnostic = cause_beside(row.filled(BESIDE))
        words = (*words, *causes)
    return Statement(words, status, diagnostic, doubtful=doubtful)


def read_address(row: ExportRow) -> tuple[str, str]:
    """The address of a row, or the empty text and why there is none."""
    if row.layout.is_general:
        return general_address(row)
    text = row.first("address") or ""
    is_one = "@" in text and not names_several(text)
    if is_one and len(text) <= MAX_ADDRESS and "\ufffd" not in text:
        return text, ""
    return "", why_no_address(text)


def statement_names(layout: ExportLayout) -> tuple[str, ...]:
    """The names of all that a statement is read from."""
    names: list[str] = []
    for field, theirs in layout.columns.items():
        if field not in ("address", "at"):
            names += theirs
    return tuple(names)


def row_meaning(
    words: Sequence[str], diagnostic: str | None, layout: ExportLayout, given: Mapping[str, str]
) -> tuple[str | None, str | None]:
    """What a row means, and the reply that is left.

    That is an outcome, `JUDGE`, `SKIP`, or None if its words are not known. A service that did not
    send the mail, or that has a word for the reply, gives no reply.
    """
    meaning = words_meaning(words, layout, given)
    if meaning is None and layout.is_general and diagnostic and REPLY.search(diagnostic):
        undone = word_parts()["undone"]
        if not any(parts_of(word) & undone for word in words):
            meaning = JUDGE
    is_settled = meaning in (None, SKIP, Outcome.DELIVERED, Outcome.COMPLAINT)
    if layout.is_final or is_settled or not diagnostic:
        return meaning, diagnostic
    finer = meanings("reasons").get(plain_word(diagnostic)) or sentence_meaning(diagnostic)
    if finer is None:
        return meaning, diagnostic
    if finer == Outcome.HARD and meaning not in (JUDGE, REFUSED):
        return meaning, None
    return finer, None


def sentence_meaning(text: str) -> str | None:
    """What a sentence of a service means that `SENTENCES` has."""
    for pattern, meaning in SENTENCES:
        if pattern.search(text):
            return meaning
    return None


def words_meaning(
    words: Sequence[str], layout: ExportLayout, given: Mapping[str, str]
) -> str | None:
    """What the words of a row mean together; None if none is known.

    >>> layout = general_layout(("email", "event", "category"))
    >>> rows = [("bounce", "hard"), ("bounce", "Spam"), ("open",), ("?",)]
    >>> [words_meaning(words, layout, {}) for words in rows]
    ['hard', 'refused', 'skip', None]
    """
    for word in words:
        if word in given:
            return given[word]
    if not words and ("outcome" in layout.columns or CELLS in layout.columns):
        return JUDGE
    if not words:
        return layout.without_word
    known = []
    for word in words:
        meaning = word_meaning(word, layout)
        if meaning is not None:
            known.append(meaning)
    if not known:
        return None
    bounces = {Outcome.HARD, Outcome.SOFT, Outcome.BLOCKED}.intersection(known)
    is_failure = bool(bounces) or JUDGE in known
    if known[0] == SKIP and not is_failure:
        return SKIP
    if Outcome.COMPLAINT in known:  # a bounce whose category is spam was refused by a filter
        return REFUSED if is_failure else Outcome.COMPLAINT
    if Outcome.DELIVERED in known:  # "delivery" beside "failed": a delivery that failed
        return JUDGE if is_failure else Outcome.DELIVERED
    if set(known) == {Outcome.BLOCKED}:
        return Outcome.BLOCKED
    if Outcome.BLOCKED in bounces:
        return REFUSED
    if len(bounces) == 1:
        return bounces.pop()
    return JUDGE if is_failure else known[0]


def word_meaning(text: str, layout: ExportLayout) -> str | None:
    """What a word of the export means; None if it is not known."""
    return layout.words.get(plain_word(text)) or known_word(text)


CERTAIN = frozenset(
    {
        Reason.MAILBOX_FULL,
        Reason.GREYLISTED,
        Reason.TIMEOUT,
        Reason.PORT_CLOSED,
        Reason.CONNECTION_DROPPED,
    }
)
# RFC 3463: length of the message (x.2.3), mail system (x.3), network and routing (x.4), content
# (x.6). Unable to route (x.4.4; Exchange Online: 5.4.310) is about the domain of the address; x.y.0
# says nothing.
NOT_THE_MAILBOX = re.compile(r"5\.2\.3|5\.[36]\.[1-9]\d*|5\.4\.(?!4\b|310\b)[1-9]\d*")


def conclude(
    layout: ExportLayout, row: Statement, given: Mapping[str, str]
) -> tuple[str | None, Judgement | None]:
    """What the words, status and reply of a row say together.

    No judgement if it is not about a delivery.
    """
    meaning, reply = statement_meaning(layout, row, given)
    if meaning in (None, SKIP, UNCLEAR):
        return meaning, None
    if reply and len(reply) > MAX_WORD:
        is_coded = row.status or REPLY.search(reply) or find_status(reply)
        if not is_coded:  # the service explains, with advice
            reply = causes_in(reply) or None
    is_refused = has_refusal(row.status, reply)
    if meaning == Outcome.COMPLAINT and is_refused:
        meaning = JUDGE
    if meaning == Outcome.DELIVERED and is_final_reply(reply or ""):
        meaning = JUDGE
    if meaning == REFUSED:
        judged = conclude_row(JUDGE, row.status, reply)
        if judged.reason is Reason.INCONCLUSIVE:
            judged = Judgement(Outcome.BLOCKED, judged.reason)
    else:
        judged = conclude_row(str(meaning), row.status, reply)
    is_unsent = any(parts_of(word) & UNSENT for word in row.words)
    if is_unsent and judged.outcome is Outcome.BLOCKED and not is_refused:
        judged = Judgement(Outcome.SOFT, Reason.INCONCLUSIVE)  # by a list of the service itself
    return meaning, judged


def statement_meaning(
    layout: ExportLayout, row: Statement, given: Mapping[str, str]
) -> tuple[str | None, str | None]:
    """What a statement means by its words, its sentence or its feedback type; the reply left."""
    if row.direction is not None and row.direction.lower() in ("incoming", "inbound"):
        return SKIP, None
    told = [word for word in row.doubtful if word in given]
    words = (*row.words, *told)
    if layout.is_general and not (words or row.status or row.diagnostic or row.feedback):
        meaning = None if row.doubtful else SKIP
        return meaning, None
    meaning, reply = row_meaning(words, row.diagnostic, layout, given)
    if row.doubtful and words == () and row.status is None:
        meaning = None  # a sentence beside a doubtful word
    if row.feedback and (meaning == Outcome.COMPLAINT or not row.words):
        meaning = feedback_meaning(row.feedback)
    return meaning, reply


def feedback_meaning(kind: str) -> str:
    """What a feedback type means: a complaint, `SKIP`, or `UNCLEAR`."""
    word = kind.lower().replace("_", "-").replace(" ", "-")
    if word in COMPLAINTS:
        return Outcome.COMPLAINT
    if word in NO_COMPLAINTS:
        return SKIP
    return UNCLEAR


def has_refusal(status: str | None, reply: str | None) -> bool:
    """Whether a server refused the mail: then nobody got it who could complain."""
    if status is not None and re.match(r"[45](?:\d\d$|\.\d{1,3}\.\d)", status):
        return True
    if reply is None:
        return False
    return REPLY.search(reply) is not None or REFUSAL.search(reply) is not None


def conclude_row(meaning: str, status: str | None, diagnostic: str | None) -> Judgement:
    """The outcome of a row, from what the service says and the reply of the server.

    Hard needs both to agree.

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
    if not code and not text:  # only the word
        if meaning == JUDGE:
            return Judgement(Outcome.SOFT, Reason.INCONCLUSIVE)
        return Judgement(Outcome(meaning), None)
    judged = judge(code, text)
    if meaning == JUDGE:
        return judged
    if meaning == Outcome.HARD:
        return check_hard(judged, code, text)
    if meaning == Outcome.SOFT and is_final_reply(text):
        by_reply = judge(None, text)
        if by_reply.outcome is Outcome.HARD:
            return by_reply
    return Judgement(Outcome(meaning), judged.reason)


def check_hard(judged: Judgement, code: str | None, text: str) -> Judgement:
    """The outcome where the service says hard: soft or blocked if the reply says that of it."""
    status = code or find_status(text) or ""
    is_transient = status.startswith("4")
    if code is None:
        is_transient = is_transient or text.lstrip().startswith("4")
    is_elsewhere = judged.reason is Reason.INCONCLUSIVE and NOT_THE_MAILBOX.match(status)
    if is_transient or is_elsewhere or judged.reason in CERTAIN:
        return Judgement(Outcome.SOFT, judged.reason)
    if judged.outcome is Outcome.BLOCKED:
        return judged
    return Judgement(Outcome.HARD, judged.reason)


def status_code(status: str | None) -> str | None:
    """The enhanced status code at the beginning of a cell such as ``4.2.2 (mailbox full)``."""
    match = re.match(r"[245]\.\d{1,3}\.\d{1,3}(?![\d.])", status or "")
    if match is None:
        return None
    return match[0]


# A number in this range is seconds since 1970; a thousand times that, milliseconds.
FIRST_SECOND = 1e8
LAST_SECOND = 1e11


def parse_moment(value: object) -> datetime | None:
    """A time in UTC from ISO 8601, RFC 5322 or seconds since 1970; None for an ambiguous form.

    >>> parse_moment("2026-03-05T10:00:00+01:00").isoformat(), parse_moment("3/5/2026")
    ('2026-03-05T09:00:00+00:00', None)
    """
    moment: datetime | None
    if isinstance(value, datetime):
        moment = value
    else:
        text = str(value).strip()
        moment = moment_of_text(text[:100])
    if moment is None or not 1980 <= moment.year < 2200:
        return None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def moment_of_text(text: str) -> datetime | None:
    """The time of a text: a number, or a date."""
    try:
        seconds = float(text)
    except ValueError:
        return date_of(text)
    if FIRST_SECOND * 1000 <= seconds < LAST_SECOND * 1000:
        seconds /= 1000
    if not FIRST_SECOND <= seconds < LAST_SECOND:
        return None
    return datetime.fromtimestamp(seconds, UTC)
