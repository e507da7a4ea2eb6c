"""What those who run the service see: health, metrics, access log."""

import asyncio
import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mailverdict.service.http.access import AccessLog
from mailverdict.service.http.metrics import CONTENT_TYPE, Metrics
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.service import asynchronous, serving, until


@asynchronous
async def test_healthy_service_says_so_with_its_queue(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        reply = await world.get("/healthz")
        assert reply.status_code == 200
        assert reply.json() == {
            "status": "ok",
            "store": "ok",
            "queue": {"waiting": 0, "verifying": 0, "postponed": 0},
        }


@asynchronous
async def test_service_whose_worker_has_stopped_is_failing(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        world.state.tasks[0].cancel()
        await until(world.state.tasks[0].done)
        reply = await world.get("/healthz")
        assert (reply.status_code, reply.json()["status"]) == (503, "failing")


def samples(text: str) -> dict[tuple, float]:
    """Every sample by its name and its labels; the text must be in Prometheus' format."""
    families = text_string_to_metric_families(text)
    return {
        (s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples
    }


@asynchronous
async def test_metrics_count_what_happened(tmp_path: Path) -> None:
    async with serving(tmp_path, AnsweringBackend(), daily_limit=3) as world:
        await world.check()
        [job_id] = await world.submitted("a@example.org", validation_type="mx")
        await world.ended(job_id)
        await world.submit(["b@example.org"] * 5)
        reply = await world.get("/metrics")
        assert reply.headers["content-type"] == CONTENT_TYPE
        found = samples(reply.text)
        requests = "mailverdict_http_requests_total"
        assert found[requests, ("route", "/api/check-email"), ("status", "200")] == 1
        assert found[requests, ("route", "/api/bulk-check-email"), ("status", "429")] == 1
        verdicts = "mailverdict_verdicts_total"
        assert (
            found[verdicts, ("path", "single"), ("result", "valid"), ("validation_type", "regex")]
            == 1
        )
        assert (
            found[verdicts, ("path", "bulk"), ("result", "valid"), ("validation_type", "mx")] == 1
        )
        assert found["mailverdict_jobs_ended_total", ("status", "done")] == 1
        assert found["mailverdict_refusals_total", ("code", "QUOTA_EXCEEDED")] == 1
        for state in ("waiting", "verifying", "postponed"):
            assert found["mailverdict_jobs", ("state", state)] == 0
        assert found[("mailverdict_checks",)] == 0
        assert 0 < found[("mailverdict_commits_total",)] <= found[("mailverdict_operations_total",)]
        assert found["mailverdict_http_request_seconds_count", ("route", "/api/check-email")] == 1
        assert job_id not in reply.text
        assert "_created" not in reply.text


@asynchronous
async def test_services_in_one_process_have_metrics_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with serving(tmp_path) as first, serving(tmp_path / "other") as second:
        await first.check()
        name = ("mailverdict_http_requests_total", ("route", "/api/check-email"), ("status", "200"))
        assert samples((await first.get("/metrics")).text)[name] == 1
        assert name not in samples((await second.get("/metrics")).text)


def test_histogram_is_cumulative_and_ends_with_its_count() -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.001, 0.02, 500.0):
        metrics.count_request("/a", 200, "", seconds)
    found = samples(metrics.render().decode())
    name = "mailverdict_http_request_seconds"
    counts = [
        found[f"{name}_bucket", ("le", bound), ("route", "/a")]
        for bound in ("0.001", "0.025", "180.0", "+Inf")
    ]
    assert counts == [2, 3, 3, 4]
    assert found[f"{name}_count", ("route", "/a")] == 4


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


@pytest.mark.parametrize(
    "path", ["/ada.lovelace@example.org", "/api/check-email?email=ada.lovelace@example.org"]
)
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
async def test_lines_within_the_delay_are_one_write() -> None:
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
async def test_lines_are_written_after_the_delay() -> None:
    stream = Stream()
    AccessLog(stream, delay=0.001)("one")
    async with asyncio.timeout(10):
        while not stream.writes:
            await asyncio.sleep(0.001)
    assert stream.writes == ["one\n"]
