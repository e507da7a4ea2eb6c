"""The audit from loading to a result, driven from Python as a page would drive it."""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.errors import ColumnError, InputError, SettingsError
from mailverdict.model.arrow import one_array
from mailverdict.widgets import Audit
from mailverdict.widgets.source import read_file
from mailverdict.widgets.state import AuditState
from tests.doubles.answering_backend import AnsweringBackend, unknown, valid
from tests.doubles.clock import FastClock
from tests.doubles.waiting import wait_until
from tests.widgets.conftest import (
    QUICK,
    SLOW,
    finished,
    message,
    new_audit,
    ready,
    result_of,
    shown,
    wait_for_settled,
)
from tests.widgets.paced import Cable, paced_service, paid


def remote(service, **options) -> mv.RemoteBackend:
    return mv.RemoteBackend(service.url, poll=QUICK, **options)


def primary(audit: AuditState) -> str:
    return shown(audit, "page")["primary"]


# --- the list --------------------------------------------------------------------------------------------------------


def test_a_frame_is_loaded_and_its_column_guessed(contacts):
    audit = ready(contacts, validation_type="regex")
    listed = shown(audit, "list")
    assert listed["columns"][listed["column"]] == "E-Mail"
    assert listed["preview"]["rows"][0] == ["Person 0", "ada0@example.org"]
    assert listed["size"] == "43 rows, 2 columns"
    assert listed["summary"] == "data frame · 43 rows · column E-Mail"
    assert audit.plan.unique == 40
    assert primary(audit) == "verify"


@pytest.mark.parametrize(
    "kind", [pl.from_pandas, pa.Table.from_pandas, lambda frame: frame["E-Mail"]]
)
def test_other_kinds_of_frame_are_loaded(contacts, kind):
    audit = finished(ready(kind(contacts), validation_type="regex"))
    assert result_of(audit)["E-Mail_verdict"].value_counts()["valid"] == 41


def test_the_column_can_be_given(contacts):
    assert shown(ready(contacts, column="name", validation_type="regex"), "list")["column"] == 0
    with pytest.raises(ColumnError, match="no column 'mail'"):
        Audit(contacts, column="mail")


def test_columns_of_the_user_that_are_named_like_results_are_kept_under_another_name():
    frame = pd.DataFrame(
        {
            "email": ["ada@example.org", "bob@example.org; cy@example.org"],
            "email_status": ["subscribed", "bounced"],
            "email_status_2": [1, 2],
            "email_source": ["fair", "shop"],
            "email_part": ["x", "y"],
        }
    )
    audit = ready(frame, validation_type="regex")
    assert shown(audit, "list")["remarks"] == [
        "Your column email_status is called email_status_3 here: a result has its name.",
        "Your column email_source is called email_source_2 here: a result has its name.",
        "Your column email_part is called email_part_2 here: a result has its name.",
    ]
    out = result_of(finished(audit))
    assert out["email_status_3"].tolist() == ["subscribed", "bounced", "bounced"]
    assert out["email_source_2"].tolist() == ["fair", "shop", "shop"]
    assert out["email_part_2"].tolist() == ["x", "y", "y"]
    assert out["email_status"].tolist() == ["done"] * 3


@pytest.mark.slow
def test_a_file_of_an_earlier_audit_is_verified_again_without_new_names(tmp_path):
    mails = [
        "ada@example.org",
        "ada@example.org",
        "bob@example.org",
        "cy@gmial.com",
        "Di <di@example.org>",
        None,
    ]
    audit = ready(pd.DataFrame({"mail": mails}), validation_type="regex")
    files = []
    audit.on_file = lambda name, path, by: files.append(path)
    for name in ("first.csv", "second.csv"):
        audit.suppress_pasted("bob@example.org")
        audit.work.wait(30)
        audit.set_repair("merge", is_on=True)
        audit.work.wait(30)
        audit.accept_all()
        audit.work.wait(30)
        finished(audit)
        assert shown(audit, "list")["remarks"] == []
        assert result_of(audit)["mail_change"].tolist()[3:5] == ["suggestion", "unwrapped"]
        audit.download("everything", "csv")
        audit.work.wait(30)
        shutil.copy(files[-1], tmp_path / name)
        audit.load(tmp_path / name)
        audit.work.wait(30)
    first, second = (
        pd.read_csv(tmp_path / f"{name}.csv").drop(columns="mail_checked_at")
        for name in ("first", "second")
    )
    pd.testing.assert_frame_equal(first, second, check_like=True)


