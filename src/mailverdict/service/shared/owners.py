"""Who owns the mail servers of a domain: what exclusive sessions and limits belong to."""

from __future__ import annotations

from collections.abc import Iterable

from ...backend import Backend
from ...checks.syntax.address import observe_syntax
from ...local.backend import LocalBackend

__all__ = ["find_owners", "organisation"]


def organisation(host: str) -> str:
    """The domain that a mail server's name belongs to, as a rule: what it shares with the servers beside it.

    A coarse rule is enough: all names of one exchange are one owner, and too large an owner only costs time.

    >>> organisation("alt1.aspmx.l.google.com"), organisation("mx.firm.co.uk"), organisation("mx")
    ('google.com', 'firm.co.uk', 'mx')
    """
    labels = host.rsplit(".", 3)[-3:]
    is_country = len(labels) == 3 and len(labels[2]) == 2 and len(labels[1]) <= 3
    return ".".join(labels if is_country else labels[-2:])


async def find_owners(backend: Backend, emails: Iterable[str]) -> dict[str, str | None]:
    """The owner of the preferred mail server of each address's domain; None if no mail server would be asked.

    A domain whose mail servers are not known, because its look-up failed or the backend does not use the DNS, is its
    own owner.
    """
    domains = {email: observe_syntax(email.strip()).ascii_domain for email in emails}
    found: dict[str, str | None] = {domain: domain or None for domain in domains.values()}
    if isinstance(backend, LocalBackend):
        names = [domain for domain in found if domain]
        await backend.domains.require_resolver()
        async for position, dns in backend.domains.observer.observe_domains(names):
            if dns.exchanges:
                found[names[position]] = organisation(dns.exchanges[0].host.lower().rstrip("."))
            elif dns.is_undeliverable:
                found[names[position]] = None
    return {email: found[domain] for email, domain in domains.items()}
