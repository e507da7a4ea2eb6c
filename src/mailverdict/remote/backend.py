"""`RemoteBackend`: a verification service over HTTP, under its daily quota."""

from __future__ import annotations

import asyncio
import math
import random
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Self

from ..backend import (
    Batch,
    Event,
    Job,
    KnownPace,
    Paced,
    Quota,
)
from ..contract.envelope import ErrorEnvelope
from ..errors import BackendError, ContractError, SettingsError
from ..loop import run_sync
from ..model.evidence import Evidence, SyntaxEvidence
from ..model.settings import Duration, parse_duration
from ..model.table import SOURCE_REMOTE
from ..model.verification import Verification, parse_payload
from ..model.words import ValidationType
from ..verdicts import settle
from .api import (
    DEFECT_PATHS,
    ApiRequest,
    asked_as,
    find_defect,
    success_of,
)
from .bulk import MAX_REPEATS, Submission, request_quota
from .client import Client, check_headers, parse_base_url
from .events import EventStream, PollSchedule
from .pace import Pace, check_pace

if TYPE_CHECKING:
    from httpx import AsyncBaseTransport


MAX_PARALLEL = 100  # polls
# Errors of the single check for an address that the service refuses.
MALFORMED_CODES = (
    "EMAIL_REQUIRED",
    "E1002",
)


