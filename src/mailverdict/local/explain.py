"""One address through every check of the local backend, with what each one saw."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ..checks.lists import load_lists
from ..checks.smtp.wire import Transcript
from ..checks.suggest import suggest_domain
from ..checks.syntax import observe_syntax
from ..model.evidence import BlacklistEvidence, Evidence, Flags, MailboxEvidence, SyntaxEvidence
from ..model.explanation import Explanation, Step
from ..model.verification import Verification
from ..model.words import REASON_MEANING, ValidationType
from ..verdicts import Decision, settle
from .backend import LocalBackend
from .domains import domain_notes
from .outbox import mailbox_notes

__all__ = ["explain_here"]

SHOWN = 300  # characters of an address that are shown


async def explain_here(backend: LocalBackend, email: str, validation_type: ValidationType) -> Explanation:
    """Verify one address on this machine and keep the evidence.

    Parameters
    ----------
    backend : LocalBackend
        Whose settings are used.
    email : str
        The address, stripped.
    validation_type : ValidationType
        How deep.

    Returns
    -------
    Explanation
        Its verdict is the one that `verify` gives.
    """
    syntax = observe_syntax(email)
    lists = load_lists(backend.settings.lists)
    flags = lists.flags(syntax.local, syntax.ascii_domain) if syntax.ok else Flags()
    steps = [syntax_step(syntax), *([flags_step(flags, syntax)] if syntax.ok else [])]
    evidence = Evidence(syntax, flags=flags)
    if syntax.ok and validation_type is not ValidationType.REGEX:
        evidence = await ask(backend, evidence, validation_type, steps)
    decision = settle(validation_type, evidence)
    found = verification(email, validation_type, evidence, decision, lists.version, backend)
    return Explanation(found, (*steps, verdict_step(decision)))


async def ask(
    backend: LocalBackend, evidence: Evidence, validation_type: ValidationType, steps: list[Step]
) -> Evidence:
    """The checks that need a network; each adds its step."""
    resolver = backend.domains.resolver
    seen = await resolver.observe_domain(evidence.syntax.ascii_domain)
    addresses = [(e, await resolver.addresses(e.host)) for e in seen.exchanges]
    lines = [f"{e.preference} {e.host} -> {', '.join(map(str, a.addresses)) or a.message}" for e, a in addresses]
    steps.append(Step("dns", f"{seen.domain}: {seen.outcome}", (*lines, *([seen.message] if seen.message else []))))
    blacklist = None
    if validation_type is ValidationType.MX_BLACKLIST and seen.exchanges:
        blacklist = await backend.domains.blacklist.observe(seen)
        steps.append(blacklist_step(blacklist))
    mailbox = None
    if validation_type is ValidationType.SMTP and seen.exchanges:
        transcript: Transcript = []
        view = await backend.view(pa.array([evidence.syntax.normalized]))
        mailbox = await backend.mailboxes.ask_one(view, seen, transcript)
        steps.append(mailbox_step(mailbox, transcript))
    return Evidence(evidence.syntax, seen, blacklist, mailbox, evidence.flags)


def syntax_step(seen: SyntaxEvidence) -> Step:
    if not seen.ok:
        return Step("syntax", "refused", (seen.message,))
    return Step("syntax", "accepted", (f"normal form {seen.normalized}", f"domain asked for {seen.ascii_domain}"))


def flags_step(flags: Flags, seen: SyntaxEvidence) -> Step:
    """Flags that are determined, and what was probably meant."""
    known = {name: getattr(flags, name) for name in ("role", "spamtrap", "disposable", "free")}
    raised = [name for name, value in known.items() if value]
    lines = [f"{name}: {'never determined' if value is None else str(value).lower()}" for name, value in known.items()]
    meant = suggest_domain(seen.ascii_domain)
    if meant:
        lines.append(f"did you mean {seen.local}@{meant}?")
    return Step("lists", ", ".join(raised) or "nothing flagged", tuple(lines))


def blacklist_step(seen: BlacklistEvidence) -> Step:
    outcome = {True: "listed", False: "not listed", None: "undetermined"}[seen.listed]
    if not seen.sources:
        outcome = "no blacklist is configured"
    lines = [f"asked: {source}" for source in seen.sources]
    return Step("blacklist", outcome, (*lines, *([seen.message] if seen.message else [])))


def mailbox_step(seen: MailboxEvidence | None, transcript: Transcript) -> Step:
    """The dialogue with times, and the rule that read its deciding line."""
    lines = [f"{seconds:7.3f} {who} {text}"[:SHOWN] for seconds, who, text in transcript]
    if seen is None:
        return Step("smtp", "nobody to ask", tuple(lines))
    outcome = "accepted" if seen.reason is None else str(seen.reason)
    decided = f"rule {seen.rule!r} reads: {seen.reply}"[:SHOWN] if seen.reason else f"{seen.host} accepts the recipient"
    catch_all = {True: "accepts any address", False: "refuses a random address", None: "not established"}[
        seen.catch_all
    ]
    return Step("smtp", outcome, (*lines, decided, f"catch-all: {catch_all}"))


def verdict_step(decision: Decision) -> Step:
    """The reasons in order of precedence: the first decides."""
    return Step("verdict", str(decision.result), tuple(verdict_lines(decision)))


def verdict_lines(decision: Decision) -> Iterator[str]:
    for i, reason in enumerate(decision.reasons):
        yield f"{reason}: {REASON_MEANING[reason]}{' (decides)' if i == 0 else ''}"
    for fault in decision.errors or ():
        yield f"{fault.code}: {fault.message}"


def verification(
    email: str,
    validation_type: ValidationType,
    evidence: Evidence,
    decision: Decision,
    lists_version: str,
    backend: LocalBackend,
) -> Verification:
    """The value that the payload is made of."""
    notes = domain_notes(evidence.dns, evidence.blacklist) if evidence.dns is not None else {}
    mailbox = evidence.mailbox
    notes |= mailbox_notes(mailbox) if mailbox is not None else {}
    metadata = {"lists": lists_version, **notes, "validated_at": backend.clock().isoformat()}
    if evidence.syntax.ok and evidence.syntax.normalized != email:
        metadata["normalized"] = evidence.syntax.normalized
    flags = evidence.flags
    return Verification(
        email=email[:SHOWN],
        validation_type=str(validation_type),
        result=str(decision.result),
        reasons=tuple(map(str, decision.reasons)),
        checks=decision.checks,
        role=flags.role,
        spamtrap=flags.spamtrap,
        disposable=flags.disposable,
        free=flags.free,
        catch_all=mailbox.catch_all if mailbox else None,
        protected=mailbox.protected if mailbox else None,
        reason=decision.error,
        errors=decision.errors,
        metadata=metadata,
    )
