"""A report as one self-contained HTML page: every text escaped, no outside resource.

A page of its own has a small script that sorts and filters its tables; its Content-Security-Policy allows that script
and the style sheet by their hashes and nothing else. Inside a notebook there is no script.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from ..frames.policy import ACTION_MEANING
from ..frames.repair import ACCEPTED
from ..model.words import SOURCE_MEANING, ValidationType, count_of, percent
from ..theme import LABELS, MARK_OF, MARKS, badge, scoped, stylesheet, symbol
from .facts import OutcomeFacts, ReportFacts, TrendFacts
from .wording import (
    CHECKS,
    another_check,
    capitalize,
    days_of,
    days_of_earlier,
    how_to_verify_again,
    made_checks,
    outcome_label,
    reason_label,
    repair_label,
    title_of,
)

SCOPE = ".mv-report.mv-report"  # twice, to come before the style sheet of JupyterLab
FEW = 12  # rows of a long table inside a notebook
PRINTED, PRINTED_MORE = 5, 9  # rows of long tables on paper, as in page.css
Cell = str  # HTML


# --- elements -------------------------------------------------------------------------------------------------------


def text(value: object) -> str:
    return html.escape(str(value))


@dataclass(frozen=True)
class TableHead:
    """The head of a column, and how its cells are set.

    Kinds: ``text`` and ``words`` (a sentence) for our own texts, ``data`` and ``code`` for other texts, ``number``,
    ``bars``, and ``gauge`` for a bar that repeats a number and is left out where there is little room.
    """

    label: str
    kind: str = "text"


@dataclass(frozen=True)
class Sorted:
    """A cell that is sorted by another value than its text."""

    cell: Cell
    value: object


def table(
    name: str, columns: Sequence[TableHead], rows: Iterable[Sequence[Cell | Sorted]], *, printed: int | None = None
) -> str:
    """A table that can be sorted; of a long one only the first rows are printed, as page.css says."""
    head = "".join(f'<th scope="col" class="mv-{each.kind}">{text(each.label)}</th>' for each in columns)
    body = "".join(f"<tr>{''.join(map(cell_of, columns, row))}</tr>" for row in rows)
    kinds = "mv-sort" if printed is None else f"mv-sort mv-print-{printed}"
    cut = f'<p class="mv-printed mv-soft">The first {printed} of {body.count("<tr>"):,} are printed.</p>'
    return (
        f'<div class="mv-scroll"><table class="{kinds}" aria-label="{text(name)}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{cut if printed is not None and body.count('<tr>') > printed else ''}"
    )


def cell_of(column: TableHead, cell: Cell | Sorted) -> str:
    shown, key = (cell.cell, f' data-sort="{text(cell.value)}"') if isinstance(cell, Sorted) else (cell, "")
    return f'<td class="mv-{column.kind}"{key}>{shown}</td>'


def number(count: int) -> Sorted:
    return Sorted(f"{count:,}", count)


def share_cell(count: int, whole: int) -> Sorted:
    return Sorted(text(percent(count, whole)), f"{count / max(whole, 1):.6f}")


def meter(name: str, count: int, whole: int) -> Sorted:
    """A bar for one figure; sorted by it."""
    width = 100 * count / max(whole, 1)
    bar = (
        '<svg class="mv-small" height="8" aria-hidden="true"><rect class="mv-track" width="100%" height="8"/>'
        f'<rect class="mv-{name}" width="{max(width, 1) if count else 0:.2f}%" height="8"/></svg>'
    )
    return Sorted(bar, count)


def stacked_bar(counts: dict[str, int], label: str, kind: str, height: int) -> str:
    """One bar with a part for each verdict; rows without a verdict are one part."""
    whole, at, pieces = sum(counts.values()) or 1, 0.0, []
    for name, count in counts.items():
        width = 100 * count / whole
        if count:
            hint = f"<title>{text(LABELS[name])}: {count:,}</title>"
            pieces.append(f'<rect class="mv-{name}" x="{at:.2f}%" width="{width:.2f}%" height="100%">{hint}</rect>')
        at += width
    said = ", ".join(f"{LABELS[name]} {count:,}" for name, count in counts.items() if count)
    return (
        f'<svg class="{kind}" height="{height}" role="img" aria-label="{text(label)}: {said}">{"".join(pieces)}</svg>'
    )


def by_mark(counts: dict[str, int]) -> dict[str, int]:
    """Rows by verdict, and those without one together."""
    marked = dict.fromkeys(MARKS, 0)
    for name, count in counts.items():
        marked[MARK_OF[name]] += count
    return marked


# --- the sections -----------------------------------------------------------------------------------------------------


def render_page(facts: ReportFacts) -> str:
    """The whole document."""
    style = f"{page_style()}"
    # The ground of the document is that of the report, in the scheme that the browser asks for.
    style += "html{color-scheme:light dark}body{margin:0}body.mv-report{min-height:100vh}"
    script = read_file("page.js")
    policy = f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'"
    policy += "; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{text(title_of(facts))}</title><style>{style}</style></head>"
        f'<body class="mv-report"><main>{sections(facts, is_static=False)}</main>'
        f"<script>{script}</script></body></html>"
    )


def render_section(facts: ReportFacts) -> str:
    """The same without the document and the script, for a notebook; of long tables the first rows."""
    style = f"<style>{page_style()}</style>"
    return f'{style}<div class="mv-report">{sections(facts, is_static=True)}</div>'


def digest(content: str) -> str:
    """The hash by which a Content-Security-Policy allows an inline element."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def page_style() -> str:
    return stylesheet(SCOPE) + scoped(read_file("page.css"), SCOPE)


