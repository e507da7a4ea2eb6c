"""The job of the page about orchestrators, run by Dagster."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from mailverdict.sandbox import World
from tests import ROOT
from tests.doubles.scripted_service import ScriptedService, payload
from tests.doubles.serving import serve
from tests.doubles.waiting import settled_in, wait_until

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("default")]
PAGE = ROOT / "docs" / "how-to" / "recipes" / "orchestrators.md"


@pytest.fixture
def job_file(tmp_path, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "yes")
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    path = tmp_path / "contacts_job.py"
    path.write_text(code)
    return path


@pytest.fixture
def execute(job_file):
    """Run the job in this process; its result, also if it failed."""
    spec = importlib.util.spec_from_file_location("contacts_job", job_file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def execute(*arguments, **config):
        return module.contacts.execute_in_process(
            run_config=run_config(*arguments, **config), raise_on_error=False
        )

    return execute


def run_config(*arguments, **config):
    return {
        "ops": {
            "verify_contacts": {
                "config": {"arguments": [str(each) for each in arguments], **config}
            }
        }
    }


def write_contacts(path, count):
    emails = [f"user{number}@plain.example" for number in range(count)]
    path.write_text("\n".join(["email", *emails, ""]))
    return emails


def statuses(path):
    with path.open(newline="") as file:
        return [row["email_status"] for row in csv.DictReader(file)]


def count_events(result, kind):
    return sum(event.event_type_value == kind for event in result.all_events)


def unknown_service():
    return ScriptedService(
        time.time,
        duration=lambda _: 0.0,
        verdict=lambda email, kind: payload(email, kind, "unknown", reasons=["mailbox_full"]),
    )


def test_a_run_that_verifies_all_succeeds_with_the_summary(execute, tmp_path):
    source, target = tmp_path / "contacts.csv", tmp_path / "verified.csv"
    write_contacts(source, 3)
    with World() as world:
        result = execute(
            source, "--backend", world.url, "--journal", tmp_path / "j.db", "-o", target
        )
    assert result.success
    summary = result.output_for_node("verify_contacts")
    assert (summary["rows"], summary["valid"], summary["cost"]["submitted"]) == (3, 3, 3)
    assert statuses(target) == ["done"] * 3


def test_data_beyond_a_limit_is_a_failure_without_a_retry(execute, tmp_path):
    source, target = tmp_path / "contacts.csv", tmp_path / "verified.csv"
    write_contacts(source, 3)
    with serve(unknown_service()) as url:
        result = execute(
            source, "-t", "smtp", "--backend", url, "--journal", tmp_path / "j.db", "-o", target,
            "--fail-above", "unknown=5%", seconds_to_wait=0,
        )  # fmt: skip
    assert not result.success
    assert (count_events(result, "STEP_UP_FOR_RETRY"), count_events(result, "STEP_FAILURE")) == (
        0,
        1,
    )
    assert "exit status 5" in str(
        result.get_step_failure_events()[0].step_failure_data.user_failure_data
    )
    assert statuses(target) == ["done"] * 3, "the table is written all the same"


def test_pending_rows_are_verified_by_a_later_attempt_of_the_same_run(execute, tmp_path):
    source, target = tmp_path / "contacts.csv", tmp_path / "verified.csv"
    write_contacts(source, 3)
    with World(daily_limit=2) as world:

        def begin_day():
            wait_until(target.exists)  # the first attempt has ended with exit status 3
            world.next_day()

        day = threading.Thread(target=begin_day)
        day.start()
        result = execute(
            source, "--backend", world.url, "--journal", tmp_path / "j.db", "-o", target, seconds_to_wait=0.1,
            max_retries=1000,
        )  # fmt: skip
        day.join()
    assert result.success
    assert count_events(result, "STEP_UP_FOR_RETRY") >= 1
    assert statuses(target) == ["done"] * 3
    assert result.output_for_node("verify_contacts")["cost"]["submitted"] == 1, (
        "the rest is from the journal"
    )


@pytest.mark.skipif(os.name != "posix", reason="terminates with SIGTERM")
def test_a_terminated_run_keeps_what_is_paid_for_and_the_next_one_goes_on(job_file, tmp_path):
    source, target, config = (
        tmp_path / name for name in ("contacts.csv", "verified.csv", "run.json")
    )
    emails = write_contacts(source, 10)
    config.write_text(
        json.dumps(
            run_config(source, "--backend", "URL", "--journal", tmp_path / "j.db", "-o", target)
        )
    )
    service = ScriptedService(time.time, duration=lambda email: 0.0 if email < "user5" else 1e9)
    with serve(service) as url:
        config.write_text(config.read_text().replace("URL", url))
        first = start(job_file, config)
        wait_until(lambda: first.poll() is not None or settled_in(tmp_path / "j.db") == 5)
        first.send_signal(signal.SIGTERM)
        _, messages = first.communicate(timeout=120)
        assert first.returncode == 1, messages
        assert "DagsterExecutionInterruptedError" in messages
        assert statuses(target) == ["done"] * 5 + ["pending"] * 5, messages
        service.duration = lambda _: 0.0
        second = start(job_file, config)
        _, messages = second.communicate(timeout=120)
        assert second.returncode == 0, messages
    assert statuses(target) == ["done"] * 10
    assert dict(service.paid) == dict.fromkeys(emails, 1)


def start(job_file, config):
    command = [
        sys.executable,
        "-m",
        "dagster",
        "job",
        "execute",
        "-f",
        job_file,
        "-a",
        "contacts",
        "-c",
        config,
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
