"""The HTML of an audit and its style sheet, in Jupyter's colours so that it follows the light or dark theme."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from ..backend import Quota
from ..model.words import ValidationType
from ..runs.plan import Plan
from ..runs.progress import Progress, pace_text
from ..theme import MARK_OF, colour
from .listing import Saved

__all__ = [
    "ROOT_CLASS",
    "STYLE",
    "render_asked",
    "render_counts",
    "render_examples",
    "render_head",
    "render_hint",
    "render_left_out",
    "render_notice",
    "render_plan",
    "render_progress",
    "render_quota",
    "render_saved",
    "render_source",
    "render_state",
    "sentence",
    "text",
]

ROOT_CLASS = "mv-audit"
# Beyond Jupyter the variables are not there; what stands after the comma is GitHub's light theme.
TEXT = "var(--jp-ui-font-color1,#1f2328)"
SOFT = "var(--jp-ui-font-color2,#59636e)"
LINE = "var(--jp-border-color2,#d1d9e0)"
GROUND = "var(--jp-layout-color2,#eef1f4)"
PAPER = "var(--jp-layout-color0,#ffffff)"
LINK = "var(--jp-content-link-color,#0969da)"
FOCUS = "var(--jp-brand-color1,#0969da)"
KEYS = "".join(f".mv-audit .mv-{name}{{--mv-key:{colour(name)}}}" for name in MARK_OF)

STYLE = f"""<style>
.mv-audit{{color:{TEXT};max-width:70rem;padding:.2rem .2rem 1rem;overflow:visible}}
.mv-audit .widget-html-content,.mv-audit .jupyter-widget-html-content{{line-height:1.5;white-space:normal}}
.mv-audit .mv-head{{font-size:1.05rem;font-weight:600;color:{TEXT};margin:.9rem 0 .2rem;
border-bottom:1px solid {LINE};padding-bottom:.15rem}}
.mv-audit .mv-soft{{color:{SOFT}}}
.mv-audit .mv-soft code{{color:{TEXT};background:{GROUND};padding:0 .3em;border-radius:3px}}
.mv-audit .mv-tiles{{display:flex;flex-wrap:wrap;gap:.4rem;margin:.3rem 0 0}}
.mv-audit .mv-tile{{background:{GROUND};border-radius:4px;padding:.25rem .7rem;min-width:5rem}}
.mv-audit .mv-tile span{{display:block;color:{SOFT};font-size:.85em;line-height:1.3}}
.mv-audit .mv-tile b{{display:block;font-size:1.15em;line-height:1.35;font-variant-numeric:tabular-nums}}
.mv-audit .mv-tile.mv-cost{{outline:2px solid {FOCUS};outline-offset:-2px}}
.mv-audit .mv-tile.mv-key{{border-left:5px solid var(--mv-key)}}
.mv-audit .mv-bar{{display:flex;height:.8rem;background:{GROUND};border-radius:3px;overflow:hidden;
margin:.5rem 0 .3rem}}
.mv-audit .mv-bar span{{display:block;background:var(--mv-key);height:100%}}
.mv-audit .mv-notice{{border-left:4px solid {LINE};background:{GROUND};padding:.35rem .7rem;margin:.4rem 0;
border-radius:0 4px 4px 0;overflow-wrap:anywhere}}
.mv-audit .mv-notice.mv-failed{{border-color:{colour("invalid")}}}
.mv-audit .mv-notice.mv-warned{{border-color:{colour("risky")}}}
.mv-audit .mv-notice.mv-done{{border-color:{colour("valid")}}}
.mv-audit a.mv-save{{color:{LINK};text-decoration:underline;font-weight:600}}
.mv-audit button:focus-visible,.mv-audit select:focus-visible,.mv-audit input:focus-visible,
.mv-audit a:focus-visible{{outline:2px solid {FOCUS};outline-offset:1px}}
.mv-audit .widget-label,.mv-audit .jupyter-widget-label{{color:{TEXT}}}
.mv-audit .mv-wrap{{flex-wrap:wrap;align-items:center;gap:.1rem .6rem;margin:.15rem 0}}
.mv-audit .mv-table{{border:1px solid {LINE};background:{PAPER};margin:.4rem 0}}
.mv-audit .mv-table .dt-container,.mv-audit .mv-table .itables_anywidget{{min-width:max-content;overflow:visible}}
.mv-audit .mv-table .dt-layout-row{{margin:0}}
.mv-audit .mv-table table.dataTable{{margin:0!important;color:{TEXT};background:{PAPER}}}
.mv-audit .mv-table table.dataTable th{{text-align:left;font-weight:600;position:sticky;top:0;background:{GROUND};
z-index:1}}
.mv-audit .mv-table table.dataTable td{{text-align:left;max-width:26rem;overflow:hidden;text-overflow:ellipsis}}
{KEYS}
</style>"""


LONGEST = 600
# What each type does, in one line; the meaning of `valid` is shown beside it.
ASKS = {
    ValidationType.REGEX: "Looks at the spelling only",
    ValidationType.MX: "Asks the DNS whether the domain takes mail",
    ValidationType.MX_BLACKLIST: "Asks the DNS, and checks the mail servers against blacklists",
    ValidationType.SMTP: "Asks the mail server of each address",
}
TILES = {
    "rows": "rows",
    "missing": "missing rows",
    "malformed": "malformed rows, free",
    "unique": "distinct addresses",
    "known": "known",
    "in_flight": "paid, in flight",
    "held": "held back",
    "to_submit": "to submit",
    "days": "days",
}
ALWAYS = ("rows", "unique", "missing", "malformed", "known", "to_submit")
QUOTA_LOW = "more than is left today: the rest waits for another day"


def text(value: object, longest: int = LONGEST) -> str:
    """Escaped text, cut where it is too long."""
    whole = str(value)
    return html.escape(whole if len(whole) <= longest else whole[: longest - 1] + "…")


def sentence(message: str) -> str:
    """A message as a sentence, so that messages can be joined."""
    message = message[:1].upper() + message[1:]
    return message if message.endswith((".", "!", "?", "…")) else f"{message}."


def render_head(title: str) -> str:
    return f'<div class="mv-head" role="heading" aria-level="3">{text(title)}</div>'


def render_hint(message: object) -> str:
    """A hint beside a control."""
    return f'<span class="mv-soft">{text(message)}</span>'


def render_notice(message: str, kind: str = "plain") -> str:
    """A message; ``failed`` and ``warned`` are read out at once by a screen reader."""
    if not message:
        return ""
    role = "alert" if kind in ("failed", "warned") else "status"
    return f'<div class="mv-notice mv-{text(kind)}" role="{role}">{text(message)}</div>'


def render_examples(cells: Sequence[str]) -> str:
    """A few cells of the chosen column."""
    shown = ", ".join(f"<code>{text(cell, 40)}</code>" for cell in cells)
    return f'<span class="mv-soft">{f"as {shown}" if shown else "no texts in it"}</span>'


def render_asked(validation_type: str, meaning: str) -> str:
    """What a validation type does and what its `valid` means."""
    return f'<span class="mv-soft">{text(ASKS[ValidationType(validation_type)])}; {text(meaning)}.</span>'


def render_source(name: str, rows: int, columns: int, remarks: Sequence[str] = ()) -> str:
    """The name and size of the loaded table, and what was guessed or found odd."""
    notes = "".join(f'<br><span class="mv-soft">{text(each)}</span>' for each in remarks)
    return f"<b>{text(name)}</b>: {rows:,} rows, {columns:,} columns{notes}"


def render_quota(backend: str, quota: Quota | None, *, is_known: bool) -> str:
    """The backend, and the rest of its quota for today."""
    left = ""
    if quota is not None:
        left = f" · quota: <b>{quota.remaining:,}</b> of {quota.daily_limit:,} addresses left today"
    elif is_known:
        left = " · no quota"
    return f'<span class="mv-soft">Asked: <code>{text(backend, 200)}</code>{left}</span>'


def render_plan(plan: Plan) -> str:
    """What a run would do and cost."""
    is_metered = plan.daily_limit is not None
    always = {*ALWAYS, *(("days",) if is_metered else ())}
    names = [name for name in TILES if name in always or getattr(plan, name)]
    labels = TILES if is_metered else {**TILES, "to_submit": "to verify"}
    tiles = (tile(labels[name], number(getattr(plan, name)), "mv-cost" * (name == "to_submit")) for name in names)
    short = plan.remaining is not None and plan.to_submit > plan.remaining
    notes = [QUOTA_LOW] if short else []
    if (plan.most_units or 0) > plan.to_submit:
        notes.append(f"at most {plan.most_units:,} units of quota, if the service refuses addresses and is asked again")
    return tile_row(tiles) + "".join(f'<div class="mv-soft">{note}</div>' for note in notes)


def render_progress(progress: Progress) -> str:
    """A bar of the verdicts so far, and their counts."""
    total = max(progress.total, 1)
    counts = {**progress.verdicts, **({"error": progress.errors} if progress.errors else {})}
    spans = "".join(
        f'<span class="mv-{text(n)}" style="width:{100 * c / total:.2f}%"></span>' for n, c in counts.items()
    )
    bar = (
        f'<div class="mv-bar" role="progressbar" aria-label="{progress.unit.capitalize()} settled" aria-valuemin="0" '
        f'aria-valuemax="{progress.total}" aria-valuenow="{progress.settled}">{spans}</div>'
    )
    return bar + render_counts(counts)


def render_counts(counts: Mapping[str, int]) -> str:
    """Numbers by verdict or action, each with its colour and its name."""
    return tile_row(tile(name, number(count), f"mv-key mv-{name}") for name, count in counts.items())


def render_left_out(columns: int) -> str:
    """How many columns the table does not show."""
    what = "1 more column is" if columns == 1 else f"{columns:,} more columns are"
    return f'<span class="mv-soft">{what} not shown here, but in the file.</span>' if columns else ""


def render_saved(saved: Saved) -> str:
    """A link to a small file, the path of a large one."""
    what = f"{saved.rows:,} rows, {size_of(saved.size)}"
    if saved.path is not None:
        return f"Too large for a link ({what}): written to <code>{text(saved.path)}</code>"
    return f'<a class="mv-save" download="{text(saved.name)}" href="{saved.url}">Save {text(saved.name)}</a> ({what})'


def size_of(octets: int) -> str:
    """A size in readable units."""
    return f"{octets / 1e6:,.1f} MB" if octets >= 100_000 else f"{max(octets / 1e3, 0.1):,.1f} kB"


def number(value: int | None) -> str:
    return "never" if value is None else f"{value:,}"


def tile(label: str, value: str, kind: str = "") -> str:
    return f'<div class="mv-tile {text(kind)}"><span>{text(label)}</span><b>{text(value)}</b></div>'


def tile_row(tiles: Iterable[str]) -> str:
    return f'<div class="mv-tiles">{"".join(tiles)}</div>'


def render_state(progress: Progress) -> str:
    """The state of a run in a sentence."""
    settled = f"{progress.settled:,} of {progress.total:,} {progress.unit} settled"
    known = f", {progress.from_journal:,} of them known" if progress.from_journal else ""
    pace = f"; {pace_text(progress)}" if pace_text(progress) else ""
    return f"{STATES.get(progress.state, progress.state)}: {settled}{known}{pace}"


STATES = {
    "running": "Verifying",
    "done": "Done",
    "stopped": "Stopped",
    "cancelled": "Cancelled",
    "failed": "Failed",
}
