"""A run as a live widget: progress, rate, quota, buttons, and how it ended.

The buttons are Pause, Resume and Cancel.
"""

from __future__ import annotations

import threading
import time
from functools import cache
from importlib.resources import files
from typing import Any

import anywidget
import pyarrow as pa
import pyarrow.compute as pc
import traitlets

from ..frames.reading import SEVERAL, Reading
from ..model.arrow import one_array
from ..model.words import Verdict, count_of, percent
from ..runs.progress import Progress, Rate, checked_text, rate_text
from ..runs.run import Run, is_short_of_quota, quota_text
from ..theme import LABELS, NOTEBOOK, NOTEBOOK_CSS, scoped, stylesheet
from .wording import duration_words, marks, sentence

# Seconds between two messages, also without progress: they show the browser that the kernel lives.
INTERVAL = 0.5
STATES = {
    "running": "Checking",
    "paused": "Paused",
    "done": "Done",
    "stopped": "Stopped early",
    "cancelled": "Cancelled",
    "failed": "Failed",
}
# The buttons in each state: the name of a method of the run, and the label.
PAUSE = ("pause", "Pause")
RESUME = ("resume", "Resume")
CANCEL = ("cancel", "Cancel")
BUTTONS = {
    "running": (PAUSE, CANCEL),
    "paused": (RESUME, CANCEL),
    "stopped": (RESUME,),
    "failed": (RESUME,),
}
CSS = """
S {position:relative}
S .mv-meter{max-width:none}
S .mv-counts{display:flex;flex-wrap:wrap;gap:0 var(--mv-space-4);list-style:none;padding:0}
S .mv-counts li{margin:0;white-space:nowrap}
S .mv-buttons{display:flex;gap:var(--mv-space-2);margin-top:var(--mv-space-2)}
S button{height:32px;padding:0 var(--mv-space-3);border:1px solid var(--mv-line-strong);
border-radius:var(--mv-radius-small);background:var(--mv-surface);color:var(--mv-text);font:inherit;cursor:pointer}
S button[aria-disabled=true]{border-color:var(--mv-line);color:var(--mv-text-soft);cursor:default}
S .mv-lost{margin-top:var(--mv-space-2);padding-left:var(--mv-space-2);border-left:3px solid var(--mv-invalid);
color:var(--mv-invalid-text)}
S .mv-hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
"""


@cache
def front_end() -> str:
    return (files(__package__) / "static" / "run.js").read_text(encoding="utf-8")


