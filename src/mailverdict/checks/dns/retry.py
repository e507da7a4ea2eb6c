"""One question, asked of resolver after resolver until one answers or the attempts are used up."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...errors import SettingsError
from ...model.settings import LocalSettings, parse_resolver
from .answers import Answer, AnswerOutcome
from .sockets import Links, Server
from .wire import EDNS_REFUSALS, Question, parse_answer, rcode_of

__all__ = ["Asker", "system_servers"]


def system_servers(path: str = "/etc/resolv.conf") -> tuple[Server, ...]:
    """Give the resolvers that this system is set up to ask.

    Parameters
    ----------
    path : str
        The file that says so; Windows does not read it and asks its registry.

    Raises
    ------
    SettingsError
        If it has none.
    """
    import dns.resolver  # noqa: PLC0415 - not needed where a resolver is given

    try:
        found = dns.resolver.Resolver(path)
    except dns.resolver.NoResolverConfiguration as exc:
        raise SettingsError("this system has no DNS resolver set up: give one, as resolver='192.0.2.53'") from exc
    return tuple(Server(str(address), found.port) for address in found.nameservers)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one attempt at one server gave nothing.

    Attributes
    ----------
    server : Server
        Who was asked.
    what : str
        What happened, in words; empty for silence.
    is_final : bool
        Whether this server would only say the same again.
    """

    server: Server
    what: str = ""
    is_final: bool = False


class Asker:
    """Asks the configured resolvers; the sockets belong to the running event loop.

    Parameters
    ----------
    settings : LocalSettings
        `resolver`, `dns_concurrency`, `dns_timeout` and `dns_attempts` are used.
    randomness : random.Random
        Source of the message ids.
    find_servers : callable
        Gives the resolvers of the system, for where none is set.
    """

    def __init__(
        self, settings: LocalSettings, randomness: random.Random, find_servers: Callable[[], tuple[Server, ...]]
    ) -> None:
        self._settings = settings
        self._randomness = randomness
        self._find_servers = find_servers
        self._servers: tuple[Server, ...] = ()
        self._preferred = 0  # who answered last is asked first, so that a dead resolver costs one time-out
        self._links: Links | None = None

    async def ask(self, question: Question) -> Answer:
        """Give the answer; undetermined, with what happened, if there is none.

        Raises
        ------
        SettingsError
            If no resolver is set, and the system has none.
        """
        links = self._open_links()
        servers = deque(self._servers[self._preferred :] + self._servers[: self._preferred])
        failures: list[Failure] = []
        async with links.room:
            while servers and len(failures) < self._settings.dns_attempts:
                server = servers.popleft()
                got = await ask_once(links, server, question)
                if isinstance(got, Answer):
                    self._preferred = self._servers.index(server)
                    links.widen()
                    return got
                failures.append(got)
                if not got.is_final:
                    servers.append(server)
        return Answer(AnswerOutcome.UNDETERMINED, message=describe_failures(failures, self._settings.dns_timeout))

    async def aclose(self) -> None:
        """Close the sockets of this loop; asking again opens new ones."""
        links, self._links = self._links, None
        if links is not None and links.loop is asyncio.get_running_loop():
            await links.aclose()

    def _open_links(self) -> Links:
        """Give the sockets of the running loop; those of an earlier loop ended with it."""
        if self._links is None or self._links.loop is not asyncio.get_running_loop():
            self._servers = self._servers or self._configured_servers()
            self._links = Links(
                timeout=self._settings.dns_timeout,
                concurrency=self._settings.dns_concurrency,
                randomness=self._randomness,
            )
        return self._links

    def _configured_servers(self) -> tuple[Server, ...]:
        given = self._settings.resolver
        return self._find_servers() if given is None else (Server(*parse_resolver(given)),)


async def ask_once(links: Links, server: Server, question: Question) -> Answer | Failure:
    """Ask one server once; without EDNS0 if that is what it minds."""
    try:
        packet = await links.ask(server, question)
        if rcode_of(packet) in EDNS_REFUSALS:
            packet = await links.ask(server, question, edns=False)
    except TimeoutError:
        return Failure(server)
    except OSError as exc:
        return Failure(server, f"{server.address} cannot be asked ({exc.strerror or exc})", is_final=True)
    answer = parse_answer(packet, question)
    if answer.outcome is AnswerOutcome.UNDETERMINED:
        return Failure(server, f"{answer.message} from {server.address}", is_final=rcode_of(packet) != 0)
    return answer


def describe_failures(failures: Sequence[Failure], timeout: float) -> str:
    """Say in one line what the attempts came to.

    >>> describe_failures([Failure(Server("192.0.2.1")), Failure(Server("192.0.2.2"), "SERVFAIL from 192.0.2.2")], 3.0)
    'no answer in 3.0 s from 192.0.2.1; SERVFAIL from 192.0.2.2'
    >>> describe_failures([Failure(Server("192.0.2.1"))] * 3, 3.0)
    'no answer in 3 tries of 3.0 s from 192.0.2.1'
    """
    if any(failure.what for failure in failures):
        told = [failure.what or f"no answer in {timeout} s from {failure.server.address}" for failure in failures]
        return "; ".join(dict.fromkeys(told))
    silent = " and ".join(dict.fromkeys(failure.server.address for failure in failures))
    tries = "1 try" if len(failures) == 1 else f"{len(failures)} tries"
    return f"no answer in {tries} of {timeout} s from {silent}"