@pytest.mark.parametrize("options", [{"validation_type": "regex"}, {"backend": AnsweringBackend()}])
def test_a_duplicate_with_a_remark_is_reviewed(options):
    frame = pd.DataFrame(
        {"mail": ["ada@example.org", "ada@example.org (please remove)", "Ada <ada@example.org>"]}
    )
    audit = ready(frame, **options)
    audit.set_repair("merge", is_on=True)
    audit.work.wait(30)
    listing = finished(audit).result.listing
    assert listing.counts.actions == {"send": 1, "review": 1, "retry": 0, "drop": 1, "unchecked": 0}
    decided = listing.decide()
    assert decided["mail_action"].tolist() == ["send", "review", "drop"]
    assert decided["mail_action_why"][1] == "a remark in the cell: please remove"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_duplicates_of_an_earlier_file_are_removed_only_on_request(kind, tmp_path):
    audit = ready(
        pd.DataFrame({"mail": ["ada@example.org", "bob@example.org", "ADA@EXAMPLE.org"]}),
        validation_type="regex",
    )
    audit.set_repair("merge", is_on=True)
    audit.work.wait(30)
    finished(audit)
    assert audit.result.listing.counts.actions["drop"] == 1
    files = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download("everything", kind)
    audit.work.wait(30)
    table = read_file(files[0]).frame.iloc[1:]  # without the row that the other one repeats
    again = finished(ready(table, validation_type="regex"))
    assert again.result.listing.counts.actions["drop"] == 0
    decided = again.result.listing.decide()
    assert decided["mail_action"].tolist() == ["send", "send"]


@pytest.mark.slow
def test_the_rest_of_an_edited_set_of_result_columns_is_kept_under_other_names():
    frame = pd.DataFrame({"mail": ["Ada <ada@example.org>", "bob@example.org"]})
    edited = result_of(finished(ready(frame, validation_type="regex"))).assign(
        mail_change=["moved", "called"]
    )
    edited.attrs = {}  # as in a file
    audit = finished(ready(edited, validation_type="regex"))
    assert message(audit, "tidy") == ""
    out = result_of(audit)
    assert out["mail_change_2"].tolist() == ["moved", "called"]
    assert out["mail_change"].tolist() == ["unwrapped", ""]


def test_without_a_likely_column_one_is_asked_for():
    audit = ready(pd.DataFrame({"a": ["x"], "b": [2]}), validation_type="regex")
    assert shown(audit, "list")["column"] is None
    assert "choose the one that holds them" in message(audit, "list")
    assert primary(audit) == "choose"
    audit.choose_column(0)
    audit.work.wait(30)
    assert message(audit, "list") == ""
    assert audit.plan.malformed == 1


def test_a_file_that_cannot_be_read_leaves_the_list_before_it_and_says_why(contacts, tmp_path):
    audit = finished(ready(contacts, validation_type="regex"))
    before = shown(audit, "list")["summary"]
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    audit.load_file(tmp_path / "picture.csv", "picture.csv")
    audit.work.wait(30)
    said = message(audit, "list")
    assert "picture.csv is not a text table but a picture" in said
    assert said.endswith("data frame stays loaded.")
    assert shown(audit, "list")["summary"] == before
    assert len(result_of(audit)) == len(contacts)
    with pytest.raises(InputError, match="no such file"):
        audit.load(tmp_path / "nowhere.csv")
    assert audit.plan is not None


def test_a_first_file_that_cannot_be_read_leaves_nothing_loaded(tmp_path):
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    audit = new_audit(validation_type="regex")
    audit.load_file(tmp_path / "picture.csv", "picture.csv")
    audit.work.wait(30)
    assert (shown(audit, "list")["summary"], audit.plan) == ("", None)
    assert shown(audit, "list")["can_read_again"]
    assert shown(audit, "page")["line"] is None


