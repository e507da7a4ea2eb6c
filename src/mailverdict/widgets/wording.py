"""Words that only the audit page has: what a check does, times, messages.

Labels that others show too are imported. Titles of the steps and the texts of fixed buttons are in
`static/`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..errors import ResolverError, TransportError
from ..frames.policy import Policy
from ..model.words import (
    SEVERAL_ADDRESSES,
    ValidationType,
    Verdict,
    capitalize,
    count_of,
    percent,
    reason_label,
)
from ..reports.counts import Counts
from ..reports.facts import most_common
from ..reports.wording import decisive_word, meaning_of_actions
from ..theme import LABELS, MARK_OF, MARKS
from .source import readable

if TYPE_CHECKING:
    from ..frames.alike import Alike
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
# What is not known of those who may be mailed.
LIMITS: dict[str, str] = {
    ValidationType.REGEX: "form checked; domains and mailboxes not asked: expect bounces",
    ValidationType.MX: "domain checked; mailboxes not asked: some will bounce",
    ValidationType.MX_BLACKLIST: (
        "domain checked, on no blacklist; mailboxes not asked: some will bounce"
    ),
    ValidationType.SMTP: "",
}
# What a policy does, for a check of mailboxes and for any other: only the first has reasons such as
# a shared mailbox.
POLICY_LABELS = {
    "balanced": (
        "Balanced: review what is in doubt",
        "Balanced: review likely typos, remove disposable addresses",
    ),
    "strict": ("Strict: send valid persons only", "Strict: review shared mailboxes, too"),
    "lenient": ("Lenient: send shared mailboxes, too", "Lenient: do not review likely typos"),
}
# How an error begins that names a request: ``GET https://x.example/quota: no connection: ...``.
REQUEST = re.compile(r"[A-Z]+ (?P<service>https?://[^/\s]+)")
MAX_MOVES = 3
# Switches of the step "Tidy" besides the repairs.
SWITCH_LABELS = {
    "split": "Several addresses in a cell",
    "merge": "Duplicates",
    "suppress": "On your suppression list",
}
# What is decided by hand.
DECISION_LABELS = {
    "send": "Send anyway",
    "remove": "Remove",
    "suggestion": "Use the suggestion",
}
# Verdicts, and the states of rows without one.
VERDICT_LABELS = {
    **{name: LABELS[name] for name in (*map(str, Verdict), "error", "missing")},
    "pending": "Not checked",
    SEVERAL_ADDRESSES: LABELS[SEVERAL_ADDRESSES],
}
# The same for all rows of a result: those that are removed anyway are never checked.
PENDING_LABELS = {True: "Not checked yet", False: "Removed unchecked"}


def marks() -> dict[str, dict[str, str]]:
    """The shapes of verdicts, actions and states."""
    shapes = {}
    for name, mark in MARK_OF.items():
        shapes[name] = {"shape": MARKS[mark].shape, "sign": MARKS[mark].sign}
    return shapes


def policy_name(name: str) -> str:
    """The name of a policy as the page shows it.

    >>> policy_name("strict"), policy_name("mine")
    ('Strict', 'mine')
    """
    if name in POLICY_LABELS:
        return POLICY_LABELS[name][0].partition(":")[0]
    return readable(name)


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
    words = ["about"]
    if hours:
        words.append(count_of(hours, "hour"))
    if minutes:
        words.append(count_of(minutes, "minute"))
    return " ".join(words)


def date_text(moment: datetime) -> str:
    """A date and time in UTC.

    >>> date_text(datetime(2026, 3, 5, 14, 7, tzinfo=UTC))
    '5 March 2026, 14:07 UTC'
    """
    in_utc = moment.astimezone(UTC)
    return f"{in_utc.day} {in_utc:%B %Y, %H:%M} UTC"


def sentence(message: str) -> str:
    """A message as a sentence, so that messages can be joined; a file name at its beginning stays.

    >>> sentence("this failed"), sentence("list.csv is empty")
    ('This failed.', 'list.csv is empty.')
    """
    first, _, _ = message.partition(" ")
    if first.isalpha():
        message = capitalize(message)
    if message.endswith((".", "!", "?", "…")):
        return message
    return f"{message}."


def mailed_words(depth: str) -> str:
    """How sure it is that the people of a result can be mailed, by how deep it was checked."""
    return "can be mailed" if depth == ValidationType.SMTP else "may be mailed"


def describe_headline(counts: Counts, depth: str) -> dict[str, str]:
    """The figure that the result is about, what is not known about it, and its rows."""
    sent = counts.actions["send"]
    who = "person" if counts.people == 1 else "people"
    share = percent(sent, counts.rows)
    return {
        "headline": f"{counts.people:,}",
        "headline_text": f"{who} {mailed_words(depth)}",
        "headline_limits": LIMITS[depth],
        "headline_rows": f"in {sent:,} of {count_of(counts.rows, 'row')} ({share})",
    }


def plain_words(error: Exception) -> str:
    """An error as a sentence for a person who did not write the program.

    >>> plain_words(ResolverError("192.0.2.1:53 gave no answer. Use LocalBackend(resolver=...)"))
    'This computer has no connection to the internet, or its network does not let it look up
    domains.'
    >>> plain_words(ResolverError("192.0.2.1:53 gives no MX records for gmail.com, which is false"))
    'This network gives false answers about domains, as one does that asks for a login first.'
    >>> plain_words(TransportError("GET https://x.example/quota: no connection: refused"))
    'The verification service at https://x.example does not answer.'
    >>> plain_words(TransportError("GET https://x.example/quota: TLS failed: certificate expired"))
    'The connection to the verification service at https://x.example is not secure: certificate
    expired.'
    """
    if isinstance(error, ResolverError):
        return plain_notice(str(error), always=True)
    if isinstance(error, TransportError):
        request = REQUEST.match(str(error))
        if request is None:
            return "The verification service does not answer."
        service = f"the verification service at {request['service']}"
        _, is_insecure, cause = str(error).partition("TLS failed: ")
        if is_insecure:
            return sentence(f"The connection to {service} is not secure: {cause}")
        return sentence(f"{service} does not answer")
    return sentence(str(error))


def plain_notice(notice: str, *, always: bool = False) -> str:
    """What is wrong with the resolver, without the settings of a program.

    Other notices stay as they are.
    """
    if "which is false" in notice:
        return (
            "This network gives false answers about domains,"
            " as one does that asks for a login first."
        )
    if always or "LocalBackend(" in notice or "audit_host()" in notice:
        return (
            "This computer has no connection to the internet, or its network does not let it look "
            "up domains."
        )
    return sentence(notice)


def describe_actions(counts: Counts) -> list[dict[str, Any]]:
    """Each action with its rows, and what it means for this result."""
    meanings = meaning_of_actions(counts)
    parts = []
    for name, count in counts.actions.items():
        part = {
            "id": name,
            "label": LABELS[name],
            "means": meanings[name],
            "count": count_of(count, "row"),
            "empty": not count,
        }
        parts.append(part)
    return parts


def describe_policies(listing: Listing, policies: Mapping[str, Policy]) -> list[dict[str, str]]:
    """What each policy does with this result, and what would change against the chosen one."""
    has_mailboxes = ValidationType.SMTP in listing.counts.validation_types
    described = []
    for name, policy in policies.items():
        label = readable(name)
        if name in POLICY_LABELS:
            of_mailboxes, of_others = POLICY_LABELS[name]
            label = of_mailboxes if has_mailboxes else of_others
        kinds, counts = listing.judge(policy)
        text = policy_figures(counts)
        if policy != listing.policy:
            text += f" {moves_text(count_moves(listing, kinds.alike, counts))}"
        described.append({"id": name, "label": label, "text": text})
    return described


def count_moves(
    listing: Listing, kinds: Sequence[Alike], counts: Counts
) -> Counter[tuple[str, str, str]]:
    """How many rows get another action than now, by both actions and the reason."""
    moves = Counter[tuple[str, str, str]]()
    for before, after in zip(listing.kinds.alike, kinds, strict=True):
        if before.action == after.action:
            continue
        reason = decisive_word(before) or decisive_word(after) or ""
        moves[str(before.action), str(after.action), reason] += counts.alike[after]
    return moves


def policy_figures(counts: Counts) -> str:
    """What a policy does with the rows."""
    sent = count_of(counts.actions["send"], "row")
    parts = [f"{LABELS['send']}: {count_of(counts.people, 'person', 'people')} ({sent})"]
    for name, count in counts.actions.items():
        if count and name != "send":
            parts.append(f"{LABELS[name]}: {count:,}")
    return f"{' · '.join(parts)}."


def moves_text(moves: Counter[tuple[str, str, str]]) -> str:
    """Which rows get another action than now."""
    if not moves:
        return "The same as now for this list."
    named = []
    for (before, after, reason), count in most_common(moves):
        why = reason_label(reason) or "Valid"
        rows = count_of(count, "row")
        named.append(f"{rows} from “{LABELS[before]}” to “{LABELS[after]}” ({why})")
    left = len(named) - MAX_MOVES
    others = ""
    if left > 0:
        others = f" and {count_of(left, 'other group')}"
    return f"Moves {', '.join(named[:MAX_MOVES])}{others}."
