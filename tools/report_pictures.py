"""Take the pictures of a report for the documentation; `tools.make_pictures` calls it.

The sample list is verified in the sandbox, by a first audit of a part of it and a second one of all.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

import mailverdict as mv

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "data" / "samples" / "crm_export.csv"
EARLIER_ROWS = 1200
WIDTH, HEIGHT = 1080, 1000


def take_report_pictures(browser: Any, folder: Path) -> None:
    """One picture for each scheme, of the top of the page."""
    with tempfile.TemporaryDirectory() as name:
        page = make_report(Path(name))
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            opened = context.new_page()
            opened.goto(page.as_uri())
            opened.screenshot(path=folder / f"report-{scheme}.png")
            context.close()


def make_report(folder: Path) -> Path:
    """A report on the sample list with an earlier audit."""
    contacts = pd.read_csv(SAMPLE, dtype="string", keep_default_na=False, na_values=[""])
    with mv.sandbox.World() as world, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the earlier audit is made without cleaning, which warns
        options: dict[str, Any] = {
            "validation_type": "smtp",
            "backend": world.backend,
            "columns": "all",
            "journal": None,
        }
        earlier = mv.verify(contacts.head(EARLIER_ROWS), "email", progress=False, **options)
        now = mv.verify(contacts, "email", clean=True, progress=False, **options)
    earlier["email_checked_at"] -= pd.Timedelta(days=91)
    mv.report(now, "email", folder / "report.html", earlier=earlier, name=SAMPLE.name)
    return folder / "report.html"
