"""A verification service that does what a script says, and watches that it is treated as promised.

`ScriptedService` is an ASGI application; `Wire` is the transport to it, which can also cut
connections. Faults are scripted per endpoint: the n-th request meets the n-th fault.
"""

import json
import uuid
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

CHECK, QUOTA, BULK, POLL = (
    "/api/check-email",
    "/api/quota",
    "/api/bulk-check-email",
    "/api/verification-result/",
)
ENDPOINTS = {"check": CHECK, "quota": QUOTA, "bulk": BULK, "poll": POLL}
FLAGS = {"role": False, "disposable": False, "free": False}
HTML = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
META = {"request_id": "r", "timestamp": "2026-01-02T03:04:05+00:00", "version": "v1"}


class Cut(Exception):
    """The connection breaks; `kind` is what httpx makes of it."""

    def __init__(self, kind: type[httpx.RequestError]) -> None:
        super().__init__(kind.__name__)
        self.kind = kind


@dataclass(frozen=True)
class Fault:
    """What happens to one request instead of its proper answer.

    `is_done`: whether the service does its work all the same before the answer is spoilt.
    """

    status: int = 0
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    cut: type[httpx.RequestError] | None = None
    is_done: bool = False
    truncate: bool = False
    delay: float = 0.0


def envelope(code: str, message: str = "no", **details: Any) -> bytes:
    return json.dumps(
        {"success": False, "error": {"code": code, "message": message, "details": details}}
    ).encode()


FAULTS = {
    "500": Fault(500, envelope("INTERNAL_ERROR")),
    "502": Fault(502, envelope("UPSTREAM_ERROR")),
    "short envelope": Fault(
        503, b'{"error": {"code": "E1005", "message": "upstream unavailable"}}'
    ),
    "HTML error": Fault(502, HTML, (("content-type", "text/html"),)),
    "HTML success": Fault(200, HTML, (("content-type", "text/html"),)),
    "cut JSON": Fault(truncate=True, is_done=True),
    "reset before": Fault(cut=httpx.ReadError),
    "reset after": Fault(cut=httpx.ReadError, is_done=True),
    "half an answer": Fault(cut=httpx.RemoteProtocolError, is_done=True),
    "500 after": Fault(500, envelope("INTERNAL_ERROR"), is_done=True),
    "no connection": Fault(cut=httpx.ConnectError),
    "never answers": Fault(delay=1e6),
    "limiter": Fault(429, envelope("RATE_LIMITED"), (("retry-after", "7"),)),
}


@dataclass
class ServedJob:
    job_id: str
    email: str
    validation_type: str
    made_at: float
    polls: int = 0
    polled_at: list[float] = field(default_factory=list)


def payload(email: str, validation_type: str, result: str = "valid", **more: Any) -> dict[str, Any]:
    """A proper verification payload."""
    smtp = {"catch_all": False, "protected": False} if validation_type == "smtp" else {}
    reasons = more.pop("reasons", [])
    return {
        "email": email,
        "validation_type": validation_type,
        "result": result,
        "details": reasons[0] if reasons else None,
        "reasons": reasons,
        "checks": {"syntax": True},
        **FLAGS,
        **smtp,
        "reason": None,
        "errors": None,
        **more,
    }


