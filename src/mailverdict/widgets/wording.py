"""Words that only the audit page has: what a check does, times, messages. Labels that others show too are imported."""

from __future__ import annotations

from datetime import UTC, datetime

from ..model.words import REPAIR_LABELS, ValidationType, Verdict, count_of, percent
from ..theme import LABELS

__all__ = [
    "DEPTHS",
    "REPAIR_LABELS",
    "VERDICT_LABELS",
    "count_of",
    "date_text",
    "duration_words",
    "percent",
    "sentence",
]

# How deep, in the order of the page: the label, what is done, and what "valid" then means.
DEPTHS: dict[str, tuple[str, str, str]] = {
    ValidationType.REGEX: (
        "Format only",
        "Checks how each address is written. Nothing leaves this computer.",
        "Valid: the address is well formed. Whether it exists is not known.",
    ),
    ValidationType.MX: (
        "Domain can receive mail",
        "Also looks up the domain of each address in the DNS.",
        "Valid: the domain receives mail. Whether the mailbox exists is not known.",
    ),
    ValidationType.MX_BLACKLIST: (
        "… and is not on a blacklist",
        "Also looks up the mail servers of each domain in blacklists.",
        "Valid: the domain receives mail, and none of its mail servers is on a list.",
    ),
    ValidationType.SMTP: (
        "Mailbox exists",
        "Also asks the mail server of each address whether the mailbox exists. No mail is sent.",
        "Valid: the mailbox exists and no problem was found.",
    ),
}
# Verdicts, and the states of rows without one.
VERDICT_LABELS = {name: LABELS[name] for name in (*map(str, Verdict), "error", "pending", "missing")}


def duration_words(seconds: float) -> str:
    """A time for people, in steps that do not change with every update.

    >>> duration_words(8), duration_words(130), duration_words(7_500), duration_words(30 * 86_400)
    ('a few seconds', 'about 2 minutes', 'about 2 hours 5 minutes', '30 days')
    """
    if seconds >= 2 * 86_400:
        return count_of(round(seconds / 86_400), "day")
    if seconds < 15:
        return "a few seconds"
    if seconds < 60:
        return "less than a minute"
    hours, minutes = divmod(round(seconds / 60), 60)
    words = [count_of(hours, "hour")] if hours else []
    return "about " + " ".join([*words, *([count_of(minutes, "minute")] if minutes else [])])


def date_text(moment: datetime) -> str:
    """A date and time in UTC.

    >>> date_text(datetime(2026, 3, 5, 14, 7, tzinfo=UTC))
    '5 March 2026, 14:07 UTC'
    """
    at = moment.astimezone(UTC)
    return f"{at.day} {at:%B %Y, %H:%M} UTC"


def sentence(message: str) -> str:
    """A message as a sentence, so that messages can be joined; a file name at its beginning stays.

    >>> sentence("this failed"), sentence("list.csv is empty")
    ('This failed.', 'list.csv is empty.')
    """
    if message.partition(" ")[0].isalpha():
        message = message[:1].upper() + message[1:]
    return message if message.endswith((".", "!", "?", "…")) else f"{message}."
