"""The OpenAPI document, and the running service held to it.

schemathesis and jsonschema are imported where a test needs them: they take seconds in each process that collects the tests.
"""

from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck

from mailverdict.model.words import Reason
from mailverdict.service import ServiceSettings, create_app
from mailverdict.service.http.openapi import describe
from tests.doubles.answering_backend import AnsweringBackend, failed, unknown
from tests.doubles.listening import Address, listening
from tests.doubles.service import asynchronous, serving, settings_for

REVISIONS = ["current", "earlier"]
EXAMPLES = hypothesis.settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module", params=REVISIONS)
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Address]:
    folder = tmp_path_factory.mktemp("service")
    settings = settings_for(
        folder, revision=request.param, daily_limit=10**6, rate_limit=0, access_log=False
    )
    backend = AnsweringBackend({"late": unknown("timeout")})
    with listening(create_app(settings, backend), settings) as address:
        yield address


OPERATIONS = [
    "POST /api/check-email",
    "GET /api/quota",
    "POST /api/bulk-check-email",
    "GET /healthz",
]
OPERATIONS += ["GET /api/verification-result/{job_id}"]
# Only a body can be wrong: any text may stand where a job_id does.
MODES = [
    (name, mode)
    for name in OPERATIONS
    for mode in ("positive", "negative")
    if "POST" in name or mode == "positive"
]


@pytest.mark.slow  # 40 requests of each kind; `test_every_kind_of_answer_fits_its_schema` runs always
@pytest.mark.parametrize(("name", "mode"), MODES, ids=[f"{name} {mode}" for name, mode in MODES])
def test_service_answers_as_its_document_says(service: Address, name: str, mode: str) -> None:
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    # Not `positive_data_acceptance`: that a text is a well-formed address is more than a schema can say.
    held = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
        checks.negative_data_rejection,
        checks.unsupported_method,
    ]
    method, path = name.split()
    operation = schemathesis.openapi.from_url(f"{service.url}/openapi.json")[path][method]

    @EXAMPLES
    @hypothesis.given(operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    def holds(case) -> None:
        case.call_and_validate(checks=held)

    holds()


@asynchronous
async def test_document_is_served_as_json(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        reply = await world.get("/openapi.json")
        assert reply.headers["content-type"] == "application/json"
        assert reply.json()["openapi"].startswith("3.1")
        assert reply.json() == describe(world.state.settings)


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_reference_leads_somewhere(revision: str) -> None:
    document = describe(ServiceSettings(revision=revision))
    for reference in references(document):
        assert reference.startswith("#/components/schemas/")
        assert reference.rsplit("/", 1)[1] in document["components"]["schemas"]


@pytest.mark.slow
@pytest.mark.parametrize("revision", REVISIONS)
def test_every_schema_is_a_schema(revision: str) -> None:
    from jsonschema import Draft202012Validator

    for each in describe(ServiceSettings(revision=revision))["components"]["schemas"].values():
        Draft202012Validator.check_schema(each)


def test_every_reason_is_documented_with_its_meaning() -> None:
    text = describe(ServiceSettings())["components"]["schemas"]["Verification"]["properties"][
        "reasons"
    ]["description"]
    assert all(f"`{reason}`" in text for reason in Reason)


@pytest.mark.slow
@pytest.mark.parametrize("revision", REVISIONS)
@asynchronous
async def test_every_kind_of_answer_fits_its_schema(tmp_path: Path, revision: str) -> None:
    backend = AnsweringBackend({"late": unknown("timeout"), "bad": failed})
    async with serving(tmp_path, backend, revision=revision, daily_limit=12) as world:
        document = describe(world.state.settings)
        kinds = ("smtp", "mx", "mx_blacklist", "regex")
        replies = [
            (await world.check(f"{who}@x.org", kind)) for who in ("ada", "late") for kind in kinds
        ]
        replies += [
            await world.check("bad@x.org", "mx"),
            await world.check(""),
            await world.check("a@x.org", "?"),
        ]
        for reply in replies:
            assert_fits(document, "/api/check-email", "post", reply)
        submitted = await world.submit(["ada@x.org", "broken", "bad@x.org"])
        refused = [
            await world.submit(["a@x.org"] * 9),
            await world.submit(["a@x.org"] * 101),
            await world.submit([]),
        ]
        for reply in (submitted, *refused):
            assert_fits(document, "/api/bulk-check-email", "post", reply)
        for entry in submitted.json()["data"]["results"]:
            for _ in range(2):
                path = f"/api/verification-result/{entry['job_id']}"
                assert_fits(
                    document, "/api/verification-result/{job_id}", "get", await world.get(path)
                )
                if entry["status"] == "queued":
                    await world.ended(entry["job_id"])
        assert_fits(document, "/api/quota", "get", await world.get("/api/quota"))
        assert_fits(document, "/healthz", "get", await world.get("/healthz"))


def references(node: object) -> Iterator[str]:
    """Every ``$ref`` below a node."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def assert_fits(document: dict, path: str, method: str, reply) -> None:
    """The answer is one that the document has, in its form."""
    from jsonschema import Draft202012Validator

    responses = document["paths"][path][method]["responses"]
    assert str(reply.status_code) in responses, (path, reply.status_code)
    described = responses[str(reply.status_code)]
    wanted = described["content"]["application/json"]["schema"]
    named = {name.lower() for name in described.get("headers", {})}
    assert named >= {"ratelimit", "ratelimit-policy", "retry-after"} & set(reply.headers)
    Draft202012Validator({**wanted, "components": document["components"]}).validate(reply.json())
