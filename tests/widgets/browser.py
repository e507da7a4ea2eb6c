"""A page of a real browser with an audit on it, and what was noticed there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CHROMIUM = Path("/usr/bin/chromium")
# `make test-rest` gets it from the npm registry.
AXE = Path(__file__).parents[2] / "build" / "axe" / "axe.min.js"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
NOTEBOOK = "page.ipynb"
PATIENCE = 90_000  # milliseconds for one step on a machine that is busy with other things
RUN_PATIENCE = 4_000  # milliseconds until JupyterLab shows that it runs the cells
LOCAL = {"127.0.0.1", "localhost"}


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
        # Without a listener the first dialog may be closed before `expect_file_chooser` has asked for it.
        self.page.on("filechooser", lambda _: None)
        self.page.route(re.compile("^https?://"), self.judge)

    def judge(self, route: Any) -> None:
        """Stop what does not go to this machine."""
        if urlsplit(route.request.url).hostname in LOCAL:
            route.continue_()
        else:
            self.strangers.append(route.request.url)
            route.abort()

    def go_to(self, url: str) -> None:
        """Open a page that shows the audit."""
        self.page.goto(url)
        self.audit.wait_for()

    @property
    def audit(self) -> Any:
        """The whole audit."""
        return self.page.locator(".mv-audit")

    def button(self, name: str | re.Pattern[str]) -> Any:
        """A button by its name; a text is the whole name."""
        return self.audit.get_by_role("button", name=name, exact=isinstance(name, str))

    def field(self, label: str) -> Any:
        """A control by its label, as a screen reader finds it."""
        return self.audit.get_by_label(label, exact=True)

    def value(self, facet: str, name: str) -> Any:
        """A value of a facet."""
        return self.audit.get_by_role("group", name=facet, exact=True).get_by_role(
            "button", name=re.compile(f"^{name}")
        )

    def step(self, number: int) -> Any:
        """The button that opens or folds a step."""
        return self.audit.get_by_role("button", name=re.compile(f"^Step {number}: "))

    def open_step(self, number: int) -> None:
        """Unfold a step."""
        if self.step(number).get_attribute("aria-expanded") == "false":
            self.step(number).click()

    def upload(self, file: Path, button: str = r"Choose (a|another) file") -> None:
        """Choose a file; the button's input is not shown, so the chooser is answered."""
        if button.startswith("Choose (a|"):
            self.open_step(1)
        with self.page.expect_file_chooser() as chooser:
            self.button(re.compile(button)).click()
        chooser.value.set_files(file)

    def drop(self, file: Path) -> None:
        """Drop a file on the audit. The browser reads it for an input that is not on the page."""
        chosen = self.page.evaluate_handle(
            "() => Object.assign(document.createElement('input'), {type: 'file'})"
        )
        chosen.as_element().set_input_files(file)
        data = self.page.evaluate_handle(
            "(input) => { const data = new DataTransfer(); data.items.add(input.files[0]); return data }",
            chosen,
        )
        self.audit.dispatch_event("dragover", {"dataTransfer": data})
        self.audit.dispatch_event("drop", {"dataTransfer": data})

    def paste(self, text: str) -> None:
        """Paste a text on the audit, outside of any field."""
        self.step(1).wait_for()
        self.audit.evaluate(
            """(node, text) => {
              const data = new DataTransfer();
              data.setData("text/plain", text);
              node.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true}));
            }""",
            text,
        )

    def figure(self, what: str) -> str:
        """A figure of the estimate, with its unit."""
        return str(self.audit.locator(".mv-figures div", has_text=what).locator("dd").inner_text())

    def shown(self, text: str) -> Any:
        """Wait for a text."""
        from playwright.sync_api import TimeoutError as NotShown

        found = self.audit.get_by_text(re.compile(text)).first
        try:
            found.wait_for()
        except NotShown as exc:
            raise AssertionError(
                f"{text!r} is not shown; the page shows:\n{self.audit.inner_text()}"
            ) from exc
        return found

    @property
    def lines(self) -> Any:
        """The rows of the table."""
        return self.audit.locator(".mv-table-part tbody tr.mv-line")

    def has_rows(self, count: int) -> None:
        """Wait until the table has so many rows; not all of them are drawn."""
        from playwright.sync_api import expect

        table = self.audit.locator(".mv-table-part table")
        expect(table).to_have_attribute("aria-rowcount", str(count + 1))
        if count:
            expect(self.lines.first.locator(".mv-more")).to_be_visible()

    def addresses(self) -> list[str]:
        """The addresses in the table, as they were written."""
        found: list[str] = self.audit.locator(
            "td.mv-col-address > .mv-cut:first-child"
        ).all_inner_texts()
        return found

    def save(self, name: str, to: Path) -> Path:
        """Download a file by the beginning of its button's name."""
        with self.page.expect_download() as download:
            self.button(re.compile(f"^{name}")).click()
        target = to / download.value.suggested_filename
        download.value.save_as(target)
        return target

    def violations(self) -> list[str]:
        """What axe-core finds at levels A and AA within the audit.

        Meanwhile the line in sight stands at its place: what it covers can be scrolled out below it,
        but axe-core takes it for a target that is too small.
        """
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate(
            """async () => {
              const line = document.querySelector(".mv-next");
              if (line) line.style.position = "static";
              const levels = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
              const found = await axe.run(".mv-audit", {runOnly: levels});
              if (line) line.style.position = "";
              return found;
            }"""
        )
        return [
            f"{each['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
            for each in found["violations"]
            for node in each["nodes"][:3]
        ]

    def is_clean(self) -> bool:
        """Whether no script failed and no other host was asked."""
        assert self.strangers == []
        assert self.errors == []
        return True


@dataclass
class Place:
    """Where an audit is shown, and how it is opened there."""

    folder: Path
    open: Callable[[AuditPage], None]

    def is_clean(self, opened: AuditPage) -> bool:
        """Whether no script failed and no other host was asked."""
        return opened.is_clean()


def folder_with_notebook(factory: Any, name: str, code: str) -> Path:
    """A new folder with a notebook of one cell."""
    import nbformat  # here, since it takes seconds in each process that collects tests

    folder: Path = factory.mktemp(name)
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)], metadata=kernel)
    nbformat.write(notebook, folder / NOTEBOOK)
    return folder


@contextmanager
def chromium() -> Iterator[Any]:
    """Debian's browser."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, headless=True)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def audit_page(browser: Any, width: int = 1280) -> Iterator[AuditPage]:
    """An empty page that is watched."""
    context = browser.new_context(viewport={"width": width, "height": 1100}, accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    opened = AuditPage(context.new_page())
    opened.watch()
    try:
        yield opened
    finally:
        context.close()


def go_to(opened: AuditPage, control: Any, key: str = "Tab") -> None:
    """Press the tabulator until a control has the focus."""
    for _ in range(120):
        if control.evaluate("node => node === document.activeElement"):
            return
        opened.page.keyboard.press(key)
    raise AssertionError(f"{control} cannot be reached by {key}")


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
    for _ in range(PATIENCE // RUN_PATIENCE):
        page.locator(".lm-MenuBar-itemLabel", has_text="Run").click()
        page.locator(".lm-Menu-itemLabel").get_by_text("Run All Cells", exact=True).click()
        try:
            page.locator(".jp-CodeCell .jp-InputPrompt").get_by_text(
                re.compile(r"\[(\d+|\*)\]:")
            ).first.wait_for(timeout=RUN_PATIENCE)
        except NotYet:
            continue
        return
    raise AssertionError("the cells never ran")
