"""Where the bad addresses come from: `breakdown` counts a verified list by a column, or ranks all columns.

`groups` counts people by the values of columns, `differences` has the statistics, `origins` says what each column
tells. Here these become two tables: `GroupTable` has the groups of a column, for ``breakdown(out, "owner")``, and
`RankTable` a line for each column, for ``breakdown(out)``. Both are frames, print as text for a terminal, and show as
HTML in a notebook.
"""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..bounces.read import to_bounce_table
from ..checks.bounces.outcome import Outcome
from ..errors import SettingsError
from ..frames.planning import SeenAddresses
from ..frames.policy import POLICIES, read_decided
from ..frames.results import Results
from ..model.words import count_of, percent, printable_text, show_directions
from ..table.table import Frame
from ..theme import interval_bar, notebook
from .by_operator import COLUMNS, OperatorCounts
from .differences import FEW_BAD, elsewhere, shrink, wilson_intervals
from .groups import (
    NOBODY,
    Groups,
    mark_people,
    people_in,
    people_that,
    read_column,
    values_of_cells,
)
from .origins import (
    DIFFERS,
    LEFT_OUT,
    LITTLE,
    NOTHING,
    SAME_AS,
    WHAT,
    ColumnFinding,
    ListCounts,
    asked_cells,
    rank,
    shown_name,
)
from .outcomes import mailboxes_of
from .tables import CountTable

SHARES = ("invalid", "unknown", "sendable")  # that every table of groups has
OPERATOR_COLUMNS = tuple(name for name in COLUMNS if name != "share")
HEADS = ("95% interval", "elsewhere", "unknown", "sendable", "above average")  # after the share
SHOWN_GROUPS, SHOWN_COLUMNS = 30, 20
LONGEST_LABEL = 40  # characters of a group in a terminal
LONGEST_LINE = 1_000  # characters of a sentence


def breakdown(
    out: Frame,
    by: Hashable | Sequence[Hashable] | None = None,
    *,
    column: Hashable | None = None,
    what: str = "invalid",
    top: int | None = None,
    bounces: Any = None,
    prefix: str | None = None,
) -> Frame:
    """Show where the bad addresses of a verified list come from. Uses no network.

    With `by` the list is counted by one of your columns. Without it all of them are looked at, and those come first
    that explain most. People are counted, not rows: rows that reach the same mailbox count once, with the first of them
    that has a verdict.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    by : hashable or list of hashable, optional
        A column of yours, ``"domain"`` or ``"operator"`` (who runs the mail server), or a list of two to cross them.
        Dates are counted by year, quarter or month, numbers with many values in five groups of equally many rows,
        and empty cells as ``(missing)``. By default all columns are ranked.
    column : hashable, optional
        The column that was verified; by default the only one.
    what : {"invalid", "not_sendable", "disposable", "bounced"}, default "invalid"
        What is bad. Not sendable is what the balanced policy does not send.
    top : int, optional
        How many lines; by default all.
    bounces : DataFrame or path, optional
        For ``what="bounced"``: what `read_bounces` returned, or what it reads. People bounced if a report says that
        their mailbox or domain does not exist. All people with an address count as mailed; give only the rows that
        were.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        With `by` a line for each group, by its name in the index, first those with the most bad people above the
        average. `rows` (int64), `people` (int64, with a verdict), and for invalid, unknown, sendable, and `what`: the
        people (int64), and as float64 their share (`invalid_share`) with a 95 % interval (`invalid_low`,
        `invalid_high`; Wilson 1927). Then of `what`, float64: `elsewhere`, the share among all others;
        `difference` to them, where a small group counts less (empirical Bayes, Kleinman 1973); `above`, the bad people
        beyond what the average gives. For ``"operator"`` also distinct `addresses`, and of these `clear`, `catch_all`, `deferred`,
        `refused`, `no_answer`, `dead` (Int64), and `note` (object): why few answers are clear.

        Without `by` a line for each column of yours: `says` (object: ``differs``, ``little``, ``nothing``,
        ``the same as ...`` or ``left out: ...``), `groups` and `people` (int64), `strength` (float64: Cramér's V, 0 to
        1), `chance` (float64: that a list without any difference shows this one), `adjusted` (float64: corrected for
        having looked at many columns, Benjamini and Hochberg 1995; up to 0.04 a column differs), `worst` and `best`
        (object: a sentence each, or None).

        Both print as text and show as a table in notebooks. For a Polars or Arrow frame they are of that kind, and the
        index is the first columns.

    Raises
    ------
    ColumnError
        If there is no such column, it has not been verified, or nothing shows the mail servers for ``"operator"``.
    SettingsError, InputError
        If an argument is none of the above, `bounces` cannot be read, or a result column holds what `verify` never
        writes.

    Warns
    -----
    UserWarning
        If a column of yours is called domain or operator: it is the one that is counted.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> right = [f"p{number}@firm.example" for number in range(80)]
    >>> wrong = [f"p{number}@firm" for number in range(10)]
    >>> sources = ["Website"] * 60 + ["Trade fair"] * 30
    >>> df = pd.DataFrame({"email": right + wrong, "source": sources})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> mv.breakdown(out)
    90 people, 11.1% invalid
    source “Trade fair”: 33.3% invalid of 30, elsewhere 0%
    source “Website”: 0% invalid of 60, elsewhere 33.3%
    left out: the verified column and the result columns
    >>> mv.breakdown(out, "source")[["people", "invalid", "invalid_low", "invalid_high"]].round(2)
                people  invalid  invalid_low  invalid_high
    source
    Trade fair      30       10         0.19          0.51
    Website         60        0         0.00          0.06
    """
    check_arguments(what, top, bounces)
    rows = read_decided(out, column, prefix)
    asked: list[Hashable] = []
    if by is not None:
        asked = [*by] if isinstance(by, list) else [by]
        if not asked:
            raise SettingsError("by=[]: give one column, or a list of two to cross them")
    bounced = bounced_mailboxes(bounces) if what == "bounced" else None
    counts = ListCounts(POLICIES["balanced"], bounced, asked, ranks=by is None)
    counts.add(rows)
    table = table_of_counts(counts, what, rows)
    found: Frame = rows.data.convert(first_lines(table, top))
    return found


