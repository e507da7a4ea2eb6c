"""Sessions over real sockets, against every exchange of the sandbox."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from mailverdict.checks.smtp.protocol.commands import Recipient
from mailverdict.checks.smtp.protocol.session import (
    LimitObserved,
    RecipientAnswers,
    Session,
    SessionEnd,
    SessionPlan,
    WindowPlan,
    WindowRequest,
)
from mailverdict.checks.smtp.transport.driver import (
    SessionHandler,
    SessionTimeouts,
    Transcript,
    default_tls,
    drive_session,
)
from mailverdict.sandbox.smtp import Exchange, SmtpFault, SmtpServer
from mailverdict.sandbox.smtp_script import EXCHANGES
from tests.checks.smtp.protocol.playing import OneAnswer, one_by_one
from tests.doubles.tables import assert_none_differ

pytestmark = pytest.mark.usefixtures("skipped_waits")

T = TypeVar("T")
LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)
SHORT = SessionTimeouts(connect=1.5, command=1.5, session=6.0, quit=0.5)
PATIENT = SessionTimeouts(connect=5.0, command=5.0, session=20.0, quit=5.0)
CASES = [(exchange, local) for exchange in EXCHANGES for local in exchange.expects]


@dataclass
class PlayedSession:
    """What came of one session."""

    ended: SessionEnd
    events: list[Any] = field(default_factory=list)
    lines: Transcript = field(default_factory=list)
    # Per report of a first reply: answers until then.
    first_replies: list[int] = field(default_factory=list)

    @property
    def answers(self) -> list[OneAnswer]:
        return [
            one
            for event in self.events
            if isinstance(event, RecipientAnswers)
            for one in one_by_one(event)
        ]

    @property
    def reason(self) -> Any:
        """What became of the one recipient: its answer, or what ended the session."""
        classification = (
            self.answers[0].classification if self.answers else self.ended.classification
        )
        assert classification is not None
        return classification.reason


async def run(
    server: SmtpServer,
    exchange: Exchange,
    locals_: Iterable[str],
    *,
    limits: SessionTimeouts = PATIENT,
    plan: SessionPlan | None = None,
    events: list[Any] | None = None,
    **how: Any,
) -> PlayedSession:
    """Run one session with an exchange about some mailboxes of its domain."""
    waiting = [Recipient(f"{local}@{exchange.domain}") for local in locals_]

    plan = plan or SessionPlan("client.example")

    def next_window(request: WindowRequest) -> WindowPlan:
        drawn = waiting[: request.size]
        del waiting[: request.size]
        return WindowPlan(drawn, plan.refusal_budget)

    played = PlayedSession(SessionEnd(), events if events is not None else [])
    played.ended = await drive_session(
        Session(plan),
        how.pop("addresses", [server.address_of(exchange.host)]),
        SessionHandler(
            next_window,
            on_reply=played.events.append,
            on_limit=played.events.append,
            on_first_reply=lambda: played.first_replies.append(len(played.answers)),
        ),
        port=server.port,
        timeouts=limits,
        allow_networks=how.pop("allow_networks", LOOPBACK),
        transcript=played.lines,
        **how,
    )
    return played


def play(exchanges: Iterable[Exchange], action: Callable[[SmtpServer], Awaitable[T]]) -> T:
    """Run `action` with a server that plays `exchanges`."""

    async def main() -> T:
        async with SmtpServer(exchanges) as server:
            return await action(server)

    return asyncio.run(main())


# --- every exchange of the sandbox, all at once ----------------------------------------------------


@dataclass
class Round:
    """One session with every exchange for each of its cases, all at the same time."""

    played: dict[tuple[str, str], PlayedSession]
    order: list[str]
    server: SmtpServer


@pytest.fixture(scope="module")
def round_() -> Round:
    order: list[str] = []

    async def one(server: SmtpServer, exchange: Exchange, local: str) -> PlayedSession:
        played = await run(server, exchange, [local], limits=SHORT)
        order.append(exchange.host)
        return played

    async def action(server: SmtpServer) -> Round:
        played = await asyncio.gather(*(one(server, exchange, local) for exchange, local in CASES))
        keys = ((exchange.host, local) for exchange, local in CASES)
        return Round(dict(zip(keys, played, strict=True)), order, server)

    return play(EXCHANGES, action)


def test_exchange_gives_the_reason_it_stands_for(round_: Round) -> None:
    played = [(exchange, local, round_.played[exchange.host, local]) for exchange, local in CASES]

    assert_none_differ(
        (exchange.host, local, exchange.expects[local], found.reason, found.ended)
        for exchange, local, found in played
        if found.reason != exchange.expects[local]
    )


def test_hostile_exchange_does_not_delay_others(round_: Round) -> None:
    silent = [round_.order.index(e.host) for e, _ in CASES if e.host.startswith("mx.tarpit")]

    assert round_.order.index("mx.plain.example") < min(silent)


def test_no_session_ever_sends_data(round_: Round) -> None:
    assert sum(round_.server.stats(exchange.host).datas for exchange in EXCHANGES) == 0


DEAF_TO_QUIT = (
    "closed",
    "tarpit",
    "trickle",
    "endless",
    "flood",
    "hang-up",
    "reset",
    "drop",
    "shut",
    "crowded",
)


def test_every_session_that_allows_it_ends_with_quit(round_: Round) -> None:
    for exchange in EXCHANGES:
        stats = round_.server.stats(exchange.host)
        name = exchange.domain.partition(".")[0]
        hears = not name.startswith(DEAF_TO_QUIT) and exchange.starttls != "broken"

        assert stats.quits == (stats.sessions if hears else 0), exchange.host
        assert stats.open_now == 0, exchange.host


def test_connections_are_made_where_someone_listens(round_: Round) -> None:
    for exchange in EXCHANGES:
        assert round_.server.stats(exchange.host).sessions == (
            len(exchange.expects) if exchange.listens else 0
        )


# --- one at a time -----------------------------------------------------------------------------------

PLAIN = Exchange("mx.plain.example", "the usual case")


def test_transcript_contains_every_line() -> None:
    played = play([PLAIN], lambda server: run(server, PLAIN, ["ada", "nobody"]))

    assert [f"{who}: {text}" for _, who, text in played.lines[1:]] == [
        "S: 220 mx.plain.example ESMTP sandbox",
        "C: EHLO client.example",
        "S: 250-mx.plain.example",
        "S: 250-PIPELINING",
        "S: 250-SIZE 10240000",
        "S: 250-ENHANCEDSTATUSCODES",
        "S: 250 8BITMIME",
        "C: MAIL FROM:<>",
        "C: RCPT TO:<ada@plain.example>",
        "C: RCPT TO:<nobody@plain.example>",
        "S: 250 2.1.0 Ok",
        "S: 250 2.1.5 Ok",
        "S: 550 5.1.1 <nobody@plain.example>: Recipient address rejected: User unknown in virtual mailbox table",
        "C: QUIT",
        "S: 221 2.0.0 Bye",
    ]
    assert [seconds for seconds, _, _ in played.lines] == sorted(
        seconds for seconds, _, _ in played.lines
    )


def test_address_that_may_not_be_dialled_is_not() -> None:
    async def action(server: SmtpServer) -> tuple[PlayedSession, int]:
        played = await run(server, PLAIN, ["ada"], allow_networks=())
        return played, server.stats(PLAIN.host).sessions

    played, sessions = play([PLAIN], action)

    assert (played.reason, played.ended.phase, played.ended.reached, sessions) == (
        "port_closed",
        "connect",
        "",
        0,
    )


def test_next_address_of_the_exchange_is_tried() -> None:
    async def action(server: SmtpServer) -> PlayedSession:
        return await run(
            server, PLAIN, ["ada"], addresses=["127.25.9.9", server.address_of(PLAIN.host)]
        )

    played = play([PLAIN], action)

    assert (played.reason, played.ended.host) == (None, "127.25.0.1")


def test_session_leaves_from_the_source_address() -> None:
    refusing = Exchange("mx.refusing.example", "tells who came", greeting="554 go away, {client}")

    played = play([refusing], lambda server: run(server, refusing, ["ada"], source="127.0.0.9"))

    assert played.ended.detail == "554 go away, 127.0.0.9"


def test_cancelling_says_quit_and_keeps_what_is_answered() -> None:
    slow = Exchange(
        "mx.slow.example", "answers at leisure", extensions=(), slow_after=1, slow_by=30.0
    )

    async def action(server: SmtpServer) -> tuple[list[Any], int, int]:
        events: list[Any] = []
        task = asyncio.create_task(
            run(server, slow, ["ada", "grace", "nobody", "info"], events=events)
        )
        while server.stats(slow.host).commands["RCPT"] < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.wait([task])
        while server.stats(slow.host).quits < 1:
            await asyncio.sleep(0.001)
        return events, server.stats(slow.host).quits, int(task.cancelled())

    events, quits, cancelled = play([slow], action)

    assert [recipient.address for event in events for recipient in event.recipients] == [
        "ada@slow.example",
        "grace@slow.example",
    ]
    assert (quits, cancelled) == (1, 1)


def test_the_first_reply_of_a_session_is_reported_once_after_its_answer() -> None:
    played = play([PLAIN], lambda server: run(server, PLAIN, ["ada", "nobody", "grace"]))

    assert (len(played.answers), played.first_replies) == (3, [1])


def test_session_deadline_ends_a_session_that_goes_on_and_on() -> None:
    slow = Exchange("mx.slow.example", "a long way off", mailboxes=None, extensions=(), delay=0.1)
    limits = SessionTimeouts(connect=5.0, command=5.0, session=1.0, quit=0.1)

    played = play(
        [slow], lambda server: run(server, slow, [f"user{n}" for n in range(50)], limits=limits)
    )

    assert played.ended.classification is not None
    assert (played.ended.classification.rule, played.ended.classification.reason) == (
        "session_timeout",
        "timeout",
    )
    assert 0 < len(played.answers) < 9
    assert len(played.answers) + len(played.ended.unasked) == 9  # one window: the budget


def test_reply_deadline_runs_from_the_last_reply_not_from_the_last_byte() -> None:
    trickle = Exchange(
        "mx.trickle.example", "a byte now and then", faults=(SmtpFault("RCPT", "trickle"),)
    )

    played = play([trickle], lambda server: run(server, trickle, ["ada"], limits=SHORT))

    assert (played.reason, played.ended.phase) == ("timeout", "rcpt")


def test_fault_of_the_handler_reaches_the_caller() -> None:
    def stumble(event: object) -> None:
        raise ZeroDivisionError

    async def action(server: SmtpServer) -> SessionEnd:
        session = Session(SessionPlan("client.example"))
        windows = iter([WindowPlan([Recipient("ada@plain.example")], 9)])
        handler = SessionHandler(lambda request: next(windows, WindowPlan((), 9)), stumble)
        where = [server.address_of(PLAIN.host)]
        return await drive_session(
            session, where, handler, port=server.port, allow_networks=LOOPBACK
        )

    with pytest.raises(ZeroDivisionError):
        play([PLAIN], action)


def test_bytes_before_the_handshake_are_not_taken_for_replies() -> None:
    injecting = Exchange(
        "mx.injecting.example",
        "someone in the middle adds a line",
        starttls="offered",
        faults=(SmtpFault("STARTTLS", "say", text="220 go\r\n250 injected\r\n"),),
    )

    played = play([injecting], lambda server: run(server, injecting, ["ada"]))

    assert played.ended.classification is not None
    assert played.ended.classification.rule == "tls_failed"


def test_sessions_under_tls_are_secure() -> None:
    offering = Exchange("mx.offering.example", "offers STARTTLS", starttls="offered")

    async def action(server: SmtpServer) -> tuple[PlayedSession, int]:
        played = await run(server, offering, ["ada", "nobody"])
        return played, server.stats(offering.host).secured

    played, secured = play([offering], action)

    assert [answer.classification.reason for answer in played.answers] == [
        None,
        "mailbox_not_found",
    ]
    assert (played.ended.is_secure, secured) == (True, 1)


def test_default_tls_verifies_nothing() -> None:
    context = default_tls()

    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)
    assert default_tls() is context


def test_budget_is_kept_over_the_wire() -> None:
    punishing = Exchange(
        "mx.punishing.example", "punishes refusals", slow_after=10, slow_by=30.0, cut_after=20
    )

    async def action(server: SmtpServer) -> tuple[PlayedSession, int]:
        played = await run(server, punishing, [f"nobody{n}" for n in range(40)])
        return played, server.stats(punishing.host).commands["RCPT"]

    played, asked = play([punishing], action)

    assert (played.ended.refused, asked, played.ended.classification) == (9, 9, None)


# --- delayed replies -------------------------------------------------------------------------------


def limits_of(exchange: Exchange, *, pause: float = 0.0) -> list[LimitObserved]:
    """The limits noticed in a session whose fourth reply is read after a pause of the event loop."""

    async def action(server: SmtpServer) -> PlayedSession:
        task = asyncio.create_task(run(server, exchange, [f"nobody{n}" for n in range(6)]))
        while pause and server.stats(exchange.host).commands["RCPT"] < 4:
            await asyncio.sleep(0)
        asyncio.get_running_loop().now += pause  # type: ignore[attr-defined]
        return await task

    played = play([exchange], action)
    assert played.ended.refused >= 3
    return [event for event in played.events if isinstance(event, LimitObserved)]


IN_STEP = Exchange("mx.step.example", "refuses everyone", extensions=())
SLOWING = Exchange(
    "mx.slowing.example",
    "is slow from the third refusal on",
    extensions=(),
    slow_after=3,
    slow_by=1.0,
)


def test_one_pause_of_this_process_is_not_a_delay_by_the_server() -> None:
    assert limits_of(IN_STEP, pause=2.0) == []


def test_a_delay_by_the_server_is_noticed() -> None:
    assert limits_of(SLOWING) == [LimitObserved(slowed_after=2)]


def test_a_reply_that_came_during_a_pause_of_this_process_counts() -> None:
    """A pause of 10 s, where a reply is waited for at most 5 s."""

    async def action(server: SmtpServer) -> PlayedSession:
        task = asyncio.create_task(run(server, IN_STEP, ["nobody"]))
        while not server.stats(IN_STEP.host).commands["EHLO"]:
            await asyncio.sleep(0)
        asyncio.get_running_loop().pause(10.0)  # type: ignore[attr-defined]
        return await task

    assert play([IN_STEP], action).ended.detail == ""
