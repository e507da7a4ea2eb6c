"""The audit driven from Python, as the kernel would be from a page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.errors import ColumnError, SettingsError
from mailverdict.widgets import Audit
from mailverdict.widgets.listing import PAGE_ROWS
from tests.doubles.answering_backend import AnsweringBackend, unknown
from tests.doubles.clock import FastClock
from tests.widgets.conftest import QUICK, SLOW, press, ready, said, wait_for_settled
from tests.widgets.paced import Cable, paced_service, paid

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def remote(service, **options) -> mv.RemoteBackend:
    return mv.RemoteBackend(service.url, poll=QUICK, **options)


def finished(audit: Audit) -> Audit:
    press(audit._panel.form.go)
    audit.wait(30)
    return audit


def test_a_frame_is_taken_in_and_its_column_guessed(contacts):
    audit = ready(contacts, validation_type="regex")
    assert audit._panel.form.column.label == "E-Mail"
    assert "ada0@example.org" in audit._panel.form.examples.value
    assert "43 rows, 2 columns" in audit._panel.picker.taken.value
    assert audit.plan.unique == 40
    assert not audit._panel.form.go.disabled
    assert audit._panel.form.stop.disabled


def test_the_result_is_the_frame_with_all_result_columns(contacts):
    audit = finished(ready(contacts, validation_type="regex"))
    pd.testing.assert_frame_equal(audit.result[list(contacts.columns)], contacts)
    expected = mv.verify(contacts, "E-Mail", validation_type="regex", columns="all", clean=True)
    assert list(audit.result.columns) == list(expected.columns)
    assert audit.result["E-Mail_verdict"].equals(expected["E-Mail_verdict"])
    assert audit.run.progress.state == "done"
    assert "Done: 42 of 42" in audit._panel.form.state.value
    assert audit._panel.results.box.layout.display is None


def test_nothing_is_left_of_the_users_frame_but_itself(contacts):
    before = contacts.copy(deep=True)
    finished(ready(contacts, validation_type="regex"))
    pd.testing.assert_frame_equal(contacts, before)


def test_each_type_says_what_it_asks_and_what_valid_means():
    audit, meanings = Audit(), set()
    for kind in mv.ValidationType:
        audit._panel.form.kind.value = str(kind)
        meanings.add(audit._panel.form.asked.value)
    assert len(meanings) == 4
    assert all("valid means" in meaning for meaning in meanings)


def test_every_control_has_a_label_and_a_hint():
    audit = Audit()
    controls = [
        *(audit._panel.picker.upload, audit._panel.picker.path, audit._panel.picker.open, audit._panel.picker.encoding),
        *(audit._panel.form.column, audit._panel.form.kind, audit._panel.form.go, audit._panel.form.stop),
        *(
            audit._panel.results.policy,
            audit._panel.results.verdict,
            audit._panel.results.reason,
            audit._panel.results.action,
        ),
        *(audit._panel.results.search, audit._panel.results.number, audit._panel.results.back, audit._panel.results.on),
        *(audit._panel.results.which, audit._panel.results.format, audit._panel.results.make),
    ]
    assert all(control.description and control.tooltip for control in controls)
    assert not any(getattr(control, "icon", "") for control in controls), "icons come from a CDN under Voila"


def test_the_estimate_is_what_is_paid(contacts, service, tmp_path):
    audit = ready(contacts, remote(service), validation_type="smtp", journal=tmp_path / "j.db")
    plan = audit.plan
    assert (plan.rows, plan.missing, plan.malformed, plan.unique, plan.to_submit) == (43, 1, 1, 40, 40)
    assert plan.days == 1
    assert "1,000</b> of 1,000" in audit._panel.form.quota.value
    assert paid(service) == 0, "an estimate spends nothing"
    finished(audit)
    assert paid(service) == plan.to_submit
    assert "960</b> of 1,000" in audit._panel.form.quota.value
    assert audit.plan.known == 40


def test_a_cancelled_run_goes_on_where_it_stopped_and_pays_once(contacts, service, tmp_path):
    audit = ready(contacts, remote(service), validation_type="smtp", journal=tmp_path / "j.db")
    press(audit._panel.form.go)
    assert audit._panel.form.column.disabled, "nothing is changed under a run's feet"
    wait_for_settled(audit, 3)
    press(audit._panel.form.stop)
    audit.wait(30)
    partial = audit.result["E-Mail_status"].value_counts()
    assert audit.run.progress.state == "cancelled"
    assert partial["done"] >= 3
    assert partial["pending"] > 0
    assert audit._panel.results.listing.counts("bucket")["pending"] == partial["pending"]
    assert audit._panel.form.go.description == "Resume"
    assert audit.plan.to_submit == 0, "what is in flight has been paid for"
    finished(audit)
    assert audit.run.progress.state == "done"
    assert audit._panel.form.go.description == "Verify"
    assert paid(service) == 40


def test_a_new_kernel_resumes_from_the_journal(contacts, service, tmp_path):
    journal = tmp_path / "j.db"
    first = ready(contacts, remote(service), validation_type="smtp", journal=journal)
    press(first._panel.form.go)
    wait_for_settled(first, 3)
    first.run._interrupt()
    second = finished(ready(contacts, remote(service), validation_type="smtp", journal=journal))
    assert second.run.progress.from_journal >= 3
    assert second.run.progress.state == "done"
    assert paid(service) == 40
    first.wait(30)


def test_a_service_that_goes_away_leaves_a_message_a_partial_result_and_a_way_on(contacts, service, tmp_path):
    cable = Cable()
    backend = mv.RemoteBackend(service.url, poll=SLOW, transport=cable, clock=FastClock())
    audit = ready(contacts, backend, validation_type="smtp", journal=tmp_path / "j.db")
    press(audit._panel.form.go)
    wait_for_settled(audit, 3)
    cable.is_out = True
    audit.wait(30)
    assert audit.run.progress.state == "failed"
    assert service.url in said(audit)
    assert "What is settled is kept; press the button to go on." in said(audit)
    assert (audit.result["E-Mail_status"] == "done").sum() >= 3
    assert audit._panel.form.go.description == "Resume"
    cable.is_out = False
    finished(audit)
    assert audit.run.progress.state == "done"
    assert (audit.result["E-Mail_status"] == "done").sum() == 42
    assert paid(service) == 40


def test_without_an_estimate_the_button_asks_again_instead_of_spending(contacts, service, tmp_path):
    cable = Cable()
    cable.is_out = True
    audit = ready(contacts, remote(service, transport=cable), validation_type="smtp", journal=tmp_path / "j.db")
    assert audit.plan is None
    assert service.url in said(audit)
    assert audit._panel.form.go.description == "Try again"
    cable.is_out = False
    press(audit._panel.form.go)
    audit.wait(30)
    assert audit.run is None
    assert said(audit) == ""
    assert audit.plan.to_submit == 40
    assert audit._panel.form.go.description == "Verify"


def test_a_small_quota_is_shown_before_and_respected(contacts, tmp_path):
    with paced_service(0, daily_limit=30) as service:
        audit = ready(contacts, remote(service), validation_type="smtp", journal=tmp_path / "j.db")
        assert (audit.plan.remaining, audit.plan.days) == (30, 2)
        assert "the rest waits for another day" in audit._panel.form.estimate.value
        finished(audit)
        assert paid(service) == 30
    assert audit.run.progress.state == "stopped"
    assert "daily quota is used up" in said(audit)
    assert audit._panel.form.go.description == "Resume"


def test_a_limit_holds_for_each_press(contacts, service, tmp_path):
    audit = ready(contacts, remote(service), validation_type="smtp", journal=tmp_path / "j.db", limit=10)
    assert audit.plan.to_submit == 10
    finished(audit)
    assert paid(service) == 10
    finished(audit)
    assert paid(service) == 20


def test_this_machine_has_no_quota(contacts):
    with mv.sandbox.World() as world:
        audit = finished(ready(contacts, world.backend, validation_type="mx"))
    assert "no quota" in audit._panel.form.quota.value
    assert audit.plan.daily_limit is None
    assert audit.result["E-Mail_status"].value_counts()["done"] == 42
    assert audit._panel.form.go.description == "Verify", "there is no journal to resume from"


def test_another_column_and_type_are_worked_out_anew():
    audit = ready(pd.DataFrame({"mail": ["ada@example.org"], "also": ["nobody"]}), validation_type="regex")
    audit._panel.form.column.value = 1
    audit.wait(30)
    assert (audit.plan.malformed, audit.plan.unique) == (1, 0)
    finished(audit)
    assert "also_verdict" in audit.result.columns


def test_a_late_estimate_does_not_replace_a_newer_one():
    audit = ready(pd.DataFrame({"mail": ["ada@example.org"]}), validation_type="regex")
    call, shown = audit._panel.arguments(), audit._panel.form.estimate.value
    audit._panel.estimates += 1
    audit._panel.compute_estimate(audit._panel.estimates - 1, {**call, "data": pd.DataFrame({"mail": [None]})})
    assert audit._panel.form.estimate.value == shown
    assert audit.plan.unique == 1


def test_the_column_is_chosen_where_it_is_given(contacts):
    assert ready(contacts, column="name", validation_type="regex")._panel.form.column.label == "name"
    with pytest.raises(ColumnError, match="no column 'mail'"):
        Audit(contacts, column="mail")


def test_without_a_likely_column_one_is_asked_for():
    audit = ready(pd.DataFrame({"a": ["x"], "b": [2]}), validation_type="regex")
    assert audit._panel.form.column.value is None
    assert audit._panel.form.go.disabled
    assert "choose the one that holds them" in said(audit)
    audit._panel.form.column.value = 0
    audit.wait(30)
    assert said(audit) == ""
    assert audit.plan.malformed == 1


@pytest.mark.parametrize(
    "options",
    [{"validation_type": "deep"}, {"policy": "reckless"}, {"limit": -1}, {"screen": "x"}, {"backend": 3}, {"df": 3}],
)
def test_arguments_that_cannot_work_are_refused(options):
    with pytest.raises(SettingsError):
        Audit(**options)


def test_verifying_nothing_is_refused():
    with pytest.raises(SettingsError, match="load a table"):
        Audit().verify()


def test_a_new_table_clears_what_was_found(contacts):
    audit = finished(ready(contacts, validation_type="regex"))
    audit.load(pd.DataFrame({"mail": ["bob@example.org"]}))
    audit.wait(30)
    assert audit.result is None
    assert audit._panel.results.box.layout.display == "none"
    assert audit._panel.form.progress.value == ""


def test_a_column_that_is_not_ours_is_not_overwritten():
    audit = ready(pd.DataFrame({"mail": ["ada@example.org"], "mail_verdict": ["mine"]}), validation_type="regex")
    press(audit._panel.form.go)
    assert "already has a column" in said(audit)
    assert audit.run is None
    assert not audit._panel.form.go.disabled


def test_a_column_name_that_occurs_twice_is_reported():
    frame = pd.DataFrame([["ada@example.org", "bob@example.org"]], columns=["mail", "mail"])
    audit = ready(frame, validation_type="regex")
    assert "occurs 2 times" in said(audit)


def test_a_file_that_is_not_a_journal_is_reported_and_not_changed(contacts, service, tmp_path):
    journal = tmp_path / "j.db"
    journal.write_text("my diary, which is no journal of verifications; " * 40)
    audit = ready(contacts, remote(service), validation_type="smtp", journal=journal)
    assert "j.db" in said(audit)
    assert journal.read_text().startswith("my diary")
    assert paid(service) == 0


def test_an_error_of_ours_becomes_a_message_too(contacts, caplog):
    audit = ready(contacts, validation_type="regex")
    audit._panel.results.fill = lambda *_: 1 / 0
    finished(audit)
    assert "ZeroDivisionError" in said(audit)
    assert not audit._panel.form.go.disabled
    assert "the audit met an error" in caplog.text


def test_what_is_hostile_is_shown_as_text():
    frame = pd.DataFrame({SCRIPT: ["x"], "mail": [f"{SCRIPT}@example.org"]})
    audit = finished(ready(frame, column="mail", validation_type="regex"))
    audit._panel.results.search.value = SCRIPT
    parts = [
        audit._panel.picker.taken,
        audit._panel.form.examples,
        audit._panel.form.notice,
        audit._panel.form.state,
        audit._panel.results.place,
    ]
    assert all("<script" not in part.value and "<img" not in part.value for part in parts)
    table = audit._panel.results.table._dt_args
    assert "<script" not in table["table_html"] + table["data_json"]
    assert "&lt;script" in table["table_html"]
    assert "&lt;script" in table["data_json"]


def test_100_000_rows_stay_in_python():
    mails = [f"user{n}@example.org" if n % 50 else "bad" for n in range(100_000)]
    audit = finished(ready(pd.DataFrame({"id": range(100_000), "mail": mails}), validation_type="regex"))
    results = audit._panel.results
    assert len(audit.result) == 100_000
    assert results.number.max == 100_000 // PAGE_ROWS
    assert len(json.loads(results.table._dt_args["data_json"])) == PAGE_ROWS
    results.search.value = "user99999"
    assert [row[1] for row in json.loads(results.table._dt_args["data_json"])] == ["user99999@example.org"]
    results.search.value = ""
    assert len(json.dumps(results.table._dt_args)) < 10_000, "what the browser gets does not grow with the rows"


def test_filters_pages_and_policy_work_together(contacts):
    many = pd.DataFrame({"mail": [f"a{n}@example.org" for n in range(120)] + ["bad", "b@gmial.com"]})
    audit = finished(ready(many, validation_type="regex"))
    results = audit._panel.results
    assert results.verdict.options[1] == ("valid (121)", "valid")
    press(results.on)
    press(results.on)
    assert results.number.value == 3
    assert results.on.disabled
    press(results.on)
    assert results.number.value == 3
    results.verdict.value = "invalid"
    assert (results.number.value, len(results.rows)) == (1, 1)
    results.policy.value = "lenient"
    assert results.verdict.value == "invalid", "a filter survives another policy"
    assert results.listing.counts("action")["send"] == 121


def test_a_policy_of_ones_own_can_be_chosen(contacts):
    mine = mv.Policy("mine", send=["valid", "invalid"], drop=[])
    audit = finished(ready(contacts, validation_type="regex", policy=mine))
    assert audit._panel.results.policy.value == "mine"
    assert audit._panel.results.listing.counts("action")["send"] == 42


def test_the_file_holds_what_is_wanted_and_goes_when_it_is_outdated(contacts, tmp_path):
    audit = finished(ready(contacts, validation_type="regex", folder=tmp_path))
    results = audit._panel.results
    results.verdict.value = "invalid"
    results.which.value = "shown"
    press(results.make)
    audit.wait(30)
    assert 'download="emails-verified.csv"' in results.saved.value
    assert "1 rows" in results.saved.value
    results.verdict.value = ""
    assert results.saved.value == ""


def test_a_file_that_came_too_late_is_not_offered(contacts, tmp_path):
    results = finished(ready(contacts, validation_type="regex", folder=tmp_path))._panel.results
    results.write(results.files - 1, contacts, "old", "csv")
    assert results.saved.value == ""


def test_it_shows_itself_as_a_widget():
    bundle = Audit()._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_without_the_extra_it_says_what_to_install():
    program = "import sys; sys.modules['ipywidgets'] = None; import mailverdict as mv; mv.widgets"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parent)
    assert "MissingExtraError: the interactive audit needs an optional dependency" in ran.stderr
    assert "pip install 'mailverdict[widgets]'" in ran.stderr


def test_only_what_is_documented_is_offered_to_completion():
    offered = {name for name in dir(Audit()) if not name.startswith("_")}
    assert offered == {"cancel", "load", "plan", "result", "run", "verify", "wait"}


def test_a_run_without_verdicts_is_not_shown_as_a_success():
    emails = [f"u{i}@one.example" for i in range(6)]
    backend = AnsweringBackend({f"u{i}": unknown("rate_limited") for i in range(6)})
    audit = finished(ready(pd.DataFrame({"email": emails}), backend=backend, validation_type="smtp", journal=None))
    assert audit._panel.run.progress.state == "done"
    assert "6 of 6 addresses have no verdict" in said(audit)
    assert "mv-warned" in audit._panel.form.notice.value
