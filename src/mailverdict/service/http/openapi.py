"""The OpenAPI 3.1 document of the service, for the revision in its settings."""

from __future__ import annotations

from typing import Any

from ...contract.envelope import BULK_LIMIT, ERROR_STATUS, VERSION, JobStatus
from ...contract.revisions import EARLIER_REASONS, Revision
from ...model.words import REASON_MEANING, Verdict
from ..settings import ServiceSettings
from .bodies import TYPES

Json = dict[str, Any]
JOB_STATUSES = list(map(str, JobStatus))


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def text(description: str = "", **more: Any) -> Json:
    schema: Json = {"type": "string"}
    if description:
        schema["description"] = description
    return schema | more


def whole(description: str = "") -> Json:
    schema: Json = {"type": "integer", "minimum": 0}
    if description:
        schema["description"] = description
    return schema


def flag(description: str, *, null: bool = False) -> Json:
    kind: str | list[str] = "boolean"
    if null:
        kind = ["boolean", "null"]
    return {"type": kind, "description": description}


def record(
    required: dict[str, Json], optional: dict[str, Json] | None = None, *, closed: bool = False
) -> Json:
    """The schema of an object; `closed`: the contract allows no other keys."""
    schema: Json = {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
    }
    if closed:
        schema["additionalProperties"] = False
    return schema


VALIDATION_TYPE = text("How deep the verification goes.", enum=TYPES)
MOMENT = text("ISO 8601 with offset.", format="date-time")
ERRORS: Json = {
    "type": "array",
    "items": record(
        {"code": text("In upper case."), "message": text("What went wrong, in a sentence.")}
    ),
}
CHECKS: Json = {
    "type": "object",
    "additionalProperties": {"type": "boolean"},
    "description": "Outcome of each sub-check; one that does not apply is an absent key.",
}
PAYLOAD = record(
    {
        "email": text("The address as returned by the verifier."),
        "validation_type": text("The type actually used.", enum=TYPES),
        "result": text("The verdict.", enum=[str(each) for each in Verdict]),
        "details": {
            "type": ["string", "null"],
            "description": "The dominant reason: `reasons[0]`.",
        },
        "reasons": {
            "type": "array",
            "items": text(),
            "description": "Every reason in order of precedence; the vocabulary is open. Known: "
            + "; ".join(f"`{reason}`: {meaning}" for reason, meaning in REASON_MEANING.items()),
        },
        "checks": CHECKS,
        "reason": {
            "type": ["string", "null"],
            "description": "Upper-case code of the first error.",
        },
        "errors": {**ERRORS, "type": ["array", "null"]},
    },
    {
        "role": flag("The local part is a role prefix. Absent: never determined."),
        "spamtrap": flag("The domain is a known spamtrap. Absent: never determined."),
        "disposable": flag(
            "The domain is a provider of disposable addresses. Absent: never determined."
        ),
        "free": flag(
            "The domain is a consumer mail provider; never affects the verdict. "
            "Absent: never determined."
        ),
        "catch_all": flag(
            "Only for `smtp`: the server accepts any address. Null: not established.", null=True
        ),
        "protected": flag(
            "Only for `smtp`: the server blocks the service. Null: not established.", null=True
        ),
        "metadata": {
            "type": "object",
            "minProperties": 1,
            "description": "`validated_at`, `mx_records` and more.",
        },
    },
)
EARLIER_PAYLOAD = record(
    {
        "email": text(),
        "validation_type": text(enum=TYPES),
        "valid": {"type": "boolean"},
        "checks": CHECKS,
        "reason": {"enum": [None, *EARLIER_REASONS], "description": "Null when valid."},
        "errors": ERRORS,
    },
    closed=True,
)
JOB = record(
    {
        "email": text(),
        "status": text(
            "The state of processing; only `done` and `error` are final.", enum=JOB_STATUSES
        ),
        "verification": {
            "oneOf": [ref("Verification"), {"type": "null"}],
            "description": "Null unless `done`.",
        },
    },
    closed=True,
)
EARLIER_JOB = record(
    {
        "email": text(),
        "status": text(enum=["queued", "processing", "valid", "invalid", "error"]),
        "message": text(),
        "details": {"type": "object"},
        "created_at": MOMENT,
        "updated_at": MOMENT,
    },
    closed=True,
)
META = record(
    {
        "request_id": text("Unique per request."),
        "timestamp": MOMENT,
        "version": text(const=VERSION),
    },
    closed=True,
)
QUOTA = record({"daily_limit": whole(), "used": whole(), "remaining": whole()}, closed=True)
ENTRY = record(
    {
        "email": text("The input address."),
        "status": text(enum=["queued", "error"]),
        "message": text(),
        "job_id": text("One per input line, including rejected ones."),
    },
    closed=True,
)
STANDARD_ERROR = record(
    {
        "success": {"const": False},
        "error": record(
            {"code": text(enum=list(ERROR_STATUS)), "message": text()},
            {"details": {"type": "object"}},
        ),
        "meta": ref("Meta"),
    },
    closed=True,
)
SHORT_ERROR = record(
    {"error": record({"code": text(), "message": text()}, closed=True)}, closed=True
)


