"""`explain`: one check of one address with its evidence, step by step, as text and as HTML.

First the value (`Explanation`), then `explain`, then how each kind of evidence becomes a step.
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
    lines: tuple[
        str, ...
    ] = ()  # each on one line and bounded, since texts of servers are among them


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
            lines += [f"{step.title}: {step.outcome}", *(f"    {line}" for line in step.lines)]
        return "\n".join(map(escape_controls, lines))

    def __repr__(self) -> str:
        """The same as `str`."""
        return str(self)

    def _repr_html_(self) -> str:
        """HTML for a notebook; every text is escaped."""
        steps = "".join(render_step(step) for step in self.steps)
        found = self.verification
        mark = badge(found.result) if found.result in MARKS else ""
        return notebook(f"<p>{mark} <b>{html.escape(self.title)}</b></p>{steps}")


def render_step(step: CheckStep) -> str:
    lines = "\n".join(html.escape(line) for line in step.lines)
    body = f"<pre>{lines}</pre>" if lines else ""
    return f'<div class="mv-step"><b>{html.escape(step.title)}</b>: {html.escape(step.outcome)}{body}</div>'


def explain(
    email: str,
    *,
    validation_type: ValidationTypeWord | ValidationType = "mx",
    backend: Backend | str | None = None,
) -> Explanation:
    """Show the evidence behind a verdict: each check, what it asked and was answered, and the rule that decided.

    This is one `mailverdict.check` with everything recorded, so both give the same verdict.

    Parameters
    ----------
    email : str
        The address.
    validation_type : {"mx", "smtp", "mx_blacklist", "regex"}, default "mx"
        As in `verify`. Only ``"smtp"`` asks mail servers, on port 25.
    backend : backend, str or None
        As in `verify`. A service returns its payload only, and may count the check against the quota.

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
    ...     mv.explain("ada@gmial.com", validation_type="mx", backend=world.backend).verification.result
    'invalid'
    """
    address, kind = parse_email(email), parse_validation_type(validation_type)

    async def explain_once() -> Explanation:
        record = CheckRecord()
        async with open_backend(backend) as opened:
            found = await check_address(address, kind, opened, record)
            if record.evidence is None:  # a service observed, and returns its payload only
                return Explanation(found, tuple(service_steps(found)))
            answers = await dns_lines(opened, record.evidence)
            return Explanation(found, tuple(local_steps(found, record, answers)))

    return run_sync(explain_once())


async def dns_lines(backend: Backend, seen: Evidence) -> DnsLines:
    """Who was asked what about a domain and its mail servers, and the answers, which are in the resolver's cache."""
    if seen.dns is None:
        return DnsLines()
    assert isinstance(backend, LocalBackend)
    dns, resolver, settings = seen.dns, backend.domains.resolver, backend.settings

    def cached(name: str, *types: RecordType) -> list[str]:
        answers = {rdtype: resolver.cached(name, rdtype) for rdtype in types}
        return [
            f"{name} {rdtype}: {answer_text(answer)}"
            for rdtype, answer in answers.items()
            if answer is not None
        ]

    hosts = {each.host: await resolver.addresses(each.host) for each in dns.exchanges}
    servers = [
        f"{host} A, AAAA: {answer_text(answer)}"
        for host, answer in hosts.items()
        if host != dns.domain
    ]
    addresses = [
        unmapped(ipaddress.ip_address(text)) for answer in hosts.values() for text in answer.texts
    ]
    entries = [name_of_entry(each, zone) for zone in settings.blacklist.zones for each in addresses]
    asked = f"asked {backend.domains.shown}"
    listings = (
        [line for name in entries for line in cached(name, "A")]
        if seen.blacklist is not None
        else []
    )
    return DnsLines([asked, *cached(dns.domain, "MX", *ADDRESS_TYPES), *servers], listings)


def answer_text(answer: DnsAnswer) -> str:
    """The records of an answer, else what failed, else NXDOMAIN or NODATA."""
    records = ", ".join(
        [*(f"{each.preference} {each.host or '.'}" for each in answer.exchanges), *answer.texts]
    )
    if records and answer.message:
        return f"{records} ({answer.message})"
    return records or answer.message or answer.outcome.upper()


