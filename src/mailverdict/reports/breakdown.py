"""Where bad addresses come from: `breakdown` counts by a column, or ranks all columns.

`groups` counts people by the values of columns, `differences` has the statistics, `origins` says
what each column tells. Here these become two tables: `GroupTable` has the groups of a column, for
``breakdown(out, "owner")``, and `RankTable` a line for each column, for ``breakdown(out)``. Both
are frames, print as text for a terminal, and show as HTML in a notebook.
"""

from __future__ import annotations

import html
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..bounces.read import to_bounce_table
from ..checks.bounces.outcome import Outcome
from ..errors import SettingsError
from ..frames.policy import POLICIES, read_decided
from ..frames.results import Results
from ..frames.seen_addresses import SeenAddresses
from ..model.words import count_of, percent, printable_text, show_directions
from ..table.table import Frame
from ..theme import interval_bar, notebook
from .by_operator import COLUMNS, OperatorCounts
from .differences import FEW_BAD, elsewhere, shrink, wilson_intervals
from .groups import (
    WIDTH,
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
    LONGEST_NAME,
    NOTHING,
    SAME_AS,
    WHAT,
    ColumnFinding,
    ListCounts,
    asked_cells,
    label_text,
    rank,
    shown_name,
)
from .outcomes import mailboxes_of
from .tables import CountTable

SHARES = ("invalid", "unknown", "sendable")  # that every table of groups has
HEADS = ("95% interval", "elsewhere", "unknown", "sendable", "above average")  # after the share
# What a table of operators has besides.
CLEAR_SHARE = "clear_share"
CLEAR = "clear answers"
WHY_NOT = "why not more"
SHOWN_GROUPS = 30
SHOWN_COLUMNS = 20
LONGEST_LABEL = 40  # characters of a group in a terminal
LONGEST_CELL = 100  # and in a notebook
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

    With `by` the list is counted by one of your columns. Without it all of them are looked at, and
    those come first that explain most. People are counted, not rows: rows that reach the same
    mailbox count once, with the first of them that has a verdict.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    by : hashable or list of hashable, optional
        A column of yours, ``"domain"`` or ``"operator"`` (who runs the mail server), or a list of
        two to cross them. Dates are counted by year, quarter or month, numbers with many values in
        five groups of equally many rows, and empty cells as ``(missing)``. By default all columns
        are ranked.
    column : hashable, optional
        The column that was verified; by default the only one.
    what : {"invalid", "not_sendable", "disposable", "bounced"}, default "invalid"
        What is bad. Not sendable is what the balanced policy does not send.
    top : int, optional
        How many lines; by default all.
    bounces : DataFrame or path, optional
        For ``what="bounced"``: what `read_bounces` returned, or what it reads. People bounced if a
        report says that their mailbox or domain does not exist. All people with an address count as
        mailed; give only the rows that were.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        With `by` a line for each group, by its name in the index, first those with the most bad
        people above the average. `rows` (int64), `people` (int64, with a verdict), and for invalid,
        unknown, sendable, and `what`: the people (int64), and as float64 their share
        (`invalid_share`) with a 95 % interval (`invalid_low`, `invalid_high`; Wilson 1927). Then of
        `what`, float64: `elsewhere`, the share among all others; `difference` to them, where a
        small group counts less (empirical Bayes, Kleinman 1973); `above`, the bad people beyond
        what the average gives.

        For ``"operator"`` also distinct `addresses` (Int64, missing where the mail servers are not
        known), and of these: `clear`, the answer says whether the mailbox exists (without SMTP:
        whether the domain receives mail), with `clear_share` (float64); `catch_all`, accepted by a
        server that accepts every address; `deferred`, the server asked for another attempt
        (greylisting); `refused`, it refused the computer that checked, or the sender; `no_answer`,
        time-out, closed port, an answer that shows nothing; `dead`, of the clear ones those that
        cannot receive mail. `note` (object, or None) says why less than half is clear, and cites
        what the packaged table says of the operator with its source and date.

        Without `by` a line for each column of yours: `says` (object: ``differs``, ``little``,
        ``nothing``, ``the same as ...`` or ``left out: ...``), `groups` and `people` (int64),
        `strength` (float64: Cramér's V, 0 to 1), `chance` (float64: that a list without any
        difference shows this one), `adjusted` (float64: corrected for having looked at many
        columns, Benjamini and Hochberg 1995; up to 0.04 a column differs), `worst` and `best`
        (object: a sentence each, or None).

        Both print as text and show as a table in notebooks. For a Polars or Arrow frame they are of
        that kind, and the index is the first columns.

    Raises
    ------
    ColumnError
        If there is no such column, it has not been verified, or nothing shows the mail servers for
        ``"operator"``.
    SettingsError, InputError
        If an argument is none of the above, `bounces` cannot be read, or a result column holds what
        `verify` never writes.

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
    columns: list[Hashable] = []
    if by is not None:
        columns = check_by(by)
    bounced = None
    if what == "bounced":
        bounced = bounced_mailboxes(bounces)
    counts = ListCounts(POLICIES["balanced"], bounced, columns, ranks=by is None)
    counts.add(rows)
    table = first_lines(table_of_counts(counts, what, rows), top)
    result: Frame = rows.data.convert(table)
    return result


