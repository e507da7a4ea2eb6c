"""Three tasks of a manager in Debian's chromium, by mouse and by keyboard alone.

From an export of HubSpot to the file that HubSpot imports; find out which owner's leads are bad, and send a colleague the
address of the page that shows them; take Friday's bounces off, and make wave 2.
"""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import expect

from tests.widgets.browser import AXE, CHROMIUM, AuditPage, audit_page, go_to
from tests.widgets.conftest import finished, new_audit, ready
from tests.widgets.paced import PacedBackend
from tests.widgets.served import TOKEN, served

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(400),
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"
    ),
]
HANDS = pytest.mark.parametrize("hand", ["mouse", "keyboard"])
ROWS = 3_000
OWNERS = ("Anna Virtanen", "Boris Klein", "Chen Li", "Dora Diaz")
BAD_OWNER = "Boris Klein"


def hubspot_export(path: Path) -> pd.DataFrame:
    """Contacts as HubSpot exports them, with the columns of its public description."""
    made_up = random.Random(3)
    contacts = []
    for number in range(ROWS):
        owner = made_up.choice(OWNERS)
        share_gone = 0.3 if owner == BAD_OWNER else 0.05
        local = "gone" if made_up.random() < share_gone else "ada"
        host = f"firm{number % 60}.example"
        contacts.append(
            {
                "Record ID": 51_000 + number,
                "First Name": f"Person {number}",
                "Last Name": "Lovelace",
                "Email": f"{local}{number}@{host}",
                "Additional email addresses": f"info{number}@{host}" if number % 9 == 0 else "",
                "Contact owner": owner,
                "Lead Status": made_up.choice(("New", "Open", "")),
                "Lifecycle Stage": "Lead",
                "Marketing contact status": "Marketing contact",
                "Unsubscribed from all email": "true" if number % 50 == 7 else "",
                "Create Date": f"2026-0{1 + number % 9}-11 09:30",
            }
        )
    contacts[4]["Email"] = f"Ada Lovelace <{contacts[4]['Email']}>"
    contacts[5]["Email"] = ""
    contacts[6]["Email"] = contacts[3]["Email"]
    frame = pd.DataFrame(contacts)
    frame.to_csv(path, index=False)
    return frame


@dataclass
class Person:
    """Somebody before the page, who uses the mouse, or only the keyboard."""

    opened: AuditPage
    hand: str
    folder: Path

    def press(self, control: Any) -> None:
        """Press a button."""
        expect(control).to_be_enabled()
        if self.hand == "mouse":
            control.click()
            return
        self.reach(control)
        self.opened.page.keyboard.press("Enter")

    def reach(self, control: Any) -> None:
        """Move the focus to a control: it is near what was pressed last, or farther down."""
        for key, most in (("Tab", 60), ("Shift+Tab", 90)):
            for _ in range(most):
                if control.evaluate("node => node === document.activeElement"):
                    return
                self.opened.page.keyboard.press(key)
        go_to(self.opened, control)

    def choose(self, label: str, option: str) -> None:
        """Choose one of several by its name."""
        field = self.opened.field(label)
        if self.hand == "mouse":
            field.select_option(label=option)
            return
        self.reach(field)
        self.opened.page.keyboard.type(option)

    def give(self, button: Any, file: Path) -> None:
        """Answer the dialog of a button with a file."""
        with self.opened.page.expect_file_chooser() as chooser:
            self.press(button)
        chooser.value.set_files(file)

    def save(self, button: Any) -> pd.DataFrame:
        """The table that a button downloads."""
        with self.opened.page.expect_download() as saved:
            self.press(button)
        target = self.folder / saved.value.suggested_filename
        saved.value.save_as(target)
        return pd.read_csv(target)


@HANDS
def test_from_an_export_of_hubspot_to_the_file_that_hubspot_imports(
    browser: Any, tmp_path: Path, hand: str
) -> None:
    given = hubspot_export(tmp_path / "hubspot-crm-exports-all-contacts.csv")
    audit = new_audit(PacedBackend(None), "smtp")
    with served(audit) as local, audit_page(browser, width=1440) as opened:
        person = Person(opened, hand, tmp_path)
        opened.go_to(f"{local.base}/#{TOKEN}")
        person.give(
            opened.button("Choose a file"), tmp_path / "hubspot-crm-exports-all-contacts.csv"
        )
        # The column of the addresses, and what only a person can say.
        opened.shown("column Email")
        opened.shown("60 rows say true. Take them off?")
        person.press(opened.button("Take them off: Unsubscribed from all email"))
        opened.shown("60 rows taken off")
        expect(opened.button("Verify")).to_be_enabled()
        person.press(opened.button("Verify"))
        opened.shown("people can be mailed")
        person.choose("For", "HubSpot")
        sent = person.save(opened.button("Download send list for HubSpot"))
        opened.shown("HubSpot finds people by the column 'Record ID'")
        removed = person.save(opened.button(re.compile("^Download To take off in HubSpot")))
        opened.page.reload()
        expect(opened.field("For")).to_have_value("hubspot")
        expect(opened.button("Download send list for HubSpot")).to_be_enabled()
        assert violations(opened) == []
        assert opened.is_clean()
    assert list(sent.columns) == list(removed.columns) == ["Record ID", "Email"]
    by_id = given.set_index("Record ID")
    unsubscribed = set(by_id.index[by_id["Unsubscribed from all email"] == "true"])
    assert not unsubscribed & set(sent["Record ID"])
    assert unsubscribed <= set(removed["Record ID"])
    assert sent["Email"].is_unique
    assert sent["Email"].str.startswith("ada").all()
    assert len(sent) == audit.result.listing.counts.people


