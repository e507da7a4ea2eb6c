"""Addresses of the sandbox with their verdict by ``smtp``, one or more for each reason."""

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
        The address.
    verdict : str
        Its verdict by ``smtp``.
    reasons : str
        Joined by ``;``, as in the result columns.
    why : str
        What it shows.
    """

    address: str
    verdict: str
    reasons: str
    why: str


def example(address: str, why: str, *reasons: Reason) -> Example:
    """A row; the verdict follows from the reasons."""
    ordered = order_reasons(reasons)
    return Example(address, str(verdict_of(ordered)), ";".join(ordered), why)


NOT_FOUND, CATCH_ALL, ROLE = Reason.MAILBOX_NOT_FOUND, Reason.CATCH_ALL, Reason.ROLE

ORDINARY = (
    example("ada@gmail.com", "a mailbox at a large provider"),
    example("nobody@gmail.com", "no such mailbox at a large provider", NOT_FOUND),
    example("full@gmail.com", "over its quota: it exists, but mail bounces", Reason.MAILBOX_FULL),
    example("popular@gmail.com", "receives too much mail at the moment: it exists"),
    example("ada@yahoo.com", "the provider accepts every address", CATCH_ALL),
    example("info@fernhollow-studio.com", "a function, not a person", ROLE),
    example(
        "ada@mailinator.com", "a provider of disposable addresses", Reason.DISPOSABLE, CATCH_ALL
    ),
    example(
        "ada@ridgeline-surveyors.com",
        "a small company with one mailbox for all addresses",
        CATCH_ALL,
    ),
    example("ada@boulangerie-du-quai.fr", "greylisted first, accepted on the second attempt"),
    example(
        "gone@boulangerie-du-quai.fr",
        "refused at once: only existing mailboxes are greylisted",
        NOT_FOUND,
    ),
    example("ada@proton.me", "verified over TLS"),
    example(f"ada@{SPAMTRAP_DOMAIN}", "on the spamtrap list of the sandbox", Reason.SPAMTRAP),
    example("ada@", "not an address", Reason.SYNTAX_ERROR),
    example("ada@null.example", "a domain that accepts no mail", Reason.NO_MX_RECORD),
    example("ada@gmial.com", "a typo: no such domain", Reason.NO_MX_RECORD),
    example("ada@servfail.example", "a domain whose name servers are broken", Reason.INCONCLUSIVE),
    example(
        "ada@private.example",
        "a mail server at a private address: not contacted",
        Reason.PORT_CLOSED,
    ),
    example("ada@implicit.example", "a domain without MX: its address is used"),
    example(
        "info@tarpit.example",
        "a role address that could not be verified: both reasons",
        Reason.TIMEOUT,
        ROLE,
    ),
    example("zq7k2v9x@catch-all.example", "a random name, accepted as well", CATCH_ALL),
)

# Where a run finds out more than the single session that a script expects.
AFTER_A_RUN: dict[str, tuple[Reason, ...]] = {
    "ada@catch-all.example": (CATCH_ALL,),
    "zq7k2v9x@catch-all.example": (CATCH_ALL,),
    "ada@greylisting.example": (),
    "ada@mute.example": (Reason.SENDER_BLOCKED,),
    "nobody@mute.example": (Reason.SENDER_BLOCKED,),
    "ada@tls-broken.example": (),
}


def scripted() -> Iterator[Example]:
    """The addresses that the scripts of the exchanges name."""
    for exchange in EXCHANGES:
        for local, reason in exchange.expects.items():
            address = f"{local}@{exchange.domain}"
            usual = () if reason is None else (reason,)
            yield example(address, exchange.why, *AFTER_A_RUN.get(address, usual))


ADDRESSES: tuple[Example, ...] = tuple(
    {example.address: example for example in (*scripted(), *ORDINARY)}.values()
)
"""Every reason but `throttled` and `rate_limited`, which only a service gives."""

assert {example.verdict for example in ADDRESSES} == set(map(str, Verdict))
