"""The endpoints: the contract's four, and those for the people who run the service."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...backend import Quota
from ...contract.envelope import JobStatus, dump_entry, dump_quota
from ...contract.revisions import Revision
from ...model.verification import Verification
from ...model.words import Reason, ValidationType
from ..engine import FAILURE_MESSAGE, CheckOutcome, EngineFailure, saturated_verification
from ..jobs.store import Debit, DebitResult, FindJob, NewJob, Ping, QuotaUsed, StoredJob
from ..jobs.worker import dump_verification
from ..service_state import ServiceState
from ..settings import ServiceSettings
from .access import RequestTrace
from .bodies import BulkRequest, CheckRequest, parse_bulk, parse_check, read_object
from .metrics import CONTENT_TYPE
from .openapi import describe
from .page import StatusPage
from .replies import MALFORMED, QUEUED, REVISION_FORMATS, JsonReply, short_error, standard_error, success_reply

__all__ = ["Endpoints"]

Endpoint = Callable[[Request], Awaitable[Response]]
JOB_ID_OCTETS = 16  # of randomness: nobody meets another's job by trying


class Endpoints:
    """The service's answers.

    Parameters
    ----------
    settings : ServiceSettings
        What the service goes by.
    state : ServiceState
        Store, engine, worker, limiter and metrics, opened by the application.
    """

    def __init__(self, settings: ServiceSettings, state: ServiceState) -> None:
        self.settings = settings
        self.state = state
        self.format = REVISION_FORMATS[Revision(settings.revision)]
        self.document = describe(settings)
        self.page = StatusPage()
        self.body_seconds = settings.seconds("body_timeout")

    def routes(self) -> list[Route]:
        """Paths and methods."""
        table: tuple[tuple[str, str, Endpoint], ...] = (
            ("POST", "/api/check-email", self.check_email),
            ("GET", "/api/quota", self.quota),
            ("POST", "/api/bulk-check-email", self.bulk_check_email),
            ("GET", "/api/verification-result/{job_id:path}", self.verification_result),
            ("GET", "/api/verification-result", self.verification_result),
            ("GET", "/openapi.json", self.openapi),
            ("GET", "/healthz", self.healthz),
            ("GET", "/metrics", self.metrics),
            ("GET", "/", self.status_page),
        )
        routes = [Route(path, traced(path, endpoint), methods=[method]) for method, path, endpoint in table]
        for route in routes:
            # Starlette's own pattern stops at a line break, so that "/%0A" would not be a job that is unknown.
            route.path_regex = re.compile(route.path_regex.pattern.removesuffix("$") + r"\Z", re.DOTALL)
        return routes

    async def check_email(self, request: Request) -> Response:
        """``POST /api/check-email``."""
        trace: RequestTrace = request.scope["trace"]
        asked = parse_check(await self.body(request), self.format.default_type)
        trace.notes = {"validation_type": asked.validation_type, "domain": asked.email.rpartition("@")[2]}
        verification = self.saturated(trace.client, asked) or await self.verified(trace, asked)
        self.state.metrics.verdicts["single", asked.validation_type, verification.result] += 1
        return success_reply(self.format.payload(verification), trace.request_id)

    def saturated(self, client: str, asked: CheckRequest) -> Verification | None:
        """The outcome where limiter or queue refuse; it costs no quota, since nothing was asked."""
        if not self.state.limiter.try_acquire(client, 1):
            return saturated_verification(asked.email, asked.validation_type, Reason.RATE_LIMITED)
        if self.state.worker.is_saturated(1):
            return saturated_verification(asked.email, asked.validation_type, Reason.THROTTLED)
        return None

    async def verified(self, trace: RequestTrace, asked: CheckRequest) -> Verification:
        """The engine's verification; its price is on the disk before the engine is asked."""
        if self.settings.check_costs_quota:
            self.granted(await self.debit(trace.client, 1), 1)
        if self.state.instant is not None and asked.validation_type == ValidationType.REGEX:
            return self.state.instant.settle(asked.email, asked.syntax)
        answer = await self.state.engine.check(asked.email, asked.validation_type)
        return self.usable(answer, asked)

    def usable(self, answer: CheckOutcome, asked: CheckRequest) -> Verification:
        """The verification, or the refusal that the fault amounts to."""
        if answer.verification is not None:
            return answer.verification
        if answer.fault is EngineFailure.SATURATED:
            return saturated_verification(asked.email, asked.validation_type, Reason.THROTTLED)
        fault = answer.fault or EngineFailure.ERROR
        raise standard_error(fault, FAILURE_MESSAGE[fault])

    async def quota(self, request: Request) -> Response:
        """``GET /api/quota``."""
        trace: RequestTrace = request.scope["trace"]
        now = self.state.clock()
        used: int = await self.state.reads.ask(QuotaUsed(trace.client, self.settings.day_of(now)))
        limit = self.settings.daily_limit
        return JsonReply(dump_quota(Quota(limit, used, max(limit - used, 0))))

    async def bulk_check_email(self, request: Request) -> Response:
        """``POST /api/bulk-check-email``."""
        trace: RequestTrace = request.scope["trace"]
        asked = parse_bulk(await self.body(request))
        trace.notes = {"validation_type": asked.validation_type, "addresses": len(asked.emails)}
        job_ids = new_job_ids(len(asked.emails))
        jobs = self.new_jobs(trace.client, asked, job_ids)
        if jobs:
            self.granted(await self.debit(trace.client, len(jobs), jobs), len(jobs))
            self.announce(jobs)
        queued = {each.job_id for each in jobs}
        results = [
            dump_entry(email, JobStatus.QUEUED, QUEUED, job_id)
            if job_id in queued
            else dump_entry(email, JobStatus.ERROR, MALFORMED, job_id)
            for email, job_id in zip(asked.emails, job_ids, strict=True)
        ]
        return success_reply({"results": results}, trace.request_id, 202)

    def new_jobs(self, client: str, asked: BulkRequest, job_ids: list[str]) -> tuple[NewJob, ...]:
        """A job for each well-formed address; the earlier revision makes one of the others too."""
        lines = zip(asked.emails, job_ids, asked.well_formed, strict=True)
        taken = [(email, job_id, ok) for email, job_id, ok in lines if ok or self.format.queues_malformed]
        fields = self.first_state(client, sum(ok for *_, ok in taken))
        return tuple(
            self.new_job(job_id, email, asked.validation_type, fields)
            if ok
            else NewJob(job_id, email, asked.validation_type, JobStatus.ERROR, message=MALFORMED)
            for email, job_id, ok in taken
        )

    def first_state(self, client: str, count: int) -> dict[str, Any] | None:
        """How the jobs of a submission begin; None: the limiter refused, they end as they begin."""
        if not self.state.limiter.try_acquire(client, count):
            return None
        if self.state.worker.is_saturated(count):
            due = self.state.clock() + self.settings.saturation_backoff[0]
            return {"status": JobStatus.PROCESSING, "attempt": 1, "due": due}
        return {}

    def new_job(self, job_id: str, email: str, validation_type: str, state: dict[str, Any] | None) -> NewJob:
        """One job in its first state."""
        if state is not None:
            return NewJob(job_id, email, validation_type, **state)
        refused = saturated_verification(email.strip(), validation_type, Reason.RATE_LIMITED)
        return NewJob(job_id, email, validation_type, JobStatus.DONE, verification=dump_verification(refused))

    def announce(self, jobs: tuple[NewJob, ...]) -> None:
        """Tell the worker and the counters."""
        states = [each.status for each in jobs]
        self.state.worker.notice(states.count(JobStatus.QUEUED), states.count(JobStatus.PROCESSING))
        for status in (JobStatus.DONE, JobStatus.ERROR):
            if ended := states.count(status):
                self.state.metrics.jobs[status] += ended

    async def debit(self, client: str, cost: int, jobs: tuple[NewJob, ...] = ()) -> DebitResult:
        """Take quota and queue jobs, durably."""
        now = self.state.clock()
        debit = Debit(client, self.settings.day_of(now), cost, self.settings.daily_limit, now, jobs)
        account: DebitResult = await self.state.writes.ask(debit)
        return account

    def granted(self, account: DebitResult, requested: int) -> None:
        """Refuse what the quota does not cover."""
        if not account.granted:
            raise standard_error(
                "QUOTA_EXCEEDED",
                "the daily quota does not cover the request",
                limit=self.settings.daily_limit,
                remaining=account.remaining,
                requested=requested,
            )

    async def verification_result(self, request: Request) -> Response:
        """``GET /api/verification-result/{job_id}``."""
        trace: RequestTrace = request.scope["trace"]
        job_id = request.path_params.get("job_id")
        if not job_id:
            raise short_error("E1006", "the job_id is missing: ask for /api/verification-result/{job_id}")
        stored: StoredJob | None = await self.state.reads.ask(FindJob(job_id)) if is_job_id(job_id) else None
        if stored is None:
            raise standard_error("JOB_NOT_FOUND", "there is no job with this job_id")
        return success_reply({"job_id": job_id, "result": self.format.record(stored)}, trace.request_id)

    async def openapi(self, _: Request) -> Response:
        """``GET /openapi.json``."""
        return JsonReply(self.document)

    async def healthz(self, _: Request) -> Response:
        """``GET /healthz``: 200 as long as the store answers and the worker works."""
        await self.state.reads.ask(Ping())
        depth = self.state.worker.depth
        healthy = self.state.is_working()
        queue = {"waiting": depth.waiting, "verifying": depth.verifying, "postponed": depth.postponed}
        return JsonReply({"status": "ok" if healthy else "failing", "queue": queue}, 200 if healthy else 503)

    async def metrics(self, _: Request) -> Response:
        """``GET /metrics``."""
        text = self.state.metrics.render(*self.state.gauges())
        return Response(text, headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    async def status_page(self, _: Request) -> Response:
        """``GET /``."""
        return self.page.response()

    async def body(self, request: Request) -> Any:
        """The request's JSON object."""
        return await read_object(request, limit=self.settings.body_limit, seconds=self.body_seconds)


def new_job_ids(count: int) -> list[str]:
    """Identifiers that nobody can guess, out of one draw."""
    size = 2 * JOB_ID_OCTETS
    digits = secrets.token_hex(JOB_ID_OCTETS * count)
    return [digits[at : at + size] for at in range(0, len(digits), size)]


def is_job_id(text: str) -> bool:
    """Whether a text can be one of our identifiers; a database is not asked about anything else."""
    return len(text) == 2 * JOB_ID_OCTETS and text.isalnum() and text.isascii()


def traced(path: str, endpoint: Endpoint) -> Endpoint:
    """Note the route as it is written here: a path with its values may hold an identifier."""

    async def answer(request: Request) -> Response:
        request.scope["trace"].route = path
        return await endpoint(request)

    return answer
