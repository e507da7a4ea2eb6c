"""From a reply to its classification: normalize the text, find the first rule that matches. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from ....model.words import Reason
from ..replies import Reply, find_enhanced_code
from .classification import Action, Classification
from .rules import RULES, Rule, SearchedReply
from .vocabulary import (
    CLIENT_OR_SENDER_WORDS,
    MAILBOX_FULL_WORDS,
    ReplyText,
    compile_pattern,
    find_letters,
    mask_recipient,
    normalize_text,
)

__all__ = ["catch_all_of", "classify", "classify_reply"]

PHASES = {
    **{phase: phase for phase in ("banner", "ehlo", "mail", "rcpt")},
    "greeting": "banner",
    "helo": "ehlo",
    "starttls": "ehlo",
    "mail_from": "mail",
    "rcpt_random": "rcpt",
    "data": "rcpt",  # never sent, but a server may name the recipient only there
}
ACCEPTED = Classification(None, "accepted")
PLAIN_OK = frozenset({250, 251, 252})
WAITABLE = frozenset({Reason.GREYLISTED, Reason.PROTECTED, Reason.INCONCLUSIVE, Reason.SENDER_BLOCKED})


def classify(reply: Reply, *, phase: str) -> Reason | None:
    """Return the reason of a refusal, or None if the reply accepts.

    >>> classify(Reply(550, "5.1.1", "User unknown"), phase="rcpt").value
    'mailbox_not_found'
    >>> classify(Reply(550, "5.7.1", "Client host blocked using zen.spamhaus.org"), phase="rcpt").value
    'protected'
    >>> classify(Reply(250, "2.1.5", "Ok"), phase="rcpt") is None
    True
    """
    return classify_reply(reply, phase=phase).reason


def classify_reply(reply: Reply, *, phase: str, recipient: str = "") -> Classification:
    """Classify a reply to one of ``PHASES``; only a reply to RCPT can give ``mailbox_not_found``.

    The recipient changes nothing but the speed: replies that differ only in it are normalized once.

    >>> classify_reply(Reply(451, "4.7.1", "Greylisted, try again in 300 seconds"), phase="rcpt").retry_after
    300.0
    """
    if phase not in PHASES:
        raise ValueError(f"phase={phase!r}: one of {', '.join(sorted(PHASES))}")
    if reply.code in PLAIN_OK:
        return ACCEPTED
    given = reply.enhanced_code
    enhanced = given if given and given[0] == str(reply.code)[0] else find_enhanced_code(reply.code, reply.text)
    return find_rule(PHASES[phase], reply.code, enhanced or "", normalize_text(mask_recipient(reply.text, recipient)))


@lru_cache(maxsize=1024)
def list_rules(phase: str, code: str, enhanced: str) -> tuple[Rule, ...]:
    """List the rules for a phase and codes; cached, since few combinations occur and each has few rules."""
    return tuple(rule for rule in RULES if rule.applies(phase, code, enhanced))


@lru_cache(maxsize=4096)
def find_rule(phase: str, code: int, enhanced: str, text: ReplyText) -> Classification:
    """Apply the first rule that matches; cached, since a server repeats its replies."""
    searched = SearchedReply(text)
    quoted = find_quoted(text) if phase == "rcpt" else None
    rule = next(
        rule
        for rule in list_rules(phase, str(code), enhanced)
        if (not rule.quoted or quoted is rule.reason) and rule.matches(searched)
    )
    wait = find_wait(text.masked) if rule.reason in WAITABLE and code < 500 else None
    return Classification(rule.reason, rule.name, rule.error_code, rule.action, wait or rule.retry_after)


QUOTED_REPLY = re.compile(
    r"(?:\b(?:said|says|was|respon\w+|repl\w+|answer\w*|return\w*|fail\w*|error)|\(xaddrx|\bhost \S+ xipx)"
    r"[ :\"']{1,3}(5\d\d)[ -]+(?:#?(5\.\d{1,3}\.\d{1,3})\b)?"
    r"|undeliverable address: (?!host|connect|lost|conversation)"
)
MAY_QUOTE = re.compile(r"5\d\d[ -]|undeliverable address")  # the first test, since most replies quote nothing
ANOTHER_CAUSE = rf"{CLIENT_OR_SENDER_WORDS}|{MAILBOX_FULL_WORDS}"


def find_quoted(text: ReplyText) -> Reason | None:
    """Find the reason of the permanent reply that the server quotes from the next server; None if there is none."""
    quotations = [*QUOTED_REPLY.finditer(text.masked)] if MAY_QUOTE.search(text.masked) else []
    if not quotations:
        return None
    match = quotations[-1]  # the innermost
    outer = compile_pattern(ANOTHER_CAUSE, find_letters(text.masked)).search(text.masked)
    if outer is not None and outer.start() < match.start():
        return None
    inner = text.masked[match.end() :]
    return find_rule("rcpt", int(match[1] or 550), match[2] or "", ReplyText(inner, inner)).reason


CATCH_ALL = {None: True, Reason.MAILBOX_NOT_FOUND: False}


def catch_all_of(classification: Classification) -> bool | None:
    """Whether a domain accepts every address, from the reply to a random local part; None: not established."""
    return CATCH_ALL.get(classification.reason) if classification.action is Action.NONE else None


CLOCK = re.compile(r"\b(\d{1,2}):([0-5]\d):([0-5]\d)\b")
WAIT = re.compile(
    r"\b(?:in|after|for|within|wait|least|dans|apres|en|tra|dopo|nach|em|retry|another|next)\b"
    r"(?: (?:a|about|further|at least|next|approximately|the))*:? ?(\d{1,5}) ?"
    r"(seconds?|secs?|secondes?|segundos?|secondi|sekunden|s|minutes?|mins?|minutos?|minuti|minuten|m"
    r"|hours?|heures?|horas?|ore|stunden|h)\b"
)
UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0, "o": 3600.0}
LONGEST_WAIT = 86400.0  # seconds


def find_wait(text: str) -> float | None:
    """Find the seconds that the server asks to wait.

    >>> find_wait("greylisting in action, please come back in 00:05:00")
    300.0
    """
    if match := WAIT.search(text):
        unit = "h" if match[2].startswith("stund") else match[2][0]
        return min(float(match[1]) * UNIT[unit], LONGEST_WAIT)
    if match := CLOCK.search(text):
        hours, minutes, seconds = (int(part) for part in match.groups())
        return hours * 3600.0 + minutes * 60.0 + seconds
    return None
