"""The evidence behind one verdict, step by step, as text and as HTML."""

from __future__ import annotations

import html
from dataclasses import dataclass

from .verification import Verification

__all__ = ["Explanation", "Step", "printable"]

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
