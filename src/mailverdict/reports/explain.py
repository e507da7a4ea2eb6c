"""`explain`: one check of one address with its evidence, step by step, as text and as HTML.

First the value (`Explanation`), then `explain`, then how each kind of evidence becomes a step::

    ada@gmial.com is invalid (mx)          the title, from the verification
    dns: gmial.com: nxdomain               a step: what was checked, and what came out
        asked 127.0.0.1:53                 its lines: what was asked and answered
"""

from __future__ import annotations

import html
import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..backend import Backend
from ..checks.blacklist import name_of_entry, unmapped
from ..checks.dns.answers import ADDRESS_TYPES, DnsAnswer, RecordType
from ..checks.dns.resolver import Resolver
from ..checks.lists.suggestions import suggest_domain
from ..checks.smtp.transport.driver import Transcript
from ..local.backend import CheckRecord, LocalBackend
from ..loop import run_sync
from ..model.evidence import BlacklistEvidence, Evidence, Flags, MailboxEvidence, SyntaxEvidence
from ..model.verification import Verification
from ..model.words import (
    REASON_MEANING,
    Reason,
    ValidationType,
    ValidationTypeWord,
    escape_controls,
)
from ..runs.options import parse_validation_type
from ..runs.single import check_address, open_backend, parse_email
from ..theme import MARKS, badge, notebook

SHOWN = 300  # characters of one line


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One check and its outcome."""

    title: str
    outcome: str
    # Each on one line and bounded, since texts of servers are among them.
    lines: tuple[str, ...] = ()


class DnsLines(NamedTuple):
    """Questions to the DNS with their answers, one a line."""

    domain: Sequence[str] = ()  # about the domain and its mail servers
    listings: Sequence[str] = ()  # to DNS blacklists


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an address got its verdict; made by `mailverdict.explain`.

    Attributes
    ----------
    verification : Verification
        The verdict that is explained.
    steps : tuple of CheckStep
        In the order in which they were taken.

    Examples
    --------
    >>> import mailverdict as mv
    >>> print(mv.explain("ada@@example.org", validation_type="regex"))
    ada@@example.org is invalid (regex)
    syntax: refused
        There is more than one @.
    verdict: invalid
        REGEX: There is more than one @.
    """

    verification: Verification
    steps: tuple[CheckStep, ...]

    @property
    def title(self) -> str:
        """The verdict in one line."""
        return self.verification.title[:SHOWN]

    def __str__(self) -> str:
        """Text for a terminal."""
        lines = [self.title]
        for step in self.steps:
            lines.append(f"{step.title}: {step.outcome}")
            lines += [f"    {line}" for line in step.lines]
        return "\n".join(map(escape_controls, lines))

    def __repr__(self) -> str:
        """The same as `str`."""
        return str(self)

    def _repr_html_(self) -> str:
        """HTML for a notebook; every text is escaped."""
        mark = ""
        if self.verification.result in MARKS:
            mark = badge(self.verification.result)
        steps = map(render_step, self.steps)
        return notebook(f"<p>{mark} <b>{html.escape(self.title)}</b></p>{''.join(steps)}")


def render_step(step: CheckStep) -> str:
    title = html.escape(step.title)
    outcome = html.escape(step.outcome)
    body = ""
    if step.lines:
        lines = "\n".join(map(html.escape, step.lines))
        body = f"<pre>{lines}</pre>"
    return f'<div class="mv-step"><b>{title}</b>: {outcome}{body}</div>'


