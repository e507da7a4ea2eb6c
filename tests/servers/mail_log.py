"""Postfix's own account of what clients did, by face."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.doubles.waiting import wait_until

LINE = re.compile(
    r".*? (?P<face>[\w-]+)/smtpd\[\d+\]: (?P<event>connect|disconnect) from \S+(?P<commands>.*)"
)
PATIENCE = 10.0


class Session(NamedTuple):
    """A session that is over: how often each command was given, and how often refused."""

    face: str
    given: dict[str, int]
    refused: dict[str, int]


class Account:
    """What Postfix has seen since now.

    Attributes
    ----------
    path : Path
        Its log.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start = path.stat().st_size

    def text(self) -> str:
        """What was written since; read once every session that began is over."""
        wait_until(self.is_quiet, PATIENCE)
        return self.read()

    def read(self) -> str:
        return self.path.read_bytes()[self.start :].decode(errors="replace")

    def is_quiet(self) -> bool:
        """Whether every session that began is over."""
        text = self.read()
        return text.count(": connect from") == text.count(": disconnect from")

    def events(self) -> list[re.Match[str]]:
        """Connections made and ended, in order."""
        return [match for line in self.text().splitlines() if (match := LINE.match(line))]

    def sessions(self) -> list[Session]:
        """Sessions that are over."""
        return [
            read_session(each["face"], each["commands"])
            for each in self.events()
            if each["event"] == "disconnect"
        ]

    def most_at_once(self) -> dict[str, int]:
        """By face, the most sessions that there were at one time."""
        now: dict[str, int] = {}
        most: dict[str, int] = {}
        for each in self.events():
            now[each["face"]] = now.get(each["face"], 0) + (1 if each["event"] == "connect" else -1)
            most[each["face"]] = max(most.get(each["face"], 0), now[each["face"]])
        return most


def read_session(face: str, commands: str) -> Session:
    """Read the end of a line, as ``ehlo=1 mail=1 rcpt=1/2 quit=1 commands=4/5``: accepted, of all if some were not."""
    found = re.findall(r"(\w+)=(\d+)(?:/(\d+))?", commands)
    given = {name: int(whole or accepted) for name, accepted, whole in found}
    return Session(
        face,
        given,
        {name: int(whole or accepted) - int(accepted) for name, accepted, whole in found},
    )
