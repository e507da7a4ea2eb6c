"""The audit in Debian's chromium, in JupyterLab and on the page of `mailverdict audit`, as a person uses it."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest
from playwright.sync_api import expect

import mailverdict as mv
from mailverdict.remote import events
from mailverdict.sandbox.serving import ServiceThread
from mailverdict.widgets.state import AuditState
from tests.widgets.browser import (
    AXE,
    CHROMIUM,
    NOTEBOOK,
    AuditPage,
    Place,
    audit_page,
    folder_with_notebook,
    go_to,
    open_in_lab,
    run_all,
)
from tests.widgets.conftest import new_audit, ready
from tests.widgets.jupyter import jupyter_lab
from tests.widgets.paced import paced_service, paid
from tests.widgets.served import TOKEN, served

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"
    ),
]
needs_axe = pytest.mark.skipif(
    not AXE.exists(), reason=f"{AXE} is missing: `make axe` gets it from the npm registry"
)
CODE = """
import os
from pathlib import Path
import mailverdict as mv
from mailverdict.remote import events

events.OUTAGE = 5.0  # seconds, not a minute, until a service counts as down
Path("kernel.txt").write_text(str(os.getpid()))
service = Path("service.txt").read_text()
if service:
    backend = mv.RemoteBackend(service, poll=mv.PollSchedule(steps=((600, 0.2),)))
    audit = mv.widgets.Audit(backend=backend, validation_type="smtp", journal="journal.db")
else:
    audit = mv.widgets.Audit(validation_type="regex")
