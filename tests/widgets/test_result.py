"""Runs of the journal listed and opened, and comparison with an earlier file."""

from __future__ import annotations

import re

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.runs.journal.journal import Journal
from mailverdict.widgets.result import compare_with, read_audit, verified_column
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.workbooks import cells_of
from tests.widgets.conftest import (
    QUICK,
    finished,
    message,
    new_audit,
    ready,
    result_of,
    shown,
    wait_for_settled,
)
from tests.widgets.paced import paid


def remote(service) -> mv.RemoteBackend:
    return mv.RemoteBackend(service.url, poll=QUICK)


@pytest.mark.slow
def test_a_run_of_the_journal_is_listed_and_opened_without_asking(contacts, service, tmp_path):
    journal = tmp_path / "j.db"
    first = finished(ready(contacts, remote(service), validation_type="smtp", journal=journal))
    audit = new_audit(backend=remote(service), validation_type="mx", journal=journal)
    audit.list_runs()
    audit.work.wait(30)
    (run,) = shown(audit, "list")["runs"]
    assert run["what"] == "41 entries, Mailbox exists"
    assert run["where"] == service.url
    audit.open_earlier(0)
    audit.work.wait(30)
    assert paid(service) == 40
    assert any("Words beside an address" in each for each in shown(audit, "list")["remarks"])
    decide = shown(audit, "decide")
    assert decide["title"] == "Earlier run · column email"
    assert decide["check"].startswith(f"Mailbox exists, by {service.url}, ")
    assert decide["outdated"] == ""
    expected = result_of(first).drop_duplicates("E-Mail").set_index("E-Mail")["E-Mail_verdict"]
    found = result_of(audit).set_index("email")["email_verdict"]
    assert found.to_dict() == {email: expected[email] for email in found.index}
    assert len(found) == 41


@pytest.mark.slow
def test_each_start_is_a_run_of_its_own(contacts, service, tmp_path):
    journal = tmp_path / "j.db"
    audit = ready(contacts, remote(service), validation_type="smtp", journal=journal)
    audit.verify()
    wait_for_settled(audit, 5)
    audit.pause()
    audit.work.wait(30)
    finished(audit)
    with Journal(journal) as opened:
        runs = opened.runs(10)
    assert sum(run.settled for run in runs) == 41
    assert len(runs) == 2
    assert runs[0].last >= runs[1].last


def test_without_a_journal_there_are_no_runs(contacts, tmp_path):
    audit = new_audit(journal=None)
    assert not shown(audit, "list")["can_list_runs"]
    audit = new_audit(journal=tmp_path / "none.db")
    audit.list_runs()
    audit.work.wait(30)
    assert (
        message(audit, "list")
        == "No earlier runs are recorded. Checks of mailboxes, and checks by a service, are."
    )
    assert not (tmp_path / "none.db").exists()


def verified(*mails: str, column: str = "mail") -> pd.DataFrame:
    return mv.verify(pd.DataFrame({column: mails}), column, validation_type="regex", columns="all")


@pytest.mark.slow
def test_the_comparison_counts_and_names_what_changed(tmp_path):
    audit = finished(
        ready(
            pd.DataFrame({"mail": ["a@x.example", "nobody", "c@x.example"]}),
            validation_type="regex",
        )
    )
    old = verified("a@x.example", "nobody", "b@x.example")
    old["mail_verdict"] = old["mail_verdict"].where(old["mail"] != "a@x.example", "invalid")
    old["mail_checked_at"] = pd.Timestamp("2026-10-03 12:00", tz="UTC")
    old.to_csv(tmp_path / "then.csv", index=False)
    audit.compare(tmp_path / "then.csv", "then.csv")
    audit.work.wait(30)
    found = shown(audit, "decide")["comparison"]
    assert (
        found["headline"]
        == "1 address changed, 1 address is new, 1 address is gone since then.csv (2026-10-03)."
    )
    assert {(each["what"], each["rows"]) for each in found["moves"]} == {
        ("Invalid → Valid", 1),
        ("New in the list", 1),
        ("No longer in the list", 1),
    }
    assert found["addresses"] == [{"address": "a@x.example", "before": "invalid", "after": "valid"}]


