"""Mail servers without sockets: sessions step in virtual time, each reply comes when it is due."""

from __future__ import annotations

import asyncio
import ipaddress
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from mailverdict.checks.dns.answers import AnswerOutcome, DnsAnswer
from mailverdict.checks.lists.flags import load_lists
from mailverdict.checks.smtp.protocol.session import (
    LimitObserved,
    Read,
    RecipientAnswers,
    Send,
    Session,
    SessionEnd,
    TimedReplies,
    WindowRequest,
)
from mailverdict.checks.smtp.replies import Reply
from mailverdict.checks.smtp.transport.driver import SessionHandler
from mailverdict.local.batch import observe_batch
from mailverdict.local.smtp.pool import SmtpPool
from mailverdict.local.smtp.recipients import Recipients, ResultBuffer
from mailverdict.model.evidence import DnsOutcome, DomainEvidence, MailExchange
from mailverdict.model.settings import Lists, LocalSettings

LOOPBACK = int(ipaddress.IPv4Address("127.0.1.0"))  # address of the first server
DELAY = 0.025  # seconds from a command to its reply
GREETING, BUSY = (
    Reply(220, None, "mx.example"),
    Reply(421, "4.7.0", "mx.example too many connections"),
)
EHLO = Reply(250, None, "", ("mx.example", "PIPELINING"))
OK, UNKNOWN = Reply(250, "2.1.5", "Ok"), Reply(550, "5.1.1", "User unknown")


@dataclass
class Server:
    """A mail server: it knows ``user...`` and postmaster, and perhaps everybody, or from some time on nobody."""

    delay: float = DELAY
    punishes: bool = (
        False  # as a default Postfix: a second for each reply after 10 refusals, and at most 20
    )
    accepts_all: bool = False
    capacity: int = 99  # sessions at once at its IP address; others are turned away
    # Refused recipients in one session after which everybody is refused.
    denies_after: int = 1 << 31
    # Other replies, by how often it was asked.
    script: Callable[[str, int], Reply | None] = lambda address, times: None
    asked: list[str] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)  # by session

    def knows(self, address: str) -> bool:
        """Whether an address is accepted."""
        return self.accepts_all or address.startswith(("user", "postmaster"))


@dataclass
class ScriptedWorld:
    """Servers by IP address; a domain ``name.example`` has the server ``mx.name.example``, unless `exchanges` says else."""

    servers: dict[str, Server]
    exchanges: dict[str, Sequence[tuple[int, str]]] = field(default_factory=dict)
    machines: int = 0  # IP addresses that the servers share; 0: each has its own
    notices: list[str] = field(default_factory=list)  # of the last run
    now_at: Counter[str] = field(default_factory=Counter)  # sessions under way by IP address
    most_at: Counter[str] = field(default_factory=Counter)  # sessions at once by IP address
    most: int = 0  # sessions at once

    async def addresses(self, host: str) -> DnsAnswer:
        """As the resolver."""
        number = list(self.servers).index(host) % (self.machines or len(self.servers))
        return DnsAnswer(AnswerOutcome.DATA, texts=(str(ipaddress.IPv4Address(LOOPBACK + number)),))

    def pool(self, **settings: Any) -> SmtpPool:
        """A pool that asks these servers."""
        config = LocalSettings(allow_networks=("127.0.0.0/8",), **settings)
        return SmtpPool(config, self, helo_name="c.example", rng=random.Random(1), drive=self.drive)  # type: ignore[arg-type]

    async def drive(
        self, session: Session, addresses: Sequence[str], handler: SessionHandler, **how: Any
    ) -> SessionEnd:
        """As `drive_session`."""
        (address,) = addresses
        server = list(self.servers.values())[int(ipaddress.IPv4Address(address)) - LOOPBACK]
        self.now_at[address] += 1
        self.most_at[address] = max(self.most_at[address], self.now_at[address])
        self.most = max(self.most, sum(self.now_at.values()))
        try:
            is_full = self.now_at[address] > server.capacity
            return await ScriptedSession(server, asyncio.get_running_loop()).run(
                session, handler, BUSY if is_full else GREETING
            )
        finally:
            self.now_at[address] -= 1

    async def verify(
        self, pool: SmtpPool, emails: Sequence[str], client: str | None = None, **how: Any
    ) -> dict[str, Any]:
        """The evidence of each address."""
        batch = observe_batch(pa.array(emails, pa.string()), load_lists(Lists()))
        results = ResultBuffer(batch)
        run = Recipients(pool, results, clients=client and [client] * len(emails), **how)
        try:
            codes = results.codes
            for code, domain in enumerate(batch.domain_names()):
                hosts = self.exchanges.get(domain, [(10, f"mx.{domain}")])
                seen = DomainEvidence(
                    domain, DnsOutcome.MX, tuple(MailExchange(*each) for each in hosts)
                )
                run.add(code, seen, np.flatnonzero(codes == code))
            while not run.is_done():
                await run.wait(0.2)
                run.settle_held()
            self.notices = run.notices()
        finally:
            await run.aclose()
        assert len(results) == len(emails)
        pairs = zip(results.positions, results.indices, strict=True)
        return {emails[position]: results.evidence[index].mailbox for position, index in pairs}


