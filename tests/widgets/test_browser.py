"""The audit in Debian's chromium, in JupyterLab and under Voila, as a person uses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from playwright.sync_api import expect

from mailverdict.sandbox.serving import ServiceThread
from tests.widgets.browser import CHROMIUM, VOILA_ICONS, AuditPage, audit_page, chromium, open_in_lab, run_all
from tests.widgets.jupyter import jupyter_lab, voila
from tests.widgets.paced import paced_service, paid

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]
NOTEBOOK = "audit.ipynb"
CODE = """
from pathlib import Path
import mailverdict as mv

service = Path("service.txt").read_text()
if service:
    backend = mv.RemoteBackend(service, poll=mv.PollSchedule(steps=((600, 0.2),)))
    audit = mv.widgets.Audit(backend=backend, validation_type="smtp", journal="journal.db")
else:
    audit = mv.widgets.Audit(validation_type="regex")
audit
"""
FOUND = {"ada": "valid", "gone": "invalid", "info": "risky", "full": "unknown"}
ACTIONS = {"valid": "send", "invalid": "drop", "risky": "review", "unknown": "review"}
HOSTILE = "<img src=x onerror=\"window.hit='cell'\"><script>window.hit='script'</script>"


@dataclass
class Place:
    """Where an audit is shown: how it is opened, and what its surroundings ask of strangers by themselves."""

    folder: Path
    open: Callable[[AuditPage], None]
    own_strangers: re.Pattern[str] | None = None

    def is_clean(self, opened: AuditPage) -> bool:
        """Whether no script failed and nobody else was asked."""
        ours = [url for url in opened.strangers if self.own_strangers is None or not self.own_strangers.fullmatch(url)]
        assert ours == []
        assert opened.errors == []
        return True


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = folder_with_notebook(tmp_path_factory, "lab")
    with jupyter_lab(folder) as url:
        yield Place(folder, lambda opened: open_in_lab(opened, url, NOTEBOOK))


@pytest.fixture(scope="module")
def voila_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = folder_with_notebook(tmp_path_factory, "voila")
    with voila(folder, NOTEBOOK) as url:
        yield Place(folder, lambda opened: open_page(opened, url), VOILA_ICONS)


@pytest.fixture(params=["lab", "voila_page"])
def place(request: pytest.FixtureRequest) -> Place:
    """JupyterLab, then Voila."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def service() -> Iterator[ServiceThread]:
    with paced_service(0.08) as running:
        yield running


@pytest.fixture
def opened(browser: Any) -> Iterator[AuditPage]:
    with audit_page(browser) as page:
        yield page


def folder_with_notebook(factory: pytest.TempPathFactory, name: str) -> Path:
    folder = factory.mktemp(name)
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    cells = [nbformat.v4.new_code_cell(CODE)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / NOTEBOOK)
    return folder


def open_page(opened: AuditPage, url: str) -> None:
    opened.page.goto(url)
    opened.audit.wait_for()


def show_audit(place: Place, opened: AuditPage, service: ServiceThread | None) -> None:
    """Open the page; without a service this machine looks at the spelling."""
    (place.folder / "service.txt").write_text(service.url if service else "")
    place.open(opened)


def contacts(folder: Path) -> Path:
    """60 addresses of four kinds, an empty cell and a malformed one that looks like a formula."""
    mails = [f"{list(FOUND)[n % 4]}{n}@example.org" for n in range(60)] + ["", "=1+1"]
    names = [f"Person {n}" for n in range(len(mails))]
    file = folder / "contacts.csv"
    pd.DataFrame({"name": names, "E-Mail": mails, "city": "Köln"}).to_csv(file, index=False)
    return file


def compare_with_source(saved: Path, source: Path) -> None:
    """What was downloaded is what was uploaded, row by row, with the right verdicts beside it."""
    read = {".csv": pd.read_csv, ".xlsx": pd.read_excel}[saved.suffix]
    options = {"engine": "calamine"} if saved.suffix == ".xlsx" else {}
    found = read(saved, dtype=str, keep_default_na=False, **options)
    given = pd.read_csv(source, dtype=str, keep_default_na=False)
    assert found["E-Mail"].tolist() == given["E-Mail"].tolist()
    assert found[["name", "city"]].equals(given[["name", "city"]])
    verdicts = [FOUND[list(FOUND)[n % 4]] for n in range(60)]
    assert found["E-Mail_verdict"].tolist() == [*verdicts, "", "invalid"]
    assert found["E-Mail_status"].tolist() == ["done"] * 60 + ["missing", "done"]
    assert found["E-Mail_action"].tolist() == [*(ACTIONS[v] for v in verdicts), "unchecked", "drop"]


