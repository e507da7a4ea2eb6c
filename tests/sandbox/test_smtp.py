"""The sandbox's SMTP server, asked line by line: what it says, how it misbehaves, and what it counts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import pytest

from mailverdict.model.words import Reason
from mailverdict.sandbox.smtp import Exchange, SmtpFault, SmtpServer
from mailverdict.sandbox.smtp_script import EXCHANGES
from tests.doubles.tables import each_row

pytestmark = pytest.mark.usefixtures("skipped_waits")

T = TypeVar("T")
PLAIN = Exchange("mx.plain.example", "the usual case")


class Client:
    """A connection that waits for each reply."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def read(self) -> str:
        """One reply, its lines parted by bars; empty at the end of the connection."""
        lines = []
        while True:
            line = (await asyncio.wait_for(self.reader.readline(), 5)).decode()
            lines.append(line.rstrip("\r\n"))
            if line[3:4] != "-":
                return "|".join(lines)

    async def say(self, *commands: str) -> list[str]:
        """Send commands in one piece and read a reply to each."""
        self.writer.write("".join(f"{command}\r\n" for command in commands).encode())
        return [await self.read() for _ in commands]

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()


async def connect(server: SmtpServer, exchange: Exchange) -> Client:
    return Client(*await asyncio.open_connection(server.address_of(exchange.host), server.port))


def play(exchanges: Iterable[Exchange], action: Callable[[SmtpServer], Awaitable[T]]) -> T:
    """Run `action` with a server that plays `exchanges`."""

    async def main() -> T:
        async with SmtpServer(exchanges) as server:
            return await action(server)

    return asyncio.run(main())


def talk(exchange: Exchange, *flights: list[str]) -> list[str]:
    """Greeting and replies to flights of commands."""

    async def action(server: SmtpServer) -> list[str]:
        client = await connect(server, exchange)
        replies = [await client.read()]
        for flight in flights:
            replies += await client.say(*flight)
        await client.close()
        return replies

    return play([exchange], action)


DIALOGUES = [
    (
        PLAIN,
        [
            "EHLO c",
            "MAIL FROM:<>",
            "RCPT TO:<ada@plain.example>",
            "RCPT TO:<nobody@plain.example>",
            "QUIT",
        ],
        "220 250 250 250 550 221",
        "the usual way",
    ),
    (PLAIN, ["RCPT TO:<ada@plain.example>"], "220 503", "RCPT before MAIL"),
    (PLAIN, ["MAIL FROM:<>", "MAIL FROM:<>"], "220 250 503", "a nested MAIL"),
    (PLAIN, ["MAIL FROM:<>", "RSET", "MAIL FROM:<>"], "220 250 250 250", "RSET between"),
    (PLAIN, ["MAIL FROM:<>", "DATA"], "220 250 554", "no message is ever taken"),
    (PLAIN, ["STARTTLS", "VRFY ada", "helo c"], "220 502 500 250", "what is not offered"),
    (
        Exchange("mx.a.example", "two a transaction", mailboxes=None, max_recipients=2),
        [
            "MAIL FROM:<>",
            "RCPT TO:<a@a>",
            "RCPT TO:<b@a>",
            "RCPT TO:<c@a>",
            "RSET",
            "MAIL FROM:<>",
            "RCPT TO:<c@a>",
        ],
        "220 250 250 250 452 250 250 250",
        "recipients of a transaction",
    ),
    (
        Exchange("mx.a.example", "two a session", mailboxes=None, max_per_session=2),
        ["MAIL FROM:<>", "RCPT TO:<a@a>", "RCPT TO:<b@a>", "RSET", "MAIL FROM:<>", "RCPT TO:<c@a>"],
        "220 250 250 250 250 250 452",
        "recipients of a session",
    ),
    (
        Exchange("mx.a.example", "one domain", mailboxes=None, one_domain=True),
        ["MAIL FROM:<>", "RCPT TO:<a@a>", "RCPT TO:<b@b>", "RCPT TO:<b@a>"],
        "220 250 250 451 250",
        "domains of a transaction",
    ),
    (
        Exchange("mx.a.example", "cuts", cut_after=2),
        ["MAIL FROM:<>", "RCPT TO:<x@a>", "RCPT TO:<y@a>", "RSET"],
        "220 250 550 550 421",
        "the end of patience comes unasked",
    ),
    (
        Exchange(
            "mx.a.example",
            "loses the second",
            mailboxes=None,
            faults=(SmtpFault("RCPT", "lose", after=1),),
        ),
        ["MAIL FROM:<>", "RCPT TO:<a@a>", "RCPT TO:<b@a>", "RCPT TO:<c@a>", "QUIT"],
        "220 250 250 250 221",
        "one reply fewer than commands",
    ),
    (
        Exchange("mx.a.example", "later faults", faults=(SmtpFault("RSET", "shut", after=1),)),
        ["RSET", "RSET"],
        "220 250 421",
        "a fault that comes with the second command",
    ),
]


