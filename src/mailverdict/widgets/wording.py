"""Words that only the audit page has: what a check does, times, messages. Labels that others show too are imported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..frames.policy import Policy
from ..model.words import ValidationType, Verdict, count_of, percent, reason_label
from ..reports.counts import Counts
from ..reports.facts import most_common
from ..reports.wording import decisive_word, meaning_of_actions
from ..theme import LABELS, MARK_OF, MARKS
from .source import readable

if TYPE_CHECKING:
    from .listing import Listing

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
# What a policy does, for a check of mailboxes and for any other: only the first has reasons such as a shared mailbox.
POLICY_LABELS = {
    "balanced": (
        "Balanced: review what is in doubt",
        "Balanced: review likely typos, remove disposable addresses",
    ),
    "strict": ("Strict: send valid persons only", "Strict: review shared mailboxes, too"),
    "lenient": ("Lenient: send shared mailboxes, too", "Lenient: do not review likely typos"),
}
MAX_MOVES = 3
# Verdicts, and the states of rows without one.
VERDICT_LABELS = {
    name: LABELS[name] for name in (*map(str, Verdict), "error", "pending", "missing")
}


def marks() -> dict[str, dict[str, str]]:
    """The shapes of verdicts, actions and states."""
    return {
        name: {"shape": MARKS[mark].shape, "sign": MARKS[mark].sign}
        for name, mark in MARK_OF.items()
    }


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


def describe_headline(counts: Counts) -> dict[str, str]:
    """The figure that the result is about: the different people who can be mailed, and how many rows that is."""
    sent, who = counts.actions["send"], "person" if counts.people == 1 else "people"
    share = percent(sent, counts.rows)
    text = f"{who} can be mailed, in {sent:,} of {count_of(counts.rows, 'row')} ({share})"
    return {"headline": f"{counts.people:,}", "headline_text": text}


def describe_actions(counts: Counts) -> list[dict[str, Any]]:
    """Each action with its rows, and what it means for this result."""
    meanings = meaning_of_actions(counts)
    return [
        {
            "id": name,
            "label": LABELS[name],
            "means": meanings[name],
            "count": count_of(count, "row"),
            "empty": not count,
        }
        for name, count in counts.actions.items()
    ]


def describe_policies(listing: Listing, policies: Mapping[str, Policy]) -> list[dict[str, str]]:
    """What each policy does with this result, and what would change against the policy that is chosen."""
    has_mailboxes = ValidationType.SMTP in listing.counts.validation_types
    described = []
    for name, policy in policies.items():
        kinds, counts = listing.judge(policy)
        moves = Counter[tuple[str, str, str]]()
        for before, after in zip(listing.kinds, kinds, strict=True):
            if before.action != after.action:
                reason = decisive_word(before) or decisive_word(after) or ""
                moves[str(before.action), str(after.action), reason] += counts.alike[after]
        label = POLICY_LABELS[name][not has_mailboxes] if name in POLICY_LABELS else readable(name)
        text = " ".join(
            filter(
                None,
                (policy_figures(counts), "" if policy == listing.policy else moves_text(moves)),
            )
        )
        described.append({"id": name, "label": label, "text": text})
    return described


def policy_figures(counts: Counts) -> str:
    """What a policy does with the rows."""
    sent = count_of(counts.actions["send"], "row")
    parts = [f"{LABELS['send']}: {count_of(counts.people, 'person', 'people')} ({sent})"]
    parts += [
        f"{LABELS[name]}: {count:,}"
        for name, count in counts.actions.items()
        if count and name != "send"
    ]
    return f"{' · '.join(parts)}."


def moves_text(moves: Counter[tuple[str, str, str]]) -> str:
    """Which rows get another action than now."""
    if not moves:
        return "The same as now for this list."
    named = [
        f"{count_of(count, 'row')} from “{LABELS[before]}” to “{LABELS[after]}” ({reason_label(reason) or 'Valid'})"
        for (before, after, reason), count in most_common(moves)
    ]
    left = len(named) - MAX_MOVES
    others = f" and {count_of(left, 'other group')}" if left > 0 else ""
    return f"Moves {', '.join(named[:MAX_MOVES])}{others}."
