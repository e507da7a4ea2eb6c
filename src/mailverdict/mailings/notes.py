"""What `mailing` notes on the frame that it returns, so that the next call knows it.

A pandas or Arrow frame keeps the note, also in Parquet; Polars and CSV lose it:

    {"list": "3f0a...", "rows": 40000, "waves": 6, "max_bounce_rate": 0.02,
     "released": {"1": "2026-05-04T08:00:00+00:00"}}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..frames.results import Results
from .list_key import KEY_DIGITS

NOTE = "mailing"


@dataclass(frozen=True)
class ListNote:
    """What is noted of a list that is mailed in waves."""

    key: str = ""  # of the list
    rows: int = 0  # of the list
    waves: int | None = None
    max_bounce_rate: float | None = None
    released: dict[int, datetime] = field(default_factory=dict)  # when, by wave

    def to_json(self) -> dict[str, Any]:
        """The note on the frame."""
        released = {str(wave): moment.isoformat() for wave, moment in self.released.items()}
        return {
            NOTE: {
                "list": self.key,
                "rows": self.rows,
                "waves": self.waves,
                "max_bounce_rate": self.max_bounce_rate,
                "released": released,
            }
        }


def read_note(rows: Results) -> ListNote:
    """The note of a frame; an empty one if there is none, or something else is in its place."""
    content: Any = rows.data.notes().get(NOTE)
    try:
        return ListNote(
            key=read_key(content["list"]),
            rows=int(content["rows"]),
            waves=read_waves_asked(content["waves"]),
            max_bounce_rate=read_rate(content["max_bounce_rate"]),
            released=read_released(content["released"]),
        )
    except (TypeError, KeyError, ValueError, AttributeError):
        return ListNote()


def read_released(content: Any) -> dict[int, datetime]:
    """The time of each wave; an error of Python for anything else."""
    released = {}
    for wave, text in content.items():
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError("a time without a zone")
        released[int(wave)] = moment
    return released


def read_key(value: Any) -> str:
    """The key of a list, or an empty text; a `ValueError` for anything else."""
    if value == "":
        return ""
    if (
        not isinstance(value, str)
        or len(value) != KEY_DIGITS
        or set(value) - set("0123456789abcdef")
    ):
        raise ValueError("not a key of a list")
    return value


def read_rate(value: Any) -> float | None:
    """A part of 1, or None; a `ValueError` for anything else."""
    if value is None:
        return None
    if type(value) is not float or not 0 < value < 1:
        raise ValueError("not a part of 1")
    return value


def read_waves_asked(value: Any) -> int | None:
    """A number of waves, or None; a `ValueError` for anything else."""
    if value is None:
        return None
    if type(value) is not int or not 0 < value < 2**31:
        raise ValueError("not a number of waves")
    return value