class ScriptedService:
    """The service.

    `verdict(email, type)` gives a payload, or None for a job that ends in `error`; `duration(email)`
    the seconds until a job is over; `hidden` the seconds for which a new job is not found yet.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        daily_limit: int = 10_000,
        used: int = 0,
        verdict: Callable[[str, str], dict[str, Any] | None] = payload,
        duration: Callable[[str], float] = lambda _: 1.0,
        hidden: float = 0.0,
        earlier: bool = False,
        is_malformed: Callable[[str], bool] = lambda email: "@" not in email,
        batch_limit: int = 100,
    ) -> None:
        self.clock, self.daily_limit, self.used = clock, daily_limit, used
        self.verdict, self.duration, self.hidden, self.earlier = verdict, duration, hidden, earlier
        self.is_malformed, self.batch_limit = is_malformed, batch_limit
        self.jobs: dict[str, ServedJob] = {}
        self.rejected: set[str] = set()
        self.told_over: set[str] = set()
        self.paid: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.batches: list[list[str]] = []
        self.faults: dict[str, deque[Fault | None]] = defaultdict(deque)
        self.always: dict[str, Fault] = {}
        self.edit: dict[str, Callable[[Any], Any]] = {}
        self.violations: list[str] = []
        self.quota_before_bulk: Callable[[], None] | None = None
        self.under_way = 0
        self.most_parallel = 0

    def script(self, endpoint: str, faults: Iterable[Fault | None]) -> None:
        """The faults of the next requests to an endpoint, in order; None: without a fault."""
        self.faults[endpoint].extend(faults)

    @property
    def violations_and_double_payments(self) -> list[str]:
        """Everything that a client must never do."""
        return [
            *self.violations,
            *(f"{email} was paid {n} times" for email, n in self.paid.items() if n > 1),
        ]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        endpoint = self.endpoint_of(scope["raw_path"].decode())
        await self.serve(scope, receive, send, self.next_fault(endpoint))

    def next_fault(self, endpoint: str) -> Fault | None:
        return (
            self.faults[endpoint].popleft() if self.faults[endpoint] else self.always.get(endpoint)
        )

    async def serve(self, scope: Any, receive: Any, send: Any, fault: Fault | None) -> None:
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        status, headers, content = self.handle(scope["raw_path"].decode(), body, fault)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def endpoint_of(self, path: str) -> str:
        return next((name for name, start in ENDPOINTS.items() if path.startswith(start)), "none")

    def handle(
        self, path: str, body: bytes, fault: Fault | None
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        endpoint = self.endpoint_of(path)
        self.requests[endpoint] += 1
        answer = self.answer(endpoint, path, body) if fault is None or fault.is_done else (0, {})
        if fault is not None and fault.cut:
            raise Cut(fault.cut)
        if fault is not None and not fault.truncate:
            headers = [(k.encode(), v.encode()) for k, v in fault.headers]
            return fault.status, headers, fault.body
        status, decoded = answer
        if endpoint in self.edit:
            decoded = self.edit[endpoint](decoded)
        content = json.dumps(decoded).encode()
        return status, [(b"content-type", b"application/json")], content[:-20] if fault else content

    def answer(self, endpoint: str, path: str, body: bytes) -> tuple[int, Any]:
        return getattr(self, f"answer_{endpoint}")(path, body)

    def answer_none(self, path: str, body: bytes) -> tuple[int, Any]:
        return 404, {"detail": "Not Found"}

    def answer_quota(self, path: str, body: bytes) -> tuple[int, Any]:
        return 200, self.quota()

    def quota(self) -> dict[str, int]:
        return {
            "daily_limit": self.daily_limit,
            "used": self.used,
            "remaining": max(0, self.daily_limit - self.used),
        }

    def answer_check(self, path: str, body: bytes) -> tuple[int, Any]:
        asked = json.loads(body)
        self.used += 1
        return 200, success(self.verdict(asked["email"], asked["validation_type"]))

    def answer_bulk(self, path: str, body: bytes) -> tuple[int, Any]:
        if self.quota_before_bulk is not None:
            self.quota_before_bulk()
        asked = json.loads(body)
        emails = asked["emails"]
        if len(emails) > 100:
            self.violations.append(f"a batch of {len(emails)}")
        if len(emails) > self.batch_limit:
            return 422, failure("BULK_LIMIT_EXCEEDED", limit=self.batch_limit, received=len(emails))
        good = [email for email in emails if not self.is_malformed(email)]
        if len(good) > self.daily_limit - self.used:
            return 429, failure("QUOTA_EXCEEDED", **self.refusal(len(good)))
        self.used += len(good)
        self.paid.update(good)
        self.batches.append(emails)
        return 202, success(
            {"results": [self.entry(email, asked["validation_type"]) for email in emails]}
        )

    def refusal(self, requested: int) -> dict[str, int]:
        return {
            "limit": self.daily_limit,
            "remaining": max(0, self.daily_limit - self.used),
            "requested": requested,
        }

    def entry(self, email: str, validation_type: str) -> dict[str, str]:
        job_id = str(uuid.uuid4())
        if self.is_malformed(email) and not self.earlier:
            self.rejected.add(job_id)
            return {
                "email": email,
                "status": "error",
                "message": "Invalid email format",
                "job_id": job_id,
            }
        self.jobs[job_id] = ServedJob(job_id, email, validation_type, self.clock())
        return {
            "email": email,
            "status": "queued",
            "message": "Queued for verification",
            "job_id": job_id,
        }

    def answer_poll(self, path: str, body: bytes) -> tuple[int, Any]:
        job_id = path.removeprefix(POLL)
        job = self.jobs.get(job_id)
        if job_id in self.rejected:
            self.violations.append("a rejected job was polled")
        if job_id in self.told_over:
            self.violations.append("a job was polled after a terminal status")
        now = self.clock()
        if job is not None:
            job.polled_at.append(now)
        if job is None or now - job.made_at < self.hidden:
            return 404, failure("JOB_NOT_FOUND")
        job.polls += 1
        record = (self.earlier_record if self.earlier else self.record)(job, now)
        if record["status"] in ("done", "error", "valid", "invalid"):
            self.told_over.add(job_id)
        return 200, success({"job_id": job_id, "result": record})

    def record(self, job: ServedJob, now: float) -> dict[str, Any]:
        if now - job.made_at < self.duration(job.email):
            status = "queued" if job.polls < 2 else "processing"
            return {"email": job.email, "status": status, "verification": None}
        verification = self.verdict(job.email, job.validation_type)
        status = "error" if verification is None else "done"
        return {"email": job.email, "status": status, "verification": verification}

    def earlier_record(self, job: ServedJob, now: float) -> dict[str, Any]:
        stamps = {"created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:06Z"}
        base = {"email": job.email, "message": "", "details": {}, **stamps}
        if now - job.made_at < self.duration(job.email):
            return {**base, "status": "processing"}
        verification = self.verdict(job.email, job.validation_type)
        if verification is None:
            return {**base, "status": "error", "message": "Invalid email format"}
        valid = verification["result"] in ("valid", "risky")
        details = {"checks": verification["checks"], "reason": None if valid else "SMTP"}
        return {**base, "status": "valid" if valid else "invalid", "details": details}

    def forget_told(self) -> None:
        """A client that was killed may poll finished jobs again; this is not a violation."""
        self.told_over.clear()


def success(data: Any) -> dict[str, Any]:
    return {"success": True, "data": data, "meta": META}


def failure(code: str, **details: Any) -> dict[str, Any]:
    error = {"code": code, "message": code.lower()} | ({"details": details} if details else {})
    return {"success": False, "error": error, "meta": META}


class Wire(httpx.AsyncBaseTransport):
    """The transport to a scripted service: without sockets, and with every way to break."""

    def __init__(
        self, service: ScriptedService, sleep: Callable[[float], Any], latency: float = 0.01
    ) -> None:
        self.service, self.sleep, self.latency = service, sleep, latency

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        service = self.service
        service.under_way += 1
        service.most_parallel = max(service.most_parallel, service.under_way)
        try:
            return await self.deliver(request)
        finally:
            service.under_way -= 1

    async def deliver(self, request: httpx.Request) -> httpx.Response:
        fault = self.service.next_fault(self.service.endpoint_of(request.url.raw_path.decode()))
        await self.sleep(self.latency + (fault.delay if fault else 0.0))
        try:
            return await httpx.ASGITransport(
                partial(self.service.serve, fault=fault)
            ).handle_async_request(request)
        except Cut as cut:
            raise cut.kind("scripted", request=request) from None