def local_steps(found: Verification, record: CheckRecord, answers: DnsLines) -> Iterator[CheckStep]:
    """The checks that were made on this machine, in their order, and the verdict."""
    evidence = record.evidence
    assert evidence is not None
    yield syntax_step(evidence.syntax)
    if evidence.syntax.ok:
        yield flags_step(evidence.flags, evidence.syntax)
    if (dns := evidence.dns) is not None:
        lines = (line[:SHOWN] for line in (*answers.domain, *filter(None, [dns.message])))
        yield CheckStep("dns", f"{dns.domain}: {dns.outcome}", tuple(lines))
    if evidence.blacklist is not None:
        yield blacklist_step(evidence.blacklist, answers.listings)
    if evidence.mailbox is not None:
        yield mailbox_step(evidence.mailbox, record.transcript)
    meanings = [f"{reason}: {REASON_MEANING[Reason(reason)]}" for reason in found.reasons]
    yield verdict_step(
        found, [f"{line} (decides)" if i == 0 else line for i, line in enumerate(meanings)]
    )


def service_steps(found: Verification) -> Iterator[CheckStep]:
    """What a service's payload contains of its evidence."""
    yield CheckStep(
        "checks",
        "from the service",
        tuple(f"{k}: {str(v).lower()}" for k, v in found.checks.items()),
    )
    yield CheckStep(
        "metadata",
        "from the service",
        tuple(f"{k}: {str(v)[:SHOWN]}" for k, v in found.metadata.items()),
    )
    yield verdict_step(found, found.reasons)


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
    values = {name: getattr(flags, name) for name in ("role", "spamtrap", "disposable", "free")}
    raised = [name for name, value in values.items() if value]
    lines = [
        f"{name}: {'never determined' if value is None else str(value).lower()}"
        for name, value in values.items()
    ]
    if meant := suggest_domain(seen.ascii_domain):
        lines.append(f"did you mean {seen.local}@{meant}?")
    return CheckStep("lists", ", ".join(raised) or "no flag", tuple(lines))


def blacklist_step(seen: BlacklistEvidence, listings: Sequence[str]) -> CheckStep:
    outcome = {True: "listed", False: "not listed", None: "undetermined"}[seen.listed]
    lines = [
        *(f"asked: {source}" for source in seen.sources),
        *listings,
        *filter(None, [seen.message]),
    ]
    return CheckStep(
        "blacklist", outcome if seen.sources else "no blacklist is configured", tuple(lines)
    )


def mailbox_step(seen: MailboxEvidence, transcript: Transcript) -> CheckStep:
    """The SMTP dialogue with seconds, and the rule that classified the deciding reply or failure."""
    lines = [f"{seconds:7.3f} {who} {text}"[:SHOWN] for seconds, who, text in transcript]
    outcome = str(seen.reason or "accepted")
    words = {
        True: "accepts any address",
        False: "refuses a random address",
        None: "not established",
    }
    decided = [
        f"{seen.host}: {seen.reply}"[:SHOWN],
        f"by {rule_text(seen.classification.rule)}: {outcome}"[:SHOWN],
    ]
    return CheckStep("smtp", outcome, (*lines, *decided, f"catch-all: {words[seen.catch_all]}"))


def rule_text(name: str) -> str:
    """A rule with the table that it is a row of; one that is in no table is about a whole session."""
    from ..checks.smtp.classify.classification import CLASSIFICATIONS  # noqa: PLC0415 - only this step needs it
    from ..checks.smtp.classify.rules import RULES  # noqa: PLC0415 - takes long to import

    for rule in RULES:
        if rule.name == name.partition("+")[0]:
            return f"rule {name!r} of the table of replies ({rule.seen})"
    is_failure = name in {each.rule for each in CLASSIFICATIONS.values()}
    return (
        f"rule {name!r} of the table of failed connections"
        if is_failure
        else f"rule {name!r} about sessions"
    )


def verdict_step(found: Verification, reasons: Sequence[str]) -> CheckStep:
    """The reasons in order of precedence, of which the first decides, and the errors."""
    errors = [f"{error.code}: {error.message}" for error in found.errors or ()]
    return CheckStep(
        "verdict", found.result, (*reasons, *errors, *filter(None, [found._not_asked()]))
    )
