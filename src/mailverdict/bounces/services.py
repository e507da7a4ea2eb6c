"""What sending services call their columns, outcomes and reasons: `bounce_services.toml`.

    [[layout]]
    name = "SendGrid events"
    columns = { address = "email", at = "timestamp", outcome = "type event", ... }
    needs = "email timestamp event sg_event_id|sg_message_id"

An export is one service's only if it has a name that only that service uses. Any other one has the
general reading: a layout made of the names that are there and mean an address, a time, a word, a
reply or a status. In it the text of a cell says what it is: ``reason`` holds a word in one export,
and the reply of a mail server in the next.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

FIELDS = ("address", "at", "outcome", "status", "diagnostic", "reason")
FEEDBACK = "feedback"  # the type of a complaint: not all are complaints
DIRECTION = "direction"  # of a mail: out, or in
CELLS = "cells"  # of the general reading: words, replies and statuses
BESIDE = "beside"  # of the general reading: cells that may give the cause if those do not
GENERAL = "general reading"
JUDGE = "judge"  # the word does not say why: the reply decides
SKIP = "skip"  # not about the delivery


@dataclass(frozen=True)
class ExportLayout:
    """An export or event of a service: the columns of each of our fields.

    The first that is not empty counts.
    """

    name: str
    # Ours -> theirs; a member of an inner object as `outer.inner`.
    columns: Mapping[str, tuple[str, ...]]
    source: str  # where the names of the columns are documented
    # The columns by which it is known, `a|b` is one of two; all if empty.
    needs: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)  # what differs from `meanings("words")`
    without_word: str = JUDGE  # what every row means if there is no column for the outcome
    is_final: bool = False  # outcomes are ours already

    def fits(self, names: frozenset[str]) -> bool:
        """Whether a table with these columns, in lower case, is such an export."""
        needed = self.needs or tuple(chain.from_iterable(self.columns.values()))
        choices = [alternatives.lower().split("|") for alternatives in needed]
        return not any(names.isdisjoint(choice) for choice in choices)

    def names(self) -> list[str]:
        """The names of all its columns, each once."""
        names = chain.from_iterable(self.columns.values())
        return list(dict.fromkeys(names))

    @property
    def is_general(self) -> bool:
        """Whether the content of a cell says what it is."""
        return CELLS in self.columns

    @property
    def is_guess(self) -> bool:
        """Whether no service is known by these names."""
        return self.name == GENERAL


@cache
def service_tables() -> dict[str, Any]:
    path = files("mailverdict.data").joinpath("bounce_services.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def layouts() -> tuple[ExportLayout, ...]:
    """The known exports and events, in the order in which they are tried."""
    known = []
    for row in service_tables()["layout"]:
        fields = dict(row)
        fields["columns"] = {field: split_names(names) for field, names in row["columns"].items()}
        fields["needs"] = split_names(row.get("needs", ""))
        known.append(ExportLayout(**fields))
    return tuple(known)


def split_names(names: str | list[str]) -> tuple[str, ...]:
    """Names that blanks separate, or a list of names that have blanks."""
    if isinstance(names, str):
        names = names.split()
    return tuple(names)


@cache
def general_names(field: str) -> dict[str, int]:
    """The names that mean a field in the general reading, with their rank."""
    ranks: dict[str, int] = {}
    for rank, names in enumerate(service_tables()["general"][field]):
        for name in names.split():
            ranks.setdefault(name, rank)
    return ranks


@cache
def word_parts() -> dict[str, frozenset[str]]:
    """What a part of a word means, as in ``email.hard_bounced``.

    `undone` are those that take it back.
    """
    parts = {}
    for meaning, words in service_tables()["parts"].items():
        if meaning != "source":
            parts[meaning] = frozenset(words.split())
    return parts


@cache
def meanings(table: str) -> dict[str, str]:
    """What each word of the table ``words`` or ``reasons`` means: an outcome, `JUDGE` or `SKIP`.

    >>> meanings("words")["softbounce"], meanings("reasons")["noemail"]
    ('soft', 'hard')
    """
    by_word = {}
    for row in service_tables()[table]:
        for meaning, words in row.items():
            if meaning != "source":
                by_word.update(dict.fromkeys(words.split(), meaning))
    return by_word


# Why a service did not send a mail. Only a list of bounces says something about the mailbox.
SUPPRESSED = r"on (?:the|our|your) suppression list|(?:address|recipient) (?:was |is )?suppressed"
SENTENCE_ROWS = (
    # Mailgun's code 605; Amazon SES, its global list
    (r"previously bounced|history of (?:bouncing|producing hard bounces)", "hard"),
    (r"provider sent a hard bounce message", "hard"),  # Resend
    # SendGrid, why a mail was dropped
    (r"^bounced address$|^invalid$", "hard"),
    (r"^spam reporting address$", "complaint"),
    (r"^unsubscribed address$|^invalid smtpapi header|over package quota", SKIP),
    (r"^spam content", "blocked"),
    (r"due to blacklist(?:ed)? user", "soft"),  # Brevo, a list of its own
    (r"not delivering to (?:an? )?unsubscribed", SKIP),  # Mailgun, 606
    (r"marked your (?:messages?|e?-?mails?) as spam", "complaint"),  # Mailgun, 607
    (SUPPRESSED, "soft"),  # Amazon SES, the list of an account; SparkPost, "due to customer policy"
)
SENTENCES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), meaning) for pattern, meaning in SENTENCE_ROWS
)