audit
"""


def local_audit(folder: Path) -> AuditState:
    """The same on the page of `mailverdict audit`."""
    service = (folder / "service.txt").read_text()
    if not service:
        return new_audit(validation_type="regex")
    backend = mv.RemoteBackend(service, poll=mv.PollSchedule(steps=((600, 0.2),)))
    return new_audit(backend, validation_type="smtp", journal=folder / "journal.db")


FINISHED = "62 of 62 different entries checked|62 different entries checked by"  # the step is open, or folded
FOUND = {"ada": "valid", "gone": "invalid", "info": "risky", "full": "unknown"}
HOSTILE = "<img src=x onerror=\"window.hit='cell'\"><script>window.hit='script'</script>"


@pytest.fixture
def service() -> Iterator[ServiceThread]:
    with paced_service(0.15) as running:
        yield running


def show_audit(place: Place, opened: AuditPage, service: ServiceThread | None) -> None:
    """Open the page; without a service this machine checks the format."""
    (place.folder / "service.txt").write_text(service.url if service else "")
    (place.folder / "journal.db").unlink(missing_ok=True)
    place.open(opened)


def contacts(folder: Path) -> Path:
    """60 addresses of four kinds, one of them with a name; an empty cell, a typo, and one that looks like a formula."""
    mails = [f"{list(FOUND)[n % 4]}{n}@example.org" for n in range(60)] + [
        "",
        "=1+1",
        "ada@gmial.com",
    ]
    mails[0] = f"Ada <{mails[0]}>"
    names = [f"Person {n}" for n in range(len(mails))]
    file = folder / "contacts.csv"
    pd.DataFrame({"name": names, "E-Mail": mails, "city": "Köln"}).to_csv(file, index=False)
    return file


def large(folder: Path) -> Path:
    """40 MB of addresses, each hundredth wrapped in a name."""
    rows = 640_000
    mails = [
        f"user{n}@example{n % 5000}.org" if n % 100 else f"Ada <ada{n}@example.org>"
        for n in range(rows)
    ]
    frame = pd.DataFrame({"id": range(rows), "mail": mails, "note": "x" * 30})
    file = folder / "large.csv"
    frame.to_csv(file, index=False)
    assert file.stat().st_size > 40_000_000
    return file


def test_from_a_file_to_a_decision(
    place: Place, opened: AuditPage, service: ServiceThread, tmp_path: Path
) -> None:
    source = contacts(tmp_path)
    show_audit(place, opened, service)
    opened.drop(source)
    opened.shown(r"Costs 61 addresses")
    assert "contacts.csv · 63 rows · column E-Mail" in opened.step(1).inner_text()
    assert [
        opened.figure(each) for each in ("in the list", "without repetitions", "to check now")
    ] == [
        "63 rows",
        "61 addresses",
        "61 addresses",
    ]
    assert paid(service) == 0
    opened.open_step(2)
    expect(opened.field("Names, quotes and brackets")).to_be_checked()
    opened.button("Use gmail.com: gmial.com").click()
    expect(opened.button("All are corrected")).to_be_disabled()
    opened.button("Undo: gmail.com for gmial.com").click()
    opened.button(re.compile("^Correct all")).click()
    expect(opened.button("All are corrected")).to_be_visible()

    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").click()
    opened.shown(r"[1-9]\d of 62 different entries checked")
    opened.button("Pause").click()
    opened.shown("Paused. What is checked so far is kept")
    opened.shown(r"rows? not checked yet")
    opened.button("Resume").click()
    opened.shown(FINISHED)
    expect(opened.button(re.compile(r"^Download Send list\s+16 rows"))).to_be_enabled()
    assert paid(service) == 61
    opened.open_step(3)  # it is folded at the end, unless the pointer or the focus is in it
    opened.shown("62 of 62 different entries checked")
    opened.shown("people can be mailed")
    opened.shown("in 16 of 63 rows")
    opened.button("Go to the result").click()
    expect(opened.step(4)).to_be_focused()
    expect(opened.step(4)).to_be_in_viewport()

    picture = opened.audit.get_by_role("group", name="Show rows of a verdict")
    # A part of the picture is chosen by its button, and given up by the bar itself.
    picture.get_by_role("button", name=re.compile("^Risky")).click()
    opened.has_rows(15)
    expect(picture.get_by_role("button", name=re.compile("^Risky"))).to_have_attribute(
        "aria-pressed", "true"
    )
    opened.audit.locator(".mv-picture-bar .mv-risky").click()
    opened.has_rows(63)
    opened.value("Verdict", "Invalid").click()
    opened.has_rows(16)
    opened.value("Why", "Mailbox does not exist").click()
    opened.has_rows(15)
    opened.field("Search").fill("person 13")
    opened.has_rows(1)
    assert opened.addresses() == ["gone13@example.org"]
    reason = opened.lines.locator(".mv-col-reason, .mv-why").locator("visible=true")
    reason.click()
    expect(opened.audit.locator(".mv-details")).to_contain_text("there is no such mailbox")
    reason.click()
    expect(opened.audit.locator(".mv-details")).to_have_count(0)
    opened.button("Show all").click()
    opened.has_rows(63)
    opened.button(re.compile("^E-Mail")).click()
    expect(opened.audit.locator("th.mv-col-address")).to_have_attribute("aria-sort", "ascending")
    policy(opened, "Lenient").check()
    expect(opened.button(re.compile(r"^Download Send list\s+31 rows"))).to_be_visible()
    policy(opened, "Balanced").check()

    sent = pd.read_csv(opened.save("Download Send list", tmp_path))
    opened.shown("Downloaded: contacts-send-list.csv")
    expected = [f"ada{n}@example.org" for n in range(0, 60, 4)] + ["ada@gmail.com"]
    assert sent["E-Mail"].tolist() == expected
    assert sent["E-Mail_as_written"].dropna().tolist() == [
        "Ada <ada0@example.org>",
        "ada@gmial.com",
    ]
    opened.field("As").select_option(label="Excel (XLSX)")
    whole = pd.read_excel(
        opened.save("Download Everything", tmp_path), engine="calamine", keep_default_na=False
    )
    given = pd.read_csv(source, keep_default_na=False)
    assert whole[list(given.columns)].equals(given)
    report = opened.save("Whole report \\(HTML", tmp_path)
    assert report.read_text().startswith("<!DOCTYPE html>")
    assert place.is_clean(opened)


def policy(opened: AuditPage, name: str) -> Any:
    """The button of a policy."""
    return opened.audit.get_by_role("group", name="Policy").get_by_role(
        "radio", name=re.compile(f"^{name}")
    )


def test_40_megabytes_go_up_and_come_down(place: Place, opened: AuditPage, tmp_path: Path) -> None:
    source = large(tmp_path)
    show_audit(place, opened, None)
    opened.drop(source)
    opened.shown("6,400 cells")
    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").click()
    opened.shown("in .* of 640,000 rows")
    expect(opened.button(re.compile("^Download Everything"))).to_be_enabled()
    found = opened.save("Download Everything", tmp_path)
    assert found.stat().st_size > 40_000_000
    audit = new_audit(validation_type="regex")
    audit.load(source)
    audit.verify()
    audit.work.wait(120)
    files: list[Path] = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download("everything", "csv")
    audit.work.wait(90)
    checked_at = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?")  # of two checks
    same = [checked_at.sub(b"", path.read_bytes()) for path in (found, files[0])]
    assert same[0] == same[1]
    assert place.is_clean(opened)


def test_nothing_that_comes_from_a_file_is_executed(
    place: Place, opened: AuditPage, service: ServiceThread, tmp_path: Path
) -> None:
    source = tmp_path / "<b>list<b>.csv"
    mails = ["ada1@example.org", f"{HOSTILE}@example.org", "gone2@example.org", "info@gmial.com"]
    frame = pd.DataFrame({f"{HOSTILE}{n}": HOSTILE for n in range(20)}, index=range(4))
    frame.insert(3, "mail" + HOSTILE, mails)
    frame.to_csv(source, index=False)
    show_audit(place, opened, service)
    opened.upload(source)
    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").click()
    opened.has_rows(4)
    opened.field("Search").fill("<img src=x")
    opened.has_rows(4)
    opened.button("Details of row 2").click()
    expect(opened.audit.locator(".mv-details")).to_contain_text(HOSTILE)
    opened.save("Download Everything", tmp_path)
    assert opened.audit.locator("img, script").count() == 0
    assert opened.page.evaluate("window.hit") is None
    assert place.is_clean(opened)


def test_a_non_table_is_reported_and_the_next_file_works(
    place: Place, opened: AuditPage, service: ServiceThread, tmp_path: Path
) -> None:
    bad = {
        "picture.csv": (b"\x89PNG\r\n\x1a\n\x00", "picture.csv is not a text table but a picture"),
        "empty.csv": (b"", "empty.csv is empty"),
        "header.csv": (b"name,mail\n", "no rows"),
        "broken.xlsx": (b"PK no workbook", "broken.xlsx cannot be read as a workbook"),
        "no-address.csv": (b"a,b\n1,2\n", "No column looks like e-mail addresses"),
    }
    show_audit(place, opened, service)
    for name, (content, message) in bad.items():
        (tmp_path / name).write_bytes(content)
        opened.upload(tmp_path / name)
        opened.shown(message)
        expect(opened.step(3)).to_be_disabled()
    opened.upload(contacts(tmp_path))
    expect(opened.button("Verify")).to_be_enabled()
    assert place.is_clean(opened)


def test_a_kernel_restart_in_the_middle_pays_nothing_twice(
    lab: Place, opened: AuditPage, service: ServiceThread, tmp_path: Path
) -> None:
    show_audit(lab, opened, service)
    opened.upload(contacts(tmp_path))
    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").click()
    opened.shown(r"[1-9]\d of 62 different entries checked")
    restart_kernel(opened.page)
    run_all(opened.page)
    opened.upload(tmp_path / "contacts.csv")
    opened.shown("already paid for|from an earlier run")
    assert opened.figure("to check now") == "0 addresses"
    opened.button("Verify").click()
    opened.shown(FINISHED)
    expect(opened.button(re.compile(r"^Download Send list\s+15 rows"))).to_be_enabled()
    assert paid(service) == 61
    opened.open_step(1)
    opened.button("Earlier runs").click()
    opened.button(re.compile("^Open the run of")).first.click()
    opened.shown("Earlier run · column email")
    assert paid(service) == 61
    assert lab.is_clean(opened)


def restart_kernel(page: Any, *, and_clear: bool = True) -> None:
    """Restart, and clear what is shown."""
    page.locator(".lm-MenuBar-itemLabel", has_text="Kernel").click()
    page.locator(".lm-Menu-itemLabel").get_by_text(
        re.compile("Restart Kernel and Clear" if and_clear else "^Restart Kernel…$")
    ).click()
    page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    if and_clear:
        page.locator(".mv-audit").wait_for(state="detached")


def test_a_kernel_that_ends_during_an_upload_is_reported_with_what_to_do(
    lab: Place, opened: AuditPage, tmp_path: Path
) -> None:
    show_audit(lab, opened, None)
    os.kill(int((lab.folder / "kernel.txt").read_text()), signal.SIGSTOP)  # no piece is answered
    opened.drop(contacts(tmp_path))
    opened.shown("Sending contacts.csv")
    restart_kernel(opened.page, and_clear=False)
    said = "The kernel was restarted. Run the cell again."
    expect(opened.audit.get_by_role("alert")).to_have_text([said, f"contacts.csv: {said}"])
    expect(opened.audit.get_by_text("Sending contacts.csv")).to_have_count(0)
    expect(opened.button("Choose a file")).to_be_disabled()
    run_all(opened.page)
    expect(opened.audit.get_by_role("alert")).to_have_count(0)
    opened.upload(contacts(tmp_path))
    expect(opened.button("Verify")).to_be_enabled()
    assert lab.is_clean(opened)


def test_a_server_that_is_stopped_is_reported_and_the_page_goes_on_when_it_runs_again(
    opened: AuditPage, tmp_path: Path
) -> None:
    with served(ready(contacts(tmp_path), validation_type="regex")) as first:
        opened.go_to(f"{first.base}/#{TOKEN}")
        expect(opened.button("Verify")).to_be_enabled()
        opened.button("Verify").focus()
    expect(opened.audit.get_by_role("alert")).to_contain_text(
        "goes on by itself as soon as", timeout=3_000
    )
    expect(opened.button("Verify")).to_be_disabled()
    expect(opened.button("Verify")).to_be_focused()
    assert violations(opened) == []
    state = ready(contacts(tmp_path), validation_type="regex")
    with served(state, port=first.port, token="n" * 43, former=(TOKEN,)):
        expect(opened.audit.get_by_role("alert")).to_have_count(0)
        expect(opened.button("Verify")).to_be_enabled()
        opened.button("Verify").click()
        opened.has_rows(63)
        opened.page.reload()  # the key is kept while the server is there
        opened.has_rows(63)
        assert opened.page.url == f"{first.base}/", "it is not in the address bar"
        with audit_page(opened.page.context.browser) as other:
            other.go_to(first.base)
            expect(other.audit.get_by_role("alert")).to_contain_text("open the address that")
    assert [each for each in opened.errors if "fetch" not in each] == []


class Stranger(BaseHTTPRequestHandler):
    """Another user's server on the port of an audit that has ended: it keeps what it is sent, and knows no key."""

    seen: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        self.seen.append(f"{self.path} {self.headers} {self.rfile.read(size).decode()}")
        answer = json.dumps({"answers": [{"salt": "0", "proof": "00" * 64, "masked": "00" * 43}]})
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def do_GET(self) -> None:
        self.seen.append(f"{self.path} {self.headers}")
        text = (
            "<script>document.title = JSON.stringify({...sessionStorage, ...localStorage})</script>"
        )
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_request(self, *_: object) -> None:
        pass


