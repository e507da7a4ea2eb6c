"""One row of the classification table."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ....model.words import Reason
from .classification import Action
from .wording import Wording

__all__ = ["Rule", "Sample"]

EVERYWHERE = "banner ehlo mail rcpt"
Pattern = re.Pattern[str]


def compile_optional(pattern: str | None) -> Pattern | None:
    """Compile, or nothing to match."""
    return re.compile(pattern) if pattern is not None else None


@dataclass(frozen=True, slots=True)
class Sample:
    """A reply that the rule is for, as seen."""

    phase: str
    code: int
    enhanced_code: str
    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """When all that is given matches, `reason` it is.

    Attributes
    ----------
    name : str
        Identifier that evidence carries.
    reason : Reason or None
        None: accepted.
    sample : Sample
        A reply that this rule must decide.
    seen : str
        Who says so.
    code, enhanced : str
        Patterns of the whole reply code and of the whole enhanced status code (empty when absent).
    phases : str
        Where the rule applies.
    says, names, unless : str, optional
        Patterns found in the masked text, found in the text with links, and not found in the masked text.
    error_code, action, retry_after
        Carried over to the classification.
    """

    name: str
    reason: Reason | None
    sample: Sample
    seen: str
    code: str = "[45].."
    enhanced: str = ".*"
    phases: str = EVERYWHERE
    says: str | None = None
    names: str | None = None
    unless: str | None = None
    error_code: str = "SMTP"
    action: Action = Action.NONE
    retry_after: float | None = None
    compiled: tuple[Pattern, Pattern, Pattern | None, Pattern | None, Pattern | None] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Compile the patterns once."""
        optional = (compile_optional(self.says), compile_optional(self.names), compile_optional(self.unless))
        object.__setattr__(self, "compiled", (re.compile(self.code), re.compile(self.enhanced), *optional))

    def matches(self, phase: str, code: str, enhanced: str, wording: Wording) -> bool:
        """Whether everything that the row asks for is so."""
        of_code, of_enhanced, says, names, unless = self.compiled
        return bool(
            phase in self.phases
            and of_code.fullmatch(code)
            and of_enhanced.fullmatch(enhanced)
            and (says is None or says.search(wording.plain))
            and (names is None or names.search(wording.raw))
            and not (unless is not None and unless.search(wording.plain))
        )
