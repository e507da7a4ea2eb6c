"""The exchanges of the sandbox's realistic domains: who has a mailbox there, and how they treat strangers.

They are modelled on habits that large and small providers are known for; nothing here says anything about
the real ones whose names the domains bear.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from .smtp_script import Exchange
from .zones import EXCHANGES as ADDRESSES

__all__ = ["PROVIDER_EXCHANGES", "People"]

# Words of letters, perhaps a number behind: what people and offices are called, and no random probe is.
NAME = re.compile(r"[^\W\d_]{1,11}(?:[._+-][^\W_]{1,14})*\d{0,4}")
ALWAYS = frozenset({"ada", "grace", "info", "postmaster"})
NEVER = frozenset({"nobody", "gone"})
UNKNOWN_IN_256 = 20  # about 8 %

GMAIL_LIKE = (
    "550-5.1.1 The email account that you tried to reach does not exist. Please try\r\n"
    "550-5.1.1 double-checking the recipient's email address for typos or\r\n"
    "550 5.1.1 unnecessary spaces."
)
POSTFIX_LIKE = "550 5.1.1 <{address}>: Recipient address rejected: User unknown in virtual mailbox table"
EXCHANGE_LIKE = "550 5.4.1 Recipient address rejected: Access denied. [{host}]"
FULL = "452 4.2.2 The email account that you tried to reach is over quota"
RATE = "450 4.2.1 The user you are trying to contact is receiving mail at a rate that prevents delivery"


GREETS_US = "\r\n250".join(
    ("250-{host} at your service, [{client}]", "-SIZE 157286400", "-ENHANCEDSTATUSCODES", "-SMTPUTF8", " PIPELINING")
)


class People:
    """Whoever has a mailbox at a provider: anyone with a plausible name, but for about one in twelve.

    Parameters
    ----------
    provider : str
        The same name may be taken here and free there.

    Examples
    --------
    >>> "ada" in People("bigmail"), "nobody" in People("bigmail"), "x7k2v9q4m1z8r5t0" in People("bigmail")
    (True, False, False)
    """

    def __init__(self, provider: str) -> None:
        self.provider = provider

    def __contains__(self, local: object) -> bool:
        name = str(local).lower().partition("+")[0]
        if name in ALWAYS or name in NEVER:
            return name in ALWAYS
        drawn = hashlib.sha256(f"{name}@{self.provider}".encode()).digest()[0]
        return bool(NAME.fullmatch(name)) and drawn >= UNKNOWN_IN_256


def farm(provider: str, why: str, *labels: str, **habits: Any) -> tuple[Exchange, ...]:
    """The exchanges of one provider: the same people and habits on each."""
    habits = {"mailboxes": People(provider), **habits}
    hosts = [f"{label}.{provider}.example" for label in labels or ("mx1",)]
    return tuple(Exchange(host, why, address=ADDRESSES[host], **habits) for host in hosts)


PROVIDER_EXCHANGES: tuple[Exchange, ...] = (
    *farm(
        "bigmail",
        "refuses unknown users, and takes one domain a transaction",
        "mx1",
        "mx2",
        unknown=GMAIL_LIKE,
        ehlo=GREETS_US,
        one_domain=True,
        smtputf8=True,
        special={"full": FULL, "popular": RATE},
    ),
    *farm("skymail", "takes ten recipients a transaction", "mx1", "mx2", unknown=EXCHANGE_LIKE, max_recipients=10),
    *farm("orchardmail", "refuses unknown users", special={"full": "552 5.2.2 <{address}>: user is over quota"}),
    *farm("oldmail", "accepts every address, and would tell later", mailboxes=None),
    *farm("regionalmail", "punishes refusals as a default Postfix does", "mx1", "mx2", slow_after=10, cut_after=20),
    *farm("privatemail", "offers STARTTLS", starttls="offered", smtputf8=True),
    *farm("throwaway", "accepts whatever anyone makes up", mailboxes=None),
    *farm("hosting-one", "greylists strangers", "mx1", "mx2", greylist=1.0),
    *farm("hosting-two", "one mailbox takes all", mailboxes=None),
    *farm("office-suite", "knows no PIPELINING", "mx1", "mx2", extensions=("SIZE 37748736", "8BITMIME")),
    *farm("cases", "the exchange of domains that are there for their DNS", "mx1", "mx2", "mx3", unknown=POSTFIX_LIKE),
    Exchange("mx.listed.example", "on a DNS list itself", address=ADDRESSES["mx.listed.example"]),
    Exchange("mx.pool.example", "on a list of dial-up pools", address=ADDRESSES["mx.pool.example"]),
    Exchange("mx.refusing-list.example", "asked about in vain", address=ADDRESSES["mx.refusing-list.example"]),
    Exchange("implicit.example", "a host that is its own exchange", address="127.0.30.9"),
)