def test_a_stranger_on_the_port_of_an_audit_that_ended_gets_no_key(
    opened: AuditPage, tmp_path: Path
) -> None:
    with served(ready(contacts(tmp_path), validation_type="regex")) as first:
        opened.go_to(f"{first.base}/#{TOKEN}")
        expect(opened.button("Verify")).to_be_enabled()
    expect(opened.audit.get_by_role("alert")).to_contain_text("goes on by itself as soon as")
    with ThreadingHTTPServer(("127.0.0.1", first.port), Stranger) as stranger:
        thread = threading.Thread(target=stranger.serve_forever)
        thread.start()
        try:
            expect(opened.audit.get_by_role("alert")).to_contain_text("open the address that")
            opened.page.reload()
            opened.page.wait_for_function("document.title")
            assert TOKEN not in opened.page.title()
            assert TOKEN not in opened.page.url
        finally:
            stranger.shutdown()
            thread.join()
    assert any("/proof" in request for request in Stranger.seen)
    assert not any("authorization" in request.lower() for request in Stranger.seen)
    assert not any(TOKEN in request for request in Stranger.seen)


def test_a_server_that_is_silent_is_reported_and_the_page_goes_on_by_itself(
    opened: AuditPage, tmp_path: Path
) -> None:
    answers = threading.Event()
    with served(ready(contacts(tmp_path), validation_type="regex")) as local:
        opened.go_to(f"{local.base}/#{TOKEN}")
        expect(opened.button("Verify")).to_be_enabled()
        # As a computer that sleeps: connected, and without a word.
        local.page.loop.call_soon_threadsafe(answers.wait)
        try:
            expect(opened.audit.get_by_role("alert")).to_contain_text("The connection is lost")
            expect(opened.button("Verify")).to_be_disabled()
        finally:
            answers.set()
        expect(opened.audit.get_by_role("alert")).to_have_count(0)
        expect(opened.button("Verify")).to_be_enabled()