def read_file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def sections(facts: ReportFacts, *, is_static: bool) -> str:
    parts = (
        head(facts),
        actions(facts),
        reasons(facts),
        next_steps(facts),
        cleaning(facts),
        trend(facts),
        outcomes(facts),
        domains(facts, FEW if is_static else len(facts.domains)),
        method(facts),
    )
    return "".join(parts)


def head(facts: ReportFacts) -> str:
    """The list, the share that can be mailed, and a picture of all rows."""
    checks = made_checks(facts)
    known = (
        f"column {facts.column}" if facts.name else "",
        count_of(facts.rows, "row"),
        count_of(facts.addresses, "distinct address", "distinct addresses"),
        f"check: {checks}" if checks else "",
    )
    days = (
        f"checked {days_of(facts.checked)}" if facts.checked else "",
        f"report of {facts.made_at:%Y-%m-%d %H:%M} UTC",
    )
    parts = [text(each) for each in known if each] + [f'<span class="mv-day">{each}</span>' for each in days if each]
    counts = by_mark(facts.buckets)
    said = f"{facts.actions['send']:,} of {count_of(facts.rows, 'row')}, by the policy “{facts.policy.name}”."
    if empty := facts.buckets["missing"]:
        said += f" {count_of(empty, 'row has', 'rows have')} no address."
    legend = "".join(
        f"<li>{symbol(name)} {LABELS[name]} <b>{count:,}</b> <span>({percent(count, facts.rows)})</span></li>"
        for name, count in counts.items()
        if count or name != "unchecked"
    )
    return (
        f"<h1>{text(title_of(facts))}</h1>"
        f'<p class="mv-soft">{" · ".join(parts)}</p>'
        f'<div class="mv-hero"><p class="mv-figure">{text(mailable(facts))} can be mailed</p>'
        f"<p>{text(said)}{trend_line(facts)}</p>{stacked_bar(counts, 'Rows by verdict', 'mv-picture', 32)}"
        f'<ul class="mv-legend" role="list">{legend}</ul></div>'
    )


def mailable(facts: ReportFacts | TrendFacts) -> str:
    """The share of all rows that can be mailed."""
    return percent(facts.actions["send"], facts.rows)


