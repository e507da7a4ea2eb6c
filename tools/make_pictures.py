"""Take the pictures of the interactive audit and of a report: ``python -m tools.make_pictures``.

JupyterLab runs a small notebook in Debian's chromium, with the helpers of ``tests/widgets``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import nbformat
from tests.widgets.browser import audit_page, chromium, open_in_lab
from tests.widgets.jupyter import jupyter_lab

from .report_pictures import take_report_pictures
from .run_notebooks import METADATA

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "notebooks" / "pictures"
REPORTS = ROOT / "docs" / "pictures"
CODE = f"""
import pandas as pd
import mailverdict as mv
from mailverdict.widgets import Audit

from contextlib import ExitStack
world = ExitStack().enter_context(mv.sandbox.World(daily_limit=100))
as_text = {{"dtype": "string", "keep_default_na": False, "na_values": [""]}}
contacts = pd.read_csv({str(ROOT / "data" / "samples" / "crm_export.csv")!r}, **as_text).head(200)
audit = Audit(contacts, world.url)
audit
"""
HIDE = """
.jp-Cell-inputWrapper, .jp-OutputPrompt, .jp-Toolbar, .jp-Notebook-footer { display: none !important }
"""


def main() -> None:
    """One picture for each theme."""
    PICTURES.mkdir(exist_ok=True)
    with chromium() as browser:
        REPORTS.mkdir(exist_ok=True)
        take_report_pictures(browser, REPORTS)
        for is_dark in (False, True):
            take_picture(browser, PICTURES / f"audit-{'dark' if is_dark else 'light'}.png", is_dark=is_dark)


def take_picture(browser: object, path: Path, *, is_dark: bool) -> None:
    """Run the audit to its end and save a screenshot."""
    with tempfile.TemporaryDirectory() as name, audit_page(browser) as opened:
        folder = Path(name)
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE.strip())], metadata=METADATA)
        nbformat.write(notebook, folder / "audit.ipynb")
        with jupyter_lab(folder, is_dark=is_dark) as url:
            opened.page.set_viewport_size({"width": 1500, "height": 1700})
            open_in_lab(opened, url, "audit.ipynb")
            opened.button("Verify").click()
            opened.audit.get_by_text("Download", exact=True).wait_for()
            opened.page.add_style_tag(content=HIDE)
            opened.page.wait_for_timeout(1000)
            opened.audit.screenshot(path=path)


if __name__ == "__main__":
    main()