def envelope(data: Json) -> Json:
    return record({"success": {"const": True}, "data": data, "meta": ref("Meta")}, closed=True)


def response(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


STANDARD, SHORT = ref("StandardError"), ref("ShortError")
EITHER: Json = {"oneOf": [STANDARD, SHORT]}
UNAVAILABLE = {
    "503": response("The store is unavailable or full (`E1005`); nothing was accepted.", SHORT)
}
UNEXPECTED = {"500": response("`INTERNAL_ERROR`.", STANDARD), **UNAVAILABLE}
ANY_REQUEST = {**UNEXPECTED, "431": response("The head of the request is too large.", SHORT)}
WITH_BODY = {
    **ANY_REQUEST,
    "408": response("The body did not arrive in time.", SHORT),
    "413": response("The body is too large.", SHORT),
    "415": response("The body is not `application/json`, or is compressed.", SHORT),
}


def header(description: str, schema: Json, example: Any) -> Json:
    return {"description": description, "schema": schema, "example": example}


DRAFT = "draft-ietf-httpapi-ratelimit-headers-10; in addresses."
RATE_FIELDS: Json = {
    "RateLimit-Policy": header(
        "The limits of a client: the quota (`daily`) and the token bucket of bulk jobs "
        f"(`burst`). {DRAFT}",
        text(),
        '"daily";q=100;w=86400;qu="addresses", "burst";q=1000;w=10;qu="addresses"',
    ),
    "RateLimit": header(
        "What is left: `r` of `daily` is the quota; `r` of `burst` is how many addresses "
        "would be verified without "
        f"a wait. `t` is the number of seconds until all of it is available again. {DRAFT}",
        text(),
        '"daily";r=40;t=3600, "burst";r=940;t=1',
    ),
}
RETRY_AFTER = {
    "Retry-After": header(
        "Seconds after which the same request may be granted; also with `rate_limited` and "
        "`throttled`.",
        whole(),
        15,
    )
}
EXCEEDED: Json = {
    **response("`QUOTA_EXCEEDED`; `details` has `limit`, `remaining`, `requested`.", STANDARD),
    "headers": {**RATE_FIELDS, **RETRY_AFTER},
}
NO_ROOM: Json = {
    **response(
        "`QUOTA_EXCEEDED`; `details` has `limit`, `remaining`, `requested`. "
        "Or `QUEUE_FULL` in the short envelope: too many addresses wait; nothing was queued, "
        "and no quota was consumed.",
        EITHER,
    ),
    "headers": {**RATE_FIELDS, **RETRY_AFTER},
}


def body(schema: Json) -> Json:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def check_operation(revision: Revision) -> Json:
    email = {"email": text("The address to verify.", minLength=1)}
    request = record({**email, "validation_type": VALIDATION_TYPE})
    if revision is Revision.EARLIER:
        request = record(email, {"validation_type": {**VALIDATION_TYPE, "default": "smtp"}})
    refused = (
        "`EMAIL_REQUIRED`, `INVALID_VALIDATION_TYPE`; or `E1002`, `E1003` in the short envelope."
    )
    return {
        "operationId": "checkEmail",
        "summary": "Verify one address",
        "requestBody": body(request),
        "responses": {
            "200": {
                **response("The verdict, whatever it is.", envelope(ref("Verification"))),
                "headers": RETRY_AFTER,
            },
            "400": response(refused, EITHER),
            "429": EXCEEDED,
            "502": response("`UPSTREAM_ERROR` or `UPSTREAM_SCHEMA_MISMATCH`.", STANDARD),
            **WITH_BODY,
        },
    }


IDEMPOTENCY_KEY: Json = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A submission repeated with the same key, because its answer was lost, gives "
    "the same jobs and costs nothing again. A UUID, for example.",
    "schema": text(pattern="^[!-~]{16,255}$"),
}