def trend_line(facts: ReportFacts) -> str:
    if facts.trend is None:
        return ""
    points = 100 * (facts.mailable - facts.trend.mailable)
    since = f" of {days_of(facts.trend.checked)}" if facts.trend.checked else " (day not recorded)"
    how = (
        "as many as"
        if abs(points) < 0.05
        else f"{abs(points):.1f} percentage points {'more' if points > 0 else 'less'} than"
    )
    return text(f" That is {how} in the earlier audit{since} ({mailable(facts.trend)}).")


def actions(facts: ReportFacts) -> str:
    """Rows by action."""
    columns = [
        TableHead("Action"),
        TableHead("Rows", "number"),
        TableHead("Share of rows", "number"),
        TableHead("", "gauge"),
        TableHead("What it means", "words"),
    ]
    rows = (
        (
            badge(name),
            number(count),
            share_cell(count, facts.rows),
            meter(name, count, facts.rows),
            text(ACTION_MEANING[name]),
        )
        for name, count in facts.actions.items()
    )
    return f"<section><h2>What to do</h2>{table('What to do', columns, rows)}</section>"


def reasons(facts: ReportFacts) -> str:
    """Why the other rows cannot simply be mailed."""
    if not facts.reasons:
        return ""
    columns = [
        TableHead("Reason"),
        TableHead("Verdict"),
        TableHead("Rows", "number"),
        TableHead("Share of rows", "number"),
        TableHead("", "gauge"),
        TableHead("What it means", "words"),
    ]
    most = max(count for *_, count in facts.reasons)
    rows = (
        (
            *(text(reason_label(reason)), badge(bucket, MARKS[MARK_OF[bucket]].label), number(count)),
            *(share_cell(count, facts.rows), meter(bucket, count, most), text(capitalize(meaning))),
        )
        for bucket, reason, meaning, count in facts.reasons
    )
    flagged = "; ".join(f"{reason_label(flag)}: {count:,}" for flag, count in facts.flags.items() if count)
    note = f'<p class="mv-soft">Rows by flag, whatever their verdict. {text(flagged)}.</p>' if flagged else ""
    return (
        f"<section><h2>Why not the others</h2>{table('Reasons', columns, rows, printed=PRINTED_MORE)}{note}</section>"
    )


def next_steps(facts: ReportFacts) -> str:
    """What may turn more rows into mailable ones: cleaning, verifying again, and correcting typos."""
    left, right = clean_first(facts) + verify_again(facts), ""
    if facts.typos:
        typos = [(text(typed), text(meant), number(count)) for typed, meant, count in facts.typos]
        heads = [TableHead("Typed", "data"), TableHead("Probably meant", "data"), TableHead("Rows", "number")]
        shown = table("Likely typos", heads, typos, printed=PRINTED)
        right = f"<section><h2>Correct likely typos</h2>{shown}</section>"
    return side_by_side(left, right)


def verify_again(facts: ReportFacts) -> str:
    """The rows without a clear answer, when it makes sense to ask again, and how."""
    if not facts.unanswered:
        return ""
    rows = [(text(reason_label(reason)), number(count), text(when)) for reason, when, count in facts.retries]
    heads = [TableHead("Reason"), TableHead("Rows", "number"), TableHead("When", "words")]
    shown = table("Verify again", heads, rows) if rows else ""
    how = text(how_to_verify_again(facts))
    if facts.command:
        how += f'<br><code class="mv-command">{text(facts.command)}</code>'
    return f'<section><h2>Verify again</h2>{shown}<p class="mv-soft mv-how">{how}</p></section>'


def side_by_side(*parts: str) -> str:
    """Parts beside each other where there is room; empty ones are left out."""
    filled = [part for part in parts if part]
    if len(filled) < 2:
        return "".join(filled)
    return f'<div class="mv-sides">{"".join(f"<div>{part}</div>" for part in filled)}</div>'


def clean_first(facts: ReportFacts) -> str:
    steps = (
        ("Clean", facts.cleanable, "One address with something around it, or in another form"),
        ("Explode", facts.several, "Several addresses in one cell: one row for each"),
    )
    rows = [(text(step), number(count), text(why)) for step, count, why in steps if count]
    if not rows:
        return ""
    columns = [TableHead("Step"), TableHead("Rows", "number"), TableHead("What they hold", "words")]
    return f"<section><h2>Clean the list first</h2>{table('Clean the list first', columns, rows)}</section>"


