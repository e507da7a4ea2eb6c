"""When two texts are one address: by its key.

Three texts stand for an address:

    as written          Ada.L+shop@GMAIL.com
    canonical form      Ada.L+shop@gmail.com
    key                 Ada.L+shop@gmail.com
    mailbox             adal@gmail.com

Its *canonical* form (`canonical_form` in `checks.syntax.address`) is what `clean` gives and reports
show. Its *key* is one question to a server or service, and one address of a run and of a journal.
Its *mailbox* (`checks.lists.mailboxes`) is one person: in `duplicates`, `suppress` and `outcomes`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# A domain that may change when lower-cased: anything after the last "@" that is not plainly lower
# case.
UPPER_DOMAIN = r"@[^@]*[^\x00-@\[-\x7f][^@]*$"


def address_key(email: str) -> str:
    """The key of an address: stripped, domain in lower case, local part as it is.

    >>> address_key(" Ada.L@Example.ORG ")
    'Ada.L@example.org'
    """
    local, sign, domain = email.strip().rpartition("@")
    if not sign:
        return domain
    return f"{local}@{lower_domain(domain)}"


def folded_key(email: str) -> str:
    """The key in lower case: within one cell or mail, case makes no difference.

    >>> folded_key("Ada@Straße.de"), folded_key("ADA@STRASSE.DE")
    ('ada@straße.de', 'ada@strasse.de')
    """
    return address_key(email).lower()


def lower_domain(domain: str) -> str:
    """A domain in lower case, letter by letter.

    `str.lower` turns a sigma at the end of a word into another letter, which IDNA 2008 tells apart.

    >>> lower_domain("ΝΈΟΣ.GR") == "νέοσ.gr"
    True
    """
    if domain.isascii():
        return domain.lower()
    return "".join(map(str.lower, domain))


def address_keys(emails: pa.StringArray) -> pa.StringArray:
    """The keys of a column of stripped texts; only rows with something to lower are touched."""
    mask = pc.match_substring_regex(emails, UPPER_DOMAIN)
    touched = emails.filter(mask)
    if not len(touched):
        return emails
    lowered = pa.array([address_key(email) for email in touched.to_pylist()], emails.type)
    return pc.replace_with_mask(emails, mask.fill_null(False), lowered)
