"""Domain names in the form that DNS messages use: limits, lower case, A-labels."""

from __future__ import annotations

import re

import idna

# Characters without the final dot; RFC 1035 section 2.3.4 allows 255 octets on the wire.
MAX_NAME = 253
MAX_LABEL = 63  # RFC 1035 section 2.3.4
# Printable ASCII except dot and backslash. Wider than host names, since aliases of reverse zones
# contain "/" (RFC 2317); narrower than the DNS allows, so that no control character is ever sent.
NAME = re.compile(r"(?:[!-\-/-\[\]-~]{1,63}\.)*[!-\-/-\[\]-~]{1,63}")


class InvalidNameError(ValueError):
    """The DNS cannot carry this name, so it cannot exist."""


def normal_name(name: str) -> str:
    """Return the name in lower-case A-labels without the final dot.

    InvalidNameError if the DNS cannot carry it; the message gives the cause and does not repeat the
    name.

    >>> normal_name("Bücher.Example.")
    'xn--bcher-kva.example'
    """
    check_length(name)  # first, since a cell may hold megabytes
    text = (name if name.isascii() else to_ascii(name)).removesuffix(".").lower()
    check_length(text)
    if not NAME.fullmatch(text):
        raise InvalidNameError(describe_fault(text))
    return text


def check_length(name: str) -> None:
    """Raise if the name is too long as a whole."""
    if len(name) > MAX_NAME and len(name.removesuffix(".")) > MAX_NAME:
        raise InvalidNameError(
            f"a domain name has at most {MAX_NAME} characters (RFC 1035), this has {len(name)}"
        )


def to_ascii(name: str) -> str:
    """Encode an internationalized name in A-labels (RFC 5891, with the mapping of UTS 46)."""
    try:
        return idna.encode(name, uts46=True).decode("ascii")
    except UnicodeError as exc:  # the base of idna.IDNAError, and what a lone surrogate raises
        raise InvalidNameError("the name cannot be written in A-labels (RFC 5891)") from exc


def describe_fault(name: str) -> str:
    """Describe what is wrong with a name that is not too long."""
    labels = name.split(".")
    longest = max(map(len, labels))
    if longest > MAX_LABEL:
        return (
            f"a label has at most {MAX_LABEL} characters (RFC 1035), one of this name has {longest}"
        )
    if "" in labels:
        return "the name has an empty label"
    return "the name contains a character that is not allowed in domain names"