class RemoteBackend:
    """Verify by asking a verification service.

    Every distinct address that is submitted costs one unit of the service's daily quota; polling
    and asking for the quota cost nothing. Works with services of either revision of the contract.

    Parameters
    ----------
    base_url : str
        Where the service is, as ``https://verify.example.org``.
    poll : PollSchedule, optional
        How often jobs are polled and when they are given up.
    max_parallel_polls : int
        Requests at once, 1 to 100; more than a few makes polling slower, not faster.
    timeout : duration
        For one request, from connecting to the end of the answer.
    headers : mapping of str to str, optional
        Sent with every request, as ``{"Authorization": "Bearer ..."}``; never shown or logged.
    transport : httpx.AsyncBaseTransport, optional
        What carries the requests instead of sockets, as ``httpx.ASGITransport(app)``.
    clock, jitter : callable
        Seconds since the epoch, by default the time of day at the beginning of a run and an even
        clock from then on, so that setting the computer's clock changes no wait; a number from 0
        to 1 that spreads repeated requests.
    pace : float, "auto" or None
        How fast addresses are submitted. ``"auto"`` adapts to the service's limiter, by the answers
        ``rate_limited`` and ``throttled`` and by ``Retry-After``; it begins with at most 300
        addresses, or with what the journal remembers of this service. A number is that many
        addresses a second, whatever the service answers. None submits without a limit.
    ask_again : bool
        Whether addresses that the service's limiter (``rate_limited``) or full queue
        (``throttled``) refused are submitted again in the same run: at most twice each, after all
        others, and only while quota is left. Each time costs one more unit.

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
        clock: Callable[[], float] | None = None,
        jitter: Callable[[], float] = random.random,
        pace: float | str | None = "auto",
        ask_again: bool = True,
    ) -> None:
        self.base_url = parse_base_url(base_url)
        self.pace = check_pace(pace)
        if not isinstance(ask_again, bool):
            raise SettingsError(f"ask_again={ask_again!r}: give True or False")
        self.ask_again = ask_again
        self.max_repeats = MAX_REPEATS if ask_again else 0
        self.known_pace: KnownPace | None = None
        self.poll = check_schedule(poll)
        self.max_parallel_polls = check_parallel(max_parallel_polls)
        self.timeout = check_timeout(timeout)
        self.headers = check_headers(headers)
        self.transport = transport
        self.clock = clock
        self.jitter = jitter
        self._is_closed = False
        self._running: Client | None = None  # of the present call of `verify`

    def __repr__(self) -> str:
        """The URL; headers may be secret."""
        return f"RemoteBackend({self.base_url!r})"

    def is_free(self, validation_type: str) -> bool:
        """Return False: every address costs quota.

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
        """Return True: paid-for answers are kept in a journal.

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
        """Return the key of answers in a journal: the type and the service.

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
            If the service cannot be used; the message names the URL and the cause.
        """
        known = batch.known_pace or self.known_pace
        pace = Pace(len(batch.addresses), known=known, fixed=self._fixed_pace())
        async with self._client() as client:
            self._running = client
            submission = Submission(
                client,
                batch.addresses.to_pylist(),
                str(batch.validation_type),
                pace=pace,
                clock=self.clock or steady_clock(),
                new_token=lambda: uuid.uuid4().hex,
                lost_batches=batch.lost_batches,
                claim=batch.claim,
            )
            stream = EventStream(
                submission,
                schedule=self.poll,
                parallel=self.max_parallel_polls,
                asks_again=self.ask_again,
            )
            async with aclosing(stream.events(in_flight)) as events:
                async for event in events:
                    if isinstance(event, Paced) and event.known is not None:
                        self.known_pace = event.known
                    yield event

    def _fixed_pace(self) -> float | None:
        """Addresses a second, infinity without a limit; None where the pace is found out."""
        if self.pace is None:
            return math.inf
        if self.pace == "auto":
            return None
        return float(self.pace)

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
        async with self._client() as client:
            return await request_quota(client)

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
            The service's verdict, unchanged.

        Raises
        ------
        QuotaExceeded
            If today's quota is used up.
        RateLimited
            If the service asks to be called later.
        ContractError
            If the answer violates the contract, or its verdict contradicts its reasons.
        ServiceError
            If the service answers with another error.
        TransportError
            If there is no answer; the request is not repeated once it was sent.
        """
        request = ApiRequest(
            "POST",
            "/api/check-email",
            {"email": email, "validation_type": str(validation_type)},
            is_repeatable=False,
        )
        async with self._client() as client:
            answer = await client.send(request)
        if isinstance(answer, ErrorEnvelope) and answer.code in MALFORMED_CODES:
            message = "the service refuses the address as malformed"
            malformed = Evidence(SyntaxEvidence(ok=False, message=message))
            decision = settle(ValidationType(validation_type), malformed)
            return decision.to_verification(email, validation_type)
        try:
            verification = parse_payload(success_of(answer).data)
        except ContractError as exc:
            raise ContractError(f"{self.base_url}: {exc}", path=exc.path) from exc
        defect = find_defect(verification, email, str(validation_type))
        if defect is not None:
            message = f"{self.base_url}: {defect.message}"
            raise ContractError(message, path=DEFECT_PATHS[defect.code])
        return asked_as(verification, email)

    def _silent_since(self) -> float | None:
        """Since when the service has not answered, by the event loop's clock; None if it does.

        Who asks now and then knows it soon: the service is asked, if nothing else asks it.
        """
        if self._running is None:
            return None
        self._running.ask_if_quiet()
        return self._running.silent_since()

    def _client(self) -> Client:
        """A client for the running event loop; its sockets are closed at the end of the call."""
        if self._is_closed:
            raise BackendError(f"{self!r} was closed; make a new one")
        return Client(
            self.base_url,
            timeout=self.timeout,
            headers=self.headers,
            transport=self.transport,
            parallel=self.max_parallel_polls,
            jitter=self.jitter,
            clock=self.clock or time.time,
        )

    def close(self) -> None:
        """Close the transport that was given.

        Using the backend afterwards raises `BackendError`.
        """
        run_sync(self.aclose())

    async def aclose(self) -> None:
        """Do as `close`, from async code; own sockets are closed at the end of each call."""
        self._is_closed = True
        if self.transport is not None:
            await self.transport.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def steady_clock() -> Callable[[], float]:
    """A clock that begins with the time of day and runs evenly."""
    loop = asyncio.get_running_loop()
    offset = time.time() - loop.time()
    return lambda: offset + loop.time()


def check_schedule(poll: PollSchedule | None) -> PollSchedule:
    """The schedule; by default the one that the contract recommends."""
    if poll is not None and not isinstance(poll, PollSchedule):
        raise SettingsError(f"poll={poll!r}: give PollSchedule(steps=..., give_up=...)")
    return poll or PollSchedule()


def check_parallel(count: int) -> int:
    """A valid number of parallel requests."""
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_PARALLEL:
        raise SettingsError(
            f"max_parallel_polls={count!r}: give a whole number from 1 to {MAX_PARALLEL}"
        )
    return count


def check_timeout(timeout: Duration) -> float:
    """A timeout in seconds, which must be positive and finite."""
    seconds = parse_duration(timeout, name="timeout")
    if not 0 < seconds < float("inf"):
        raise SettingsError(f"timeout={timeout!r}: give more than 0 seconds, and an end")
    return seconds
