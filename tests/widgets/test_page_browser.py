"""The page in Debian's chromium without a kernel: the test decides when the kernel answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import expect

from mailverdict.widgets.audit import PageWidget, front_end
from mailverdict.widgets.state import SECTIONS, AuditState
from tests.widgets.browser import CHROMIUM, AuditPage
from tests.widgets.conftest import finished, new_audit, ready

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"
    ),
]
FAKE_MODEL = """
async ([script, traits]) => {
  const handlers = {};
  window.sent = [];
  window.kernel = {};
  const signal = (name) => ({ connect: (listener) => { window.kernel[name] = listener; }, disconnect() {} });
  const widget_manager = { kernel: { statusChanged: signal("kernel"), connectionStatusChanged: signal("wire") } };
  const model = { widget_manager, get: (name) => traits[name], send: (content) => window.sent.push(content), off() {},
    on(name, handler) { (handlers[name] ??= []).push(handler); } };
  window.change = (name, value) => { traits[name] = value; (handlers[`change:${name}`] ?? []).forEach((each) => each()); };
  const module = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  const el = document.getElementById("shadow")?.attachShadow({ mode: "open" }) ?? document.body;
  module.default.render({ model, el });
}
"""
REPAIR = "Names, quotes and brackets"


def traits(audit: AuditState) -> dict[str, Any]:
    """What the kernel has sent."""
    widget = PageWidget(audit)
    return {
        name: getattr(widget, name)
        for name in (*(f"{each}_section" for each in SECTIONS), "marks", "words")
    }


def show(opened: AuditPage, audit: AuditState, content: str = "") -> None:
    """The page of an audit that gets no answers by itself."""
    opened.page.set_content(content)
    opened.page.add_style_tag(content=PageWidget(audit)._css)
    opened.page.evaluate(FAKE_MODEL, [front_end(), {**traits(audit), "answered": ""}])


def change(opened: AuditPage, name: str, value: Any) -> None:
    """A change that the kernel sends, and until it is drawn."""
    opened.page.evaluate(
        "([name, value]) => { change(name, value); return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))) }",
        [name, value],
    )


def test_a_switch_stays_as_it_was_pressed_until_the_kernel_has_answered(opened: AuditPage) -> None:
    audit = ready(
        pd.DataFrame({"mail": ["Ada <ada@example.org>", "bob@example.org"]}),
        validation_type="regex",
    )
    show(opened, audit)
    earlier = traits(audit)["tidy_section"]
    opened.open_step(2)
    switch = opened.field(REPAIR)
    assert switch.is_checked()
    opened.audit.get_by_text(REPAIR).click()
    change(opened, "tidy_section", {**earlier, "busy": "Looking through the list…"})
    assert not switch.is_checked(), "the section is from before"
    opened.audit.get_by_text(REPAIR).click()
    change(opened, "tidy_section", earlier)
    sent = opened.page.evaluate("sent")
    assert [(each["act"], each["is_on"]) for each in sent] == [
        ("set_repair", False),
        ("set_repair", True),
    ]

    widget = PageWidget(audit)
    for number, message in enumerate(sent):
        widget.receive(None, message, [])
        audit.work.wait(30)
        assert widget.answered == message["answer"]
        change(opened, "tidy_section", widget.tidy_section)
        assert switch.is_checked(), "the first answer is not about the last press"
        change(opened, "answered", widget.answered)
        assert switch.is_checked()
        assert widget.tidy_section["items"][0]["on"] == bool(number)
    change(opened, "tidy_section", {**earlier, "items": [{**earlier["items"][0], "on": False}]})
    assert not switch.is_checked(), "nothing is pending any more"
    assert opened.errors == []


def test_a_choice_that_the_kernel_refuses_is_taken_back(opened: AuditPage) -> None:
    audit = ready(pd.DataFrame({"mail": ["Ada <ada@example.org>"]}), validation_type="regex")
    show(opened, audit)
    opened.open_step(2)
    opened.audit.get_by_text(REPAIR).click()
    assert not opened.field(REPAIR).is_checked()
    audit.check.is_running = True
    widget = PageWidget(audit)
    widget.receive(None, opened.page.evaluate("sent")[0], [])
    change(opened, "tidy_section", widget.tidy_section)
    change(opened, "answered", widget.answered)
    assert opened.field(REPAIR).is_checked()
    assert "a check is running" in widget.tidy_section["message"].casefold()


def test_another_sheet_is_chosen(opened: AuditPage, tmp_path: Path) -> None:
    file = tmp_path / "club.xlsx"
    with pd.ExcelWriter(file) as book:
        for name in ("Members", "Former"):
            pd.DataFrame({"mail": ["ada@example.org"]}).to_excel(book, sheet_name=name, index=False)
    show(opened, ready(file, validation_type="regex"))
    opened.open_step(1)
    assert opened.field("Characters").count() == 0, "a workbook has no encoding"
    opened.field("Header line").select_option("no")
    opened.field("Sheet").select_option("Former")
    expected = {"act": "read_again", "encoding": "", "has_header": "", "sheet": "Former"}
    assert opened.page.evaluate("sent")[-1].items() >= expected.items()
    assert opened.errors == []


def test_the_column_of_addresses_is_in_sight_beside_many_others(opened: AuditPage) -> None:
    columns = {f"column number {at}": ["a cell with some words"] for at in range(7)}
    audit = ready(pd.DataFrame({**columns, "mail": ["ada@example.org"]}), validation_type="regex")
    opened.page.set_viewport_size({"width": 700, "height": 900})
    show(opened, audit)
    opened.open_step(1)
    rows = opened.audit.get_by_role("region", name="The first rows")
    expect(rows.get_by_text("ada@example.org")).to_be_in_viewport()
    assert rows.evaluate("(box) => box.scrollWidth > box.clientWidth")
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", [1000, 1240, 1280, 1440])
def test_the_most_frequent_reasons_are_not_cut_in_the_table(opened: AuditPage, width: int) -> None:
    audit = finished(
        ready(
            pd.DataFrame({"mail": ["ada@gmial.com", "Bo <bo@example.org>"]}),
            validation_type="regex",
        )
    )
    opened.page.set_viewport_size({"width": width, "height": 900})
    show(opened, audit)
    decide = PageWidget(audit).decide_section
    for label in ("Domain accepts every address", "Shared mailbox such as info@"):
        row = {**decide["table"]["rows"][0], "reason": label}
        change(
            opened, "decide_section", {**decide, "table": {"first": 0, "total": 1, "rows": [row]}}
        )
        cell = opened.audit.locator("td.mv-col-reason, .mv-why").locator("visible=true")
        assert cell.inner_text() == label
        assert cell.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth"), label


@pytest.mark.parametrize(
    "around", ["", 'data-jp-theme-light="true"', 'data-jp-theme-light="false"']
)
def test_the_colours_follow_the_page_around_else_the_browser_without_a_reload(
    opened: AuditPage, around: str
) -> None:
    audit = ready(pd.DataFrame({"mail": ["ada@example.org"]}), validation_type="regex")
    show(opened, audit, f"<body {around}></body>")
    for scheme in ("light", "dark", "light"):
        opened.page.emulate_media(color_scheme=scheme)
        expected = scheme if not around else "light" if "true" in around else "dark"
        assert opened.audit.evaluate("(audit) => getComputedStyle(audit).colorScheme") == expected
    opened.page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    assert opened.audit.evaluate("(audit) => getComputedStyle(audit).colorScheme") == "dark"


def test_in_a_shadow_tree_the_colours_follow_the_colour_scheme_around(opened: AuditPage) -> None:
    audit = ready(pd.DataFrame({"mail": ["ada@example.org"]}), validation_type="regex")
    show(opened, audit, '<body style="color-scheme: dark"><div id="shadow"></div></body>')
    expect(opened.audit).to_have_attribute("data-jp-theme-light", "false")
    opened.page.evaluate("document.body.style.colorScheme = 'light'")
    expect(opened.audit).to_have_attribute("data-jp-theme-light", "true")
    opened.button("Verify").focus()
    change(opened, "page_section", {**traits(audit)["page_section"], "said": "changed"})
    expect(opened.button("Verify")).to_be_focused()


def test_a_kept_audit_is_opened_and_deleted_only_when_asked_twice(opened: AuditPage) -> None:
    audit = new_audit(validation_type="regex")
    show(opened, audit)
    kept = {"id": "k1", "name": "contacts.csv", "when": "27 November 2026", "rows": "1,510 rows"}
    change(opened, "page_section", {**traits(audit)["page_section"], "kept": [kept]})
    opened.button("Delete contacts.csv of 27 November 2026").click()
    assert opened.page.evaluate("sent") == []
    opened.shown("contacts.csv 27 November 2026, 1,510 rows")
    opened.audit.get_by_text("Delete for good").click()
    opened.button("Open contacts.csv of 27 November 2026").click()
    sent = [
        {name: value for name, value in each.items() if name != "answer"}
        for each in opened.page.evaluate("sent")
    ]
    assert sent == [{"act": "delete_kept", "id": "k1"}, {"act": "open_kept", "id": "k1"}]
    assert opened.errors == []


LOSSES = {
    "a kernel that is started again": (
        "kernel",
        "autorestarting",
        "The kernel was restarted. Run the cell again",
    ),
    "a connection that is tried again": ("wire", "connecting", "Trying again"),
    "a connection that was given up": (
        "wire",
        "disconnected",
        "The connection to the kernel has ended. Run the cell again",
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_can_be_pressed_while_the_kernel_is_lost(opened: AuditPage, loss: str) -> None:
    which, status, said = LOSSES[loss]
    audit = ready(pd.DataFrame({"mail": ["Ada <ada@example.org>"]}), validation_type="regex")
    show(opened, audit)
    opened.open_step(2)
    expect(opened.button("Verify")).to_be_enabled()
    opened.button("Verify").focus()
    opened.page.evaluate("([which, status]) => kernel[which](null, status)", [which, status])
    expect(opened.audit.get_by_role("alert")).to_contain_text(said)
    expect(opened.button("Verify")).to_be_disabled()
    expect(opened.button("Verify")).to_be_focused()
    expect(opened.field(REPAIR)).to_be_disabled()
    opened.button("Verify").dispatch_event("click")
    assert opened.page.evaluate("sent") == []
    opened.step(2).click()  # what changes this page only goes on
    expect(opened.field(REPAIR)).to_have_count(0)
    opened.page.evaluate("kernel.wire(null, 'connected')")
    is_back = status == "connecting"
    expect(opened.audit.get_by_role("alert")).to_have_count(0 if is_back else 1)
    expect(opened.button("Verify")).to_be_enabled(enabled=is_back)
    assert opened.errors == []
