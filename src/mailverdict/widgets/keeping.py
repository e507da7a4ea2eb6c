"""What is kept of an audit, and how it comes back after a restart of the program or the machine."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .choices import Choices
from .listing import AuditedRows, Listing
from .result import Result
from .session import (
    DECIDED,
    STATE,
    UNREADABLE,
    WAVED,
    AuditSession,
    Given,
    copy_private,
    describe_source,
    file_of,
)
from .source import Source
from .steps import ResultInfo, Suppression, prepare, read_suppression
from .wording import date_text

if TYPE_CHECKING:
    from .state import AuditState

logger = logging.getLogger("mailverdict")
INTERRUPTED = "The check was interrupted. What was checked is kept. Press Resume to go on."


def open_session(state: AuditState, session: AuditSession, column: Hashable | None = None) -> bool:
    """Bring an audit back as it was left; False if it cannot be read."""
    session.claim()
    try:
        kept = session.read()
        decided, waved = session.read_people(DECIDED, "string"), session.read_people(WAVED, "int64")
        choices = replace(
            Choices.from_json(kept["choices"]), decided=decided, waved=waved, **state.wanted
        )
        source = session.read_list(kept)
        suppressions = {
            str(key): read_suppression(session.folder / Path(file).name, str(name))
            for key, (name, file) in kept["suppressions"].items()
        }
        result = read_result(session, kept, source, suppressions)
        given = Given.from_json(kept["given"], kept["read"])
        run = kept["run"] and ResultInfo.from_json(kept["run"])
    except UNREADABLE as exc:
        logger.warning("a kept audit cannot be read: %s", exc)
        session.unlock()
        return False
    with state.lock:
        state.require_idle()
        state.forget()
        state.source, state.given, state.sheets = source, given, source.sheets
        state.suppressions |= suppressions
        state.guess = kept["guess"]
        state.choices = (
            choices
            if choices.policy in state.policies
            else replace(choices, policy=state.choices.policy)
        )
        check = state.check
        check.is_refreshing, check.asked_since = kept["refreshing"]
        check.info, check.state = run, kept["state"]
        if result is not None:
            listing = Listing(
                result[0], state.policy, choices.decided, choices.accepted, choices.waved
            )
            state.result = Result(listing, result[1], kept["view"])
        state.written = source, state.result, decided, waved
        state.session = session
        when = datetime.fromtimestamp((session.folder / STATE).stat().st_mtime, UTC)
        state.work.say("list", f"{source.name} is as you left it on {date_text(when)}.", "done")
        if run is not None and check.state in ("running", "pausing"):
            check.state = "stopped"
            state.work.say("check", INTERRUPTED, "warned")
    names = list(source.frame.columns)
    if column is not None and column in names and names.index(column) != state.choices.column:
        state.choose_column(names.index(column))
    return True


def read_result(
    session: AuditSession,
    kept: Mapping[str, Any],
    source: Source,
    suppressions: Mapping[str, Suppression],
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
    looks, check = state.result and state.result.looks(), state.check
    return (
        state.source,
        state.result,
        looks,
        state.choices,
        check.state,
        check.is_refreshing,
        check.asked_since,
    )


def keep(state: AuditState) -> None:
    """Keep the audit as it is, so that it comes back after the program or the machine has ended."""
    with state.lock:
        session, source, given, result = state.session, state.source, state.given, state.result
        if session is None or source is None or given is None:
            return
        choices = state.choices
        made_from = [choices, *([] if result is None else [result.info.made_from])]
        used = {
            each.suppression: state.suppressions[each.suppression]
            for each in made_from
            if each.suppression
        }
        kept = {
            **describe_source(source),
            "given": given.to_json(),
            "guess": state.guess,
            "read": [given.encoding, given.has_header, given.sheet],
            "choices": choices.to_json(),
            "suppressions": {key: [each.name, file_of(key, each)] for key, each in used.items()},
            "refreshing": [state.check.is_refreshing, state.check.asked_since],
            "run": state.check.info and state.check.info.to_json(),
            "state": state.check.state,
            "result": result and result.info.to_json(),
            "note": result and result.listing.rows.note,
            "view": result and result.looks(),
        }
    session.make()
    for key, each in used.items():
        copy_private(each.path, session.folder / file_of(key, each))
    kept_source, kept_result, decided, waved = state.written
    if kept_source is not source:
        session.write_list(source)
    if result is not None and kept_result is not result:
        session.write_result(result.listing.rows)
    for name, people, before in (
        (DECIDED, choices.decided, decided),
        (WAVED, choices.waved, waved),
    ):
        if people is not before:
            session.write_people(name, people)
    state.written = source, result, choices.decided, choices.waved
    session.write(kept)