def check_arguments(what: str, top: int | None, bounces: Any) -> None:
    """Raise a `SettingsError` for what cannot be meant."""
    if what not in WHAT:
        raise SettingsError(f"what={what!r}: give one of {', '.join(WHAT)}")
    is_number = isinstance(top, int) and not isinstance(top, bool)
    if top is not None and (not is_number or top < 0):
        raise SettingsError(f"top={top!r}: give a number of lines")
    if what == "bounced" and bounces is None:
        raise SettingsError("what='bounced' needs bounces=, what read_bounces returned or its path")
    if what != "bounced" and bounces is not None:
        raise SettingsError(f"bounces= goes with what='bounced', and what is {what!r}")


def check_by(by: Any) -> list[Hashable]:
    """The columns to count by: one, or two that are crossed."""
    columns = [by]
    if isinstance(by, list):
        columns = by
    shown = f"by={by!r:.200}"
    if not all(isinstance(name, Hashable) for name in columns):
        raise SettingsError(f"{shown}: give the name of a column, or a list of two names")
    if len(columns) not in (1, 2):
        raise SettingsError(f"{shown}: give one column, or a list of two to cross them")
    if len(set(columns)) < len(columns):
        raise SettingsError(f"{shown} names a column twice: give it once, or another one")
    return columns


def bounced_mailboxes(bounces: Any) -> list[str]:
    """The mailboxes that do not exist, by reports."""
    addresses = []
    for report in to_bounce_table(bounces).to_pylist():
        if report["outcome"] == Outcome.HARD:
            addresses.append(report["address"])
    mailboxes = set(mailboxes_of(pa.array(addresses, pa.string())))
    return sorted(mailboxes - {None})


def table_of_counts(counts: ListCounts, what: str, rows: Results | None = None) -> CountTable:
    """The table of what was counted; `rows` are needed where two columns are crossed."""
    if counts.asked:
        return group_table(counts, what, rows)
    return RankTable.of(rank(counts, what), counts, what)


def first_lines(table: CountTable, top: int | None) -> CountTable:
    if top is None:
        return table
    first = type(table)(table.head(top))
    first.attrs = table.attrs
    return first


# --- groups ---------------------------------------------------------------------------------------


def group_table(counts: ListCounts, what: str, rows: Results | None = None) -> GroupTable:
    """The table of the column that was asked for; of two that are crossed, which needs the rows."""
    columns = [column.cut() for column in counts.asked.values()]
    if len(columns) == 2:
        assert rows is not None
        return GroupTable.of(counts, cross(rows, counts, columns), what)
    table = GroupTable.of(counts, columns[0], what)
    if counts.operators is None:
        return table
    return with_operators(table, counts.operators)