def test_an_address_with_the_same_verdict_for_another_reason_did_not_change_its_verdict():
    old, new = verified("a@x.example", "b@x.example"), verified("a@x.example", "b@x.example")
    for frame, reason in ((old, "timeout"), (new, "greylisted")):
        frame["mail_verdict"] = frame["mail_verdict"].where(
            frame["mail"] != "a@x.example", "unknown"
        )
        frame["mail_details"] = frame["mail_details"].where(frame["mail"] != "a@x.example", reason)
    found = compare_with(old, "old.csv", new, "mail")
    assert [each["what"] for each in found["moves"]] == ["Unknown, for another reason"]
    assert found["addresses"] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["html", "xlsx"])
def test_the_report_compares_with_the_audit_that_the_page_compares_with(kind, tmp_path):
    mails = ["a@x.example", "a@x.example", "nobody"]
    audit = ready(pd.DataFrame({"mail": mails}), validation_type="regex", folder=tmp_path)
    audit.set_repair("merge", True)
    audit.work.wait(30)
    finished(audit)
    files = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download("everything", "csv")
    audit.work.wait(30)
    audit.load(pd.DataFrame({"E-Mail": [*mails, "b@x.example"]}))
    audit.set_repair("merge", True)
    audit.work.wait(30)
    finished(audit)
    audit.compare(files[0], "then.csv")
    audit.work.wait(30)
    audit.download("report", kind)
    audit.work.wait(30)
    if kind == "html":
        page = files[1].read_text()
        assert "1 address is new, 0 left the list, and 0 addresses have another verdict." in page
        assert re.search(
            r"16.7 percentage points more than in the earlier audit of 20[-\d]{8} \(33.3%\)", page
        )
    else:
        assert ("Valid", 2, 3, 1) in [row[:4] for row in cells_of(files[1])["Summary"]]
    finished(audit)
    assert shown(audit, "decide")["comparison"] is None
    audit.download("report", "html")
    audit.work.wait(30)
    assert "earlier audit" not in files[2].read_text()


def test_another_column_name_is_found_and_the_same_audit_has_no_changes(tmp_path):
    verified("a@x.example", column="E-Mail").to_csv(tmp_path / "old.csv", index=False)
    old, new = read_audit(tmp_path / "old.csv", "old.csv", "mail"), verified("a@x.example")
    assert compare_with(old, "old.csv", new, "mail")["headline"].startswith(
        "Nothing changed since old.csv (20"
    )
    assert verified_column(pd.DataFrame({"mail": []}), "mail") is None


@pytest.mark.slow
def test_an_old_file_without_day_and_check_is_compared_and_another_check_is_named(tmp_path):
    """As "Everything" was before it had both."""
    old = verified("a@x.example", "b@x.example").drop(
        columns=["mail_validation_type", "mail_checked_at"]
    )
    old.to_csv(tmp_path / "old.csv", index=False)
    frame = pd.DataFrame({"mail": ["a@x.example", "b@x.example"]})
    audit = finished(
        ready(frame, backend=AnsweringBackend(), validation_type="mx", folder=tmp_path)
    )
    audit.compare(tmp_path / "old.csv", "old.csv")
    audit.work.wait(30)
    assert (
        shown(audit, "decide")["comparison"]["headline"]
        == "Nothing changed since old.csv (day not recorded)."
    )
    files = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download("report", "html")
    audit.work.wait(30)
    page = files[0].read_text()
    assert "as many as in the earlier audit (day not recorded) (100%)" in page
    assert "Since the earlier audit (day not recorded)" in page
    assert "The check was" not in page

    verified("a@x.example", "b@x.example").to_csv(tmp_path / "format.csv", index=False)
    audit.compare(tmp_path / "format.csv", "format.csv")
    audit.work.wait(30)
    audit.download("report", "html")
    audit.work.wait(30)
    said = "The check was “Format only” then and is “Domain can receive mail” now"
    assert said in shown(audit, "decide")["comparison"]["headline"]
    assert said in files[1].read_text()


def test_a_file_that_is_not_a_result_is_refused(tmp_path):
    audit = finished(ready(pd.DataFrame({"mail": ["a@x.example"]}), validation_type="regex"))
    (tmp_path / "list.csv").write_text("mail\na@x.example\n")
    audit.compare(tmp_path / "list.csv", "list.csv")
    audit.work.wait(30)
    assert message(audit, "decide").startswith("list.csv is not a result of an earlier audit")
