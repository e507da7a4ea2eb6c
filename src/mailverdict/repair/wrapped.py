"""Addresses that wrap another one, in a format that names the address inside exactly.

Forwarders, mailing lists and directories write the address of a person into one of their own. Such
an address is well-formed and may even receive mail for a while, but the person is at the one
inside. `unwrap_address` gives it; it is only ever suggested.

    SRS0=HHH=TT=firm.com=ada@forwarder.net            ada@firm.com
    ada_firm.com#EXT#@tenant.onmicrosoft.com          ada@firm.com

`WRAPPERS` holds the formats. Each pattern has the groups `local` and `domain` of the address
inside, or `coded`, its text in the form of `IMCEA`. A format that leaves a choice is not there.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..checks.syntax.address import canonical_form, is_well_formed

DOMAIN = r"(?P<domain>[^@=_]+\.[^@=_.]+)"
LOCAL = r"(?P<local>[^@]+)"
MAX_DEPTH = 3  # one forwarder behind another


class Wrapper(NamedTuple):
    """One format."""

    name: str
    pattern: re.Pattern[str]
    source: str


def wrapper(name: str, pattern: str, source: str) -> Wrapper:
    return Wrapper(name, re.compile(pattern, re.IGNORECASE | re.ASCII), source)


WRAPPERS = (
    wrapper(
        "Sender Rewriting Scheme",
        rf"SRS0[=+\-][^=@]+=[A-Z2-7]{{2}}={DOMAIN}={LOCAL}@[^@]+",
        "https://www.libsrs2.net/srs/srs.pdf",
    ),
    wrapper(
        "Sender Rewriting Scheme, a second forwarder",
        rf"SRS1[=+\-][^=@]+=[^=@]+=[=+\-][^=@]+=[A-Z2-7]{{2}}={DOMAIN}={LOCAL}@[^@]+",
        "https://www.libsrs2.net/srs/srs.pdf",
    ),
    wrapper(
        "guest of a Microsoft Entra tenant",
        rf"{LOCAL}_{DOMAIN}#EXT#@[^@]+",
        "https://learn.microsoft.com/entra/external-id/user-properties",
    ),
    wrapper(
        "Bounce Address Tag Validation",
        r"prvs=[0-9A-F]{9,12}=(?P<local>[^@=]+)@(?P<domain>[^@]+)",
        "https://datatracker.ietf.org/doc/html/draft-levine-smtp-batv-01",
    ),
    wrapper(
        "Bounce Address Tag Validation, the tag behind",
        r"prvs=(?P<local>[^@=]+)[=/][0-9]{4}[0-9A-F]{6}@(?P<domain>[^@]+)",
        "https://datatracker.ietf.org/doc/html/draft-levine-mass-batv-00",
    ),
    wrapper(
        "Bounce Address Tag Validation of Barracuda",
        r"btv1==[0-9A-F]{8,14}==(?P<local>[^@=]+)@(?P<domain>[^@]+)",
        "https://campus.barracuda.com/product/emailsecuritygateway/doc/3866657/",
    ),
    wrapper(
        "an address that Exchange encapsulated",
        r"IMCEA(?:SMTP|MAILTO|INVALID)-(?P<coded>[^@]+)@[^@]+",
        "https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxcmail/",
    ),
    wrapper(
        "a directory name of Exchange that ends in an address",
        r"IMCEAEX-_O=[^@]+_cn=(?P<coded>[^@_=]*\+40[^@=]*)@[^@]+",
        "https://learn.microsoft.com/openspecs/exchange_server_protocols/ms-oxcmail/",
    ),
    wrapper(
        "bounces of a Mailman list",
        rf"[^@+=]+-bounces\+(?P<local>[^@=]+)={DOMAIN}@[^@]+",
        "https://docs.mailman3.org/projects/mailman/en/latest/src/mailman/docs/verp.html",
    ),
    wrapper(
        "bounces of an ezmlm list",
        rf"[^@=]+-return-[0-9]+-(?P<local>[^@=]+)={DOMAIN}@[^@]+",
        "https://cr.yp.to/proto/verp.txt",
    ),
    wrapper(
        "bounces of SendGrid",
        rf"bounces\+[0-9]+-[0-9A-F]{{4}}-(?P<local>[^@=]+)={DOMAIN}@[^@]+",
        "https://www.twilio.com/docs/sendgrid",
    ),
    wrapper(
        "bounces of Mailgun",
        rf"bounce\+[0-9A-F]{{6}}\.[0-9A-F]+-(?P<local>[^@=]+)={DOMAIN}@[^@]+",
        "https://documentation.mailgun.com/",
    ),
)  # fmt: skip
# In each address that wraps another one; few others have it.
SIGN_OF_WRAPPER = re.compile(r"[=#]|^(?i:imcea|xn--)")
HEX_OF_IMCEA = re.compile(r"\+([0-9A-F]{2})", re.IGNORECASE)


def unwrap_address(address: str) -> str | None:
    """The address inside a well-formed one; None if it wraps none.

    >>> unwrap_address("SRS0=HHH=TT=firm.com=ada@forwarder.net")
    'ada@firm.com'
    >>> unwrap_address("IMCEASMTP-ada+40firm+2Ecom@exchange.net"), unwrap_address("ada@firm.com")
    ('ada@firm.com', None)
    >>> unwrap_address("xn--info@wr-projekt-dtb.de")
    'info@öwr-projekt.de'
    """
    if not SIGN_OF_WRAPPER.search(address):
        return None
    inner = address
    for _ in range(MAX_DEPTH):
        further = unwrap_once(inner)
        if further is None or not is_well_formed(further):
            break
        inner = further
    return canonical_form(inner) if inner != address else None


def unwrap_once(address: str) -> str | None:
    for _, pattern, _ in WRAPPERS:
        found = pattern.fullmatch(address)
        if found is None:
            continue
        names = found.groupdict()
        if "coded" in names:
            return HEX_OF_IMCEA.sub(lambda code: chr(int(code[1], 16)), names["coded"])
        return f"{names['local']}@{names['domain']}"
    return decode_whole(address)


def decode_whole(address: str) -> str | None:
    """The address whose whole text was in punycode, so that the at sign is in a label."""
    label, dot, rest = address.partition(".")
    if "@" not in label or not label.lower().startswith("xn--") or not label.isascii():
        return None
    try:
        decoded = label[4:].encode().decode("punycode")
        is_same = decoded.encode("punycode").decode() == label[4:]
    except UnicodeError:
        return None
    if not is_same or decoded.isascii() or decoded.count("@") != 1:
        return None
    return f"{decoded}{dot}{rest}"
