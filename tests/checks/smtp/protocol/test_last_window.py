"""QUIT goes along with the window that whoever supplies calls the last."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from mailverdict.checks.smtp.protocol.session import Session
from mailverdict.checks.smtp.protocol.steps import Answered, Ended, Read, Send, SessionPlan
from tests.checks.smtp.protocol.playing import GONE, IN_STEP, heard, server, to

ADA, BOB, EVE = "ada@x.example", "bob@x.example", "eve@x.example"


def play(answer: Any, *addresses: str) -> tuple[list[list[str]], list[str], Ended]:
    """Ask one at a time, and call the second window the last: flights, whom it asked, the end."""
    waiting = deque(to(*addresses))

    def supply(limit: int) -> list[Any]:
        session.is_last_window = len(waiting) < len(addresses)
        return [waiting.popleft()] if waiting else []

    session = Session(SessionPlan("client.example", rcpt_per_session=2, refusal_budget=1), supply)
    steps, replies, value = session.dialogue(), deque(["220 mx.example"]), None
    flights: list[list[str]] = []
    asked: list[str] = []
    while True:
        try:
            step = steps.send(value)
        except StopIteration as stop:
            return flights, asked, stop.value
        value = None
        if isinstance(step, Send):
            flights.append(step.data.decode().splitlines())
            replies.extend(reply for line in flights[-1] if (reply := answer(line)) is not None)
        elif isinstance(step, Read):
            value = heard(replies, lambda reply: 0.0)
        elif isinstance(step, Answered):
            asked.append(step.recipient.address)


def test_quit_goes_along_and_is_said_once() -> None:
    flights, asked, end = play(server([ADA, BOB]), ADA, BOB, EVE)
    assert [[line.split()[0] for line in flight] for flight in flights] == [
        ["EHLO"],
        ["MAIL", "RCPT"],
        ["RCPT", "QUIT"],
    ]
    assert asked == [ADA, BOB]
    assert end == Ended(reached="mail", asked=2)


@pytest.mark.parametrize("reply", [GONE, "421 4.7.0 Too many errors"])
def test_quit_is_not_said_again_when_the_window_breaks(reply: Any) -> None:
    flights, asked, end = play(server([ADA, BOB], special={f"RCPT TO:<{BOB}>": reply}), ADA, BOB, EVE)
    assert sum(line == "QUIT" for flight in flights for line in flight) == 1
    assert asked == [ADA]
    assert [each.address for each in end.unasked] == [BOB]


def test_in_step_quit_comes_when_all_is_said() -> None:
    flights, asked, _ = play(server([ADA, BOB], ehlo=IN_STEP), ADA, BOB, EVE)
    assert flights[-1] == ["QUIT"]
    assert asked == [ADA, BOB]
