"""The list that `mailing` was given: what is known of its waves, and the budget.

A person may give another frame than `Mailing.frame`, and would mail people twice. Three things
tell: the column of waves, the note of the call before (`notes.py`), and the experience, which knows
the list by its key (`list_key.py`):

    waves in the column                        the next wave goes on
    none, but the note has released waves      an error: is it `Mailing.held`? (`check_frame`)
    none, but the experience knows the list    an error, or a warning if the list has changed much
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import SettingsError
from ..frames.policy import read_decided
from ..frames.results import Results
from ..model.words import count_of
from ..table.columns import label_of
from ..table.table import Table
from .cells import ListCells, cells_of, read_list_mailboxes, read_waves
from .experience import Experience, LearntMailing
from .forecast import has_wave, is_within, last_mailing, split_mailings
from .list_key import FEWEST, shared_part
from .notes import ListNote, read_note
from .rates import Codes

BUDGET = 0.02
WAVES = 6
# A list that shares so much with one of which a wave was mailed is that list, of which some rows
# were taken off.
UNCHANGED = 0.9


@dataclass(frozen=True, eq=False)
class ListToMail:
    """A list with what is known of its waves."""

    rows: Results
    cells: ListCells
    wave_of: Codes  # of each row; 0 where it was not released
    note: ListNote
    known: Experience

    @property
    def data(self) -> Table:
        """The frame that was given."""
        return self.rows.data

    @property
    def last_wave(self) -> int:
        """The last wave of the frame; 0 for none."""
        return int(self.wave_of.max(initial=0))

    @property
    def wave(self) -> int:
        """The number of the next wave."""
        return self.last_wave + 1

    @cached_property
    def own(self) -> list[LearntMailing]:
        """The learnt mailings of this list."""
        own, _ = split_mailings(self.cells, self.wave_of, self.known)
        return own

    @cached_property
    def not_learnt(self) -> tuple[int, ...]:
        """The waves of the frame that the experience lacks."""
        waves = np.unique(self.wave_of[self.wave_of > 0]).tolist()
        return tuple(wave for wave in waves if not self.is_learnt(wave))

    def is_learnt(self, wave: int) -> bool:
        """Whether the experience has a wave of this list, with its rows."""
        for mailing in self.own:
            if mailing.wave == wave and has_wave(mailing, self.cells, self.wave_of, wave):
                return True
        return False

    @property
    def mailed_before(self) -> LearntMailing | None:
        """The last learnt wave of this list, if no row of the frame has a wave."""
        if self.last_wave:
            return None
        waves = [mailing for mailing in self.own if mailing.wave is not None]
        return last_mailing(waves, 0)

    @property
    def maybe_mailed_before(self) -> LearntMailing | None:
        """The last learnt wave of a list that may be this one; both are too short for a key."""
        if self.last_wave or self.cells.key:
            return None
        waves = []
        for mailing in self.known.mailings:
            is_short = not mailing.key and mailing.mailed < FEWEST
            if is_short and mailing.wave is not None and is_within(mailing, self.cells):
                waves.append(mailing)
        return last_mailing(waves, 0)

    def label(self, name: str) -> str:
        """The label of a result column, for messages."""
        return repr(label_of(self.rows.column, self.rows.prefix, name))


def read_list(
    out: Any, column: Hashable | None, prefix: str | None, known: Experience
) -> ListToMail:
    """The list, its cells and its waves."""
    rows = read_decided(out, column, prefix)
    cells = cells_of(rows, read_list_mailboxes(rows), known.counts)
    return ListToMail(rows, cells, read_waves(rows), read_note(rows), known)


def take_back(listed: ListToMail) -> ListToMail:
    """The list without its last wave, which was not mailed."""
    wave = listed.last_wave
    if not wave:
        return listed
    if wave not in listed.not_learnt:
        raise SettingsError(
            f"again=True: wave {wave} was learnt, so it was mailed. Leave again= out for wave "
            f"{wave + 1}"
        )
    wave_of = np.where(listed.wave_of == wave, 0, listed.wave_of)
    released = {number: moment for number, moment in listed.note.released.items() if number < wave}
    note = replace(listed.note, released=released)
    return replace(listed, wave_of=wave_of, note=note)


def check_frame(listed: ListToMail) -> None:
    """An error if waves of the list are known, and the frame does not say who was in them."""
    remedy = (
        "Give Mailing.frame of the last call, which has all rows and their waves. again=True plans "
        "wave 1 again"
    )
    if listed.last_wave:
        is_all_released = bool((listed.wave_of > 0).all())
        if is_all_released and listed.note.rows > len(listed.wave_of):
            raise SettingsError(
                f"all {count_of(len(listed.wave_of), 'row')} of this frame are in a wave, and the "
                f"list has {listed.note.rows:,}: is it Mailing.next? {remedy}"
            )
        return
    label = listed.label("wave")
    if listed.note.released:
        wave = max(listed.note.released)
        raise SettingsError(
            f"wave {wave} of this list was released, and no row of this frame has a wave in "
            f"{label}: is it Mailing.held? {remedy}"
        )
    if "wave" in listed.rows and "held" in listed.rows and listed.rows["held"].null_count == 0:
        raise SettingsError(
            f"each row of this frame has a reason in {listed.label('held')}: is it Mailing.held? "
            f"{remedy}"
        )
    before = listed.mailed_before
    if before is None or before.wave == before.waves:
        return
    if shared_part(before.key, listed.cells.key) >= UNCHANGED:
        raise SettingsError(f"{before} {describe_before(listed)}. {remedy}")


def describe_before(listed: ListToMail) -> str:
    """What is known of waves of this list, of which the frame says nothing."""
    return (
        "of this list is in the experience, and no row of this frame has a wave in "
        f"{listed.label('wave')}: people would be mailed again"
    )


@dataclass(frozen=True)
class Budget:
    """The bounces that are allowed, in how many waves."""

    rate: float
    waves: int
    assumed: tuple[str, ...]  # which of them were not given


def choose_budget(listed: ListToMail, rate: float | None, waves: int | None) -> Budget:
    """What was asked for, now or in the waves before; else the defaults, which are named."""
    assumed = []
    last = last_mailing(listed.own, listed.last_wave)
    if rate is None:
        rate = listed.note.max_bounce_rate
    if rate is None and last is not None:
        rate = last.max_bounce_rate
    if rate is None:
        rate = BUDGET
        assumed.append(f"max_bounce_rate={BUDGET}")
    if waves is None:
        waves = listed.note.waves
    if waves is None and last is not None:
        waves = last.waves
    if waves is None:
        waves = WAVES
        assumed.append(f"waves={WAVES}")
    if listed.wave > waves:
        raise SettingsError(
            f"waves={waves}: all of them have been released; give more for another one, or "
            "again=True if the last one was not mailed"
        )
    return Budget(float(rate), int(waves), tuple(assumed))
