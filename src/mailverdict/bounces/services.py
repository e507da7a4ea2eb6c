"""What sending services call their columns, outcomes and reasons: the tables of `bounce_services.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

FIELDS = ("address", "at", "outcome", "status", "diagnostic", "reason")
JUDGE = "judge"  # the word does not say why: the reply decides
SKIP = "skip"  # not about the delivery


@dataclass(frozen=True)
class ExportLayout:
    """An export or event of a service: the columns of each of our fields; the first that is not empty counts."""

    name: str
    columns: Mapping[
        str, tuple[str, ...]
    ]  # ours -> theirs; a member of an inner object as `outer.inner`
    source: str  # where the names of the columns are documented
    needs: tuple[str, ...] = ()  # the columns by which it is known; all if empty
    words: Mapping[str, str] = field(default_factory=dict)  # what differs from `meanings("words")`
    without_word: str = JUDGE  # what every row means if there is no column for the outcome
    is_final: bool = False  # outcomes are ours already

    def fits(self, names: frozenset[str]) -> bool:
        """Whether a table with these columns, in lower case, is such an export."""
        needed = self.needs or [name for names in self.columns.values() for name in names]
        return all(name.lower() in names for name in needed)


@cache
def service_tables() -> dict[str, Any]:
    return tomllib.loads(
        files("mailverdict.data").joinpath("bounce_services.toml").read_text(encoding="utf-8")
    )


@cache
def layouts() -> tuple[ExportLayout, ...]:
    """The known exports and events, in the order in which they are tried."""
    return tuple(
        ExportLayout(
            **{
                **row,
                "columns": {ours: tuple(theirs.split()) for ours, theirs in row["columns"].items()},
                "needs": tuple(row.get("needs", "").split()),
            }
        )
        for row in service_tables()["layout"]
    )


@cache
def meanings(table: str) -> dict[str, str]:
    """What each word of the table ``words`` or ``reasons`` means: an outcome, `JUDGE` or `SKIP`.

    >>> meanings("words")["softbounce"], meanings("reasons")["noemail"]
    ('soft', 'hard')
    """
    return {
        word: meaning
        for row in service_tables()[table]
        for meaning, words in row.items()
        if meaning != "source"
        for word in words.split()
    }


# Why a service did not send a mail. Only a list of bounces says something about the mailbox.
SENTENCES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), meaning)
    for pattern, meaning in (
        # Mailgun's code 605; Amazon SES, its global list
        (r"previously bounced|history of bouncing", "hard"),
        (r"not delivering to (?:an? )?unsubscribed", SKIP),  # Mailgun, 606
        (r"marked your (?:messages?|e?-?mails?) as spam", "complaint"),  # Mailgun, 607
        # Amazon SES, the list of an account; SparkPost, "due to customer policy"
        (
            r"on (?:the|our|your) suppression list|(?:address|recipient) (?:was |is )?suppressed",
            "soft",
        ),
    )
)
