"""Client keys: the file, the requests, what belongs to whom."""

import json
import logging
import os
import re
import stat
from pathlib import Path

import httpx
import pytest

import mailverdict as mv
from mailverdict.errors import SettingsError
from mailverdict.service import create_app
from mailverdict.service.keys import KeyRing, add_key, read_keys, revoke_key
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.listening import listening
from tests.doubles.service import RunningService, asynchronous, serving, settings_for


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_key_is_not_in_the_file_which_only_its_owner_reads(file: Path) -> None:
    key = add_key(file, "analytics")
    assert re.fullmatch(r"mv_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", key)
    assert key.split("_", 2)[2] not in file.read_text()  # the secret may hold "_" itself
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    [found] = read_keys(file)
    assert (found.name, found.account, found.revoked) == ("analytics", "key:analytics", None)


def test_ring_knows_its_keys_and_no_others(file: Path) -> None:
    first, second = add_key(file, "first"), add_key(file, "second")
    ring = KeyRing(file)
    assert ring.account(f"Bearer {first}") == "key:first"
    assert ring.account(f"bearer  {second} ") == "key:second"
    identifier = first.split("_")[1]
    swapped = f"mv_{identifier}_{second.split('_', 2)[2]}"
    for wrong in (
        "",
        "Bearer",
        first,
        f"Basic {first}",
        f"Bearer {first}x",
        f"Bearer {swapped}",
        f"Bearer {first[:-1]}",
        "Bearer mv_",
    ):
        assert ring.account(wrong) is None, wrong


def test_changed_file_is_used_after_the_interval(file: Path) -> None:
    now = [0.0]
    first = add_key(file, "first")
    ring = KeyRing(file, clock=lambda: now[0])
    second = add_key(file, "second")
    revoke_key(file, "first")
    assert (ring.account(f"Bearer {first}"), ring.account(f"Bearer {second}")) == (
        "key:first",
        None,
    )
    now[0] = 2.0
    assert (ring.account(f"Bearer {first}"), ring.account(f"Bearer {second}")) == (
        None,
        "key:second",
    )


