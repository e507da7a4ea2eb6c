"""The report in a real browser: sorting, filtering, dark mode, narrow windows, and paper."""

import re
import shutil

import pandas as pd
import pytest
from playwright.sync_api import sync_playwright

import mailverdict as mv

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]
REASONS = (
    "role",
    "catch_all",
    "disposable",
    "greylisted",
    "timeout",
    "inconclusive",
    "mailbox_not_found",
    "port_closed",
)


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report with every section, and one with what each report has."""
    folder = tmp_path_factory.mktemp("reports")
    cells = [f"p{at}@d{at % 40}.example" for at in range(400)]
    cells += [f"Ada {at} <ada{at}@gmial.com>" for at in range(40)] + [
        f"E-Mail: bo{at}@hotmial.com;" for at in range(20)
    ]
    cells += [
        "a@x.example; b@x.example",
        "nobody",
        None,
        "=1+1",
        "<script>document.title='owned'</script>@x.example",
    ]
    with pytest.warns(UserWarning, match="several addresses"):
        out = mv.verify(
            pd.DataFrame({"email": cells}), "email", validation_type="regex", columns="all"
        )
    for at, reason in enumerate(REASONS * 9):
        verdict = (
            "risky" if at % 8 < 3 else "invalid" if reason == "mailbox_not_found" else "unknown"
        )
        out.loc[at, ["email_verdict", "email_details"]] = [verdict, reason]
    out["email_validation_type"] = "smtp"
    old = out.head(300).assign(email_checked_at=pd.Timestamp("2026-10-03", tz="UTC"))
    old.loc[:50, "email_verdict"] = "unknown"
    became = pd.DataFrame({"to": cells[:120], "result": ["delivered", "hard", "soft"] * 40})
    bounces = mv.read_bounces(became, columns={"address": "to", "outcome": "result"})
    mv.report(out, "email", folder / "full.html", name="spring.csv", bounces=bounces, earlier=old)
    mv.report(out, "email", folder / "plain.html")
    mv.report(
        with_origins(out),
        "email",
        folder / "manager.html",
        name="spring.csv",
        earlier=old,
        audience="manager",
        by="country",
    )
    return folder


def with_origins(out):
    """The same rows with three columns that each say where invalid addresses come from."""
    out = out.copy()
    rows = out.index.to_series()
    out["lead_source"] = (rows % 5 == 0).map({True: "Trade fair 2023 in Hannover", False: "Web"})
    out["owner"] = (rows % 7 == 0).map({True: "Bartholomew of the inside sales", False: "Ann"})
    out["country"] = (rows % 11).map("country number {} of the list".format)
    is_bad = (rows % 5 == 0) | (rows % 7 == 0) | (rows % 11 == 0)
    out.loc[is_bad & (rows % 3 != 0), ["email_verdict", "email_details"]] = [
        "invalid",
        "mailbox_not_found",
    ]
    return out


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(browser, reports):
    """Open a report; what the console complains of and what is loaded is kept on the page."""
    contexts = []

    def opens(name="full.html", *, width=1440, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.complaints, page.loaded = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda wanted: page.loaded.append(wanted.url))
        page.goto((reports / name).as_uri())
        return page

    yield opens
    for context in contexts:
        context.close()


def first_cells(page, table):
    cells = page.get_by_role("table", name=table).locator("tbody tr:visible td:first-child")
    return cells.all_inner_texts()


def test_a_table_is_sorted_by_a_click_and_filtered_by_typing(opened):
    page = opened()
    assert page.complaints == []
    assert page.loaded == [page.url]
    assert page.title() == "E-mail audit of spring.csv"
    shown = first_cells(page, "Largest domains")
    assert (len(shown), shown[0]) == (12, "gmial.com")
    head = page.get_by_role("table", name="Largest domains").get_by_role(
        "columnheader", name="Domain"
    )
    head.get_by_role("button").click()
    assert first_cells(page, "Largest domains")[:3] == ["d0.example", "d1.example", "d2.example"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.get_by_role("button").click()
    assert first_cells(page, "Largest domains")[0] == "x.example"
    page.get_by_label("Filter: Largest domains").fill("MIAL")
    assert first_cells(page, "Largest domains") == ["hotmial.com", "gmial.com"]
    page.get_by_label("Filter: Largest domains").fill("")
    page.get_by_role("button", name="Show all 43").click()
    assert len(first_cells(page, "Largest domains")) == 43
    assert page.complaints == []


def test_without_scripts_every_row_is_there(opened):
    page = opened(java_script_enabled=False)
    assert len(first_cells(page, "Largest domains")) == 43
    assert page.get_by_role("button").count() == 0


def test_on_a_telephone_what_a_row_means_is_below_its_name(opened):
    page = opened(width=400)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for name in ("What to do", "Why not the others", "Largest domains"):
        table = page.get_by_role("table", name=name)
        assert table.evaluate(
            "each => each.parentNode.scrollWidth <= each.parentNode.clientWidth"
        ), name
    words = page.get_by_role("table", name="What to do").locator("tbody td:first-child .mv-below")
    assert words.evaluate_all(
        "all => all.length === 5 && all.every((each) => each.clientWidth > 180)"
    )


@pytest.mark.parametrize("width", [800, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_the_window_and_follows_the_scheme(opened, scheme, width):
    page = opened(width=width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.parametrize(
    ("name", "most"), [("manager.html", 1), ("plain.html", 2), ("full.html", 4)]
)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_prints_on_few_pages_of_a4(opened, name, most, scheme):
    printed = opened(name, color_scheme=scheme).pdf(
        prefer_css_page_size=True, print_background=False
    )
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= most
    assert b"/MediaBox [0 0 594.9" in printed or b"/MediaBox [0 0 595" in printed  # A4


def test_the_page_for_a_manager_says_where_invalid_addresses_come_from(opened):
    page = opened("manager.html")
    table = page.get_by_role("table", name="Where they come from")
    assert table.locator("tbody tr").count() == 3
    assert table.locator("thead th").all_inner_texts() == [
        *("Column", "Group", "People", "Invalid", "", "Elsewhere", "Can be mailed")
    ]
    assert page.get_by_text("The first 6 of 11.").is_visible()


def test_on_paper_nothing_is_wider_than_the_page_and_a_table_says_how_many_rows_it_leaves_out(
    opened,
):
    page = opened(width=703)  # the width of A4 without the margins, at 96 dots an inch
    page.emulate_media(media="print")
    assert (
        page.evaluate(
            """() => [...document.querySelectorAll("main *")].filter((each) =>
             each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.outerHTML.slice(0, 99))"""
        )
        == []
    )
    assert page.get_by_text("The first 12 of 43").is_visible()
    assert page.get_by_label("Filter: Largest domains").is_hidden()
    page.emulate_media(media="screen")
    page.get_by_role("button", name="Show all 43").click()
    assert page.get_by_text("The first 12 of 43").count() == 0


def test_an_audit_of_a_column_in_another_direction_reads_in_order(opened, reports):
    column = "\u05d0\u05d1\u05d2"
    out = mv.verify(pd.DataFrame({column: ["ada@x.example"] * 47}), column, validation_type="regex")
    mv.report(out, column, reports / "turned.html", name="list.csv")
    page = opened("turned.html")
    line = page.locator("p.mv-soft").first
    label, rows = (
        line.evaluate(
            """(node, text) => {
                 const range = document.createRange();
                 const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
                 for (let each; (each = walk.nextNode()); ) {
                   const at = each.data.indexOf(text);
                   if (at < 0) continue;
                   range.setStart(each, at);
                   range.setEnd(each, at + text.length);
                   return range.getBoundingClientRect().left;
                 }
               }""",
            text,
        )
        for text in (column, "47")
    )
    assert label < rows


def test_inside_a_dark_notebook_it_is_dark(opened, reports):
    out = mv.verify(
        pd.DataFrame({"email": ["ada@x.example", "nobody"]}), "email", validation_type="regex"
    )
    inline = mv.report(out, "email")._repr_html_()
    page = f'<!DOCTYPE html><body data-jp-theme-light="false"><div class="jp-RenderedHTMLCommon">{inline}</div></body>'
    (reports / "inline.html").write_text(page, encoding="utf-8")
    page = opened("inline.html", color_scheme="light")
    ground = page.locator(".mv-report").evaluate("each => getComputedStyle(each).backgroundColor")
    assert ground != "rgb(255, 255, 255)"
