"""Durations as people write them: ``300``, ``"5min"``, ``"30D"``."""

from __future__ import annotations

import math
import re
from datetime import timedelta

from ..errors import SettingsError

__all__ = ["Duration", "parse_duration"]

Duration = int | float | str | timedelta

UNIT_SECONDS = {
    "": 1.0,
    "ms": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
    "w": 604800.0,
}
TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")


def parse_duration(value: Duration, *, name: str) -> float:
    """Give `value` in seconds; raise `SettingsError` naming the setting `name` if it is none.

    >>> parse_duration("5min", name="retry_greylisted")
    300.0
    >>> parse_duration("30D", name="max_age")
    2592000.0
    """
    seconds = seconds_of(value)
    if seconds is None or math.isnan(seconds) or seconds < 0:
        raise SettingsError(
            f"{name}={value!r} is no duration; give seconds, or text such as '90s', '5min', '12h', '30D'"
        )
    return seconds


def seconds_of(value: object) -> float | None:
    """Seconds, or None where `value` is no duration."""
    if isinstance(value, bool):
        return None
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, int | float):
        return float(value)
    match = TEXT.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2].lower() not in UNIT_SECONDS:
        return None
    return float(match[1]) * UNIT_SECONDS[match[2].lower()]
