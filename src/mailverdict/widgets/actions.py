"""What a page can ask for, with the arguments of each action; all else is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import InputError, SettingsError
from .source import short_text

LONGEST_TEXT = 50_000_000  # characters of a text from the browser
LONGEST_ANSWER = 40
MAX_ROW = 2**62
# The purpose of a file that the browser sends: the section in which an error is shown, and the
# method that uses it.
PURPOSES = {
    "list": ("list", "load_file"),
    "suppress": ("tidy", "suppress_file"),
    "compare": ("decide", "compare"),
    "bounces": ("decide", "read_bounces"),
}
# The section in which an error of an action is shown, and the types of its arguments.
PAGE_ACTIONS: dict[str, tuple[str, dict[str, type]]] = {
    "load_path": ("list", {"path": str}),
    "load_pasted": ("list", {"text": str}),
    "read_again": ("list", {"encoding": str, "has_header": str, "sheet": str}),
    "choose_column": ("list", {"at": int}),
    "list_runs": ("list", {}),
    "open_kept": ("list", {"id": str}),
    "delete_kept": ("list", {"id": str}),
    "open_earlier": ("list", {"number": int}),
    "set_repair": ("tidy", {"name": str, "is_on": bool}),
    "accept_typo": ("tidy", {"number": int}),
    "accept_all": ("tidy", {}),
    "undo": ("check", {}),
    "undo_several": ("check", {"count": int}),
    "redo": ("check", {}),
    "suppress_pasted": ("tidy", {"text": str}),
    "drop_suppression": ("tidy", {}),
    "set_depth": ("check", {"depth": str}),
    "set_refresh": ("check", {"is_on": bool}),
    "make_plan_again": ("check", {}),
    "check_sample": ("check", {}),
    "verify": ("check", {}),
    "ask_again": ("decide", {}),
    "pause": ("check", {}),
    "set_facet": ("decide", {"facet": str, "value": str}),
    "clear_facets": ("decide", {}),
    "show_groups": ("decide", {"column": int}),
    "search": ("decide", {"text": str}),
    "sort": ("decide", {"key": str}),
    "look_at": ("decide", {"address": str}),
    "rows": ("decide", {"first": int, "count": int}),
    "save_as": ("decide", {"service": str, "format": str}),
    "decide": ("decide", {"rows": list, "what": str}),
    "decide_shown": ("decide", {"what": str}),
    "decide_domain": ("decide", {"domain": str, "what": str}),
    "check_decided": ("decide", {}),
    "remove_bounced": ("decide", {}),
    "set_complete": ("decide", {"is_on": bool}),
    "forget_bounces": ("decide", {}),
    "make_wave": ("decide", {"kind": str}),
    "make_pilot": ("decide", {"kind": str}),
    "resume_waves": ("decide", {"kind": str}),
    "set_policy": ("decide", {"name": str}),
    "download": ("decide", {"which": str, "kind": str}),
    "download_for": ("decide", {"service": str, "which": str}),
}
# Those that change only how the result is looked at or saved: methods of `Result`; the others are
# of `AuditState`.
LOOKS = frozenset(
    {
        "set_facet",
        "clear_facets",
        "show_groups",
        "search",
        "sort",
        "look_at",
        "rows",
        "save_as",
    }
)


class PageMessage(NamedTuple):
    """An action that a page asks for."""

    action: str
    arguments: dict[str, Any]
    answer: str  # the id of the answer that the page waits for; empty: none


def read_message(content: Mapping[str, Any]) -> PageMessage:
    """What a page asks for: all but three fields are arguments, which are not checked yet.

    >>> read_message({"act": "set_depth", "depth": "mx", "tab": "tab-00000001", "answer": "7"})
    PageMessage(action='set_depth', arguments={'depth': 'mx'}, answer='7')
    """
    arguments = dict(content)
    action = str(arguments.pop("act", None))
    arguments.pop("tab", None)
    answer = arguments.pop("answer", "")
    if not isinstance(answer, str) or len(answer) > LONGEST_ANSWER:
        answer = ""
    return PageMessage(action, arguments, answer)


def read_arguments(content: Mapping[str, Any], types: Mapping[str, type]) -> dict[str, Any]:
    """The arguments of an action, checked."""
    arguments = {}
    for name, kind in types.items():
        value = content.get(name)
        if type(value) is not kind:
            shown = short_text(repr(value), 40)
            raise SettingsError(f"{name}={shown}: must be of type {kind.__name__}")
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise InputError(
                f"the text has more than {LONGEST_TEXT:,} characters; give it as a file"
            )
        if isinstance(value, list) and not all(map(is_position, value)):
            raise SettingsError(f"{name}: must be a list of row positions")
        arguments[name] = value
    return arguments


def is_position(value: Any) -> bool:
    """Whether a value of JSON can be the position of a row."""
    return type(value) is int and abs(value) < MAX_ROW
