"""What waits to be asked at one mail server: addresses and probes of many runs, the clients in turn.

Addresses wait as blocks of positions, as numpy arrays, and become objects (`Asked`) when they are drawn.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ...checks.smtp.protocol.steps import Recipient
from ...checks.smtp.replies import Reply
from ...model.evidence import MailboxEvidence
from ..batch import Positions

if TYPE_CHECKING:
    from .exchange import SmtpExchange
    from .recipients import Recipients

Client = Hashable  # for whom an address is asked: a client of a service, else the run itself


class Route(NamedTuple):
    """The exchanges of a domain by preference; equal ones in a random order, to spread the load (RFC 5321, 5.1)."""

    exchanges: tuple[SmtpExchange, ...]
    most_attempts: (
        int  # exchanges to try for one address; those without an address to contact do not count
    )

    def after(self, asked: SmtpExchange | None) -> SmtpExchange | None:
        """The first exchange after one that was asked, or of all, that is not closed; None if none is left."""
        start, tried = 0 if asked is None else self.exchanges.index(asked) + 1, 0
        for index, exchange in enumerate(self.exchanges):
            if tried >= self.most_attempts:
                return None
            if index >= start and exchange.closed is None:
                return exchange
            tried += not exchange.has_no_address
        return None


class Block(NamedTuple):
    """Addresses of one domain that were not asked yet."""

    run: Recipients
    client: Client
    route: Route
    code: int  # of the domain
    positions: Positions
    began: float | None = (
        None  # clock reading since which they wait for an answer, if an exchange gave none
    )


@dataclass(slots=True, eq=False)
class Asked:
    """An address from its first question on."""

    run: Recipients
    client: Client
    route: Route
    code: int  # of its domain
    position: int
    recipient: Recipient
    began: float | None = None  # clock reading when it was first asked
    drops: int = 0  # sessions that broke on it, or left its refusal in doubt
    last: MailboxEvidence | None = None  # from the exchange before this one
    was_greylisted: bool = False


@dataclass(slots=True, eq=False)
class Probe:
    """The random address of a domain, asked once and only when it matters; what it showed, and what waits for that."""

    run: Recipients
    client: Client  # of the first address that needs it
    exchange: SmtpExchange
    recipient: Recipient
    pending: list[tuple[Asked, MailboxEvidence, Reply | None]] = field(default_factory=list)
    is_known: bool = False
    catch_all: bool | None = None
    refusal: Reply | None = None  # the reply that refused it
    is_requested: bool = False
    losses: int = 0  # sessions that broke on it
    was_greylisted: bool = False


Question = Asked | Probe


@dataclass(slots=True)
class ClientQueue:
    """What waits for one client."""

    # Probes, and addresses that were drawn before.
    first: deque[Question] = field(default_factory=deque)
    blocks: deque[Block] = field(default_factory=deque)
    size: int = 0

    def draw(self, count: int) -> list[Question]:
        """Remove and return up to `count` questions."""
        drawn = [self.first.popleft() for _ in range(min(count, len(self.first)))]
        while len(drawn) < count and self.blocks:
            block, rest = self.blocks[0], count - len(drawn)
            drawn += [
                block.run.first_question(block, position)
                for position in block.positions[:rest].tolist()
            ]
            if len(block.positions) > rest:
                self.blocks[0] = block._replace(positions=block.positions[rest:])
            else:
                self.blocks.popleft()
        self.size -= len(drawn)
        return drawn


class TurnQueue:
    """What waits at one exchange."""

    def __init__(self) -> None:
        # None is empty; the next turn first.
        self.by_client: OrderedDict[Client, ClientQueue] = OrderedDict()
        self.size = 0

    def of(self, client: Client, more: int) -> ClientQueue:
        """The queue of a client, which gets so many questions more."""
        queue = self.by_client.setdefault(client, ClientQueue())
        queue.size += more
        self.size += more
        return queue

    def add(self, item: Block | Question) -> None:
        """Queue a block, or an address of another exchange; a probe comes before all addresses of its client."""
        if isinstance(item, Block):
            self.of(item.client, len(item.positions)).blocks.append(item)
        elif isinstance(item, Probe):
            self.of(item.client, 1).first.appendleft(item)
        else:
            self.of(item.client, 1).first.append(item)

    def put_back(self, questions: Iterable[Question]) -> None:
        """Queue what was drawn before, in its order, but not for runs that have ended."""
        for each in reversed(list(questions)):
            if not each.run.is_closed:
                self.of(each.client, 1).first.appendleft(each)

    def draw(self, count: int) -> list[Question]:
        """Remove and return up to `count` questions, one of each client in turn."""
        drawn: list[Question] = []
        while len(drawn) < count and self.by_client:
            client, queue = self.by_client.popitem(last=False)
            drawn += queue.draw(1 if self.by_client else count - len(drawn))
            if queue.size:
                self.by_client[client] = queue
        self.size -= len(drawn)
        return drawn

    def drain(self) -> Iterator[Block | Question]:
        """Remove and return everything."""
        queues, self.by_client, self.size = list(self.by_client.values()), OrderedDict(), 0
        for queue in queues:
            yield from queue.first
            yield from queue.blocks

    def remove(self, run: Recipients) -> None:
        """Remove what waits for a run."""
        for each in list(self.drain()):
            if each.run is not run:
                self.add(each)
