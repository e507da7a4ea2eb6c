"""What those who run the service see: health, metrics, access log."""

import asyncio
import json
from pathlib import Path

import pytest

from mailverdict.service.http.access import AccessLog
from mailverdict.service.http.metrics import CONTENT_TYPE, Metric, Metrics
from tests.service.scripted import ScriptedBackend
from tests.service.world import asynchronous, serving, until


@asynchronous
async def test_healthy_service_says_so_with_its_queue(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        reply = await world.get("/healthz")
        assert reply.status_code == 200
        assert reply.json() == {"status": "ok", "queue": {"waiting": 0, "verifying": 0, "postponed": 0}}


@asynchronous
async def test_service_whose_worker_has_stopped_is_failing(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        world.state.tasks[0].cancel()
        await until(world.state.tasks[0].done)
        reply = await world.get("/healthz")
        assert (reply.status_code, reply.json()["status"]) == (503, "failing")


@asynchronous
async def test_metrics_count_what_happened(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedBackend(), daily_limit=3) as world:
        await world.check()
        [job_id] = await world.submitted("a@example.org", validation_type="mx")
        await world.ended(job_id)
        await world.submit(["b@example.org"] * 5)
        reply = await world.get("/metrics")
        assert reply.headers["content-type"] == CONTENT_TYPE
        lines = reply.text.splitlines()
        assert 'mailverdict_http_requests_total{route="/api/check-email",status="200"} 1' in lines
        assert 'mailverdict_http_requests_total{route="/api/bulk-check-email",status="429"} 1' in lines
        assert 'mailverdict_verdicts_total{path="single",validation_type="regex",result="valid"} 1' in lines
        assert 'mailverdict_verdicts_total{path="bulk",validation_type="mx",result="valid"} 1' in lines
        assert 'mailverdict_jobs_ended_total{status="done"} 1' in lines
        assert 'mailverdict_refusals_total{code="QUOTA_EXCEEDED"} 1' in lines
        assert 'mailverdict_jobs{state="waiting"} 0' in lines
        assert job_id not in reply.text


def test_text_has_a_help_and_a_type_for_each_family_and_one_sample_a_line() -> None:
    metrics = Metrics()
    metrics.request("/a", 200, 0.003)
    text = metrics.render(Metric("x", "gauge", "An x.", [("", (("label", 'a"b\\c\nd'),), 1.5)]))
    assert text.endswith("\n")
    families: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            families.add(line.split()[2])
        elif not line.startswith("# TYPE "):
            name, value = line.rsplit(" ", 1)
            assert any(name.startswith(family) for family in families)
            float(value)
    assert 'mailverdict_x{label="a\\"b\\\\c\\nd"} 1.5' in text


def test_histogram_is_cumulative_and_ends_with_its_count() -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.001, 0.02, 500.0):
        metrics.request("/a", 200, seconds)
    lines = metrics.render().splitlines()
    buckets = [line for line in lines if line.startswith("mailverdict_http_request_seconds_bucket")]
    counts = [int(line.rsplit(" ", 1)[1]) for line in buckets]
    assert counts == sorted(counts)
    assert 'le="0.001"} 2' in buckets[0]
    assert buckets[-1].endswith('le="+Inf"} 4')
    assert 'mailverdict_http_request_seconds_count{route="/a"} 4' in lines


def test_large_counts_keep_their_digits() -> None:
    metrics = Metrics()
    metrics.jobs["done"] = 123_456_789
    assert 'mailverdict_jobs_ended_total{status="done"} 123456789' in metrics.render()


@asynchronous
async def test_access_log_has_a_line_of_json_for_each_request(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        await world.check("ada.lovelace@example.org", "mx")
        await world.submit(["grace@example.org", "broken@@"])
        await world.check("ada.lovelace@@")
        entries = [json.loads(line) for line in world.lines]
        assert [(e["method"], e["route"], e["status"]) for e in entries] == [
            ("POST", "/api/check-email", 200),
            ("POST", "/api/bulk-check-email", 202),
            ("POST", "/api/check-email", 400),
        ]
        assert (entries[0]["domain"], entries[0]["validation_type"]) == ("example.org", "mx")
        assert entries[1]["addresses"] == 2
        assert entries[2]["code"] == "EMAIL_REQUIRED"
        assert all(e["client"] == "192.0.2.1" and e["ms"] >= 0 and e["time"] for e in entries)


@asynchronous
async def test_access_log_has_the_request_id_of_the_reply(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        reply = await world.check()
        assert json.loads(world.lines[0])["request_id"] == reply.json()["meta"]["request_id"]


@pytest.mark.parametrize("path", ["/ada.lovelace@example.org", "/api/check-email?email=ada.lovelace@example.org"])
@asynchronous
async def test_access_log_never_holds_a_local_part_or_a_job_id(tmp_path: Path, path: str) -> None:
    async with serving(tmp_path) as world:
        await world.check("ada.lovelace@example.org")
        [job_id] = await world.submitted("ada.lovelace@example.org")
        await world.ended(job_id)
        await world.get(path)
        await world.check("ada.lovelace@nowhere")
        text = "\n".join(world.lines)
        assert "lovelace" not in text
        assert job_id not in text


@asynchronous
async def test_access_log_can_be_turned_off(tmp_path: Path) -> None:
    async with serving(tmp_path, access_log=False) as world:
        await world.check()
        assert world.lines == []


class Stream:
    """A text stream that counts its writes."""

    def __init__(self) -> None:
        self.writes: list[str] = []

    def write(self, text: str) -> None:
        self.writes.append(text)

    def flush(self) -> None:
        """Nothing is held back."""


@asynchronous
async def test_lines_of_a_moment_are_one_write() -> None:
    stream = Stream()
    lines = AccessLog(stream)
    for n in range(5):
        lines(str(n))
    assert stream.writes == []
    lines.flush()
    assert stream.writes == ["0\n1\n2\n3\n4\n"]
    lines.flush()
    assert len(stream.writes) == 1


@asynchronous
async def test_lines_are_written_without_anybody_asking() -> None:
    stream = Stream()
    AccessLog(stream, delay=0.001)("one")
    async with asyncio.timeout(10):
        while not stream.writes:
            await asyncio.sleep(0.001)
    assert stream.writes == ["one\n"]
