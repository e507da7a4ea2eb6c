"""Syntax of one address: what email-validator accepts with its default options, and why not.

`column.py` does the same for a column, and uses this module for what its patterns cannot decide.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

from email_validator import SPECIAL_USE_DOMAIN_NAMES, ValidatedEmail, validate_email

from ...model.address import address_key
from ...model.evidence import SyntaxEvidence
from .faults import MAX_OCTETS, TOO_LONG, describe_non_ascii, describe_unsafe, search_faults

# Lower case, so that the normal form is the text itself; labels of RFC 1035 section 2.3.1 and at
# most 63 octets.
LOCAL = r"[a-z0-9_+\-]+(?:\.[a-z0-9_+\-]+)*"
LABEL = r"[a-z0-9](?:[a-z0-9\-]{0,61}[a-z0-9])?"
PLAIN = re.compile(rf"({LOCAL})@((?:{LABEL}\.)+[a-z]{{2,63}})")
# Every ASCII text that is accepted has this form; most texts that are refused do not (RFC 5322
# section 3.2.3).
# Both cases are written out: a pattern that ignores case takes half as long again.
ATOM = r"[A-Za-z0-9_!#$%&'*+\-/=?^`{|}~]+"
DOT_ATOM = re.compile(rf"{ATOM}(?:\.{ATOM})*")
ANY_LABEL = LABEL.replace("a-z", "A-Za-z")
POSSIBLE = re.compile(rf"{DOT_ATOM.pattern}@({ANY_LABEL}(?:\.{ANY_LABEL})+)")
# Letters and digits of any script are never unsafe; only the normal form is left to check.
ANY_ATOM = ATOM.replace("A-Za-z0-9_", r"\w")
ANY_DOT_ATOM = re.compile(rf"{ANY_ATOM}(?:\.{ANY_ATOM})*")
RESERVED = tuple(f".{name}" for name in SPECIAL_USE_DOMAIN_NAMES)
SHORTEST_LOCAL, SHORTEST_DOMAIN = "a", "b.c"  # never the reason why an address is too long


@dataclass(frozen=True, slots=True)
class DomainName:
    """An accepted domain, in lower case."""

    ascii: str  # in A-labels, as in the DNS and in lists
    display: str  # in U-labels, as in the normal form of an address


def observe_syntax(text: str) -> SyntaxEvidence:
    """Check the syntax of one address, without surrounding blanks; never raises.

    Quoted local parts, address literals, comments and domains without a dot are refused;
    internationalized domains and mailboxes are accepted.

    >>> observe_syntax("Ada@BÜCHER.example").normalized
    'Ada@bücher.example'
    >>> observe_syntax("ada@web").message
    'There is no dot in the domain.'
    """
    # Fast path for the plainest form: a microsecond instead of hundreds for the service's single
    # check.
    plain = PLAIN.fullmatch(text) if len(text) <= MAX_OCTETS else None
    if plain is not None:
        local, domain = plain.groups()
        if "--" not in domain and not f".{domain}".endswith(RESERVED):
            return SyntaxEvidence(ok=True, normalized=text, local=local, ascii_domain=domain)
    return observe_fully(text)


def is_well_formed(text: str) -> bool:
    """Whether the syntax check accepts a text; usual addresses are decided by patterns.

    >>> is_well_formed("Ada@Web.DE"), is_well_formed("ada@web")
    (True, False)
    """
    if len(text) > MAX_OCTETS:
        return False
    if text.isascii():
        possible = POSSIBLE.fullmatch(text)
        if possible is None:
            return False
        domain = possible[1].lower()
        if "--" not in domain:
            return domain[-1].isalpha() and not f".{domain}".endswith(RESERVED)
    else:
        local, _, domain = text.rpartition("@")
        if is_normal(local) and domain.isascii():
            return len(text.encode()) <= MAX_OCTETS and is_well_formed(f"{SHORTEST_LOCAL}@{domain}")
        name = normalize_domain(domain) if is_normal(local) else None
        # Not more in any form.
        if name is not None and len(f"{text}{name.ascii}{name.display}".encode()) <= MAX_OCTETS:
            return True
    return accept(text) is not None


def observe_fully(text: str) -> SyntaxEvidence:
    """Check the syntax of one address with email-validator."""
    accepted = accept(text)
    if accepted is None:
        return SyntaxEvidence(ok=False, message=describe_refusal(text))
    return SyntaxEvidence(
        ok=True,
        normalized=accepted.normalized,
        local=accepted.local_part,
        ascii_domain=accepted.ascii_domain,
    )


def accept(text: str) -> ValidatedEmail | None:
    """Return the result of email-validator, or None if it refuses `text`."""
    # A character is at least an octet, so 10 MB are refused without being read.
    if len(text) > MAX_OCTETS:
        return None
    try:
        # Explicit, because the defaults are module globals of email-validator that other code may
        # change.
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
    except ValueError:  # EmailNotValidError, or a UnicodeError of a codec that it calls
        return None


def describe_refusal(text: str) -> str:
    """Return the message for a refused text; it repeats at most one character of it."""
    if len(text) > MAX_OCTETS or len(text.encode("utf-8", "surrogatepass")) > MAX_OCTETS:
        return TOO_LONG
    known = search_faults(text)
    if known is not None:
        return known
    unsafe = describe_unsafe(text)
    if unsafe is not None:
        return unsafe
    local, _, domain = text.partition("@")
    local_ok = normalize_local(local) is not None
    domain_ok = normalize_domain(domain) is not None
    return describe_non_ascii(text, local_ok=local_ok, domain_ok=domain_ok)


def normalize_local(local: str) -> str | None:
    """Return the normal form of a local part on its own, or None if it is refused.

    >>> normalize_local("INFO"), normalize_local("Ada"), normalize_local("a..b")
    ('info', 'Ada', None)
    """
    if not local.isascii() and is_normal(local):
        return local
    accepted = accept(f"{local}@{SHORTEST_DOMAIN}")
    return accepted.local_part if accepted else None


def is_normal(local: str) -> bool:
    """Whether a local part is a dot-atom of letters and digits in normal form.

    They may be of any script; such a local part is accepted.
    """
    return ANY_DOT_ATOM.fullmatch(local) is not None and unicodedata.is_normalized("NFC", local)


@functools.lru_cache(maxsize=10_000)
def normalize_domain(domain: str) -> DomainName | None:
    """Return the two forms of a domain on its own, or None if it is refused.

    >>> normalize_domain("xn--bcher-kva.DE")
    DomainName(ascii='xn--bcher-kva.de', display='bücher.de')
    """
    accepted = accept(f"{SHORTEST_LOCAL}@{domain}")
    return DomainName(accepted.ascii_domain, accepted.domain) if accepted else None


def canonical_form(address: str, normalized: str | None = None) -> str:
    """The form of a well-formed address that `clean` gives.

    It is composed, with the domain in lower case and in its UTS 46 form.

    The case of the local part and A-labels are kept. `normalized` is its normal form, if known.

    >>> canonical_form("Ada@BÜCHER.example"), canonical_form("INFO@xn--bcher-kva.DE")
    ('Ada@bücher.example', 'INFO@xn--bcher-kva.de')
    """
    plain = address_key(address)
    if plain.isascii():
        return plain
    local, _, domain = plain.rpartition("@")
    if not domain.isascii():
        name = None if normalized else normalize_domain(domain)
        domain = name.display if name else (normalized or plain).rpartition("@")[2]
    return f"{unicodedata.normalize('NFC', local)}@{domain}"