@each_row(("exchange", "commands", "codes", "why"), DIALOGUES)
def test_server_answers_by_its_script(
    exchange: Exchange, commands: list[str], codes: str, why: str
) -> None:
    async def action(server: SmtpServer) -> list[str]:
        client = await connect(server, exchange)
        client.writer.write("".join(f"{command}\r\n" for command in commands).encode())
        replies = [await client.read() for _ in codes.split()]
        await client.close()
        return replies

    replies = play([exchange], action)

    assert " ".join(reply[:3] for reply in replies) == codes, (why, replies)


def test_extensions_follow_the_script() -> None:
    exchange = Exchange(
        "mx.a.example", "", extensions=("PIPELINING",), starttls="offered", smtputf8=True
    )

    assert (
        talk(exchange, ["EHLO c"])[1] == "250-mx.a.example|250-PIPELINING|250-STARTTLS|250 SMTPUTF8"
    )


def test_texts_are_filled_in() -> None:
    exchange = Exchange(
        "mx.a.example", "", rcpt="550 {host} does not know {address}, says it to {client}"
    )

    replies = talk(exchange, ["MAIL FROM:<>", "RCPT TO:<zoë@a.example>"])

    assert replies[2] == "550 mx.a.example does not know zoë@a.example, says it to 127.0.0.1"


def test_greylisting_lets_in_who_comes_back_after_its_wait() -> None:
    exchange = Exchange("mx.a.example", "", greylist=60)
    ask = ["RSET", "MAIL FROM:<>", "RCPT TO:<ada@a.example>"]

    async def action(server: SmtpServer) -> list[str]:
        client = await connect(server, exchange)
        replies = [await client.read(), *await client.say(*ask), *await client.say(*ask)]
        await asyncio.sleep(61)  # skipped, as all waits of this module
        other = await connect(server, exchange)
        replies += [await other.read(), *await other.say(*ask)]
        await client.close()
        await other.close()
        return replies

    replies = play([exchange], action)

    assert [reply[:3] for reply in replies] == [
        "220",
        "250",
        "250",
        "450",
        "250",
        "250",
        "450",
        "220",
        "250",
        "250",
        "250",
    ]
    assert "60 seconds" in replies[3]


def test_delay_and_punishment_come_out_in_order() -> None:
    exchange = Exchange("mx.a.example", "", delay=0.01, slow_after=1, slow_by=0.02)

    async def action(server: SmtpServer) -> tuple[list[str], float]:
        client = await connect(server, exchange)
        await client.read()
        begun = asyncio.get_running_loop().time()
        replies = await client.say("MAIL FROM:<>", "RCPT TO:<x@a>", "RCPT TO:<ada@a>", "RSET")
        await client.close()
        return replies, asyncio.get_running_loop().time() - begun

    replies, seconds = play([exchange], action)

    assert [reply[:3] for reply in replies] == ["250", "550", "250", "250"]
    # A delay cannot be shorter than its timers, which are exact to a microsecond.
    assert seconds >= 0.0699