def test_what_a_person_decides_is_done_undone_and_in_the_files(
    local_page: Place, opened: AuditPage, service: ServiceThread, tmp_path: Path
) -> None:
    show_audit(local_page, opened, service)
    opened.upload(contacts(tmp_path))
    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").click()
    opened.has_rows(63)
    opened.value("Verdict", "Risky").click()
    opened.has_rows(15)
    opened.button("Send anyway: info2@example.org").click()
    expect(opened.button(re.compile(r"^Download Send list\s+16 rows"))).to_be_enabled()
    shown = opened.audit.get_by_role("group", name="Decide about all rows shown")
    shown.get_by_role("button", name="Remove").click()
    opened.shown("Decided by hand: Remove 15")
    undo, redo = (
        opened.audit.get_by_role("region", name="Decide").get_by_role("button", name=re.compile(n))
        for n in ("^Undo(:|$)", "^Redo")
    )
    undo.click()
    opened.shown("Decided by hand: Send anyway 1")
    redo.click()
    opened.shown("Decided by hand: Remove 15")
    undo.click()
    opened.button("Use gmail.com: gmial.com").click()
    opened.shown("1 address to check: costs 1 address of the quota")
    opened.button("Verify them").click()
    expect(opened.button(re.compile(r"^Download Send list\s+17 rows"))).to_be_enabled()
    assert paid(service) == 62
    sent = pd.read_csv(opened.save("Download Send list", tmp_path))["E-Mail"].tolist()
    assert {"info2@example.org", "ada@gmail.com"} < {*sent}
    assert violations(opened) == []
    assert local_page.is_clean(opened)


