"""The rows of a result in Debian's chromium, without Python behind them: scrolled, in pages, and decided about by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from playwright.sync_api import expect

from mailverdict.widgets.audit import PageWidget, front_end
from tests.widgets.browser import AXE, CHROMIUM, AuditPage
from tests.widgets.conftest import finished, ready
from tests.widgets.test_page_browser import traits

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(120),
    pytest.mark.skipif(
        not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"
    ),
]
MILLION = 1_000_000
# A kernel that makes rows when it is asked for them, and keeps decisions; its answers may be held back.
FAKE_MODEL = """
async ([script, traits, total]) => {
  const handlers = {};
  window.sent = [];
  const decided = {};
  const fire = (name, value) => { traits[name] = value; (handlers[`change:${name}`] ?? []).forEach((each) => each()); };
  const row = (at) => ({ at, row: (at + 1).toLocaleString("en"), verdict: at % 3 ? "valid" : "risky",
    action: at % 3 ? "send" : "review", reason: at % 3 ? "Mailbox exists" : "Likely typo", why: "", decided: decided[at] ?? "", can_send: true,
    suggestion: at % 6 ? "" : `user${at}@gmail.com`,
    cells: { "column 0": `user${at}@gmial.com`, suggestion: at % 6 ? "" : `user${at}@gmail.com` } });
  const place = { first: 0, count: 120 };
  window.show = () => {
    const rows = [];
    for (let at = place.first; at < Math.min(place.first + place.count, total); at++) rows.push(row(at));
    fire("decide_section", { ...traits.decide_section, table: { first: place.first, total, rows } });
  };
  window.move = (first) => { place.first = first; show(); };
  window.change = fire;
  const acts = {
    rows: ({ first, count }) => Object.assign(place, { first, count }),
    decide: ({ rows, what }) => rows.forEach((at) => (decided[at] = what === "none" ? "" : what)),
  };
  const model = { get: (name) => traits[name], off() {}, on(name, handler) { (handlers[name] ??= []).push(handler); },
    send(content) {
      window.sent.push(content);
      const answer = () => { acts[content.act]?.(content); show(); fire("answered", content.answer); };
      if (window.held) window.held.push(answer); else setTimeout(answer, 5);
    } };
  traits.decide_section.total = `${total.toLocaleString("en")} rows`;
  show();
  const module = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  module.default.render({ model, el: document.body });
}
"""


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    """What the page shows of a result with a likely typo."""
    audit = finished(
        ready(pd.DataFrame({"mail": ["ada@gmial.com", "bo@example.org"]}), validation_type="regex")
    )
    shown = traits(audit)
    decide = {**shown["decide_section"], "decided": {"total": 0}, "typos": [], "to_check": None}
    page = {**shown["page_section"], "undo": [], "redo": ""}
    return {
        **shown,
        "decide_section": decide,
        "page_section": page,
        "answered": "",
        "css": PageWidget(audit)._css,
    }


def show(opened: AuditPage, result: dict[str, Any], total: int, **decide: Any) -> None:
    """A result with so many rows."""
    opened.page.set_content("<!doctype html>")
    opened.page.add_style_tag(content=result["css"])
    shown = {**result, "decide_section": {**result["decide_section"], **decide}}
    opened.page.evaluate(FAKE_MODEL, [front_end(), shown, total])
    opened.audit.wait_for()


def scroller(opened: AuditPage) -> Any:
    return opened.audit.get_by_role("region", name="Rows", exact=True)


def seen(opened: AuditPage) -> list[int]:
    """The numbers of the rows that can be seen whole, from the top."""
    numbers: list[int] = scroller(opened).evaluate(
        """(box) => {
          const { top, bottom } = box.getBoundingClientRect();
          const isSeen = (line) => line.getBoundingClientRect().top >= top + 30 && line.getBoundingClientRect().bottom <= bottom + 1;
          return [...box.querySelectorAll("tbody tr.mv-line")].filter(isSeen).map((line) => line.ariaRowIndex - 1);
        }"""
    )
    return numbers


def has_rows(opened: AuditPage) -> None:
    """Wait until no row is a blank."""
    expect(scroller(opened).get_by_text("…", exact=True)).to_have_count(0)


def test_a_million_rows_are_scrolled_and_few_are_drawn(
    opened: AuditPage, result: dict[str, Any]
) -> None:
    show(opened, result, MILLION)
    box = scroller(opened)
    expect(box.get_by_role("table")).to_have_attribute("aria-rowcount", str(MILLION + 1))
    assert seen(opened)[0] == 1
    # By a wheel, each turn by as many pixels as it says, whatever the length of the list is.
    box.hover()
    for _ in range(60):
        before = seen(opened)[0]
        opened.page.mouse.wheel(0, 480)
        opened.page.wait_for_function(
            "([box, before]) => +box.querySelector('tbody tr.mv-line').ariaRowIndex !== before",
            arg=[box.element_handle(), before],
        )
    has_rows(opened)
    opened.page.wait_for_timeout(300)
    numbers = seen(opened)
    assert 590 <= numbers[0] <= 612
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert len(numbers) >= 10
    # By the scroll bar: to the end, into the middle, and back.
    for share, expected in ((1, MILLION - len(numbers) + 1), (0.5, MILLION // 2), (0, 1)):
        box.evaluate(
            "(box, share) => { box.scrollTop = share * (box.scrollHeight - box.clientHeight) }",
            share,
        )
        opened.page.wait_for_timeout(100)
        has_rows(opened)
        assert abs(seen(opened)[0] - expected) <= 20, share
        expect(box.get_by_text(f"user{seen(opened)[0] - 1}@gmial.com", exact=True)).to_be_visible()
    assert box.locator("tbody tr").count() < 50
    assert opened.errors == []


def test_questions_for_rows_do_not_queue_up(opened: AuditPage, result: dict[str, Any]) -> None:
    show(opened, result, 100_000)
    opened.page.evaluate("held = []")
    box = scroller(opened)
    for place in range(20):
        box.evaluate("(box, top) => { box.scrollTop = top }", 40_000 * (place + 1))
        opened.page.wait_for_timeout(20)
    asked = "sent.filter((each) => each.act === 'rows')"
    assert [each["first"] for each in opened.page.evaluate(asked)] == [773]
    opened.page.evaluate("held.shift()()")
    opened.page.wait_for_function(f"{asked}.length === 2")
    opened.page.evaluate("held.shift()()")
    expect(box.get_by_text("user16670@gmial.com", exact=True)).to_be_visible()
    assert all(each["count"] <= 200 for each in opened.page.evaluate(asked))
    assert opened.page.evaluate("held") == []


def test_a_window_that_is_moved_elsewhere_is_followed_without_a_question(
    opened: AuditPage, result: dict[str, Any]
) -> None:
    show(opened, result, 100_000)
    opened.page.evaluate("move(5_000)")
    expect(scroller(opened).get_by_text("user5000@gmial.com", exact=True)).to_be_visible()
    assert seen(opened)[0] == 5_001
    opened.page.wait_for_timeout(200)
    asked = [each for each in opened.page.evaluate("sent") if each["act"] == "rows"]
    assert [each for each in asked if not 4_900 <= each["first"] <= 5_000] == [], (
        "it was not moved back"
    )


def test_pages_for_a_screen_reader(opened: AuditPage, result: dict[str, Any]) -> None:
    show(opened, result, 1_234)
    opened.audit.get_by_text("In pages").click()
    expect(opened.lines).to_have_count(50)
    expect(opened.audit.get_by_role("table").last).to_have_attribute("aria-rowcount", "1235")
    opened.button("Next page").click()
    expect(opened.lines.first).to_have_attribute("aria-rowindex", "52")
    opened.field("Page").fill("25")
    opened.field("Page").press("Enter")
    opened.shown(r"of 25 \(1,201 to 1,234\)")
    expect(opened.lines).to_have_count(34)
    expect(opened.button("Next page")).to_be_disabled()


def test_rows_are_decided_one_by_one_and_together(
    opened: AuditPage, result: dict[str, Any]
) -> None:
    typos = [{"domain": "gmial.com", "suggested": "gmail.com", "people": 14}]
    to_check = {
        "count": 2,
        "units": 2,
        "text": "2 corrected addresses are not verified yet: 2 units.",
    }
    decided = {"send": 1, "remove": 0, "suggestion": 2, "total": 3}
    show(
        opened,
        result,
        40,
        is_filtered=True,
        found="40 of 90 rows",
        typos=typos,
        to_check=to_check,
        decided=decided,
    )
    keep = opened.button("Send anyway: user3@gmial.com")
    keep.click()
    expect(keep).to_have_attribute("aria-pressed", "true")
    expect(keep).to_be_focused()
    if AXE.exists():
        assert opened.violations() == [], "a pressed button under the pointer"
    keep.click()
    expect(keep).to_have_attribute("aria-pressed", "false")
    opened.button("Details of row 7").click()
    details = opened.audit.get_by_role("complementary", name="Row 7")
    details.get_by_role("button", name="Use user6@gmail.com").click()
    expect(opened.lines.nth(6)).to_contain_text("Use the suggestion")
    opened.page.keyboard.press("Escape")
    expect(details).to_have_count(0)
    expect(opened.button("Details of row 7")).to_be_focused()
    opened.button("Details of row 7").click()
    opened.page.keyboard.press("Escape")  # from the row, not from the details
    expect(details).to_have_count(0)
    opened.audit.get_by_role("group", name="Decide about all rows shown").get_by_role(
        "button", name="Remove"
    ).click()
    opened.button("Use gmail.com: gmial.com").click()
    opened.shown("gmial.com, 14 people: did they mean gmail.com?")
    opened.shown("Decided by hand: Send anyway 1, Use the suggestion 2. 2 corrected addresses")
    opened.button("Verify them").click()
    sent = [
        {name: value for name, value in each.items() if name != "answer"}
        for each in opened.page.evaluate("sent")
    ]
    assert sent == [
        {"act": "decide", "rows": [3], "what": "send"},
        {"act": "decide", "rows": [3], "what": "none"},
        {"act": "decide", "rows": [6], "what": "suggestion"},
        {"act": "decide_shown", "what": "remove"},
        {"act": "decide_domain", "domain": "gmial.com", "what": "suggestion"},
        {"act": "check_decided"},
    ]
    if AXE.exists():
        assert opened.violations() == []


@pytest.mark.parametrize("width", [420, 800, 1440])
def test_suggestion_address_and_row_number_are_seen_whole_at_any_width(
    opened: AuditPage, result: dict[str, Any], width: int
) -> None:
    opened.page.set_viewport_size({"width": width, "height": 900})
    show(opened, result, MILLION)
    opened.page.evaluate("move(999_900)")
    line = opened.audit.locator("tr.mv-line", has_text="999,907")
    expect(line.get_by_text("Did you mean user999906@gmail.com?")).to_be_visible()
    address = line.locator(".mv-col-address > .mv-cut").first
    for part in (line.locator(".mv-col-row"), *([address] if width > 420 else [])):
        assert part.evaluate("(part) => part.scrollWidth <= part.clientWidth")
    assert address.evaluate("(part) => part.clientWidth") > 100
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_text_that_turns_its_direction_is_shown_as_it_is_stored(
    opened: AuditPage, result: dict[str, Any]
) -> None:
    show(opened, result, 3)
    rows = [{"at": 0, "row": "1", "verdict": "invalid", "action": "drop", "reason": "Malformed", "why": "", "decided": "", "can_send": True,
             "suggestion": "", "cells": {"column 0": "ada\u202egro.elpmaxe@\u2066x"}}]  # fmt: skip
    opened.page.evaluate(
        "(section) => change('decide_section', section)",
        {**result["decide_section"], "table": {"first": 0, "total": 1, "rows": rows}},
    )
    cell = opened.audit.locator("td.mv-col-address bdi").first
    expect(cell).to_have_text("ada⟨U+202E⟩gro.elpmaxe@⟨U+2066⟩x")


@pytest.mark.parametrize("width", [800, 1440])
def test_an_address_of_usual_length_is_seen_whole_also_beside_the_details(
    opened: AuditPage, result: dict[str, Any], width: int
) -> None:
    opened.page.set_viewport_size({"width": width, "height": 900})
    show(opened, result, 3)
    long = "ridgelake-finch.samuel@castellan-insurance.co.uk"
    rows = [{"at": 0, "row": "1", "verdict": "unchecked", "action": "unchecked", "reason": "Mail server asks to try again later",
             "why": "", "decided": "", "can_send": True, "suggestion": "", "cells": {"column 0": long}}]  # fmt: skip
    decide = {**result["decide_section"], "table": {"first": 0, "total": 1, "rows": rows}}
    opened.page.evaluate("(section) => change('decide_section', section)", decide)
    is_whole = (
        "(part) => part.scrollWidth <= part.clientWidth && part.scrollHeight <= part.clientHeight"
    )
    parts = ("td.mv-col-address > .mv-cut", "td.mv-col-verdict", "td.mv-col-reason, .mv-why")
    for part in parts:
        assert opened.audit.locator(part).locator("visible=true").evaluate(is_whole), part
    opened.button("Details of row 1").click()
    expect(opened.audit.get_by_role("complementary")).to_contain_text(long)
    for part in parts:
        assert opened.audit.locator(part).locator("visible=true").evaluate(is_whole), (
            f"{part} beside the details"
        )


def test_the_details_of_a_row_stay_until_another_search_does_not_have_it(
    opened: AuditPage, result: dict[str, Any]
) -> None:
    show(opened, result, MILLION)
    opened.button("Details of row 7").click()
    details = opened.audit.get_by_role("complementary", name="Row 7")
    opened.page.evaluate("move(5000)")
    has_rows(opened)
    expect(details).to_be_visible()
    decide = {
        **result["decide_section"],
        "found": "0 of 1,000,000 rows",
        "table": {"first": 0, "total": 0, "rows": []},
    }
    opened.page.evaluate("(section) => change('decide_section', section)", decide)
    expect(details).to_have_count(0)