@HANDS
def test_which_owner_has_bad_leads_is_found_and_the_address_of_the_page_shows_them(
    browser: Any, tmp_path: Path, hand: str
) -> None:
    file = tmp_path / "export.csv"
    given = hubspot_export(file)
    audit = finished(ready(file, PacedBackend(None), validation_type="smtp"))
    with served(audit) as local, audit_page(browser, width=1440) as opened:
        person = Person(opened, hand, tmp_path)
        opened.go_to(f"{local.base}/#{TOKEN}")
        found = opened.audit.get_by_role("region", name="Where they come from")
        worst = found.get_by_role("button", name=re.compile(f"“{BAD_OWNER}”")).first
        expect(worst).to_contain_text("% invalid of")
        person.press(worst)
        of_owner = (given["Contact owner"] == BAD_OWNER) & (given.index != 6)
        expect(opened.audit.locator(".mv-found")).to_contain_text(re.compile(r"^\d+ of 3,000 rows"))
        person.press(opened.value("Verdict", "Invalid"))
        bad = of_owner & given["Email"].str.contains("gone")
        opened.has_rows(int(bad.sum()))
        # Another filter, then the address of the first one: the same rows, also after a reload.
        address = opened.page.url
        assert "verdict=invalid" in address
        assert "group=5+Boris+Klein" in address
        person.press(opened.button("Show all"))
        opened.has_rows(ROWS)
        assert "?" not in opened.page.url
        opened.page.go_back()
        opened.has_rows(int(bad.sum()))
        expect(opened.page).to_have_url(address)
        opened.page.reload()
        opened.has_rows(int(bad.sum()))
        opened.page.goto(f"{local.base}/?words=ada17#{TOKEN}")
        opened.shown("of 3,000 rows")
        expect(opened.field("Search")).to_have_value("ada17")
        assert all("ada17" in each for each in opened.addresses())
        assert opened.is_clean()


@HANDS
def test_fridays_bounces_are_taken_off_and_wave_2_is_made(
    browser: Any, tmp_path: Path, hand: str
) -> None:
    file = tmp_path / "export.csv"
    hubspot_export(file)
    audit = finished(ready(file, PacedBackend(None), validation_type="smtp"))
    with served(audit) as local, audit_page(browser, width=1440) as opened:
        person = Person(opened, hand, tmp_path)
        opened.go_to(f"{local.base}/#{TOKEN}")
        first = person.save(opened.button("Make wave 1"))
        gone = first["Email"].head(2).tolist()
        bounces = tmp_path / "bounces-friday.csv"
        now = int(time.time())
        lines = [f"{email},{now},5.1.1,550 5.1.1 User unknown" for email in gone]
        bounces.write_text("\n".join(["email,created,status,reason", *lines]) + "\n")
        person.give(opened.button("Choose the export"), bounces)
        opened.shown("2 mailboxes do not exist any more")
        person.press(opened.button("Take them off the list"))
        opened.shown("Decided by hand: Remove 2")
        complete = opened.field("All bounces have come")
        if hand == "mouse":
            opened.audit.get_by_text("All bounces have come").click()
        else:
            person.reach(complete)
            opened.page.keyboard.press("Space")
        expect(complete).to_be_checked()
        second = person.save(opened.button("Make wave 2"))
        opened.shown("Wave 2 of")
        expect(opened.button("Undo: wave 2").last).to_be_visible()
        assert violations(opened) == []
        assert opened.is_clean()
    assert len(second) > 0
    assert not set(gone) & set(second["Email"])
    assert not set(first["Email"]) & set(second["Email"])


def violations(opened: AuditPage) -> list[str]:
    """What axe-core finds, where it could be got."""
    return opened.violations() if AXE.exists() else []
