"""`audit_host`: whether mail servers accept connections from this host.

First the value (`HostAudit`), then one function per question: resolver, port 25, PTR and HELO,
blacklists; at the end `audit_host`.
"""

from __future__ import annotations

import asyncio
import html
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..checks.blacklist import BlacklistCheck
from ..checks.dns.answers import AnswerOutcome, DnsAnswer, RecordType
from ..checks.dns.resolver import Resolver
from ..checks.networks import may_dial
from ..checks.smtp.protocol.session import Session, SessionPlan
from ..checks.smtp.transport.driver import SessionTimeouts, Transcript, drive_session
from ..errors import ResolverError, SettingsError
from ..local.backend import LocalBackend
from ..local.smtp.pool import no_address_message
from ..local.smtp.stage import find_helo_name
from ..loop import run_sync
from ..model.evidence import DnsOutcome, DomainEvidence, MailExchange
from ..model.settings import Blacklist
from ..model.words import escape_controls
from ..runs.single import open_backend
from ..theme import badge, notebook

MARK = {True: "ok", False: "problem", None: "not established"}
BADGE = {True: "valid", False: "invalid", None: "unchecked"}
NAMES = {
    "resolver": "DNS resolver",
    "port_25": "Port 25",
    "ptr": "PTR record",
    "helo": "HELO name",
    "listed": "Blacklists",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question about this host."""

    name: str  # resolver, port_25, ptr, helo or listed
    ok: bool | None  # None: not established
    seen: str  # what was observed, and what to do about it


@dataclass(frozen=True, slots=True)
class HostAudit:
    """Whether mail servers accept this host as a client.

    Attributes
    ----------
    address : str or None
        The address that mail servers see; None if not established.
    helo_name : str
        The name sent in EHLO.
    findings : tuple of Finding
        One per question.

    Examples
    --------
    >>> from mailverdict.reports.host_audit import Finding, HostAudit
    >>> HostAudit(None, "client.example", (Finding("port_25", False, "refused"),)).is_fit
    False
    """

    address: str | None
    helo_name: str
    findings: tuple[Finding, ...]

    @property
    def is_fit(self) -> bool:
        """Whether no finding is a problem."""
        return all(finding.ok is not False for finding in self.findings)

    def __str__(self) -> str:
        """A few lines for a terminal."""
        others = {finding.ok for finding in self.findings if finding.name != "resolver"}
        address = self.address or "address not established"
        host = f"this host ({address}, HELO {self.helo_name})"
        if others == {None}:
            head = f"not established whether mail servers accept {host}"
        else:
            verb = "should accept"
            if False in others:
                verb = "are likely to refuse"
            head = f"mail servers {verb} {host}"
        lines = [head]
        for finding in self.findings:
            lines.append(f"  {finding.name:<8} {MARK[finding.ok]}: {finding.seen}")
        return "\n".join(map(escape_controls, lines))

    def __repr__(self) -> str:
        """The same as `str`."""
        return str(self)

    def _repr_html_(self) -> str:
        """A table for a notebook; every text is escaped."""
        head = html.escape(str(self).splitlines()[0])
        parts = [f"<p><b>{head}</b></p><table>"]
        for finding in self.findings:
            name = html.escape(NAMES.get(finding.name, finding.name))
            mark = badge(BADGE[finding.ok], MARK[finding.ok])
            parts.append(f'<tr><th scope="row">{name}</th><td>{mark}</td>')
            parts.append(f"<td>{html.escape(finding.seen)}</td></tr>")
        parts.append("</table>")
        return notebook("".join(parts))


# Large providers that reply to any client on port 25 (seen 2026-08); only EHLO and QUIT are sent.
PROBED_DOMAINS = ("gmail.com", "outlook.com", "yahoo.com")
MAX_ADDRESSES = 2  # tried per mail server
OWN_ADDRESS = re.compile(r"\[((?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f:]{3,39})\]")


async def audit_here(
    backend: LocalBackend, domains: Sequence[str], address: str | None
) -> HostAudit:
    """Audit this host; without `address` it is taken from the servers' replies."""
    helo_name = await find_helo_name(backend.settings)
    resolver, is_usable = await check_resolver(backend)
    if not is_usable:
        findings = [resolver]
        for name in ("port_25", "ptr", "helo", "listed"):
            findings.append(Finding(name, None, "needs a resolver that works"))
        return HostAudit(address, helo_name, tuple(findings))
    port, told = await probe_port(backend, domains, helo_name)
    seen = address or told
    findings = [
        resolver,
        port,
        *await check_reverse_dns(backend, seen, helo_name),
        await check_own_listing(backend, seen),
    ]
    return HostAudit(seen, helo_name, tuple(findings))


@dataclass(frozen=True, slots=True)
class Greeting:
    """A connection to a mail server; `answered` is None if there was none to connect to."""

    answered: bool | None
    seen: str
    told: str | None = None
    is_welcome: bool = False


async def check_resolver(backend: LocalBackend) -> tuple[Finding, bool]:
    """The finding about the resolver, and whether the other questions can use it."""
    tested = backend.domains.self_test
    if tested is None:
        return Finding("resolver", None, "not tested: the test is turned off"), True
    try:
        await tested.require()
    except (ResolverError, SettingsError) as exc:  # SettingsError: the system has no resolver
        return Finding("resolver", False, str(exc)), False
    notices = tested.notices()
    passed = f"{tested.shown} knows domains that exist, and no others"
    return Finding("resolver", not notices, "; ".join(notices) or passed), True


async def probe_port(
    backend: LocalBackend, domains: Sequence[str], helo_name: str
) -> tuple[Finding, str | None]:
    """Connect to some mail servers and send EHLO; their replies often contain our address."""
    tries = await asyncio.gather(*(greet_server(backend, domain, helo_name) for domain in domains))
    port = backend.settings.smtp_port
    reached = [greeting for greeting in tries if greeting.answered]
    reached.sort(key=lambda greeting: not greeting.is_welcome)
    if reached:
        finding = Finding("port_25", True, f"port {port} answers: {reached[0].seen}")
        addresses = [greeting.told for greeting in reached if greeting.told]
        if not addresses:
            return finding, None
        return finding, addresses[0]
    if not tries:
        nothing = "no domain was given whose mail server could be connected to"
        return Finding("port_25", None, nothing), None
    seen = "; ".join(greeting.seen for greeting in tries)
    if not any(greeting.answered is False for greeting in tries):
        return Finding("port_25", False, f"there was no mail server to connect to: {seen}"), None
    advice = "outgoing mail ports are closed on this network; "
    advice += "ask its operator, or use a service as backend"
    return Finding("port_25", False, f"no connection to port {port} ({seen}): {advice}"), None


async def greet_server(backend: LocalBackend, domain: str, helo_name: str) -> Greeting:
    """Connect to a domain's first mail server, send EHLO and QUIT."""
    settings = backend.settings
    resolver = backend.domains.resolver
    seen = await resolver.observe_domain(domain)
    if not seen.exchanges:
        return Greeting(None, f"{domain}: {seen.message or seen.outcome}")
    exchange = seen.exchanges[0].host
    answer = await resolver.addresses(exchange)
    dialled = [address for address in answer.texts if may_dial(address, settings.allow_networks)]
    if not dialled:
        return Greeting(None, f"{exchange}: {no_address_message(answer)}")
    transcript: Transcript = []
    timeouts = SessionTimeouts(connect=settings.connect_timeout, command=settings.command_timeout)
    end = await drive_session(
        Session(SessionPlan(helo_name)),
        dialled[:MAX_ADDRESSES],
        port=settings.smtp_port,
        timeouts=timeouts,
        allow_networks=settings.allow_networks,
        transcript=transcript,
    )
    shown = f"{exchange}: {end.detail or 'EHLO accepted'}"
    return Greeting(
        end.phase != "connect",
        shown,
        own_address(transcript),
        is_welcome=end.classification is None,
    )


def own_address(transcript: Transcript) -> str | None:
    """Our address, which servers put in brackets into their reply to EHLO."""
    for _, who, line in transcript:
        match = OWN_ADDRESS.search(line)
        if who == "S" and match is not None and is_address(match[1]):
            return match[1]
    return None


def is_address(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


async def check_reverse_dns(
    backend: LocalBackend, address: str | None, helo_name: str
) -> list[Finding]:
    """The PTR record of our address, its confirmation, and the HELO name against it."""
    if address is None:
        unknown = "no server reported our address; "
        unknown += "give it (address=, or --address) to check its PTR record"
        return [Finding("ptr", None, unknown), Finding("helo", None, "needs our own address")]
    resolver = backend.domains.resolver
    answer = await resolver.pointer_names(address)
    names = answer.texts
    if not names:
        seen = f"{address} has no PTR record; many servers refuse clients without one: "
        seen += "ask who runs the network for a PTR record"
        return [Finding("ptr", False, seen), helo_finding(helo_name, [])]
    confirmed = []
    for name in names:
        back = await resolver.addresses(name)
        if address in back.texts:
            confirmed.append(name)
    if not confirmed:
        seen = f"{address} points to {', '.join(names[:3])}, which does not point back"
        return [Finding("ptr", False, seen), helo_finding(helo_name, names)]
    seen = f"{address} is {confirmed[0]}, and back"
    return [Finding("ptr", True, seen), helo_finding(helo_name, confirmed)]


def helo_finding(helo_name: str, names: Sequence[str]) -> Finding:
    """Whether the HELO name is the name of our address in the DNS."""
    if helo_name.rstrip(".").lower() in names:
        return Finding("helo", True, f"{helo_name} is what the PTR record says")
    wanted = "the name of the PTR record, once there is one"
    if names:
        wanted = names[0]
    seen = f"{helo_name} is not the name of our address; the HELO name must be {wanted}"
    return Finding("helo", False, seen)


async def check_own_listing(backend: LocalBackend, address: str | None) -> Finding:
    """Our own address on the DNS lists that are configured."""
    zones = backend.settings.blacklist.zones
    if not zones:
        none = "no DNS list is configured; a backend with blacklist=Blacklist(zones=...) has some"
        return Finding("listed", None, none)
    if address is None:
        return Finding("listed", None, "needs our own address")
    check = BlacklistCheck(Blacklist(zones=zones), OwnAddress(backend.domains.resolver, address))
    exchanges = (MailExchange(0, address),)
    evidence = await check.observe(DomainEvidence(address, DnsOutcome.IMPLICIT_MX, exchanges))
    if evidence.listed is None:
        return Finding("listed", None, evidence.message)
    seen = evidence.message or f"{address} is on none of {', '.join(evidence.sources)}"
    return Finding("listed", not evidence.listed, seen)


class OwnAddress:
    """A resolver for the blacklist check that answers each host name with our own address."""

    def __init__(self, resolver: Resolver, address: str) -> None:
        self.resolver = resolver
        self.address = address

    async def addresses(self, host: str) -> DnsAnswer:
        """Our own address, whatever the name."""
        return DnsAnswer(AnswerOutcome.DATA, texts=(self.address,))

    async def query(self, name: str, rdtype: RecordType) -> DnsAnswer:
        """Query the DNS."""
        return await self.resolver.query(name, rdtype)


def audit_host(
    backend: LocalBackend | None = None,
    *,
    domains: Sequence[str] = PROBED_DOMAINS,
    address: str | None = None,
) -> HostAudit:
    """Check whether mail servers will accept this host as a client, before using `smtp`.

    Tests the DNS resolver. Connects to port 25 of one mail server of each of `domains` and sends
    EHLO and QUIT, nothing else; looks up the PTR record of our address and, if configured, our
    address on DNS blacklists.

    Parameters
    ----------
    backend : LocalBackend, optional
        Whose settings are used: `helo_name`, `resolver`, `blacklist.zones` and the rest.
    domains : sequence of str
        Domains to whose mail servers it connects; by default large providers that accept
        connections from any host.
    address : str, optional
        Our address as servers see it; by default taken from their replies.

    Returns
    -------
    HostAudit
        Findings `resolver`, `port_25`, `ptr`, `helo` and `listed`; prints as text, shows as HTML.

    Raises
    ------
    SettingsError
        If `backend` is not a local backend, since a service connects from its own host, or
        `address` is not an IP address.

    Examples
    --------
    >>> import mailverdict as mv
    >>> with mv.sandbox.World() as world:
    ...     audit = mv.audit_host(world.make_backend(smtp_port=9), domains=["gmail.com"])
    >>> audit.is_fit
    False
    """
    if backend is not None and not isinstance(backend, LocalBackend):
        raise SettingsError(f"backend={backend!r}: only a local backend connects from this host")
    if address is not None and not is_address(address):
        raise SettingsError(f"address={address!r:.80}: give an IP address")

    async def audit() -> HostAudit:
        async with open_backend(backend) as opened:
            assert isinstance(opened, LocalBackend)
            return await audit_here(opened, domains, address)

    return run_sync(audit())
