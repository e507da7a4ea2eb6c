"""`Recipients`: the addresses of one run, and what each answer leads to.

An address waits at the exchanges of its domain, one after the other, until it is settled. What it was answered may
have to wait: for the random address of its domain (`Probe`), as a refusal for the end of its session (`SmtpExchange`),
or, greylisted, for a second attempt. Everything happens on one event loop.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...checks.smtp.classify.classification import ABOUT_MAILBOX
from ...checks.smtp.classify.classifier import catch_all_of
from ...checks.smtp.protocol.steps import Recipient
from ...checks.smtp.replies import Reply
from ...model.evidence import Classification, DomainEvidence, MailboxEvidence
from ...model.words import Reason
from ..batch import Positions
from .evidence import (
    closed_evidence,
    is_same_refusal,
    random_address,
    same_for_anyone,
    with_catch_all,
)
from .exchange import SmtpExchange
from .queues import Asked, Block, Client, Probe, Question, Route
from .results import OneResult, ResultBuffer

if TYPE_CHECKING:
    from .pool import SmtpPool

FINAL = ABOUT_MAILBOX | {Reason.SYNTAX_ERROR}  # every other exchange would reply the same
FLUSH_ROWS = 5000  # rows that are yielded at once, before the time is up
LONGEST_RETRY = 900.0  # seconds; a longer wait of a greylisted address is left to another run
RETRY_MARGIN = 0.5  # seconds, added because servers measure the wait with their own clock
SHORTEST_WAIT = (
    0.001  # seconds; a loop may end a wait within its clock's resolution, before the time has come
)
SHOWN_SERVERS = 5  # in a warning


class Recipients:
    """The addresses of one run; `results` gets each once, and `change` is set when there is something to look at."""

    def __init__(
        self,
        pool: SmtpPool,
        results: ResultBuffer | OneResult,
        *,
        clients: Sequence[Client] | None = None,
        retry_greylisted: float = 0.0,
    ) -> None:
        self.pool, self.results = pool, results
        self.clients = clients  # by position; None: the run itself is the client
        self.retry_greylisted = (
            retry_greylisted  # seconds where the server names no time; 0: no second attempt
        )
        self.domains, self.local_parts = results.names, results.local_parts
        self.routes: dict[tuple[str, ...], Route] = {}
        self.exchanges: set[SmtpExchange] = set()
        self.probes: dict[
            tuple[SmtpExchange, int], Probe
        ] = {}  # by exchange and code of the domain
        self.retries: dict[float, list[Question]] = {}  # greylisted, by when they are asked again
        self.unsettled = 0
        self.held = 0  # of these, missing mailboxes that wait for another address of their server to be accepted
        self.refusing: Counter[str] = Counter()  # mailboxes by server that accepted none
        self.change = asyncio.Event()
        self.error: BaseException | None = None
        self.is_closed = False

    # --- what is asked -------------------------------------------------------------------------------

    def add(self, code: int, seen: DomainEvidence, positions: Positions) -> None:
        """Queue the addresses of a domain, or settle them if it has no exchange."""
        self.results.domains[code] = seen
        if not seen.exchanges:
            for position in positions.tolist():
                self.results.add(position, None)
            return
        self.unsettled += len(positions)
        route = self.route(seen)
        for client, own in self.by_client(positions):
            self.place(Block(self, client, route, code, own), route.after(None))

    def by_client(self, positions: Positions) -> Iterable[tuple[Client, Positions]]:
        """The addresses of each client."""
        if self.clients is None:
            return [(id(self), positions)]
        found: dict[Client, list[int]] = {}
        for position in positions.tolist():
            found.setdefault(self.clients[position] or id(self), []).append(position)
        return [(client, np.array(own, np.int64)) for client, own in found.items()]

    def route(self, seen: DomainEvidence) -> Route:
        """The exchanges of a domain, the same for every domain that has them."""
        key = tuple(f"{e.preference} {e.host}" for e in seen.exchanges)
        if key not in self.routes:
            ordered = sorted(seen.exchanges, key=lambda e: (e.preference, self.pool.rng.random()))
            exchanges = [
                self.pool.exchange(name, self) for name in dict.fromkeys(e.host for e in ordered)
            ]
            self.exchanges.update(exchanges)
            self.routes[key] = Route(tuple(exchanges), self.pool.settings.max_exchange_attempts)
        return self.routes[key]

    def place(self, waiting: Block | Asked, exchange: SmtpExchange | None) -> None:
        """Queue addresses at an exchange; settle them if none is left, with what they were answered before."""
        if self.is_closed:
            return
        if exchange is not None:
            exchange.add(waiting)
            self.pool.offer(exchange)
            return
        evidence = closed_evidence(waiting.route)
        if isinstance(waiting, Asked):
            self.settle(waiting, waiting.last or evidence)
            return
        for position in waiting.positions.tolist():
            self.settle_position(position, evidence)

    def first_question(self, block: Block, position: int) -> Asked:
        """An address as it is asked for the first time."""
        local = self.local_parts[
            position
        ].as_py()  # few at a time: faster than converting all of them
        recipient = Recipient(f"{local}@{self.domains[block.code]}")
        return Asked(self, block.client, block.route, block.code, position, recipient, block.began)

    def pass_on(self, asked: Asked, exchange: SmtpExchange, evidence: MailboxEvidence) -> bool:
        """Queue an address for the next exchange by preference, if there is one and time left."""
        following = asked.route.after(exchange)
        if following is None or self.is_late(asked):
            return False
        asked.last = evidence
        self.place(asked, following)
        return True

    def pass_on_block(self, block: Block, exchange: SmtpExchange) -> None:
        """Queue addresses for the exchange after a closed one, unless they have waited too long for that."""
        now = self.pool.clock()
        began = now - exchange.silent_for if block.began is None else block.began
        is_late = now - began >= self.pool.settings.deadline
        following = None if is_late else block.route.after(exchange)
        self.place(block._replace(began=began if exchange.silent_for else block.began), following)

    def pass_on_probe(self, probe: Probe, exchange: SmtpExchange) -> None:
        """Ask the exchange after a closed one about a domain, if an answer waits for that."""
        following = probe.pending[0][0].route.after(exchange) if probe.pending else None
        if following is None:
            self.give_up_probe(probe)
        else:
            probe.exchange = following
            self.queue_probe(probe)

    def is_late(self, asked: Asked) -> bool:
        """Whether the deadline of an address is over."""
        return (
            asked.began is not None
            and self.pool.clock() - asked.began >= self.pool.settings.deadline
        )

    # --- answers ---------------------------------------------------------------------------------------

    def on_answer(
        self, asked: Asked, exchange: SmtpExchange, evidence: MailboxEvidence, reply: Reply | None
    ) -> None:
        """Settle an address, or let it wait: for a probe, a second attempt or another exchange."""
        reason = evidence.reason
        if reason is Reason.GREYLISTED and self.ask_later(
            asked, evidence.classification.retry_after
        ):
            self.request_probe(self.probe_of(asked, exchange))
        elif reason is None or (
            reason is Reason.INCONCLUSIVE and reply is not None and reply.code >= 500
        ):
            self.await_probe(asked, exchange, evidence, reply)
        elif reason in FINAL or not self.pass_on(asked, exchange, evidence):
            self.settle(asked, evidence)

    def await_probe(
        self, asked: Asked, exchange: SmtpExchange, evidence: MailboxEvidence, reply: Reply | None
    ) -> None:
        """What this answer means depends on the reply to a random address of the domain."""
        probe = self.probe_of(asked, exchange)
        if probe.is_known:
            self.settle_probed(probe, asked, evidence, reply)
        else:
            probe.pending.append((asked, evidence, reply))
            self.request_probe(probe)

    def probe_of(self, asked: Asked, exchange: SmtpExchange) -> Probe:
        """The probe of a domain at an exchange; nothing is asked where the answer is known or not wanted."""
        key = (exchange, asked.code)
        if key not in self.probes:
            address = random_address(self.domains[asked.code], self.pool.rng)
            probe = self.probes[key] = Probe(
                self, asked.client, exchange, Recipient(address, is_probe=True)
            )
            probe.catch_all = None if exchange.operator is None else exchange.operator.catch_all
            probe.is_known = probe.catch_all is not None or not self.pool.settings.catch_all_probe
        return self.probes[key]

    def is_probed(self, asked: Asked, exchange: SmtpExchange) -> bool:
        """Whether no answer about an address can make a probe due."""
        probe = self.probe_of(asked, exchange)
        return probe.is_known or probe.is_requested

    def request_probe(self, probe: Probe) -> None:
        """Queue the probe of a domain, once."""
        if not (probe.is_known or probe.is_requested or self.is_closed):
            probe.is_requested = True
            self.queue_probe(probe)

    def queue_probe(self, probe: Probe) -> None:
        """Queue a probe at its exchange."""
        probe.exchange.add(probe)
        self.pool.offer(probe.exchange)

    def on_probe_answer(
        self, probe: Probe, classification: Classification, reply: Reply | None
    ) -> None:
        """Settle what waits for a probe, or ask once more when greylisting is over.

        The reply sets `catch_all`, and shows which refusals apply to every address.
        """
        if classification.reason is Reason.GREYLISTED and self.ask_later(
            probe, classification.retry_after
        ):
            return
        probe.catch_all = catch_all_of(classification)
        probe.refusal = reply if classification.reason is not None else None
        self.give_up_probe(probe)

    def give_up_probe(self, probe: Probe) -> None:
        """Settle what waits for a probe, with what is known of the domain."""
        probe.is_known = True
        pending, probe.pending = probe.pending, []
        for answer in pending:
            self.settle_probed(probe, *answer)

    def settle_probed(
        self, probe: Probe, asked: Asked, evidence: MailboxEvidence, reply: Reply | None
    ) -> None:
        """Settle an address whose domain is known."""
        evidence = with_catch_all(evidence, catch_all=probe.catch_all)
        if is_same_refusal(reply, asked.recipient.address, probe.refusal, probe.recipient.address):
            evidence = same_for_anyone(evidence)
        self.settle(asked, evidence)

    def ask_later(self, question: Question, hint: float | None) -> bool:
        """Schedule the second attempt of a greylisted address or probe; False if there is none in this run.

        `hint` is the server's wait. Those of one second are asked together.
        """
        wait = hint or self.retry_greylisted
        if (
            question.was_greylisted
            or self.is_closed
            or self.retry_greylisted <= 0
            or wait > LONGEST_RETRY
        ):
            return False
        question.was_greylisted = True
        if isinstance(question, Asked):
            question.began = None
        due = float(math.ceil(self.pool.clock() + wait + RETRY_MARGIN))
        self.retries.setdefault(due, []).append(question)
        return True

    def queue_retries(self) -> None:
        """Queue the greylisted addresses and probes whose time has come."""
        for due in [each for each in self.retries if each <= self.pool.clock()]:
            for question in self.retries.pop(due):
                if isinstance(question, Asked):
                    self.place(question, question.route.after(None))
                else:
                    self.queue_probe(question)

    # --- settling --------------------------------------------------------------------------------------

    def settle(self, asked: Asked, evidence: MailboxEvidence) -> None:
        """Settle one address."""
        if not self.is_closed:
            self.settle_position(asked.position, evidence)

    def settle_position(self, position: int, evidence: MailboxEvidence) -> None:
        """Settle the address at a position."""
        self.unsettled -= 1
        self.results.add(position, evidence)
        if self.unsettled <= self.held or len(self.results) >= FLUSH_ROWS:
            self.change.set()

    def on_held(self) -> None:
        """Count a missing mailbox that its exchange holds."""
        self.held += 1
        if self.unsettled <= self.held:
            self.change.set()

    def settle_held(self) -> None:
        """Settle what is held, if nothing else is left that could show whether the servers accept anybody."""
        if self.held and self.unsettled == self.held:
            for exchange in self.exchanges:
                if unknown := exchange.end_hold(self):
                    self.refusing[exchange.name] += unknown

    def notices(self) -> list[str]:
        """Warn of mail servers that accepted nobody: it cannot be told whether they refuse everybody."""
        shown = [f"{name} ({count:,})" for name, count in self.refusing.most_common(SHOWN_SERVERS)]
        if len(self.refusing) > len(shown):
            shown.append(f"{len(self.refusing) - len(shown):,} more")
        if not shown:
            return []
        return [
            "mail servers that accepted no address, not even postmaster, and refused all as unknown: "
            f"{', '.join(shown)}; most of these addresses are unknown, since such a server may refuse this machine"
        ]

    # --- running -----------------------------------------------------------------------------------------

    def is_done(self) -> bool:
        """Whether every address is settled, and every session over that no other run needs."""
        return not self.unsettled and all(
            session.is_needed() for each in self.exchanges for session in each.sessions
        )

    async def wait(self, seconds: float) -> None:
        """Queue what is due, and wait until something happens, at most `seconds`."""
        self.queue_retries()
        self.pool.start()
        due = min(self.retries, default=math.inf)
        try:
            async with asyncio.timeout(min(seconds, max(SHORTEST_WAIT, due - self.pool.clock()))):
                await self.change.wait()
        except TimeoutError:
            pass
        self.change.clear()
        if self.error is not None:
            raise self.error

    def waiting_for(self) -> tuple[float, str] | None:
        """What a run with no session under way waits for: seconds, and a message."""
        if not self.retries or any(each.sessions for each in self.exchanges):
            return None
        wait = max(0.0, min(self.retries) - self.pool.clock())
        count = sum(isinstance(each, Asked) for due in self.retries.values() for each in due)
        return wait, f"{count:,} greylisted, asked again in {wait:.0f} s"

    async def aclose(self) -> None:
        """Leave the exchanges, and end the sessions that no other run needs; each sends QUIT."""
        self.is_closed = True
        tasks = self.pool.leave(self)
        await asyncio.gather(*tasks, return_exceptions=True)
