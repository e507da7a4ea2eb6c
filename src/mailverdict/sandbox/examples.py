"""Addresses to try in the sandbox, each with what becomes of it and why: one for every answer there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..model.words import Reason, Verdict
from ..verdicts import order_reasons, verdict_of
from .smtp_script import EXCHANGES

__all__ = ["ADDRESSES", "SPAMTRAP_DOMAIN", "Example"]

SPAMTRAP_DOMAIN = "trap.example"


@dataclass(frozen=True, slots=True)
class Example:
    """An address of the sandbox.

    Attributes
    ----------
    address : str
        To be verified with the type ``smtp``.
    verdict : str
        What comes out.
    reasons : str
        Joined by ``;``, as in the frame.
    why : str
        What it is here for.
    """

    address: str
    verdict: str
    reasons: str
    why: str


def example(address: str, why: str, *reasons: Reason) -> Example:
    """A row: the verdict follows from the reasons."""
    ordered = order_reasons(reasons)
    return Example(address, str(verdict_of(ordered)), ";".join(ordered), why)


NOT_FOUND, CATCH_ALL, ROLE = Reason.MAILBOX_NOT_FOUND, Reason.CATCH_ALL, Reason.ROLE

ORDINARY = (
    example("ada@gmail.com", "a mailbox at a large provider"),
    example("nobody@gmail.com", "and none", NOT_FOUND),
    example("full@gmail.com", "one that is over its quota: it exists, and mail comes back", Reason.MAILBOX_FULL),
    example("popular@gmail.com", "one that gets so much mail that the server slows it: it exists"),
    example("ada@yahoo.com", "the provider accepts every address", CATCH_ALL),
    example("info@fernhollow-studio.com", "a function, not a person", ROLE),
    example("ada@mailinator.com", "a throw-away provider", Reason.DISPOSABLE, CATCH_ALL),
    example("ada@ridgeline-surveyors.com", "a small firm whose one mailbox takes all", CATCH_ALL),
    example("ada@boulangerie-du-quai.fr", "greylisted at first, and asked again"),
    example("gone@boulangerie-du-quai.fr", "refused at once: greylisting is for those that exist", NOT_FOUND),
    example("ada@proton.me", "asked under TLS"),
    example(f"ada@{SPAMTRAP_DOMAIN}", "on the list of spamtraps that the world gives", Reason.SPAMTRAP),
    example("ada@", "not an address", Reason.SYNTAX_ERROR),
    example("ada@null.example", "a domain that takes no mail", Reason.NO_MX_RECORD),
    example("ada@gmial.com", "a slip: no such domain", Reason.NO_MX_RECORD),
    example("ada@servfail.example", "a domain whose name servers are broken", Reason.INCONCLUSIVE),
    example("ada@private.example", "an exchange at a private address, which is not contacted", Reason.PORT_CLOSED),
    example("ada@implicit.example", "a domain that is its own exchange"),
    example("info@tarpit.example", "a function that could not be asked: both reasons show", Reason.TIMEOUT, ROLE),
    example("zq7k2v9x@catch-all.example", "nobody, accepted all the same", CATCH_ALL),
)

# Where a run learns more than one session does.
BEYOND_ONE_SESSION: dict[str, tuple[Reason, ...]] = {
    "ada@catch-all.example": (CATCH_ALL,),
    "zq7k2v9x@catch-all.example": (CATCH_ALL,),
    "ada@greylisting.example": (),
    "ada@mute.example": (Reason.SENDER_BLOCKED,),
    "nobody@mute.example": (Reason.SENDER_BLOCKED,),
    "ada@tls-broken.example": (),
}


def scripted() -> Iterator[Example]:
    """What the table of exchanges expects."""
    for exchange in EXCHANGES:
        for local, reason in exchange.expects.items():
            address = f"{local}@{exchange.domain}"
            usual = () if reason is None else (reason,)
            yield example(address, exchange.why, *BEYOND_ONE_SESSION.get(address, usual))


ADDRESSES: tuple[Example, ...] = tuple({each.address: each for each in (*scripted(), *ORDINARY)}.values())
"""Every reason but `throttled` and `rate_limited`, which only a service's own queue and limiter give."""

assert {each.verdict for each in ADDRESSES} == set(map(str, Verdict))
