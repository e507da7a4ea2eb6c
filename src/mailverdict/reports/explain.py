"""The evidence behind one verdict, step by step, as text and as HTML."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..checks.lists.flags import load_lists
from ..checks.lists.suggestions import suggest_domain
from ..checks.smtp.transport.driver import Transcript
from ..checks.syntax.address import observe_syntax
from ..errors import SettingsError
from ..local.backend import LocalBackend
from ..local.domains import domain_notes
from ..local.smtp.results import mailbox_notes
from ..loop import run_sync
from ..model.evidence import BlacklistEvidence, Evidence, Flags, MailboxEvidence, SyntaxEvidence
from ..model.verification import Verification
from ..model.words import REASON_MEANING, ValidationType
from ..runs.options import parse_validation_type, pick_backend
from ..verdicts import Decision, settle

__all__ = ["Explanation", "Step", "explain", "explain_here", "printable"]

STYLE = "border-left:3px solid currentColor;padding:0 0 0 .8em;margin:.4em 0"
LINES_STYLE = "margin:.2em 0;white-space:pre-wrap;font:.9em/1.35 monospace"  # notebooks show a bare <pre> as prose


@dataclass(frozen=True, slots=True)
class Step:
    """One check and what it saw.

    Attributes
    ----------
    title : str
        Which check.
    outcome : str
        What it amounts to, in a few words.
    lines : tuple of str
        What was seen, line by line; foreign text is on one line each and bounded.
    """

    title: str
    outcome: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an address got its verdict; made by `mailverdict.explain`.

    Attributes
    ----------
    verification : Verification
        The verdict that is explained.
    steps : tuple of Step
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
    steps: tuple[Step, ...]

    @property
    def title(self) -> str:
        """The verdict in one line."""
        return f"{self.verification.email} is {self.verification.result} ({self.verification.validation_type})"

    def __str__(self) -> str:
        """Text for a terminal."""
        lines = [self.title]
        for step in self.steps:
            lines += [f"{step.title}: {step.outcome}", *(f"    {line}" for line in step.lines)]
        return "\n".join(map(printable, lines))

    def __repr__(self) -> str:
        """The same as `str`: it is made to be read."""
        return str(self)

    def _repr_html_(self) -> str:
        """HTML for a notebook; every text is escaped."""
        steps = "".join(render_step(step) for step in self.steps)
        return f"<div><p><b>{html.escape(self.title)}</b></p>{steps}</div>"


def printable(text: str) -> str:
    """One line that cannot move a terminal's cursor or forge another line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def render_step(step: Step) -> str:
    lines = "\n".join(html.escape(line) for line in step.lines)
    body = f"<pre style='{LINES_STYLE}'>{lines}</pre>" if lines else ""
    head = f"<b>{html.escape(step.title)}</b>: {html.escape(step.outcome)}"
    return f"<div style='{STYLE}'>{head}{body}</div>"


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
    decided = (
        f"rule {seen.classification.rule!r} reads: {seen.reply}"[:SHOWN]
        if seen.reason
        else f"{seen.host} accepts the recipient"
    )
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


def explain(email: str, *, validation_type: str = "smtp", backend: Any = None) -> Explanation:
    """Show the evidence behind a verdict: each check, what it saw, and the rule that decided.

    Parameters
    ----------
    email : str
        The address.
    validation_type : {"smtp", "mx", "mx_blacklist", "regex"}, default "smtp"
        How deep; what goes over the network is as in `verify`.
    backend : backend, str or None
        As in `verify`. A service tells its payload only, and may count it against the quota.

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
    if not isinstance(email, str) or not email.strip():
        raise SettingsError(f"email={email!r}: give one address as text")
    kind = parse_validation_type(validation_type)
    asked = pick_backend(backend)
    if isinstance(asked, LocalBackend):
        return run_sync(explain_here(asked, email.strip(), kind))
    from ..frames.verify import check  # noqa: PLC0415 - the frames' part is needed for a service only

    return explain_answer(check(email, validation_type=kind, backend=asked))


def explain_answer(found: Verification) -> Explanation:
    """What a service's payload tells of its evidence."""
    checks = Step(
        "checks", "as the service tells them", tuple(f"{k}: {str(v).lower()}" for k, v in found.checks.items())
    )
    notes = Step(
        "metadata", "as the service tells it", tuple(f"{k}: {str(v)[:300]}" for k, v in found.metadata.items())
    )
    why = (*(f"{reason}" for reason in found.reasons), *(f"{e.code}: {e.message}" for e in found.errors or ()))
    return Explanation(found, (checks, notes, Step("verdict", found.result, why)))
