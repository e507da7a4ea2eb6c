"""What is kept of an audit, and how it comes back after a restart of the program or the machine."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .choices import Choices
from .listing import FACETS, AuditedRows, Listing
from .session import STATE, UNREADABLE, AuditSession, Given, copy_private, describe_source, file_of
from .source import Source
from .steps import ResultInfo, Suppression, prepare, read_suppression
from .wording import date_text

if TYPE_CHECKING:
    from .state import AuditState

logger = logging.getLogger("mailverdict")
INTERRUPTED = "The check was interrupted. What was checked is kept. Press Resume to go on."


def open_session(state: AuditState, session: AuditSession, column: Hashable | None = None) -> bool:
    """Bring an audit back as it was left; False if it cannot be read."""
    session.check_owner()
    try:
        kept = session.read()
        source, choices = session.read_list(kept), replace(Choices.from_json(kept["choices"]), **state.wanted)
        suppressions = {
            str(key): read_suppression(session.folder / Path(file).name, str(name))
            for key, (name, file) in kept["suppressions"].items()
        }
        result = read_result(session, kept, source, suppressions)
        given = Given.from_json(kept["given"])
        run = kept["run"] and ResultInfo.from_json(kept["run"])
    except (*UNREADABLE, InputError) as exc:
        logger.warning("a kept audit cannot be read: %s", exc)
        return False
    with state.lock:
        state.require_idle()
        state.forget()
        state.source, state.given, state.sheets = source, given, source.sheets
        state.suppressions |= suppressions
        state.guess, (state.encoding, state.has_header, state.sheet) = kept["guess"], kept["read"]
        state.choices = choices if choices.policy in state.policies else replace(choices, policy=state.choices.policy)
        state.is_refreshing, state.asked_since = kept["refreshing"]
        state.run_info, state.run_state = run, kept["state"]
        if result is not None:
            state.show_listing(Listing(result[0], state.policy, choices.decided, choices.accepted), result[1])
            look_as(state, kept["view"])
        state.written = {"list": state.list_number, "result": state.result_number}
        state.session = session
        when = datetime.fromtimestamp((session.folder / STATE).stat().st_mtime, UTC)
        state.say("list", f"{source.name} is as you left it on {date_text(when)}.", "done")
        if run is not None and state.run_state in ("running", "pausing"):
            state.run_state = "stopped"
            state.say("check", INTERRUPTED, "warned")
    names = list(source.frame.columns)
    if column is not None and column in names and names.index(column) != state.choices.column:
        state.choose_column(names.index(column))
    return True


def read_result(
    session: AuditSession, kept: Mapping[str, Any], source: Source, suppressions: Mapping[str, Suppression]
) -> tuple[AuditedRows, ResultInfo] | None:
    """The result that was kept, if there was one."""
    if kept["result"] is None:
        return None
    info = ResultInfo.from_json(kept["result"])
    prepared = prepare(source, info.made_from, suppressions.get(info.made_from.suppression))
    rows = session.read_result(prepared, kept["note"])
    return None if rows is None else (rows, info)


def to_keep(state: AuditState) -> tuple[Any, ...]:
    """What is kept, to compare."""
    listing = state.listing
    looked = () if listing is None else (sorted_facets(listing), listing.words, listing.sorted_by)
    run = state.run_state, state.is_refreshing, state.asked_since
    return state.list_number, state.result_number, state.choices, run, looked


def keep(state: AuditState) -> None:
    """Keep the audit as it is, so that it comes back after the program or the machine has ended."""
    with state.lock:
        session, source, given, listing = state.session, state.source, state.given, state.listing
        if session is None or source is None or given is None:
            return
        number, result_number, info = state.list_number, state.result_number, state.result_info
        made_from = [state.choices, *([] if info is None else [info.made_from])]
        used = {each.suppression: state.suppressions[each.suppression] for each in made_from if each.suppression}
        kept = {
            **describe_source(source),
            "given": given.to_json(),
            "guess": state.guess,
            "read": [state.encoding, state.has_header, state.sheet],
            "choices": state.choices.to_json(),
            "suppressions": {key: [each.name, file_of(key, each)] for key, each in used.items()},
            "refreshing": [state.is_refreshing, state.asked_since],
            "run": state.run_info and state.run_info.to_json(),
            "state": state.run_state,
            "result": info and info.to_json(),
            "note": listing and listing.rows.note,
            "view": {}
            if listing is None
            else {"facets": sorted_facets(listing), "words": listing.words, "sort": listing.sorted_by},
        }
    session.make()
    for key, each in used.items():
        copy_private(each.path, session.folder / file_of(key, each))
    if state.written.get("list") != number:
        session.write_list(source)
        state.written["list"] = number
    if listing is not None and state.written.get("result") != result_number:
        session.write_result(listing.rows)
        state.written["result"] = result_number
    session.write(kept)


def look_as(state: AuditState, view: Mapping[str, Any]) -> None:
    """Show the rows that were looked at when the audit was kept."""
    listing = state.require_listing()
    for facet, value in view["facets"]:
        if facet in FACETS:
            listing.toggle(facet, str(value))
    listing.search(str(view["words"]))
    key, is_reversed = view["sort"]
    for _ in range(1 + bool(is_reversed) if key in {head["key"] for head in listing.heads()} else 0):
        listing.sort(key)
    state.find()


def sorted_facets(listing: Listing) -> list[tuple[str, str]]:
    """The values of facets that are chosen."""
    return [(facet, value) for facet in FACETS for value in sorted(listing.chosen[facet])]
