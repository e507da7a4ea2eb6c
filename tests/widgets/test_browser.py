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
from mailverdict.widgets import Audit
from tests.widgets.browser import AXE, CHROMIUM, VOILA_ICONS, AuditPage, audit_page, chromium, open_in_lab, run_all
from tests.widgets.conftest import finished
from tests.widgets.jupyter import jupyter_lab, voila
from tests.widgets.paced import paced_service, paid

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]
needs_axe = pytest.mark.skipif(not AXE.exists(), reason=f"{AXE} is missing: `make axe` gets it from the npm registry")
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
HOSTILE = "<img src=x onerror=\"window.hit='cell'\"><script>window.hit='script'</script>"


@dataclass
class Place:
    """Where an audit is shown: how it is opened, and which hosts its surroundings ask by themselves."""

    folder: Path
    open: Callable[[AuditPage], None]
    own_strangers: re.Pattern[str] | None = None

    def is_clean(self, opened: AuditPage) -> bool:
        """Whether no script failed and no other host was asked."""
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
    """Open the page; without a service this machine checks the format."""
    (place.folder / "service.txt").write_text(service.url if service else "")
    (place.folder / "journal.db").unlink(missing_ok=True)
    place.open(opened)


def contacts(folder: Path) -> Path:
    """60 addresses of four kinds, one of them with a name; an empty cell, a typo, and one that looks like a formula."""
    mails = [f"{list(FOUND)[n % 4]}{n}@example.org" for n in range(60)] + ["", "=1+1", "ada@gmial.com"]
    mails[0] = f"Ada <{mails[0]}>"
    names = [f"Person {n}" for n in range(len(mails))]
    file = folder / "contacts.csv"
    pd.DataFrame({"name": names, "E-Mail": mails, "city": "Köln"}).to_csv(file, index=False)
    return file


def large(folder: Path) -> Path:
    """40 MB of addresses, each hundredth wrapped in a name."""
    rows = 640_000
    mails = [f"user{n}@example{n % 5000}.org" if n % 100 else f"Ada <ada{n}@example.org>" for n in range(rows)]
    frame = pd.DataFrame({"id": range(rows), "mail": mails, "note": "x" * 30})
    file = folder / "large.csv"
    frame.to_csv(file, index=False)
    assert file.stat().st_size > 40_000_000
    return file


def test_from_a_file_to_a_decision(place: Place, opened: AuditPage, service: ServiceThread, tmp_path: Path) -> None:
    source = contacts(tmp_path)
    show_audit(place, opened, service)
    opened.drop("contacts.csv", source.read_text())
    opened.shown(r"Costs 61 addresses")
    assert "contacts.csv · 63 rows · column E-Mail" in opened.step(1).inner_text()
    assert [opened.figure(each) for each in ("in the list", "different ones", "to check now")] == [
        "63 rows",
        "61 addresses",
        "61 addresses",
    ]
    assert paid(service) == 0
    expect(opened.field("Names, quotes and brackets")).to_be_checked()
    opened.button("Accept ada@gmail.com for ada@gmial.com").click()
    expect(opened.button("All accepted")).to_be_disabled()
    opened.button("Undo").click()
    opened.button(re.compile("^Accept all")).click()
    expect(opened.button("All accepted")).to_be_visible()

    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").click()
    opened.shown(r"[1-9]\d* of 62 different entries checked")
    opened.button("Pause").click()
    opened.shown("Paused. What is checked so far is kept")
    opened.shown(r"rows? not checked yet")
    opened.button("Resume").click()
    opened.shown("62 of 62 different entries checked")
    expect(opened.button(re.compile(r"^Download Send list\s+16 rows"))).to_be_enabled()
    assert paid(service) == 61

    opened.value("Verdict", "Invalid").click()
    expect(opened.lines).to_have_count(16)
    opened.value("Why", "Mailbox does not exist").click()
    expect(opened.lines).to_have_count(15)
    opened.field("Search").fill("person 13")
    expect(opened.lines).to_have_count(1)
    assert opened.addresses() == ["gone13@example.org"]
    opened.button("Show all").click()
    expect(opened.lines).to_have_count(50)
    opened.button(re.compile("^E-Mail")).click()
    expect(opened.audit.locator("th.mv-col-address")).to_have_attribute("aria-sort", "ascending")
    opened.field("Policy").select_option(label="Lenient: send shared mailboxes, too")
    expect(opened.button(re.compile(r"^Download Send list\s+31 rows"))).to_be_visible()
    opened.field("Policy").select_option(label="Balanced: review what is in doubt")

    sent = pd.read_csv(opened.save("Download Send list", tmp_path))
    expected = [f"ada{n}@example.org" for n in range(0, 60, 4)] + ["ada@gmail.com"]
    assert sent["E-Mail"].tolist() == expected
    assert sent["E-Mail_as_written"].dropna().tolist() == ["Ada <ada0@example.org>", "ada@gmial.com"]
    opened.field("As").select_option(label="Excel (XLSX)")
    whole = pd.read_excel(opened.save("Download Everything", tmp_path), engine="calamine", keep_default_na=False)
    given = pd.read_csv(source, keep_default_na=False)
    assert whole[list(given.columns)].equals(given)
    report = opened.save("Report to forward", tmp_path)
    assert report.read_text().startswith("<!DOCTYPE html>")
    assert place.is_clean(opened)


