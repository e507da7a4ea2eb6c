"""The vocabulary: words of the contract with their texts, and types of arguments.

At the end, how messages write counts, shares, long lists and texts of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from ..theme import LABELS

# Texts that users give as arguments; a test holds them equal to the enumerations below.
ValidationTypeWord = Literal["regex", "mx", "mx_blacklist", "smtp"]
VerdictWord = Literal["valid", "risky", "invalid", "unknown"]
# Verdicts, and the status of technical failures.
RefreshWord = Literal["valid", "risky", "invalid", "unknown", "error"]
OnQuota = Literal["stop", "raise", "wait"]  # what a run does when the daily quota is used up
ScreenWord = Literal["mx"]  # which domains are checked locally before a service is asked
ColumnSet = Literal["short", "core", "all"]  # named sets of result columns


class ValidationType(StrEnum):
    """How deep a verification goes.

    Each type includes the checks of the types before it, except that `smtp` does not check
    blacklists.

    Examples
    --------
    >>> from mailverdict import ValidationType
    >>> [str(kind) for kind in ValidationType]
    ['regex', 'mx', 'mx_blacklist', 'smtp']
    """

    REGEX = "regex"
    MX = "mx"
    MX_BLACKLIST = "mx_blacklist"
    SMTP = "smtp"


NOT_ASKED = {  # what a verification that did not end as invalid leaves open
    ValidationType.REGEX: (
        "not asked: whether the domain can receive mail, and whether the mailbox exists"
    ),
    ValidationType.MX: "not asked: whether the mailbox exists",
    ValidationType.MX_BLACKLIST: "not asked: whether the mailbox exists",
}


class Verdict(StrEnum):
    """The outcome of verifying an address.

    Examples
    --------
    >>> from mailverdict import Verdict
    >>> [str(verdict) for verdict in Verdict]
    ['valid', 'risky', 'invalid', 'unknown']
    """

    VALID = "valid"
    RISKY = "risky"
    INVALID = "invalid"
    UNKNOWN = "unknown"


class Status(StrEnum):
    """Processing state of a row; a verdict exists only for `done`.

    Examples
    --------
    >>> from mailverdict import Status
    >>> [str(status) for status in Status]
    ['done', 'pending', 'error', 'missing']
    """

    DONE = "done"
    PENDING = "pending"
    ERROR = "error"
    MISSING = "missing"


class Reason(StrEnum):
    """Why a verdict is not `valid`; the order of the members is the order of precedence.

    Examples
    --------
    >>> from mailverdict import Reason
    >>> str(next(iter(Reason)))
    'syntax_error'
    """

    SYNTAX_ERROR = "syntax_error"
    NO_MX_RECORD = "no_mx_record"
    MAILBOX_NOT_FOUND = "mailbox_not_found"
    SPAMTRAP = "spamtrap"
    DISPOSABLE = "disposable"
    GREYLISTED = "greylisted"
    SENDER_BLOCKED = "sender_blocked"
    TIMEOUT = "timeout"
    CONNECTION_DROPPED = "connection_dropped"
    PORT_CLOSED = "port_closed"
    MAILBOX_FULL = "mailbox_full"
    NO_SMTP_DATA = "no_smtp_data"
    INCONCLUSIVE = "inconclusive"
    PROTECTED = "protected"
    THROTTLED = "throttled"
    RATE_LIMITED = "rate_limited"
    CATCH_ALL = "catch_all"
    ROLE = "role"


# The flags of an address, in the order in which they are shown: the first four from lists, the
# others from a session.
FLAGS = ("role", "disposable", "free", "spamtrap", "catch_all", "protected")


# The one text for each reason: in `error_message`, reports, `explain`, policies, the audit page and
# the documentation. It follows a verdict and a colon, so it begins in lower case and has no full
# stop.
REASON_MEANING: dict[str, str] = {
    Reason.SYNTAX_ERROR: "not a well-formed address",
    Reason.NO_MX_RECORD: "the domain does not exist or accepts no mail",
    Reason.MAILBOX_NOT_FOUND: (
        "the mail server reports that there is no such mailbox, or that it is closed"
    ),
    Reason.SPAMTRAP: "the domain is on the spamtrap list that was given",
    Reason.DISPOSABLE: "the domain is a provider of disposable addresses",
    Reason.GREYLISTED: "the mail server asks for a second attempt later (greylisting)",
    Reason.SENDER_BLOCKED: (
        "the mail server refuses the sender or the computer of the check, whatever the mailbox"
    ),
    Reason.TIMEOUT: "the mail server did not answer in time",
    Reason.CONNECTION_DROPPED: "the mail server closed the connection before it answered",
    Reason.PORT_CLOSED: "its mail server could not be reached",
    Reason.MAILBOX_FULL: "the mailbox exists but is full",
    Reason.NO_SMTP_DATA: "what answers there is not a mail server",
    Reason.INCONCLUSIVE: "no answer shows whether the mailbox exists",
    Reason.PROTECTED: (
        "the mail server refuses the computer that checked, for its IP address or reputation"
    ),
    Reason.THROTTLED: "the queue of the verification service was full; verify again later",
    Reason.RATE_LIMITED: "the verification service refused for its rate limit; verify again later",
    Reason.CATCH_ALL: "the mail server accepts every address of the domain (catch-all)",
    Reason.ROLE: "shared mailbox such as info@, which several people may read",
}


# Words of the column `why` that are not reasons: the contract has none for types without an SMTP
# session.
SEVERAL_ADDRESSES, BLACKLISTED, NO_ANSWER = "several_addresses", "blacklisted", "no_answer"
UNUSUAL_FORM = "unusual_form"
WHY_MEANING: dict[str, str] = {
    **REASON_MEANING,
    SEVERAL_ADDRESSES: "the cell holds several addresses; none of them was verified",
    UNUSUAL_FORM: "quoted dots or an underscore in the domain, about which services are not asked",
    BLACKLISTED: "a mail server of the domain is on a blacklist",
    NO_ANSWER: "the DNS or another server that was asked gave no answer",
    "SMTP": "the service says that the check of the mailbox failed, and not why",
}
# What the code of the first error means with a verdict, where there is no reason.
WHY_OF_ERROR: dict[tuple[str, str], str] = {
    ("REGEX", Verdict.INVALID): Reason.SYNTAX_ERROR,
    ("DNS", Verdict.INVALID): Reason.NO_MX_RECORD,
    ("DNS", Verdict.UNKNOWN): NO_ANSWER,
    ("BLACKLIST", Verdict.INVALID): BLACKLISTED,
    ("BLACKLIST", Verdict.UNKNOWN): NO_ANSWER,
    # Of services of the earlier revision, which has no reasons at all; why one calls a mailbox
    # invalid is not known.
    ("SMTP", Verdict.UNKNOWN): NO_ANSWER,
}

ACTIONS = ("send", "review", "retry", "drop", "unchecked")
# What a person decided about an address, whatever the policy.
DECISION_LABELS = {"send": "Send anyway", "remove": "Remove", "suggestion": "Use the suggestion"}
DECISIONS = tuple(DECISION_LABELS)
# What each action means for the rows, for people.
ACTION_MEANING = {
    "send": "Can be mailed now.",
    "review": "A person should look at them before they are mailed.",
    "retry": "No clear answer yet. Verify them again later.",
    "drop": "Take them off the list.",
    "unchecked": "Empty cells, rows that no check has reached yet, and technical errors.",
}


def why_of_error(code: str | None, verdict: str | None) -> str | None:
    """The word for a verdict without a reason; a code that only a service knows stays as it is.

    >>> why_of_error("DNS", "invalid"), why_of_error(None, "unknown"), why_of_error(None, "valid")
    ('no_mx_record', 'no_answer', None)
    """
    if verdict in (None, Verdict.VALID):
        return None
    word = WHY_OF_ERROR.get((str(code), str(verdict)), code)
    if word is None and verdict == Verdict.UNKNOWN:
        return NO_ANSWER
    return word and str(word)


# Short labels for tables and lists: of the words of `why`, some of which are flags, too, and of
# what else decides about a row.
REASON_LABELS: dict[str, str] = {
    Reason.SYNTAX_ERROR: "Not an address",
    Reason.NO_MX_RECORD: "Domain receives no mail",
    Reason.MAILBOX_NOT_FOUND: "Mailbox does not exist",
    Reason.SPAMTRAP: "On your spamtrap list",
    Reason.DISPOSABLE: "Disposable address",
    Reason.GREYLISTED: "Mail server asks to try again later",
    Reason.SENDER_BLOCKED: "Mail server refuses the sender of the check",
    Reason.TIMEOUT: "Mail server did not answer in time",
    Reason.CONNECTION_DROPPED: "Mail server closed the connection",
    Reason.PORT_CLOSED: "Mail server could not be reached",
    Reason.MAILBOX_FULL: "Mailbox is full",
    Reason.NO_SMTP_DATA: "No mail server answers there",
    Reason.INCONCLUSIVE: "No clear answer",
    Reason.PROTECTED: "Mail server refuses the computer that checked",
    Reason.THROTTLED: "Service was too busy",
    Reason.RATE_LIMITED: "Service refused so many at once",
    Reason.CATCH_ALL: "Domain accepts every address",
    Reason.ROLE: "Shared mailbox such as info@",
    SEVERAL_ADDRESSES: "Several addresses in a cell",
    UNUSUAL_FORM: "Unusual form of an address",
    BLACKLISTED: "Mail server on a blacklist",
    NO_ANSWER: "No answer to the check",
    "SMTP": "Check of the mailbox failed",
    "free": "Free mail provider",
    "suppressed": "On your suppression list, or says no",
    "duplicate": "Duplicate of another row",
    "typo": "Likely typo",
    "remark": "Remark in the cell",
    "placeholder": "Stands for a missing address",
    "decided": "Decided by hand",
    "waiting": "Suggestion to be checked",
}
LONGEST_LABEL = 48  # characters of a reason that only a service knows


def reason_label(word: str) -> str:
    """A reason, error code or state as a label; one that is not ours is cut.

    >>> reason_label("no_mx_record"), reason_label("missing"), reason_label("policy_block")
    ('Domain receives no mail', 'Empty cell', 'Policy block')
    """
    known = REASON_LABELS.get(word) or LABELS.get(word)
    return known or capitalize(printable_text(word.replace("_", " "), LONGEST_LABEL))


# The safe repairs of `mailverdict.REPAIRS` by name, and the typos that were accepted on the audit
# page.
REPAIR_LABELS = {
    "blanks": "Blanks and invisible characters",
    "html": "HTML around the address",
    "width": "Full-width characters",
    "at_sign": "“[at]” and “(dot)” written out",
    "list": "Lists with one text",
    "percent": "Percent codes such as %40",
    "escape": "Escape codes such as \\u003c",
    "link": "mailto: links",
    "label": "Labels such as “E-Mail:”",
    "unwrapped": "Names, quotes and brackets",
    "words": "Other words and numbers in the cell",
    "remark": "Remarks such as “do not contact”",
    "joined": "Blanks inside the domain or beside the @",
    "part": "Parts of a list that are not an address",
    "repeated": "The same address several times",
    "punctuation": "Commas, bullets and other punctuation",
    "unicode": "Accents in another form",
    "case": "Capital letters in the domain",
    "suggestion": "Likely typos that were accepted",
}
# Who answered, by the words of the column `source`; they follow a number.
SOURCE_MEANING = {
    "local": "checked by this computer",
    "remote": "checked by the service",
    "journal": "known from an earlier run",
}
# Why a row without a reason has its verdict, or why it has none.
STATE_MEANING = {
    "valid": "no problem found",
    "invalid": "cannot receive mail",
    "unknown": "the check gave no answer",
    "pending": "no check has reached the row yet",
    "error": "the verification failed for a technical reason",
    "missing": "the cell holds no address",
}
# The meaning of every word: of `why`, of states, and of what decides about the action of a row
# besides its verdict.
MEANING = {
    **WHY_MEANING,
    **STATE_MEANING,
    "free": "the domain is a provider of free mailboxes",
    "suppressed": "on your suppression list, or a column says no",
    "duplicate": "the same mailbox is in another row",
    "typo": "probably mistyped; a person should look at it",
    "remark": "the cell asks for no mail, or says that the address is out of use",
    "placeholder": "the address stands for a missing one; a person should look at it",
    "decided": "a person decided so, whatever the policy says",
    "waiting": "the suggested address was chosen by hand and is not verified yet",
}


def count_of(count: int, noun: str, plural: str | None = None) -> str:
    """A count with its unit.

    >>> count_of(1, "row"), count_of(1200, "address"), count_of(0, "entry"), count_of(2, "mailbox")
    ('1 row', '1,200 addresses', '0 entries', '2 mailboxes')
    """
    if count == 1:
        return f"1 {noun}"
    if plural is not None:
        return f"{count:,} {plural}"
    if noun.endswith("ry"):
        return f"{count:,} {noun[:-1]}ies"
    if noun.endswith(("s", "x")):
        return f"{count:,} {noun}es"
    return f"{count:,} {noun}s"


def percent(count: float, whole: float) -> str:
    """A share that is 0% or 100% only where it is exactly that.

    >>> percent(1, 3), percent(1, 100_000), percent(99_999, 100_000), percent(0, 0), percent(5, 5)
    ('33.3%', '<0.1%', '>99.9%', '0%', '100%')
    """
    if not whole or not count:
        return "0%"
    if count == whole:
        return "100%"
    share = count / whole
    if share < 0.001:
        return "<0.1%"
    if share > 0.999:
        return ">99.9%"
    return f"{share:.1%}"


def first_of(texts: Sequence[str], most: int) -> str:
    """The first of many texts, and how many more there are.

    >>> first_of(["a", "b"], 2), first_of(["a", "b", "c"], 2), first_of([], 2)
    ('a, b', 'a, b and 1 more', '')
    """
    shown = ", ".join(texts[:most])
    more = len(texts) - most
    if more > 0:
        return f"{shown} and {more:,} more"
    return shown


def capitalize(words: str) -> str:
    """The words with a capital letter at the beginning; all other letters stay."""
    return words[:1].upper() + words[1:]


def printable_text(text: str, limit: int = 500) -> str:
    r"""Shorten untrusted text and replace what could control a terminal.

    >>> printable_text("a\x1b[2Jb")
    'a?[2Jb'
    """
    characters = []
    for character in text[:limit]:
        characters.append(character if character.isprintable() else "?")
    return "".join(characters)


# Characters that turn the direction of the text after them (Unicode Standard Annex 9), such as in
# `invoice_fdp.exe`.
TURNING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
DIRECTIONS = {code: f"⟨U+{code:04X}⟩" for code in TURNING}


def show_directions(text: str) -> str:
    r"""Untrusted text in which characters that change the order of others are visible.

    >>> show_directions("spring\u202efdp.csv")
    'spring⟨U+202E⟩fdp.csv'
    """
    return text.translate(DIRECTIONS)


def escape_controls(text: str) -> str:
    r"""Untrusted text on one line; control characters are escaped for a terminal.

    >>> escape_controls("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    characters = []
    for character in text:
        if character.isprintable():
            characters.append(character)
        else:
            characters.append(character.encode("unicode_escape").decode())
    return "".join(characters)
