"""When two texts are one address: surrounding blanks and the case of the domain do not count."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# A domain that may change when lower-cased: anything after the last "@" that is not plainly lower case.
UPPER_DOMAIN = r"@[^@]*[^\x00-@\[-\x7f][^@]*$"


def identity(email: str) -> str:
    """The text by which an address is known: stripped, domain in lower case, local part as it is.

    >>> identity(" Ada.L@Example.ORG ")
    'Ada.L@example.org'
    """
    local, at, domain = email.strip().rpartition("@")
    return f"{local}{at}{lower_domain(domain)}" if at else domain


def lower_domain(domain: str) -> str:
    """A domain in lower case, letter by letter.

    `str.lower` turns a sigma at the end of a word into another letter, which IDNA 2008 tells apart.

    >>> lower_domain("ΝΈΟΣ.GR") == "νέοσ.gr"
    True
    """
    return domain.lower() if domain.isascii() else "".join(map(str.lower, domain))


def identities(emails: pa.StringArray) -> pa.StringArray:
    """The same for a column of stripped texts; only rows with something to lower are touched."""
    mask = pc.match_substring_regex(emails, UPPER_DOMAIN)
    touched = emails.filter(mask)
    if not len(touched):
        return emails
    lowered = pa.array([identity(email) for email in touched.to_pylist()], emails.type)
    return pc.replace_with_mask(emails, mask.fill_null(False), lowered)