def test_a_file_is_read_again_with_another_encoding_or_header(tmp_path):
    file = tmp_path / "old.csv"
    file.write_bytes("ada@example.org;Jürgen\nbob@example.org;Zoë\n".encode("cp1252"))
    audit = ready(file, validation_type="regex")
    assert shown(audit, "list")["size"] == "2 rows, 2 columns"
    audit.read_again("mac-roman", "yes", "")
    audit.work.wait(30)
    assert shown(audit, "list")["size"] == "1 row, 2 columns"
    assert shown(audit, "list")["encoding"] == "mac-roman"
    audit.load_pasted("ada@example.org")
    audit.work.wait(30)
    assert shown(audit, "list")["encoding"] == "", (
        "what was chosen for one file does not apply to the next"
    )


@pytest.mark.slow
def test_another_sheet_of_a_workbook_is_read(tmp_path):
    file = tmp_path / "club.xlsx"
    with pd.ExcelWriter(file) as book:
        pd.DataFrame({"mail": ["ada@example.org", "bob@example.org"]}).to_excel(
            book, sheet_name="Members", index=False
        )
        pd.DataFrame({"e-mail": ["cy@example.org"]}).to_excel(
            book, sheet_name="Former", index=False
        )
        pd.DataFrame().to_excel(book, sheet_name="Empty", index=False)
    audit = ready(file, validation_type="regex")
    found = shown(audit, "list")
    assert (
        "only sheet 'Members' (the first with a column of addresses) is read, and not 'Former', 'Empty'"
        in found["remarks"]
    )
    assert (found["sheet"], [each["id"] for each in found["sheets"]]) == (
        "Members",
        ["Members", "Former", "Empty"],
    )
    for sheet, header, rows in (("Former", "", 1), ("Former", "no", 2)):
        audit.read_again("", header, sheet)
        audit.work.wait(30)
        assert (shown(audit, "list")["sheet"], audit.plan.rows) == (sheet, rows)
        assert shown(audit, "page")["open"]["list"], "choosing a sheet does not fold the step"
    audit.read_again("", "", "Empty")
    audit.work.wait(30)
    assert shown(audit, "list")["kind"] == "failed"
    assert len(shown(audit, "list")["sheets"]) == 3, "another can be chosen"
    audit.load_pasted("ada@example.org")
    audit.work.wait(30)
    assert (shown(audit, "list")["sheet"], shown(audit, "list")["sheets"]) == ("", [])


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("ada@example.org\n\nbob@example.org\n", 2),
        ("ada@example.org, bob@example.org; cy@example.org", 3),
        ("name\tmail\nAda\tada@example.org\nBob\tbob@example.org\n", 2),
        ("Ada Lovelace <ada@example.org>", 1),
    ],
)
def test_a_list_can_be_pasted(text, rows):
    audit = new_audit(validation_type="regex")
    audit.load_pasted(text)
    audit.work.wait(30)
    assert audit.plan.rows == rows
    assert audit.plan.malformed == 0


def test_paths_can_be_forbidden(tmp_path):
    (tmp_path / "mails.csv").write_text("mail\nada@example.org\n")
    audit = new_audit(allow_paths=False)
    with pytest.raises(SettingsError, match="cannot be opened by their path"):
        audit.load_path(str(tmp_path / "mails.csv"))


def test_a_new_list_clears_result_filters_and_choices(contacts):
    audit = finished(ready(contacts, validation_type="regex"))
    audit.result.set_facet("verdict", "invalid")
    audit.set_repair("merge", False)
    audit.load(pd.DataFrame({"mail": ["bob@example.org"]}))
    audit.work.wait(30)
    assert result_of(audit) is None
    assert not shown(audit, "decide")["is_ready"]
    assert audit.choices.merge
    assert not shown(finished(audit), "decide")["is_filtered"]


def test_a_column_name_that_occurs_twice_is_reported():
    audit = ready(pd.DataFrame([["ada@example.org", "bob@example.org"]], columns=["mail", "mail"]))
    assert "occurs 2 times" in message(audit, "list")


# --- the check -------------------------------------------------------------------------------------------------------


def test_the_result_is_the_frame_with_all_result_columns(contacts):
    before = contacts.copy(deep=True)
    audit = finished(ready(contacts, validation_type="regex"))
    pd.testing.assert_frame_equal(result_of(audit)[list(contacts.columns)], before)
    pd.testing.assert_frame_equal(contacts, before)
    expected = mv.verify(contacts, "E-Mail", validation_type="regex", columns="all")
    added = ["E-Mail_duplicate_of", "E-Mail_copies"]  # one mail is sent to a mailbox
    own, results = list(contacts.columns), list(expected.columns)[contacts.shape[1] :]
    assert list(result_of(audit).columns) == [*own, *added, *results]
    assert result_of(audit)["E-Mail_verdict"].equals(expected["E-Mail_verdict"])
    assert audit.check.run.progress.state == "done"
    assert shown(audit, "check")["progress"]["label"] == "42 of 42 rows checked"
    assert primary(audit) == "send"


