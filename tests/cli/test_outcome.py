"""How a verification ends: limits and exit statuses, the JSON summary, and messages for an orchestrator."""

import json
from datetime import datetime

import pytest

import mailverdict as mv
from mailverdict.cli.outcome import FailLimit, parse_limits
from mailverdict.cli.status import LogFormat, ProgressLog, StatusLog
from mailverdict.errors import SettingsError
from mailverdict.frames.alike import Alike
from mailverdict.reports.counts import Counts
from mailverdict.runs.progress import Progress
from mailverdict.sandbox import World
from tests.doubles.tables import each_row


@pytest.fixture(scope="module")
def world():
    with World(daily_limit=2) as opened:
        yield opened


@pytest.fixture
def contacts(tmp_path):
    path = tmp_path / "contacts.csv"
    path.write_text("email,n\nada@gmail.com,1\nbob@gmial.com,2\nnobody,3\n,4\n")
    return path


class TestLimits:
    COUNTS = Counts()
    COUNTS.alike.update({Alike("valid"): 40, Alike("unknown"): 10, Alike("missing"): 50})

    @each_row(
        ("text", "excess"),
        [
            ("unknown=20%", None),  # of the 50 rows with an address
            ("unknown=19.9%", "unknown: 10 of 50 rows with an address (20%), more than 19.9%"),
            ("unknown=10", None),
            ("unknown=9", "unknown: 10 of 50 rows with an address, more than 9"),
            ("missing=50%", None),  # of all rows
            ("missing=49%", "missing: 50 of 100 rows (50%), more than 49%"),
            ("error=0", None),
        ],
    )
    def test_rows_are_compared_with_the_limit(self, text, excess):
        assert FailLimit.parse(text).excess(self.COUNTS) == excess

    def test_no_row_with_an_address_exceeds_no_share(self):
        counts = Counts()
        counts.alike[Alike("missing")] = 3
        assert FailLimit.parse("unknown=0%").excess(counts) is None

    @each_row(
        "text", ["unknown", "unknown=", "unknown=-1", "unknown=2.5", "unknown=101%", "bad=5%"]
    )
    def test_a_limit_that_cannot_be_read_is_refused(self, text):
        with pytest.raises(SettingsError, match="--fail-above"):
            FailLimit.parse(text)

    def test_several_limits_may_stand_in_one_option(self):
        assert [each.name for each in parse_limits(["unknown=5%,error=0", "pending=0"])] == [
            "unknown", "error", "pending",
        ]  # fmt: skip
        assert parse_limits(None) == []

    def test_an_exceeded_limit_is_status_5_after_everything_is_written(
        self, run, contacts, tmp_path
    ):
        out = tmp_path / "out.csv"
        verify = ("verify", contacts, "-c", "email", "-t", "regex", "-q", "-o", out)
        assert run(*verify, "--fail-above", "invalid=50%") == (0, "", "")
        status, _, err = run(*verify, "--fail-above", "invalid=30%", "--fail-above", "missing=0")
        assert status == 5
        assert err.splitlines() == [
            "mailverdict: invalid: 1 of 3 rows with an address (33.3%), more than 30%",
            "mailverdict: missing: 1 of 4 rows, more than 0",
        ]
        assert out.read_text().count("\n") == 5

    @pytest.mark.slow
    def test_the_quota_is_before_a_limit(self, run, contacts, world, tmp_path):
        contacts.write_text("email,n\n" + "".join(f"a{n}@gmail.com,{n}\n" for n in range(4)))
        status, out, _ = run(
            "verify", contacts, "-c", "email", "--backend", world.url, "--journal", tmp_path / "j.db", "--json",
            "--fail-above", "pending=0",
        )  # fmt: skip
        found = json.loads(out)
        assert (status, found["exit_status"]) == (3, 3)
        assert found["cost"] == {
            "submitted": 2, "newly_verified": 2, "from_journal": 0,
            "quota": {"daily_limit": 2, "used": 2, "remaining": 0},
        }  # fmt: skip
        assert found["exceeded"] == ["pending: 2 of 4 rows with an address, more than 0"]


def test_the_json_summary_names_what_was_read_written_and_used(run, contacts, tmp_path):
    out = tmp_path / "out.csv"
    status, printed, _ = run("verify", contacts, "-c", "email", "-t", "regex", "--json", "-o", out)
    found = json.loads(printed)
    assert status == found["exit_status"] == 0
    assert (found["input"], found["output"], found["report"]) == (str(contacts), str(out), None)
    assert (found["column"], found["validation_type"]) == ("email", "regex")
    assert found["cost"] == {
        "submitted": 0, "newly_verified": 3, "from_journal": 0, "quota": None,
    }  # fmt: skip
    assert found["seconds"] > 0
    assert found["versions"]["mailverdict"] == mv.__version__
    assert found["versions"]["lists"]["disposable"]


class TestMessages:
    def test_each_line_is_an_object(self, run, contacts):
        for place in (("--log-format", "json", "verify"), ("verify", "--log-format=json")):
            status, out, err = run(*place, contacts, "-t", "regex", "--fail-above", "invalid=0")
            lines = [json.loads(line) for line in err.splitlines()]
            assert (status, out) == (5, "")
            assert [line["level"] for line in lines] == ["info", "info", "error"]
            assert all(datetime.fromisoformat(line["time"]) for line in lines)
            assert lines[1]["summary"]["rows"] == 4
            assert lines[-1]["exit_status"] == 5

    def test_an_error_is_an_object_too(self, run):
        status, _, err = run("verify", "no.csv", "--log-format", "json")
        assert (status, json.loads(err)["message"]) == (2, "no.csv: no such file")

    def test_the_format_does_not_outlive_the_call(self, run):
        run("verify", "no.csv", "--log-format", "json")
        assert run("verify", "no.csv")[2] == "mailverdict: no.csv: no such file\n"

    def test_an_unknown_format_is_refused(self, run, monkeypatch):
        monkeypatch.setenv("MAILVERDICT_LOG_FORMAT", "xml")
        assert run("verify", "no.csv")[::2] == (
            2,
            "mailverdict: log-format is 'xml': give one of text, json\n",
        )

    def test_progress_without_a_terminal_is_a_line_now_and_then(self, capfd):
        now = [0.0]
        for form, shown in ((LogFormat.TEXT, "running: 2 of 5"), (LogFormat.JSON, '"settled": 2')):
            log = ProgressLog(StatusLog(form), seconds=60, clock=lambda: now[0])
            log(Progress(total=5, settled=1))
            assert capfd.readouterr().err == ""
            now[0] += 60
            log(Progress(total=5, settled=2))
            log(Progress(total=5, settled=3))
            err = capfd.readouterr().err
            assert err.count("\n") == 1
            assert shown in err
            assert "\r" not in err

    def test_a_run_without_a_terminal_writes_no_control_characters(self, run, contacts, world):
        resolver = world.backend.settings.resolver
        status, _, err = run("verify", contacts, "-c", "email", "-t", "mx", "--resolver", resolver)
        assert status == 0
        assert not [each for each in err if ord(each) < 32 and each != "\n"]
