"""What a page shows of an `AuditState`, as values of JSON.

Texts have a bounded length, and there are at most `result.MAX_WINDOW` rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from ..files.compression import COMPRESSIONS
from ..files.readers import KINDS as FILE_KINDS
from ..model.arrow import to_bools
from ..model.words import (
    ACTIONS,
    DECISIONS,
    REPAIR_LABELS,
    ValidationType,
    capitalize,
    count_of,
    percent,
    reason_label,
)
from ..reports.wording import CHECKS
from ..table.importers import importers
from ..theme import LABELS
from .check import QUOTA_RESET, describe_plan, describe_progress, next_day
from .choices import Pair, describe_to_check, find_typos
from .exports import KINDS
from .listing import FACETS, Listing, cell_texts
from .listing import WORDS as DECIDED
from .mailing import SAMPLE, is_worth_a_sample
from .result import Result, describe_run
from .session import Given
from .source import ENCODINGS, Source, readable, short_text
from .state import SECTIONS, AuditState, kept_words, refused_name
from .steps import SAFE, Prepared, TidyColumn
from .wording import (
    DECISION_LABELS,
    DEPTHS,
    PENDING_LABELS,
    SWITCH_LABELS,
    VERDICT_LABELS,
    date_text,
    describe_actions,
    describe_headline,
    describe_policies,
    duration_words,
    mailed_words,
)

LONGEST = 600
MAX_COLUMNS = 300
MAX_VALUES = 12  # of a facet
MAX_SHOWN_TYPOS = 50
MAX_UNDO = 12  # choices that are listed to take back
PREVIEW_ROWS, PREVIEW_COLUMNS, LONGEST_PREVIEW = 5, 8, 80
FACET_LABELS = {
    "verdict": "Verdict",
    "action": "What to do",
    "reason": "Why",
    "domain": "Domain",
    "repaired": "Repaired",
}


def take_snapshot(state: AuditState, section: str) -> dict[str, Any]:
    """One section of the page."""
    with state.lock:
        return {**SNAPSHOTS[section](state), **status(state, section)}


def take_snapshots(state: AuditState, names: Collection[str] = SECTIONS) -> dict[str, Any]:
    """Some sections of the page, of one moment."""
    with state.lock:
        return {name: take_snapshot(state, name) for name in names}


def status(state: AuditState, section: str) -> dict[str, Any]:
    """What every section has."""
    work = state.work
    text, kind = work.messages[section]
    return {"message": short_text(text, LONGEST), "kind": kind, "busy": work.busy[section]}


# --- the page as a whole --------------------------------------------------------------------------


def snapshot_page(state: AuditState) -> dict[str, Any]:
    """Which steps are open, which button comes first, and what a screen reader reads out."""
    is_loaded = state.source is not None and state.choices.column is not None
    is_complete = state.result is not None and state.result.info.is_complete
    is_over = is_complete and state.is_result_current() and not state.check.is_running
    last = state.past[: -MAX_UNDO - 1 : -1]
    redo = ""
    if state.future:
        redo = short_text(state.future[-1][1], 80)
    return {
        "primary": primary_of(state),
        "said": short_text(state.work.spoken, LONGEST),
        "open": {
            "list": not is_loaded or state.is_read_again,
            "tidy": False,  # what is on by default needs no attention
            "check": is_loaded and not is_over,
            "decide": state.result is not None,
        },
        "can": {"tidy": is_loaded, "check": is_loaded, "decide": state.result is not None},
        "running": state.check.is_running,
        "undo": [short_text(what, 80) for _, what in last],
        "redo": redo,
        "line": line_part(state),
        "kept": kept_parts(state),
    }


def kept_parts(state: AuditState) -> list[dict[str, str]]:
    """The audits that were kept, but for the one that is open."""
    parts = []
    for kept in state.kept:
        if state.session is not None and kept.id == state.session.id:
            continue
        when = datetime.fromtimestamp(kept.when, UTC)
        part = {
            "id": kept.id,
            "name": readable(kept.name),
            "when": date_text(when),
            "rows": count_of(kept.rows, "row"),
        }
        parts.append(part)
    return parts


def primary_of(state: AuditState) -> str:
    """The one button that comes first.

    It chooses, pauses, verifies, plans, sends, or gives everything where no row can be mailed.
    """
    if state.source is None or state.choices.column is None:
        return "choose"
    if state.check.is_running:
        return "pause"
    result = state.result
    is_short = state.is_out_of_quota()
    is_current = result is not None and state.is_result_current()
    if result is not None and is_current and (result.info.is_complete or is_short):
        sent = result.listing.counts.actions["send"]
        return "send" if sent else "everything"
    has_failed = state.work.messages["check"][1] == "failed"
    if is_short or (state.plan is None and has_failed):
        return "plan"
    return "verify"


def line_part(state: AuditState) -> dict[str, Any] | None:
    """The line that stays in sight: where the list is, and the one button that comes first."""
    primary = primary_of(state)
    check = state.check
    plan = state.plan
    if primary == "choose":
        return None
    if primary == "pause":
        text = "Starting…"
        if check.progress is not None:
            progress = describe_progress(check.progress, check.rate)
            text = f"{progress['percent']} · {progress['label']}"
        is_pausing = check.state == "pausing"
        label = "Pausing…" if is_pausing else "Pause"
        return {"text": text, "label": label, "enabled": not is_pausing, "why": ""}
    if primary in ("send", "everything"):
        assert state.result is not None
        text = "Nobody can be mailed"
        label = "Download everything"
        if primary == "send":
            counts = state.result.listing.counts
            people = count_of(counts.people, "person", "people")
            rows = count_of(counts.actions["send"], "row")
            text = f"{people}, {rows}"
            label = "Download send list"
        return {"text": text, "label": label, "enabled": True, "why": ""}
    if primary == "plan":
        text = "The cost is not known"
        label = "Try again"
        if state.is_out_of_quota():
            text = "Today's quota is used up"
            label = "Look at the quota again"
        return {"text": text, "label": label, "enabled": True, "why": ""}
    text = "Working out the cost…"
    if plan is not None:
        text = f"{count_of(plan.to_submit, 'address')} to check"
        if plan.in_flight and not plan.to_submit:
            text = f"{count_of(plan.in_flight, 'answer')} to collect"
        elif not plan.to_submit:
            text = "All answers are known"
    return {"text": text, **button_of(state)}


# --- 1 list ---------------------------------------------------------------------------------------


def snapshot_list(state: AuditState) -> dict[str, Any]:
    """The list, its column, and what was found out about the file."""
    source = state.source
    given = state.given or Given()
    shown: dict[str, Any] = {
        "summary": "",
        "columns": [],
        "column": state.choices.column,
        "remarks": [],
        "accept": ",".join((*FILE_KINDS, *COMPRESSIONS)),
        "allow_paths": state.allow_paths,
        "encodings": [{"id": code, "label": label} for label, code in ENCODINGS],
        "encoding": given.encoding,
        "header": given.has_header,
        "is_text": False,
        "sheet": given.sheet,
        "sheets": [{"id": name, "label": readable(name)} for name in state.sheets],
        "doubted": [],
        "can_read_again": state.given is not None,
        "can_list_runs": state.check.journal_path() is not None,
        "runs": [describe_run(run) for run in state.runs],
    }
    if source is None:
        return shown
    rows, columns = source.frame.shape
    at = state.choices.column
    chosen = "" if at is None else f" · column {source.labels[at]}"
    shown["summary"] = f"{source.name} · {count_of(rows, 'row')}{chosen}"
    shown["size"] = f"{count_of(rows, 'row')}, {count_of(columns, 'column')}"
    shown["name"] = source.name
    shown["columns"] = source.labels[:MAX_COLUMNS]
    shown["is_text"] = source.is_text
    shown["sheet"] = source.sheet or ""
    remarks = []
    if state.prepared is not None:
        for old, new in state.prepared.renamed.items():
            remarks.append(f"Your column {old} is called {new} here: a result has its name.")
    remarks += source.remarks
    shown["remarks"] = [short_text(remark, 200) for remark in remarks[:8]]
    shown["preview"] = preview(source, at)
    shown["guess"] = ""
    if at is None:
        shown["doubted"] = doubted_columns(source)
    elif state.guess:
        shown["guess"] = f"Found automatically: {readable(state.guess, LONGEST)}."
    return shown


def doubted_columns(source: Source) -> list[dict[str, Any]]:
    """The columns of which one has the addresses, where that is not clear."""
    choice = source.choice
    columns = []
    for candidate in choice.doubted:
        column = {
            "at": source.position(candidate.name),
            "label": candidate.name,
            "text": choice.figures(candidate),
        }
        columns.append(column)
    return columns


def preview(source: Source, at: int | None) -> dict[str, Any]:
    """The first rows, with the column that is chosen."""
    shown = min(source.frame.shape[1], PREVIEW_COLUMNS)
    columns = list(range(shown))
    place = None
    if at is not None:
        if at not in columns:
            columns[-1] = at
        place = columns.index(at)
    cells = []
    for column in columns:
        first = source.frame.iloc[:PREVIEW_ROWS, column]
        texts = cell_texts(first, LONGEST_PREVIEW).to_pylist()
        cells.append([readable(text or "") for text in texts])
    return {
        "heads": [source.labels[column] for column in columns],
        "rows": list(map(list, zip(*cells, strict=True))),
        "at": place,
    }


# --- 2 tidy ---------------------------------------------------------------------------------------


def snapshot_tidy(state: AuditState) -> dict[str, Any]:
    """What can be repaired, each kind with a count, examples and a switch."""
    prepared = state.prepared
    if prepared is None or not len(prepared.base):
        return {
            "summary": "",
            "items": [],
            "questions": [],
            "suggestions": None,
            "suppression": None,
            "is_ready": False,
        }
    unread = prepared.base.nothing_rows
    nothing = ""
    if unread:
        cells = count_of(unread, "cell holds", "cells hold")
        nothing = f"{cells} no address that can be read."
    name = None
    notes = []
    if state.suppression is not None:
        name = state.suppression.name
        notes = state.suppression.notes
    return {
        "is_ready": True,
        "summary": tidy_summary(state, prepared) or "nothing to repair",
        "items": tidy_items(state, prepared),
        "questions": tidy_questions(state),
        "suggestions": suggestion_part(state, prepared.tidy),
        "nothing": nothing,
        "suppression": name,
        "suppression_notes": notes,
        "suppression_found": suppression_found(state, prepared),
    }


def suppression_found(state: AuditState, prepared: Prepared) -> str:
    """How many rows the suppression list matches, and how."""
    if state.suppression is None:
        return ""
    by_address = prepared.suppressed_by_address
    by_domain = prepared.suppressed - by_address
    if not prepared.suppressed:
        return "No row is on it."
    rows = count_of(prepared.suppressed, "row")
    return f"{rows}: {by_address:,} by address, {by_domain:,} by domain."


def tidy_summary(state: AuditState, prepared: Prepared) -> str:
    """The step in one line."""
    base = prepared.base
    tidy = prepared.tidy
    choices = state.choices
    parts = []
    repaired = tidy.count_repaired(choices)
    if repaired:
        part = f"{count_of(repaired, 'cell')} repaired"
        is_on = [name not in choices.off and base.repaired_rows(name) > 0 for name in SAFE]
        ways = is_on.count(True)
        if ways > 1:
            part += f" in {ways} ways"
        parts.append(part)
    corrected = len(tidy.accepted_rows(choices))
    if corrected:
        parts.append(f"{count_of(corrected, 'typo')} corrected")
    several = len(base.several_rows)
    if several and choices.split:
        parts.append(f"{several:,} with several addresses")
    if prepared.repeated and choices.merge:
        parts.append(count_of(prepared.repeated, "repeat"))
    if prepared.suppressed and choices.suppress:
        parts.append(f"{prepared.suppressed:,} suppressed")
    if prepared.refused:
        parts.append(f"{count_of(prepared.refused, 'row')} taken off")
    likely = 0
    for typo in tidy.typos:
        if not typo.pairs <= choices.accepted:
            likely += typo.rows
    if likely:
        parts.append(count_of(likely, "likely typo"))
    return " · ".join(parts)


def tidy_questions(state: AuditState) -> list[dict[str, Any]]:
    """What only a person can say, and has not said yes to: columns that say no."""
    if state.check.is_running:
        return []
    return [switch.to_json() for switch in refused_switches(state) if not switch.is_on]


def tidy_items(state: AuditState, prepared: Prepared) -> list[dict[str, Any]]:
    """What can be switched on and off.

    Repairs, the most frequent first, then what changes or removes rows.
    """
    base = prepared.base
    choices = state.choices
    repairs = []
    for name in SAFE:
        rows = base.repaired_rows(name)
        if rows:
            repairs.append((rows, name))
    repairs.sort(key=lambda repair: -repair[0])
    switches = refused_switches(state)
    for rows, name in repairs:
        repair = Switch(
            id=name,
            label=REPAIR_LABELS[name],
            count=count_of(rows, "cell"),
            is_on=name not in choices.off,
            examples=base.examples[name],
        )
        switches.append(repair)
    if len(base.several_rows):
        added = count_of(base.added_rows, "row")
        split = Switch(
            id="split",
            label=SWITCH_LABELS["split"],
            count=count_of(len(base.several_rows), "cell"),
            is_on=choices.split,
            examples=base.several_examples,
            why=f"Gives each address a row of its own: {added} more. "
            "Without it, these are reviewed.",
        )
        switches.append(split)
    if prepared.repeated:
        merge = Switch(
            id="merge",
            label=SWITCH_LABELS["merge"],
            count=count_of(prepared.repeated, "row"),
            is_on=choices.merge,
            examples=prepared.repeated_examples,
            why="Sends one mail to each mailbox: the first row that may be sent stays, "
            "the others go to “Remove”.",
        )
        switches.append(merge)
    if state.suppression is not None:
        name = state.suppression.name
        suppress = Switch(
            id="suppress",
            label=SWITCH_LABELS["suppress"],
            count=count_of(prepared.suppressed, "row"),
            is_on=choices.suppress,
            why=f"Takes the addresses and domains of {name} off the send list.",
        )
        switches.append(suppress)
    return [switch.to_json() for switch in switches]


def refused_switches(state: AuditState) -> list[Switch]:
    """The columns that say no, each with the question whether its rows are taken off."""
    choices = state.choices
    switches: list[Switch] = []
    if state.source is None:
        return switches
    for at, refusal in state.source.refusals.items():
        if at == choices.column:
            continue
        is_on = at in choices.refused
        what = refusal.describe().removeprefix(f"{refusal.label}: ")
        question = "Their people are off the send list." if is_on else "Take them off?"
        switch = Switch(
            id=refused_name(at),
            label=refusal.label,
            count=count_of(refusal.refused, "row"),
            is_on=is_on,
            why=f"{capitalize(what)}. {question}",
        )
        switches.append(switch)
    return switches


@dataclass(frozen=True)
class Switch:
    """What can be switched on and off, with a count and examples."""

    id: str
    label: str
    count: str
    is_on: bool
    why: str = ""
    examples: Sequence[Pair] = ()

    def to_json(self) -> dict[str, Any]:
        """The switch as the page shows it."""
        examples = [{"before": before, "after": after} for before, after in self.examples]
        return {
            "id": self.id,
            "label": self.label,
            "count": self.count,
            "examples": examples,
            "on": self.is_on,
            "why": self.why,
        }


def suggestion_part(state: AuditState, tidy: TidyColumn) -> dict[str, Any] | None:
    """Likely typos by domain, the most frequent first."""
    if not tidy.typos:
        return None
    accepted = state.choices.accepted
    parts = []
    whole = 0
    left = 0
    for number, typo in enumerate(tidy.typos):
        is_accepted = typo.pairs <= accepted
        whole += typo.rows
        if not is_accepted:
            left += typo.rows
        part = {
            "id": number,
            "before": short_text(typo.typed, 120),
            "after": short_text(typo.meant, 120),
            "rows": count_of(typo.rows, "row"),
            "accepted": is_accepted,
        }
        parts.append(part)
    return {
        "count": count_of(whole, "row"),
        "left": count_of(left, "row") if left else "",
        "items": parts[:MAX_SHOWN_TYPOS],
        "hidden": max(0, len(parts) - MAX_SHOWN_TYPOS),
    }


# --- 3 check --------------------------------------------------------------------------------------


def snapshot_check(state: AuditState) -> dict[str, Any]:
    """How deep, what it costs, how far it is."""
    check = state.check
    depth = state.choices.depth
    plan = state.plan
    button = button_of(state)
    cost = None
    if state.planned is not None:
        cost = describe_plan(state.planned, check.rates.get(depth))
    addresses = None
    if plan is not None and (check.is_running or state.is_result_current()):
        addresses = plan.unique
    depths = []
    for name, (label, does, means) in DEPTHS.items():
        depths.append({"id": str(name), "label": label, "does": does, "means": means})
    shown = {
        "summary": check_summary(state),
        "depths": depths,
        "depth": depth,
        "backend": check.label(),
        "plan": cost,
        "can_refresh": state.has_known and (check.is_refreshing or not can_ask_again(state)),
        "is_refreshing": check.is_refreshing,
        "notices": notices_part(state),
        "running": check.is_running,
        "state": check.state,
        "progress": progress_part(state, addresses),
        "button": button,
        "sample": sample_part(state),
    }
    if plan is not None and state.is_out_of_quota():
        now = datetime.now(UTC)
        wait = duration_words((next_day(now) - now).total_seconds())
        press = f"Press {button['label']} {QUOTA_RESET} ({wait} from now)."
        shown["quota_over"] = f"Today's quota is used up. {press}"
    return shown


def notices_part(state: AuditState) -> list[str]:
    """What is to be known before the check; after one that failed its own message says it."""
    if state.work.messages["check"][1] == "failed":
        return []
    return [short_text(notice, LONGEST) for notice in state.notices()[:3]]


def progress_part(state: AuditState, addresses: int | None) -> dict[str, Any] | None:
    """How far the run is; no pace and no time left while the service does not answer."""
    check = state.check
    if check.progress is None:
        return None
    part = describe_progress(check.progress, check.rate, addresses)
    if check.is_silent:
        part |= {"rate": "", "left": "", "slow": "", "message": ""}
    return part


def sample_part(state: AuditState) -> dict[str, Any]:
    """What to expect of the whole list, and whether a sample can be checked first."""
    label = ""
    table = None
    if state.sample is not None and state.sample[0] == state.choices.for_check():
        table = sample_table(state)
    elif can_check_sample(state):
        label = f"Check {SAMPLE} first"
    return {"label": label, "running": state.is_sampling, "table": table}


def can_check_sample(state: AuditState) -> bool:
    """Whether a sample says something before the check."""
    plan = state.plan
    if plan is None or state.check.is_running or state.is_out_of_quota():
        return False
    return is_worth_a_sample(plan, state.check.options(state.choices.depth))


def sample_table(state: AuditState) -> dict[str, Any] | None:
    """What to expect; once the list is checked whole, that is said beside the result."""
    result = state.result
    if state.sample is None:
        return None
    if result is not None and result.info.is_complete and state.is_result_current():
        return None
    _, table = state.sample
    return table


def check_summary(state: AuditState) -> str:
    """The step in one line."""
    label = CHECKS[ValidationType(state.choices.depth)]
    by = state.check.label()
    progress = state.check.progress
    if progress is None or not progress.is_over:
        return f"{label} · by {by}"
    unit = "row" if progress.unit == "rows" else "different entry"
    return f"{label} · {count_of(progress.settled, unit)} checked by {by}"


def button_of(state: AuditState) -> dict[str, Any]:
    """The button that starts or goes on, and why it cannot be pressed."""
    is_part = state.check.state in ("stopped", "cancelled", "failed")
    info = state.check.info
    is_current = info is not None and info.made_from == state.choices.for_check()
    label = "Verify"
    if is_part and is_current:
        label = "Resume" if state.can_resume() else "Start again"
    elif state.result is not None:
        label = "Verify again"
    why = ""
    if state.check.is_running:
        why = "the check is running"
    elif state.is_sampling:
        why = "a sample is being checked"
    elif state.plan is None or state.prepared is None:
        why = "the cost is not known yet"
    elif state.is_out_of_quota():
        why = "today's quota is used up"
    return {"label": label, "enabled": not why, "why": why}


def can_ask_again(state: AuditState) -> bool:
    """Whether a whole result has rows without a clear answer.

    They can be checked again without the others.
    """
    result = state.result
    if result is None or state.check.is_running or state.prepared is None:
        return False
    if not result.info.is_complete or not state.is_result_current():
        return False
    return result.listing.count_unclear() > 0 and state.can_resume()


# --- 4 decide -------------------------------------------------------------------------------------


def snapshot_decide(state: AuditState) -> dict[str, Any]:
    """The result: picture, facets, a page of the table, downloads."""
    result = state.result
    if result is None:
        return {"is_ready": False, "summary": ""}
    listing = result.listing
    info = result.info
    rows = len(listing.rows)
    first, count = result.window
    page = result.found[first : first + count]
    people = count_of(listing.counts.people, "person", "people")
    outdated = ""
    if not state.is_result_current():
        outdated = "From the earlier setting: verify again to apply what you changed."
    found = count_of(rows, "row")
    if len(result.found) < rows:
        found = f"{len(result.found):,} of {found}"
    left_out = listing.columns_left_out()
    more_columns = f"{count_of(left_out, 'more column')} in the file." if left_out else ""
    origins = None
    if result.origins is not None:
        origins = result.origins.to_json(listing, result.grouped_by)
    return {
        "is_ready": True,
        "summary": f"{people} {mailed_words(info.depth)}",
        "title": f"{info.name} · column {info.column}",
        "check": f"{CHECKS[ValidationType(info.depth)]}, by {info.backend}, {date_text(info.when)}",
        "outdated": outdated,
        **describe_headline(listing.counts, info.depth),
        "forecast": forecast_text(state, result),
        "means": DEPTHS[info.depth][2],
        "unclear": unclear_text(state, listing),
        "can_ask_again": can_ask_again(state),
        "picture": picture(listing),
        "total": count_of(rows, "row"),
        "actions": describe_actions(listing.counts),
        "policies": describe_policies(listing, state.policies),
        "policy": state.policy.name,
        "facets": [facet_part(listing, name) for name in FACETS if listing.count(name)],
        "is_filtered": bool(listing.words or any(listing.chosen.values())),
        "words": listing.words,
        "found": found,
        "heads": head_parts(listing),
        "table": {
            "first": first,
            "total": len(result.found),
            "rows": listing.page(page) if len(page) else [],
        },
        "left_out": more_columns,
        "address": result.address(),
        "formats": list(KINDS),
        "services": services_part(listing),
        "save_as": {"service": result.service, "format": result.format},
        "people": people,
        "comparison": result.comparison,
        "operators": result.operators,
        "origins": origins,
        "bounces": bounces_part(result),
        "wave": {
            "next": max(state.choices.waved.values.unique().to_pylist(), default=0) + 1,
            "text": result.wave.text,
            "can_pilot": result.wave.can_pilot,
            "can_resume": result.wave.can_resume,
        },
        "decided": decided_part(listing),
        "decide_shown": decide_shown_part(result),
        "typos": find_typos(listing),
        "to_check": to_check(state, listing),
    }


def head_parts(listing: Listing) -> list[dict[str, str]]:
    """The columns of the table, each with the value of its `aria-sort`."""
    by, is_reversed = listing.sorted_by
    parts = []
    for head in listing.heads():
        order = "none"
        if head["key"] == by:
            order = "descending" if is_reversed else "ascending"
        parts.append({**head, "sort": order})
    return parts


def bounces_part(result: Result) -> dict[str, Any] | None:
    """What a sender's export says, and whether people in it are still to be removed."""
    bounced = result.bounced
    if bounced is None:
        return None
    actions = result.listing.action[bounced.gone]
    is_left = actions != ACTIONS.index("drop")
    return {
        **bounced.table,
        "is_complete": bounced.is_complete,
        "can_remove": bool(is_left.any()),
    }


