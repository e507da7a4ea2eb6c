"""How a verification of a file ended: the summary, the limits, and the exit status."""

from __future__ import annotations

import json
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

import mailverdict as mv

from ..errors import QuotaExceeded, SettingsError
from ..frames.file_run import FileRun
from ..frames.results import BUCKETS
from ..model.words import Status, ValidationType, Verdict, count_of
from ..reports.counts import Counts
from ..reports.summary import render_counts
from ..runs.endings import describe_errors
from .status import STATUS, exit_with_error, print_error, print_status
from .stopper import Stopper
from .terminal import ABOVE_LIMIT, DONE, QUOTA, SERVICE


@dataclass(frozen=True)
class FailLimit:
    """How many rows of one kind a result may have, as given with ``--fail-above``."""

    name: str  # a verdict, or a status of rows without one
    limit: float  # rows, or percent
    is_share: bool

    @classmethod
    def parse(cls, text: str) -> FailLimit:
        """Read ``unknown=5%`` (of the rows with an address) or ``invalid=100`` (rows).

        >>> FailLimit.parse("unknown=5%")
        FailLimit(name='unknown', limit=5.0, is_share=True)
        """
        match = re.fullmatch(r"\s*(\w+)\s*=\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
        if match is None or (not match[3] and "." in match[2]):
            raise SettingsError(
                f"--fail-above {text!r}: give a share as unknown=5%, or a number of rows as invalid=100"
            )
        if match[1] not in BUCKETS:
            raise SettingsError(
                f"--fail-above {text!r}: {match[1]!r} is not one of {', '.join(BUCKETS)}"
            )
        if match[3] and float(match[2]) > 100:
            raise SettingsError(f"--fail-above {text!r}: a share is from 0% to 100%")
        return cls(match[1], float(match[2]), bool(match[3]))

    def excess(self, counts: Counts) -> str | None:
        """A sentence if there are more rows than allowed, else None."""
        missing = counts.buckets[str(Status.MISSING)]
        is_of_all = self.name == Status.MISSING
        rows, whole = counts.buckets[self.name], counts.rows - (0 if is_of_all else missing)
        found = 100 * rows / whole if self.is_share and whole else float(rows)
        if (self.is_share and not whole) or found <= self.limit:
            return None
        share = f" ({found:.3g}%)" if self.is_share else ""
        allowed = f"{self.limit:g}%" if self.is_share else f"{self.limit:,.0f}"
        what = "rows" if is_of_all else "rows with an address"
        return f"{self.name}: {rows:,} of {whole:,} {what}{share}, more than {allowed}"


def parse_limits(texts: Sequence[str] | None) -> list[FailLimit]:
    """The limits, each given by an option of its own or several separated by commas."""
    return [
        FailLimit.parse(each) for text in texts or () for each in text.split(",") if each.strip()
    ]


@dataclass
class FileOutcome:
    """What a verification found, cost and wrote, and how the command exits."""

    run: FileRun
    stopper: Stopper
    counts: Counts
    limits: Sequence[FailLimit]
    validation_type: ValidationType
    began_at: float  # of `time.perf_counter`
    source: str
    output: str | None = None  # where the table was written in the end
    report: str | None = None

    def exceeded(self) -> list[str]:
        """The limits that are exceeded, as sentences."""
        return [text for text in (each.excess(self.counts) for each in self.limits) if text]

    def exit_status(self) -> int:
        if self.stopper.is_requested:
            return self.stopper.exit_status
        if self.run.failure is not None:
            return QUOTA if isinstance(self.run.failure, QuotaExceeded) else SERVICE
        if self.run.is_short_of_quota:
            return QUOTA
        if self.run.is_unanswered or self.run.has_defective_answers:
            return SERVICE
        return ABOVE_LIMIT if self.exceeded() else DONE

    def to_dict(self) -> dict[str, Any]:
        """The JSON summary."""
        from ..checks.lists.update import describe_lists  # noqa: PLC0415 - only the JSON summary needs it

        run = self.run
        return {
            **self.counts.to_dict(),
            "validation_type": str(self.validation_type),
            "column": run.column,
            "input": self.source,
            "output": self.output,
            "report": self.report,
            "exit_status": self.exit_status(),
            "exceeded": self.exceeded(),
            "problem": run.problem(),
            "seconds": round(time.perf_counter() - self.began_at, 3),
            "cost": {
                "submitted": run.submitted,  # each costs a unit of the service's quota
                "newly_verified": run.newly_verified,
                "from_journal": run.from_journal,
                "quota": None if run.quota is None else asdict(run.quota),
            },
            "versions": {
                "mailverdict": mv.__version__,
                "python": platform.python_version(),
                "pandas": pd.__version__,
                "pyarrow": pa.__version__,
                "lists": {each["list"]: str(each["date"]) for each in describe_lists()},
            },
        }

    def show(self, *, as_json: bool, quiet: bool) -> None:
        """Print the summary: JSON on standard output, or text on stderr."""
        if as_json:
            print(json.dumps(self.to_dict(), ensure_ascii=False, indent=2))
        elif not quiet:
            counts, log = self.counts, STATUS.get()
            judged = sum(counts.buckets[verdict] for verdict in Verdict)
            title = f"{count_of(counts.rows, 'row')}, {judged:,} with a verdict by {self.validation_type}"
            if log.is_json:
                log.write(title, summary=self.to_dict())
            else:
                log.write(f"{title}\n{render_counts(counts, self.validation_type)}")

    def how_to_go_on(self) -> str:
        """Only a journal keeps the answers for a later run."""
        if self.run.is_resumable:
            return "run the command again to continue"
        again = "the next run begins at the first row"
        return (
            again
            if self.validation_type == ValidationType.REGEX
            else f"{again}, unless --journal keeps the answers"
        )

    def exit_early(self) -> None:
        """Exit with the status of what ended the verification early, or of an exceeded limit."""
        run = self.run
        left = count_of(self.counts.buckets[str(Status.PENDING)], "row is", "rows are")
        hint = f"{left} not checked yet; {self.how_to_go_on()}"
        if self.stopper.is_requested:
            exit_with_error(f"interrupted: {hint}", self.exit_status())
        if run.failure is not None:
            print_status(hint)
            exit_with_error(run.failure, self.exit_status())
        if run.is_short_of_quota:
            exit_with_error(f"today's quota is used up: {hint}", QUOTA)
        if run.is_unanswered:
            exit_with_error(f"the service has not answered for all rows: {hint}", SERVICE)
        if run.has_defective_answers:
            exit_with_error(describe_errors(run.errors), SERVICE)
        if run.errors:
            print_status(describe_errors(run.errors), "warning")
        if exceeded := self.exceeded():
            for each in exceeded[:-1]:
                print_error(each, ABOVE_LIMIT)
            exit_with_error(exceeded[-1], ABOVE_LIMIT)