def test_the_primary_button_can_be_pressed_when_no_row_can_be_mailed():
    audit = finished(
        ready(pd.DataFrame({"mail": ["nobody", "no one"]}), column="mail", validation_type="regex")
    )
    assert primary(audit) == "everything"


def test_each_depth_says_in_plain_words_what_it_does_and_what_valid_means():
    depths = shown(new_audit(), "check")["depths"]
    assert [each["label"] for each in depths] == [
        "Format only",
        "Domain can receive mail",
        "… and is not on a blacklist",
        "Mailbox exists",
    ]
    assert all(each["means"].startswith("Valid: ") for each in depths)


def test_the_estimate_is_what_is_paid(contacts, service, tmp_path):
    audit = ready(contacts, remote(service), validation_type="smtp", journal=tmp_path / "j.db")
    plan = audit.plan
    assert (plan.rows, plan.missing, plan.malformed, plan.unique, plan.to_submit) == (
        43,
        1,
        1,
        40,
        40,
    )
    cost = shown(audit, "check")["plan"]
    assert [f"{each['number']} {each['unit']}" for each in cost["figures"]] == [
        "43 rows",
        "40 addresses",
        "40 addresses",
    ]
    assert "Costs 40 addresses of the quota (1,000 of 1,000 addresses left today)" in cost["cost"]
    assert "1 row is empty" in cost["notes"][0]
    assert paid(service) == 0, "an estimate spends nothing"
    finished(audit)
    assert shown(audit, "check")["summary"].startswith(
        "Mailbox exists · 41 different entries checked by "
    ), "one is not an address"
    assert paid(service) == plan.to_submit
    assert "960 of 1,000 addresses left today" in shown(audit, "check")["plan"]["cost"]
    assert audit.plan.known == 40


def test_a_paused_run_goes_on_where_it_stopped_and_pays_once(contacts, service, tmp_path):
    audit = ready(contacts, remote(service), validation_type="smtp", journal=tmp_path / "j.db")
    audit.set_repair("merge", is_on=False)
    audit.work.wait(30)
    audit.verify()
    assert primary(audit) == "pause"
    with pytest.raises(SettingsError, match="pause it first"):
        audit.choose_column(0)
    wait_for_settled(audit, 9)
    audit.pause()
    audit.work.wait(30)
    partial = result_of(audit)["E-Mail_status"].value_counts()
    assert audit.check.run.progress.state == "cancelled"
    assert partial["done"] >= 3
    assert partial["pending"] > 0
    assert f"{partial['pending']} rows not checked yet." in shown(audit, "decide")["unclear"]
    assert message(audit) == "Paused. What is checked so far is kept. Press Resume to go on."
    assert shown(audit, "check")["button"] == {"label": "Resume", "enabled": True, "why": ""}
    assert audit.plan.to_submit == 0, "what is in flight has been paid for"
    finished(audit)
    assert audit.check.run.progress.state == "done"
    assert paid(service) == 40


@pytest.mark.slow
def test_a_check_without_a_journal_of_the_user_can_be_paused_too(contacts):
    with mv.sandbox.World() as world:
        audit = ready(contacts, world.backend, validation_type="mx")
        audit.verify()
        audit.pause()
        audit.work.wait(30)
        assert audit.can_resume()
        finished(audit)
    assert result_of(audit)["E-Mail_status"].value_counts()["done"] == 42
    assert shown(audit, "check")["plan"]["cost"] == "Costs nothing: this computer asks."


def test_a_new_kernel_resumes_from_the_journal(contacts, service, tmp_path):
    journal = tmp_path / "j.db"
    first = ready(contacts, remote(service), validation_type="smtp", journal=journal)
    first.verify()
    wait_for_settled(first, 3)
    first.check.run._interrupt()
    second = finished(ready(contacts, remote(service), validation_type="smtp", journal=journal))
    assert second.check.run.progress.from_journal >= 3
    assert second.check.run.progress.state == "done"
    assert paid(service) == 40
    first.work.wait(30)


