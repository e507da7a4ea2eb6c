"""The controls of an audit and their layout; what they do is in `panel`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ipywidgets as w

from ..model.words import ValidationType
from .render import render_head

__all__ = ["LABEL", "Form", "Quiet", "button", "choice", "line", "row", "set_choices", "show"]

LABEL = {"description_width": "4.6rem"}


def choice(description: str, options: Sequence[Any] = (), *, tooltip: str, width: str = "24rem") -> Any:
    """A labelled drop-down; its label is bound to it for screen readers."""
    return w.Dropdown(
        description=description, options=options, tooltip=tooltip, style=LABEL, layout=w.Layout(width=width)
    )


def button(description: str, tooltip: str, kind: str = "") -> Any:
    """A button; no icon, since icon fonts come from a CDN under Voila."""
    return w.Button(description=description, tooltip=tooltip, button_style=kind, layout=w.Layout(width="auto"))


def line() -> Any:
    """A line of HTML, empty at first."""
    return w.HTML(layout=w.Layout(margin="0 2px"))


def row(*children: Any) -> Any:
    """Controls side by side, wrapped where the page is narrow."""
    box = w.HBox(children, layout=w.Layout(overflow="visible"))
    box.add_class("mv-wrap")
    return box


def show(widget: Any, *, is_shown: bool) -> None:
    widget.layout.display = None if is_shown else "none"


def set_choices(dropdown: Any, options: Sequence[tuple[str, Any]], value: Any) -> None:
    """New options and the chosen one; a value that is not among them chooses none."""
    dropdown.options = tuple(options)
    dropdown.value = value if any(value == each for _, each in options) else None


class Quiet:
    """Tells changes of controls by the program from those by the user: a context in which changes are the program's."""

    def __init__(self) -> None:
        self.depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *error: object) -> None:
        self.depth -= 1

    def unless(self, work: Callable[[], None]) -> Callable[[], None]:
        """Make a callback that does `work` only for a change by the user."""

        def run() -> None:
            if not self.depth:
                work()

        return run


class Form:
    """The controls that start a run, and the lines that show its progress."""

    def __init__(self) -> None:
        self.column = choice("Column", tooltip="The column that holds the addresses")
        self.examples = line()
        types = [str(kind) for kind in ValidationType]
        self.kind = choice("Check", types, tooltip="How deep each address is verified")
        self.asked, self.quota, self.estimate = line(), line(), line()
        self.go = button("Verify", "Start, or go on where the last run stopped", "primary")
        self.stop = button("Cancel", "Stop the run; what is settled is kept")
        self.state, self.progress, self.notice = line(), line(), line()
        self.quiet = Quiet()
        self.go.disabled = self.stop.disabled = True
        self.box = w.VBox(list(self.parts()))

    def parts(self) -> Iterator[Any]:
        """The rows of the form, from top to bottom."""
        yield row(self.column, self.examples)
        yield w.HTML(render_head("Verification"))
        yield row(self.kind, self.asked)
        yield self.quota
        yield self.estimate
        yield row(self.go, self.stop, self.state)
        yield self.progress
        yield self.notice

    def set_running(self, *, is_running: bool) -> None:
        """Disable the choices during a run, and enable the button that cancels it."""
        for widget in (self.column, self.kind, self.go):
            widget.disabled = is_running
        self.stop.disabled = not is_running
