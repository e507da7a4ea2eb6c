"""The words of a report: page, workbook, audit page and command line say the same.

checks_of(["mx"])                    Domain can receive mail
limit_text(["mx"])                   The domains were checked; the mailboxes were not asked: ...
people_text(counts)                  2,871 people in 2,985 of 4,000 rows
meaning_of_actions(counts)["drop"]   Take them off the list. Domain receives no mail: 412.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date

from ..frames.alike import Alike
from ..model.words import (
    ACTION_MEANING,
    ACTIONS,
    REASON_LABELS,
    REPAIR_LABELS,
    ValidationType,
    capitalize,
    count_of,
    reason_label,
)
from .counts import Counts
from .facts import ReportFacts, most_common, reason_of

CHECKS = {
    ValidationType.REGEX: "Format only",
    ValidationType.MX: "Domain can receive mail",
    ValidationType.MX_BLACKLIST: "Domain can receive mail and is not on a blacklist",
    ValidationType.SMTP: "Mailbox exists",
}
# What the number of people who can be mailed leaves open; the check that says least comes first.
LIMITS = {
    ValidationType.REGEX: (
        "Only the form was checked; domains and mailboxes were not asked: many can bounce."
    ),
    ValidationType.MX: "The domains were checked; the mailboxes were not asked: some will bounce.",
    ValidationType.MX_BLACKLIST: (
        "The domains were checked; the mailboxes were not asked: some will bounce."
    ),
}
MAIN_REASONS = 3  # of an action
REASONLESS = "No problem found"  # the reason of a valid address


def title_of(facts: ReportFacts) -> str:
    return f"E-mail audit of {facts.name or facts.column}"


def repair_label(name: str) -> str:
    return REPAIR_LABELS.get(name) or capitalize(name.replace("_", " "))


def days_of(days: tuple[date, date] | None) -> str:
    """A day, or the first and the last."""
    if days is None:
        return ""
    first, last = days
    if first == last:
        return str(first)
    return f"{first} to {last}"


def days_of_earlier(days: tuple[date, date] | None) -> str:
    """The days of an earlier audit, whose file may not have them."""
    return days_of(days) or "day not recorded"


def another_check(then: Iterable[str], now: Iterable[str]) -> str:
    """A sentence if an earlier audit made another check, as far as both are known.

    >>> another_check(["regex"], ["smtp"]).partition(",")[0]
    'The check was “Format only” then and is “Mailbox exists” now'
    """
    old = checks_of(then)
    new = checks_of(now)
    if not old or not new or old == new:
        return ""
    return (
        f"The check was “{old}” then and is “{new}” now, "
        "so verdicts can differ for that reason alone."
    )


def checks_of(kinds: Iterable[str]) -> str:
    """The checks that were made, in words."""
    names = set(kinds)
    return ", ".join(label for kind, label in CHECKS.items() if kind in names)


def made_checks(facts: ReportFacts) -> str:
    """The checks that were made, and by what if that has a name; empty if there was none."""
    checks = checks_of(facts.counts.validation_types)
    if not checks and facts.is_check_unknown:
        checks = "not recorded"
    return ", by ".join(filter(None, (checks, facts.answered_by)))


def limit_text(kinds: Iterable[str]) -> str:
    """What the checks leave open; empty if the mailboxes were asked, or it is not known.

    >>> limit_text(["smtp", "mx"])
    'The domains were checked; the mailboxes were not asked: some will bounce.'
    """
    names = set(kinds)
    for kind, text in LIMITS.items():
        if kind in names:
            return text
    return ""


def people_text(counts: Counts) -> str:
    """How many different people can be mailed, and in how many rows."""
    people = count_of(counts.people, "person", "people")
    return f"{people} in {counts.actions['send']:,} of {count_of(counts.rows, 'row')}"


def meaning_of_actions(counts: Counts) -> dict[str, str]:
    """What each action means, and for which reasons rows of this result have it."""
    meanings = {}
    for action in ACTIONS:
        meanings[action] = ACTION_MEANING[action] + reasons_of_action(counts, action)
    return meanings


def decisive_word(alike: Alike) -> str | None:
    """What decides about the action: a typo, a flag ..., before the reason of the verdict."""
    if alike.cause in REASON_LABELS:
        return alike.cause
    reason = reason_of(alike)
    if reason is None:
        return None
    return reason[1]


def reasons_of_action(counts: Counts, action: str) -> str:
    """The most frequent reasons, each with its rows; of ``send`` the shared mailboxes."""
    if action == "send":
        shared = counts.number(lambda alike: alike.action == action and alike.role)
        if not shared:
            return ""
        return (
            f" Of these, {count_of(shared, 'row is', 'rows are')} shared mailboxes such as info@."
        )
    rows = Counter[str]()
    for alike, count in counts.alike.items():
        word = decisive_word(alike)
        if alike.action == action and word is not None:
            rows[word] += count
    words = most_common(rows)
    parts = [f"{reason_label(word)}: {count:,}" for word, count in words[:MAIN_REASONS]]
    others = sum(count for _, count in words[MAIN_REASONS:])
    if others:
        parts.append(f"Other reasons: {others:,}")
    if not parts:
        return ""
    return f" {'; '.join(parts)}."
