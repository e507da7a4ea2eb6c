"""The live widget of a run in JupyterLab and in marimo, by what a person reads and does there."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.doubles.ports import free_port
from tests.doubles.waiting import wait_until
from tests.widgets.browser import (
    AXE,
    CHROMIUM,
    NOTEBOOK,
    PATIENCE,
    AuditPage,
    audit_page,
    folder_with_notebook,
    run_all,
)
from tests.widgets.jupyter import accepts_connections, jupyter_lab, own_places

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"
    ),
]
HAS_MARIMO = importlib.util.find_spec("marimo") is not None
LIST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import pandas as pd
import mailverdict as mv
from tests.widgets.paced import paced_service
serving = paced_service(0.1)
service = serving.__enter__()
df = pd.DataFrame({{"email": [f"{{kind}}{{at}}@example.org" for at in range(99) for kind in ("ada", "gone", "info")]}})
options = {{"backend": service.url, "validation_type": "smtp"}}
"""
CODE = f"""{LIST}
run = mv.start(df, "email", **options)
run
"""
MARIMO = f"""
import marimo

app = marimo.App()


@app.cell
def _():
{LIST.replace(chr(10), chr(10) + "    ")}
    return df, mv, options


@app.cell
def _(df, mv, options):
    mv.start(df, "email", **options)
    return


@app.cell
def _(df, mv, options):
    len(mv.verify(df.head(40), "email", **options, journal=None))
    return
"""


class RunPage:
    """The widget of a run on a page."""

    def __init__(self, opened: AuditPage) -> None:
        self.opened, self.page = opened, opened.page
        self.widget = opened.page.locator("section.mv-repr").first

    def button(self, name: str) -> Any:
        return self.widget.get_by_role("button", name=name, exact=True)

    def state(self, name: str) -> None:
        """Wait for the first word."""
        self.widget.locator("b", has_text=re.compile(f"^{name}$")).first.wait_for()

    def share(self) -> int:
        return int(self.widget.get_by_role("progressbar").get_attribute("aria-valuenow"))

    def moves(self) -> None:
        """Wait until more is checked."""
        before = self.share()
        wait_until(lambda: self.page.wait_for_timeout(100) or self.share() > before)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = folder_with_notebook(tmp_path_factory, "run", CODE)
    with jupyter_lab(folder) as url:
        yield url


@pytest.fixture
def run(browser: Any, lab: str) -> Iterator[RunPage]:
    """The run in JupyterLab."""
    with audit_page(browser) as opened:
        opened.page.goto(f"{lab}/lab/tree/{NOTEBOOK}?reset")
        opened.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        run_all(opened.page)
        shown = RunPage(opened)
        shown.widget.wait_for()
        yield shown
        assert (opened.errors, opened.strangers) == ([], [])


def test_it_moves_is_paused_goes_on_and_ends_by_the_keyboard_alone(run):
    run.state("Checking")
    run.moves()
    run.button("Pause").focus()
    run.page.keyboard.press("Enter")
    run.state("Paused")
    assert run.button("Resume").evaluate("node => node === document.activeElement")
    assert run.widget.get_by_role("status").inner_text().startswith("Paused.")
    before = run.share()
    run.page.keyboard.press("Enter")
    run.state("Checking")
    run.moves()
    assert run.share() > before
    run.page.keyboard.press("Tab")
    assert run.button("Cancel").evaluate("node => node === document.activeElement")
    run.page.keyboard.press("Space")
    run.state("Cancelled")
    assert run.widget.get_by_role("button").count() == 0
    # Not lost with the button.
    assert run.widget.evaluate("node => node === document.activeElement")
    # JupyterLab's shortcuts have done nothing.
    assert run.page.locator(".jp-Notebook .jp-Cell").count() == 1


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there: make test-rest gets it")
def test_it_has_no_accessibility_violation(run):
    run.moves()
    run.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = run.page.evaluate(
        "() => axe.run('section.mv-repr', {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"
    )
    assert [each["id"] for each in found["violations"]] == []


def test_when_the_kernel_is_gone_it_says_what_to_do(run):
    run.moves()
    run.page.locator(".lm-MenuBar-itemLabel", has_text="Kernel").click()
    run.page.locator(".lm-Menu-itemLabel").get_by_text("Shut Down Kernel", exact=True).click()
    run.widget.get_by_text("Kernel stopped: run the cell again.").wait_for()
    run.state("Stopped")
    assert run.button("Pause").get_attribute("aria-disabled") == "true"
    ground = run.widget.evaluate("node => getComputedStyle(node).backgroundColor")
    assert ground == "rgb(255, 255, 255)"  # JupyterLab's light theme


@pytest.fixture
def marimo(tmp_path: Path) -> Iterator[str]:
    """The notebook as an application of marimo; gives its URL."""
    (tmp_path / "page.py").write_text(MARIMO, encoding="utf-8")
    port = free_port()
    address = ("--host", "127.0.0.1", "--port", str(port), "--headless", "--no-token")
    server = subprocess.Popen(
        [sys.executable, "-m", "marimo", "--quiet", "run", "page.py", *address],
        cwd=tmp_path,
        env={
            **os.environ,
            **own_places(tmp_path),
            "XDG_CONFIG_HOME": str(tmp_path),
            "XDG_STATE_HOME": str(tmp_path),
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: server.poll() is not None or accepts_connections(port))
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait()


@pytest.mark.skipif(not HAS_MARIMO, reason="marimo is not installed: pip install marimo")
def test_marimo_shows_a_run_and_the_progress_of_verify(browser, marimo):
    with audit_page(browser) as opened:
        opened.page.emulate_media(color_scheme="light")
        opened.page.goto(marimo)
        run = RunPage(opened)
        run.widget.wait_for(timeout=PATIENCE)
        bar = opened.page.locator("section.mv-repr").nth(1)
        bar.get_by_text(re.compile(r"[1-9]\d* of 40 addresses checked")).wait_for()
        assert bar.get_by_role("button").count() == 0  # the kernel is busy with this cell
        opened.page.get_by_text(re.compile(r"^40$")).wait_for()  # the result of the cell
        run.moves()
        run.button("Pause").click()
        run.state("Paused")
        run.button("Resume").click()
        run.state("Checking")
        run.moves()
        run.button("Cancel").click()
        run.state("Cancelled")
        assert (opened.errors, opened.strangers) == ([], [])
