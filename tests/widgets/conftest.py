"""What tests of the audit share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.sandbox.serving import ServiceThread
from mailverdict.widgets.state import AuditState
from mailverdict.widgets.view import take_snapshot
from tests.widgets.browser import (
    NOTEBOOK,
    AuditPage,
    Place,
    audit_page,
    chromium,
    folder_with_notebook,
    open_in_lab,
)
from tests.widgets.jupyter import jupyter_lab
from tests.widgets.paced import paced_service
from tests.widgets.served import TOKEN, served

KINDS = ("ada", "gone", "info", "full")
QUICK = mv.PollSchedule(steps=((600, 0.05),))
SLOW = mv.PollSchedule(steps=((600, 1.5),))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's chromium."""
    with chromium() as running:
        yield running


@pytest.fixture
def opened(browser: Any) -> Iterator[AuditPage]:
    """An empty page."""
    with audit_page(browser) as page:
        yield page


@pytest.fixture(scope="module")
def lab(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """JupyterLab with a notebook of the module's `CODE`."""
    folder = folder_with_notebook(tmp_path_factory, "lab", request.module.CODE)
    with jupyter_lab(folder) as url:
        yield Place(folder, lambda opened: open_in_lab(opened, url, NOTEBOOK))


@pytest.fixture
def local_page(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """The page of `mailverdict audit`, with what the module's `local_audit` makes of a folder; a new one each time."""
    folder = tmp_path_factory.mktemp("local")
    with ExitStack() as stack:

        def open_page(opened: AuditPage) -> None:
            state = request.module.local_audit(folder)
            page = stack.enter_context(served(state))
            opened.go_to(f"{page.base}/#{TOKEN}")

        yield Place(folder, open_page)


@pytest.fixture(params=["lab", "local_page"])
def place(request: pytest.FixtureRequest) -> Place:
    """JupyterLab, then the page of `mailverdict audit`."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def contacts() -> pd.DataFrame:
    """40 addresses of four kinds, an empty cell, a malformed one, and one twice."""
    mails = [f"{KINDS[n % 4]}{n}@example.org" for n in range(40)]
    mails += [None, "not an address", "ADA0@example.org".lower()]
    return pd.DataFrame({"name": [f"Person {n}" for n in range(len(mails))], "E-Mail": mails})


@pytest.fixture
def service() -> Iterator[ServiceThread]:
    """A service that takes its time."""
    with paced_service(0.02) as running:
        yield running


def new_audit(
    backend=None,
    validation_type="mx",
    *,
    journal="auto",
    screen=None,
    limit=None,
    **options,
) -> AuditState:
    """An audit without a list, with the defaults of `Audit`."""
    settings = {"backend": backend, "journal": journal, "screen": screen, "limit": limit}
    return AuditState(settings, validation_type, **options)


def ready(data, backend=None, *, column=None, **options) -> AuditState:
    """An audit whose estimate is there."""
    audit = new_audit(backend, **options)
    audit.load(data, column)
    audit.work.wait(30)
    return audit


def finished(audit: AuditState) -> AuditState:
    """The same after a run."""
    audit.verify()
    audit.work.wait(30)
    return audit


def result_of(audit: AuditState) -> pd.DataFrame | None:
    """The rows of the result with all columns; None where there is no result."""
    return None if audit.result is None else audit.result.listing.rows.to_frame()


def shown(audit: AuditState, section: str) -> dict[str, Any]:
    """What the page shows of a section."""
    return take_snapshot(audit, section)


def message(audit: AuditState, section: str = "check") -> str:
    """The message of a section."""
    return shown(audit, section)["message"]


def wait_for_settled(audit: AuditState, count: int) -> None:
    """Return when a run has settled so many addresses."""
    enough = threading.Event()
    audit.check.run.subscribe(
        lambda progress: enough.set() if progress.settled >= count or progress.is_over else None
    )
    enough.wait()  # pytest's own time-out applies