def decided_part(listing: Listing) -> dict[str, int]:
    """How many rows were decided about by hand, by what was decided."""
    counts = np.bincount(listing.rows.decision, minlength=len(DECIDED))
    by_word = dict.fromkeys(DECISIONS, 0)
    for code, count in enumerate(counts.tolist()):
        word = listing.word_of(code)
        if word:
            by_word[word] += count
    return {**by_word, "total": sum(by_word.values())}


def services_part(listing: Listing) -> list[dict[str, str]]:
    """The services for whose importer the send list can be made, and what both files hold."""
    parts = []
    for importer in importers().values():
        identifier = importer.find_identifier(listing.own_labels(), listing.column)
        columns = importer.address
        if identifier is not None:
            columns = f"{readable(str(identifier))} and {columns}"
        part = {
            "id": importer.name,
            "label": importer.label,
            "means": f"{columns}, and nothing else.",
            "removed": f"Removed and suppressed people: {importer.remove}.",
        }
        parts.append(part)
    return parts


def decide_shown_part(result: Result) -> list[dict[str, Any]]:
    """What can be decided about all rows that are shown, and why not."""
    listing = result.listing
    rows = result.found
    why = {}
    if not listing.has_address[rows].any():
        why["send"] = "none of these rows holds an address"
    if not len(rows):
        why["remove"] = "no row is shown"
    if not (listing.pair[rows] >= 0).any():
        why["suggestion"] = "none of these rows has a suggestion"
    buttons = []
    for name, label in DECISION_LABELS.items():
        if name == "suggestion" and not listing.pairs:
            continue
        buttons.append({"id": name, "label": label, "why": why.get(name, "")})
    return buttons