def test_a_service_that_goes_away_leaves_a_message_a_partial_result_and_a_way_on(
    contacts, service, tmp_path
):
    cable = Cable()
    backend = mv.RemoteBackend(service.url, poll=SLOW, transport=cable, clock=FastClock())
    audit = ready(contacts, backend, validation_type="smtp", journal=tmp_path / "j.db")
    audit.verify()
    wait_for_settled(audit, 9)
    cable.is_out = True
    audit.work.wait(30)
    assert audit.check.run.progress.state == "failed"
    assert service.url in message(audit)
    assert message(audit).startswith(f"The verification service at {service.url} does not answer. ")
    assert "What is checked so far is kept. Press Resume when it is back." in message(audit)
    assert (result_of(audit)["E-Mail_status"] == "done").sum() >= 3
    assert shown(audit, "check")["button"]["label"] == "Resume"
    cable.is_out = False
    finished(audit)
    assert audit.check.run.progress.state == "done"
    assert (result_of(audit)["E-Mail_status"] == "done").sum() == 42
    assert paid(service) == 40


def test_without_an_estimate_the_button_asks_again_instead_of_spending(
    contacts, service, tmp_path, caplog
):
    cable = Cable()
    cable.is_out = True
    audit = ready(
        contacts,
        remote(service, transport=cable),
        validation_type="smtp",
        journal=tmp_path / "j.db",
    )
    assert audit.plan is None
    assert message(audit) == (
        f"The verification service at {service.url} does not answer. "
        "The cost is not known until the service answers. Check its address and your connection, then try again."
    )
    assert f"GET {service.url}/api/quota: no connection" in caplog.text
    assert primary(audit) == "plan"
    assert not shown(audit, "check")["button"]["enabled"]
    cable.is_out = False
    audit.make_plan_again()
    audit.work.wait(30)
    assert audit.check.run is None
    assert message(audit) == ""
    assert audit.plan.to_submit == 40
    assert primary(audit) == "verify"


@pytest.mark.slow
def test_a_quota_that_ends_is_shown_before_and_disables_resume_after(contacts, tmp_path):
    with paced_service(0, daily_limit=30) as service:
        audit = ready(contacts, remote(service), validation_type="smtp", journal=tmp_path / "j.db")
        assert (audit.plan.remaining, audit.plan.days) == (30, 2)
        assert (
            "on 2 days: come back after 00:00 UTC each day and press Resume"
            in shown(audit, "check")["plan"]["cost"]
        )
        finished(audit)
        assert paid(service) == 30
    check = shown(audit, "check")
    assert audit.check.run.progress.state == "stopped"
    assert (
        message(audit)
        == "Today's quota is used up. 10 addresses left to check. Press Resume after 00:00 UTC."
    )
    why = "today's quota is used up"
    assert check["button"] == {"label": "Resume", "enabled": False, "why": why}
    assert check["quota_over"].startswith(
        "Today's quota is used up. Press Resume after 00:00 UTC ("
    )
    assert primary(audit) == "send", "what is checked so far can be used"


@pytest.mark.slow
def test_a_limit_holds_for_each_press(contacts, service, tmp_path):
    audit = ready(
        contacts, remote(service), validation_type="smtp", journal=tmp_path / "j.db", limit=10
    )
    assert audit.plan.to_submit == 10
    finished(audit)
    assert paid(service) == 10
    finished(audit)
    assert paid(service) == 20


@pytest.mark.slow
def test_a_changed_setting_marks_the_result_until_it_is_verified_again(contacts):
    audit = finished(ready(contacts, validation_type="regex"))
    assert shown(audit, "decide")["title"] == "data frame · column E-Mail"
    assert shown(audit, "decide")["check"].startswith("Format only, by this computer, ")
    assert shown(audit, "decide")["outdated"] == ""
    for change in (
        lambda: audit.choose_column(0),
        lambda: audit.choose_column(1),
        lambda: audit.set_repair("merge", False),
    ):
        change()
        audit.work.wait(30)
    assert "From the earlier setting" in shown(audit, "decide")["outdated"]
    assert primary(audit) == "verify"
    audit.set_repair("merge", True)
    audit.work.wait(30)
    assert shown(audit, "decide")["outdated"] == "", "it is the setting of the result again"
    audit.set_repair("merge", False)
    finished(audit)
    assert shown(audit, "decide")["outdated"] == ""


