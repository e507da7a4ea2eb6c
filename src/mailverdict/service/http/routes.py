"""The endpoints: the four of the contract, then those for operators."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

from sqlalchemy.exc import IntegrityError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...backend import Quota
from ...contract.envelope import JobStatus, dump_entry, dump_quota
from ...contract.revisions import Revision
from ...model.verification import Verification
from ...model.words import Reason
from ..engine import FAILURE_MESSAGE, CheckOutcome, EngineFailure, saturated_verification
from ..jobs.store import Account, NewJob, QueueFull, StoredJob
from ..jobs.submission import (
    MALFORMED,
    former_job_ids,
    is_job_id,
    keyed_job_ids,
    malformed_job,
    new_job,
    new_job_ids,
)
from ..service_state import ServiceState
from ..settings import ServiceSettings, WhenSaturated
from .access import Endpoint, RequestTrace
from .bodies import BulkRequest, CheckRequest, parse_bulk, parse_check, read_object
from .metrics import CONTENT_TYPE
from .openapi import describe
from .page import StatusPage
from .rate_fields import RateFields, retry_after
from .replies import (
    QUEUED,
    REVISION_FORMATS,
    JsonReply,
    RequestRefused,
    short_error,
    standard_error,
    success_reply,
)

LOG = logging.getLogger(__name__)
# Long enough that two submissions do not have the same by chance.
IDEMPOTENCY_KEY = re.compile(r"[!-~]{16,255}")


class Endpoints:
    """The handlers of all routes; the application opens `state` before it calls one."""

    def __init__(self, settings: ServiceSettings, state: ServiceState) -> None:
        self.settings = settings
        self.state = state
        self.format = REVISION_FORMATS[Revision(settings.revision)]
        self.document = describe(settings)
        self.page = StatusPage()
        limiter = None
        if settings.when_saturated is WhenSaturated.SETTLE:
            limiter = state.limiter
        self.rate_fields = RateFields(settings, limiter)
        self.body_seconds = settings.seconds("body_timeout")

    def table(self) -> list[tuple[str, str, Endpoint]]:
        """Method, path and endpoint; most used first."""
        return [
            ("POST", "/api/check-email", self.check_email),
            ("GET", "/api/quota", self.quota),
            ("POST", "/api/bulk-check-email", self.bulk_check_email),
            ("GET", "/api/verification-result/{job_id:path}", self.verification_result),
            ("GET", "/api/verification-result", self.verification_result),
            ("GET", "/openapi.json", self.openapi),
            ("GET", "/healthz", self.healthz),
            ("GET", "/metrics", self.metrics),
            ("GET", "/", self.status_page),
        ]

    def by_path(self) -> dict[tuple[str, str], Endpoint]:
        """The endpoints whose path is always the same."""
        endpoints = {}
        for method, path, endpoint in self.table():
            if "{" not in path:
                endpoints[method, path] = endpoint
        return endpoints

    def routes(self) -> list[Route]:
        """Every path with its method, for the router."""
        routes = []
        for method, path, endpoint in self.table():
            route = Route(path, with_route(path, endpoint), methods=[method])
            # Starlette's own pattern stops at a line break: "/%0A" would be an unknown path, not an
            # unknown job.
            pattern = route.path_regex.pattern.removesuffix("$")
            route.path_regex = re.compile(rf"{pattern}\Z", re.DOTALL)
            routes.append(route)
        return routes

    async def check_email(self, request: Request) -> Response:
        """``POST /api/check-email``."""
        trace: RequestTrace = request.scope["trace"]
        check = parse_check(await self.body(request), self.format.default_type)
        _, _, domain = check.email.rpartition("@")
        trace.notes = {"validation_type": check.validation_type, "domain": domain}
        await self.state.refresh()
        headers = None
        refused = await self.refusal(trace.client, check.validation_type)
        if refused is None:
            verification = await self.verify_one(trace, check)
        else:  # costs no quota, since nothing is verified
            reason, seconds = refused
            verification = saturated_verification(check.email, check.validation_type, reason)
            headers = retry_after(seconds)
        self.state.metrics.verdicts.add("single", check.validation_type, verification.result)
        return success_reply(self.format.payload(verification), trace.request_id, headers=headers)

    async def refusal(self, client: str, validation_type: str) -> tuple[Reason, float] | None:
        """Why a single check is refused, and the seconds after which another may be granted."""
        if seconds := self.state.limiter.acquire(client, 1):
            return Reason.RATE_LIMITED, seconds
        if self.state.is_saturated(1) or not await self.state.can_answer(validation_type):
            return Reason.THROTTLED, self.settings.saturation_backoff[0]
        return None

    async def verify_one(self, trace: RequestTrace, check: CheckRequest) -> Verification:
        """The engine's verification, or the error reply for its failure.

        The quota is debited on disk before the engine starts.
        """
        try:
            outcome = await self.state.check(trace.client, check.email, check.validation_type)
        except asyncio.CancelledError:
            # The server is being stopped, and waits no longer for its last requests.
            LOG.warning("the service was stopped before a single check had an answer")
            outcome = CheckOutcome(check.email, failure=EngineFailure.ERROR)
        if isinstance(outcome, Account):
            raise self.quota_exceeded(outcome, 1)
        if outcome.verification is not None:
            return outcome.verification
        if outcome.failure is EngineFailure.SATURATED:
            return saturated_verification(check.email, check.validation_type, Reason.THROTTLED)
        failure = outcome.failure or EngineFailure.ERROR
        raise standard_error(failure, FAILURE_MESSAGE[failure])

    def quota_exceeded(self, account: Account, requested: int) -> RequestRefused:
        """The error reply if the quota of the day does not cover the request."""
        return standard_error(
            "QUOTA_EXCEEDED",
            "the daily quota does not cover the request",
            headers=self.rate_fields.quota_exceeded(account, requested),
            limit=self.settings.daily_limit,
            remaining=account.remaining,
            requested=requested,
        )

    async def quota(self, request: Request) -> Response:
        """``GET /api/quota``."""
        trace: RequestTrace = request.scope["trace"]
        account = await self.state.store.read(self.state.store.account, trace.client)
        quota = Quota(self.settings.daily_limit, account.used, account.remaining)
        return JsonReply(dump_quota(quota), headers=self.rate_fields.headers(trace.client, account))

    async def bulk_check_email(self, request: Request) -> Response:
        """``POST /api/bulk-check-email``."""
        trace: RequestTrace = request.scope["trace"]
        bulk = parse_bulk(await self.body(request))
        trace.notes = {"validation_type": bulk.validation_type, "addresses": len(bulk.emails)}
        key = idempotency_key(request)
        job_ids = await self.job_ids(trace.client, key, len(bulk.emails))
        jobs = await self.new_jobs(trace.client, bulk, job_ids)
        account = None
        if jobs and not (key and await self.is_repeated(trace.client, jobs)):
            try:
                account = await self.submit(trace.client, jobs)
            except (IntegrityError, RequestRefused):
                # The same submission was written, or took the quota, a moment ago.
                if not (key and await self.is_repeated(trace.client, jobs)):
                    raise
        accepted = {job.job_id for job in jobs}
        results = []
        for email, job_id in zip(bulk.emails, job_ids, strict=True):
            if job_id in accepted:
                results.append(dump_entry(email, JobStatus.QUEUED, QUEUED, job_id))
            else:
                results.append(dump_entry(email, JobStatus.ERROR, MALFORMED, job_id))
        if account is not None:
            headers = self.rate_fields.headers(trace.client, account)
        else:
            account = await self.state.store.read(self.state.store.account, trace.client)
            headers = self.rate_fields.headers(trace.client, account, has_daily=False)
        return success_reply({"results": results}, trace.request_id, 202, headers)

    async def is_repeated(self, client: str, jobs: tuple[NewJob, ...]) -> bool:
        """Whether the jobs of a submission with an Idempotency-Key exist.

        An error reply if others have its key.
        """
        found = await self.find_jobs([job.job_id for job in jobs])
        missing = found.count(None)
        same = 0
        for stored, new in zip(found, jobs, strict=True):
            if stored is not None and stored.client == client:
                same += stored.email == new.email and stored.validation_type == new.validation_type
        if missing < len(jobs) and same < len(jobs):
            message = (
                "this Idempotency-Key was used for another submission; give each submission its own"
            )
            raise short_error("IDEMPOTENCY_KEY_REUSED", message)
        return bool(jobs) and same == len(jobs)

    async def job_ids(self, client: str, key: str | None, count: int) -> list[str]:
        """The identifiers of a submission's lines.

        With an Idempotency-Key the same as those of its first time.
        """
        if key is None:
            return new_job_ids(count)
        former = former_job_ids(client, key, count)
        if any(await self.find_jobs(former)):
            return former
        return keyed_job_ids(self.state.store.secret, client, key, count)

    async def find_jobs(self, job_ids: list[str]) -> list[StoredJob | None]:
        """The jobs with these identifiers, by one statement."""
        found: list[StoredJob | None] = await asyncio.gather(*map(self.state.reads.run, job_ids))
        return found

    async def submit(self, client: str, jobs: tuple[NewJob, ...]) -> Account:
        """Submit jobs, or raise the error reply."""
        try:
            account = await self.state.submit(client, jobs)
        except QueueFull:
            message = f"the queue has no room for {len(jobs)} more addresses of this client"
            message += "; they cost no quota"
            seconds = self.settings.saturation_backoff[0]
            raise short_error("QUEUE_FULL", message, headers=retry_after(seconds)) from None
        if not account.granted:
            raise self.quota_exceeded(account, len(jobs))
        return account

    async def new_jobs(
        self, client: str, bulk: BulkRequest, job_ids: list[str]
    ) -> tuple[NewJob, ...]:
        """A job for each well-formed address; the earlier revision makes one of the others too."""
        count = sum(bulk.well_formed)
        settles = self.settings.when_saturated is WhenSaturated.SETTLE
        if settles:
            await self.state.refresh()
        well_formed_job = partial(
            new_job,
            self.settings,
            validation_type=bulk.validation_type,
            is_rate_limited=settles and self.state.limiter.acquire(client, count) > 0,
            is_saturated=settles and self.state.is_saturated(count),
        )
        jobs = []
        lines = zip(bulk.emails, job_ids, bulk.well_formed, strict=True)
        for email, job_id, is_well_formed in lines:
            if is_well_formed:
                jobs.append(well_formed_job(job_id, email))
            elif self.format.queues_malformed:
                jobs.append(malformed_job(job_id, email, bulk.validation_type))
        return tuple(jobs)

    async def verification_result(self, request: Request) -> Response:
        """``GET /api/verification-result/{job_id}``."""
        trace: RequestTrace = request.scope["trace"]
        job_id = request.path_params.get("job_id")
        if not job_id:
            raise short_error(
                "E1006", "the job_id is missing: request /api/verification-result/{job_id}"
            )
        stored: StoredJob | None = None
        if is_job_id(job_id):
            stored = await self.state.reads.run(job_id)
        has_keys = self.settings.key_file is not None
        if stored is None or (has_keys and stored.client != trace.client):
            raise standard_error("JOB_NOT_FOUND", "there is no job with this job_id")
        data = {"job_id": job_id, "result": self.format.record(stored)}
        return success_reply(data, trace.request_id)

    async def openapi(self, _: Request) -> Response:
        """``GET /openapi.json``."""
        return JsonReply(self.document)

    async def healthz(self, _: Request) -> Response:
        """``GET /healthz``: 200 while the store can be written and the worker runs.

        With PostgreSQL also who works.
        """
        try:
            async with asyncio.timeout(self.state.answer_seconds):
                can_write = await self.state.store.read(self.state.store.accepts_writes)
                await self.state.refresh(0.0)
        except TimeoutError:
            raise short_error(
                "E1005", "the service's store does not answer", headers=retry_after(5)
            ) from None
        store = "ok"
        if not can_write:
            store = "read-only"
        elif self.state.refuses_writes():
            store = "refuses writes"
        status = "ok"
        code = 200
        if store != "ok" or not self.state.is_working():
            status = "failing"
            code = 503
        queue = self.state.depth.queue()
        report: dict[str, Any] = {"status": status, "store": store, "queue": queue}
        if self.state.store.is_shared:
            report["workers"] = [worker._asdict() for worker in self.state.depth.workers]
        return JsonReply(report, code)

    async def metrics(self, _: Request) -> Response:
        """``GET /metrics``."""
        await self.state.refresh(0.0)
        headers = {"content-type": CONTENT_TYPE, "cache-control": "no-store"}
        return Response(self.state.metrics.render(), headers=headers)

    async def status_page(self, _: Request) -> Response:
        """``GET /``."""
        return self.page.response()

    def body(self, request: Request) -> Awaitable[Mapping[str, Any]]:
        """The JSON object in the request's body."""
        return read_object(request, limit=self.settings.body_limit, seconds=self.body_seconds)


def idempotency_key(request: Request) -> str | None:
    """The field of draft-ietf-httpapi-idempotency-key-header, with or without quotes."""
    given = request.headers.get("idempotency-key")
    if given is None:
        return None
    if not IDEMPOTENCY_KEY.fullmatch(given):
        message = "Idempotency-Key must be 16 to 255 visible characters, such as a UUID"
        raise short_error("BAD_IDEMPOTENCY_KEY", message)
    return given


def with_route(path: str, endpoint: Endpoint) -> Endpoint:
    """Log and count a request by its route's pattern: the path may hold an identifier."""

    async def handle(request: Request) -> Response:
        request.scope["trace"].route = path
        return await endpoint(request)

    return handle