def cross(rows: Results, counts: ListCounts, columns: Sequence[Groups]) -> Groups:
    """The groups of two columns, crossed; only those that have rows."""
    marks = mark_people(rows, SeenAddresses(), counts.policy, counts.bounced)
    codes = []
    for name, groups in zip(counts.asked, columns, strict=True):
        cells = asked_cells(rows, rows.data, name)
        values = read_column(values_of_cells(cells), counts.asked[name].kind)
        codes.append(groups.find(values))
    first, second = columns
    width = len(second.labels)
    pairs, distinct = pd.factorize(codes[0] * width + codes[1])
    labels: list[Any] = []
    for pair in distinct.tolist():
        place, other = divmod(pair, width)
        labels.append((first.labels[place], second.labels[other]))
    cells_of_table = np.bincount(pairs * WIDTH + marks, minlength=len(labels) * WIDTH)
    notes = filter(None, (first.note, second.note))
    return replace(
        first,
        labels=labels,
        counts=cells_of_table.reshape(-1, WIDTH),
        note="; ".join(notes),
    )


def with_operators(table: GroupTable, operators: OperatorCounts) -> GroupTable:
    """With how many addresses of each operator got a clear answer, and why not more."""
    answers = operators.table().reindex(table.index)
    for name in COLUMNS:
        if name not in ("share", "note"):
            answers[name] = answers[name].astype("Int64")
    note = answers["note"].astype(object)
    answers["note"] = note.where(note.notna(), None)
    answers = answers.rename(columns={"share": CLEAR_SHARE})
    joined = GroupTable(pd.concat([pd.DataFrame(table), answers], axis=1))
    joined.attrs = table.attrs
    return joined


def group_order(groups: Groups, what: str) -> list[int]:
    """The order of the groups: the most bad people above the average, then size, then name."""
    above = bad_above_average(groups, what)
    names = np.array(list(map(str, groups.labels)), np.str_)
    order: list[int] = np.lexsort((names, -groups.people, -above)).tolist()
    return order


def bad_above_average(groups: Groups, what: str) -> Any:
    """For each group the bad people beyond what the average of all would give."""
    people = groups.people
    bad = groups.people_that(what)
    average = bad.sum() / max(people.sum(), 1)
    return bad - people * average


class GroupTable(CountTable):
    """The groups of a column; `attrs["breakdown"]` has what is said of the whole list."""

    @classmethod
    def of(cls, counts: ListCounts, groups: Groups, what: str) -> GroupTable:
        """The table of some groups."""
        people = groups.people
        bad = groups.people_that(what)
        trials = np.where(people > 0, people, np.nan)
        columns: dict[str, Any] = {}
        columns["rows"] = groups.counts.sum(axis=1)
        columns["people"] = people
        for name in dict.fromkeys((*SHARES, what)):
            hits = groups.people_that(name)
            low, high = wilson_intervals(hits, people)
            columns[name] = hits
            columns[f"{name}_share"] = hits / trials
            columns[f"{name}_low"] = low
            columns[f"{name}_high"] = high
        columns["elsewhere"] = elsewhere(people, bad)
        columns["difference"] = shrink(people, bad)
        columns["above"] = bad_above_average(groups, what)
        titles = [label_text(name) for name in counts.asked]
        labels: Any = groups.labels
        if len(titles) == 2:
            index: Any = pd.MultiIndex.from_tuples(labels, names=titles)
        else:
            index = pd.Index(labels, dtype=object, name=titles[0])
        order = group_order(groups, what)
        table = cls(pd.DataFrame(columns, index).iloc[order])
        notes = []
        if groups.note:
            notes.append(f"{shown_name(titles[0])}: {groups.note}")
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


RANK_COLUMNS: dict[str, Any] = {
    "says": object,
    "groups": "int64",
    "people": "int64",
    "strength": "float64",
    "chance": "float64",
    "adjusted": "float64",
    "worst": object,
    "best": object,
}


