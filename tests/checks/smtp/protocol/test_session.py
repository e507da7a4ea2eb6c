"""The dialogue, without sockets or clocks."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.smtp.classify.classification import Action, ConnectionFailure, FailureKind
from mailverdict.checks.smtp.protocol.session import (
    LimitObserved,
    Read,
    RecipientAnswers,
    Send,
    Session,
    SessionEnd,
    SessionPlan,
    WindowPlan,
    WindowRequest,
)
from tests.checks.smtp.protocol.playing import (
    EHLO,
    GONE,
    IN_STEP,
    SILENCE,
    UNKNOWN,
    heard,
    play,
    server,
    to,
)
from tests.doubles.tables import each_row

ADA, BOB, EVE, ZOE = "ada@x.example", "bob@x.example", "eve@y.example", "zoë@x.example"


def plan(**limits: Any) -> SessionPlan:
    return SessionPlan("client.example", **limits)


# --- the usual way -----------------------------------------------------------------------------------


def test_session_asks_all_in_one_flight_when_pipelining() -> None:
    played = play(to(ADA, BOB, "*zq7k@x.example"), server([ADA]))

    assert played.reasons == {
        ADA: "ok",
        BOB: "mailbox_not_found",
        "zq7k@x.example": "mailbox_not_found",
    }
    assert played.commands == [
        "EHLO client.example",
        "MAIL FROM:<>",
        f"RCPT TO:<{ADA}>",
        f"RCPT TO:<{BOB}>",
        "RSET",
        "MAIL FROM:<>",
        "RCPT TO:<zq7k@x.example>",
        "QUIT",
    ]
    assert played.flights == [1, 6, 1]
    assert (played.ended.classification, played.ended.unasked) == (None, ())
    assert (played.ended.asked, played.ended.refused, played.ended.reached) == (3, 2, "mail")


def test_session_goes_in_step_where_pipelining_is_not_offered() -> None:
    played = play(to(ADA, BOB), server([ADA], ehlo=IN_STEP))

    assert played.flights == [1, 1, 1, 1, 1]
    assert played.reasons == {ADA: "ok", BOB: "mailbox_not_found"}


def test_session_goes_in_step_without_pipelining() -> None:
    played = play(to(ADA, BOB), server([ADA]), plan=plan(pipelining=False))

    assert max(played.flights) == 1


def test_session_names_its_sender() -> None:
    played = play(to(ADA), server([ADA]), plan=plan(mail_from="v@client.example"))

    assert "MAIL FROM:<v@client.example>" in played.commands


def test_a_refusal_that_names_the_sender_says_nothing_about_the_recipient() -> None:
    refusal = "550 5.1.1 <V@client.example>: User unknown"
    played = play(
        to(ADA), server(special={"RCPT": refusal}), plan=plan(mail_from="v@client.example")
    )

    assert played.reasons == {ADA: "sender_blocked"}


def test_session_without_recipients_says_quit() -> None:
    assert play([], server()).verbs == "EHLO QUIT"


def test_session_never_sends_data() -> None:
    assert "DATA" not in play(to(ADA, BOB, EVE), server([ADA, BOB, EVE])).verbs


# --- hello -------------------------------------------------------------------------------------------


def test_helo_follows_a_refused_ehlo() -> None:
    played = play(to(ADA), server([ADA], ehlo="502 5.5.2 Command not recognized"))

    assert played.verbs == "EHLO HELO MAIL RCPT QUIT"
    assert played.flights == [1] * 5


HELLOS = [
    (
        {"EHLO": "550 5.7.1 blocked using zen.spamhaus.org", "HELO": "550 no"},
        "protected",
        "what was said to EHLO",
    ),
    (
        {"EHLO": "501 5.5.4 HELO argument invalid", "HELO": "501 no"},
        "sender_blocked",
        "EHLO naming HELO",
    ),
    ({"EHLO": "554 5.7.1 Denied", "HELO": GONE}, "protected", "even if the server then hangs up"),
    ({"EHLO": "421 4.3.2 Later"}, "inconclusive", "HELO is not tried after 421"),
    ({"EHLO": "450 4.7.0 Wait"}, "inconclusive", "nor is any transient reply"),
    ({"EHLO": "220 mx again"}, "inconclusive", "a second greeting is not a reply to EHLO"),
    ({"EHLO": GONE}, "connection_dropped", "end"),
    ({"EHLO": SILENCE}, "timeout", "silence"),
]


@each_row(("special", "reason", "why"), HELLOS)
def test_session_ends_at_a_refused_hello(special: dict[str, Any], reason: str, why: str) -> None:
    played = play(to(ADA), server([ADA], special=special))

    assert played.ended.classification is not None
    assert played.ended.classification.reason == reason, why
    assert (played.ended.phase, played.ended.reached, played.answers) == ("ehlo", "banner", [])


BANNERS = [
    ("554 5.7.1 blocked using zen.spamhaus.org", "protected", "QUIT"),
    ("421 4.3.2 too many connections", "inconclusive", "QUIT"),
    ("521 mx.example does not accept mail", "no_mx_record", "QUIT"),
    ("250 mx.example", "inconclusive", "QUIT"),
    (ConnectionFailure(FailureKind.NOT_SMTP), "no_smtp_data", "QUIT"),
    (ConnectionFailure(FailureKind.BANNER_TIMEOUT), "timeout", "QUIT"),
    (ConnectionFailure(FailureKind.NO_DATA), "no_smtp_data", ""),
]


@each_row(("banner", "reason", "verbs"), BANNERS)
def test_session_ends_at_a_bad_greeting(banner: Any, reason: str, verbs: str) -> None:
    played = play(to(ADA), server([ADA]), banner=banner)

    assert played.ended.classification is not None
    assert (played.ended.classification.reason, played.verbs, played.ended.phase) == (
        reason,
        verbs,
        "banner",
    )


# --- TLS ---------------------------------------------------------------------------------------------

WITH_TLS = "250-mx.example|250-PIPELINING|250 STARTTLS"


def test_session_uses_tls_when_offered_and_says_ehlo_again() -> None:
    played = play(to(ADA), server([ADA], ehlo=WITH_TLS))

    assert played.verbs == "EHLO STARTTLS EHLO MAIL RCPT QUIT"
    assert played.ended.is_secure


@each_row("starttls", ["demanded", "never"])
def test_session_leaves_tls_alone_unless_planned(starttls: str) -> None:
    played = play(to(ADA), server([ADA], ehlo=WITH_TLS), plan=plan(starttls=starttls))

    assert played.verbs == "EHLO MAIL RCPT QUIT"
    assert not played.ended.is_secure


def test_session_goes_on_in_the_clear_when_tls_is_declined() -> None:
    played = play(to(ADA), server([ADA], ehlo=WITH_TLS, special={"STARTTLS": "454 4.7.0 not now"}))

    assert played.verbs == "EHLO STARTTLS MAIL RCPT QUIT"
    assert played.reasons == {ADA: "ok"}


def test_failed_handshake_asks_for_a_session_without_tls() -> None:
    played = play(
        to(ADA), server([ADA], ehlo=WITH_TLS), handshake=ConnectionFailure(FailureKind.TLS)
    )

    assert played.ended.classification is not None
    assert played.ended.classification.action is Action.WITHOUT_TLS


@each_row("ehlo", [WITH_TLS, "250-mx.example|250 STARTTLS"])
@each_row("verb", ["MAIL", "RCPT"])
def test_session_upgrades_when_tls_is_demanded(verb: str, ehlo: str) -> None:
    secure: list[bool] = []

    def answer(line: str) -> Any:
        if line == "STARTTLS":
            secure.append(True)
        if line.startswith(verb) and not secure:
            return "530 5.7.0 Must issue a STARTTLS command first"
        return server([ADA], ehlo=ehlo)(line)

    played = play(to(ADA, BOB), answer, plan=plan(starttls="demanded"))

    assert played.reasons == {ADA: "ok", BOB: "mailbox_not_found"}
    assert played.ended.is_secure


@each_row("verb", ["MAIL", "RCPT"])
def test_tls_demanded_and_not_offered_is_inconclusive(verb: str) -> None:
    played = play(
        to(ADA), server([ADA], special={verb: "530 5.7.0 Must issue a STARTTLS command first"})
    )

    classification = played.ended.classification or played.answers[0].classification
    assert (classification.reason, classification.error_code) == ("inconclusive", "TLS_REQUIRED")


# --- internationalised mailboxes ---------------------------------------------------------------------


def test_internationalised_mailbox_goes_with_smtputf8() -> None:
    played = play(
        to(ADA, ZOE), server([ADA, ZOE], ehlo="250-mx.example|250-PIPELINING|250 SMTPUTF8")
    )

    assert played.reasons == {ADA: "ok", ZOE: "ok"}
    assert "MAIL FROM:<> SMTPUTF8" in played.commands
    assert "MAIL FROM:<>" in played.commands


def test_internationalised_mailbox_is_not_sent_where_it_cannot_be() -> None:
    played = play(to(ZOE, ADA), server([ADA, ZOE]))

    assert played.reasons == {ZOE: "inconclusive", ADA: "ok"}
    assert played.answers[0].classification.error_code == "SMTPUTF8_REQUIRED"
    assert all(command.isascii() for command in played.commands)


def test_recipient_that_needs_smtputf8_is_asked_again_with_it() -> None:
    def answer(line: str) -> Any:
        if line.startswith("MAIL"):
            state["utf8"] = "SMTPUTF8" in line
        if line == f"RCPT TO:<{ADA}>" and not state["utf8"]:
            return "553 5.6.7 forwards to an internationalised address"
        return server([ADA, BOB], ehlo="250-mx.example|250-PIPELINING|250 SMTPUTF8")(line)

    state = {"utf8": False}
    played = play(to(ADA, BOB), answer)

    assert played.reasons == {ADA: "ok", BOB: "ok"}


@each_row("address", ["ada@x.example\r\nDATA", "a\x00@x.example", "<a>@x.example", "a b@x.example"])
def test_malformed_address_never_reaches_the_bytes(address: str) -> None:
    played = play(to(address, ADA), server([ADA]))

    assert played.reasons == {address: "syntax_error", ADA: "ok"}
    assert played.verbs == "EHLO MAIL RCPT QUIT"


# --- sessions that break -----------------------------------------------------------------------------


@each_row("ehlo", [IN_STEP, "250-mx.example|250 PIPELINING"])
def test_answers_before_a_drop_are_kept(ehlo: str) -> None:
    played = play(to(ADA, BOB, EVE), server([ADA], ehlo=ehlo, special={f"RCPT TO:<{EVE}>": GONE}))

    assert played.reasons == {ADA: "ok", BOB: "mailbox_not_found"}
    assert played.ended.classification is not None
    assert played.ended.classification.reason == "connection_dropped"
    assert [r.address for r in played.ended.unasked] == [EVE]


def test_nothing_counts_of_a_window_in_which_a_reply_was_lost() -> None:
    played = play(to(ADA, BOB, EVE), server([ADA, EVE], special={f"RCPT TO:<{ADA}>": None}))

    assert played.answers == []
    assert played.lessons == [LimitObserved(loses_replies=True)]
    assert played.ended.classification is not None
    assert (played.ended.classification.reason, played.ended.classification.action) == (
        "timeout",
        Action.IN_STEP,
    )
    assert len(played.ended.unasked) == 3


def test_nothing_counts_of_a_window_whose_replies_are_shifted() -> None:
    special: dict[str, Any] = {f"RCPT TO:<{ADA}>": f"550 5.1.1 <{BOB}>: User unknown"}
    played = play(to(ADA, BOB), server([ADA], special=special))

    assert played.answers == []
    assert played.ended.classification is not None
    assert played.ended.classification.action is Action.IN_STEP


def test_lost_reply_in_step_is_a_time_out_of_that_recipient_only() -> None:
    played = play(to(ADA, BOB), server([ADA], ehlo=IN_STEP, special={f"RCPT TO:<{BOB}>": None}))

    assert played.reasons == {ADA: "ok"}
    assert played.ended.recipient is not None
    assert played.ended.recipient.address == BOB


MAIL_REFUSALS = [
    ("550 5.7.1 Sender rejected", "sender_blocked"),
    ("554 5.7.1 Client host [192.0.2.7] blocked", "protected"),
    ("452 4.3.1 Insufficient system storage", "inconclusive"),
    ("421 4.7.0 closing", "inconclusive"),
    ("451 4.7.1 Greylisted", "greylisted"),
]


@each_row(("reply", "reason"), MAIL_REFUSALS)
@each_row("ehlo", [IN_STEP, "250-mx.example|250 PIPELINING"])
def test_refused_mail_is_not_an_answer_about_a_recipient(
    reply: str, reason: str, ehlo: str
) -> None:
    special: dict[str, Any] = {"MAIL": reply, "RCPT": "503 5.5.1 need MAIL command"}
    played = play(to(ADA, BOB), server(special=special, ehlo=ehlo))

    assert played.answers == []
    assert played.ended.classification is not None
    assert (played.ended.classification.reason, played.ended.phase) == (reason, "mail")
    assert len(played.ended.unasked) == 2


@each_row("ehlo", [IN_STEP, "250-mx.example|250 PIPELINING"])
def test_capacity_at_rcpt_ends_the_session_for_now(ehlo: str) -> None:
    special: dict[str, Any] = {f"RCPT TO:<{BOB}>": "450 4.7.1 Error: too many connections"}
    played = play(to(ADA, BOB), server([ADA], special=special, ehlo=ehlo))

    assert played.reasons == {ADA: "ok"}
    assert played.ended.classification is not None
    assert played.ended.classification.action is Action.BACK_OFF
    assert [r.address for r in played.ended.unasked] == [BOB]


def test_quit_that_gets_no_reply_changes_nothing() -> None:
    played = play(to(ADA), server([ADA], special={"QUIT": None}))

    assert (played.ended.classification, played.reasons) == (None, {ADA: "ok"})


# --- whatever a server says --------------------------------------------------------------------------

REPLIES = st.sampled_from(
    [
        "250 Ok",
        "250 2.1.5 Ok",
        UNKNOWN,
        "452 4.5.3 Too many recipients",
        "451 4.3.0 Multiple destination domains per transaction is unsupported",
        "450 4.2.0 Greylisted",
        "530 5.7.0 Must issue a STARTTLS command first",
        "553 5.6.7 SMTPUTF8 required",
        "421 4.7.0 closing",
        "450 too many connections",
        "354 go on",
        "220 hello",
        "554 5.7.1 blocked",
        SILENCE,
        GONE,
    ]
)


@given(
    st.data(),
    st.sampled_from([IN_STEP, WITH_TLS, "250-mx|250-SMTPUTF8|250-STARTTLS|250 PIPELINING"]),
)
def test_every_recipient_is_answered_once_or_given_back_once(
    data: st.DataObject, ehlo: str
) -> None:
    def answer(line: str) -> Any:
        return ehlo if line.startswith("EHLO") else data.draw(REPLIES)

    recipients = to(ADA, BOB, EVE, ZOE, "bad\r\n@x.example", "*zq7k@x.example", "*zq7k@y.example")
    played = play(recipients, answer, plan=plan(rcpt_per_transaction=3))

    seen = Counter([a.recipient for a in played.answers] + list(played.ended.unasked))
    assert set(seen.values()) <= {1}
    assert set(seen) <= set(recipients)
    if played.ended.classification is None and played.ended.refused < 9:
        assert len(played.answers) + len(played.ended.unasked) == len(recipients)
    assert "DATA" not in played.verbs


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


@each_row("most", [1, 3])
def test_too_many_recipients_are_asked_in_smaller_transactions(most: int) -> None:
    known = many(8)
    played = play(to(*known), limited(known, most))

    assert played.reasons == dict.fromkeys(known, "ok")
    assert played.lessons[0] == LimitObserved(rcpt_per_transaction=most)
    assert played.ended.unasked == ()


def test_too_many_recipients_a_session_leaves_the_rest_for_the_next() -> None:
    known = many(6)
    played = play(to(*known), limited(known, 100, session=4))

    assert list(played.reasons) == known[:4]
    assert [r.address for r in played.ended.unasked] == known[4:]
    assert played.lessons[-1] == LimitObserved(rcpt_per_session=4)
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
    assert played.lessons == [LimitObserved(one_domain=True)]


def test_announced_limits_are_kept() -> None:
    known = many(5)
    played = play(
        to(*known), server(known, ehlo="250-mx|250-PIPELINING|250 LIMITS RCPTMAX=2 RCPTDOMAINMAX=1")
    )

    assert played.verbs.count("MAIL") == 3


@each_row("seconds", [None, lambda reply: 0.0], ids=["together", "one by one"])
def test_the_same_reply_to_recipients_in_a_row_is_one_answer(seconds: Any) -> None:
    asked = [ADA, BOB, "x@firm.example", EVE, "*probe@firm.example"]
    played = play(to(*asked), server([ADA, BOB, EVE, "probe@firm.example"]), seconds=seconds)

    assert [a.recipient.address.removeprefix("*") for a in played.answers] == [
        a.removeprefix("*") for a in asked
    ]
    assert list(played.reasons.values()) == ["ok", "ok", "mailbox_not_found", "ok", "ok"]
    assert played.sizes == [2, 1, 1, 1]


def test_answers_before_a_refused_transaction_count() -> None:
    replies = iter(["250 Ok", "550 5.7.1 Sender rejected"])

    def answer(line: str) -> Any:
        return next(replies) if line.startswith("MAIL") else server([ADA, BOB, EVE])(line)

    played = play(to(ADA, BOB, EVE), answer, plan=plan(rcpt_per_transaction=2))

    assert (list(played.reasons), played.sizes) == ([ADA, BOB], [2])
    assert [recipient.address for recipient in played.ended.unasked] == [EVE]


@each_row("seconds", [None, lambda reply: 0.0], ids=["together", "one by one"])
def test_replies_before_a_closing_one_count(seconds: Any) -> None:
    closing = server([ADA, BOB, EVE], special={f"RCPT TO:<{BOB}>": "421 4.3.2 Shutting down"})
    played = play(to(ADA, BOB, EVE), closing, seconds=seconds)

    assert list(played.reasons) == [ADA]
    assert (played.ended.recipient, played.ended.phase) == (to(BOB)[0], "rcpt")


# --- budgets -----------------------------------------------------------------------------------------


def test_session_ends_at_its_budget_of_refusals() -> None:
    played = play(to(*many(30)), server())

    assert (played.ended.refused, played.ended.asked, played.ended.classification) == (9, 9, None)
    assert played.commands[-1] == "QUIT"


@each_row("budget", [1, 9, 18])
def test_refusals_never_exceed_the_budget(budget: int) -> None:
    known = many(100)[::3]
    played = play(to(*many(100)), server(known), plan=plan(refusal_budget=budget))

    assert played.ended.refused == budget


@each_row(("budget", "asked"), [(1, 1), (9, 17), (18, 35)])
def test_less_than_two_budgets_are_refused_if_none_was_expected(budget: int, asked: int) -> None:
    played = play(
        to(*many(100)), server(), plan=plan(refusal_budget=budget), expects_refusals=False
    )

    assert (played.ended.asked, played.ended.refused) == (asked, asked)


def test_large_windows_end_with_the_recipients_of_the_session() -> None:
    played = play(
        to(*many(100)), server(many(100)), plan=plan(rcpt_per_session=40), expects_refusals=False
    )

    assert (played.ended.asked, played.ended.unasked) == (40, ())


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

    assert played.lessons == [LimitObserved(slowed_after=9)]
    assert played.ended.refused < 18


def test_slow_replies_to_refusals_beyond_the_budget_are_learned() -> None:
    count = Counter[str]()

    def seconds(reply: str) -> float:
        count["refused"] += reply == UNKNOWN
        return 1.0 if count["refused"] > 6 else 0.01

    played = play(
        to(*many(9)),
        server([]),
        plan=plan(refusal_budget=5),
        seconds=seconds,
        expects_refusals=False,
    )

    assert played.ended.refused == 9
    assert played.lessons == [LimitObserved(slowed_after=6)]


def test_server_that_is_slow_from_the_beginning_is_not_punishing() -> None:
    played = play(to(*many(20)), server(many(20)[::2]), seconds=lambda reply: 2.0)

    assert played.lessons == []


def test_cut_after_refusals_is_learned() -> None:
    count = Counter[str]()

    def answer(line: str) -> Any:
        count["rcpt"] += line.startswith("RCPT")
        return "421 4.7.0 too many errors" if count["rcpt"] > 4 else server()(line)

    played = play(to(*many(9)), answer)

    assert played.lessons == [LimitObserved(cut_after=4)]
    assert len(played.answers) == 4
    assert [r.address for r in played.ended.unasked] == many(9)[4:]
    assert played.ended.recipient == played.ended.unasked[0]


def play_two_windows(answer: Any, *addresses: str) -> tuple[list[list[str]], list[str], SessionEnd]:
    """Ask one at a time, and call the second window the last: flights, whom it asked, the end."""
    waiting = deque(to(*addresses))

    session = Session(SessionPlan("client.example", rcpt_per_session=2, refusal_budget=1))
    value: Any = None
    steps, replies = session.dialogue(), deque(["220 mx.example"])
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
            value = heard(replies, None, step.most)
        elif isinstance(step, WindowRequest):
            value = WindowPlan(
                [waiting.popleft()] if waiting else [], 1, is_last=len(waiting) < len(addresses) - 1
            )
        elif isinstance(step, RecipientAnswers):
            asked += [recipient.address for recipient in step.recipients]


def test_quit_goes_along_and_is_said_once() -> None:
    flights, asked, end = play_two_windows(server([ADA, BOB]), ADA, BOB, EVE)
    assert [[line.split()[0] for line in flight] for flight in flights] == [
        ["EHLO"],
        ["MAIL", "RCPT"],
        ["RCPT", "QUIT"],
    ]
    assert asked == [ADA, BOB]
    assert end == SessionEnd(reached="mail", asked=2)


def test_nothing_counts_of_a_window_where_the_reply_to_quit_comes_too_early() -> None:
    lost: dict[str, Any] = {f"RCPT TO:<{BOB}>": None}
    _, asked, end = play_two_windows(server([ADA, BOB], special=lost), ADA, BOB, EVE)
    assert asked == [ADA]
    assert [each.address for each in end.unasked] == [BOB]
    assert end.classification is not None
    assert end.classification.action is Action.IN_STEP


@each_row("reply", [GONE, "421 4.7.0 Too many errors"])
def test_quit_is_not_said_again_when_the_window_breaks(reply: Any) -> None:
    flights, asked, end = play_two_windows(
        server([ADA, BOB], special={f"RCPT TO:<{BOB}>": reply}), ADA, BOB, EVE
    )
    assert sum(line == "QUIT" for flight in flights for line in flight) == 1
    assert asked == [ADA]
    assert [each.address for each in end.unasked] == [BOB]


def test_in_step_quit_comes_when_all_is_said() -> None:
    flights, asked, _ = play_two_windows(server([ADA, BOB], ehlo=IN_STEP), ADA, BOB, EVE)
    assert flights[-1] == ["QUIT"]
    assert asked == [ADA, BOB]


# --- replies and commands ------------------------------------------------------------------------------

EARLY = ConnectionFailure(FailureKind.NO_REPLY, "a reply came before its command")
COUNTS = [
    ("221 2.0.0 Bye", False, "as many replies as commands"),
    ("421 4.4.2 Timeout", False, "the server closes"),
    (GONE, False, "nothing is known"),
    (SILENCE, False, "nor here"),
    (EARLY, True, "a reply came before QUIT was sent"),
    ("250 2.1.5 Ok", True, "the reply to an earlier command"),
    (UNKNOWN, True, "even if it refuses"),
]


@each_row(("reply", "is_out_of_step", "why"), COUNTS)
@each_row("ehlo", [EHLO, IN_STEP])
def test_reply_to_quit_shows_whether_replies_belong_to_their_commands(
    reply: Any, is_out_of_step: bool, why: str, ehlo: str
) -> None:
    played = play(to(ADA, BOB), server([ADA], ehlo=ehlo, special={"QUIT": reply}))

    assert played.ended.is_out_of_step is is_out_of_step, why
    assert played.reasons == {ADA: "ok", BOB: "mailbox_not_found"}


def test_reply_to_quit_counts_after_a_refused_command() -> None:
    special = {"RSET": UNKNOWN, "QUIT": "250 2.0.0 Ok"}
    played = play(to(BOB, "*zq7k@x.example"), server([ADA], ehlo=IN_STEP, special=special))

    assert (played.ended.phase, played.ended.is_out_of_step) == ("mail", True)


def test_reply_without_a_command_makes_the_session_out_of_step() -> None:
    played = play(to(BOB, ADA), server([ADA], ehlo=IN_STEP, special={f"RCPT TO:<{ADA}>": EARLY}))

    assert played.ended.is_out_of_step