def cleaning(facts: ReportFacts) -> str:
    """Before and after cleaning."""
    found = facts.cleaning
    if found is None:
        return ""
    sent = facts.actions["send"]
    columns = [
        TableHead("Can be mailed"),
        TableHead("Rows", "number"),
        TableHead("Share of rows", "number"),
        TableHead("", "gauge"),
    ]
    rows = [
        (text(when), number(count), share_cell(count, facts.rows), meter("send", count, facts.rows))
        for when, count in (("As the list came", sent - found.sendable), ("After cleaning", sent))
    ]
    said = (
        f"{count_of(found.rows, 'cell was', 'cells were')} cleaned before the check. "
        f"Without that, {count_of(found.rescued, 'cell')} would have been invalid."
    )
    repairs = [(text(repair_label(name)), text(example), number(count)) for name, example, count in found.repairs]
    heads = [TableHead("Repair", "words"), TableHead("Example", "code"), TableHead("Cells", "number")]
    by_repair = table("Repairs", heads, repairs, printed=PRINTED)
    picture = f"<p>{text(said)}</p>{table('Before and after', columns, rows)}"
    return f"<section><h2>Before and after cleaning</h2>{side_by_side(picture, by_repair)}</section>"


def trend(facts: ReportFacts) -> str:
    """Then and now, and which verdicts changed."""
    then = facts.trend
    if then is None:
        return ""
    before, now = by_mark(then.buckets), by_mark(facts.buckets)
    columns = [
        TableHead("Verdict"),
        TableHead("Then", "number"),
        TableHead("Share", "number"),
        TableHead("Now", "number"),
        TableHead("Share", "number"),
        TableHead("Change", "number"),
    ]
    rows = [
        (
            *(badge(name), number(before[name]), share_cell(before[name], then.rows), number(now[name])),
            *(share_cell(now[name], facts.rows), Sorted(f"{now[name] - before[name]:+,}", now[name] - before[name])),
        )
        for name in MARKS
    ]
    since = f" ({days_of_earlier(then.checked)})"
    said = (
        f"{count_of(then.added, 'address is', 'addresses are')} new, {then.removed:,} left the list, and "
        f"{count_of(then.changed, 'address has', 'addresses have')} another verdict. "
        f"{another_check(then.validation_types, facts.validation_types)}"
    ).strip()
    moves = [(f"{badge(old)} → {badge(new)}", number(count)) for old, new, count in then.moves]
    moved = (
        table("Changed verdicts", (TableHead("Verdict then and now"), TableHead("Addresses", "number")), moves)
        if moves
        else ""
    )
    return (
        f'<section class="mv-trend"><h2>Since the earlier audit{text(since)}</h2><p>{text(said)}</p>'
        f"{side_by_side(table('Then and now', columns, rows), moved)}</section>"
    )


def outcomes(facts: ReportFacts) -> str:
    """What became of the mails, if that is known: hard bounces by verdict, and the verdicts that were wrong."""
    found = facts.outcomes
    if found is None:
        return ""
    columns = [
        TableHead("Group"),
        TableHead("Mailed", "number"),
        TableHead("Hard bounces", "number"),
        TableHead("Share of mailed", "number"),
        TableHead("95% interval", "number"),
        TableHead("Blocked", "number"),
        TableHead("Soft", "number"),
        TableHead("Complaints", "number"),
    ]
    rows: list[Sequence[Cell | Sorted]] = [
        (
            text(outcome_label(str(row["by"]), str(row["value"]))),
            *(number(int(row["mailed"])), number(int(row["hard"])), Sorted(f"{row['rate']:.1%}", row["rate"])),
            Sorted(f"{row['low']:.1%} to {row['high']:.1%}", row["low"]),
            *(number(int(row[name])) for name in ("blocked", "soft", "complaint")),
        )
        for row in sorted(found.counts.reset_index().to_dict("records"), key=lambda row: row["by"] == "reason")
        if row["mailed"]
    ]
    note = (
        f"Distinct addresses. {found.matched:,} of them have a report; reports on {found.unmatched:,} other addresses "
        "are not counted. Blocked mails were refused because of the sender and say nothing about the address."
    )
    shown = table("Outcomes", columns, rows, printed=PRINTED_MORE)
    said = f'<p class="mv-soft">{note}</p>'
    return f"<section><h2>Was the verdict right?</h2>{shown}{said}{wrong_verdicts(found)}</section>"


