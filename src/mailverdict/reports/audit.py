"""`audit_host`: whether this machine may ask at all."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import SettingsError
from ..local.audit import PROBED_DOMAINS, audit_here
from ..local.backend import LocalBackend
from ..loop import run_sync
from ..model.audit import HostAudit

__all__ = ["audit_host"]


def audit_host(
    backend: LocalBackend | None = None, *, domains: Sequence[str] = PROBED_DOMAINS, address: str | None = None
) -> HostAudit:
    """Look whether mail servers will answer this host, before a column is asked about.

    Connects to port 25 of one exchange of each of `domains` and says EHLO and QUIT, nothing else;
    looks up the PTR record of our address and, where configured, our address on DNS lists.

    Parameters
    ----------
    backend : LocalBackend, optional
        Whose settings are used: `helo_name`, `resolver`, `blacklist.zones` and the rest.
    domains : sequence of str
        Whose exchanges are connected to; large ones that answer anyone.
    address : str, optional
        Our address as servers see it; found out from their replies where they tell it.

    Returns
    -------
    HostAudit
        Findings `port_25`, `ptr`, `helo` and `listed`; prints as text, shows as HTML.

    Raises
    ------
    SettingsError
        If `backend` is no local backend: a service asks from its own host.

    Examples
    --------
    >>> import mailverdict as mv
    >>> with mv.sandbox.World() as world:
    ...     audit = mv.audit_host(world.make_backend(smtp_port=9), domains=["gmail.com"])
    >>> audit.is_fit
    False
    """
    asked = backend or LocalBackend()
    if not isinstance(asked, LocalBackend):
        raise SettingsError(f"backend={asked!r}: only a local backend asks from this host")

    async def audit() -> HostAudit:
        try:
            return await audit_here(asked, domains, address)
        finally:
            await asked.aclose()

    return run_sync(audit())