def test_server_counts_what_comes() -> None:
    async def action(server: SmtpServer) -> None:
        first, second = await connect(server, PLAIN), await connect(server, PLAIN)
        await first.read()
        await second.read()
        assert server.stats(PLAIN.host).open_now == 2
        await first.say(
            "MAIL FROM:<>",
            "RCPT TO:<Ada@plain.example>",
            "RCPT TO:<ada@plain.example>",
            "DATA",
            "QUIT",
        )
        await second.say("QUIT")
        await first.close()
        await second.close()
        stats = server.stats(PLAIN.host)
        assert (stats.sessions, stats.most_open, stats.quits, stats.datas) == (2, 2, 2, 1)
        assert stats.rcpts == {"ada@plain.example": 2}
        assert stats.commands["MAIL"] == 1

    play([PLAIN], action)


def test_exchanges_share_a_port_and_have_addresses_of_their_own() -> None:
    async def action(server: SmtpServer) -> list[str]:
        greetings = []
        for exchange in server.exchanges.values():
            client = await connect(server, exchange)
            greetings.append(await client.read())
            await client.close()
        return greetings

    given = Exchange("mx.given.example", "an address of its own choice", address="127.0.99.1")
    server = SmtpServer([PLAIN, given])

    assert server.addresses == {"mx.plain.example": "127.25.0.1", "mx.given.example": "127.0.99.1"}
    assert [g.split()[1] for g in play([PLAIN, given], action)] == [
        "mx.plain.example",
        "mx.given.example",
    ]


def test_stopped_server_ends_its_connections() -> None:
    async def main() -> str:
        server = await SmtpServer([PLAIN]).start()
        client = await connect(server, PLAIN)
        await client.read()
        await server.stop()
        rest = await client.read()
        await client.close()
        return rest

    assert asyncio.run(main()) == ""


def test_port_in_use_is_reported() -> None:
    with socket.socket() as sock:
        sock.bind(("127.25.0.1", 0))
        sock.listen()

        with pytest.raises(OSError, match="in use"):
            asyncio.run(SmtpServer([PLAIN], port=sock.getsockname()[1]).start())


# --- the table --------------------------------------------------------------------------------------

NOT_OF_A_SESSION = {
    Reason.SYNTAX_ERROR,
    Reason.SPAMTRAP,
    Reason.DISPOSABLE,
    Reason.ROLE,
    Reason.THROTTLED,
    Reason.RATE_LIMITED,
    Reason.CATCH_ALL,
}


def test_table_has_an_exchange_for_every_reason_of_a_session() -> None:
    expected = {reason for exchange in EXCHANGES for reason in exchange.expects.values()}

    assert expected == {None, *Reason} - NOT_OF_A_SESSION


def test_table_has_a_catch_all() -> None:
    assert any(exchange.mailboxes is None for exchange in EXCHANGES)


def test_table_has_a_fault_of_every_kind() -> None:
    kinds = {fault.does for exchange in EXCHANGES for fault in exchange.faults}

    assert kinds == {
        "silence",
        "drop",
        "reset",
        "say",
        "shut",
        "endless",
        "flood",
        "trickle",
        "lose",
    }


def test_table_breaks_off_at_every_phase() -> None:
    for does in ("silence", "shut", "drop"):
        places = {
            fault.at for exchange in EXCHANGES for fault in exchange.faults if fault.does == does
        }
        assert places >= {"connect", "EHLO", "MAIL", "RCPT"}


def test_table_names_each_exchange_once_and_says_why() -> None:
    assert len({exchange.host for exchange in EXCHANGES}) == len(EXCHANGES)
    assert all(exchange.why and exchange.expects for exchange in EXCHANGES)
