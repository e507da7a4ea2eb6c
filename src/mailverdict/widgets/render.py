"""Values as pieces of HTML. Every text that comes from outside is escaped and of bounded length."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from ..backend import Quota
from ..model.words import ValidationType
from ..runs.plan import Plan
from ..runs.progress import Progress
from .download import Saved

__all__ = [
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
    "render_state",
    "render_taken",
    "sentence",
    "text",
]

LONGEST = 600
# What a type asks, in a line; what `valid` means then is said beside it.
ASKS = {
    ValidationType.REGEX: "Looks at the spelling only",
    ValidationType.MX: "Asks the DNS whether the domain takes mail",
    ValidationType.MX_BLACKLIST: "Asks the DNS, and blacklists about the exchanges",
    ValidationType.SMTP: "Asks the mail server of each address",
}
TILES = {
    "rows": "rows",
    "missing": "missing",
    "malformed": "malformed, free",
    "unique": "unique addresses",
    "known": "known",
    "in_flight": "paid, in flight",
    "held": "held back",
    "to_submit": "to submit",
    "days": "days",
}
ALWAYS = ("rows", "unique", "missing", "malformed", "known", "to_submit")
QUOTA_LOW = "more than is left today: the rest waits for another day"


def text(value: object, longest: int = LONGEST) -> str:
    """Escape, and cut what is far too long."""
    whole = str(value)
    return html.escape(whole if len(whole) <= longest else whole[: longest - 1] + "…")


def sentence(message: str) -> str:
    """As a sentence, so that messages can stand one after the other."""
    message = message[:1].upper() + message[1:]
    return message if message.endswith((".", "!", "?", "…")) else f"{message}."


def render_head(title: str) -> str:
    return f'<div class="mv-head" role="heading" aria-level="3">{text(title)}</div>'


def render_hint(message: object) -> str:
    """A soft line beside a control."""
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


def render_taken(name: str, rows: int, columns: int) -> str:
    """What was taken in."""
    return f"<b>{text(name)}</b>: {rows:,} rows, {columns:,} columns"


def render_quota(backend: str, quota: Quota | None, *, is_known: bool) -> str:
    """Who is asked, and what is left today."""
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
    return tile_row(tiles) + (f'<span class="mv-soft">{QUOTA_LOW}</span>' if short else "")


def render_progress(progress: Progress) -> str:
    """A bar of the verdicts so far, and their counts."""
    total = max(progress.total, 1)
    counts = {**progress.verdicts, **({"error": progress.errors} if progress.errors else {})}
    spans = "".join(
        f'<span class="mv-{text(n)}" style="width:{100 * c / total:.2f}%"></span>' for n, c in counts.items()
    )
    bar = (
        '<div class="mv-bar" role="progressbar" aria-label="Addresses settled" aria-valuemin="0" '
        f'aria-valuemax="{progress.total}" aria-valuenow="{progress.settled}">{spans}</div>'
    )
    return bar + render_counts(counts)


def render_counts(counts: Mapping[str, int]) -> str:
    """Numbers by verdict or action, each with its colour and its name."""
    return tile_row(tile(name, number(count), f"mv-key mv-{name}") for name, count in counts.items())


def render_left_out(columns: int) -> str:
    """That the table does not show everything."""
    what = "1 more column is" if columns == 1 else f"{columns:,} more columns are"
    return f'<span class="mv-soft">{what} not shown here, but in the file.</span>' if columns else ""


def render_saved(saved: Saved) -> str:
    """A link to a small file, the path of a large one."""
    what = f"{saved.rows:,} rows, {size_of(saved.size)}"
    if saved.path is not None:
        return f"Too large for a link ({what}): written to <code>{text(saved.path)}</code>"
    return f'<a class="mv-save" download="{text(saved.name)}" href="{saved.url}">Save {text(saved.name)}</a> ({what})'


def size_of(octets: int) -> str:
    """Octets for a person."""
    return f"{octets / 1e6:,.1f} MB" if octets >= 100_000 else f"{max(octets / 1e3, 0.1):,.1f} kB"


def number(value: int | None) -> str:
    return "never" if value is None else f"{value:,}"


def tile(label: str, value: str, kind: str = "") -> str:
    return f'<div class="mv-tile {text(kind)}"><span>{text(label)}</span><b>{text(value)}</b></div>'


def tile_row(tiles: Iterable[str]) -> str:
    return f'<div class="mv-tiles">{"".join(tiles)}</div>'


def render_state(progress: Progress) -> str:
    """Where a run stands, in a sentence."""
    settled = f"{progress.settled:,} of {progress.total:,} addresses settled"
    known = f", {progress.from_journal:,} of them known" if progress.from_journal else ""
    return f"{STATES.get(progress.state, progress.state)}: {settled}{known}"


STATES = {
    "running": "Verifying",
    "done": "Done",
    "stopped": "Stopped",
    "cancelled": "Cancelled",
    "failed": "Failed",
}
