"""Earlier audits: the runs that a journal remembers, and the comparison with a file that was saved before."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, InputError
from ..frames.reading import Reading
from ..frames.results import Results, with_core
from ..frames.verify import describe_origin
from ..model.words import ValidationType, count_of
from ..reports.counts import checked_days, validation_types
from ..reports.summary import diff
from ..reports.wording import CHECKS, another_check, days_of_earlier
from ..runs.journal.journal import Journal
from ..runs.journal.recall import RecordedRun, parse_key
from ..table.columns import COLUMNS, REPAIR_COLUMNS, SUPPRESS_COLUMNS
from ..table.overwrite import find_verified, name_columns
from ..table.table import Table
from .choices import Choices
from .listing import CORE, AuditedRows
from .source import TYPES, read_file, readable
from .tidy import TidyColumn
from .wording import VERDICT_LABELS, date_text

MAX_RUNS = 20
MAX_SHOWN = 50  # addresses that changed
MAX_MOVES = 20  # from a verdict to another one
KINDS = {"added": "New in the list", "removed": "No longer in the list"}


def list_runs(journal: Path) -> list[RecordedRun]:
    """The last runs of a journal; none where there is no file, which is not created."""
    if not journal.exists():
        return []
    with Journal(journal) as opened:
        return [run for run in opened.runs(MAX_RUNS) if parse_key(run.key)[0]]


def describe_run(run: RecordedRun) -> dict[str, str]:
    """A run for the page."""
    return {
        "when": date_text(datetime.fromtimestamp(run.last, UTC)),
        "what": f"{count_of(run.settled, 'entry')}, {CHECKS[ValidationType(parse_key(run.key)[0])]}",
        "where": place_of_run(run),
    }


def place_of_run(run: RecordedRun) -> str:
    """Who checked."""
    return readable(parse_key(run.key)[1]) or "this computer"


def open_run(journal: Path, run: RecordedRun) -> AuditedRows:
    """The addresses of an earlier run with their answers; nothing is asked."""
    with Journal(journal) as opened:
        answers = opened.answers_of(run)
    if not len(answers):
        raise InputError(
            "this run has no answers any more: later runs asked for all its addresses again"
        )
    texts = answers["email"].combine_chunks()
    frame = pd.DataFrame({"email": texts.to_pandas(types_mapper=TYPES.get)})
    read = TidyColumn(frame["email"]).addresses(Choices())
    data = Table(frame, "email")
    columns = (*COLUMNS, *REPAIR_COLUMNS)
    labels = dict(zip(name_columns(data, None, columns), columns, strict=True))
    note = describe_origin(ValidationType(parse_key(run.key)[0]), "journal")
    return AuditedRows.of_run(Reading([data], [labels], [{}], read, texts, note), answers)


def read_audit(path: Path, name: str, column: Hashable) -> pd.DataFrame:
    """The file of an earlier audit, with the names of the result columns of `column`."""
    old = read_file(path, name).frame
    then = verified_column(old, column)
    if then is None:
        raise InputError(
            f"{readable(name)} is not a result of an earlier audit: it has no verdict column. "
            "Give a file that was downloaded here as “Everything”"
        )
    ours = [label for label in old.columns if label == then or str(label).startswith(f"{then}_")]
    renamed = old[ours].rename(columns={label: f"{column}{label[len(then) :]}" for label in ours})
    whole: pd.DataFrame = with_core(
        pa.Table.from_pandas(renamed, preserve_index=False), column, None
    ).to_pandas()
    rows = Results(whole, column, None, ("verdict", "status"))
    for each in (*CORE, *SUPPRESS_COLUMNS):
        _ = rows[each.name]  # an error for what is not a result
    return whole


def compare_with(
    old: pd.DataFrame, name: str, new: pd.DataFrame, column: Hashable
) -> dict[str, Any]:
    """What changed since an earlier audit, as figures and the first addresses that differ."""
    changed = diff(old, new, column)
    first = changed[
        (changed["change"] == "changed") & (changed["before"] != changed["after"])
    ].head(MAX_SHOWN)
    then = Results(old, column, None)
    since = f"since {name} ({days_of_earlier(checked_days(then))})"
    different = another_check(validation_types(then), validation_types(Results(new, column, None)))
    return {
        "name": name,
        "headline": f"{count_changes(changed)} {since}. {different}".strip(),
        "moves": describe_moves(changed)[:MAX_MOVES],
        "addresses": [
            {"address": readable(str(address), 80), "before": row["before"], "after": row["after"]}
            for address, row in first.iterrows()
        ],
    }


def count_changes(changed: pd.DataFrame) -> str:
    """How many addresses changed, are new and are gone."""
    counts = changed["change"].value_counts()
    words = {
        "changed": ("changed", "changed"),
        "added": ("is new", "are new"),
        "removed": ("is gone", "are gone"),
    }
    found = [
        f"{count_of(int(counts[key]), 'address')} {text[int(counts[key] != 1)]}"
        for key, text in words.items()
        if counts.get(key)
    ]
    return ", ".join(found) or "Nothing changed"


def describe_moves(changed: pd.DataFrame) -> list[dict[str, Any]]:
    """How many addresses changed from which verdict to which, the most frequent first."""
    moves = (
        changed.groupby(["change", "before", "after"], dropna=False, observed=True)
        .size()
        .sort_values(ascending=False)
    )
    shown = []
    for key, count in moves.items():
        change, before, after = cast("tuple[str, Any, Any]", key)
        what = KINDS.get(change) or f"{verdict_label(before)} → {verdict_label(after)}"
        if change == "changed" and before == after:
            what = f"{verdict_label(after)}, for another reason"
        detail = verdict_label(after if change == "added" else before) if change in KINDS else ""
        shown.append(
            {
                "what": what,
                "detail": detail,
                "rows": int(count),
                "verdict": after if isinstance(after, str) else "",
            }
        )
    return shown


def verdict_label(word: Any) -> str:
    return VERDICT_LABELS.get(word, str(word)) if isinstance(word, str) else ""


def verified_column(frame: pd.DataFrame, column: Hashable) -> Any:
    """The column that was verified in a table: the same as now, or the only one; None if there is none."""
    for prefix in (f"{column}_", None):
        with suppress(ColumnError):
            return find_verified(frame, prefix)[0] if isinstance(column, str) else None
    return None
