"""`RemoteBackend`: a verification service over HTTP, under its daily quota."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

from ..backend import Batch, Event, Job, Quota
from ..errors import ContractError, SettingsError
from ..model.settings import Duration, parse_duration
from ..model.table import SOURCE_REMOTE
from ..model.verification import Verification, parse_payload
from .bulk import Submission
from .client import Client, check_headers, parse_base_url
from .flow import Flow
from .polling import PollSchedule
from .quota import QUOTA_REQUEST, read_quota
from .steps import Request, success_of

if TYPE_CHECKING:
    from httpx import AsyncBaseTransport

__all__ = ["RemoteBackend"]

T = TypeVar("T")
MOST_PARALLEL = 100


def new_token() -> str:
    """A name for an attempt that no other has."""
    return uuid.uuid4().hex


class RemoteBackend:
    """Verify by asking a verification service.

    Every distinct address that is submitted costs one unit of the service's daily quota; polling
    and asking for the quota cost nothing. Works with services of either revision of the contract.

    Parameters
    ----------
    base_url : str
        Where the service is, as ``https://verify.example.org``.
    poll : PollSchedule, optional
        How often jobs are polled and when they are let be.
    max_parallel_polls : int
        Requests at once, 1 to 100; more than a few makes polling slower, not faster.
    timeout : duration
        For one request, from connecting to the end of the answer.
    headers : mapping of str to str, optional
        Sent with every request, as ``{"Authorization": "Bearer ..."}``; never shown or logged.
    transport : httpx.AsyncBaseTransport, optional
        What carries the requests instead of sockets, as ``httpx.ASGITransport(app)``.
    clock, jitter : callable
        Seconds since the epoch; a number from 0 to 1 that spreads repeated requests.

    Raises
    ------
    SettingsError
        If a value cannot work; nothing is asked of the network.

    Examples
    --------
    >>> import mailverdict as mv
    >>> mv.RemoteBackend("https://verify.example.org/", timeout="20s")
    RemoteBackend('https://verify.example.org')
    """

    source = SOURCE_REMOTE

    def __init__(
        self,
        base_url: str,
        poll: PollSchedule | None = None,
        max_parallel_polls: int = 8,
        timeout: Duration = 30.0,
        headers: Mapping[str, str] | None = None,
        transport: AsyncBaseTransport | None = None,
        *,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.base_url = parse_base_url(base_url)
        self.poll = check_schedule(poll)
        self.max_parallel_polls = check_parallel(max_parallel_polls)
        self.timeout = check_timeout(timeout)
        self.headers = check_headers(headers)
        self.transport, self.clock, self.jitter = transport, clock, jitter

    def __repr__(self) -> str:
        """The URL; headers may be secret."""
        return f"RemoteBackend({self.base_url!r})"

    def is_free(self, validation_type: str) -> bool:
        """Tell that every address costs quota.

        Parameters
        ----------
        validation_type : str
            Any.

        Returns
        -------
        bool
            False.
        """
        return False

    def wants_journal(self, validation_type: str) -> bool:
        """Tell that what is paid for is kept.

        Parameters
        ----------
        validation_type : str
            Any.

        Returns
        -------
        bool
            True.
        """
        return True

    def journal_key(self, validation_type: str) -> str:
        """Name what answers are comparable with: the type and the service.

        Parameters
        ----------
        validation_type : str
            As submitted.

        Returns
        -------
        str
            Type and base URL.
        """
        return f"{validation_type} {self.base_url}"

    async def verify(self, batch: Batch, in_flight: Sequence[Job] = ()) -> AsyncIterator[Event]:
        """Submit a batch in portions that the quota covers, and poll until every job is over.

        Parameters
        ----------
        batch : Batch
            Unique, well-formed addresses.
        in_flight : sequence of Job
            Already paid for; they are polled, never submitted.

        Yields
        ------
        Event
            See `mailverdict.backend`.

        Raises
        ------
        BackendError
            When the service cannot be used; the message names the URL and what was seen.
        """
        submission = Submission(
            batch.addresses.to_pylist(), str(batch.validation_type), clock=self.clock, new_token=new_token
        )
        async with self.client() as client:
            flow = Flow(client, submission, schedule=self.poll, parallel=self.max_parallel_polls, clock=self.clock)
            async with aclosing(flow.events(in_flight)) as events:
                async for event in events:
                    yield event

    async def quota(self) -> Quota:
        """Ask how much of today's quota is left; costs nothing.

        Returns
        -------
        Quota
            Limit, used and remaining, in addresses.

        Raises
        ------
        BackendError
            If the service gives no usable answer.
        """
        async with self.client() as client:
            data = success_of(await client.ask(QUOTA_REQUEST)).data
        return self.understand(read_quota, data)

    async def check(self, email: str, validation_type: str) -> Verification:
        """Verify one address at once, by the service's single check; it may cost a unit of quota.

        Parameters
        ----------
        email : str
            The address.
        validation_type : str
            ``regex``, ``mx``, ``mx_blacklist`` or ``smtp``.

        Returns
        -------
        Verification
            The service's verdict as it is.

        Raises
        ------
        QuotaExceeded
            If today's quota is used up.
        BackendError
            If the service gives no usable answer; the request is not repeated once it was sent.
        """
        body = {"email": email, "validation_type": str(validation_type)}
        async with self.client() as client:
            data = success_of(await client.ask(Request("POST", "/api/check-email", body, is_repeatable=False))).data
        return self.understand(parse_payload, data)

    def client(self) -> Client:
        """A client for the event loop that is running; sockets never outlive a call."""
        return Client(
            self.base_url,
            timeout=self.timeout,
            headers=self.headers,
            transport=self.transport,
            parallel=self.max_parallel_polls,
            jitter=self.jitter,
            clock=self.clock,
        )

    def understand(self, read: Callable[[object], T], data: object) -> T:
        """Read an answer's data; an error names the URL."""
        try:
            return read(data)
        except ContractError as exc:
            raise ContractError(f"{self.base_url}: {exc}", path=exc.path) from exc

    async def aclose(self) -> None:
        """Let go of a transport that was given; sockets of our own are closed with each call."""
        if self.transport is not None:
            await self.transport.aclose()


def check_schedule(poll: PollSchedule | None) -> PollSchedule:
    """The schedule, or the contract's recommended one."""
    if poll is not None and not isinstance(poll, PollSchedule):
        raise SettingsError(f"poll={poll!r}: give PollSchedule(steps=..., give_up=...)")
    return poll or PollSchedule()


def check_parallel(count: int) -> int:
    """A whole number of parallel requests that helps."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_PARALLEL:
        raise SettingsError(f"max_parallel_polls={count!r}: give a whole number from 1 to {MOST_PARALLEL}")
    return count


def check_timeout(timeout: Duration) -> float:
    """A timeout in seconds, above none."""
    seconds = parse_duration(timeout, name="timeout")
    if not 0 < seconds < float("inf"):
        raise SettingsError(f"timeout={timeout!r}: give more than 0 seconds, and an end")
    return seconds
