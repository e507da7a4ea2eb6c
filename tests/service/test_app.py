"""The application as a whole: its paths, its life."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response

from mailverdict.service import create_app
from mailverdict.service.jobs.store import Store
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.service import asynchronous, serving, settings_for

CONTRACT = {
    "/api/check-email",
    "/api/quota",
    "/api/bulk-check-email",
    "/api/verification-result/{job_id}",
}


@asynchronous
async def test_contract_has_four_endpoints_without_a_version_in_their_paths(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        paths = (await world.get("/openapi.json")).json()["paths"]
        assert {path for path in paths if path.startswith("/api")} == CONTRACT
        assert not any("v1" in path for path in paths)


@asynchronous
async def test_application_opens_itself_where_the_server_runs_no_lifespan(tmp_path: Path) -> None:
    app = create_app(settings_for(tmp_path), AnsweringBackend())
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://x"
    ) as client:
        assert (await client.get("/api/quota")).json() == {
            "daily_limit": 100,
            "used": 0,
            "remaining": 100,
        }
    await app.state.service.close()


@asynchronous
async def test_application_that_cannot_open_says_that_it_is_misconfigured(tmp_path: Path) -> None:
    store = Store(settings_for(tmp_path))
    app = create_app(settings_for(tmp_path), AnsweringBackend())
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://x"
    ) as client:
        reply = await client.get("/api/quota")
    store.close()
    assert reply.status_code == 500
    assert set(reply.json()) == {"error"}
    assert reply.json()["error"]["code"] == "E1001"


@asynchronous
async def test_middleware_that_a_user_adds_is_around_every_reply(tmp_path: Path) -> None:
    async def hide(request: Request, call_next: RequestResponseEndpoint) -> Response:
        reply = await call_next(request)
        reply.headers["x-robots-tag"] = "noindex"
        return reply

    app = create_app(settings_for(tmp_path), AnsweringBackend())
    app.add_middleware(BaseHTTPMiddleware, dispatch=hide)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://x"
    ) as client:
        for path, status in (("/api/quota", 200), ("/nowhere", 404)):
            reply = await client.get(path)
            assert (reply.status_code, reply.headers["x-robots-tag"]) == (status, "noindex")
    await app.state.service.close()


@asynchronous
async def test_application_closes_its_backend_and_its_store(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        await world.check()
    assert world.backend.closed
    Store(settings_for(tmp_path)).close()  # it is free again


OPEN_POSTGRESQL = """
from mailverdict.service import ServiceSettings
from mailverdict.service.jobs.store import Store
Store(ServiceSettings(store="postgresql://x@/y"))
"""
MISSING = [
    ("starlette", "import mailverdict.service", "service"),
    ("sqlalchemy", "import mailverdict.service", "service"),
    ("prometheus_client", "import mailverdict.service", "service"),
    ("psycopg", OPEN_POSTGRESQL, "postgres"),
]
TRIED = f"""
import sys
import mailverdict as mv
for absent, statement, extra in {MISSING}:
    before = dict(sys.modules)
    sys.modules[absent] = None
    try:
        exec(statement)
        print(absent, "is not missed")
    except mv.errors.MissingExtraError as exc:
        print(absent, exc)
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]
"""


@pytest.mark.slow
def test_missing_dependency_is_reported_with_its_extra() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", TRIED], capture_output=True, text=True, timeout=60
    )
    said = dict(line.split(maxsplit=1) for line in ended.stdout.splitlines())
    for absent, _, extra in MISSING:
        assert said[absent].startswith(statement_name(extra)), (absent, ended.stderr)
        assert f"pip install 'mailverdict[{extra}]'" in said[absent]


def statement_name(extra: str) -> str:
    """What the message says that the extra is for."""
    return {"service": "the verification service", "postgres": "a store on PostgreSQL"}[extra]


@asynchronous
async def test_nothing_is_pushed_and_nothing_redirects(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        for path in ("/api/quota/", "/api/events", "/api/webhooks", "/v1/api/quota"):
            assert (await world.get(path)).status_code == 404
