"""What somebody does who has only read the README: five tasks in Debian's chromium, by mouse and by keyboard alone.

Find the page, verify a list without a header line, get the send list, find out why somebody was removed, and explain the
result to a manager.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import expect

import mailverdict as mv
from tests.widgets.browser import AXE, CHROMIUM, AuditPage, audit_page, go_to

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"
    ),
]
ROOT = Path(__file__).parents[2]
LIST = "contacts.csv"
ROWS = 300


def contacts(folder: Path) -> pd.DataFrame:
    """People of the sample, as a spreadsheet program saves them when nobody gave the columns names."""
    sample = pd.read_csv(ROOT / "data" / "samples" / "crm_export.csv", dtype="string", nrows=ROWS)
    # One address a cell.
    sample["email"] = sample["email"].where(~sample["email"].str.contains(r"@.*@", na=False))
    names = sample["first_name"].fillna("") + " " + sample["last_name"].fillna("")
    made = pd.DataFrame(
        {"name": names.str.strip(), "email": sample["email"], "country": sample["country"]}
    )
    made.to_csv(folder / LIST, index=False, header=False)
    return made


@contextmanager
def started(folder: Path) -> Iterator[str]:
    """Run the command that the README names, with made-up servers; gives the address that it prints."""
    command = f"mailverdict audit {LIST}"
    assert re.search(f"^{command}$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    own = {
        **os.environ,
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    server = subprocess.Popen(
        [sys.executable, "-m", *command.split(), "--sandbox", "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=own,
        cwd=folder,
    )
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.communicate(timeout=60)


@pytest.mark.parametrize("hand", ["mouse", "keyboard"])
def test_a_newcomer_gets_from_the_readme_to_a_page_for_the_manager(
    browser: Any, tmp_path: Path, hand: str
) -> None:
    given = contacts(tmp_path)

    def press(control: Any, key: str = "Tab") -> None:
        if hand == "mouse":
            return control.click()
        go_to(opened, control, key)
        return opened.page.keyboard.press("Enter")

    def save(name: str, key: str = "Tab") -> Path:
        with opened.page.expect_download() as saved:
            press(opened.button(re.compile(f"^{name}")), key)
        target = tmp_path / saved.value.suggested_filename
        saved.value.save_as(target)
        return target

    with started(tmp_path) as url, audit_page(browser, width=1440) as opened:
        # 1 The page opens with the list, and says what is next.
        opened.go_to(url)
        expect(opened.button("Verify")).to_be_enabled()
        assert opened.audit.locator(".mv-primary").all_inner_texts() == ["Verify"]

        # 2 The first line is a person: no row is lost to a header.
        press(opened.step(1), "Shift+Tab")
        first = opened.audit.get_by_role("region", name="The first rows").get_by_role("row").nth(1)
        expect(first).to_contain_text(given["email"][0])
        opened.shown(f"{ROWS} rows, 3 columns")
        press(opened.button("Verify"))
        expect(
            opened.audit.get_by_role("heading", name=re.compile("^contacts.csv"))
        ).to_be_visible()
        people, rows, whole = re.fullmatch(
            r"(\d+)\speople may be mailed\s+"
            r"\(domain checked; mailboxes not asked: some will bounce\)\s"
            r"in (\d+) of (\d+) rows \(.*%\)",
            opened.audit.locator(".mv-figure-part").inner_text(),
        ).groups()  # type: ignore[union-attr]
        violations(opened)

        # 3 The send list has those who can be mailed, and nobody else.
        sent = pd.read_csv(save("Download Send list"), dtype="string", keep_default_na=False)
        with mv.sandbox.World() as world:
            out = mv.verify(given, "email", backend=world.backend, progress=False)
        may_be_sent = mv.split(out, policy="balanced").send
        mailboxes = mv.duplicates(may_be_sent, "email")  # each gets one mail
        can_be_mailed = may_be_sent[mailboxes["email_duplicate_of"].isna()]
        assert len(sent) == int(rows) == len(can_be_mailed)
        assert int(whole) == len(out)
        assert set(sent.iloc[:, 1]) == set(can_be_mailed["email_clean"])

        # 4 One person is looked up; why he is not mailed is in his row, and all about him beside it.
        removed = mv.split(out, policy="balanced").drop
        person = removed[removed["email_why"] == "no_mx_record"].iloc[0]
        if hand == "mouse":
            opened.field("Search").fill(person["name"])
        else:
            go_to(opened, opened.field("Search"))
            opened.page.keyboard.type(person["name"])
        line = opened.lines.filter(has_text=person["email"]).first
        expect(line).to_contain_text("Domain receives no mail")
        expect(line).to_contain_text("Remove")
        expect(opened.lines.filter(has_text=given["email"][0])).to_have_count(
            int(person["email"] == given["email"][0])
        )
        press(line.get_by_role("button", name=re.compile("^Details of row")))
        details = opened.audit.get_by_role("complementary")
        expect(details).to_contain_text(person["name"])
        expect(details).to_contain_text("the domain does not exist")
        violations(opened)

        # 5 One page says it to somebody who was not there, with the same figures.
        report = save(r"Report on one page \(HTML\)", "Shift+Tab")
        assert opened.is_clean()
    with audit_page(browser) as paper:
        paper.page.goto(report.as_uri())
        expect(paper.page.get_by_text(f"{people} people", exact=False).first).to_be_visible()
        expect(paper.page.get_by_text("contacts.csv").first).to_be_visible()
        printed = paper.page.pdf(prefer_css_page_size=True, print_background=False)
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
        assert b"/MediaBox [0 0 594.9" in printed or b"/MediaBox [0 0 595" in printed  # A4
        assert paper.errors == paper.strangers == []


def violations(opened: AuditPage) -> None:
    if AXE.exists():
        assert opened.violations() == []
