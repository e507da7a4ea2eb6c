"""``POST /api/check-email``: one address, answered while the client waits."""

import asyncio
from datetime import datetime
from pathlib import Path

import pytest

from mailverdict.model.verification import Fault, Verification
from tests.doubles.answering_backend import (
    AnsweringBackend,
    deferred,
    failed,
    forgotten,
    no_verdict,
    unknown,
)
from tests.doubles.service import asynchronous, serving

TYPES = ["smtp", "mx", "mx_blacklist", "regex"]
ALWAYS = {"email", "validation_type", "result", "details", "reasons", "checks", "reason", "errors"}


def mailbox(**changed):
    """A mailbox verification of an `smtp` check."""

    def answer(email: str, validation_type: str) -> Verification:
        given = {"catch_all": None, "protected": None, **changed}
        return Verification(email, validation_type, **given)

    return answer


@asynchronous
async def test_success_has_the_envelope_and_its_meta(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        reply = await world.check()
        assert reply.status_code == 200
        assert reply.headers["content-type"] == "application/json"
        body = reply.json()
        assert set(body) == {"success", "data", "meta"}
        assert body["success"] is True
        assert set(body["meta"]) == {"request_id", "timestamp", "version"}
        assert body["meta"]["version"] == "v1"
        assert datetime.fromisoformat(body["meta"]["timestamp"]).utcoffset() is not None


@asynchronous
async def test_request_ids_differ(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        ids = [(await world.check()).json()["meta"]["request_id"] for _ in range(5)]
        assert len(set(ids)) == 5
        assert all(isinstance(each, str) and each for each in ids)


@pytest.mark.parametrize("validation_type", TYPES)
@asynchronous
async def test_payload_has_the_keys_of_its_type(tmp_path: Path, validation_type: str) -> None:
    async with serving(tmp_path) as world:
        data = (await world.check(validation_type=validation_type)).json()["data"]
        server = {"catch_all", "protected"} if validation_type == "smtp" else set()
        assert set(data) == ALWAYS | server | {"role", "disposable", "free", "metadata"}
        assert data["email"] == "ada@example.org"
        assert data["validation_type"] == validation_type
        assert data["result"] == "valid"
        assert data["details"] is None
        assert data["reasons"] == []
        assert all(isinstance(value, bool) for value in data["checks"].values())


@asynchronous
async def test_smtp_checks_carry_the_six_keys(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        checks = (await world.check(validation_type="smtp")).json()["data"]["checks"]
        assert set(checks) == {
            "syntax",
            "dns",
            "smtp_port",
            "smtp_connection",
            "smtp_rcptto",
            "smtp",
        }


@asynchronous
async def test_verdict_and_outcome_of_the_request_are_separate(tmp_path: Path) -> None:
    refused = mailbox(
        result="invalid",
        reasons=("mailbox_not_found",),
        reason="SMTP",
        errors=(Fault("SMTP", "no such user"),),
    )
    async with serving(tmp_path, AnsweringBackend({"ada": refused})) as world:
        reply = await world.check(validation_type="smtp")
        assert reply.status_code == 200
        assert reply.json()["success"] is True
        assert reply.json()["data"]["result"] == "invalid"


@asynchronous
async def test_details_is_the_first_of_the_reasons(tmp_path: Path) -> None:
    late = mailbox(result="unknown", reasons=("timeout", "role"), role=True)
    async with serving(tmp_path, AnsweringBackend({"info": late})) as world:
        data = (await world.check("info@example.org", "smtp")).json()["data"]
        assert (data["result"], data["details"], data["reasons"]) == (
            "unknown",
            "timeout",
            ["timeout", "role"],
        )
        assert data["role"] is True


@asynchronous
async def test_flags_that_were_never_determined_are_absent_keys(tmp_path: Path) -> None:
    async with serving(tmp_path, AnsweringBackend({"ada": unknown("timeout")})) as world:
        data = (await world.check(validation_type="mx")).json()["data"]
        assert not {"role", "spamtrap", "disposable", "free"} & set(data)
        assert "metadata" not in data


@asynchronous
async def test_server_flags_are_null_where_a_session_was_inconclusive(tmp_path: Path) -> None:
    async with serving(tmp_path, AnsweringBackend({"ada": unknown("timeout")})) as world:
        data = (await world.check(validation_type="smtp")).json()["data"]
        assert data["catch_all"] is None
        assert data["protected"] is None


@asynchronous
async def test_protected_mailbox_is_unknown(tmp_path: Path) -> None:
    guarded = mailbox(result="unknown", reasons=("protected",), protected=True)
    async with serving(tmp_path, AnsweringBackend({"ada": guarded})) as world:
        data = (await world.check(validation_type="smtp")).json()["data"]
        assert (data["protected"], data["result"]) == (True, "unknown")


@asynchronous
async def test_errors_are_objects_of_code_and_message_and_reason_is_the_first_code(
    tmp_path: Path,
) -> None:
    gone = mailbox(
        result="invalid",
        reasons=("mailbox_not_found",),
        reason="SMTP",
        errors=(Fault("SMTP", "mx.example: 550 no"), Fault("MAILBOX_DISABLED", "off")),
    )
    async with serving(tmp_path, AnsweringBackend({"ada": gone})) as world:
        data = (await world.check(validation_type="smtp")).json()["data"]
        assert data["errors"][0] == {"code": "SMTP", "message": "mx.example: 550 no"}
        assert data["reason"] == data["errors"][0]["code"] == "SMTP"
        assert data["reason"].isupper()


@pytest.mark.slow
@asynchronous
async def test_reasons_that_no_table_knows_pass_through(tmp_path: Path) -> None:
    new = mailbox(result="unknown", reasons=("moon_phase",))
    async with serving(tmp_path, AnsweringBackend({"ada": new})) as world:
        data = (await world.check(validation_type="smtp")).json()["data"]
        assert (data["result"], data["reasons"]) == ("unknown", ["moon_phase"])


@pytest.mark.parametrize(
    "email", [None, "", "   ", "ada", "ada@", "@example.org", "a..b@example.org", "ada@web", 7, []]
)
@asynchronous
async def test_email_missing_empty_or_malformed_is_email_required(
    tmp_path: Path, email: object
) -> None:
    async with serving(tmp_path) as world:
        reply = await world.check(email)
        assert reply.status_code == 400
        body = reply.json()
        assert set(body) == {"success", "error", "meta"}
        assert body["success"] is False
        assert set(body["error"]) == {"code", "message"}  # no details where there is nothing to add
        assert body["error"]["code"] == "EMAIL_REQUIRED"
        assert await world.used() == 0
        assert world.backend.batches == []


@asynchronous
async def test_email_left_out_is_email_required(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        reply = await world.post("/api/check-email", {"validation_type": "mx"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "EMAIL_REQUIRED")


@pytest.mark.parametrize("validation_type", ["SMTP", "dns", "", None, 1, ["mx"], {"a": 1}])
@asynchronous
async def test_type_outside_the_list_is_invalid_validation_type(
    tmp_path: Path, validation_type: object
) -> None:
    async with serving(tmp_path) as world:
        reply = await world.check(validation_type=validation_type)
        assert reply.status_code == 400
        error = reply.json()["error"]
        assert error["code"] == "INVALID_VALIDATION_TYPE"
        assert sorted(error["details"]["allowed"]) == sorted(TYPES)
        assert await world.used() == 0


@asynchronous
async def test_type_left_out_is_refused_in_the_short_envelope(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        reply = await world.post("/api/check-email", {"email": "ada@example.org"})
        assert reply.status_code == 400
        body = reply.json()
        assert set(body) == {"error"}
        assert set(body["error"]) == {"code", "message"}
        assert body["error"]["code"] == "E1003"


@asynchronous
async def test_check_costs_one_unit_and_the_last_one_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=2) as world:
        assert [(await world.check()).status_code for _ in range(2)] == [200, 200]
        reply = await world.check()
        assert reply.status_code == 429
        assert reply.json()["error"]["code"] == "QUOTA_EXCEEDED"
        assert reply.json()["error"]["details"] == {"limit": 2, "remaining": 0, "requested": 1}
        assert await world.used() == 2
        assert len(world.backend.batches) == 2


@asynchronous
async def test_check_costs_nothing_where_the_setting_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path, daily_limit=1, check_costs_quota=False) as world:
        assert [(await world.check()).status_code for _ in range(3)] == [200, 200, 200]
        assert await world.used() == 0


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (RuntimeError("boom"), "UPSTREAM_ERROR"),
        (failed, "UPSTREAM_ERROR"),
        (forgotten, "UPSTREAM_SCHEMA_MISMATCH"),
        (no_verdict, "UPSTREAM_SCHEMA_MISMATCH"),
        (mailbox(result="perhaps"), "UPSTREAM_SCHEMA_MISMATCH"),
    ],
    ids=["raises", "error row", "no row", "no verdict", "fifth verdict"],
)
@asynchronous
async def test_engine_that_fails_is_a_502(tmp_path: Path, act: object, code: str) -> None:
    async with serving(tmp_path, AnsweringBackend({"ada": act})) as world:
        reply = await world.check(validation_type="smtp")
        assert reply.status_code == 502
        assert reply.json()["success"] is False
        assert reply.json()["error"]["code"] == code
        assert "boom" not in reply.text


@asynchronous
async def test_check_that_a_stopping_server_ends_is_a_502(tmp_path: Path) -> None:
    async with serving(tmp_path, AnsweringBackend(gate=asyncio.Event())) as world:
        checking = asyncio.create_task(world.check(validation_type="smtp"))
        while not world.backend.batches:
            await asyncio.sleep(0)
        checking.cancel("as uvicorn does after its limit")
        reply = await checking
        assert (reply.status_code, reply.json()["error"]["code"]) == (502, "UPSTREAM_ERROR")


@asynchronous
async def test_engine_that_is_saturated_is_throttled_and_not_a_502(tmp_path: Path) -> None:
    async with serving(tmp_path, AnsweringBackend({"ada": deferred})) as world:
        reply = await world.check(validation_type="smtp")
        assert reply.status_code == 200
        assert reply.json()["data"]["details"] == "throttled"


@asynchronous
async def test_blanks_around_an_address_do_not_count(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        assert (await world.check("  ada@example.org\n")).json()["data"][
            "email"
        ] == "ada@example.org"


@asynchronous
async def test_checks_of_one_moment_are_answered_and_paid_one_by_one(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        emails = [f"user{i % 15}@example.org" for i in range(20)]
        replies = await asyncio.gather(*(world.check(email, "mx") for email in emails))
        assert [reply.json()["data"]["email"] for reply in replies] == emails
        assert await world.used() == 20


@asynchronous
async def test_unexpected_error_is_internal_error_without_a_traceback(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:

        def broken(client: str, cost: int) -> bool:
            raise ZeroDivisionError("secret detail")

        world.state.limiter.acquire = broken
        reply = await world.check()
        assert reply.status_code == 500
        assert reply.json()["error"]["code"] == "INTERNAL_ERROR"
        assert set(reply.json()) == {"success", "error", "meta"}
        assert "secret detail" not in reply.text
        assert "Traceback" not in reply.text


@asynchronous
async def test_lone_surrogate_in_an_address_is_refused_and_not_a_500(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        reply = await world.check("a\ud800@example.org")
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "EMAIL_REQUIRED")