def to_check(state: AuditState, listing: Listing) -> dict[str, str] | None:
    """What it costs to verify the suggestions that were chosen; None where there are none."""
    plan = state.plan
    known = 0
    is_metered = False
    if plan is not None:
        known = max(len(listing.addresses_to_check()) - plan.to_submit, 0)
        is_metered = plan.daily_limit is not None
    text = describe_to_check(listing, is_metered=is_metered, known=known)
    if not text:
        return None
    return {"text": text}


def unclear_text(state: AuditState, listing: Listing) -> str:
    """Which rows need another try, how, when and at what cost."""
    counts = listing.counts.buckets
    unclear = listing.count_unclear()
    wait = listing.seconds_to_wait()
    yet = ""
    when = ""
    if wait:
        yet = " yet"
        when = f", best in {duration_words(wait)}"
    parts = []
    unanswered = unclear - counts["error"]
    if unanswered:
        rows = count_of(unanswered, "row has", "rows have")
        parts.append(f"{rows} no clear answer{yet}: they are Unknown.")
        several = counts["unknown"] - unanswered
        if several:
            verb = "cell holds" if several == 1 else "cells hold"
            parts.append(f"{several:,} more {verb} several addresses: see step 2.")
    if counts["error"]:
        parts.append(f"The check of {count_of(counts['error'], 'row')} failed.")
    if can_ask_again(state):
        addresses = listing.count_unclear_addresses()
        these = "the one address" if addresses == 1 else f"the {addresses:,} different addresses"
        kept = kept_words(state)
        parts.append(
            f"“Ask again” checks only {these} behind them{when}. "
            f"Clear answers are kept {kept} and cost nothing."
        )
        if state.plan is not None and state.plan.daily_limit is not None:
            parts.append(f"It costs up to {count_of(addresses, 'address')} of the quota.")
    elif unclear and not state.can_resume():
        parts.append(f"Verify again{when}: no answer is kept, so all rows are checked again.")
    left = listing.count_left()
    if left:
        parts.append(f"{count_of(left, 'row')} not checked yet.")
    return " ".join(parts)


