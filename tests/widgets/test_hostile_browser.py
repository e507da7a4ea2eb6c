"""A list that was made to do harm, in Debian's chromium: page, widget and report show it, run nothing, and stay whole."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from mailverdict.widgets.view import take_snapshots
from tests.widgets.browser import AXE, CHROMIUM, AuditPage, audit_page
from tests.widgets.conftest import new_audit
from tests.widgets.served import TOKEN, served
from tests.widgets.test_page_browser import show

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"
    ),
]
SCRIPT = (
    "<img src=x onerror=\"alert('cell')\"><script>alert('script')</script><svg onload=alert(1)>"
)
TURNED = "\u202egro.elpmaxe@ada\u2066\u200f"
CONTROLS = "".join(
    map(chr, (*range(1, 9), 11, 12, *range(14, 32), 127, 0x85, 0x2028, 0xFEFF, 0xFFFD))
)
FORMULAS = (
    "=1+1",
    '=HYPERLINK("https://evil.example","click")',
    "+SUM(1)",
    "-2",
    "@A1",
    "=cmd|' /C calc'!A0",
)
LONG = 100_000  # characters of a cell
COLUMNS, ROWS = 200, 10_000
FILE = "<img src=x onerror=alert('name')>\u202egpj.csv"
MOST = 200_000  # characters of all sections of the page


def hostile(folder: Path) -> Path:
    """10,000 different odd cells of 200 columns."""
    odd = [
        SCRIPT,
        f"{SCRIPT}@example.org",
        f'"{SCRIPT}" <ada@example.org>',
        TURNED,
        f"ada{CONTROLS}@example.org",
        "ada\x00@example.org",
        "x" * LONG,
        f"{'x' * LONG}@example.org",
        f"{'a@b.example; ' * (LONG // 13)}",
        f"javascript:alert(1)@{'a.' * 5_000}example",
        "\u0301" * 5_000,
        *FORMULAS,
    ]
    odd += [f"{odd[at % 6]} {at}" for at in range(ROWS - len(odd))]
    heads = [SCRIPT, TURNED, CONTROLS, "y" * LONG, *FORMULAS]
    heads += [f"{SCRIPT} {at}" for at in range(COLUMNS - len(heads))]
    heads[7] = "e-mail" + SCRIPT
    rest = ["", "1", "Ada", SCRIPT, "=1+1"] * (COLUMNS // 5)
    file = folder / FILE
    with file.open("w", encoding="utf-8", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(heads)
        rows.writerows([*rest[:7], cell, *rest[8:]] for cell in odd)
    return file


def watched(opened: AuditPage) -> list[str]:
    """What a script of the list would do: dialogs, and what the browser complains of."""
    seen: list[str] = []
    opened.page.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
    opened.page.on("console", lambda message: message.type == "error" and seen.append(message.text))
    return seen


def is_whole(opened: AuditPage, seen: list[str]) -> bool:
    """Whether nothing was run, and nothing is wider than the window."""
    assert seen == []
    assert opened.page.locator(":is(img, script[src*=alert], svg[onload], [onerror])").count() == 0
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    return opened.is_clean()


def test_a_hostile_list_leaves_page_widget_and_report_whole(browser: Any, tmp_path: Path) -> None:
    audit = new_audit(validation_type="regex")
    with served(audit) as local, audit_page(browser, width=1000) as opened:
        seen = watched(opened)
        opened.go_to(f"{local.base}/#{TOKEN}")
        opened.upload(hostile(tmp_path))
        opened.field("Header line").select_option("yes")
        expect(opened.button("Verify")).to_be_enabled()
        opened.open_step(1)
        assert "\u202e" not in opened.audit.inner_text()
        assert is_whole(opened, seen), "list, tidy and estimate"
        opened.button("Verify").click()
        opened.has_rows(ROWS)
        opened.value("Verdict", "Invalid").click()
        opened.field("Search").fill("<img src=x")
        opened.shown("of 10,000 rows")
        opened.audit.get_by_role("button", name=re.compile("^Details of row")).first.click()
        expect(opened.audit.get_by_role("complementary")).to_contain_text("<script>")
        assert is_whole(opened, seen), "the result"
        if AXE.exists():
            assert opened.violations() == []
        assert len(json.dumps(take_snapshots(audit))) < MOST
        reports = [
            opened.save(rf"{name} \(HTML\)", tmp_path)
            for name in ("Report on one page", "Whole report")
        ]
        assert is_whole(opened, seen)

    with audit_page(browser, width=800) as opened:
        seen = watched(opened)
        show(opened, audit, "<!doctype html>")
        opened.audit.get_by_role("button", name=re.compile("^Details of row")).first.click()
        expect(opened.audit.get_by_role("complementary")).to_contain_text("<script>")
        for number in (1, 2):
            opened.open_step(number)
        assert is_whole(opened, seen), "the widget of a notebook"
    for file in reports:
        with audit_page(browser, width=800) as opened:
            seen = watched(opened)
            opened.page.goto(file.as_uri())
            opened.page.get_by_text("can be mailed").first.wait_for()
            assert is_whole(opened, seen), file.name
