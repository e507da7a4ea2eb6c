"""The page in Debian's chromium without a kernel: the test decides when the kernel answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pytest

from mailverdict.widgets import Audit
from mailverdict.widgets.page import SCRIPTS, front_end
from mailverdict.widgets.shared_state import SECTIONS
from tests.widgets.browser import CHROMIUM, AuditPage
from tests.widgets.conftest import finished, ready

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"),
]
FAKE_MODEL = """
async ([script, traits]) => {
  const handlers = {};
  window.sent = [];
  const model = { get: (name) => traits[name], send: (content) => window.sent.push(content), off() {},
    on(name, handler) { (handlers[name] ??= []).push(handler); } };
  window.change = (name, value) => { traits[name] = value; (handlers[`change:${name}`] ?? []).forEach((each) => each()); };
  const module = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  module.default.render({ model, el: document.body });
}
"""
REPAIR = "Names, quotes and brackets"


def traits(audit: Audit) -> dict[str, Any]:
    """What the kernel has sent."""
    widget = audit._widget()
    return {name: getattr(widget, name) for name in (*(f"{each}_section" for each in SECTIONS), "marks", "words")}


def show(opened: AuditPage, audit: Audit, content: str = "") -> None:
    """The page of an audit that gets no answers by itself."""
    opened.page.set_content(content)
    opened.page.add_style_tag(content=audit._widget()._css)
    opened.page.evaluate(FAKE_MODEL, [front_end(SCRIPTS), {**traits(audit), "answered": ""}])


def change(opened: AuditPage, name: str, value: Any) -> None:
    """A change that the kernel sends, and until it is drawn."""
    opened.page.evaluate(
        "([name, value]) => { change(name, value); return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))) }",
        [name, value],
    )


def test_a_switch_stays_as_it_was_pressed_until_the_kernel_has_answered(opened: AuditPage) -> None:
    audit = ready(pd.DataFrame({"mail": ["Ada <ada@example.org>", "bob@example.org"]}), validation_type="regex")
    show(opened, audit)
    earlier = traits(audit)["tidy_section"]
    switch = opened.field(REPAIR)
    assert switch.is_checked()
    opened.audit.get_by_text(REPAIR).click()
    change(opened, "tidy_section", {**earlier, "busy": "Looking through the list…"})
    assert not switch.is_checked(), "the section is from before"
    opened.audit.get_by_text(REPAIR).click()
    change(opened, "tidy_section", earlier)
    sent = opened.page.evaluate("sent")
    assert [(each["act"], each["is_on"]) for each in sent] == [("set_repair", False), ("set_repair", True)]

    widget = audit._widget()
    for number, message in enumerate(sent):
        widget.receive(None, message, [])
        audit.wait(30)
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
    opened.audit.get_by_text(REPAIR).click()
    assert not opened.field(REPAIR).is_checked()
    audit._state.is_running = True
    widget = audit._widget()
    widget.receive(None, opened.page.evaluate("sent")[0], [])
    change(opened, "tidy_section", widget.tidy_section)
    change(opened, "answered", widget.answered)
    assert opened.field(REPAIR).is_checked()
    assert "a check is running" in widget.tidy_section["message"].casefold()


LEAVE = """() => {
  const event = new Event("beforeunload", { cancelable: true });
  window.dispatchEvent(event);
  return event.defaultPrevented;
}"""


@pytest.mark.parametrize("place", ["voila", ""])
def test_the_browser_asks_before_a_result_is_lost(opened: AuditPage, place: str) -> None:
    audit = ready(pd.DataFrame({"mail": ["ada@example.org"]}), validation_type="regex")
    show(opened, audit, f'<body data-voila="{place}"></body>')
    assert not opened.page.evaluate(LEAVE), "a list alone is chosen again quickly"
    change(opened, "decide_section", finished(audit)._widget().decide_section)
    assert opened.page.evaluate(LEAVE) == bool(place), "the kernel of a notebook goes on"


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


@pytest.mark.parametrize("width", [1000, 1240, 1280, 1440])
def test_the_most_frequent_reasons_are_not_cut_in_the_table(opened: AuditPage, width: int) -> None:
    audit = finished(ready(pd.DataFrame({"mail": ["ada@gmial.com", "Bo <bo@example.org>"]}), validation_type="regex"))
    opened.page.set_viewport_size({"width": width, "height": 900})
    show(opened, audit)
    decide = audit._widget().decide_section
    for label in ("Domain accepts every address", "Shared mailbox such as info@"):
        change(opened, "decide_section", {**decide, "rows": [{**decide["rows"][0], "reason": label}]})
        cell = opened.audit.locator("td.mv-col-reason")
        assert cell.inner_text() == label
        assert cell.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth"), label


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_whose_address_names_no_theme_follows_the_browser(
    opened: AuditPage, scheme: Literal["light", "dark"]
) -> None:
    opened.page.emulate_media(color_scheme=scheme)
    audit = ready(pd.DataFrame({"mail": ["ada@example.org"]}), validation_type="regex")
    show(
        opened,
        audit,
        '<body data-voila="page" data-jp-theme-light="true"><div style="background: var(--jp-layout-color1)"></div></body>',
    )
    assert opened.audit.evaluate("(audit) => getComputedStyle(audit).colorScheme") == scheme
    brightness = (
        "(body) => Math.max(...getComputedStyle(body).backgroundColor.match(/[0-9]+/g).slice(0, 3).map(Number))"
    )
    if scheme == "dark":
        assert opened.page.locator("body").evaluate(brightness) < 64
        assert opened.page.locator("body > div").first.evaluate(brightness) < 64
