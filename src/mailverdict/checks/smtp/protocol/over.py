"""Ways for a session to be over before everybody was asked."""

from __future__ import annotations

from ....model.words import Reason
from ..classify.classification import Action, Failure, FailureKind, Finding, explain_failure
from ..classify.classifier import explain_reply
from ..replies import Reply
from .steps import Recipient

__all__ = ["Over", "is_silence", "lost_connection", "mistrust", "refusal", "shut"]

OUT_OF_STEP = Finding(Reason.INCONCLUSIVE, "out_of_step")
MISPLACED = Finding(Reason.INCONCLUSIVE, "misplaced_reply", action=Action.IN_STEP)
SILENCE = frozenset({"reply_timeout", "session_timeout", "no_reply"})
STILL_OPEN = frozenset(
    {
        FailureKind.BANNER_TIMEOUT,
        FailureKind.REPLY_TIMEOUT,
        FailureKind.SESSION_TIMEOUT,
        FailureKind.NOT_SMTP,
        FailureKind.NO_REPLY,
    }
)


class Over(Exception):
    """The session cannot go on; never leaves the generator.

    Attributes
    ----------
    finding, phase, detail, recipient
        As in `Ended`.
    says_quit, waits : bool
        Whether QUIT makes sense, and waiting for the reply to it.
    is_cut : bool
        Whether the server ended the session.
    """

    def __init__(self, finding: Finding, phase: str, detail: str, *, says_quit: bool, waits: bool = False) -> None:
        super().__init__(detail)
        self.finding = finding
        self.phase = phase
        self.detail = detail
        self.says_quit = says_quit
        self.waits = waits
        self.is_cut = False
        self.recipient: Recipient | None = None


def refusal(reply: Reply, phase: str) -> Over:
    """The end by a reply that is no way to go on."""
    finding = explain_reply(reply, phase=phase)
    if finding.reason is None:  # as 250 for a greeting
        finding = OUT_OF_STEP
    return Over(finding, phase, str(reply), says_quit=True, waits=True)


def is_silence(over: Over) -> bool:
    """Whether replies stopped coming, so that one may be missing in the middle."""
    return over.finding.rule in SILENCE


def lost_connection(failure: Failure, phase: str, recipient: Recipient | None) -> Over:
    """The end by a failure of the transport."""
    detail = failure.detail or failure.kind.value
    over = Over(explain_failure(failure), phase, detail, says_quit=failure.kind in STILL_OPEN)
    over.is_cut, over.recipient = failure.kind is FailureKind.DROPPED, recipient
    return over


def shut(reply: Reply, phase: str, recipient: Recipient | None) -> Over:
    """The end by 421: the server is closing the connection."""
    over = Over(explain_reply(reply, phase=phase), phase, str(reply), says_quit=True)
    over.is_cut, over.recipient = True, recipient
    return over


def mistrust(lost: Over | None) -> Over:
    """The end of a window whose replies may not be in order: nothing of it counts."""
    if lost is None:
        detail = "a reply names another recipient than the one that was asked"
        return Over(
            Finding(Reason.INCONCLUSIVE, "misplaced_reply", action=Action.IN_STEP), "rcpt", detail, says_quit=True
        )
    finding = Finding(lost.finding.reason, lost.finding.rule, action=Action.IN_STEP)
    return Over(finding, lost.phase, lost.detail, says_quit=lost.says_quit)