def test_a_service_that_goes_away_leaves_a_result_and_a_way_on(
    place: Place, opened: AuditPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "OUTAGE", 5.0)  # as in the notebook
    with paced_service(0.15) as service:
        show_audit(place, opened, service)
        opened.upload(contacts(tmp_path))
        expect(opened.button("Verify")).to_be_enabled()
        opened.button("Verify").click()
        opened.shown(r"[1-9]\d of 62 different entries checked")
    opened.shown("What is checked so far is kept")
    opened.shown(r"rows? not checked yet")
    expect(opened.button(re.compile("^(Resume|Try again)$")).first).to_be_visible()
    assert violations(opened) == []
    assert place.is_clean(opened)


def test_a_service_that_is_away_before_the_check_is_said_where_the_cost_stands(
    local_page: Place, opened: AuditPage, tmp_path: Path
) -> None:
    with paced_service() as service:
        pass  # its address answers no more
    show_audit(local_page, opened, service)
    opened.upload(contacts(tmp_path))
    message = opened.shown("The verification service at")
    assert message.inner_text().endswith(
        f"{service.url} does not answer. The cost is not known until the service answers. "
        "Check its address and your connection, then try again."
    )
    expect(opened.audit.locator(".mv-notice-failed")).to_have_count(1)
    expect(opened.audit.locator(".mv-cost")).to_have_count(0)
    choice = opened.audit.get_by_role("group", name=f"How deep, by {service.url}")
    expect(choice.locator("xpath=../following-sibling::*[1]")).to_contain_text("does not answer")
    expect(opened.button("Verify")).to_be_disabled()
    expect(opened.button("Try again")).to_be_enabled()
    assert violations(opened) == []
    assert local_page.is_clean(opened)


def violations(opened: AuditPage) -> list[str]:
    """What axe-core finds, where it could be got."""
    return opened.violations() if AXE.exists() else []


def test_a_quota_that_ends_says_when_to_go_on(
    place: Place, opened: AuditPage, tmp_path: Path
) -> None:
    with paced_service(0, daily_limit=30) as service:
        show_audit(place, opened, service)
        opened.upload(contacts(tmp_path))
        opened.shown("on 3 days: come back after 00:00 UTC each day")
        opened.button("Verify").click()
        opened.shown(r"Today's quota is used up. Press Resume after 00:00 UTC \(")
        expect(opened.button("Resume")).to_be_disabled()
        expect(opened.button("Look at the quota again")).to_be_hidden()
        expect(opened.audit.locator(".mv-primary")).to_have_count(1)
        expect(opened.audit.locator(".mv-notice", has_text="quota is used up")).to_have_count(
            1, timeout=10_000
        )
        assert violations(opened) == []
    assert place.is_clean(opened)


def test_100_000_rows_are_found_and_paged_in_python(
    local_page: Place, opened: AuditPage, tmp_path: Path
) -> None:
    mails = [f"user{n}@example.org" if n % 50 else "bad" for n in range(100_000)]
    pd.DataFrame({"id": range(100_000), "mail": mails}).to_csv(tmp_path / "large.csv", index=False)
    show_audit(local_page, opened, None)
    opened.field("or a path on the computer that runs this").fill(str(tmp_path / "large.csv"))
    opened.button("Open").click()
    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").click()
    opened.has_rows(100_000)
    assert opened.audit.locator("tbody tr").count() < 50
    opened.audit.get_by_text("In pages").click()
    opened.field("Page").fill("2000")
    opened.field("Page").press("Enter")
    expect(opened.lines.last).to_contain_text("user99999@example.org")
    opened.field("Search").fill("user77777")
    opened.has_rows(1)
    opened.button("Show all").click()
    opened.has_rows(100_000)
    assert local_page.is_clean(opened)


def test_a_pasted_list_is_verified(local_page: Place, opened: AuditPage, tmp_path: Path) -> None:
    show_audit(local_page, opened, None)
    opened.button("Paste addresses").click()
    field = opened.field("Paste addresses, one per line, or cells copied from a spreadsheet")
    expect(field).to_be_focused()
    field.fill("ada@example.org\nBob <bob@example.org>\nnobody\n")
    opened.button("Use these").click()
    expect(opened.button("Verify")).to_be_enabled()
    assert "pasted list · 3 rows" in opened.step(1).inner_text()
    opened.button("Verify").click()
    opened.has_rows(3)
    sent = pd.read_csv(opened.save("Download Send list", tmp_path))
    assert sent.iloc[:, 0].tolist() == ["ada@example.org", "bob@example.org"]

    show_audit(local_page, opened, None)
    # Cells of a spreadsheet, on the empty page.
    opened.paste("name\tmail\nCy\tcy@example.org\nDi\tdi@example.org\n")
    expect(opened.button("Verify")).to_be_enabled()
    assert "pasted list · 2 rows · column mail" in opened.step(1).inner_text()
    opened.paste("eve@example.org\n")  # a list that is there is not replaced by accident
    opened.open_step(1)
    opened.button("Paste addresses").click()
    field.fill("  \n")
    opened.button("Use these").click()
    expect(field).to_be_focused()
    opened.button("Close").click()
    expect(field).to_have_count(0)
    opened.shown("2 rows, 2 columns")
    assert local_page.is_clean(opened)