@pytest.mark.parametrize(
    "options",
    [
        {"validation_type": "deep"},
        {"policy": "reckless"},
        {"limit": -1},
        {"screen": "x"},
        {"backend": 3},
        {"df": 3},
    ],
)
def test_arguments_that_cannot_work_are_refused(options):
    with pytest.raises(SettingsError):
        Audit(**options)


def test_verifying_nothing_is_refused():
    with pytest.raises(SettingsError, match="load a table"):
        Audit().verify()


def test_a_file_that_is_not_a_journal_is_reported_and_not_changed(contacts, service, tmp_path):
    journal = tmp_path / "j.db"
    journal.write_text("my diary, which is not a journal of verifications; " * 40)
    audit = ready(contacts, remote(service), validation_type="smtp", journal=journal)
    assert "j.db" in message(audit)
    assert journal.read_text().startswith("my diary")
    assert paid(service) == 0


def test_an_error_of_ours_becomes_a_message_too(contacts, caplog):
    audit = ready(contacts, validation_type="regex")
    audit.show_result = lambda *_: 1 / 0
    finished(audit)
    assert "ZeroDivisionError" in message(audit)
    assert "the audit met an error" in caplog.text


def test_a_run_without_verdicts_is_not_shown_as_a_success():
    emails = [f"u{i}@one.example" for i in range(6)]
    backend = AnsweringBackend({f"u{i}": unknown("rate_limited") for i in range(6)})
    audit = finished(
        ready(
            pd.DataFrame({"email": emails}), backend=backend, validation_type="smtp", journal=None
        )
    )
    assert audit.check.run.progress.state == "done"
    assert "6 of 6 addresses have no verdict" in message(audit)
    assert shown(audit, "check")["kind"] == "warned"
    decide = shown(audit, "decide")
    assert decide["unclear"] == (
        "6 rows have no clear answer yet: they are Unknown. Verify again, best in about 1 minute: no answer is kept, so all rows are checked "
        "again."
    )
    assert not decide["can_ask_again"]
    assert shown(audit, "check")["button"]["label"] == "Verify again"


# --- the rest --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_snapshots_are_json_and_do_not_grow_with_the_rows():
    script = "<script>alert(1)</script>" * 50
    mails = [f"user{n}@example{n}.org" if n % 50 else script for n in range(20_000)]
    audit = finished(
        ready(pd.DataFrame({script: range(20_000), "mail": mails}), validation_type="regex")
    )
    sizes = {
        name: len(json.dumps(shown(audit, name)))
        for name in ("list", "tidy", "check", "decide", "page")
    }
    assert sum(sizes.values()) < 60_000, sizes
    assert len(shown(audit, "decide")["table"]["rows"]) == 50


def test_it_shows_itself_as_a_widget():
    assert "application/vnd.jupyter.widget-view+json" in Audit()._repr_mimebundle_()[0]


@pytest.mark.slow
def test_without_the_extra_it_says_what_to_install():
    program = "import sys; sys.modules['anywidget'] = None; import mailverdict as mv; mv.widgets"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parent
    )
    assert "MissingExtraError: the interactive audit needs an optional dependency" in ran.stderr
    assert "pip install 'mailverdict[widgets]'" in ran.stderr


def test_it_can_be_driven_from_other_cells():
    audit = Audit(pd.DataFrame({"mail": ["ada@example.org", "nobody"]}), validation_type="regex")
    assert audit.result is None
    audit.verify()
    audit.wait(30)
    assert audit.plan.rows == 2
    assert audit.run.done()
    assert audit.result["mail_verdict"].tolist() == ["valid", "invalid"]
    audit.load(pd.Series(["bob@example.org"], name="mail"))
    audit.cancel()
    assert audit.result is None


def test_only_what_is_documented_is_offered_to_completion():
    offered = {name for name in dir(Audit()) if not name.startswith("_")}
    assert offered == {"cancel", "load", "plan", "result", "run", "verify", "wait"}