def test_from_a_file_to_a_decision(place: Place, opened: AuditPage, service: ServiceThread, tmp_path: Path) -> None:
    source = contacts(tmp_path)
    show_audit(place, opened, service)
    opened.upload(source)
    opened.shown("contacts.csv")
    assert opened.field("Column").locator("option:checked").inner_text() == "E-Mail"
    opened.shown("to submit")
    estimate = {
        label: opened.number(label) for label in ("rows", "distinct addresses", "missing rows", "malformed rows, free")
    }
    assert estimate == {"rows": 62, "distinct addresses": 60, "missing rows": 1, "malformed rows, free": 1}
    assert opened.number("to submit") == 60
    assert paid(service) == 0

    opened.button("Verify").click()
    opened.shown(r"Verifying: [1-9]")
    opened.button("Cancel").click()
    opened.shown(r"Cancelled: [1-5]?\d of 61")
    expect(opened.field("Verdict").locator("option", has_text="pending")).to_have_count(1)
    expect(opened.button("Cancel")).to_be_disabled()
    opened.button("Resume").click()
    opened.shown("Done: 61 of 61")
    assert paid(service) == 60

    opened.field("Verdict").select_option(label="invalid (16)")
    expect(opened.audit.locator("table.dataTable tbody tr")).to_have_count(16)
    assert {row[2] for row in opened.rows()} == {"invalid"}
    opened.field("Reason").select_option(label="mailbox not found (15)")
    expect(opened.audit.locator("table.dataTable tbody tr")).to_have_count(15)
    opened.field("Search").fill("person 13")
    expect(opened.audit.locator("table.dataTable tbody tr")).to_have_count(1)
    assert opened.rows()[0][1] == "gone13@example.org"
    opened.field("Policy").select_option(label="lenient")
    expect(opened.audit.get_by_text("send", exact=True).locator("xpath=../b")).to_have_text("30")
    opened.field("Policy").select_option(label="balanced")
    expect(opened.audit.get_by_text("send", exact=True).locator("xpath=../b")).to_have_text("15")

    compare_with_source(opened.save(tmp_path), source)
    opened.field("Format").select_option(label="XLSX")
    compare_with_source(opened.save(tmp_path), source)
    opened.field("Rows").select_option(label="as in the table")
    opened.field("Format").select_option(label="CSV")
    assert pd.read_csv(opened.save(tmp_path))["E-Mail"].tolist() == ["gone13@example.org"]
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
    opened.shown("to submit")
    opened.button("Verify").click()
    opened.shown("Done: 4 of 4")
    opened.field("Search").fill("<img src=x")
    expect(opened.audit.locator("table.dataTable tbody tr")).to_have_count(4)
    assert opened.rows()[0][-1] == HOSTILE
    opened.save(tmp_path)
    assert opened.audit.locator("table.dataTable img, table.dataTable script").count() == 0
    assert opened.page.evaluate("window.hit") is None
    assert place.is_clean(opened)


def test_a_non_table_is_reported_and_the_next_file_works(
    voila_page: Place, opened: AuditPage, service: ServiceThread, tmp_path: Path
) -> None:
    bad = {
        "picture.csv": (b"\x89PNG\r\n\x1a\n\x00", "picture.csv is not a text table but a picture"),
        "empty.csv": (b"", "empty.csv is empty"),
        "header.csv": (b"name,mail\n", "no rows"),
        "broken.xlsx": (b"PK no workbook", "broken.xlsx cannot be read as XLSX"),
        "no-address.csv": (b"a,b\n1,2\n", "No column looks like e-mail addresses"),
    }
    show_audit(voila_page, opened, service)
    for name, (content, message) in bad.items():
        (tmp_path / name).write_bytes(content)
        opened.upload(tmp_path / name)
        opened.shown(message)
        expect(opened.button("Verify")).to_be_disabled()
    opened.upload(contacts(tmp_path))
    opened.shown("to submit")
    expect(opened.button("Verify")).to_be_enabled()
    assert voila_page.is_clean(opened)