def test_damaged_file_keeps_the_keys_and_is_logged(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    key = add_key(file, "first")
    ring = KeyRing(file, clock=lambda: now[0])
    file.write_text("{", encoding="utf-8")
    now[0] = 2.0
    with caplog.at_level(logging.ERROR):
        assert ring.account(f"Bearer {key}") == "key:first"
    assert "is damaged" in caplog.text
    assert key not in caplog.text


def test_without_the_file_no_key_is_valid_until_it_is_back(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    key = add_key(file, "first")
    ring = KeyRing(file, clock=lambda: now[0])
    kept = file.rename(file.with_suffix(".kept"))
    now[0] = 2.0
    assert ring.account(f"Bearer {key}") is None
    assert "keys.json' is missing: no key is valid" in caplog.text
    file.write_text("{", encoding="utf-8")  # a damaged one changes nothing
    now[0] = 4.0
    assert ring.account(f"Bearer {key}") is None
    kept.rename(file)
    now[0] = 6.0
    assert ring.account(f"Bearer {key}") == "key:first"


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
@pytest.mark.parametrize("mode", [0o604, 0o644, 0o666, 0o620])
def test_file_that_others_can_read_is_refused(file: Path, mode: int) -> None:
    add_key(file, "first")
    file.chmod(mode)
    with pytest.raises(SettingsError, match=r"others can read or change it .*chmod 600"):
        read_keys(file)
    with pytest.raises(SettingsError, match="chmod 600"):
        create_app(settings_for(file.parent, key_file=str(file)), AnsweringBackend())


def test_file_of_a_group_is_accepted_and_keeps_its_mode(file: Path) -> None:
    add_key(file, "first")
    file.chmod(0o640)
    add_key(file, "second")
    assert len(read_keys(file)) == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


BAD_FILES = [
    "",
    "[]",
    "{}",
    '{"keys": 5}',
    '{"keys": [5]}',
    '{"keys": [{"name": "a"}]}',
    "\x00",
    "[" * 100_000,
]


@pytest.mark.parametrize("text", BAD_FILES, ids=range(len(BAD_FILES)))
def test_damaged_file_is_refused_by_its_name(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    with pytest.raises(SettingsError, match=r"key_file='.*keys\.json' is damaged"):
        read_keys(file)


def test_file_with_one_name_twice_is_refused(file: Path) -> None:
    add_key(file, "first")
    entry = json.loads(file.read_text())["keys"][0]
    file.write_text(json.dumps({"keys": [entry, entry]}), encoding="utf-8")
    with pytest.raises(SettingsError, match="same name"):
        read_keys(file)


def test_missing_file_is_refused_with_advice(file: Path) -> None:
    with pytest.raises(SettingsError, match="mailverdict keys add"):
        read_keys(file)


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x" * 51, "ä"])
def test_name_that_cannot_be_an_account_is_refused(file: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="name="):
        add_key(file, name)


def test_name_is_given_once_even_when_revoked(file: Path) -> None:
    add_key(file, "first")
    revoke_key(file, "first")
    with pytest.raises(SettingsError, match="choose another name"):
        add_key(file, "first")
    with pytest.raises(SettingsError, match="revoked already"):
        revoke_key(file, "first")
    with pytest.raises(SettingsError, match="not in the file"):
        revoke_key(file, "second")


REQUESTS = [
    ("POST", "/api/check-email"), ("GET", "/api/quota"), ("POST", "/api/bulk-check-email"),
    ("GET", "/api/verification-result/0"), ("GET", "/api/verification-result"), ("GET", "/api/nothing"),
]  # fmt: skip


@asynchronous
async def test_request_without_a_valid_key_is_401_in_the_short_envelope(
    tmp_path: Path, file: Path
) -> None:
    key = add_key(file, "first")
    async with serving(tmp_path, key_file=str(file)) as world, world.client() as client:
        for method, path in REQUESTS:
            for headers in ({}, bearer("mv_x"), {"authorization": "Basic eDp5"}):
                reply = await client.request(method, path, headers=headers)
                assert reply.status_code == 401, (method, path)
                assert reply.headers["www-authenticate"] == "Bearer"
                body = reply.json()
                assert set(body) == {"error"}
                assert set(body["error"]) == {"code", "message"}
                assert body["error"]["code"] == "UNAUTHORIZED"
        twice = await client.get("/api/quota", headers=[("authorization", f"Bearer {key}")] * 2)
        assert twice.status_code == 401
        assert (await client.get("/healthz")).status_code == 200
        assert not world.backend.batches
    assert not any("mv_" in line for line in world.lines)


async def submitted_with(world: RunningService, key: str, *emails: str) -> list[str]:
    reply = await world.submit(list(emails), **bearer(key))
    assert reply.status_code == 202
    return [entry["job_id"] for entry in reply.json()["data"]["results"]]


@asynchronous
async def test_quota_and_results_belong_to_the_key(tmp_path: Path, file: Path) -> None:
    first, second = add_key(file, "first"), add_key(file, "second")
    async with serving(tmp_path, key_file=str(file), daily_limit=3) as world:
        jobs = await submitted_with(world, first, "ada@example.org", "bo@example.org")
        elsewhere = await world.get("/api/quota", address="192.0.2.77", **bearer(first))
        assert elsewhere.json() == {"daily_limit": 3, "used": 2, "remaining": 1}
        assert (await world.get("/api/quota", **bearer(second))).json()["used"] == 0
        own = await world.get(f"/api/verification-result/{jobs[0]}", **bearer(first))
        assert own.json()["data"]["job_id"] == jobs[0]
        foreign = await world.get(f"/api/verification-result/{jobs[0]}", **bearer(second))
        unknown = await world.get(f"/api/verification-result/{'0' * 32}", **bearer(second))
        assert foreign.status_code == unknown.status_code == 404
        assert foreign.json()["error"] == unknown.json()["error"]
        assert (await world.submit(["a@example.org"] * 2, **bearer(first))).status_code == 429
        assert (await world.submit(["a@example.org"] * 2, **bearer(second))).status_code == 202
    assert {json.loads(line)["client"] for line in world.lines} == {"key:first", "key:second"}


@asynchronous
async def test_document_describes_the_key_only_where_one_is_needed(
    tmp_path: Path, file: Path
) -> None:
    add_key(file, "first")
    async with serving(tmp_path, key_file=str(file)) as world:
        document = (await world.get("/openapi.json")).json()
    operation = document["paths"]["/api/quota"]["get"]
    assert operation["security"] == [{"clientKey": []}]
    assert "401" in operation["responses"]
    assert "security" not in document["paths"]["/healthz"]["get"]
    async with serving(tmp_path) as world:
        assert "securitySchemes" not in (await world.get("/openapi.json")).json()["components"]


@pytest.mark.slow
def test_remote_backend_sends_the_key(tmp_path: Path, file: Path) -> None:
    key = add_key(file, "first")
    settings = settings_for(tmp_path, key_file=str(file))
    with listening(create_app(settings, AnsweringBackend()), settings) as address:
        backend = mv.RemoteBackend(address.url, headers={"Authorization": f"Bearer {key}"})
        out = mv.verify(["ada@one.example"], backend=backend, validation_type="mx", journal=None)
        assert out["verdict"].tolist() == ["valid"]
        assert mv.quota(backend).used == 1
        with pytest.raises(mv.ServiceError, match="client key is missing") as caught:
            mv.quota(address.url)
        assert (caught.value.code, caught.value.status) == ("UNAUTHORIZED", 401)
        assert httpx.get(f"{address.url}/api/quota", headers=bearer(key)).json()["used"] == 1