def test_the_rows_of_a_run_are_kept_once():
    mails = ["Ada <ada@example.org>", "bob@example.org", "nobody", None, "ada@gmial.com"]
    audit = finished(ready(pd.DataFrame({"mail": mails}), validation_type="regex"))
    prepared = audit.prepared
    assert audit.check.run.result().equals(result_of(audit))
    assert not len(audit.check.run._execution.addresses)
    table = audit.result.listing.rows.table
    columns = (table["clean"], audit.prepared.read["text"], audit.prepared.base.repaired["text"])
    assert len({one_array(each).buffers()[2].address for each in columns}) == 1
    assert table["clean"].to_pylist() == [
        "ada@example.org",
        "bob@example.org",
        None,
        None,
        "ada@gmial.com",
    ]
    audit.set_depth("regex")
    audit.work.wait(30)
    assert audit.prepared is prepared, "the depth changes nothing about the list"


def test_normal_forms_are_those_of_verify_whether_they_differ_from_the_address_or_not():
    mails = [
        "ada@example.org",
        "Support@Example.org",
        "bob@müller.de",
        "nobody",
        None,
        "Eve <EVE@example.org>",
    ]
    frame = pd.DataFrame({"mail": mails})
    audit = finished(ready(frame, validation_type="regex"))
    expected = mv.verify(frame, "mail", validation_type="regex", columns="all")
    assert result_of(audit)["mail_normalized"].equals(expected["mail_normalized"])
    assert result_of(audit)["mail_normalized"].notna().tolist() == [
        True,
        True,
        True,
        False,
        False,
        True,
    ]
    assert (expected["mail_normalized"] != expected["mail_clean"]).fillna(value=False).any()


def test_an_empty_normal_form_of_a_service_stays_as_it_is():
    answers = {"ada": lambda email, kind: replace(valid(email, kind), metadata={"normalized": ""})}
    mails = ["ada@example.org", "bob@example.org", "nobody"]
    audit = finished(ready(pd.DataFrame({"mail": mails}), AnsweringBackend(answers), journal=None))
    expected = mv.verify(mails, backend=AnsweringBackend(answers), columns="all", journal=None)[
        "normalized"
    ]
    assert expected.fillna("none").tolist() == ["", "bob@example.org", "none"]
    assert (
        result_of(audit)["mail_normalized"].fillna("none").tolist()
        == expected.fillna("none").tolist()
    )


@pytest.mark.slow
def test_a_new_list_releases_the_run_on_the_list_before():
    frame = pd.DataFrame({"mail": ["ada@example.org"]})
    audit = finished(ready(frame, validation_type="regex"))
    run = weakref.ref(audit.check.run)
    audit.load(pd.DataFrame({"mail": ["bob@example.org"]}))
    audit.work.wait(30)
    gc.collect()
    assert (audit.check.run, run()) == (None, None)


def ask_again(audit: AuditState) -> None:
    audit.ask_again()
    audit.work.wait(30)


@pytest.mark.slow
def test_ask_again_checks_only_the_addresses_without_a_clear_answer(tmp_path):
    backend = AnsweringBackend({"ada": unknown("timeout"), "bob": unknown("greylisted")})
    frame = pd.DataFrame({"mail": [f"{name}@one.example" for name in ("ada", "bob", "cy", "di")]})
    audit = finished(
        ready(frame, backend=backend, validation_type="smtp", journal=tmp_path / "j.db")
    )
    decide, check = shown(audit, "decide"), shown(audit, "check")
    assert decide["unclear"] == (
        "2 rows have no clear answer yet: they are Unknown. “Ask again” checks only the 2 different "
        "addresses behind them, best in about 5 minutes. Clear answers are kept for 30 days and "
        "cost nothing."
    )
    assert decide["can_ask_again"]
    assert (check["button"]["label"], check["can_refresh"]) == ("Verify again", False)
    backend.script.clear()
    asked = len(backend.batches)
    ask_again(audit)
    assert [sorted(emails) for _, emails in backend.batches[asked:]] == [
        ["ada@one.example", "bob@one.example"]
    ]
    assert result_of(audit)["mail_verdict"].tolist() == ["valid"] * 4
    decide = shown(audit, "decide")
    assert (decide["unclear"], decide["can_ask_again"]) == ("", False)
    assert shown(audit, "check")["is_refreshing"] is False
    with pytest.raises(SettingsError, match="nothing to ask again"):
        audit.ask_again()


