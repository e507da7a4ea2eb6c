"""The status page, as text and in a real browser."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mailverdict.model.verification import Fault, Verification
from mailverdict.service import create_app
from mailverdict.service.http.page import StatusPage, policy_of
from tests.doubles.answering_backend import AnsweringBackend
from tests.doubles.listening import Address, listening
from tests.doubles.service import asynchronous, serving, settings_for

CHROMIUM = shutil.which("chromium")
MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def hostile(email: str, validation_type: str) -> Verification:
    """A mail server whose words are markup."""
    return Verification(
        email,
        validation_type,
        "unknown",
        (MARKUP,),
        {MARKUP: True},
        reason="SMTP",
        errors=(Fault("SMTP", MARKUP),),
        metadata={"smtp_error": MARKUP, "mx_records": [MARKUP], "suggestion": MARKUP},
        extra={"surprise": MARKUP},
    )


@asynchronous
async def test_page_is_html_under_a_strict_policy(tmp_path: Path) -> None:
    async with serving(tmp_path) as world:
        reply = await world.get("/")
        assert reply.status_code == 200
        assert reply.headers["content-type"] == "text/html; charset=utf-8"
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "frame-ancestors 'none'" in policy


def test_page_needs_nothing_from_elsewhere() -> None:
    html = StatusPage().html
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", html)
    assert "@import" not in html
    assert "url(" not in html


def test_page_never_makes_markup_out_of_text() -> None:
    html = StatusPage().html
    for way in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "setAttribute",
    ):
        assert way not in html
    assert not re.search(r"\son[a-z]+=", html)
    assert "style=" not in html  # the policy would refuse it


def test_policy_allows_exactly_the_scripts_and_styles_of_the_page() -> None:
    policy = policy_of("<style>a</style><script>b</script><script>c</script>")
    assert len(re.findall(r"'sha256-[^']+'", policy)) == 3
    assert policy != policy_of("<style>a</style><script>b</script><script>d</script>")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    settings = settings_for(tmp_path_factory.mktemp("service"), access_log=False)
    with listening(
        create_app(settings, AnsweringBackend({"hostile": hostile})), settings
    ) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Any, service: Address) -> Iterator[Any]:
    """The page in either colour scheme; what the console complains of and what it loads is kept on it."""
    from playwright.sync_api import expect

    context = browser.new_context(
        color_scheme=request.param, viewport={"width": 900, "height": 900}
    )
    opened = context.new_page()
    opened.complaints, opened.loaded = [], []
    opened.on("console", lambda message: opened.complaints.append(message.text))
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.on("request", lambda wanted: opened.loaded.append(wanted.url))
    opened.goto(service.url)
    expect(opened.locator("#state")).to_have_text("The service is working.")
    yield opened
    context.close()


def try_address(page: Any, email: str, validation_type: str) -> str:
    """Use the form; give what the page shows."""
    page.fill("#email", email)
    page.select_option("#type", validation_type)
    page.click("#go")
    page.wait_for_selector("#go:not([disabled])")
    return page.inner_text("#answer")


@pytest.mark.browser
def test_browser_shows_quota_and_queue(page: Any, service: Address) -> None:
    assert page.inner_text("#daily_limit") == "100"
    assert page.inner_text("#waiting") == "0"
    assert page.inner_text("#state") == "The service is working."
    assert page.complaints == []
    assert all(url.startswith((service.url, "data:")) for url in page.loaded)


@pytest.mark.browser
def test_browser_tries_an_address_and_the_quota_follows(page: Any) -> None:
    from playwright.sync_api import expect

    left = int(page.inner_text("#remaining"))
    shown = try_address(page, "ada@example.org", "smtp")
    assert shown.startswith("Valid")
    assert "ada@example.org" in shown
    assert "catch all" in shown
    expect(page.locator("#remaining")).to_have_text(str(left - 1))
    assert page.complaints == []


@pytest.mark.browser
def test_browser_shows_a_refusal_as_it_is(page: Any) -> None:
    assert "EMAIL_REQUIRED" in try_address(page, "broken", "regex")


@pytest.mark.browser
def test_browser_shows_markup_as_text(page: Any) -> None:
    shown = try_address(page, "hostile@example.org", "smtp")
    assert MARKUP in shown
    assert f"Did you mean {MARKUP}?" in shown
    assert page.title() == "Email verification service"
    assert page.locator("#answer img, #answer script").count() == 0
    shown = try_address(page, MARKUP, "regex")
    assert page.title() == "Email verification service"


@pytest.mark.browser
def test_browser_meets_text_of_readable_contrast(page: Any) -> None:
    for selector in ("#state", "h1", "dt", "label", "button"):
        assert contrast(page, selector) >= 4.5, selector


CONTRAST = """(selector) => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const element = document.querySelector(selector);
  let ground = element;
  while (parse(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
  const [a, b] = [getComputedStyle(element).color, getComputedStyle(ground).backgroundColor].map(parse).map(light);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""


def contrast(page: Any, selector: str) -> float:
    """Contrast of an element's text with what lies behind it (WCAG 2.2, 1.4.3)."""
    return page.evaluate(CONTRAST, selector)
