"""Asking one question until it has an answer or the attempts are used up; congestion.py decides when and whom."""

from __future__ import annotations

import asyncio
import contextlib
import random
import weakref
from collections.abc import Callable
from typing import NamedTuple

from ...errors import SettingsError
from ...model.settings import LocalSettings, parse_resolver
from .answers import AnswerOutcome, DnsAnswer
from .congestion import Query, Repeat
from .sockets import Server, SocketPool
from .wire import EDNS_REFUSALS, Question, is_refusal, is_truncated, parse_answer, rcode_of

__all__ = ["DnsClient", "Effort", "system_servers"]


def system_servers(path: str = "/etc/resolv.conf") -> tuple[Server, ...]:
    """Read the system's resolvers; Windows ignores `path` and reads its registry."""
    import dns.resolver  # noqa: PLC0415 - not needed where a resolver is given

    try:
        found = dns.resolver.Resolver(path)
    except dns.resolver.NoResolverConfiguration as exc:
        raise SettingsError("this system has no DNS resolver set up: give one, as resolver='192.0.2.53'") from exc
    return tuple(Server(str(address), found.port) for address in found.nameservers)


class Effort(NamedTuple):
    """How long a question is asked."""

    queries: int  # at most
    seconds: float  # from the first query, in which a late answer is awaited
    is_new: bool = True  # the question was not asked before

    @classmethod
    def full(cls, settings: LocalSettings) -> Effort:
        """What one question is worth."""
        return cls(settings.dns_attempts, settings.dns_attempts * settings.dns_timeout)

    @classmethod
    def brief(cls, settings: LocalSettings) -> Effort:
        """For many questions, of which the unanswered are asked again at the end."""
        return cls(settings.dns_attempts, 0.0)

    @classmethod
    def last(cls, settings: LocalSettings) -> Effort:
        """At the end. With one query in five lost, six queries in a row are lost once in 15,000 times."""
        return cls(settings.dns_attempts + 3, settings.dns_attempts * settings.dns_timeout, is_new=False)


class DnsClient:
    """Asks the configured servers. The sockets belong to the running event loop, and are opened when needed."""

    def __init__(
        self, settings: LocalSettings, randomness: random.Random, find_servers: Callable[[], tuple[Server, ...]]
    ) -> None:
        self._settings = settings
        self._randomness = randomness
        self._find_servers = find_servers
        self._servers: tuple[Server, ...] = ()
        self._full_effort = Effort.full(settings)
        # An event loop cannot use the sockets of another one, so each loop has a pool of its own.
        self._pools: dict[asyncio.AbstractEventLoop, SocketPool] = {}
        weakref.finalize(self, close_pools, self._pools).atexit = False

    async def ask(self, question: Question, effort: Effort | None = None) -> DnsAnswer:
        """Return the answer; undetermined, with what failed as message, if there is none.

        Raises SettingsError if no resolver is set and the system has none.
        """
        pool = self._open_pool()
        queries, seconds, is_new = effort or self._full_effort
        query = Query(question, is_new=is_new, attempts=queries, patience=seconds)
        failures: list[str] = []
        pool.add(query)
        while (result := await ask_once(pool, query)) is not None:
            if isinstance(result, DnsAnswer):
                return result
            message, repeat = result
            failures += [message] * bool(message)
            if not pool.repeat(query, repeat):
                break
        failures += describe_silence(pool, query)
        return DnsAnswer(AnswerOutcome.UNDETERMINED, message="; ".join(dict.fromkeys(failures)))

    async def aclose(self) -> None:
        """Close the sockets; asking again opens new ones."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        close_pools(self._pools)
        if pool is not None:
            await pool.aclose()

    def _open_pool(self) -> SocketPool:
        """Return the sockets of the running loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            self._servers = self._servers or self._configured_servers()
            for ended in [each for each in self._pools if each.is_closed()]:
                del self._pools[ended]  # its sockets were closed with it
            self._pools[loop] = SocketPool(
                self._servers,
                timeout=self._settings.dns_timeout,
                concurrency=self._settings.dns_concurrency,
                randomness=self._randomness,
            )
        return self._pools[loop]

    def _configured_servers(self) -> tuple[Server, ...]:
        given = self._settings.resolver
        return self._find_servers() if given is None else (Server(*parse_resolver(given)),)


def close_pools(pools: dict[asyncio.AbstractEventLoop, SocketPool]) -> None:
    """Close sockets from outside their event loops, after the backend was closed or garbage-collected."""
    while pools:
        loop, pool = pools.popitem()
        with contextlib.suppress(RuntimeError):  # the loop is closed, and its sockets with it
            loop.call_soon_threadsafe(pool.close)


async def ask_once(pool: SocketPool, query: Query) -> DnsAnswer | tuple[str, Repeat] | None:
    """Wait for an answer; if it has no result, return what is wrong with it and whom to ask next; None: no answer."""
    try:
        received = await pool.wait(query)
        if received is None:
            return None
        sent, packet = received
        if rcode_of(packet) in EDNS_REFUSALS and query.edns:
            query.edns = False
            query.attempts += 1
            return "", Repeat.AT_ONCE
        server = pool.servers[sent.server]
        if is_truncated(packet):
            packet = await pool.ask_tcp(server, query)
    except TimeoutError:
        return f"no answer over TCP from {pool.servers[query.last_server].address}", Repeat.LATER
    except OSError as exc:
        address = pool.servers[query.last_server].address
        return f"{address} cannot be asked ({exc.strerror or exc})", Repeat.ELSEWHERE
    answer = parse_answer(packet, query.question)
    if answer.outcome is not AnswerOutcome.UNDETERMINED:
        pool.scheduler.preferred = sent.server
        return answer
    is_final = rcode_of(packet) != 0 and not (is_refusal(packet) and pool.scheduler.is_refusal_for_load(sent))
    return f"{answer.message} from {server.address}", Repeat.ELSEWHERE if is_final else Repeat.LATER


def describe_silence(pool: SocketPool, query: Query) -> list[str]:
    """Which servers did not answer, in at most one line."""
    if not query.sent:
        addresses = " and ".join(server.address for server in pool.servers)
        return [f"not asked, since {addresses} had not answered any query for {pool.scheduler.silence:.0f} s"]
    silent = dict.fromkeys(pool.servers[sent.server].address for sent in query.transmissions if sent.is_lost)
    return [f"no answer in {query.patience:.3g} s from {' and '.join(silent)}"] if silent else []