@pytest.mark.timeout(300)
def test_40_megabytes_go_up_and_come_down(place: Place, opened: AuditPage, tmp_path: Path) -> None:
    source = large(tmp_path)
    show_audit(place, opened, None)
    opened.page.set_default_timeout(90_000)
    opened.upload(source)
    opened.shown("6,400 cells")
    expect(opened.button("Verify")).to_be_enabled(timeout=90_000)
    opened.button("Verify").click()
    opened.shown("of 640,000 rows ready to mail")
    expect(opened.button(re.compile("^Download Everything"))).to_be_enabled(timeout=90_000)
    found = opened.save("Download Everything", tmp_path)
    assert found.stat().st_size > 40_000_000
    audit = finished(Audit(source, validation_type="regex"))
    files: list[Path] = []
    audit._state.on_file = lambda name, path: files.append(path)
    audit._state.download("everything", "csv")
    audit.wait(90)
    assert found.read_bytes() == files[0].read_bytes()
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
    expect(opened.lines).to_have_count(4)
    opened.field("Search").fill("<img src=x")
    expect(opened.lines).to_have_count(4)
    opened.button("Details of row 2").click()
    expect(opened.audit.locator(".mv-details")).to_contain_text(HOSTILE)
    opened.save("Download Everything", tmp_path)
    assert opened.audit.locator("img, script").count() == 0
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
        expect(opened.step(3)).to_be_disabled()
    opened.upload(contacts(tmp_path))
    expect(opened.button("Verify")).to_be_enabled()
    assert voila_page.is_clean(opened)


def test_a_kernel_restart_in_the_middle_pays_nothing_twice(
    lab: Place, opened: AuditPage, service: ServiceThread, tmp_path: Path
) -> None:
    show_audit(lab, opened, service)
    opened.upload(contacts(tmp_path))
    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").click()
    opened.shown(r"[1-9]\d* of 62 different entries checked")
    restart_kernel(opened.page)
    run_all(opened.page)
    opened.upload(tmp_path / "contacts.csv")
    opened.shown("already paid for|from an earlier run")
    assert opened.figure("to check now") == "0 addresses"
    opened.button("Verify").click()
    opened.shown("62 of 62 different entries checked")
    assert paid(service) == 61
    opened.open_step(1)
    opened.button("Earlier runs").click()
    opened.button(re.compile("^Open the run of")).first.click()
    opened.shown("Earlier run · column email")
    assert paid(service) == 61
    assert lab.is_clean(opened)


def restart_kernel(page: Any) -> None:
    """Restart and clear what is shown."""
    page.locator(".lm-MenuBar-itemLabel", has_text="Kernel").click()
    page.locator(".lm-Menu-itemLabel").get_by_text(re.compile("Restart Kernel and Clear")).click()
    page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    page.locator(".mv-audit").wait_for(state="detached")


def test_a_service_that_goes_away_leaves_a_result_and_a_way_on(
    voila_page: Place, opened: AuditPage, tmp_path: Path
) -> None:
    with paced_service(0.08) as service:
        show_audit(voila_page, opened, service)
        opened.upload(contacts(tmp_path))
        expect(opened.button("Verify")).to_be_enabled()
        opened.button("Verify").click()
        opened.shown(r"[1-9]\d* of 62 different entries checked")
    opened.page.set_default_timeout(90_000)
    opened.shown("What is checked so far is kept")
    opened.shown(r"rows? not checked yet")
    expect(opened.button(re.compile("^(Resume|Try again)$")).first).to_be_visible()
    assert voila_page.is_clean(opened)


def test_a_quota_that_ends_says_when_to_go_on(voila_page: Place, opened: AuditPage, tmp_path: Path) -> None:
    with paced_service(0, daily_limit=30) as service:
        show_audit(voila_page, opened, service)
        opened.upload(contacts(tmp_path))
        opened.shown("on 3 days: come back after 00:00 UTC each day")
        opened.button("Verify").click()
        opened.shown(r"Today's quota is used up. Press Resume after 00:00 UTC \(")
        expect(opened.button("Resume")).to_be_disabled()
        expect(opened.button("Look at the quota again")).to_be_hidden()
        expect(opened.audit.locator(".mv-primary")).to_have_count(1)
    assert voila_page.is_clean(opened)


