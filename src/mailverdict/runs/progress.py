"""`Progress`: how far a run is, and the progress bar that shows it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..backend import Quota
from ..model.words import Verdict

__all__ = ["Listener", "Progress", "ProgressBar", "wants_bar"]


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of a run, in unique addresses.

    Attributes
    ----------
    state : str
        ``running``, ``done``, ``stopped`` (quota or `limit`), ``cancelled`` or ``failed``.
    total : int
        Unique addresses of the column.
    settled : int
        How many have a row.
    verdicts : dict of str to int
        Settled addresses by verdict, always all four.
    from_journal : int
        How many of the settled ones were reused from an earlier run.
    submitted : int
        How many this run has submitted to a service.
    errors : int
        How many ended in a technical failure, without a verdict.
    message : str
        What is being waited for, or why the run ended.
    quota : Quota or None
        The last reading from a service.

    Examples
    --------
    >>> import mailverdict as mv
    >>> print(mv.start(["ada@example.org"], validation_type="regex").wait().progress)
    done: 1 of 1 settled; valid 1, risky 0, invalid 0, unknown 0
    """

    state: str = "running"
    total: int = 0
    settled: int = 0
    verdicts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(str, Verdict), 0))
    from_journal: int = 0
    submitted: int = 0
    errors: int = 0
    message: str = ""
    quota: Quota | None = None

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, well or not."""
        return self.state != "running"

    def __str__(self) -> str:
        """One line for a log."""
        parts = [f"{verdict} {count:,}" for verdict, count in self.verdicts.items()]
        tail = f" ({self.message})" if self.message else ""
        return f"{self.state}: {self.settled:,} of {self.total:,} settled; {', '.join(parts)}{tail}"


Listener = Callable[[Progress], None]


def wants_bar(*, progress: bool | str, is_free: bool) -> bool:
    """Whether to show a bar; ``"auto"`` shows one for work that uses a network, in a terminal or a notebook."""
    if progress != "auto":
        return bool(progress)
    return not is_free and (sys.stderr.isatty() or is_notebook())


def is_notebook() -> bool:
    """Whether a notebook's kernel runs this code; that IPython is imported does not show it."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell"


class ProgressBar:
    """A tqdm bar that shows a run; in a notebook the notebook's own."""

    def __init__(self, description: str) -> None:
        from tqdm.auto import tqdm  # noqa: PLC0415 - imports IPython if it is installed

        self.bar: Any = tqdm(total=0, unit="addr", desc=description, dynamic_ncols=True)

    def __call__(self, progress: Progress) -> None:
        """Show a snapshot."""
        if self.bar.total != progress.total:
            self.bar.reset(total=progress.total)
        self.bar.n = progress.settled
        shown = {k: v for k, v in progress.verdicts.items() if v}
        self.bar.set_postfix(shown, refresh=False)
        if progress.message:
            self.bar.set_postfix_str(
                ", ".join([*(f"{k}={v}" for k, v in shown.items()), progress.message]), refresh=False
            )
        self.bar.refresh()
        if progress.is_over:
            self.bar.close()