def test_a_suppression_list_holds_contacts_back(
    place: Place, opened: AuditPage, tmp_path: Path
) -> None:
    mails = ["ada@example.org", "bob@firm.example", "cy@example.org", "di@other.example"]
    pd.DataFrame({"mail": mails}).to_csv(tmp_path / "list.csv", index=False)
    (tmp_path / "unsubscribed.txt").write_text("CY@example.org\nfirm.example\nnot an entry\n")
    show_audit(place, opened, None)
    opened.upload(tmp_path / "list.csv")
    expect(opened.button("Verify")).to_be_enabled()
    opened.open_step(2)
    opened.upload(tmp_path / "unsubscribed.txt", "Choose a list")
    opened.shown("1 entry in it is neither an address nor a domain")
    expect(opened.field("On your suppression list")).to_be_checked()
    opened.shown(
        "2 suppressed|Takes the addresses and domains of unsubscribed.txt off the send list"
    )
    opened.button("Verify").click()
    opened.has_rows(4)
    opened.value("Why", "On your suppression list").click()
    opened.has_rows(2)
    assert opened.addresses() == ["bob@firm.example", "cy@example.org"]
    opened.button(re.compile("^Details of row 2")).click()
    expect(opened.audit.locator(".mv-details")).to_contain_text("on your suppression list")
    sent = pd.read_csv(opened.save("Download Send list", tmp_path))
    assert sent["mail"].tolist() == ["ada@example.org", "di@other.example"]

    opened.open_step(2)
    opened.button("Paste a list").click()
    opened.field("Paste addresses or domains, one per line").fill("ada@example.org")
    opened.button("Use these").click()
    opened.shown("Takes the addresses and domains of pasted suppression list off the send list")
    opened.shown("From the earlier setting: verify again")
    opened.open_step(3)
    opened.button("Verify again").click()
    expect(opened.button(re.compile(r"^Download Send list\s+3 rows"))).to_be_enabled()
    opened.open_step(2)
    opened.button("Use none").click()
    expect(opened.field("On your suppression list")).to_have_count(0)
    assert place.is_clean(opened)


def test_a_result_is_compared_with_an_earlier_audit(
    place: Place, opened: AuditPage, tmp_path: Path
) -> None:
    then, now = tmp_path / "then.csv", tmp_path / "now.csv"
    pd.DataFrame({"mail": ["ada@example.org", "bob@example.org", "cy example.org"]}).to_csv(
        then, index=False
    )
    pd.DataFrame({"mail": ["ada@example.org", "di@example.org", "eve@example.org"]}).to_csv(
        now, index=False
    )
    show_audit(place, opened, None)
    opened.upload(then)
    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").click()
    opened.has_rows(3)
    earlier = opened.save("Download Everything", tmp_path)
    opened.upload(earlier, "Choose the earlier file")
    opened.shown("Nothing changed since then-everything.csv")
    opened.upload(now)
    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").click()
    opened.shown("now.csv · column mail")
    opened.upload(then, "Choose the earlier file")
    opened.shown("then.csv is not a result of an earlier audit: it has no verdict column")
    opened.upload(earlier, "Choose the earlier file")
    opened.shown("2 addresses are new, 2 addresses are gone since then-everything.csv")
    comparison = opened.audit.get_by_role("region", name="Compare with an earlier audit")
    expect(comparison.get_by_role("listitem").first).to_contain_text("2 New in the list")
    assert place.is_clean(opened)