def test_100_000_rows_are_paged_in_python(voila_page: Place, opened: AuditPage, tmp_path: Path) -> None:
    mails = [f"user{n}@example.org" if n % 50 else "bad" for n in range(100_000)]
    pd.DataFrame({"id": range(100_000), "mail": mails}).to_csv(tmp_path / "large.csv", index=False)
    received: list[int] = []
    opened.page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(len(data))))
    show_audit(voila_page, opened, None)
    opened.field("or a path on the computer that runs this").fill(str(tmp_path / "large.csv"))
    opened.button("Open").click()
    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").click()
    expect(opened.lines).to_have_count(50)
    opened.field("Page").fill("2000")
    opened.field("Page").press("Enter")
    expect(opened.lines.last).to_contain_text("user99999@example.org")
    opened.field("Search").fill("user77777")
    expect(opened.lines).to_have_count(1)
    opened.button("Show all").click()
    expect(opened.lines).to_have_count(50)
    assert 10_000 < sum(received) < 3_000_000, "the rows alone are several times as much"
    assert voila_page.is_clean(opened)


def test_it_can_be_used_without_a_mouse(voila_page: Place, opened: AuditPage, tmp_path: Path) -> None:
    (tmp_path / "mails.csv").write_text("mail\nada@example.org\nAda <ada@example.com>\nnobody\n")
    show_audit(voila_page, opened, None)
    keyboard = opened.page.keyboard
    opened.field("or a path on the computer that runs this").focus()
    keyboard.type(str(tmp_path / "mails.csv"))
    keyboard.press("Enter")
    expect(opened.button("Verify")).to_be_enabled()
    go_to(opened, opened.field("Names, quotes and brackets"))
    keyboard.press("Space")
    expect(opened.field("Names, quotes and brackets")).not_to_be_checked()
    keyboard.press("Space")
    expect(opened.field("Names, quotes and brackets")).to_be_checked()
    expect(opened.button("Verify")).to_be_enabled()
    go_to(opened, opened.button("Verify"))
    keyboard.press("Enter")
    expect(opened.lines).to_have_count(3)
    go_to(opened, opened.value("Verdict", "Invalid"))
    keyboard.press("Enter")
    expect(opened.lines).to_have_count(1)
    expect(opened.value("Verdict", "Invalid")).to_be_focused()
    assert opened.addresses() == ["nobody"]
    go_to(opened, opened.button("Details of row 3"))
    keyboard.press("Enter")
    expect(opened.button("Details of row 3")).to_have_attribute("aria-expanded", "true")
    go_to(opened, opened.button(re.compile("^Download Send list")), key="Shift+Tab")
    with opened.page.expect_download() as saved:
        keyboard.press("Enter")
    assert saved.value.suggested_filename == "mails-send-list.csv"
    assert voila_page.is_clean(opened)


def go_to(opened: AuditPage, control: Any, key: str = "Tab") -> None:
    """Press the tabulator until a control has the focus."""
    for _ in range(80):
        if control.evaluate("node => node === document.activeElement"):
            return
        opened.page.keyboard.press(key)
    raise AssertionError(f"{control} cannot be reached by {key}")


@needs_axe
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_each_state_is_accessible_and_fits_800_pixels(
    browser: Any, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, service: ServiceThread, *, is_dark: bool
) -> None:
    folder = folder_with_notebook(tmp_path_factory, "axe")
    with voila(folder, NOTEBOOK, is_dark=is_dark) as url, audit_page(browser, width=800) as opened:
        place = Place(folder, lambda page: open_page(page, url), VOILA_ICONS)
        show_audit(place, opened, service)
        assert opened.violations() == [], "before a list is loaded"
        opened.upload(contacts(tmp_path))
        expect(opened.button("Verify")).to_be_enabled()
        opened.open_step(1)
        assert opened.violations() == [], "list, tidy and estimate"
        assert fits(opened)
        opened.button("Verify").click()
        opened.shown(r"[1-9]\d* of 62 different entries checked")
        assert opened.violations() == [], "during a run"
        opened.shown("62 of 62 different entries checked")
        expect(opened.lines).to_have_count(50)
        opened.value("Verdict", "Risky").click()
        opened.button(re.compile("^Details of row")).first.click()
        assert opened.violations() == [], "the result"
        assert fits(opened)
        assert opened.audit.locator(".mv-primary").count() == 1
        assert place.is_clean(opened)


def fits(opened: AuditPage) -> bool:
    """Whether nothing of the page must be scrolled sideways."""
    return bool(opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))