def bulk_operation() -> Json:
    emails = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": BULK_LIMIT}
    results = record(
        {
            "results": {
                "type": "array",
                "items": ref("BulkEntry"),
                "minItems": 1,
                "maxItems": BULK_LIMIT,
            }
        }
    )
    refused = "`INVALID_VALIDATION_TYPE`; or `E1002`, `E1003`, `BAD_IDEMPOTENCY_KEY` in the short "
    refused += "envelope."
    found = "$response.body#/data/results/0/job_id"
    submitted = response("Accepted; nothing is verified yet.", envelope(results))
    return {
        "operationId": "submitBulk",
        "summary": "Submit addresses; each becomes a job",
        "parameters": [IDEMPOTENCY_KEY],
        "requestBody": body(record({"emails": emails, "validation_type": VALIDATION_TYPE})),
        "responses": {
            "202": {
                **submitted,
                "headers": RATE_FIELDS,
                "links": {"poll": {"operationId": "pollJob", "parameters": {"job_id": found}}},
            },
            "400": response(refused, EITHER),
            "422": response(
                "`BULK_LIMIT_EXCEEDED`; `details` has `limit` and `received`. "
                "Or `IDEMPOTENCY_KEY_REUSED` in the short envelope: the key belongs to a "
                "submission of other addresses.",
                EITHER,
            ),
            "429": NO_ROOM,
            **WITH_BODY,
        },
    }


def poll_operation() -> Json:
    job_id = {
        "name": "job_id",
        "in": "path",
        "required": True,
        "schema": text("From a submission entry.", minLength=1),
    }
    return {
        "operationId": "pollJob",
        "summary": "The status of a job",
        "parameters": [job_id],
        "responses": {
            "200": response(
                "The job.", envelope(record({"job_id": text(), "result": ref("Job")}, closed=True))
            ),
            "400": response("`E1006`: the job_id is missing.", SHORT),
            "404": response("`JOB_NOT_FOUND`.", STANDARD),
            **ANY_REQUEST,
        },
    }


def quota_operation() -> Json:
    return {
        "operationId": "quota",
        "summary": "The daily quota of the client's address",
        "responses": {
            "200": {
                **response("The quota record; it has no envelope.", ref("Quota")),
                "headers": RATE_FIELDS,
            },
            **ANY_REQUEST,
        },
    }


def health_operation() -> Json:
    queue = record({"waiting": whole(), "verifying": whole(), "postponed": whole()})
    worker = record(
        {"name": text(), "version": text(), "types": text()},
        {"egress": {"type": ["string", "null"]}},
    )
    workers = {
        "type": "array",
        "items": worker,
        "description": "With PostgreSQL: the workers that are running.",
    }
    store = text("Whether the store accepts writes.", enum=["ok", "read-only", "refuses writes"])
    healthy = record(
        {"status": text(enum=["ok", "failing"]), "store": store, "queue": queue},
        {"workers": workers},
    )
    failing = response(
        "The worker has stopped, or the store cannot be written, or it does not answer (`E1005`).",
        {"oneOf": [healthy, SHORT]},
    )
    return {
        "operationId": "health",
        "summary": "Whether the service works, and the length of its queue",
        "responses": {
            "200": response("The service works.", healthy),
            **ANY_REQUEST,
            "503": failing,
        },
    }


NO_KEY = response("`UNAUTHORIZED`: a client key is missing or not valid.", SHORT)


def with_keys(document: Json) -> Json:
    """The document of a service that asks for client keys."""
    for path, operations in document["paths"].items():
        if path.startswith("/api/"):
            for operation in operations.values():
                operation["security"] = [{"clientKey": []}]
                operation["responses"] = {**operation["responses"], "401": NO_KEY}
    scheme = {
        "type": "http",
        "scheme": "bearer",
        "description": "A client key of the service's operator.",
    }
    document["components"]["securitySchemes"] = {"clientKey": scheme}
    return document


def describe(settings: ServiceSettings) -> Json:
    """The document, ready for JSON; the revision decides on payload and job record."""
    revision = Revision(settings.revision)
    earlier = revision is Revision.EARLIER
    whose = (
        "Each client address may verify"
        if settings.key_file is None
        else "Each client key may verify"
    )
    key = "no key is needed" if settings.key_file is None else "every request needs a key"
    document: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "Email verification service",
            "version": VERSION,
            "description": "Checks whether an e-mail address can receive mail. "
            f"{whose} {settings.daily_limit} addresses a day; {key}.",
        },
        "paths": {
            "/api/check-email": {"post": check_operation(revision)},
            "/api/quota": {"get": quota_operation()},
            "/api/bulk-check-email": {"post": bulk_operation()},
            "/api/verification-result/{job_id}": {"get": poll_operation()},
            "/healthz": {"get": health_operation()},
        },
        "components": {
            "schemas": {
                "Verification": EARLIER_PAYLOAD if earlier else PAYLOAD,
                "Job": EARLIER_JOB if earlier else JOB,
                "Meta": META,
                "Quota": QUOTA,
                "BulkEntry": ENTRY,
                "StandardError": STANDARD_ERROR,
                "ShortError": SHORT_ERROR,
            }
        },
    }
    return document if settings.key_file is None else with_keys(document)
