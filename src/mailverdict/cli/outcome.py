"""How a verification of a file ended: the summary, the limits, and the exit status.

--fail-above unknown=5%      FailLimit("unknown", 5.0, is_share=True)
31 of 400 rows are unknown   unknown: 31 of 400 rows with an address (7.75%), more than 5%
exit status                  5, unless a signal, the quota or an error ended the run before
"""

from __future__ import annotations

import json
import platform
import re
import sys
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
        option = f"--fail-above {text!r}"
        if match is None or (not match[3] and "." in match[2]):
            raise SettingsError(
                f"{option}: give a share as unknown=5%, or a number of rows as invalid=100"
            )
        name, number, percent_sign = match.groups()
        if name not in BUCKETS:
            raise SettingsError(f"{option}: {name!r} is not one of {', '.join(BUCKETS)}")
        if percent_sign and float(number) > 100:
            raise SettingsError(f"{option}: a share is from 0% to 100%")
        return cls(name, float(number), bool(percent_sign))

    def excess(self, counts: Counts) -> str | None:
        """A sentence if there are more rows than allowed, else None."""
        rows = counts.buckets[self.name]
        whole = counts.rows
        what = "rows"
        if self.name != Status.MISSING:
            whole -= counts.buckets[str(Status.MISSING)]
            what = "rows with an address"
        sentence = f"{self.name}: {rows:,} of {whole:,} {what}"
        if not self.is_share:
            if rows <= self.limit:
                return None
            return f"{sentence}, more than {self.limit:,.0f}"
        share = 100 * rows / max(whole, 1)
        if share <= self.limit:
            return None
        return f"{sentence} ({share:.3g}%), more than {self.limit:g}%"


def parse_limits(texts: Sequence[str] | None) -> list[FailLimit]:
    """The limits, each given by an option of its own or several separated by commas."""
    limits = []
    for text in texts or ():
        limits += [FailLimit.parse(part) for part in text.split(",") if part.strip()]
    return limits


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
        sentences = [limit.excess(self.counts) for limit in self.limits]
        return [sentence for sentence in sentences if sentence is not None]

    def exit_status(self) -> int:
        if self.stopper.is_requested:
            return self.stopper.exit_status
        if isinstance(self.run.failure, QuotaExceeded):
            return QUOTA
        if self.run.failure is not None:
            return SERVICE
        if self.run.is_short_of_quota:
            return QUOTA
        if self.run.is_unanswered or self.run.has_defective_answers:
            return SERVICE
        if self.exceeded():
            return ABOVE_LIMIT
        return DONE

    def to_dict(self) -> dict[str, Any]:
        """The JSON summary."""
        # Only the JSON summary needs it.
        from ..checks.lists.update import describe_lists  # noqa: PLC0415

        run = self.run
        quota = None
        if run.quota is not None:
            quota = asdict(run.quota)
        lists = {}
        for entry in describe_lists():
            lists[entry["list"]] = str(entry["date"])
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
                "quota": quota,
            },
            "versions": {
                "mailverdict": mv.__version__,
                "python": platform.python_version(),
                "pandas": pd.__version__,
                "pyarrow": pa.__version__,
                "lists": lists,
            },
        }

    def show(self, *, as_json: bool, quiet: bool) -> None:
        """Print the summary: JSON on standard output, or text on stderr."""
        if as_json:
            print(json.dumps(self.to_dict(), ensure_ascii=False, indent=2))
            return
        if quiet:
            return
        counts = self.counts
        judged = sum(counts.buckets[verdict] for verdict in Verdict)
        title = count_of(counts.rows, "row")
        title += f", {judged:,} with a verdict by {self.validation_type}"
        log = STATUS.get()
        if log.is_json:
            log.write(title, summary=self.to_dict())
        else:
            log.write(f"{title}\n{render_counts(counts, self.validation_type)}")

    def how_to_go_on(self) -> str:
        """Only a journal keeps the answers for a later run."""
        if self.run.is_resumable:
            return "run the command again to continue"
        again = "the next run begins at the first row"
        if self.validation_type == ValidationType.REGEX:
            return again
        return f"{again}, unless --journal keeps the answers"

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
        exceeded = self.exceeded()
        for sentence in exceeded:
            print_error(sentence, ABOVE_LIMIT)
        if exceeded:
            sys.exit(ABOVE_LIMIT)
