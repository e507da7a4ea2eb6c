"""What a page shows of an `AuditState`, as values of JSON.

Texts have a bounded length, and there are at most 50 rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
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
    text, kind = state.work.messages[section]
    return {"message": short_text(text, LONGEST), "kind": kind, "busy": state.work.busy[section]}


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
    open_id = None if state.session is None else state.session.id
    parts = []
    for kept in state.kept:
        if kept.id == open_id:
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
    columns = list(range(min(source.frame.shape[1], PREVIEW_COLUMNS)))
    if at is not None and at not in columns:
        columns[-1] = at
    cells = []
    for column in columns:
        first = source.frame.iloc[:PREVIEW_ROWS, column]
        texts = cell_texts(first, LONGEST_PREVIEW).to_pylist()
        cells.append([readable(text or "") for text in texts])
    rows = [list(row) for row in zip(*cells, strict=True)]
    return {
        "heads": [source.labels[column] for column in columns],
        "rows": rows,
        "at": None if at is None else columns.index(at),
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
    suppression = state.suppression
    unread = prepared.base.nothing_rows
    nothing = ""
    if unread:
        verb = "holds" if unread == 1 else "hold"
        nothing = f"{count_of(unread, 'cell')} {verb} no address that can be read."
    return {
        "is_ready": True,
        "summary": tidy_summary(state, prepared) or "nothing to repair",
        "items": tidy_items(state, prepared),
        "questions": tidy_questions(state),
        "suggestions": suggestion_part(state, prepared.tidy),
        "nothing": nothing,
        "suppression": suppression and suppression.name,
        "suppression_notes": suppression.notes if suppression else [],
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
        ways = [name for name in SAFE if name not in choices.off and base.repaired_rows(name)]
        part = f"{count_of(repaired, 'cell')} repaired"
        if len(ways) > 1:
            part += f" in {len(ways)} ways"
        parts.append(part)
    corrected = len(tidy.accepted_rows(choices))
    if corrected:
        parts.append(f"{count_of(corrected, 'typo')} corrected")
    several = len(base.several_rows)
    if several and choices.split:
        parts.append(f"{several:,} with several addresses")
    if prepared.repeated and choices.merge:
        parts.append(f"{count_of(prepared.repeated, 'repeat')}")
    if prepared.suppressed and choices.suppress:
        parts.append(f"{prepared.suppressed:,} suppressed")
    if prepared.refused:
        parts.append(f"{count_of(prepared.refused, 'row')} taken off")
    likely = sum(typo.rows for typo in tidy.typos if not typo.pairs <= choices.accepted)
    if likely:
        parts.append(f"{count_of(likely, 'likely typo')}")
    return " · ".join(parts)


def tidy_questions(state: AuditState) -> list[dict[str, Any]]:
    """What only a person can say, and has not said yes to: columns that say no."""
    if state.check.is_running:
        return []
    return [each for each in refused_items(state) if not each["on"]]


def tidy_items(state: AuditState, prepared: Prepared) -> list[dict[str, Any]]:
    """What can be switched on and off.

    Repairs, the most frequent first, then what changes or removes rows.
    """
    base = prepared.base
    choices = state.choices
    items = refused_items(state)
    repairs = []
    for name in SAFE:
        rows = base.repaired_rows(name)
        if rows:
            repairs.append((rows, name))
    repairs.sort(key=lambda repair: -repair[0])
    for rows, name in repairs:
        examples = base.examples[name]
        is_on = name not in choices.off
        items.append(item(name, REPAIR_LABELS[name], rows, "cell", examples, is_on, ""))
    several = len(base.several_rows)
    if several:
        added = count_of(base.added_rows, "row")
        why = f"Gives each address a row of its own: {added} more. Without it, these are reviewed."
        label = "Several addresses in a cell"
        examples = base.several_examples
        items.append(item("split", label, several, "cell", examples, choices.split, why))
    repeated = prepared.repeated
    if repeated:
        why = (
            "Sends one mail to each mailbox: the first row that may be sent stays, the others go "
            "to “Remove”."
        )
        examples = prepared.repeated_examples
        items.append(item("merge", "Duplicates", repeated, "row", examples, choices.merge, why))
    if state.suppression is not None:
        why = f"Takes the addresses and domains of {state.suppression.name} off the send list."
        label = "On your suppression list"
        rows = prepared.suppressed
        items.append(item("suppress", label, rows, "row", [], choices.suppress, why))
    return items


def refused_items(state: AuditState) -> list[dict[str, Any]]:
    """The columns that say no, each with the question whether its rows are taken off."""
    choices = state.choices
    items: list[dict[str, Any]] = []
    if state.source is None:
        return items
    for at, refusal in state.source.refusals.items():
        if at == choices.column:
            continue
        is_on = at in choices.refused
        label = refusal.label
        what = refusal.describe().removeprefix(f"{label}: ")
        question = "Their people are off the send list." if is_on else "Take them off?"
        why = f"{capitalize(what)}. {question}"
        items.append(item(refused_name(at), label, refusal.refused, "row", [], is_on, why))
    return items


def item(
    name: str,
    label: str,
    number: int,
    noun: str,
    pairs: list[Pair],
    is_on: bool,  # noqa: FBT001
    why: str,
) -> dict[str, Any]:
    """A switch with a count and examples."""
    examples = [{"before": before, "after": after} for before, after in pairs]
    return {
        "id": name,
        "label": label,
        "count": count_of(number, noun),
        "examples": examples,
        "on": is_on,
        "why": why,
    }


def suggestion_part(state: AuditState, tidy: TidyColumn) -> dict[str, Any] | None:
    """Likely typos by domain, the most frequent first."""
    if not tidy.typos:
        return None
    accepted = state.choices.accepted
    shown = []
    left = 0
    for number, typo in enumerate(tidy.typos):
        is_accepted = typo.pairs <= accepted
        if not is_accepted:
            left += typo.rows
        part = {
            "id": number,
            "before": short_text(typo.typed, 120),
            "after": short_text(typo.meant, 120),
            "rows": count_of(typo.rows, "row"),
            "accepted": is_accepted,
        }
        shown.append(part)
    return {
        "count": count_of(sum(typo.rows for typo in tidy.typos), "row"),
        "left": count_of(left, "row") if left else "",
        "items": shown[:MAX_SHOWN_TYPOS],
        "hidden": max(0, len(tidy.typos) - MAX_SHOWN_TYPOS),
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
    part: dict[str, Any] = {"label": "", "running": state.is_sampling, "table": None}
    if state.sample is not None and state.sample[0] == state.choices.for_check():
        part["table"] = sample_table(state)
        return part
    plan = state.plan
    if plan is None or state.check.is_running or state.is_out_of_quota():
        return part
    if is_worth_a_sample(plan, state.check.options(state.choices.depth)):
        part["label"] = f"Check {SAMPLE} first"
    return part


def sample_table(state: AuditState) -> dict[str, Any] | None:
    """What to expect; once the list is checked whole, that is said beside the result."""
    if state.sample is None:
        return None
    if state.result is not None and state.is_result_current() and state.result.info.is_complete:
        return None
    return state.sample[1]


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
    if result is None or state.check.is_running:
        return False
    if not result.info.is_complete or not state.is_result_current():
        return False
    return state.prepared is not None and result.listing.count_unclear() > 0 and state.can_resume()


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
        "facets": facet_parts(listing),
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
    counts = np.bincount(listing.rows.decision, minlength=len(DECIDED)).tolist()
    found = dict.fromkeys(DECISIONS, 0)
    for code, count in enumerate(counts):
        word = listing.word_of(code)
        if word:
            found[word] += count
    return {**found, "total": sum(found.values())}


def services_part(listing: Listing) -> list[dict[str, str]]:
    """The services for whose importer the send list can be made, and what both files hold."""
    parts = []
    for importer in importers().values():
        identifier = importer.find_identifier(listing.own_labels(), listing.column)
        by = importer.address
        if identifier is not None:
            by = f"{readable(str(identifier))} and {by}"
        means = f"{by}, and nothing else."
        removed = f"Removed and suppressed people: {importer.remove}."
        parts.append(
            {"id": importer.name, "label": importer.label, "means": means, "removed": removed}
        )
    return parts


def decide_shown_part(result: Result) -> list[dict[str, Any]]:
    """What can be decided about all rows that are shown, and why not."""
    listing = result.listing
    found = result.found
    can = {
        "send": bool(listing.has_address[found].any()),
        "remove": bool(len(found)),
        "suggestion": bool((listing.pair[found] >= 0).any()),
    }
    why = {
        "send": "none of these rows holds an address",
        "remove": "no row is shown",
        "suggestion": "none of these rows has a suggestion",
    }
    buttons = []
    for name, label in DECISION_LABELS.items():
        if name == "suggestion" and not listing.pairs:
            continue
        buttons.append({"id": name, "label": label, "why": "" if can[name] else why[name]})
    return buttons


def to_check(state: AuditState, listing: Listing) -> dict[str, str] | None:
    """What it costs to verify the suggestions that were chosen; None where there are none."""
    plan = state.plan
    known = 0 if plan is None else max(len(listing.addresses_to_check()) - plan.to_submit, 0)
    text = describe_to_check(
        listing, is_metered=plan is not None and plan.daily_limit is not None, known=known
    )
    return {"text": text} if text else None


def unclear_text(state: AuditState, listing: Listing) -> str:
    """Which rows need another try, how, when and at what cost."""
    counts = listing.counts.buckets
    wait = listing.seconds_to_wait()
    parts = []
    unclear = listing.count_unclear()
    addresses = listing.count_unclear_addresses() if unclear else 0
    unanswered = unclear - counts["error"]
    if unanswered:
        yet = " yet" if wait else ""
        verb = "row has" if unanswered == 1 else "rows have"
        parts.append(f"{unanswered:,} {verb} no clear answer{yet}: they are Unknown.")
        several = counts["unknown"] - unanswered
        if several:
            verb = "cell holds" if several == 1 else "cells hold"
            parts.append(f"{several:,} more {verb} several addresses: see step 2.")
    if counts["error"]:
        parts.append(f"The check of {count_of(counts['error'], 'row')} failed.")
    when = f", best in {duration_words(wait)}" if wait else ""
    if can_ask_again(state):
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
    if state.sample is None or not result.info.is_complete:
        return ""
    choices, sample = state.sample
    prepared = state.prepared
    if choices != result.info.made_from or prepared is None:
        return ""
    read = prepared.read
    is_asked = np.ones(len(read), np.bool_)
    if "wanted" in read.schema.names:
        is_asked = to_bools(read["wanted"])
    if len(is_asked) != len(result.listing.rows):
        return ""
    valid = result.listing.count_valid(is_asked)
    found = percent(valid, int(np.count_nonzero(is_asked)))
    return f"By the sample {sample['valid']} valid were expected; {found} were found."


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


def facet_parts(listing: Listing) -> list[dict[str, Any]]:
    """The facets that have something to choose."""
    parts = []
    for name in FACETS:
        if listing.count(name):
            parts.append(facet_part(listing, name))
    return parts


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
    more = len(counts) - len(values)
    return {
        "id": name,
        "label": FACET_LABELS[name],
        "values": values,
        "more": f"{more:,} more; search for one" if more > 0 else "",
    }


LABELERS: dict[str, Callable[[str], str]] = {
    "action": lambda value: LABELS[value] if value in ACTIONS else value,
    "reason": reason_label,
    "repaired": lambda value: REPAIR_LABELS.get(value, value),
}
SNAPSHOTS: dict[str, Callable[[AuditState], dict[str, Any]]] = {
    "page": snapshot_page,
    "list": snapshot_list,
    "tidy": snapshot_tidy,
    "check": snapshot_check,
    "decide": snapshot_decide,
}