class RankTable(CountTable):
    """A line for each column; `attrs["breakdown"]` has what is said of the whole list."""

    @classmethod
    def of(cls, findings: Sequence[ColumnFinding], counts: ListCounts, what: str) -> RankTable:
        """The table of what was found."""
        lines = []
        names = []
        notes = []
        for finding in findings:
            line = {name: getattr(finding, name, None) for name in RANK_COLUMNS}
            line["groups"] = 0
            if finding.groups is not None:
                line["groups"] = len(finding.groups.labels)
            lines.append(line)
            names.append(label_text(finding.name))
            if finding.note:
                notes.append(finding.note)
        index = pd.Index(names, dtype=object, name="column")
        columns = pd.DataFrame(lines, index, list(RANK_COLUMNS), dtype=object)
        table = cls(columns.astype(RANK_COLUMNS))
        table.attrs["breakdown"] = facts_of_list(counts, what, notes)
        return table

    def __repr__(self) -> str:
        """What was found, in sentences for a terminal."""
        if "breakdown" not in self.attrs:
            return super().__repr__()
        lines = [headline(self)]
        lines += found_sentences(self)
        lines += other_sentences(self)
        lines += notes_of(self)
        shown = [printable_text(line, LONGEST_LINE) for line in lines]
        return "\n".join(shown)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """The same as HTML; every text is escaped."""
        if "breakdown" not in self.attrs:
            return super()._repr_html_()
        parts = [f"<p>{escaped(headline(self))}</p>"]
        sentences = found_sentences(self)
        if sentences:
            items = [f"<li>{escaped(sentence)}</li>" for sentence in sentences]
            parts += ["<ul>", *items, "</ul>"]
        parts += html_lines([*other_sentences(self), *notes_of(self)])
        return notebook("".join(parts))


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


# --- words ----------------------------------------------------------------------------------------


def headline(table: pd.DataFrame) -> str:
    """How many people there are, and how many of them are bad."""
    facts = table.attrs["breakdown"]
    share = percent(facts["bad"], facts["people"])
    return f"{count_of(facts['people'], 'person', 'people')}, {share} {WHAT[facts['what']]}"


def found_sentences(table: pd.DataFrame) -> list[str]:
    """The columns that differ, each with its worst and its best group."""
    sentences = []
    differing = table[table["says"] == DIFFERS]
    for worst, best in zip(differing["worst"], differing["best"], strict=True):
        sentences += [worst, best]
    return sentences


def other_sentences(table: pd.DataFrame) -> list[str]:
    """Columns that tell the same, that say nothing, and that were left out, with the reason."""
    facts = table.attrs["breakdown"]
    by_says: dict[str, list[str]] = {}
    for name, says in table["says"].items():
        by_says.setdefault(says, []).append(str(name))
    lines = []
    left_out = []
    for says, names in by_says.items():
        if says.startswith(SAME_AS):
            other = says.removeprefix(SAME_AS)
            lines += [f"{shown_name(name)} and {other} say the same" for name in names]
        elif says.startswith(LEFT_OUT):
            reason = says.removeprefix(LEFT_OUT)
            left_out.append(f"{names_text(names)} ({reason})")
    bad = facts["bad"]
    others = facts["people"] - bad
    if min(bad, others) < FEW_BAD:
        what = WHAT[facts["what"]]
        lines.append(f"{bad:,} {what} and {others:,} other people: too few to compare columns")
    elif DIFFERS not in by_says:
        lines.append("no column says where they come from")
    if LITTLE in by_says:
        lines.append(f"differ by less than a percentage point: {names_text(by_says[LITTLE])}")
    if NOTHING in by_says:
        lines.append(f"say nothing: {names_text(by_says[NOTHING])}")
    left_out.append("the verified column and the result columns")
    lines.append(f"left out: {'; '.join(left_out)}")
    return lines


def names_text(names: Sequence[str]) -> str:
    """Column names in a row."""
    shown = ", ".join(name[:LONGEST_NAME] for name in names[:SHOWN_COLUMNS])
    more = len(names) - SHOWN_COLUMNS
    if more > 0:
        return f"{shown} and {more:,} more"
    return shown


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
    """A group as text for a terminal; of two columns that are crossed both."""
    text = str(label)
    if isinstance(label, tuple):
        text = " / ".join(map(str, label))
    return printable_text(text, LONGEST_LABEL)


