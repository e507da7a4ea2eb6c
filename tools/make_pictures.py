"""Take the pictures of the interactive audit and of a report: ``python -m tools.make_pictures``.

The page of the audit is served as `mailverdict audit` does, and shown in Debian's chromium, with the
helpers of ``tests/widgets``. The mail servers are made up.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from playwright.sync_api import expect
from tests.widgets.browser import AuditPage, audit_page, chromium
from tests.widgets.served import TOKEN, served

import mailverdict as mv
from mailverdict.widgets.state import AuditState

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "notebooks" / "pictures"
REPORTS = ROOT / "docs" / "pictures"
SAMPLE = ROOT / "data" / "samples" / "crm_export.csv"
UNSUBSCRIBED = ROOT / "data" / "samples" / "unsubscribed.txt"
WIDTH, SHORTEST, TALLEST = 1160, 300, 1400
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
    with (
        tempfile.TemporaryDirectory() as folder,
        mv.sandbox.World(daily_limit=2000) as world,
        audit_page(browser, WIDTH) as opened,
    ):
        journal = Path(folder, "journal.db")
        settings = {"backend": world.url, "journal": journal, "screen": None, "limit": None}
        audit = AuditState(settings, "smtp", folder=folder)
        opened.page.set_default_timeout(PATIENCE)
        opened.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        with served(audit) as local:
            opened.go_to(f"{local.base}/#{TOKEN}")
            take(opened, f"audit-list-{theme}")
            opened.upload(SAMPLE)
            opened.shown(r"1,\d+ addresses to check")
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
    """Save a screenshot of the page, as high as its content up to a limit, without the pointer on it."""
    page = opened.page
    page.mouse.move(0, 0)
    page.set_viewport_size({"width": WIDTH, "height": SHORTEST})
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": WIDTH, "height": min(height, TALLEST)})
    # What has the focus would be kept where it is on the screen.
    page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0) }")
    page.wait_for_timeout(700)
    page.screenshot(path=PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