def explain(
    email: str,
    *,
    validation_type: ValidationTypeWord | ValidationType = "mx",
    backend: Backend | str | None = None,
) -> Explanation:
    """Show the evidence behind a verdict: each check, its answers, and what decided.

    This is one `mailverdict.check` with everything recorded, so both give the same verdict.

    Parameters
    ----------
    email : str
        The address.
    validation_type : {"mx", "smtp", "mx_blacklist", "regex"}, default "mx"
        As in `verify`. Only ``"smtp"`` asks mail servers, on port 25.
    backend : backend, str or None
        As in `verify`. A service returns its payload only, and may count the check against the
        quota.

    Returns
    -------
    Explanation
        Prints as text, shows as HTML in a notebook; its `verification` is the verdict.

    Raises
    ------
    SettingsError
        If `email` is not text or empty, or another argument cannot work.
    BackendError
        If the backend could not answer.

    Examples
    --------
    >>> import mailverdict as mv
    >>> with mv.sandbox.World() as world:
    ...     explanation = mv.explain("ada@gmial.com", validation_type="mx", backend=world.backend)
    >>> explanation.verification.result
    'invalid'
    """
    address = parse_email(email)
    kind = parse_validation_type(validation_type)

    async def explain_once() -> Explanation:
        record = CheckRecord()
        async with open_backend(backend) as opened:
            verification = await check_address(address, kind, opened, record)
            if record.evidence is None:  # a service observed, and returns its payload only
                return Explanation(verification, tuple(service_steps(verification)))
            answers = await dns_lines(opened, record.evidence)
            return Explanation(verification, tuple(local_steps(verification, record, answers)))

    return run_sync(explain_once())


async def dns_lines(backend: Backend, seen: Evidence) -> DnsLines:
    """What was asked about a domain and its mail servers; answers come from the cache."""
    if seen.dns is None:
        return DnsLines()
    assert isinstance(backend, LocalBackend)
    resolver = backend.domains.resolver
    lines = [f"asked {backend.domains.shown}"]
    lines += cached_lines(resolver, seen.dns.domain, "MX", *ADDRESS_TYPES)
    addresses = []
    for host in dict.fromkeys(exchange.host for exchange in seen.dns.exchanges):
        answer = await resolver.addresses(host)
        if host != seen.dns.domain:
            lines.append(f"{host} A, AAAA: {answer_text(answer)}")
        addresses += [unmapped(ipaddress.ip_address(text)) for text in answer.texts]
    listings: list[str] = []
    if seen.blacklist is not None:
        for zone in backend.settings.blacklist.zones:
            for address in addresses:
                listings += cached_lines(resolver, name_of_entry(address, zone), "A")
    return DnsLines(lines, listings)


def cached_lines(resolver: Resolver, name: str, *types: RecordType) -> list[str]:
    """The answers about a name that the resolver still has."""
    lines = []
    for rdtype in types:
        answer = resolver.cached(name, rdtype)
        if answer is not None:
            lines.append(f"{name} {rdtype}: {answer_text(answer)}")
    return lines


def answer_text(answer: DnsAnswer) -> str:
    """The records of an answer, else what failed, else NXDOMAIN or NODATA."""
    texts = []
    for exchange in answer.exchanges:
        texts.append(f"{exchange.preference} {exchange.host or '.'}")
    records = ", ".join([*texts, *answer.texts])
    if records and answer.message:
        return f"{records} ({answer.message})"
    return records or answer.message or answer.outcome.upper()


def local_steps(
    verification: Verification, record: CheckRecord, answers: DnsLines
) -> Iterator[CheckStep]:
    """The checks that were made on this machine, in their order, and the verdict."""
    evidence = record.evidence
    assert evidence is not None
    yield syntax_step(evidence.syntax)
    if evidence.syntax.ok:
        yield flags_step(evidence.flags, evidence.syntax)
    dns = evidence.dns
    if dns is not None:
        lines = [line[:SHOWN] for line in answers.domain]
        if dns.message:
            lines.append(dns.message[:SHOWN])
        yield CheckStep("dns", f"{dns.domain}: {dns.outcome}", tuple(lines))
    if evidence.blacklist is not None:
        yield blacklist_step(evidence.blacklist, answers.listings)
    if evidence.mailbox is not None:
        yield mailbox_step(evidence.mailbox, record.transcript)
    reasons = [f"{reason}: {REASON_MEANING[Reason(reason)]}" for reason in verification.reasons]
    if reasons:
        reasons[0] += " (decides)"
    yield verdict_step(verification, reasons)


