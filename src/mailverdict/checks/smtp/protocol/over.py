"""Ways for a session to be over before everybody was asked."""

from __future__ import annotations

from ....model.words import Reason
from ..classify.classification import Action, Classification, Failure, FailureKind, classify_failure
from ..classify.classifier import classify_reply
from ..replies import Reply
from .steps import Recipient

__all__ = ["Over", "is_silence", "lost_connection", "mistrust", "refusal", "shut"]

OUT_OF_STEP = Classification(Reason.INCONCLUSIVE, "out_of_step")
MISPLACED = Classification(Reason.INCONCLUSIVE, "misplaced_reply", action=Action.IN_STEP)
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
    classification, phase, detail, recipient
        As in `Ended`.
    says_quit, waits : bool
        Whether QUIT makes sense, and waiting for the reply to it.
    is_cut : bool
        Whether the server ended the session.
    """

    def __init__(
        self, classification: Classification, phase: str, detail: str, *, says_quit: bool, waits: bool = False
    ) -> None:
        super().__init__(detail)
        self.classification = classification
        self.phase = phase
        self.detail = detail
        self.says_quit = says_quit
        self.waits = waits
        self.is_cut = False
        self.recipient: Recipient | None = None


def refusal(reply: Reply, phase: str) -> Over:
    """The end by a reply that is no way to go on."""
    classification = classify_reply(reply, phase=phase)
    if classification.reason is None:  # as 250 for a greeting
        classification = OUT_OF_STEP
    return Over(classification, phase, str(reply), says_quit=True, waits=True)


def is_silence(over: Over) -> bool:
    """Whether replies stopped coming, so that one may be missing in the middle."""
    return over.classification.rule in SILENCE


def lost_connection(failure: Failure, phase: str, recipient: Recipient | None) -> Over:
    """The end by a failure of the transport."""
    detail = failure.detail or failure.kind.value
    over = Over(classify_failure(failure), phase, detail, says_quit=failure.kind in STILL_OPEN)
    over.is_cut, over.recipient = failure.kind is FailureKind.DROPPED, recipient
    return over


def shut(reply: Reply, phase: str, recipient: Recipient | None) -> Over:
    """The end by 421: the server is closing the connection."""
    over = Over(classify_reply(reply, phase=phase), phase, str(reply), says_quit=True)
    over.is_cut, over.recipient = True, recipient
    return over


def mistrust(lost: Over | None) -> Over:
    """The end of a window whose replies may not be in order: nothing of it counts."""
    if lost is None:
        detail = "a reply names another recipient than the one that was asked"
        return Over(
            Classification(Reason.INCONCLUSIVE, "misplaced_reply", action=Action.IN_STEP),
            "rcpt",
            detail,
            says_quit=True,
        )
    classification = Classification(lost.classification.reason, lost.classification.rule, action=Action.IN_STEP)
    return Over(classification, lost.phase, lost.detail, says_quit=lost.says_quit)
