"""The page of an audit as one anywidget: it sends snapshots to the browser and the browser's events to the state.

The front end is plain JavaScript without a build step: the modules in `static`, joined to one. It makes no request.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ..theme import stylesheet
from .actions import PAGE_ACTIONS
from .state import SECTIONS, AuditState
from .transfer import FileTransfer
from .view import take_snapshot
from .wording import VERDICT_LABELS, marks

# Each after those that it imports; the last one is the widget.
SCRIPTS = (
    "vendor/preact-htm.js",
    "connection.js",
    "parts.js",
    "table.js",
    "mailing.js",
    "steps.js",
    "page.js",
)
IMPORT = re.compile(r'^import \{(.+?)\} from "\./(.+?)";$', re.M | re.S)
EXPORT = re.compile(r"export ?\{([^{}]+)\};\s*\Z")  # how each of them ends
LONGEST_ANSWER = 40  # characters


@cache
def front_end(names: tuple[str, ...] = SCRIPTS) -> str:
    """The modules of the folder `static` as one module, which exports what the last one does as its default.

    A notebook gets its script as one text, so that `import` finds no other file there.
    """
    parts = ["const modules = {};"]
    for name in names:
        text = IMPORT.sub(
            lambda found: f'const {{{renamed(found[1])}}} = modules["{found[2]}"];',
            read_static(name),
        )
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
    # The last action whose end the browser waits for.
    answered = traitlets.Unicode("").tag(sync=True)
    marks = traitlets.Dict().tag(sync=True)  # shapes by verdict, action and state
    words = traitlets.Dict().tag(sync=True)  # labels by verdict and state

    def __init__(self, state: AuditState) -> None:
        self.state = state
        self.sending = threading.RLock()
        first = {f"{name}_section": take_snapshot(state, name) for name in SECTIONS}
        super().__init__(
            _esm=front_end(),
            _css=stylesheet(".mv-audit") + read_static("page.css"),
            marks=marks(),
            words=VERDICT_LABELS,
            **first,
        )
        self.transfer = FileTransfer(self.send, lambda: state.folder, state.use_file)
        state.work.on_change, state.on_file = self.show, self.offer_file
        self.on_msg(self.receive)

    def show(self, names: Sequence[str]) -> None:
        """Send the sections that have changed."""
        with self.sending:
            found = {
                f"{name}_section": take_snapshot(self.state, name) for name in dict.fromkeys(names)
            }
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
            self.state.act(
                name,
                **{
                    key: value
                    for key, value in content.items()
                    if key not in ("act", "answer", "tab")
                },
            )
            # After the sections that the action has changed: the browser has what was chosen, or that it was refused.
            if isinstance(answer := content.get("answer"), str) and len(answer) <= LONGEST_ANSWER:
                self.answered = answer

    def offer_file(self, name: str, path: Path, by: str) -> None:
        """Let the browser download a file; it is removed when the browser has it."""
        self.send({"act": "save", "id": self.transfer.offer(path), "name": name})

    def close(self) -> None:
        """Stop the run and remove temporary files."""
        self.state.close()
        super().close()
