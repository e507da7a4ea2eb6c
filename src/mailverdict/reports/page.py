"""A report as one self-contained HTML page: no script, no outside resource, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from .facts import ReportFacts

__all__ = ["render_page", "render_section"]

COLOUR = {
    "valid": "#1a7f37",
    "send": "#1a7f37",
    "risky": "#bf8700",
    "review": "#bf8700",
    "invalid": "#cf222e",
    "drop": "#cf222e",
    "unknown": "#6e7781",
    "retry": "#0969da",
    "error": "#8250df",
    "pending": "#57a3d6",
    "missing": "#c4cad1",
    "unchecked": "#c4cad1",
}
ADVICE = {
    "send": "can be mailed",
    "review": "for a person to check: typing errors to correct, catch-all domains, role addresses",
    "retry": "verify again later, see below",
    "drop": "take them off the list",
    "unchecked": "no address, or not verified yet",
}
STYLE = """
.mv{font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;color:#1f2328;background:#fff}
.mv{max-width:62rem;margin:0 auto;padding:1rem}
.mv h1{font-size:1.6rem;margin:0 0 .2rem}.mv h2{font-size:1.15rem;margin:1.8rem 0 .5rem}
.mv p{margin:.4rem 0}.mv .big{font-size:2.6rem;font-weight:650;line-height:1.1}.mv .soft{color:#59636e}
.mv table{border-collapse:collapse;width:100%;font-size:inherit;color:inherit}.mv.mv.mv tr{background:none}
.mv.mv th,.mv.mv td{text-align:left;white-space:normal;border-bottom:1px solid #d1d9e0;vertical-align:top}
.mv.mv th,.mv.mv td{padding:.28rem .6rem .28rem 0;max-width:none}.mv th{font-weight:600;color:#59636e}
.mv.mv .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.mv .key{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.45em}
.mv .legend span{margin-right:1.1em;white-space:nowrap}.mv svg{display:block;width:100%;margin:.5rem 0}
@media (prefers-color-scheme:dark){.mv{color:#e6edf3;background:#0d1117}.mv th,.mv .soft{color:#9198a1}
.mv.mv th,.mv.mv td{border-color:#3d444d}}
@media print{.mv{max-width:none;color:#000;background:#fff}.mv h2{break-after:avoid}.mv tr{break-inside:avoid}
.mv svg,.mv .key{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""


def text(value: object) -> str:
    return html.escape(str(value))


def render_page(facts: ReportFacts) -> str:
    """The whole document."""
    title = f"E-mail audit of {facts.column}"
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{text(title)}</title><style>body{{margin:0}}"
        "@media (prefers-color-scheme:dark){body{background:#0d1117}}</style></head>"
        f"<body>{render_section(facts)}</body></html>"
    )


def render_section(facts: ReportFacts) -> str:
    """The same without the document around it, for a notebook."""
    parts = [
        head(facts),
        actions(facts),
        reasons(facts),
        next_steps(facts),
        outcomes(facts),
        domains(facts),
        method(facts),
    ]
    return f'<style>{STYLE}</style><div class="mv">{"".join(parts)}</div>'


def head(facts: ReportFacts) -> str:
    """The share that can be mailed, and a bar of all rows."""
    of_all = f"{facts.actions['send']:,} of {facts.addressed:,} rows with an address"
    counted = f"{facts.rows:,} rows, {facts.addressed:,} with an address"
    return (
        f"<h1>E-mail audit: {text(facts.column)}</h1>"
        f'<p class="soft">{counted}; {facts.made_at:%Y-%m-%d %H:%M} UTC</p>'
        f'<p class="big">{facts.mailable:.1%} can be mailed</p>'
        f"<p>{of_all}, under the policy “{text(facts.policy)}”.</p>"
        f"{stacked_bar(facts.buckets, 'rows by verdict')}{legend(facts.buckets, facts.rows)}"
    )


def stacked_bar(counts: dict[str, int], label: str, *, height: int = 26) -> str:
    """One bar of inline SVG."""
    whole, at, pieces = sum(counts.values()) or 1, 0.0, []
    for name, count in counts.items():
        width = 1000 * count / whole
        if count:
            hint = f"<title>{text(name)}: {count:,}</title>"
            pieces.append(
                f'<rect x="{at:.2f}" width="{width:.2f}" height="{height}" fill="{COLOUR[name]}">{hint}</rect>'
            )
        at += width
    box = f'viewBox="0 0 1000 {height}" height="{height}" preserveAspectRatio="none" role="img"'
    return f'<svg {box} aria-label="{text(label)}">{"".join(pieces)}</svg>'


def legend(counts: dict[str, int], rows: int) -> str:
    """Names beside the colours, so that nothing depends on seeing colours (WCAG 1.4.1)."""
    items = (
        f"<span>{key(name)} <b>{count:,}</b> ({count / max(rows, 1):.1%})</span>"
        for name, count in counts.items()
        if count
    )
    return f'<p class="legend">{" ".join(items)} <span class="soft">(share of all rows)</span></p>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int]) -> str:
    """Cells are HTML already; the columns at the positions `numbers` are aligned right."""

    def cells(tag: str, row: Sequence[str]) -> str:
        sets = (' class="n"' if i in numbers else "" for i in range(len(row)))
        return "".join(f"<{tag}{each}>{cell}</{tag}>" for each, cell in zip(sets, row, strict=True))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', header)}</tr></thead><tbody>{body}</tbody></table>"


def key(name: str) -> str:
    return f'<i class="key" style="background:{COLOUR[name]}"></i>{text(name)}'


def actions(facts: ReportFacts) -> str:
    """Rows by action."""
    rows = [(key(name), f"{count:,}", text(ADVICE[name])) for name, count in facts.actions.items()]
    return "<h2>What to do</h2>" + table(("action", "rows", ""), rows, (1,))


def reasons(facts: ReportFacts) -> str:
    """Why the other rows cannot simply be mailed."""
    if not facts.reasons:
        return ""
    rows = [(text(reason.replace("_", " ")), f"{count:,}", text(meaning)) for reason, meaning, count in facts.reasons]
    flagged = ", ".join(f"{text(flag.replace('_', '-'))} {count:,}" for flag, count in facts.flags.items() if count)
    note = f'<p class="soft">Flags, whatever the verdict: {flagged}.</p>' if flagged else ""
    return "<h2>Why not</h2>" + table(("reason", "rows", "meaning"), rows, (1,)) + note


def next_steps(facts: ReportFacts) -> str:
    """What may turn more rows into mailable ones: cleaning, verifying again, and correcting typing errors."""
    parts = []
    if facts.cleanable or facts.several:
        rows = [("clean", f"{facts.cleanable:,}", "hold one address with something around it, or in another form")]
        rows += [("explode", f"{facts.several:,}", "hold several addresses: one row for each")]
        parts.append("<h2>Clean the list first</h2>" + table(("do", "rows", "because they"), rows, (1,)))
    if facts.retries:
        rows = [(text(reason.replace("_", " ")), f"{count:,}", text(when)) for reason, when, count in facts.retries]
        parts.append("<h2>Verify again</h2>" + table(("reason", "rows", "when"), rows, (1,)))
    if facts.typos:
        rows = [(text(typed), text(meant), f"{count:,}") for typed, meant, count in facts.typos]
        parts.append("<h2>Correct these typing errors</h2>" + table(("typed", "probably meant", "rows"), rows, (2,)))
    return "".join(parts)


def outcomes(facts: ReportFacts) -> str:
    """What became of the mails, if that is known: hard bounces by verdict, and the verdicts that were wrong."""
    found = facts.outcomes
    if found is None:
        return ""
    header = ("", "mailed", "hard bounces", "share of mailed", "95 % interval", "blocked", "soft", "complaints")
    rows = [
        (
            f"{text(row['by'])}: {text(str(row['value']).replace('_', ' '))}",
            f"{row['mailed']:,}",
            f"{row['hard']:,}",
            f"{row['rate']:.1%}",
            f"{row['low']:.1%} to {row['high']:.1%}",
            *(f"{row[name]:,}" for name in ("blocked", "soft", "complaint")),
        )
        for row in found.counts.reset_index().to_dict("records")
        if row["mailed"]
    ]
    note = (
        f"Distinct addresses. {found.matched:,} of them have a report; reports on {found.unmatched:,} other addresses "
        "are not counted. Blocked mails were refused because of the sender and say nothing about the address."
    )
    parts = ["<h2>Was the verdict right?</h2>", table(header, rows, range(1, 8)), f'<p class="soft">{note}</p>']
    if found.contradicted:
        listed = [(text(address), text(how), text(said)) for address, how, said in found.contradicted]
        parts.append(f"<p>{found.contradicted_rows:,} rows have a verdict that was wrong; the first of them:</p>")
        parts.append(table(("address", "verdict and outcome", "the mail server said"), listed, ()))
    return "".join(parts)


def domains(facts: ReportFacts) -> str:
    """The largest domains, each with its own bar."""
    if facts.domains.empty:
        return ""
    rows = []
    for domain, counts in facts.domains.iterrows():
        parts = {str(name): int(count) for name, count in counts.items() if name != "rows"}
        valid = f"{parts['valid'] / max(int(counts['rows']), 1):.0%}"
        rows.append(
            (text(domain), f"{int(counts['rows']):,}", valid, stacked_bar(parts, f"verdicts of {domain}", height=12))
        )
    return "<h2>Largest domains</h2>" + table(("domain", "rows", "valid (share of its rows)", "verdicts"), rows, (1, 2))


def method(facts: ReportFacts) -> str:
    """How the rows were checked, and what the result does not say."""
    lines = [f"Checked by {text(kind)}: {text(meaning)}." for kind, meaning in facts.validation_types.items()]
    if facts.sources:
        named = ", ".join(f"{text(source)} {count:,}" for source, count in facts.sources.items())
        lines.append(f"Answers came from: {named}.")
    lines.append("“Unknown” means that the check gave no answer; it does not mean “probably invalid”.")
    if facts.cleaned:
        lines.append(f"{facts.cleaned:,} cells were cleaned first: what stood around the address was removed.")
    lines.append("Suggestions are guesses from the spelling and were not applied.")
    return f'<h2>Method</h2><p class="soft">{" ".join(lines)}</p>'
