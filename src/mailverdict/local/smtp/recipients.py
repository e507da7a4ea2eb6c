"""`Recipients`: the addresses of one run, what each answer leads to, and the rows of results.

An address waits at the exchanges of its domain, one after the other, until it is settled. What it
was answered may have to wait: for the random address of its domain (`Probe`), as a refusal for the
end of its session (`SmtpExchange`), or, greylisted, for a second attempt. Everything happens on one
event loop.

    250 2.1.5 Ok           wait for the probe: is every address of the domain accepted?
    550 5.1.1 User unknown final, once the exchange says that it counts
    452 4.2.2 Mailbox full final
    451 4.7.1 Greylisted   asked again in this run, later
    550 Rejected           wait for the probe: if it gets the same words, they are about this client
    554, 451 4.3.0, lost   the next exchange, if there is one and time left

What was seen becomes `MailboxEvidence` here, by pure functions; `ResultBuffer` makes rows of all
equal evidence at once.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import string
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

import numpy as np
import pyarrow as pa

from ...checks.smtp.classify.classification import ABOUT_MAILBOX, OUT_OF_STEP
from ...checks.smtp.classify.classifier import catch_all_of
from ...checks.smtp.protocol.commands import Recipient
from ...checks.smtp.protocol.session import SessionEnd
from ...checks.smtp.replies import Reply
from ...checks.syntax.column import normal_forms
from ...model.evidence import (
    Classification,
    DomainEvidence,
    Evidence,
    Flags,
    MailboxEvidence,
    SyntaxEvidence,
)
from ...model.words import Reason, ValidationType
from ..batch import FLAGS, ObservedBatch, Positions
from .exchange import (
    NONE_ACCEPTED,
    NOT_CONFIRMED,
    REFUSES_ACCEPTED,
    Asked,
    Block,
    Client,
    Missing,
    Probe,
    Question,
    Route,
    SmtpExchange,
)
from .pool import SmtpPool

FINAL = ABOUT_MAILBOX | {Reason.SYNTAX_ERROR}  # every other exchange would reply the same
FLUSH_ROWS = 5000  # rows that are yielded at once, before the time is up
LONGEST_RETRY = 900.0  # seconds; a longer wait of a greylisted address is left to another run
RETRY_MARGIN = 0.5  # seconds, added because servers measure the wait with their own clock
# Seconds; a loop may end a wait within its clock's resolution, before the time has come.
SHORTEST_WAIT = 0.001
SHOWN_SERVERS = 5  # in a warning
SHOWN = 400  # characters of a reply that are kept
LETTERS = string.ascii_lowercase + string.digits
OK = SyntaxEvidence(ok=True)
UNCLEAR = Classification(Reason.INCONCLUSIVE, "refused_in_passing")
# Why the refusal shows nothing about the mailbox, for the message of the row.
NOT_BELIEVED = {
    REFUSES_ACCEPTED.rule: "the server then refused an address that it had accepted before",
    NOT_CONFIRMED.rule: "an address that the server had accepted before could not be asked again",
    NONE_ACCEPTED.rule: "the server accepted no address, not even postmaster",
    OUT_OF_STEP.rule: "the server sent more replies than there were commands",
}
REPORT_ORDER: dict[Reason | None, int] = {Reason.PORT_CLOSED: 1, Reason.NO_MX_RECORD: 2}


class Recipients:
    """The addresses of one run.

    `results` gets each once, and `change` is set when there is something to look at.

    The methods that `exchange.SmtpRun` names are called by the exchanges.
    """

    def __init__(
        self,
        pool: SmtpPool,
        results: ResultBuffer | OneResult,
        *,
        clients: Sequence[Client] | None = None,
        retry_greylisted: float = 0.0,
    ) -> None:
        self.pool = pool
        self.results = results
        self.clients = clients  # by position; None: the run itself is the client
        # Seconds where the server names no time; 0: no second attempt.
        self.retry_greylisted = retry_greylisted
        self.domains = results.names
        self.local_parts = results.local_parts
        self.routes: dict[tuple[str, ...], Route] = {}
        self.exchanges: set[SmtpExchange] = set()
        # By exchange and code of the domain.
        self.probes: dict[tuple[SmtpExchange, int], Probe] = {}
        self.retries: dict[float, list[Question]] = {}  # greylisted, by when they are asked again
        self.unsettled = 0
        # Of these, missing mailboxes that wait for another address of their server to be accepted.
        self.held = 0
        self.refusing: Counter[str] = Counter()  # mailboxes by server that accepted none
        self.change = asyncio.Event()
        self.error: BaseException | None = None
        self.is_closed = False

    # --- what is asked -----------------------------------------------------------------------

    def add(self, code: int, seen: DomainEvidence, positions: Positions) -> None:
        """Queue the addresses of a domain, or settle them if it has no exchange."""
        self.results.domains[code] = seen
        if not seen.exchanges:
            for position in positions.tolist():
                self.results.add(position, None)
            return
        self.unsettled += len(positions)
        route = self.route(seen)
        first = route.after(None)
        for client, rows in self.by_client(positions):
            self.place(Block(self, client, route, code, rows), first)

    def by_client(self, positions: Positions) -> Iterable[tuple[Client, Positions]]:
        """The addresses of each client."""
        if self.clients is None:
            return [(id(self), positions)]
        by_client: dict[Client, list[int]] = {}
        for position in positions.tolist():
            client = self.clients[position] or id(self)
            by_client.setdefault(client, []).append(position)
        return [(client, np.array(rows, np.int64)) for client, rows in by_client.items()]

    def route(self, seen: DomainEvidence) -> Route:
        """The exchanges of a domain, the same for every domain that has them."""
        key = tuple(f"{exchange.preference} {exchange.host}" for exchange in seen.exchanges)
        if key not in self.routes:
            rng = self.pool.rng
            ordered = sorted(seen.exchanges, key=lambda mx: (mx.preference, rng.random()))
            hosts = [mx.host for mx in ordered]
            distinct = dict.fromkeys(hosts)  # a host given twice is one
            exchanges = tuple(self.pool.exchange(host, self) for host in distinct)
            self.exchanges.update(exchanges)
            self.routes[key] = Route(exchanges, self.pool.settings.max_exchange_attempts)
        return self.routes[key]

    def place(self, waiting: Block | Asked, exchange: SmtpExchange | None) -> None:
        """Queue addresses at an exchange.

        Settle them if none is left, with what they were answered before.
        """
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
        # Few at a time: faster than converting all of them.
        local = self.local_parts[position].as_py()
        return Asked(
            run=self,
            client=block.client,
            route=block.route,
            code=block.code,
            position=position,
            recipient=Recipient(f"{local}@{self.domains[block.code]}"),
            began=block.began,
        )

    # --- from exchange to exchange -----------------------------------------------------------

    def pass_on(self, asked: Asked, exchange: SmtpExchange, evidence: MailboxEvidence) -> None:
        """Queue an address for the next exchange, or settle it if there is none or no time left."""
        following = asked.route.after(exchange)
        is_late = asked.is_late(self.pool.clock(), self.pool.settings.deadline)
        if following is None or is_late:
            self.settle(asked, evidence)
        else:
            asked.last = evidence
            self.place(asked, following)

    def on_broken_session(self, asked: Asked, exchange: SmtpExchange, end: SessionEnd) -> None:
        self.pass_on(asked, exchange, end_evidence(exchange.name, end))

    def on_closed(self, waiting: Block | Question, exchange: SmtpExchange) -> None:
        if isinstance(waiting, Block):
            self.pass_on_block(waiting, exchange)
        elif isinstance(waiting, Probe):
            self.pass_on_probe(waiting, exchange)
        else:
            self.place(waiting, waiting.route.after(exchange))

    def pass_on_block(self, block: Block, exchange: SmtpExchange) -> None:
        """Queue addresses for the exchange after a closed one, unless they waited too long."""
        now = self.pool.clock()
        began = block.began
        if began is None:
            began = now - exchange.silent_for
        following = block.route.after(exchange)
        if now - began >= self.pool.settings.deadline:
            following = None
        if exchange.silent_for:
            block = block._replace(began=began)
        self.place(block, following)

    def pass_on_probe(self, probe: Probe, exchange: SmtpExchange) -> None:
        """Ask the exchange after a closed one about a domain, if an answer waits for that."""
        following = None
        if probe.pending:
            asked, _, _ = probe.pending[0]
            following = asked.route.after(exchange)
        if following is None:
            self.give_up_probe(probe)
        else:
            probe.exchange = following
            self.queue_probe(probe)

    # --- answers -----------------------------------------------------------------------------

    def on_answer(
        self,
        asked: Asked,
        exchange: SmtpExchange,
        classification: Classification,
        reply: Reply | None,
    ) -> None:
        """Settle an address, or let it wait: for a probe, a second attempt or another exchange."""
        evidence = reply_evidence(exchange.name, classification, reply)
        reason = classification.reason
        if reason is Reason.GREYLISTED and self.ask_later(asked, classification.retry_after):
            self.request_probe(self.probe_of(asked, exchange))
            return
        is_refused = reply is not None and reply.code >= 500
        if reason is None or (reason is Reason.INCONCLUSIVE and is_refused):
            self.await_probe(asked, exchange, evidence, reply)
        elif reason in FINAL:
            self.settle(asked, evidence)
        else:
            self.pass_on(asked, exchange, evidence)

    def on_missing(
        self, missing: Missing, exchange: SmtpExchange, doubt: Classification | None
    ) -> None:
        evidence = reply_evidence(exchange.name, missing.classification, missing.reply)
        if doubt is not None:
            evidence = without_result(evidence, doubt)
        self.settle(missing.asked, evidence)

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
        """The probe of a domain at an exchange.

        Nothing is asked where the answer is known or not wanted.
        """
        key = (exchange, asked.code)
        if key not in self.probes:
            address = random_address(self.domains[asked.code], self.pool.rng)
            probe = Probe(self, asked.client, exchange, Recipient(address, is_probe=True))
            if exchange.operator is not None:
                probe.catch_all = exchange.operator.catch_all
            is_wanted = self.pool.settings.catch_all_probe
            probe.is_known = probe.catch_all is not None or not is_wanted
            self.probes[key] = probe
        return self.probes[key]

    def is_probed(self, asked: Asked, exchange: SmtpExchange) -> bool:
        probe = self.probe_of(asked, exchange)
        return probe.is_known or probe.is_requested

    def request_probe(self, probe: Probe) -> None:
        """Queue the probe of a domain, once."""
        if not (probe.is_known or probe.is_requested or self.is_closed):
            probe.is_requested = True
            self.queue_probe(probe)

    def queue_probe(self, probe: Probe) -> None:
        probe.exchange.add(probe)
        self.pool.offer(probe.exchange)

    def on_probe_answer(
        self, probe: Probe, classification: Classification, reply: Reply | None
    ) -> None:
        """Settle what waits for a probe, or ask once more when greylisting is over.

        The reply sets `catch_all`, and shows which refusals apply to every address.
        """
        is_greylisted = classification.reason is Reason.GREYLISTED
        if is_greylisted and self.ask_later(probe, classification.retry_after):
            return
        probe.catch_all = catch_all_of(classification)
        probe.refusal = None
        if classification.reason is not None:
            probe.refusal = reply
        self.give_up_probe(probe)

    def give_up_probe(self, probe: Probe) -> None:
        """Settle what waits for a probe, with what is known of the domain."""
        probe.is_known = True
        pending = probe.pending
        probe.pending = []
        for asked, evidence, reply in pending:
            self.settle_probed(probe, asked, evidence, reply)

    def settle_probed(
        self, probe: Probe, asked: Asked, evidence: MailboxEvidence, reply: Reply | None
    ) -> None:
        """Settle an address whose domain is known."""
        evidence = with_catch_all(evidence, catch_all=probe.catch_all)
        if is_same_refusal(reply, asked.recipient.address, probe.refusal, probe.recipient.address):
            evidence = same_for_anyone(evidence)
        self.settle(asked, evidence)

    def ask_later(self, question: Question, hint: float | None) -> bool:
        """Schedule the second attempt of a greylisted address or probe.

        False if there is none in this run.

        `hint` is the server's wait. Those of one second are asked together.
        """
        if self.is_closed or self.retry_greylisted <= 0 or question.was_greylisted:
            return False
        wait = hint or self.retry_greylisted
        if wait > LONGEST_RETRY:
            return False
        question.was_greylisted = True
        if isinstance(question, Asked):
            question.began = None
        due = float(math.ceil(self.pool.clock() + wait + RETRY_MARGIN))
        self.retries.setdefault(due, []).append(question)
        return True

    def queue_retries(self) -> None:
        """Queue the greylisted addresses and probes whose time has come."""
        now = self.pool.clock()
        over = [due for due in self.retries if due <= now]
        for due in over:
            for question in self.retries.pop(due):
                if isinstance(question, Asked):
                    self.place(question, question.route.after(None))
                else:
                    self.queue_probe(question)

    # --- settling ----------------------------------------------------------------------------

    def settle(self, asked: Asked, evidence: MailboxEvidence) -> None:
        """Settle one address."""
        if not self.is_closed:
            self.settle_position(asked.position, evidence)

    def settle_position(self, position: int, evidence: MailboxEvidence) -> None:
        self.unsettled -= 1
        self.results.add(position, evidence)
        if self.unsettled <= self.held or len(self.results) >= FLUSH_ROWS:
            self.change.set()

    def on_held(self, change: int) -> None:
        self.held += change
        if change > 0 and self.unsettled <= self.held:
            self.change.set()

    def settle_held(self) -> None:
        """Settle what is held, if nothing is left that could show whether anybody is accepted."""
        if not self.held or self.unsettled != self.held:
            return
        for exchange in self.exchanges:
            unknown = exchange.end_hold(self)
            if unknown:
                self.refusing[exchange.name] += unknown

    def notices(self) -> list[str]:
        """Warn of mail servers that accepted nobody; they may refuse everybody."""
        if not self.refusing:
            return []
        servers = self.refusing.most_common(SHOWN_SERVERS)
        shown = [f"{name} ({count:,})" for name, count in servers]
        if len(self.refusing) > len(shown):
            shown.append(f"{len(self.refusing) - len(shown):,} more")
        return [
            "mail servers that accepted no address, not even postmaster, and refused all as "
            f"unknown: {', '.join(shown)}; most of these addresses are unknown, since such a "
            "server may refuse this machine"
        ]

    # --- running -----------------------------------------------------------------------------

    def is_done(self) -> bool:
        """Whether every address is settled, and every session over that no other run needs."""
        if self.unsettled:
            return False
        sessions = [session for exchange in self.exchanges for session in exchange.sessions]
        return all(session.is_needed() for session in sessions)

    def wake(self, error: BaseException | None = None) -> None:
        if error is not None:
            self.error = error
        self.change.set()

    async def wait(self, seconds: float) -> None:
        """Queue what is due, and wait until something happens, at most `seconds`."""
        self.queue_retries()
        self.pool.start()
        until_retry = min(self.retries, default=math.inf) - self.pool.clock()
        longest = min(seconds, max(SHORTEST_WAIT, until_retry))
        try:
            async with asyncio.timeout(longest):
                await self.change.wait()
        except TimeoutError:
            pass
        self.change.clear()
        if self.error is not None:
            raise self.error

    def waiting_for(self) -> tuple[float, str] | None:
        """What a run with no session under way waits for: seconds, and a message."""
        if not self.retries or any(exchange.sessions for exchange in self.exchanges):
            return None
        wait = max(0.0, min(self.retries) - self.pool.clock())
        count = 0
        for questions in self.retries.values():
            count += sum(isinstance(question, Asked) for question in questions)
        return wait, f"{count:,} greylisted, asked again in {wait:.0f} s"

    async def aclose(self) -> None:
        """Leave the exchanges, and end the sessions that no other run needs; each sends QUIT."""
        self.is_closed = True
        tasks = self.pool.leave(self, self.exchanges)
        await asyncio.gather(*tasks, return_exceptions=True)


# --- what a reply, the end of a session or a closed exchange shows: pure ---------------------


@lru_cache(maxsize=4096)
def reply_evidence(
    host: str, classification: Classification, reply: Reply | None
) -> MailboxEvidence:
    """What a reply to RCPT shows; there is none where the recipient could not be asked.

    Cached, since a server repeats its replies: making the value takes five times as long as finding
    it.
    """
    reason = classification.reason
    catch_all = None
    if reason is Reason.MAILBOX_NOT_FOUND:  # shows by itself that not every address is accepted
        catch_all = catch_all_of(classification)
    if reply is None:
        accepted = None
        text = classification.rule.replace("_", " ")
    else:
        accepted = reason is None
        text = str(reply)[:SHOWN]
    return MailboxEvidence(
        classification,
        host=host,
        port_open=True,
        connected=True,
        rcpt_accepted=accepted,
        catch_all=catch_all,
        protected=reason is Reason.PROTECTED,
        reply=text,
    )


def end_evidence(host: str, end: SessionEnd) -> MailboxEvidence:
    """What the end of a session shows about the address being asked.

    Never that the mailbox does not exist.
    """
    classification = end.classification
    assert classification is not None
    if classification.reason in ABOUT_MAILBOX:
        classification = UNCLEAR
    is_open = end.phase != "connect"
    is_connected = None
    if is_open:
        is_connected = end.reached in ("ehlo", "mail")
    is_protected = None
    if classification.reason is Reason.PROTECTED:
        is_protected = True
    return MailboxEvidence(
        classification,
        host=host,
        port_open=is_open,
        connected=is_connected,
        protected=is_protected,
        reply=end.detail[:SHOWN],
    )


def closed_evidence(route: Route) -> MailboxEvidence:
    """What the closed exchanges of a domain show about its addresses.

    It is the evidence of the first one that was reached, else of the first.
    That a domain takes no mail at all (RFC 7504) is established only if every exchange replies so.
    """
    shown = []
    for exchange in route.exchanges:
        if exchange.closed is not None:
            evidence = end_evidence(exchange.name, exchange.closed)
            shown.append(replace(evidence, inferred=exchange.is_inferred))
    return min(shown, key=lambda evidence: REPORT_ORDER.get(evidence.reason, 0))


@lru_cache(maxsize=4096)
def with_catch_all(evidence: MailboxEvidence, *, catch_all: bool | None) -> MailboxEvidence:
    """The evidence with what is known of the domain.

    Cached, since most addresses are accepted in the same words.
    """
    return replace(evidence, catch_all=catch_all)


def without_result(evidence: MailboxEvidence, classification: Classification) -> MailboxEvidence:
    """The evidence of a refusal that shows nothing about the mailbox."""
    reply = f"{evidence.reply} ({NOT_BELIEVED[classification.rule]})"
    return replace(
        evidence, classification=classification, rcpt_accepted=None, catch_all=None, reply=reply
    )


def same_for_anyone(evidence: MailboxEvidence) -> MailboxEvidence:
    """The evidence of a refusal that every address of the domain gets."""
    refusal = evidence.classification
    rule = f"{refusal.rule}+same_for_anyone"
    common = replace(refusal, reason=Reason.SENDER_BLOCKED, rule=rule)
    return replace(evidence, classification=common)


def is_same_refusal(reply: Reply | None, address: str, other: Reply | None, probe: str) -> bool:
    """Whether a refusal has the same words as that of a random address: it is about the client."""
    if reply is None or other is None or reply.is_positive:
        return False
    if reply.code != other.code or reply.enhanced_code != other.enhanced_code:
        return False
    return without_address(reply.text, address) == without_address(other.text, probe)


def without_address(text: str, address: str) -> str:
    """The words of a reply without the address, its parts and what changes with every reply."""
    local = address.rpartition("@")[0]
    plain = text.lower().replace(address.lower(), "").replace(local.lower(), "")
    return re.sub(r"[0-9a-f-]{6,}|\d+|\s+", " ", plain).strip()


def random_address(domain: str, rng: random.Random) -> str:
    """An address that does not exist: its local part is long and random.

    >>> len(random_address("example.org", random.Random(1)))
    28
    """
    local = "".join(rng.choices(LETTERS, k=16))
    return f"{local}@{domain}"


# --- rows ------------------------------------------------------------------------------------


class OneResult:
    """Takes what is observed about the only address of a check; else see `ResultBuffer`."""

    def __init__(self, syntax: SyntaxEvidence) -> None:
        self.local_parts = pa.array([syntax.local])
        self.names = [syntax.ascii_domain]
        self.domains: dict[int, DomainEvidence] = {}
        self.evidence: MailboxEvidence | None = None

    def __len__(self) -> int:
        """Rows that can be made."""
        return 0

    def add(self, position: int, evidence: MailboxEvidence | None) -> None:
        """Keep the evidence."""
        self.evidence = evidence


class ResultBuffer:
    """Collects evidence by position, and makes rows of it.

    `domains` holds what the DNS showed, by code of the domain; `aliases` the positions of other
    spellings of the address at a position, which get the same answer.
    """

    def __init__(self, batch: ObservedBatch) -> None:
        self.batch = batch
        self.local_parts = batch.rows["local"]
        self.names = batch.domain_names()
        self.codes = batch.domain_codes()
        self.domain_codes = self.codes.data  # reads single values faster than numpy
        self.domains: dict[int, DomainEvidence] = {}
        self.aliases: dict[int, list[int]] = {}
        self.roles = batch.rows["role"].to_pylist()
        self.lists = [batch.domains[name].to_pylist() for name in FLAGS]
        self.clear()

    def clear(self) -> None:
        """Forget what rows were made of."""
        self.positions: list[int] = []  # of the rows that can be made
        self.indices: list[int] = []  # per row, that of its evidence
        self.index_of: dict[Hashable, int] = {}  # what is in `evidence` already
        self.evidence: list[Evidence] = []

    def __len__(self) -> int:
        """Rows that can be made."""
        return len(self.positions)

    def add(self, position: int, evidence: MailboxEvidence | None) -> None:
        """Add one address and its aliases; None: its domain has no exchange to ask."""
        self.add_one(position, evidence)
        if self.aliases:
            for alias in self.aliases.get(position, ()):
                self.add_one(alias, evidence)

    def add_one(self, position: int, seen: MailboxEvidence | None) -> None:
        """Add what was observed about one address; all that is equal is one evidence."""
        domain = self.domain_codes[position]
        role = self.roles[position]
        key = (domain, role, seen)
        index = self.index_of.get(key)
        if index is None:
            index = len(self.evidence)
            self.index_of[key] = index
            dns = self.domains[domain]
            flags = Flags(role, *(flag[domain] for flag in self.lists))
            self.evidence.append(Evidence(OK, dns, mailbox=seen, flags=flags))
        self.positions.append(position)
        self.indices.append(index)

    def take(self, now: datetime) -> tuple[Positions, pa.Table]:
        """Make rows of everything that has come since the last time.

        Their positions, and the table.
        """
        positions = np.array(self.positions, np.int64)
        codes = np.array(self.indices, np.int32)
        table = self.batch.result_rows(ValidationType.SMTP, positions, codes, self.evidence, now)
        self.clear()
        return positions, table


def find_aliases(
    batch: ObservedBatch, positions: Positions
) -> tuple[Positions, dict[int, list[int]]]:
    """Separate addresses from their other spellings, so that a mailbox is asked about once.

    ``ada@müller.example`` and ``ada@xn--mller-kva.example`` have one normal form. Returns the
    position of the first of each, and by it the positions of the others.
    """
    forms = normal_forms(batch.rows.take(positions)).dictionary_encode()
    if len(forms.dictionary) == len(positions):
        return positions, {}
    firsts: dict[int, int] = {}  # by the code of the normal form
    aliases: dict[int, list[int]] = {}
    codes = forms.indices.to_pylist()
    for code, position in zip(codes, positions.tolist(), strict=True):
        first = firsts.setdefault(code, position)
        if first != position:
            aliases.setdefault(first, []).append(position)
    return np.array(list(firsts.values()), np.int64), aliases
