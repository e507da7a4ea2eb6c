"""Public suffixes: names under which anybody may have a name of his own.

They are a small list and the form ``com.br``.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from .files import find_list, read_entries

GENERIC_LABELS = frozenset({"ac", "com", "edu", "gov", "mil", "net", "org"})


@cache
def public_suffixes() -> frozenset[str]:
    """The packaged list, in lower-case A-labels."""
    return frozenset(read_entries(find_list("suffixes")))


def is_public_suffix(name: str, zones: Collection[str]) -> bool:
    """Whether `name` is a public suffix.

    That is a known one, a generic label below a country, or a top-level domain.
    """
    label, _, end = name.partition(".")
    return not end or name in zones or (len(end) == 2 and label in GENERIC_LABELS)


def registered_domain(host: str) -> str:
    """The domain that somebody registered: one label more than the public suffix.

    The name is in lower case without the final dot.

    >>> registered_domain("alt1.aspmx.l.google.com"), registered_domain("mx.firm.co.uk")
    ('google.com', 'firm.co.uk')
    >>> registered_domain("mx")
    'mx'
    """
    suffixes = public_suffixes()
    labels = host.split(".")
    for start in reversed(range(len(labels))):
        name = ".".join(labels[start:])
        if not is_public_suffix(name, suffixes):
            return name
    return host