def test_it_can_be_used_without_a_mouse(lab: Place, opened: AuditPage, tmp_path: Path) -> None:
    list_file, earlier = tmp_path / "mails.csv", tmp_path / "earlier.csv"
    list_file.write_text(
        "mail\nada@example.org\nAda <ada@example.com>\nBo <bo@gmial.com>\nnobody\n"
    )
    mv.verify(pd.read_csv(list_file), "mail", validation_type="regex").to_csv(earlier, index=False)
    show_audit(lab, opened, None)
    press = opened.page.keyboard.press

    # 1 List: a box is opened, filled and closed; a file is chosen.
    go_to(opened, opened.button("Paste addresses"))
    press("Enter")
    expect(
        opened.field("Paste addresses, one per line, or cells copied from a spreadsheet")
    ).to_be_focused()
    go_to(opened, opened.button("Close"))
    press("Enter")
    expect(opened.button("Paste addresses")).to_be_focused()
    go_to(opened, opened.button("Choose a file"), key="Shift+Tab")
    choose_by_key(opened, list_file)
    expect(opened.button("Verify")).to_be_enabled()
    go_to(opened, opened.step(1), key="Shift+Tab")
    press("Enter")
    expect(opened.step(1)).to_have_attribute("aria-expanded", "true")
    go_to(opened, opened.field("Header line"))
    press("ArrowDown")
    press("ArrowUp")
    expect(opened.button("Verify")).to_be_enabled()

    # 2 Tidy: a switch, more examples, likely typos, the box for a suppression list.
    go_to(opened, opened.step(2))
    press("Enter")
    switch = opened.field("Names, quotes and brackets")
    go_to(opened, switch)
    press("Space")
    expect(opened.audit.locator(".mv-item.mv-off")).to_have_count(1)  # the kernel's answer is drawn
    expect(switch).not_to_be_checked()
    press("Space")
    expect(opened.audit.locator(".mv-item.mv-off")).to_have_count(0)
    expect(switch).to_be_checked()
    more = opened.button("More examples: Names, quotes and brackets")
    go_to(opened, more)
    press("Enter")
    less = opened.button("Less examples: Names, quotes and brackets")
    expect(less).to_be_focused()
    expect(less).to_have_attribute("aria-expanded", "true")
    go_to(opened, opened.button(re.compile("^Use gmail.com: ")))
    press("Enter")
    expect(opened.button("All are corrected")).to_be_visible()
    go_to(opened, opened.button(re.compile("^Undo: gmail.com for ")))
    press("Enter")
    expect(opened.button(re.compile("^Correct all"))).to_be_enabled()
    go_to(opened, opened.button("Paste a list"), key="Shift+Tab")
    press("Enter")
    opened.page.keyboard.type("ada@example.com")
    go_to(opened, opened.button("Use these"))
    press("Enter")
    expect(opened.button("Paste a list")).to_be_focused()
    expect(opened.field("On your suppression list")).to_be_checked()
    expect(opened.button("Verify")).to_be_enabled()

    # 3 Verify: how deep by arrows, start, and on to the result.
    go_to(opened, opened.field("Format only"))
    press("ArrowRight")
    expect(opened.field("Domain can receive mail")).to_be_checked()
    press("ArrowLeft")
    expect(opened.field("Format only")).to_be_checked()
    expect(opened.button("Verify")).to_be_enabled()
    go_to(opened, opened.button("Verify"))
    press("Enter")
    opened.has_rows(4)
    go_to(opened, opened.step(3), key="Shift+Tab")
    press("Enter")
    go_to(opened, opened.button("Go to the result"))
    press("Enter")
    expect(opened.step(4)).to_be_focused()

    # 4 Decide: a part of the picture, a facet, search, order, details, policy, format, downloads, comparison.
    segment = opened.audit.get_by_role("group", name="Show rows of a verdict").get_by_role(
        "button", name="Invalid"
    )
    for chosen in (segment, opened.value("Verdict", "Invalid")):
        go_to(opened, chosen)
        press("Enter")
        opened.has_rows(1)
        expect(chosen).to_be_focused()
        assert opened.addresses() == ["nobody"]
        press("Enter")
        opened.has_rows(4)
    go_to(opened, opened.field("Search"))
    opened.page.keyboard.type("nobody")
    opened.has_rows(1)
    go_to(opened, opened.button("Show all"))
    press("Enter")
    opened.has_rows(4)
    go_to(opened, opened.button(re.compile("^mail")))
    press("Enter")
    expect(opened.audit.locator("th.mv-col-address")).to_have_attribute("aria-sort", "ascending")
    go_to(opened, opened.button("Details of row 4"))
    press("Enter")
    expect(opened.button("Details of row 4")).to_have_attribute("aria-expanded", "true")
    go_to(opened, opened.button("Choose the earlier file"))
    choose_by_key(opened, earlier)
    opened.shown("since earlier.csv")
    go_to(opened, policy(opened, "Balanced"), key="Shift+Tab")
    press("ArrowUp")
    expect(policy(opened, "Balanced")).not_to_be_checked()
    go_to(opened, opened.field("As"))
    press("ArrowDown")
    go_to(opened, opened.button(re.compile("^Download Send list")))
    with opened.page.expect_download() as saved:
        press("Enter")
    assert saved.value.suggested_filename == "mails-send-list.xlsx"
    assert lab.is_clean(opened)


def choose_by_key(opened: AuditPage, file: Path) -> None:
    """Press the button that has the focus, and answer the browser's dialog."""
    with opened.page.expect_file_chooser() as chooser:
        opened.page.keyboard.press("Enter")
    chooser.value.set_files(file)


@pytest.fixture(params=["lab", "lab, dark", "local", "local, dark"])
def themed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """JupyterLab and the local page, light and dark."""
    host, _, dark = request.param.partition(", ")
    if host == "local" or not dark:
        yield request.getfixturevalue("lab" if host == "lab" else "local_page")
    else:
        folder = folder_with_notebook(tmp_path_factory, "dark", CODE)
        with jupyter_lab(folder, is_dark=True) as url:
            yield Place(folder, lambda opened: open_in_lab(opened, url, NOTEBOOK))


