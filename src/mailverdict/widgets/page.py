"""The page of an audit as one anywidget: it sends snapshots to the browser and the browser's events to the state.

The front end is plain JavaScript without a build step: the modules in `static`, joined to one. It makes no request.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ..errors import InputError, SettingsError
from ..theme import MARK_OF, MARKS, stylesheet
from .shared_state import SECTIONS
from .snapshots import take_snapshot
from .source import short_text
from .state import AuditState
from .transfer import FileTransfer
from .wording import VERDICT_LABELS

__all__ = ["PageWidget"]

# Each after those that it imports; the last one is the widget.
SCRIPTS = ("vendor/preact-htm.js", "transfer.js", "connection.js", "parts.js", "table.js", "steps.js", "page.js")
IMPORT = re.compile(r'^import \{(.+?)\} from "\./(.+?)";$', re.M | re.S)
EXPORT = re.compile(r"export ?\{([^{}]+)\};\s*\Z")  # how each of them ends
LONGEST_ANSWER = 40  # characters
LONGEST_TEXT = 50_000_000  # characters of a text from the browser
# The purpose of a file that the browser sends: the section in which an error is shown, and what is done with the file.
PURPOSES: dict[str, tuple[str, Callable[[AuditState, Path, str], None]]] = {
    "list": ("list", lambda state, path, name: state.load_file(path, name)),
    "suppress": ("tidy", lambda state, path, name: state.suppress_file(path, name)),
    "compare": ("decide", lambda state, path, name: state.compare(path, name)),
}
# The section in which an error of an action is shown, and the types of its arguments.
PAGE_ACTIONS: dict[str, tuple[str, dict[str, type]]] = {
    "load_path": ("list", {"path": str}),
    "load_pasted": ("list", {"text": str}),
    "read_again": ("list", {"encoding": str, "has_header": str, "sheet": str}),
    "choose_column": ("list", {"at": int}),
    "list_runs": ("list", {}),
    "open_earlier": ("list", {"number": int}),
    "set_repair": ("tidy", {"name": str, "is_on": bool}),
    "accept_suggestion": ("tidy", {"number": int}),
    "accept_all": ("tidy", {}),
    "undo": ("tidy", {}),
    "show_more": ("tidy", {}),
    "suppress_pasted": ("tidy", {"text": str}),
    "drop_suppression": ("tidy", {}),
    "set_depth": ("check", {"depth": str}),
    "set_refresh": ("check", {"is_on": bool}),
    "make_plan_again": ("check", {}),
    "verify": ("check", {}),
    "ask_again": ("decide", {}),
    "pause": ("check", {}),
    "set_facet": ("decide", {"facet": str, "value": str}),
    "clear_facets": ("decide", {}),
    "search": ("decide", {"text": str}),
    "sort": ("decide", {"key": str}),
    "page": ("decide", {"number": int}),
    "set_policy": ("decide", {"name": str}),
    "download": ("decide", {"which": str, "kind": str}),
}


@cache
def front_end(names: tuple[str, ...] = SCRIPTS) -> str:
    """The modules of the folder `static` as one module, which exports what the last one does as its default.

    A notebook gets its script as one text, so that `import` finds no other file there.
    """
    parts = ["const modules = {};"]
    for name in names:
        text = IMPORT.sub(lambda found: f'const {{{renamed(found[1])}}} = modules["{found[2]}"];', read_static(name))
        text = EXPORT.sub(lambda found: f"return {{{exported(found[1])}}};", text)
        parts.append(f'modules["{name}"] = (() => {{\n{text}\n}})();')
    return "\n".join([*parts, f'export default modules["{names[-1]}"];\n'])


def renamed(names: str) -> str:
    """``a as b`` of an import as ``a: b`` of an object that is taken apart."""
    return names.replace(" as ", ": ")


def exported(names: str) -> str:
    """``a as b`` of an export as ``b: a`` of an object."""
    return re.sub(r"(\w+) as (\w+)", r"\2: \1", names)


def read_static(name: str) -> str:
    """A file of the folder `static`."""
    return (files(__package__) / "static" / name).read_text(encoding="utf-8")


class PageWidget(anywidget.AnyWidget):
    """The widget; its traits are what the page shows, by section."""

    _esm = ""
    _css = ""
    list_section = traitlets.Dict().tag(sync=True)
    tidy_section = traitlets.Dict().tag(sync=True)
    check_section = traitlets.Dict().tag(sync=True)
    decide_section = traitlets.Dict().tag(sync=True)
    page_section = traitlets.Dict().tag(sync=True)
    answered = traitlets.Unicode("").tag(sync=True)  # the last action whose end the browser waits for
    marks = traitlets.Dict().tag(sync=True)  # shapes by verdict, action and state
    words = traitlets.Dict().tag(sync=True)  # labels by verdict and state

    def __init__(self, state: AuditState) -> None:
        self.state = state
        self.sending = threading.RLock()
        first = {f"{name}_section": take_snapshot(state, name) for name in SECTIONS}
        marks = {
            name: {"shape": MARKS[mark].shape, "sign": MARKS[mark].sign, "mark": mark} for name, mark in MARK_OF.items()
        }
        super().__init__(
            _esm=front_end(),
            _css=stylesheet(".mv-audit") + read_static("page.css"),
            marks=marks,
            words=VERDICT_LABELS,
            **first,
        )
        self.transfer = FileTransfer(self.send, state.parent, on_file=self.receive_file)
        state.on_change, state.on_file = self.show, self.offer_file
        self.on_msg(self.receive)

    def show(self, names: Sequence[str]) -> None:
        """Send the sections that have changed."""
        with self.sending:
            found = {f"{name}_section": take_snapshot(self.state, name) for name in dict.fromkeys(names)}
            changed = {name: value for name, value in found.items() if value != getattr(self, name)}
            with self.hold_sync():
                for name, value in changed.items():
                    setattr(self, name, value)

    def receive(self, widget: Any, content: Any, buffers: Sequence[Any]) -> None:
        """Do what the browser asks for."""
        if self.transfer.on_message(content, buffers) or not isinstance(content, Mapping):
            return
        name = str(content.get("act"))
        if name in PAGE_ACTIONS:
            section, types = PAGE_ACTIONS[name]
            self.guard(section, lambda: self.act(name, read_arguments(content, types)))
            # After the sections that the action has changed: the browser has what was chosen, or that it was refused.
            if isinstance(answer := content.get("answer"), str) and len(answer) <= LONGEST_ANSWER:
                self.answered = answer

    def act(self, name: str, arguments: dict[str, Any]) -> None:
        """Call the method of the state that an action stands for."""
        if name == "accept_all":
            self.state.accept_suggestion()
        else:
            getattr(self.state, name)(*arguments.values())

    def guard(self, section: str, work: Callable[[], None]) -> None:
        """Turn an error into a message: what a handler raises is shown nowhere."""
        try:
            work()
        except Exception as exc:  # noqa: BLE001 - shown on the page
            self.state.say_error(section, exc)
            self.show((section, "page"))

    def receive_file(self, name: str, path: Path, purpose: str) -> None:
        """Use a file that was uploaded, for the purpose that the browser gave with it."""
        section, use = PURPOSES.get(purpose, ("list", refuse_file))
        self.guard(section, lambda: use(self.state, path, name))

    def offer_file(self, name: str, path: Path) -> None:
        """Let the browser download a file; it is removed when the browser has it."""
        target = self.transfer.folder / f"{path.parent.name}-{path.name}"
        path.replace(target)
        self.send({"act": "save", "id": self.transfer.offer(name, target), "name": name})

    def close(self) -> None:
        """Stop the run and remove temporary files."""
        self.state.close()
        self.transfer.close()
        super().close()


def refuse_file(state: AuditState, path: Path, name: str) -> None:
    """Remove a file without a known purpose: it must not replace the list."""
    path.unlink(missing_ok=True)
    raise SettingsError(f"{name} came without a known purpose; choose it again")


def read_arguments(content: Mapping[str, Any], types: Mapping[str, type]) -> dict[str, Any]:
    """The arguments of an action, checked."""
    arguments = {}
    for name, kind in types.items():
        value = content.get(name)
        if type(value) is not kind:
            raise SettingsError(f"{name}={short_text(repr(value), 40)}: must be of type {kind.__name__}")
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise InputError(f"the text has more than {LONGEST_TEXT:,} characters; give it as a file")
        arguments[name] = value
    return arguments
