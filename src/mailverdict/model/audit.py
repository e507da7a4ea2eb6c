"""Whether a host is fit to ask mail servers: the value behind `mailverdict.audit_host`."""

from __future__ import annotations

import html
from dataclasses import dataclass

__all__ = ["Finding", "HostAudit"]

MARK = {True: "ok", False: "problem", None: "not established"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One question about this host.

    Attributes
    ----------
    name : str
        ``port_25``, ``ptr``, ``helo`` or ``listed``.
    ok : bool or None
        None: could not be established.
    seen : str
        What was seen, and what to do about it.
    """

    name: str
    ok: bool | None
    seen: str


@dataclass(frozen=True, slots=True)
class HostAudit:
    """Whether this host may expect answers from mail servers.

    Attributes
    ----------
    address : str or None
        The address that mail servers see; None where it could not be found out.
    helo_name : str
        The name that would be given in EHLO.
    findings : tuple of Finding
        One per question.

    Examples
    --------
    >>> from mailverdict.model.audit import Finding, HostAudit
    >>> HostAudit(None, "client.example", (Finding("port_25", False, "refused"),)).is_fit
    False
    """

    address: str | None
    helo_name: str
    findings: tuple[Finding, ...]

    @property
    def is_fit(self) -> bool:
        """Whether nothing was found against it."""
        return all(finding.ok is not False for finding in self.findings)

    def __str__(self) -> str:
        """A few lines for a terminal."""
        head = f"this host ({self.address or 'address not established'}, HELO {self.helo_name}) "
        lines = [f"  {f.name:<8} {MARK[f.ok]}: {f.seen}" for f in self.findings]
        return "\n".join([head + ("may ask" if self.is_fit else "is not fit to ask"), *lines])

    def __repr__(self) -> str:
        """The same as `str`: it is made to be read."""
        return str(self)

    def _repr_html_(self) -> str:
        """A table for a notebook; every text is escaped."""
        rows = "".join(
            f"<tr><td>{html.escape(f.name)}</td><td>{MARK[f.ok]}</td><td>{html.escape(f.seen)}</td></tr>"
            for f in self.findings
        )
        return f"<p>{html.escape(str(self).splitlines()[0])}</p><table>{rows}</table>"