@needs_axe
def test_each_state_is_accessible_and_fits_a_narrow_page(
    browser: Any,
    tmp_path: Path,
    service: ServiceThread,
    themed: Place,
    request: pytest.FixtureRequest,
) -> None:
    is_lab, is_dark = "lab" in request.node.name, "dark" in request.node.name
    with audit_page(
        browser, width=960 if is_lab else 800
    ) as opened:  # JupyterLab's own parts need the rest
        opened.page.emulate_media(color_scheme="dark" if is_dark and not is_lab else "light")
        show_audit(themed, opened, service)
        if is_lab:
            opened.page.keyboard.press("Control+b")  # folds the list of files
        opened.button("Paste addresses").click()
        assert opened.violations() == [], "before a list is loaded"
        (tmp_path / "bad.csv").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
        opened.upload(tmp_path / "bad.csv")
        opened.shown("bad.csv is not a text table")
        assert opened.violations() == [], "a list that cannot be read"
        (tmp_path / "unsubscribed.txt").write_text("nobody@elsewhere.example\n")
        opened.upload(contacts(tmp_path))
        expect(opened.button("Verify")).to_be_enabled()
        opened.open_step(2)
        opened.upload(tmp_path / "unsubscribed.txt", "Choose a list")
        expect(opened.field("On your suppression list")).to_be_checked()
        expect(opened.button("Verify")).to_be_enabled()
        opened.open_step(1)
        opened.button("Paste a list").click()
        opened.button("Use gmail.com: gmial.com").click()
        expect(opened.button("All are corrected")).to_be_disabled()
        expect(opened.button("Verify")).to_be_enabled()
        assert opened.violations() == [], "list, tidy and estimate"
        assert fits(opened)
        opened.button("Verify").click()
        opened.shown(r"[1-9]\d of 62 different entries checked")
        assert opened.violations() == [], "during a run"
        opened.button("Pause").click()
        opened.shown("Paused. What is checked so far is kept")
        assert opened.violations() == [], "paused"
        opened.button("Resume").click()
        opened.shown(FINISHED)
        expect(opened.button(re.compile(r"^Download Send list\s+16 rows"))).to_be_enabled()
        opened.has_rows(63)
        opened.value("Verdict", "Risky").click()
        opened.button(re.compile("^Details of row")).first.click()
        assert opened.violations() == [], "the result"
        assert fits(opened)
        assert head_fills_the_table(opened), "with the details of a row open"
        assert is_dark == (min(darkness(opened)) < 80)
        opened.field("Search").fill("nowhere")
        opened.shown("No row matches")
        assert opened.violations() == [], "nothing found"
        opened.button("Show all").click()
        opened.upload(opened.save("Download Everything", tmp_path), "Choose the earlier file")
        opened.shown("Nothing changed since contacts-everything.csv")
        opened.open_step(1)
        opened.button("Earlier runs").click()
        opened.button(re.compile("^Open the run of")).first.wait_for()
        assert opened.violations() == [], "comparison and earlier runs"
        assert fits(opened)
        assert opened.audit.locator(".mv-primary").count() == 1
        opened.open_step(2)
        opened.audit.get_by_role("region", name="Tidy").get_by_role(
            "button", name=re.compile("^Undo")
        ).click()
        opened.shown("From the earlier setting")
        assert opened.violations() == [], "a result of an earlier setting"
        assert themed.is_clean(opened)


def darkness(opened: AuditPage) -> list[int]:
    """How light the surfaces are that must follow the theme, from 0 to 255; all of them agree."""
    found: list[list[int]] = opened.audit.locator(
        ".mv-step, .mv-table thead th, .mv-download"
    ).evaluate_all(
        "nodes => nodes.map((node) => getComputedStyle(node).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number))"
    )
    lightest = [max(colour) for colour in found]
    assert len(lightest) > 10
    assert max(lightest) < 80 or min(lightest) > 80
    return lightest


def head_fills_the_table(opened: AuditPage) -> bool:
    """Whether no row adds a column that the head does not have."""
    widths = "(node) => node.getBoundingClientRect().width"
    heads = opened.audit.locator(".mv-table-part thead th:visible").evaluate_all(
        f"nodes => nodes.map({widths})"
    )
    return abs(sum(heads) - opened.audit.locator(".mv-table-part table").evaluate(widths)) < 2


def fits(opened: AuditPage) -> bool:
    """Whether nothing of the page must be scrolled sideways, neither the page nor a part of JupyterLab."""
    is_within = opened.audit.evaluate(
        "(node) => node.scrollWidth <= node.clientWidth && node.clientWidth >= 700"
    )
    return bool(
        is_within and opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    )