def service_steps(verification: Verification) -> Iterator[CheckStep]:
    """What a service's payload contains of its evidence."""
    checks = [f"{name}: {str(value).lower()}" for name, value in verification.checks.items()]
    metadata = [f"{name}: {str(value)[:SHOWN]}" for name, value in verification.metadata.items()]
    yield CheckStep("checks", "from the service", tuple(checks))
    yield CheckStep("metadata", "from the service", tuple(metadata))
    yield verdict_step(verification, verification.reasons)


def syntax_step(seen: SyntaxEvidence) -> CheckStep:
    if not seen.ok:
        return CheckStep("syntax", "refused", (seen.message,))
    return CheckStep(
        "syntax",
        "accepted",
        (f"normal form {seen.normalized}", f"domain asked for {seen.ascii_domain}"),
    )


def flags_step(flags: Flags, seen: SyntaxEvidence) -> CheckStep:
    """The flags, and the domain that was probably meant."""
    words = {True: "true", False: "false", None: "never determined"}
    raised = []
    lines = []
    for name in ("role", "spamtrap", "disposable", "free"):
        value = getattr(flags, name)
        lines.append(f"{name}: {words[value]}")
        if value:
            raised.append(name)
    meant = suggest_domain(seen.ascii_domain)
    if meant:
        lines.append(f"did you mean {seen.local}@{meant}?")
    return CheckStep("lists", ", ".join(raised) or "no flag", tuple(lines))


def blacklist_step(seen: BlacklistEvidence, listings: Sequence[str]) -> CheckStep:
    outcome = {True: "listed", False: "not listed", None: "undetermined"}[seen.listed]
    if not seen.sources:
        outcome = "no blacklist is configured"
    lines = [f"asked: {source}" for source in seen.sources]
    lines += listings
    if seen.message:
        lines.append(seen.message)
    return CheckStep("blacklist", outcome, tuple(lines))


def mailbox_step(seen: MailboxEvidence, transcript: Transcript) -> CheckStep:
    """The SMTP dialogue with seconds, and the rule that classified its end."""
    lines = [f"{seconds:7.3f} {who} {text}"[:SHOWN] for seconds, who, text in transcript]
    outcome = str(seen.reason or "accepted")
    words = {
        True: "accepts any address",
        False: "refuses a random address",
        None: "not established",
    }
    lines.append(f"{seen.host}: {seen.reply}"[:SHOWN])
    lines.append(f"by {rule_text(seen.classification.rule)}: {outcome}"[:SHOWN])
    lines.append(f"catch-all: {words[seen.catch_all]}")
    return CheckStep("smtp", outcome, tuple(lines))


def rule_text(name: str) -> str:
    """A rule with its table; one that is in no table is about a whole session."""
    # Only this step needs them, and the rules take long to import.
    from ..checks.smtp.classify.classification import CLASSIFICATIONS  # noqa: PLC0415
    from ..checks.smtp.classify.rules import RULES  # noqa: PLC0415

    first_name = name.partition("+")[0]
    for rule in RULES:
        if rule.name == first_name:
            return f"rule {name!r} of the table of replies ({rule.seen})"
    if name in {classification.rule for classification in CLASSIFICATIONS.values()}:
        return f"rule {name!r} of the table of failed connections"
    return f"rule {name!r} about sessions"


def verdict_step(verification: Verification, reasons: Sequence[str]) -> CheckStep:
    """The reasons in order of precedence, of which the first decides, and the errors."""
    lines = list(reasons)
    lines += [f"{error.code}: {error.message}" for error in verification.errors or ()]
    not_asked = verification._not_asked()
    if not_asked:
        lines.append(not_asked)
    return CheckStep("verdict", verification.result, tuple(lines))
