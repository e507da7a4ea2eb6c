"""The widget without a browser: what it sends, and what it does with messages, good and bad."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pandas as pd
import pytest

from mailverdict.widgets import audit as page_module
from mailverdict.widgets.actions import LOOKS, PAGE_ACTIONS
from mailverdict.widgets.audit import IMPORT, SCRIPTS, PageWidget, front_end
from mailverdict.widgets.result import Result
from mailverdict.widgets.state import SECTIONS, AuditState
from tests.widgets.conftest import finished, message, ready, shown

ROOT = Path(__file__).parents[2]
SVG = "http://www.w3.org/2000/svg"
STATIC = Path(page_module.__file__).with_name("static")


@pytest.fixture
def audit() -> AuditState:
    return ready(pd.DataFrame({"mail": ["ada@example.org", "nobody"]}), validation_type="regex")


@pytest.fixture
def widget(audit: AuditState) -> PageWidget:
    return PageWidget(audit)


def send(widget: PageWidget, **content: object) -> None:
    """A message of the browser."""
    widget.receive(None, content, [])
    widget.state.work.wait(30)


def test_the_browser_gets_each_section_and_its_changes(audit, widget):
    assert widget.list_section["summary"] == "data frame · 2 rows · column mail"
    send(widget, act="verify")
    assert widget.decide_section["headline"] == "1"
    assert widget.page_section["primary"] == "send"
    assert {name: getattr(widget, f"{name}_section") for name in SECTIONS} == {
        n: shown(audit, n) for n in SECTIONS
    }


def test_each_action_is_a_method_and_is_sent_by_the_page():
    script = "".join(path.read_text() for path in STATIC.glob("*.js"))
    sent = set(re.findall(r'\bact\("(\w+)"', script))
    assert sent == set(PAGE_ACTIONS)
    assert all(hasattr(Result if name in LOOKS else AuditState, name) for name in PAGE_ACTIONS)


@pytest.mark.parametrize(
    "content",
    [
        {"act": "choose_column", "at": "0"},
        {"act": "choose_column", "at": True},
        {"act": "choose_column", "at": 99},
        {"act": "choose_column"},
        {"act": "set_repair", "name": "case", "is_on": 1},
        {"act": "set_repair", "name": "__class__", "is_on": True},
        {"act": "search", "text": None},
        {"act": "accept_typo", "number": 5},
    ],
)
def test_a_message_with_wrong_arguments_is_an_error_on_the_page(audit, widget, content):
    send(widget, **content)
    assert message(audit, PAGE_ACTIONS[content["act"]][0]) != ""


def test_an_action_is_answered_also_if_it_is_refused(audit, widget):
    send(widget, act="set_repair", name="case", is_on=False, answer="view 1")
    assert (widget.answered, audit.choices.off) == ("view 1", {"case"})
    send(widget, act="set_repair", name="no repair", is_on=False, answer="view 2")
    assert (widget.answered, message(audit, "tidy") != "") == ("view 2", True)
    for answer in ("x" * 41, 3, None):
        send(widget, act="set_repair", name="case", is_on=True, answer=answer)
    assert (widget.answered, audit.choices.off) == ("view 2", set())


@pytest.mark.parametrize(
    "content", [None, 3, {}, {"act": "close"}, {"act": "__init__"}, {"act": ["x"]}]
)
def test_other_messages_are_ignored(audit, widget, content):
    widget.receive(None, content, [])
    assert all(message(audit, name) == "" for name in SECTIONS)


def upload(widget, identity, purpose=None, content=b"ada@example.org\n"):
    """Send a file as the browser does, in two pieces; the second is sent when the result is called."""

    def put(offset, piece):
        about = {
            "id": identity,
            "name": "x.txt",
            "size": len(content),
            "purpose": purpose,
            "offset": offset,
        }
        widget.receive(None, {"file": "put", **about}, [piece])

    def finish():
        put(5, content[5:])
        widget.state.work.wait(30)

    put(0, content[:5])
    return finish


def test_files_that_come_at_the_same_time_are_used_each_for_its_purpose(audit, widget):
    finish_suppression, finish_list = (
        upload(widget, "upload-1", "suppress"),
        upload(widget, "upload-2", "list"),
    )
    finish_list()
    assert (shown(audit, "list")["name"], shown(audit, "tidy")["suppression"]) == ("x.txt", None)
    finish_suppression()
    assert shown(audit, "tidy")["suppression"] == "x.txt"


@pytest.mark.parametrize("purpose", [None, "nonsense", "__class__"])
def test_a_file_without_a_known_purpose_does_not_replace_the_list(audit, widget, purpose):
    upload(widget, "upload-1", purpose)()
    assert "came without a known purpose" in message(audit, "list")
    assert shown(audit, "list")["name"] == "data frame"


def test_a_file_that_comes_during_a_run_is_refused(audit, widget):
    audit.check.is_running = True
    upload(widget, "upload-1", "list")()
    assert message(audit, "list") == "A check is running; pause it first."


def test_a_download_is_offered_and_removed_once_the_browser_has_it(audit, widget):
    finished(audit)
    sent = []
    widget.send = lambda content, buffers=None: sent.append(content)
    send(widget, act="download", which="send", kind="csv")
    (offer,) = (each for each in sent if each.get("act") == "save")
    assert offer["name"] == "emails-send-list.csv"
    (path,) = widget.transfer.offers.values()
    assert path.exists()
    widget.receive(None, {"file": "drop", "id": offer["id"]}, [])
    assert not path.exists()


def test_closing_removes_files(audit, widget):
    finished(audit)
    folder = audit.folder
    widget.close()
    assert not folder.exists()


def test_the_front_end_makes_no_request_and_sets_no_html():
    """Requests to the page's own server are made by one module; the others have no way out."""
    texts = {
        path.name: path.read_text().replace(SVG, "") for path in STATIC.iterdir() if path.is_file()
    }
    inner = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "dangerouslySetInnerHTML",
        "document.write",
        "eval(",
    )
    assert [(name, word) for name, text in texts.items() for word in inner if word in text] == []
    texts.pop("connection.js")
    # A name, not an address.
    texts["run.js"] = texts["run.js"].replace("http://www.w3.org/2000/svg", "")
    outer = ("fetch(", "XMLHttp", "new WebSocket", "http:", "https:")
    assert [(name, word) for name, text in texts.items() for word in outer if word in text] == []
    assert not re.search(r"url\(|@import|#[0-9a-fA-F]{3,8}\b|rgba?\(", texts["page.css"])


def test_the_vendored_library_is_the_file_that_the_notice_names():
    notice = (ROOT / "NOTICE").read_text()
    digest = hashlib.sha256((STATIC / "vendor/preact-htm.js").read_bytes()).hexdigest()
    assert "htm 3.1.1 (npm)" in notice
    assert f"SHA-256 {digest}" in notice


def test_the_modules_are_joined_to_one_for_a_notebook():
    """Each module comes after those that it imports, and none of the statements that need other files is left."""
    assert {*SCRIPTS, "run.js"} == {str(path.relative_to(STATIC)) for path in STATIC.rglob("*.js")}
    for at, name in enumerate(SCRIPTS):
        used = {found[2] for found in IMPORT.finditer((STATIC / name).read_text())}
        assert used <= {*SCRIPTS[:at]}, name
    joined = front_end()
    assert re.findall(r"^(?:import|export)\b.*", joined, re.M) == [
        'export default modules["page.js"];'
    ]