def check_arguments(what: str, top: int | None, bounces: Any) -> None:
    """Raise a `SettingsError` for what cannot be meant."""
    if what not in WHAT:
        raise SettingsError(f"what={what!r}: give one of {', '.join(WHAT)}")
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 0):
        raise SettingsError(f"top={top!r}: give a number of lines")
    if what == "bounced" and bounces is None:
        raise SettingsError("what='bounced' needs bounces=, what read_bounces returned or its path")
    if what != "bounced" and bounces is not None:
        raise SettingsError(f"bounces= goes with what='bounced', and what is {what!r}")


def bounced_mailboxes(bounces: Any) -> list[str]:
    """The mailboxes that do not exist, by reports."""
    reports = to_bounce_table(bounces).to_pylist()
    hard = [report["address"] for report in reports if report["outcome"] == Outcome.HARD]
    return sorted(set(mailboxes_of(pa.array(hard, pa.string()))) - {None})


def table_of_counts(counts: ListCounts, what: str, rows: Results | None = None) -> CountTable:
    """The table of what was counted; `rows` are needed where two columns are crossed."""
    if counts.asked:
        return group_table(counts, what, rows)
    return RankTable.of(rank(counts, what), counts, what)


def first_lines(table: CountTable, top: int | None) -> CountTable:
    """The first lines of a table."""
    if top is None:
        return table
    first = type(table)(table.head(top))
    first.attrs = table.attrs
    return first


# --- groups -----------------------------------------------------------------------------------------------------------


def group_table(counts: ListCounts, what: str, rows: Results | None = None) -> GroupTable:
    """The table of the column that was asked for; of two that are crossed, which needs the rows."""
    columns = [column.cut() for column in counts.asked.values()]
    groups = columns[0]
    if len(columns) == 2:
        assert rows is not None
        groups = cross(rows, counts, columns)
    table = GroupTable.of(counts, groups, what)
    if len(columns) == 1 and counts.operators is not None:
        table = with_operators(table, counts.operators)
    return table