def forecast_text(state: AuditState, result: Result) -> str:
    """What a sample let expect of the list, beside what was found."""
    prepared = state.prepared
    if state.sample is None or prepared is None or not result.info.is_complete:
        return ""
    choices, sample = state.sample
    read = prepared.read
    if choices != result.info.made_from or len(read) != len(result.listing.rows):
        return ""
    is_asked = np.ones(len(read), np.bool_)
    if "wanted" in read.schema.names:
        is_asked = to_bools(read["wanted"])
    valid = result.listing.count_valid(is_asked)
    share = percent(valid, int(np.count_nonzero(is_asked)))
    return f"By the sample {sample['valid']} valid were expected; {share} were found."


def picture(listing: Listing) -> list[dict[str, Any]]:
    """The verdicts as parts of a bar; each filters the table."""
    rows = max(len(listing.rows), 1)
    labels = verdict_labels(listing)
    parts = []
    for name, count in listing.counts.lines.items():
        if not count:
            continue
        part = {
            "id": name,
            "label": labels[name],
            "count": f"{count:,}",
            "percent": percent(count, rows),
            "share": count / rows,
            "on": name in listing.chosen["verdict"],
        }
        parts.append(part)
    return parts


def verdict_labels(listing: Listing) -> dict[str, str]:
    """The verdicts, and what rows without one are."""
    pending = PENDING_LABELS[listing.count_left() > 0]
    return {**VERDICT_LABELS, "pending": pending}


