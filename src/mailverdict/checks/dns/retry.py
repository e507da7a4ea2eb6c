"""Asking one question: server after server, until one answers or the attempts are used up."""

from __future__ import annotations

import asyncio
import contextlib
import random
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import SettingsError
from ...model.settings import LocalSettings, parse_resolver
from .answers import AnswerOutcome, DnsAnswer
from .sockets import Server, SocketPool
from .wire import EDNS_REFUSALS, Question, parse_answer, rcode_of

__all__ = ["DnsClient", "system_servers"]


def system_servers(path: str = "/etc/resolv.conf") -> tuple[Server, ...]:
    """Read the system's resolvers; Windows ignores `path` and reads its registry."""
    import dns.resolver  # noqa: PLC0415 - not needed where a resolver is given

    try:
        found = dns.resolver.Resolver(path)
    except dns.resolver.NoResolverConfiguration as exc:
        raise SettingsError("this system has no DNS resolver set up: give one, as resolver='192.0.2.53'") from exc
    return tuple(Server(str(address), found.port) for address in found.nameservers)


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt at one server without an answer."""

    server: Server
    message: str = ""  # empty for a time-out
    is_final: bool = False  # the server would only repeat its answer


class DnsClient:
    """Asks the configured servers. The sockets belong to the running event loop, and are opened when needed."""

    def __init__(
        self, settings: LocalSettings, randomness: random.Random, find_servers: Callable[[], tuple[Server, ...]]
    ) -> None:
        self._settings = settings
        self._randomness = randomness
        self._find_servers = find_servers
        self._servers: tuple[Server, ...] = ()
        self._preferred = 0  # the server that answered last comes first, so that a dead one costs one time-out
        # An event loop cannot use the sockets of another one, so each loop has a pool of its own.
        self._pools: dict[asyncio.AbstractEventLoop, SocketPool] = {}
        weakref.finalize(self, close_pools, self._pools).atexit = False

    async def ask(self, question: Question) -> DnsAnswer:
        """Return the answer; undetermined, with the failed attempts as message, if there is none.

        Raises SettingsError if no resolver is set and the system has none.
        """
        pool = self._open_pool()
        servers = deque(self._servers[self._preferred :] + self._servers[: self._preferred])
        failures: list[FailedAttempt] = []
        async with pool.slots:
            while servers and len(failures) < self._settings.dns_attempts:
                server = servers.popleft()
                result = await ask_server(pool, server, question)
                if isinstance(result, DnsAnswer):
                    self._preferred = self._servers.index(server)
                    pool.add_slot()
                    return result
                failures.append(result)
                if not result.is_final:
                    servers.append(server)
        return DnsAnswer(AnswerOutcome.UNDETERMINED, message=describe_failures(failures, self._settings.dns_timeout))

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


async def ask_server(pool: SocketPool, server: Server, question: Question) -> DnsAnswer | FailedAttempt:
    """Ask one server once; a second time without EDNS0 if it does not support that."""
    try:
        packet = await pool.ask(server, question)
        if rcode_of(packet) in EDNS_REFUSALS:
            packet = await pool.ask(server, question, edns=False)
    except TimeoutError:
        return FailedAttempt(server)
    except OSError as exc:
        return FailedAttempt(server, f"{server.address} cannot be asked ({exc.strerror or exc})", is_final=True)
    answer = parse_answer(packet, question)
    if answer.outcome is AnswerOutcome.UNDETERMINED:
        return FailedAttempt(server, f"{answer.message} from {server.address}", is_final=rcode_of(packet) != 0)
    return answer


def describe_failures(failures: Sequence[FailedAttempt], timeout: float) -> str:
    """Describe the failed attempts in one line.

    >>> first, second = Server("192.0.2.1"), Server("192.0.2.2")
    >>> describe_failures([FailedAttempt(first), FailedAttempt(second, "SERVFAIL from 192.0.2.2")], 3.0)
    'no answer in 3.0 s from 192.0.2.1; SERVFAIL from 192.0.2.2'
    >>> describe_failures([FailedAttempt(first)] * 3, 3.0)
    'no answer in 3 tries of 3.0 s from 192.0.2.1'
    """
    if any(failure.message for failure in failures):
        messages = [
            failure.message or f"no answer in {timeout} s from {failure.server.address}" for failure in failures
        ]
        return "; ".join(dict.fromkeys(messages))
    silent = " and ".join(dict.fromkeys(failure.server.address for failure in failures))
    tries = "1 try" if len(failures) == 1 else f"{len(failures)} tries"
    return f"no answer in {tries} of {timeout} s from {silent}"
