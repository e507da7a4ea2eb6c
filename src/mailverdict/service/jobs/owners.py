"""Who owns the mail servers of a domain: what exclusive sessions and limits belong to."""

from __future__ import annotations

from collections.abc import Iterable

from ...backend import Backend
from ...checks.lists.suffixes import registered_domain
from ...checks.syntax.address import observe_syntax
from ...local.backend import LocalBackend


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
                found[names[position]] = registered_domain(
                    dns.exchanges[0].host.lower().rstrip(".")
                )
            elif dns.is_undeliverable:
                found[names[position]] = None
    return {email: found[domain] for email, domain in domains.items()}