def test_a_kernel_restart_in_the_middle_pays_nothing_twice(
    lab: Place, opened: AuditPage, service: ServiceThread, tmp_path: Path
) -> None:
    show_audit(lab, opened, service)
    opened.upload(contacts(tmp_path))
    opened.shown("to submit")
    opened.button("Verify").click()
    opened.shown(r"Verifying: [1-9]")
    restart_kernel(opened.page)
    run_all(opened.page)
    opened.shown("Choose a file \\(0\\)")
    opened.upload(tmp_path / "contacts.csv")
    opened.shown("known")
    assert opened.number("to submit") == 0
    opened.button("Verify").click()
    opened.shown("Done: 61 of 61")
    assert paid(service) == 60
    assert lab.is_clean(opened)


def restart_kernel(page: Any) -> None:
    """Restart and clear what is shown."""
    page.locator(".lm-MenuBar-itemLabel", has_text="Kernel").click()
    page.locator(".lm-Menu-itemLabel").get_by_text(re.compile("Restart Kernel and Clear")).click()
    page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    page.locator(".mv-audit").wait_for(state="detached")


def test_100_000_rows_are_paged_in_python(voila_page: Place, opened: AuditPage, tmp_path: Path) -> None:
    mails = [f"user{n}@example.org" if n % 50 else "bad" for n in range(100_000)]
    pd.DataFrame({"id": range(100_000), "mail": mails}).to_csv(tmp_path / "large.csv", index=False)
    received: list[int] = []
    opened.page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(len(data))))
    show_audit(voila_page, opened, None)
    opened.field("Path").fill(str(tmp_path / "large.csv"))
    opened.button("Open").click()
    opened.shown("98,000")
    opened.button("Verify").click()
    opened.shown("Done: 100,000 of 100,000")
    table = opened.audit.locator("table.dataTable tbody tr")
    expect(table).to_have_count(50)
    opened.field("Page").fill("2000")
    opened.field("Page").press("Enter")
    expect(table.last).to_contain_text("user99999@example.org")
    opened.field("Search").fill("user77777")
    expect(table).to_have_count(1)
    opened.field("Search").fill("")
    expect(table).to_have_count(50)
    opened.button("Make file").click()
    opened.shown("Too large for a link")
    assert len(pd.read_csv(voila_page.folder / "large-verified.csv")) == 100_000
    assert 10_000 < sum(received) < 3_000_000, "the rows alone are several times as much"
    assert voila_page.is_clean(opened)


def test_it_can_be_used_without_a_mouse(voila_page: Place, opened: AuditPage, tmp_path: Path) -> None:
    (tmp_path / "mails.csv").write_text("mail\nada@example.org\nnobody\n")
    show_audit(voila_page, opened, None)
    keyboard = opened.page.keyboard
    opened.field("Path").focus()
    keyboard.type(str(tmp_path / "mails.csv"))
    keyboard.press("Enter")
    opened.shown("mails.csv")
    expect(opened.button("Verify")).to_be_enabled()
    for control in (opened.button("Open"), opened.field("Column"), opened.field("Check"), opened.button("Verify")):
        keyboard.press("Tab")
        expect(control).to_be_focused()
    keyboard.press("Enter")
    opened.shown("Done: 2 of 2")
    for label in ("Policy", "Verdict", "Reason", "Action", "Search", "Page", "Rows", "Format"):
        expect(opened.field(label)).to_be_visible()
    opened.field("Verdict").focus()
    keyboard.press("i")
    expect(opened.audit.locator("table.dataTable tbody tr")).to_have_count(1)
    assert opened.rows()[0][1] == "nobody"
    opened.button("Make file").focus()
    keyboard.press("Space")
    link = opened.audit.locator("a.mv-save")
    link.focus()
    with opened.page.expect_download() as download:
        keyboard.press("Enter")
    assert download.value.suggested_filename == "mails-verified.csv"
    assert voila_page.is_clean(opened)