def cross(rows: Results, counts: ListCounts, columns: Sequence[Groups]) -> Groups:
    """The groups of two columns, crossed; only those that have rows."""
    marks = mark_people(rows, SeenAddresses(), counts.policy, counts.bounced)
    codes = []
    for (name, column), groups in zip(counts.asked.items(), columns, strict=True):
        values = values_of_cells(asked_cells(rows, rows.data, name))
        codes.append(groups.find(read_column(values, column.kind)))
    first, second = columns
    width = len(second.labels)
    both, distinct = pd.factorize(codes[0] * width + codes[1])
    cells = np.bincount(both * (NOBODY + 1) + marks, minlength=len(distinct) * (NOBODY + 1))
    labels: list[Any] = [
        (first.labels[code // width], second.labels[code % width]) for code in distinct.tolist()
    ]
    note = "; ".join(filter(None, (first.note, second.note)))
    return replace(first, labels=labels, counts=cells.reshape(-1, NOBODY + 1), note=note)


def with_operators(table: GroupTable, operators: OperatorCounts) -> GroupTable:
    """With how many addresses of each operator got a clear answer, and why not more."""
    more = operators.table(len(operators.by_name))[list(OPERATOR_COLUMNS)].reindex(table.index)
    numbers = [name for name in OPERATOR_COLUMNS if name != "note"]
    more = more.astype(dict.fromkeys(numbers, "Int64"))
    more["note"] = more["note"].astype(object).where(more["note"].notna(), None)
    joined = GroupTable(pd.concat([pd.DataFrame(table), more], axis=1))
    joined.attrs = table.attrs
    return joined


def group_order(groups: Groups, what: str) -> list[int]:
    """The groups, first those with the most bad people above the average; ties by size, then by name."""
    people = people_in(groups.counts)
    above = bad_above_average(groups, what)
    places = range(len(people))
    return sorted(places, key=lambda at: (-above[at], -people[at], str(groups.labels[at])))


def bad_above_average(groups: Groups, what: str) -> Any:
    """For each group the bad people beyond what the average of all would give."""
    people = people_in(groups.counts)
    bad = people_that(groups.counts, what)
    return bad - people * (bad.sum() / max(people.sum(), 1))


class GroupTable(CountTable):
    """The groups of a column; the attribute `breakdown` in `attrs` has what is said of the whole list."""

    @classmethod
    def of(cls, counts: ListCounts, groups: Groups, what: str) -> GroupTable:
        """The table of some groups."""
        people = people_in(groups.counts)
        bad = people_that(groups.counts, what)
        columns: dict[str, Any] = {"rows": groups.counts.sum(axis=1), "people": people}
        for name in dict.fromkeys((*SHARES, what)):
            hits = people_that(groups.counts, name)
            low, high = wilson_intervals(hits, people)
            columns[name] = hits
            columns[f"{name}_share"] = hits / np.where(people > 0, people, np.nan)
            columns[f"{name}_low"] = low
            columns[f"{name}_high"] = high
        columns["elsewhere"] = elsewhere(people, bad)
        columns["difference"] = shrink(people, bad)
        columns["above"] = bad_above_average(groups, what)
        titles = [label_text(name) for name in counts.asked]
        index: Any = pd.Index(groups.labels, dtype=object, tupleize_cols=False, name=titles[0])
        if len(titles) == 2:
            index = pd.MultiIndex.from_tuples(index, names=titles)
        table = cls(pd.DataFrame(columns, index).iloc[group_order(groups, what)])
        notes = [f"{shown_name(titles[0])}: {groups.note}"] if groups.note else []
        table.attrs["breakdown"] = facts_of_list(counts, what, notes)
        return table

    def __repr__(self) -> str:
        """The first groups, for a terminal."""
        if "breakdown" not in self.attrs:
            return super().__repr__()
        return render_groups(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The first groups as HTML; every text is escaped."""
        if "breakdown" not in self.attrs:
            return super()._repr_html_()
        return notebook(html_groups(self))


class RankTable(CountTable):
    """A line for each column; the attribute `breakdown` in `attrs` has what is said of the whole list."""

    @classmethod
    def of(cls, findings: Sequence[ColumnFinding], counts: ListCounts, what: str) -> RankTable:
        """The table of what was found."""
        sizes = [0 if each.groups is None else len(each.groups.labels) for each in findings]
        columns = {
            "says": pd.Series([each.says for each in findings], dtype=object),
            "groups": pd.Series(sizes, dtype="int64"),
            "people": pd.Series([each.people for each in findings], dtype="int64"),
            "strength": pd.Series([each.strength for each in findings], dtype="float64"),
            "chance": pd.Series([each.chance for each in findings], dtype="float64"),
            "adjusted": pd.Series([each.adjusted for each in findings], dtype="float64"),
            "worst": pd.Series([each.worst for each in findings], dtype=object),
            "best": pd.Series([each.best for each in findings], dtype=object),
        }
        names = [label_text(each.name) for each in findings]
        index = pd.Index(names, dtype=object, name="column")
        table = cls(pd.DataFrame(columns).set_index(index))
        notes = [each.note for each in findings if each.note]
        table.attrs["breakdown"] = facts_of_list(counts, what, notes)
        return table

    def __repr__(self) -> str:
        """What was found, in sentences for a terminal."""
        if "breakdown" not in self.attrs:
            return super().__repr__()
        lines = [headline(self), *found_sentences(self), *other_sentences(self), *notes_of(self)]
        return "\n".join(printable_text(line, LONGEST_LINE) for line in lines)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The same as HTML; every text is escaped."""
        if "breakdown" not in self.attrs:
            return super()._repr_html_()
        found = [f"<li>{escaped(line)}</li>" for line in found_sentences(self)]
        listed = f"<ul>{''.join(found)}</ul>" if found else ""
        rest = html_lines([*other_sentences(self), *notes_of(self)])
        return notebook(f"<p>{escaped(headline(self))}</p>{listed}{rest}")


def facts_of_list(counts: ListCounts, what: str, notes: Sequence[str]) -> dict[str, Any]:
    """What is said of the whole list."""
    people = counts.people[None, :]
    return {
        "what": what,
        "rows": counts.rows,
        "people": int(people_in(people)[0]),
        "bad": int(people_that(people, what)[0]),
        "unanswered": counts.unanswered,
        "notes": list(notes),
    }


def label_text(name: Hashable) -> str:
    """The label of a column as text."""
    return "/".join(map(str, name)) if isinstance(name, tuple) else str(name)


# --- words ------------------------------------------------------------------------------------------------------------


def headline(table: pd.DataFrame) -> str:
    """How many people there are, and how many of them are bad."""
    facts = table.attrs["breakdown"]
    share = percent(facts["bad"], facts["people"])
    return f"{count_of(facts['people'], 'person', 'people')}, {share} {WHAT[facts['what']]}"


def found_sentences(table: pd.DataFrame) -> list[str]:
    """The columns that differ, each with its worst and its best group."""
    lines = []
    found = table[table["says"] == DIFFERS]
    for worst, best in zip(found["worst"], found["best"], strict=True):
        lines += [worst, best]
    return lines


def other_sentences(table: pd.DataFrame) -> list[str]:
    """Columns that tell the same, those that say nothing, and those that were not looked at, with the reason."""
    facts = table.attrs["breakdown"]
    by_says: dict[str, list[str]] = {}
    for name, says in table["says"].items():
        by_says.setdefault(says, []).append(str(name))
    lines = []
    for says, names in by_says.items():
        if says.startswith(SAME_AS):
            told = says.removeprefix(SAME_AS)
            lines += [f"{shown_name(name)} and {told} say the same" for name in names]
    others = facts["people"] - facts["bad"]
    if min(facts["bad"], others) < FEW_BAD:
        what = WHAT[facts["what"]]
        lines.append(
            f"{facts['bad']:,} {what} and {others:,} other people: too few to compare columns"
        )
    elif DIFFERS not in by_says:
        lines.append("no column says where they come from")
    if LITTLE in by_says:
        lines.append(f"differ by less than a percentage point: {names_text(by_says[LITTLE])}")
    if NOTHING in by_says:
        lines.append(f"say nothing: {names_text(by_says[NOTHING])}")
    left_out = []
    for says, names in by_says.items():
        if says.startswith(LEFT_OUT):
            left_out.append(f"{names_text(names)} ({says.removeprefix(LEFT_OUT)})")
    lines.append(
        f"left out: {'; '.join([*left_out, 'the verified column and the result columns'])}"
    )
    return lines


def names_text(names: Sequence[str]) -> str:
    """Column names in a row."""
    shown = ", ".join(name[:80] for name in names[:SHOWN_COLUMNS])
    more = len(names) - SHOWN_COLUMNS
    return f"{shown} and {more:,} more" if more > 0 else shown


def notes_of(table: pd.DataFrame) -> list[str]:
    """What must be known about the figures."""
    facts = table.attrs["breakdown"]
    notes = list(facts["notes"])
    if facts["what"] == "bounced":
        return [*notes, "all people with an address count as mailed"]
    if facts["unanswered"]:
        rows = count_of(facts["unanswered"], "row")
        notes.append(f"{rows} without a verdict (no address, or not checked) count as rows only")
    repeats = facts["rows"] - facts["people"] - facts["unanswered"]
    if repeats > 0:
        rows = count_of(repeats, "row repeats", "rows repeat")
        notes.append(f"{rows} a person of an earlier row, who counts once")
    return notes


def group_label(label: Any) -> str:
    """A group as text; of two columns that are crossed both."""
    return " / ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def render_groups(table: pd.DataFrame) -> str:
    """The table of groups for a terminal."""
    what = table.attrs["breakdown"]["what"]
    title = printable_text(group_label(tuple(table.index.names)), LONGEST_LABEL)
    shown = table.head(SHOWN_GROUPS)
    labels = [printable_text(group_label(label), LONGEST_LABEL) for label in shown.index]
    labels.insert(0, title)
    cells = [figures_of_group(row, what) for row in shown.to_dict("records")]
    cells.insert(0, ["rows", "people", WHAT[what], *HEADS])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    longest = max(map(len, labels))
    lines = [headline(table)]
    for label, texts in zip(labels, cells, strict=True):
        padded = [text.rjust(width) for text, width in zip(texts, widths, strict=True)]
        lines.append("  ".join([label.ljust(longest), *padded]).rstrip())
    if len(table) > SHOWN_GROUPS:
        lines.append(f"and {count_of(len(table) - SHOWN_GROUPS, 'more group')}")
    return "\n".join([*lines, *notes_of(table)])


def figures_of_group(row: Mapping[Any, Any], what: str) -> list[str]:
    """The figures of a group as texts: rows, people, share, and what `HEADS` names."""
    people = row["people"]
    if not people:
        return [f"{row['rows']:,}", "0", *[""] * (1 + len(HEADS))]
    low = 100 * row[f"{what}_low"]
    others = row["elsewhere"]
    above = round(row["above"])
    return [
        f"{row['rows']:,}",
        f"{people:,}",
        percent(row[what], people),
        f"{low:.1f} to {row[f'{what}_high']:.1%}",
        "" if pd.isna(others) else f"{others:.1%}",
        percent(row["unknown"], people),
        percent(row["sendable"], people),
        f"{above:+,}" if above else "0",
    ]


def html_groups(table: pd.DataFrame) -> str:
    """The table of groups as HTML, with a picture of each share."""
    what = table.attrs["breakdown"]["what"]
    heads = [*map(str, table.index.names), "rows", "people", WHAT[what], "", *HEADS]
    shown = table.head(SHOWN_GROUPS)
    largest = max([0.01, *shown[f"{what}_high"].dropna()])
    lines = []
    for label, row in zip(shown.index, shown.to_dict("records"), strict=True):
        labels = label if isinstance(label, tuple) else (label,)
        picture = interval_bar(
            row[f"{what}_share"],
            row[f"{what}_low"],
            row[f"{what}_high"],
            row["elsewhere"],
            largest,
        )
        figures = [f'<td class="mv-number">{text}</td>' for text in figures_of_group(row, what)]
        cells = [f"<td>{escaped(str(each)[:100])}</td>" for each in labels]
        cells += [*figures[:3], f"<td>{picture}</td>", *figures[3:]]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(f"<th>{escaped(text[:100])}</th>" for text in heads)
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    notes = notes_of(table)
    if len(table) > SHOWN_GROUPS:
        notes.insert(0, f"and {count_of(len(table) - SHOWN_GROUPS, 'more group')}")
    return f'<p>{escaped(headline(table))}</p><div class="mv-wide">{body}</div>{html_lines(notes)}'


def html_lines(lines: Iterable[str]) -> str:
    return "".join(f'<p class="mv-soft">{escaped(line)}</p>' for line in lines)


def escaped(text: str) -> str:
    return html.escape(show_directions(text[:LONGEST_LINE]))
