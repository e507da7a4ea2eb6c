"""What a session learns of an exchange: limits, budgets, punishments."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mailverdict.checks.smtp.protocol.steps import Learned, SessionPlan
from tests.checks.smtp.protocol.playing import UNKNOWN, play, server, to

ADA, EVE = "ada@x.example", "eve@y.example"


def plan(**limits: Any) -> SessionPlan:
    return SessionPlan("client.example", **limits)


# --- limits of the exchange --------------------------------------------------------------------------


def many(count: int, domain: str = "x.example") -> list[str]:
    return [f"user{n}@{domain}" for n in range(count)]


def limited(known: list[str], most: int, *, session: int = 1_000_000) -> Any:
    """A server that takes so many accepted recipients a transaction, and a session."""
    state = Counter[str]()

    def answer(line: str) -> Any:
        if line.startswith("MAIL"):
            state["here"] = 0
        if line.startswith("RCPT") and (state["here"] >= most or state["all"] >= session):
            return "452 4.5.3 Too many recipients"
        reply = server(known)(line)
        if line.startswith("RCPT") and str(reply).startswith("250"):
            state["here"] += 1
            state["all"] += 1
        return reply

    return answer


@pytest.mark.parametrize("most", [1, 3])
def test_too_many_recipients_are_asked_in_smaller_transactions(most: int) -> None:
    known = many(8)
    played = play(to(*known), limited(known, most))

    assert played.reasons == dict.fromkeys(known, "ok")
    assert played.lessons[0] == Learned(rcpt_per_transaction=most)
    assert played.ended.unasked == ()


def test_too_many_recipients_a_session_leaves_the_rest_for_the_next() -> None:
    known = many(6)
    played = play(to(*known), limited(known, 100, session=4))

    assert list(played.reasons) == known[:4]
    assert [r.address for r in played.ended.unasked] == known[4:]
    assert played.lessons[-1] == Learned(rcpt_per_session=4)
    assert played.ended.classification is None


def test_recipient_refused_as_too_many_on_its_own_is_inconclusive() -> None:
    played = play(to(ADA), server([ADA], special={"RCPT": "452 4.5.3 Too many recipients"}))

    assert played.reasons == {ADA: "inconclusive"}


def test_probe_refused_as_too_many_waits_for_another_session() -> None:
    played = play(to(ADA, "*zq7k@x.example"), limited([ADA], 100, session=1))

    assert played.reasons == {ADA: "ok"}
    assert [r.is_probe for r in played.ended.unasked] == [True]


def test_one_domain_a_transaction_is_learned() -> None:
    state: list[str] = []

    def answer(line: str) -> Any:
        if line.startswith("MAIL"):
            state.clear()
        if line.startswith("RCPT"):
            state.append(line.partition("@")[2])
            if state[0] != state[-1]:
                return "451 4.3.0 Multiple destination domains per transaction is unsupported."
        return server([ADA, EVE])(line)

    played = play(to(ADA, EVE), answer)

    assert played.reasons == {ADA: "ok", EVE: "ok"}
    assert played.lessons == [Learned(one_domain=True)]


def test_announced_limits_are_kept() -> None:
    known = many(5)
    played = play(to(*known), server(known, ehlo="250-mx|250-PIPELINING|250 LIMITS RCPTMAX=2 RCPTDOMAINMAX=1"))

    assert played.verbs.count("MAIL") == 3


# --- budgets -----------------------------------------------------------------------------------------


def test_session_ends_at_its_budget_of_refusals() -> None:
    played = play(to(*many(30)), server())

    assert (played.ended.refused, played.ended.asked, played.ended.classification) == (9, 9, None)
    assert played.commands[-1] == "QUIT"


@pytest.mark.parametrize("budget", [1, 9, 18])
def test_refusals_never_exceed_the_budget(budget: int) -> None:
    known = many(100)[::3]
    played = play(to(*many(100)), server(known), plan=plan(refusal_budget=budget))

    assert played.ended.refused == budget


def test_session_draws_no_more_than_it_asks() -> None:
    played = play(to(*many(30)), server(), plan=plan(rcpt_per_session=5))

    assert (played.ended.asked, played.ended.unasked) == (5, ())


def test_slow_replies_after_refusals_are_learned_and_heeded() -> None:
    known = many(40)[::2]
    count = Counter[str]()

    def seconds(reply: str) -> float:
        count["refused"] += reply == UNKNOWN
        return 1.0 if count["refused"] >= 10 else 0.01

    played = play(to(*many(40)), server(known), plan=plan(refusal_budget=18), seconds=seconds)

    assert played.lessons == [Learned(slowed_after=9)]
    assert played.ended.refused < 18


def test_server_that_is_slow_from_the_beginning_is_not_punishing() -> None:
    played = play(to(*many(20)), server(many(20)[::2]), seconds=lambda reply: 2.0)

    assert played.lessons == []


def test_cut_after_refusals_is_learned() -> None:
    count = Counter[str]()

    def answer(line: str) -> Any:
        count["rcpt"] += line.startswith("RCPT")
        return "421 4.7.0 too many errors" if count["rcpt"] > 4 else server()(line)

    played = play(to(*many(9)), answer)

    assert played.lessons == [Learned(cut_after=4)]
    assert len(played.answers) == 4
    assert [r.address for r in played.ended.unasked] == many(9)[4:]
    assert played.ended.recipient == played.ended.unasked[0]