def wrong_verdicts(found: OutcomeFacts) -> str:
    """The rows whose verdict was wrong, each with what the mail server said."""
    if not found.contradicted:
        return ""
    wrong = count_of(found.contradicted_rows, "row has", "rows have")
    first = "" if found.contradicted_rows == len(found.contradicted) else f"; the first {len(found.contradicted)}"
    columns = [
        TableHead("Address", "data"),
        TableHead("Verdict and outcome"),
        TableHead("The mail server's message", "data"),
    ]
    listed = [tuple(text(each) for each in row) for row in found.contradicted]
    shown = table("Wrong verdicts", columns, listed, printed=PRINTED)
    return f"<p>{wrong} a verdict that was wrong{first}:</p>{shown}"


def domains(facts: ReportFacts, most: int) -> str:
    """The largest domains, each with its own bar."""
    if facts.domains.empty:
        return ""
    columns = [
        TableHead("Domain", "data"),
        TableHead("Rows", "number"),
        TableHead("Share of rows", "number"),
        TableHead("Valid", "number"),
        TableHead("Verdicts", "bars"),
    ]
    rows = []
    for domain, counts in facts.domains.head(most).iterrows():
        parts = by_mark({str(name): int(count) for name, count in counts.items() if name != "rows"})
        all_rows, valid = int(counts["rows"]), parts["valid"]
        bar = stacked_bar(parts, f"Verdicts of {domain}", "mv-small", 12)
        rows.append(
            (
                *(text(domain), number(all_rows), share_cell(all_rows, facts.rows), share_cell(valid, all_rows)),
                Sorted(bar, f"{valid / max(all_rows, 1):.6f}"),
            )
        )
    return f"<section><h2>Largest domains</h2>{table('Largest domains', columns, rows, printed=PRINTED)}</section>"


def method(facts: ReportFacts) -> str:
    """How the rows were checked, and what the result does not say."""
    lines = [f"{CHECKS[ValidationType(k)]}: {meaning}." for k, meaning in facts.validation_types.items() if k in CHECKS]
    if facts.is_check_unknown:
        lines.append(
            "The table does not record which check was made. “Valid” therefore means at least that the address is well "
            "formed; whether its domain receives mail and its mailbox exists depends on the check."
        )
    if facts.answered_by:
        lines.append(f"The answers come from {facts.answered_by}.")
    if answered := [f"{count:,} {SOURCE_MEANING.get(word, word)}" for word, count in facts.sources.items()]:
        lines.append(f"Rows by the source of their answer: {', '.join(answered)}.")
    lines.append("“Unknown” means that the check gave no answer; it does not mean “probably invalid”.")
    if facts.cleaning is not None:
        cleaned = count_of(facts.cleaning.rows, "cell was", "cells were")
        lines.append(f"{cleaned} cleaned first: what stood around the address was removed.")
    accepted = sum(rows for name, _, rows in facts.cleaning.repairs if name == ACCEPTED) if facts.cleaning else 0
    applied = (
        f"{count_of(accepted, 'was', 'were')} accepted by a person, the others were not applied"
        if accepted
        else "were not applied"
    )
    lines.append(f"Suggestions are guesses from the spelling{':' if accepted else ' and'} {applied}.")
    said = f'<p class="mv-soft">{text(" ".join(lines))}</p>'
    return f'<section class="mv-foot"><h2>How this was checked</h2>{said}</section>'
