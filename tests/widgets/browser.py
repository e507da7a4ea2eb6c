"""A page of a real browser with an audit on it, and what was noticed there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE = 30_000  # milliseconds for one step on a busy machine
LOCAL = {"127.0.0.1", "localhost"}
# Voila's own template links an icon font, whatever the notebook; without it only icons are missing, and we use none.
VOILA_ICONS = re.compile(r"https://cdn\.jsdelivr\.net/npm/@fortawesome/fontawesome-free@[^/]+/css/[a-z0-9.-]+\.css")


@dataclass
class AuditPage:
    """The audit on a page, by what a person reads there.

    Attributes
    ----------
    page : playwright page
        For everything else.
    strangers : list of str
        URLs beyond this machine that were asked for; none was let through.
    errors : list of str
        Errors of the page's scripts.
    """

    page: Any
    strangers: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Note errors; block other hosts."""
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.route(re.compile("^https?://"), self.judge)

    def judge(self, route: Any) -> None:
        """Stop what does not go to this machine."""
        if urlsplit(route.request.url).hostname in LOCAL:
            route.continue_()
        else:
            self.strangers.append(route.request.url)
            route.abort()

    @property
    def audit(self) -> Any:
        """The whole audit."""
        return self.page.locator(".mv-audit")

    def button(self, name: str) -> Any:
        return self.audit.get_by_role("button", name=name, exact=True)

    def field(self, label: str) -> Any:
        """A control by its label, as a screen reader finds it."""
        return self.audit.get_by_label(label, exact=True)

    def upload(self, file: Path) -> None:
        """Choose a file; the button's input is not in the page, so the chooser is answered."""
        with self.page.expect_file_chooser() as chooser:
            self.audit.get_by_role("button", name=re.compile("Choose a file")).click()
        chooser.value.set_files(file)

    def number(self, label: str) -> int:
        """A count by what stands above it."""
        tile = self.audit.locator(".mv-tile").filter(has=self.page.get_by_text(label, exact=True)).locator("b").first
        return int(tile.inner_text().replace(",", ""))

    def shown(self, text: str) -> Any:
        """Wait for a text."""
        found = self.audit.get_by_text(re.compile(text)).first
        found.wait_for()
        return found

    def rows(self) -> list[list[str]]:
        """The cells of the table."""
        return self.audit.locator("table.dataTable tbody").evaluate(
            "body => [...body.rows].map(row => [...row.cells].map(cell => cell.textContent))"
        )

    def save(self, to: Path) -> Path:
        """Make the file and download it."""
        self.button("Make file").click()
        link = self.audit.locator("a.mv-save")
        link.wait_for()
        with self.page.expect_download() as download:
            link.click()
        target = to / download.value.suggested_filename
        download.value.save_as(target)
        return target


@contextmanager
def chromium() -> Iterator[Any]:
    """Debian's browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, headless=True)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def audit_page(browser: Any) -> Iterator[AuditPage]:
    """An empty page that is watched."""
    context = browser.new_context(viewport={"width": 1280, "height": 1100}, accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    opened = AuditPage(context.new_page())
    opened.watch()
    try:
        yield opened
    finally:
        context.close()


def open_in_lab(opened: AuditPage, url: str, notebook: str) -> None:
    """Open a notebook in JupyterLab and run it."""
    opened.page.goto(f"{url}/lab/tree/{notebook}?reset")
    opened.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    run_all(opened.page)
    opened.audit.wait_for()


def run_all(page: Any) -> None:
    """Run all cells. JupyterLab ignores the command while it connects, so it is repeated until the cells run."""
    from playwright.sync_api import TimeoutError as NotYet

    page.locator("#jp-main-statusbar").get_by_text(re.compile(r"\| Idle")).wait_for()
    for _ in range(5):
        page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
        page.locator(".lm-Menu-itemLabel").get_by_text("Run All Cells", exact=True).click()
        try:
            page.locator(".jp-CodeCell .jp-InputPrompt").get_by_text(re.compile(r"\[(\d+|\*)\]:")).first.wait_for(
                timeout=4000
            )
        except NotYet:
            continue
        return
    raise AssertionError("the cells never ran")
