"""Syntax of one address: what email-validator accepts with its default options, and why not.

`column.py` does the same for a million, and sends here what its patterns cannot decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from email_validator import SPECIAL_USE_DOMAIN_NAMES, ValidatedEmail, validate_email

from ...model.evidence import SyntaxEvidence
from .faults import MAX_OCTETS, TOO_LONG, explain_foreign, search_faults

__all__ = [
    "DomainName",
    "explain_refusal",
    "normalize_domain",
    "normalize_local",
    "observe_address",
    "observe_plain",
    "observe_syntax",
]

SHORTEST_LOCAL, SHORTEST_DOMAIN = "a", "b.c"  # never the reason why an address is too long


@dataclass(frozen=True, slots=True)
class DomainName:
    """An accepted domain.

    Attributes
    ----------
    ascii : str
        Lower case, in A-labels: what the DNS and the lists know.
    display : str
        Lower case, in U-labels: what the normal form of an address has.
    """

    ascii: str
    display: str


def observe_syntax(text: str) -> SyntaxEvidence:
    """Check the syntax of one address.

    Quoted local parts, address literals, comments and domains without a dot are refused;
    internationalized domains and mailboxes are accepted. Never raises, whatever the text.

    Parameters
    ----------
    text : str
        The address, without surrounding blanks.

    Returns
    -------
    SyntaxEvidence
        The parts and the normal form, or why the address is refused.

    Examples
    --------
    >>> observe_syntax("Ada@BÜCHER.example").normalized
    'Ada@bücher.example'
    >>> observe_syntax("ada@web").message
    'There is no dot in the domain.'
    """
    found = accept(text)
    if found is None:
        return SyntaxEvidence(ok=False, message=explain_refusal(text))
    return SyntaxEvidence(ok=True, normalized=found.normalized, local=found.local_part, ascii_domain=found.ascii_domain)


def accept(text: str) -> ValidatedEmail | None:
    """Give what email-validator makes of `text`, or None if it refuses it."""
    # A character is at least an octet, so that 10 MB are refused without being looked at.
    if len(text) > MAX_OCTETS:
        return None
    try:
        # Spelled out, because the defaults are module globals of email-validator that other code may change.
        return validate_email(
            text,
            allow_smtputf8=True,
            allow_empty_local=False,
            allow_quoted_local=False,
            allow_domain_literal=False,
            allow_display_name=False,
            strict=False,  # local parts over 64 octets are in use (variable envelope return paths)
            globally_deliverable=True,
            test_environment=False,
            check_deliverability=False,
        )
    except ValueError:  # EmailNotValidError, or a UnicodeError of a codec on its way
        return None


def explain_refusal(text: str) -> str:
    """Say why a refused `text` is refused.

    Parameters
    ----------
    text : str
        A text that `observe_syntax` refuses.

    Returns
    -------
    str
        A sentence; it names no more of the text than one character.
    """
    if len(text) > MAX_OCTETS or len(text.encode("utf-8", "surrogatepass")) > MAX_OCTETS:
        return TOO_LONG
    known = search_faults(text)
    if known is not None:
        return known
    local, _, domain = text.partition("@")
    local_ok, domain_ok = normalize_local(local) is not None, normalize_domain(domain) is not None
    return explain_foreign(text, local_ok=local_ok, domain_ok=domain_ok)


def normalize_local(local: str) -> str | None:
    """Give the normal form of a local part on its own, or None if it is refused.

    >>> normalize_local("INFO"), normalize_local("Ada"), normalize_local("a..b")
    ('info', 'Ada', None)
    """
    found = accept(f"{local}@{SHORTEST_DOMAIN}")
    return found.local_part if found else None


def normalize_domain(domain: str) -> DomainName | None:
    """Give the two forms of a domain on its own, or None if it is refused.

    >>> normalize_domain("xn--bcher-kva.DE")
    DomainName(ascii='xn--bcher-kva.de', display='bücher.de')
    """
    found = accept(f"{SHORTEST_LOCAL}@{domain}")
    return DomainName(found.ascii_domain, found.domain) if found else None


# Lower case, so that the normal form is the text itself; labels of RFC 1035 section 2.3.1 and at most 63 octets.
LOCAL = r"[a-z0-9_+\-]+(?:\.[a-z0-9_+\-]+)*"
LABEL = r"[a-z0-9](?:[a-z0-9\-]{0,61}[a-z0-9])?"
PLAIN = re.compile(rf"({LOCAL})@((?:{LABEL}\.)+[a-z]{{2,63}})")
RESERVED = tuple(f".{name}" for name in SPECIAL_USE_DOMAIN_NAMES)


def observe_plain(text: str) -> SyntaxEvidence | None:
    """Accept an address of the plainest form, or leave it undecided.

    Parameters
    ----------
    text : str
        The address, without surrounding blanks.

    Returns
    -------
    SyntaxEvidence or None
        What `observe_syntax` says too; None: ask that.

    Examples
    --------
    >>> observe_plain("ada@example.org").ascii_domain
    'example.org'
    >>> observe_plain("Ada@example.org"), observe_plain("ada@web")
    (None, None)
    """
    found = PLAIN.fullmatch(text) if len(text) <= MAX_OCTETS else None
    if found is None:
        return None
    local, domain = found.groups()
    if "--" in domain or f".{domain}".endswith(RESERVED):
        return None
    return SyntaxEvidence(ok=True, normalized=text, local=local, ascii_domain=domain)


def observe_address(text: str) -> SyntaxEvidence:
    """Do as `observe_syntax`, at once where that is possible.

    Parameters
    ----------
    text : str
        The address, without surrounding blanks.

    Returns
    -------
    SyntaxEvidence
        The parts and the normal form, or why the address is refused.

    Examples
    --------
    >>> observe_address("Ada@BÜCHER.example").normalized
    'Ada@bücher.example'
    """
    return observe_plain(text) or observe_syntax(text)
