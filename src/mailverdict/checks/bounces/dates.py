"""A date as a person or program wrote it: read as a whole, or not at all.

A text is cut into tokens, and each token is a part of the date: ``Tue Mar 03 2026 09:15:00 GMT-0500
(CST)`` is a weekday, a month, a day, a year, a time, an offset and a comment. A token that is none
of these, a second one of a kind, or a zone with several meanings leaves the date out: a moment that
is hours off is worse than none.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

MAX_DATE = 100  # characters
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH_NAMES = (
    *("january", "february", "march", "april", "june", "july", "august"),
    *("september", "sept", "october", "november", "december"),
)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WEEKDAY_NAMES = (
    *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    *("tues", "wednes", "thur", "thurs"),
)
# Hours east of UTC, by RFC 5322 section 4.3 and tz database 2025b (2026-11). Left out are names
# with several meanings: BST (Britain, Bangladesh), CST (North America, China, Cuba), IST (India,
# Israel, Ireland), AST, ECT, GST, SST, WST.
ZONES = {
    "z": 0.0, "ut": 0.0, "utc": 0.0, "gmt": 0.0, "wet": 0.0, "west": 1.0,
    "cet": 1.0, "cest": 2.0, "met": 1.0, "mest": 2.0, "mez": 1.0, "mesz": 2.0,
    "eet": 2.0, "eest": 3.0, "msk": 3.0, "pkt": 5.0, "wib": 7.0, "hkt": 8.0, "sgt": 8.0,
    "jst": 9.0, "kst": 9.0, "acst": 9.5, "acdt": 10.5, "aest": 10.0, "aedt": 11.0,
    "nzst": 12.0, "nzdt": 13.0,
    "est": -5.0, "edt": -4.0, "cdt": -5.0, "mst": -7.0, "mdt": -6.0, "pst": -8.0, "pdt": -7.0,
    "akst": -9.0, "akdt": -8.0, "hst": -10.0,
}  # fmt: skip
TOKEN = re.compile(
    r"(?P<comment>\([^()]*\))"
    r"|(?P<date>\d{4}[-/.]\d{1,2}[-/.]\d{1,2})(?=[T\s,]|$)T?"
    r"|(?P<time>\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)(?![:\d])"
    r"|(?P<offset>(?:utc|gmt)?[+-](?:0\d|1[0-4]|\d)(?::?[0-5]\d)?)(?![:\d])"
    r"|(?P<number>\d{1,4})(?:st|nd|rd|th)?(?![:\d])"
    r"|(?P<name>[a-z]+(?:\.m\.)?)\.?"
    r"|(?P<blank>[\s,]+|-(?=[a-z\d]))",
    re.IGNORECASE,
)


OFFSET = re.compile(r"(?:utc|gmt)?([+-])(\d\d?):?(\d\d)?")


def date_of(value: object) -> datetime | None:
    """The moment of a text in UTC, by ISO 8601, RFC 5322 or a form with the month's name.

    None if a part of it is not understood, or it is not between 1980 and 2200. Without a zone it is
    in UTC.

    >>> date_of("Tue Mar 03 2026 09:15:00 GMT-0500 (CST)").isoformat()
    '2026-03-03T14:15:00+00:00'
    >>> date_of("3 Mar 2026 09:15 BST"), date_of("3/5/2026 10:00")
    (None, None)
    """
    if value is None:
        return None
    text = " ".join(str(value)[: MAX_DATE * 2].split())
    if len(text) > MAX_DATE:
        return None
    try:
        moment: datetime | None = datetime.fromisoformat(text)
    except ValueError:
        moment = read_tokens(text)
    if moment is None or not 1980 <= moment.year < 2200:
        return None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC)


def read_tokens(text: str) -> datetime | None:
    """The moment that the tokens of a text make together."""
    tokens = tokens_of(text)
    if tokens is None or "time" not in tokens:
        return None
    day = day_of(tokens)
    hours = zone_of(tokens)
    clock = clock_of(tokens["time"], tokens.get("half"))
    if day is None or hours is None or clock is None:
        return None
    try:
        zone = timezone(timedelta(hours=hours))
        midnight = datetime(*day, tzinfo=zone)
    except ValueError:  # the 31st of February, an offset of 99 hours
        return None
    return midnight + clock


def tokens_of(text: str) -> dict[str, str] | None:
    """The parts of a date by kind; None if a token is none, or a second one of its kind."""
    tokens: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            return None
        place = match.end()
        kind = str(match.lastgroup)
        token = match[kind].lower()
        if kind == "blank" or token in ("at", "t"):
            continue
        if kind == "name":
            kind = kind_of_name(token)
        elif kind == "number":
            kind = "year" if len(token) == 4 or "day" in tokens else "day"
        if kind in tokens or kind == "unknown":
            return None
        tokens[kind] = token
    return tokens


def kind_of_name(name: str) -> str:
    if name[:3] in MONTHS and (name in MONTHS or name in MONTH_NAMES):
        return "month"
    if name in WEEKDAYS or name in WEEKDAY_NAMES:
        return "weekday"
    if name.replace(".", "") in ("am", "pm"):
        return "half"
    return "zone"


def day_of(tokens: dict[str, str]) -> tuple[int, int, int] | None:
    """Year, month and day."""
    if "date" in tokens:
        year, month, day = re.split(r"[-/.]", tokens["date"])
        return int(year), int(month), int(day)
    if not {"year", "month", "day"} <= tokens.keys():
        return None
    digits = tokens["year"]
    if len(digits) == 3:
        return None
    number = int(digits)
    if len(digits) < 4:  # RFC 5322 section 4.3
        number += 2000 if number < 50 else 1900
    return number, MONTHS.index(tokens["month"][:3]) + 1, int(tokens["day"])


def clock_of(text: str, half: str | None) -> timedelta | None:
    """The time of day; `half` is AM or PM."""
    hours, minutes, *rest = re.split(r"[:,.]", text)
    hour = int(hours)
    if half is not None:
        if not 1 <= hour <= 12:
            return None
        hour %= 12
        if half.startswith("p"):
            hour += 12
    seconds = 0
    microseconds = 0
    if rest:
        seconds = int(rest[0])
    if len(rest) > 1:
        microseconds = int(rest[1].ljust(6, "0")[:6])
    if hour > 23 or int(minutes) > 59 or seconds > 60:
        return None
    return timedelta(hours=hour, minutes=int(minutes), seconds=seconds, microseconds=microseconds)


def zone_of(tokens: dict[str, str]) -> float | None:
    """Hours east of UTC: an offset, or a name with one meaning; 0 if neither is there."""
    name = tokens.get("zone")
    offset = tokens.get("offset")
    comment = tokens.get("comment", "").strip("()").lower()
    if offset is None:
        name = name or comment
        return ZONES.get(name) if name else 0.0
    match = OFFSET.fullmatch(offset)
    assert match is not None  # by `TOKEN`
    sign, hours, minutes = match.groups()
    east = int(hours) + int(minutes or 0) / 60
    if sign == "-":
        east = -east
    is_unknown = offset in ("-0000", "+0000")
    if name in ZONES and ZONES[name] != east and not is_unknown:
        return None
    return east