class ScriptedSession:
    """One session."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server, self.loop = server, loop
        self.replies: list[tuple[float, Reply]] = []
        self.due = self.since = loop.time()
        self.refused = 0

    def say(self, reply: Reply) -> None:
        """Queue a reply as the server would send it."""
        is_late = self.server.punishes and self.refused >= 10
        assert not (self.server.punishes and self.refused >= 20)
        self.due = max(self.due, self.loop.time() + self.server.delay) + 1.0 * is_late
        self.replies.append((self.due, reply))

    def answer(self, line: str) -> None:
        """Queue the reply to a command."""
        if line.startswith("EHLO"):
            self.say(EHLO)
        elif line.startswith("RCPT"):
            address = line.partition("<")[2].partition(">")[0]
            self.server.asked.append(address)
            if (reply := self.server.script(address, self.server.asked.count(address))) is not None:
                self.say(reply)
            elif self.server.knows(address) and self.refused < self.server.denies_after:
                self.say(OK)
            else:
                self.say(UNKNOWN)
                self.refused += 1
        else:
            self.say(Reply(221 if line == "QUIT" else 250, None, "Ok"))

    async def run(self, session: Session, handler: SessionHandler, greeting: Reply) -> SessionEnd:
        """Step a session to its end."""
        steps, result, has_answer = session.dialogue(), None, False
        self.say(greeting)
        try:
            while True:
                step, result = steps.send(result), None  # type: ignore[arg-type]
                if isinstance(step, Send):
                    self.since = self.loop.time()
                    for line in step.data.decode().split("\r\n")[:-1]:
                        self.answer(line)
                elif isinstance(step, Read):
                    result = await self.read(step)  # type: ignore[assignment]
                elif isinstance(step, WindowRequest):
                    result = handler.next_window(step)  # type: ignore[assignment]
                elif isinstance(step, RecipientAnswers):
                    handler.on_reply(step)
                    if not has_answer:
                        has_answer = True
                        handler.on_first_reply()
                elif isinstance(step, LimitObserved):
                    handler.on_limit(step)
        except StopIteration as stop:
            self.server.refusals.append(self.refused)
            return stop.value  # type: ignore[no-any-return]

    async def read(self, step: Read) -> TimedReplies:
        """The replies that come together."""
        await asyncio.sleep(max(0.0, self.replies[0][0] - self.loop.time()))
        now, found = self.loop.time(), []
        while self.replies and self.replies[0][0] <= now and len(found) < step.most:
            found.append(self.replies.pop(0)[1])
        seconds, self.since = now - self.since, now
        return TimedReplies(found or [self.replies.pop(0)[1]], seconds)