def render_groups(table: pd.DataFrame) -> str:
    """The groups for a terminal; below an operator stands why few of its answers are clear."""
    what = table.attrs["breakdown"]["what"]
    shown = table.head(SHOWN_GROUPS)
    title = group_label(tuple(table.index.names))
    heads = [title, "rows", "people", WHAT[what], *HEADS]
    if CLEAR_SHARE in shown:
        heads.append(CLEAR)
    cells = [heads]
    notes = [None]
    for label, row in zip(shown.index, shown.to_dict("records"), strict=True):
        cells.append([group_label(label), *figures_of_group(row, what)])
        notes.append(row.get("note"))
    widths = []
    for column in zip(*cells, strict=True):
        widths.append(max(map(len, column)))
    lines = [headline(table)]
    for (label, *figures), note in zip(cells, notes, strict=True):
        line = label.ljust(widths[0])
        for figure, width in zip(figures, widths[1:], strict=True):
            line += f"  {figure:>{width}}"
        lines.append(line.rstrip())
        if note:
            lines.append(f"  {printable_text(note, LONGEST_LINE)}")
    lines += more_groups(table)
    lines += notes_of(table)
    return "\n".join(lines)


def more_groups(table: pd.DataFrame) -> list[str]:
    """A line about groups that are not shown."""
    more = len(table) - SHOWN_GROUPS
    if more > 0:
        return [f"and {count_of(more, 'more group')}"]
    return []


def figures_of_group(row: Mapping[Any, Any], what: str) -> list[str]:
    """The figures of a group as texts, by `HEADS`; of an operator also its clear answers."""
    people = row["people"]
    figures = [f"{row['rows']:,}", f"{people:,}"]
    if people:
        low = 100 * row[f"{what}_low"]
        high = row[f"{what}_high"]
        others = ""
        if not pd.isna(row["elsewhere"]):
            others = f"{row['elsewhere']:.1%}"
        above = "0"
        if round(row["above"]):
            above = f"{row['above']:+,.0f}"
        figures += [
            percent(row[what], people),
            f"{low:.1f} to {high:.1%}",
            others,
            percent(row["unknown"], people),
            percent(row["sendable"], people),
            above,
        ]
    else:
        figures += [""] * (1 + len(HEADS))
    if CLEAR_SHARE in row:
        clear = ""
        if not pd.isna(row["addresses"]):
            clear = f"{row['clear']:,} of {row['addresses']:,}"
        figures.append(clear)
    return figures


def html_groups(table: pd.DataFrame) -> str:
    """The table of groups as HTML, with a picture of each share."""
    what = table.attrs["breakdown"]["what"]
    shown = table.head(SHOWN_GROUPS)
    heads = list(map(str, table.index.names))
    heads += ["rows", "people", WHAT[what], "", *HEADS]
    if CLEAR_SHARE in shown:
        heads += [CLEAR, WHY_NOT]
    largest = max([0.01, *shown[f"{what}_high"].dropna()])
    parts = [f"<p>{escaped(headline(table))}</p>", '<div class="mv-wide"><table><thead><tr>']
    parts += [f"<th>{escaped(head[:LONGEST_CELL])}</th>" for head in heads]
    parts.append("</tr></thead><tbody>")
    for label, row in zip(shown.index, shown.to_dict("records"), strict=True):
        labels = (label,)
        if isinstance(label, tuple):
            labels = label
        share = row[f"{what}_share"]
        low = row[f"{what}_low"]
        high = row[f"{what}_high"]
        picture = interval_bar(share, low, high, row["elsewhere"], largest)
        figures = [f'<td class="mv-number">{text}</td>' for text in figures_of_group(row, what)]
        figures.insert(3, f"<td>{picture}</td>")  # behind the share
        parts.append("<tr>")
        for text in labels:
            parts.append(f"<td>{escaped(str(text)[:LONGEST_CELL])}</td>")
        parts += figures
        if CLEAR_SHARE in shown:
            parts.append(f"<td>{escaped(row['note'] or '')}</td>")
        parts.append("</tr>")
    parts.append("</tbody></table></div>")
    parts += html_lines(more_groups(table))
    parts += html_lines(notes_of(table))
    return "".join(parts)


def html_lines(lines: Sequence[str]) -> list[str]:
    return [f'<p class="mv-soft">{escaped(line)}</p>' for line in lines]


def escaped(text: str) -> str:
    return html.escape(show_directions(text[:LONGEST_LINE]))
