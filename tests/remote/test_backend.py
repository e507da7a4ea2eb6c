"""What users hold: settings, the single check, the quota."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from mailverdict.backend import Quota
from mailverdict.errors import (
    BackendError,
    ContractError,
    QuotaExceeded,
    RateLimited,
    ServiceError,
    SettingsError,
    TransportError,
)
from mailverdict.model.verification import Verification
from mailverdict.remote.backend import RemoteBackend
from mailverdict.remote.events import PollSchedule
from tests.doubles.clock import VirtualLoop, run_virtual
from tests.doubles.remote import URL, RemoteWorld, addresses
from tests.doubles.scripted_service import FAULTS, envelope, payload
from tests.doubles.tables import each_row


def test_it_is_a_remote_backend_that_costs_and_is_journalled() -> None:
    backend = RemoteBackend("HTTPS://Verify.Example.ORG:443/")
    assert backend.source == "remote"
    assert not any(backend.is_free(kind) for kind in ("regex", "mx", "smtp"))
    assert backend.wants_journal("regex")
    assert backend.journal_key("mx") == "mx https://verify.example.org"
    assert backend.poll == PollSchedule()


def test_secrets_are_not_shown() -> None:
    backend = RemoteBackend(URL, headers={"Authorization": "Bearer secret"})
    assert "secret" not in repr(backend)


@each_row(
    "wrong",
    [
        {"base_url": "verify.example.org"},
        {"max_parallel_polls": 0},
        {"max_parallel_polls": 101},
        {"max_parallel_polls": 2.0},
        {"max_parallel_polls": True},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("inf")},
        {"timeout": "soon"},
        {"poll": 5},
        {"headers": {"A": "b\r\nC: d"}},
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        RemoteBackend(**{"base_url": URL, **wrong})


def in_world(action: Any, **service: Any) -> Any:
    async def main(loop: VirtualLoop) -> Any:
        return await action(RemoteWorld(loop, **service))

    return run_virtual(main)


def test_the_quota_is_that_of_the_service() -> None:
    assert in_world(lambda world: world.backend.quota(), daily_limit=100, used=30) == Quota(
        100, 30, 70
    )


def test_quota_of_something_else_names_the_url() -> None:
    async def action(world: RemoteWorld) -> None:
        world.service.edit["quota"] = lambda _: {"limit": 5}
        await world.backend.quota()

    with pytest.raises(ContractError, match=f"{URL}: daily_limit is absent"):
        in_world(action)


@each_row("kind", ["smtp", "mx", "mx_blacklist", "regex"])
def test_a_single_check_gives_the_service_s_verdict(kind: str) -> None:
    verification = in_world(lambda world: world.backend.check("ada@example.org", kind))
    assert isinstance(verification, Verification)
    assert verification.to_dict() == payload("ada@example.org", kind)


def test_a_single_check_is_not_repeated_once_it_was_sent() -> None:
    async def action(world: RemoteWorld) -> int:
        world.service.always["check"] = FAULTS["reset after"]
        with pytest.raises(TransportError):
            await world.backend.check("ada@example.org", "mx")
        return world.service.used

    assert in_world(action) == 1


@each_row(
    ("status", "body", "kind"),
    [
        (400, envelope("INVALID_VALIDATION_TYPE"), ServiceError),
        (429, envelope("QUOTA_EXCEEDED", limit=100, remaining=0, requested=1), QuotaExceeded),
        (502, envelope("UPSTREAM_SCHEMA_MISMATCH"), ServiceError),
        (400, b'{"error": {"code": "E1003", "message": "invalid type"}}', ServiceError),
        (429, envelope("RATE_LIMITED"), RateLimited),
        (200, b'{"success": true, "data": {"email": "a@b.org"}, "meta": {}}', ContractError),
    ],
)
def test_a_single_check_that_fails_is_our_error(
    status: int, body: bytes, kind: type[Exception]
) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(status, content=body))
    with pytest.raises(kind, match=URL):
        asyncio.run(RemoteBackend(URL, transport=transport).check("ada@example.org", "mx"))


@each_row(
    "body",
    [envelope("EMAIL_REQUIRED"), b'{"error": {"code": "E1002", "message": "invalid email"}}'],
    ids=["standard", "short"],
)
def test_an_address_that_the_service_refuses_is_invalid(body: bytes) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(400, content=body))
    found = asyncio.run(RemoteBackend(URL, transport=transport).check("ada@example.org", "smtp"))
    assert (found.result, found.reasons, found.reason) == ("invalid", ("syntax_error",), "REGEX")


def test_a_single_check_refuses_an_answer_about_another_address() -> None:
    body = json.dumps(
        {"success": True, "data": payload("bob@example.org", "mx"), "meta": {}}
    ).encode()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    with pytest.raises(ContractError, match=r"about bob@example\.org, not about ada@example\.org"):
        asyncio.run(RemoteBackend(URL, transport=transport).check("ada@example.org", "mx"))


def test_a_single_check_refuses_a_verdict_by_a_weaker_type() -> None:
    body = json.dumps(
        {"success": True, "data": payload("ada@example.org", "regex"), "meta": {}}
    ).encode()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    with pytest.raises(
        ContractError, match=r"checked by 'regex', not by 'smtp' as asked"
    ) as raised:
        asyncio.run(RemoteBackend(URL, transport=transport).check("ada@example.org", "smtp"))
    assert raised.value.path == "data.validation_type"


def test_a_single_check_refuses_a_verdict_that_contradicts_its_reasons() -> None:
    data = payload("ada@example.org", "smtp", "valid", reasons=["mailbox_not_found"])
    body = json.dumps({"success": True, "data": data, "meta": {}}).encode()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    with pytest.raises(
        ContractError, match=r"the service contradicts itself: 'valid', but .* means 'invalid'"
    ) as raised:
        asyncio.run(RemoteBackend(URL, transport=transport).check("ada@example.org", "smtp"))
    assert raised.value.path == "data.result"


def test_the_single_check_answers_for_the_address_that_was_sent() -> None:
    data = payload("ada@xn--bcher-kva.example", "mx")
    body = json.dumps({"success": True, "data": data, "meta": {}}).encode()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    found = asyncio.run(RemoteBackend(URL, transport=transport).check("ada@bücher.example", "mx"))
    assert (found.email, found.metadata["normalized"]) == (
        "ada@bücher.example",
        "ada@xn--bcher-kva.example",
    )


def test_a_closed_backend_refuses_to_be_used() -> None:
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, json={"daily_limit": 1, "used": 0, "remaining": 1})
    )
    with RemoteBackend(URL, transport=transport) as backend:
        assert asyncio.run(backend.quota()) == Quota(1, 0, 1)
    with pytest.raises(BackendError, match="was closed; make a new one"):
        asyncio.run(backend.quota())


def test_one_backend_serves_many_calls_and_event_loops() -> None:
    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, json={"daily_limit": 1, "used": 0, "remaining": 1})
    )
    backend = RemoteBackend(URL, transport=transport)
    assert asyncio.run(backend.quota()) == asyncio.run(backend.quota()) == Quota(1, 0, 1)


def test_a_transport_that_was_given_is_closed_with_the_backend_and_not_before() -> None:
    closed = []

    class RecordingTransport(httpx.MockTransport):
        async def aclose(self) -> None:
            closed.append(True)

    backend = RemoteBackend(
        URL, transport=RecordingTransport(lambda _: httpx.Response(500)), jitter=lambda: 0.0
    )

    async def main(loop: VirtualLoop) -> None:
        with pytest.raises(ServiceError):
            await backend.quota()
        assert closed == []
        await backend.aclose()

    run_virtual(main)
    assert closed == [True]


def test_an_empty_batch_asks_nothing() -> None:
    async def action(world: RemoteWorld) -> Any:
        outcome = await world.verify([])
        return outcome.events, dict(world.service.requests)

    assert in_world(action) == ([], {})


def test_two_calls_at_once_on_one_backend_keep_apart() -> None:
    async def action(world: RemoteWorld) -> Any:
        emails = addresses(60)
        first, second = await asyncio.gather(world.verify(emails[:30]), world.verify(emails[30:]))
        return set(first.rows) | set(second.rows) == set(
            emails
        ), world.service.violations_and_double_payments

    assert in_world(action) == (True, [])