class RunWidget(anywidget.AnyWidget):
    """Shows one run; several views of it may be open."""

    _esm = ""
    _css = ""
    shown = traitlets.Dict().tag(sync=True)  # all that a view shows, as texts and numbers
    marks = traitlets.Dict().tag(sync=True)  # shapes by verdict and state

    def __init__(self, run: Run[Any], *, has_buttons: bool = True) -> None:
        self.run = run
        self.has_buttons = has_buttons
        self.is_given_up = False
        self.rate = Rate()
        self.rows = 0  # of the result, when it is there
        self.beats = 0
        self.turn = 0
        self.sending = threading.Lock()
        css = stylesheet(NOTEBOOK) + scoped(NOTEBOOK_CSS + CSS, NOTEBOOK)
        super().__init__(
            _esm=front_end(), _css=css, marks=marks(), shown=self.describe(run.progress)
        )
        self.on_msg(self.receive)
        self.follow()

    def follow(self) -> None:
        """Show the run until its end, from a thread: the kernel may be busy with another cell."""
        self.turn += 1
        self.show()
        watching = threading.Thread(
            target=self.watch, args=(self.turn,), name="mailverdict-run", daemon=True
        )
        watching.start()

    def watch(self, turn: int) -> None:
        # Not `run.wait`, which would start a run that is not started yet.
        while self.turn == turn and not self.run.done():
            time.sleep(INTERVAL)
            self.show()
        self.show()

    def show(self) -> None:
        with self.sending:
            self.beats += 1
            self.shown = self.describe(self.run.progress)

    def describe(self, progress: Progress) -> dict[str, Any]:
        """What is shown of a snapshot of the run."""
        state = progress.state
        if self.is_given_up and progress.is_over:
            state = "cancelled"
        if state == "running":
            self.rate.add(progress)
        settled = progress.settled
        whole = max(progress.total, settled, 1)
        counts = dict(progress.verdicts)
        checked = f"{checked_text(progress)} ({percent(settled, whole)})"
        rows = self.rows_by_verdict() if state == "done" else None
        if rows is not None:
            counts = rows
            checked += f"; rows by verdict, as in the result, of {count_of(self.rows, 'row')}"
        counts = {**counts, "error": progress.errors, "pending": progress.total - settled}
        shown_counts = []
        for name, count in counts.items():
            if count > 0:
                shown_counts.append({"name": name, "label": LABELS[name], "count": f"{count:,}"})
        notes = [progress.message, self.rate_text(progress), quota_text(progress), progress.problem]
        buttons = []
        if self.has_buttons:
            buttons = list(BUTTONS.get(state, ()))
        if PAUSE in buttons and self.run._loses_answers():
            buttons.remove(PAUSE)
            notes.append(
                "without a journal there is no pause:"
                " what the service was asked would be paid again"
            )
        title = STATES[state]
        # Of screen readers: the end, and each fifth of the way.
        spoken = f"{20 * (5 * settled // whole)}% checked."
        if progress.is_over:
            spoken = f"{title}. {checked_text(progress)}."
        return {
            "state": state,
            "title": title,
            "checked": checked,
            "share": settled / whole,
            "counts": shown_counts,
            "notes": [sentence(note) for note in notes if note],
            "buttons": [{"act": act, "label": label} for act, label in buttons],
            "said": spoken,
            "beat": self.beats,
        }

    def rows_by_verdict(self) -> dict[str, int] | None:
        """The rows of the result by verdict, as `summary` and `plot` count them.

        A run counts distinct addresses, of which a column may have several rows. None without
        verdicts, and for several columns.
        """
        reading: Any = self.run._build
        if not isinstance(reading, Reading) or len(reading.tables) > 1:
            return None
        if "result" not in reading.fields():
            return None
        results = reading.join(self.run._settled_table())["result"]
        verdicts = one_array(results.cast(pa.string()))
        self.rows = len(verdicts)
        if "standing" in reading.rows.schema.names:
            standing = reading.rows["standing"].cast(pa.string())
            is_several = pc.equal(standing, SEVERAL).fill_null(False)
            verdicts = pc.if_else(is_several, None, verdicts)
        counts = dict.fromkeys(map(str, Verdict), 0)
        for entry in verdicts.value_counts().to_pylist():
            if entry["values"] in counts:
                counts[entry["values"]] = entry["counts"]
        return counts

    def rate_text(self, progress: Progress) -> str:
        """How fast the run is, and how long it takes."""
        rate = self.rate.per_second()
        left = self.rate.seconds_left(progress)
        if progress.is_over or rate is None:
            return ""
        if left is None or is_short_of_quota(progress):  # then the quota decides
            return rate_text(rate)
        return f"{rate_text(rate)}, {duration_words(left)} left"

    def receive(self, widget: Any, content: Any, buffers: Any) -> None:
        """Do what a button says, if the run is still in the state in which it has this button."""
        if not isinstance(content, dict):
            return
        act = content.get("act")
        if act not in [button["act"] for button in self.shown["buttons"]]:
            return
        if act == "resume":
            try:
                self.run.resume()
            except Exception as exc:  # noqa: BLE001 - shown on the widget
                self.shown = {**self.shown, "notes": [sentence(str(exc))]}
                return
            self.rate = Rate()
            self.follow()
            return
        self.is_given_up = act == "cancel"
        if act == "pause":
            self.run.pause()
        elif not self.run.done():
            self.run.cancel()
        self.show()