@pytest.mark.slow
def test_what_asking_again_costs_is_said_and_a_quota_that_is_used_up_starts_nothing(contacts):
    with paced_service(0, daily_limit=45) as service:
        audit = finished(ready(contacts, remote(service), validation_type="smtp"))
        assert "It costs up to 10 addresses of the quota." in shown(audit, "decide")["unclear"]
        ask_again(audit)
        assert message(audit).startswith("Today's quota is used up.")
        assert paid(service) == 45
        audit.set_refresh(False)
        audit.work.wait(30)
        finished(audit)
        ask_again(audit)
        assert (
            message(audit, "decide") == "Today's quota is used up. Press Ask again after 00:00 UTC."
        )
        assert result_of(audit)["E-Mail_status"].eq("pending").sum() == 0


@pytest.mark.slow
def test_a_service_that_is_away_when_asked_again_is_a_message_beside_the_button(contacts, tmp_path):
    with paced_service(0) as service:
        audit = finished(
            ready(contacts, remote(service), validation_type="smtp", journal=tmp_path / "j.db")
        )
    ask_again(audit)
    assert "does not answer. The cost is not known until the service answers." in message(
        audit, "decide"
    )
    assert shown(audit, "decide")["kind"] == "failed"
    assert result_of(audit)["E-Mail_verdict"].value_counts()["valid"] == 11


@pytest.mark.slow
def test_resume_goes_on_with_a_paused_run_that_asked_again(contacts, tmp_path):
    with paced_service(0.05) as service:
        audit = finished(
            ready(contacts, remote(service), validation_type="smtp", journal=tmp_path / "j.db")
        )
        before = paid(service)
        audit.ask_again()
        wait_until(lambda: audit.check.run is not None and audit.check.is_running)
        wait_for_settled(audit, 33)
        audit.pause()
        audit.work.wait(30)
        check = shown(audit, "check")
        assert check["button"]["label"] == "Resume"
        assert (check["is_refreshing"], check["can_refresh"]) == (True, True)
        left = int(result_of(audit)["E-Mail_status"].eq("pending").sum())
        assert 0 < left < 10
        finished(audit)
        assert paid(service) - before == 10, "each address is asked again once, in two parts"
        assert audit.check.run.progress.state == "done"
        assert shown(audit, "check")["is_refreshing"] is False


@pytest.mark.slow
def test_a_list_with_earlier_answers_offers_to_ask_again_before_the_first_run(tmp_path):
    backend = AnsweringBackend({"ada": unknown("timeout")})
    frame = pd.DataFrame({"mail": ["ada@one.example", "bob@one.example"]})
    finished(ready(frame, backend=backend, validation_type="smtp", journal=tmp_path / "j.db"))
    audit = ready(frame, backend=backend, validation_type="smtp", journal=tmp_path / "j.db")
    check = shown(audit, "check")
    assert (check["can_refresh"], check["is_refreshing"]) == (True, False)
    assert check["plan"]["figures"][2]["number"] == "0"
    audit.set_refresh(True)
    audit.work.wait(30)
    assert shown(audit, "check")["plan"]["figures"][2]["number"] == "1"
    backend.script.clear()
    finished(audit)
    assert result_of(audit)["mail_verdict"].tolist() == ["valid", "valid"]
    assert [emails for _, emails in backend.batches[1:]] == [["ada@one.example"]]
    assert shown(audit, "check")["is_refreshing"] is False


@pytest.mark.slow
def test_a_run_that_nobody_looks_at_submits_nothing_more_and_collects_what_was_sent(
    contacts, tmp_path
):
    with paced_service(0.01) as service:
        audit = ready(
            contacts, remote(service, pace=10.0), validation_type="smtp", journal=tmp_path / "j.db"
        )
        audit.verify()
        wait_for_settled(audit, 9)
        audit.check.pause_unseen()
        audit.check.pause_unseen()
        audit.work.wait(60)
        spent = paid(service)
        assert 3 <= spent < 40
        assert (result_of(audit)["E-Mail_status"] == "pending").sum() == 40 - spent, (
            "each address that was paid for is there"
        )
        assert message(audit) == (
            "Paused, since this page was closed for ten minutes. What is checked so far is kept. Press Resume to go on."
        )
        assert shown(audit, "check")["button"]["label"] == "Resume"
    with paced_service(0, daily_limit=1_000) as service:
        audit = ready(
            contacts, remote(service), validation_type="smtp", journal=tmp_path / "other.db"
        )
        audit.check.pause_unseen()
        assert not audit.check.is_unseen, "nothing runs"
        finished(audit)
        assert message(audit) == ""