def facet_part(listing: Listing, name: str) -> dict[str, Any]:
    """The values of a facet with counts and bars."""
    counts = listing.count(name)
    chosen = listing.chosen[name]
    largest = max(counts.values()) or 1
    label_of = LABELERS.get(name, str)
    if name == "verdict":
        label_of = verdict_labels(listing).__getitem__
    shown = list(counts)[:MAX_VALUES]
    shown += [value for value in sorted(chosen) if value not in shown]
    values = []
    for value in shown:
        count = counts.get(value, 0)
        part = {
            "id": value,
            "label": short_text(label_of(value), 60),
            "count": f"{count:,}",
            "share": count / largest,
            "on": value in chosen,
        }
        values.append(part)
    more = ""
    if len(counts) > len(values):
        more = f"{len(counts) - len(values):,} more; search for one"
    return {
        "id": name,
        "label": FACET_LABELS[name],
        "values": values,
        "more": more,
    }


def action_label(value: str) -> str:
    if value in ACTIONS:
        return LABELS[value]
    return value


def repair_label(value: str) -> str:
    return REPAIR_LABELS.get(value, value)


LABELERS: dict[str, Callable[[str], str]] = {
    "action": action_label,
    "reason": reason_label,
    "repaired": repair_label,
}
SNAPSHOTS: dict[str, Callable[[AuditState], dict[str, Any]]] = {
    "page": snapshot_page,
    "list": snapshot_list,
    "tidy": snapshot_tidy,
    "check": snapshot_check,
    "decide": snapshot_decide,
}
