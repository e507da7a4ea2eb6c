"""Take the pictures of the interactive audit and of a report: ``python -m tools.make_pictures``.

JupyterLab runs a small notebook in Debian's chromium, with the helpers of ``tests/widgets``.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
from playwright.sync_api import expect
from tests.widgets.browser import AuditPage, audit_page, chromium, open_in_lab
from tests.widgets.jupyter import jupyter_lab

import mailverdict as mv

from .run_notebooks import METADATA

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "notebooks" / "pictures"
REPORTS = ROOT / "docs" / "pictures"
CODE = """
from contextlib import ExitStack
import mailverdict as mv

world = ExitStack().enter_context(mv.sandbox.World(daily_limit=2000))
audit = mv.widgets.Audit(backend=world.url, validation_type="smtp", journal="journal.db")
audit
"""
HIDE = """
.jp-Cell-inputWrapper, .jp-OutputPrompt, .jp-OutputArea-promptOverlay, .jp-Toolbar,
.jp-Notebook-footer { display: none !important }
"""
SAMPLE = ROOT / "data" / "samples" / "crm_export.csv"
UNSUBSCRIBED = ROOT / "data" / "samples" / "unsubscribed.txt"
WIDTH, HEIGHT, TALLEST = 1240, 2600, 1400
REPORT_SIZE = {"width": 1080, "height": 1000}
PATIENCE = 600_000  # milliseconds for a step: a check of 1,500 mailboxes takes its time
EARLIER_ROWS = 1200  # of the sample, in an earlier audit without repairs


def main() -> None:
    """A picture of the report and of each state of the audit, for each theme."""
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        report = make_report(Path(name))
        for theme in ("light", "dark"):
            page = browser.new_page(viewport=REPORT_SIZE, color_scheme=theme)
            page.goto(report.as_uri())
            page.screenshot(path=REPORTS / f"report-{theme}.png")
            take_pictures(browser, theme)


def make_report(folder: Path) -> Path:
    """A report on the sample list with an earlier audit."""
    contacts = pd.read_csv(SAMPLE, dtype="string", keep_default_na=False, na_values=[""])
    with (
        mv.sandbox.World() as world,
        warnings.catch_warnings(action="ignore", category=UserWarning),
    ):
        options: dict[str, Any] = {
            "validation_type": "smtp",
            "backend": world.backend,
            "columns": "all",
        }
        earlier = mv.verify(
            contacts.head(EARLIER_ROWS), "email", journal=None, progress=False, **options
        )
        now = mv.verify(contacts, "email", journal=None, progress=False, **options)
    earlier["email_checked_at"] -= pd.Timedelta(days=91)
    mv.report(now, "email", folder / "report.html", earlier=earlier, name=SAMPLE.name)
    return folder / "report.html"


def take_pictures(browser: Any, theme: str) -> None:
    """Go through an audit, and save a screenshot of each step; that of the result is called ``audit-light.png``."""
    with tempfile.TemporaryDirectory() as name, audit_page(browser) as opened:
        folder = Path(name)
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(CODE.strip())], metadata=METADATA
        )
        nbformat.write(notebook, folder / "audit.ipynb")
        with jupyter_lab(folder, is_dark=theme == "dark") as url:
            opened.page.set_default_timeout(PATIENCE)
            opened.page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
            open_in_lab(opened, url, "audit.ipynb")
            opened.page.add_style_tag(content=HIDE)
            opened.page.keyboard.press("Control+b")  # folds JupyterLab's list of files
            take(opened, f"audit-list-{theme}")
            opened.upload(SAMPLE)
            opened.shown("1,\\d+ addresses to check")
            opened.open_step(2)
            opened.upload(UNSUBSCRIBED, "Choose a list")
            opened.shown("On your suppression list")
            opened.shown("Costs")
            take(opened, f"audit-tidy-{theme}")
            opened.button(re.compile("^Correct all")).click()
            opened.step(2).click()  # folds it
            expect(opened.button("Verify")).to_be_enabled()
            opened.button("Verify").click()
            opened.shown(r"[1-9]\d\d of 1,\d+ different entries checked")
            take(opened, f"audit-verify-{theme}")
            opened.shown("people can be mailed")
            opened.value("Verdict", "Risky").click()
            opened.shown("of 2,0.. rows")
            take(opened, f"audit-{theme}")


def take(opened: AuditPage, name: str) -> None:
    """Save a screenshot of the audit without the pointer on it."""
    opened.page.mouse.move(0, 0)
    opened.audit.evaluate("(node) => node.scrollIntoView({block: 'start'})")
    opened.page.wait_for_timeout(700)
    box = opened.audit.bounding_box()
    box["height"] = min(box["height"], TALLEST)
    opened.page.screenshot(path=PICTURES / f"{name}.png", clip=box)


if __name__ == "__main__":
    main()
