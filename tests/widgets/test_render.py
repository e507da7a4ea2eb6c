"""Pieces of HTML: what is said, and that no text of others becomes markup."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mailverdict import Quota
from mailverdict.runs.plan import plan_run
from mailverdict.runs.progress import Progress
from mailverdict.widgets import render as r
from mailverdict.widgets.listing import Saved

OURS = {"div", "span", "b", "code", "a"}
ATTRIBUTES = {"class", "role", "style", "download", "href"}
HOSTILE = "\"><img src=x onerror=alert(1)><script>alert(2)</script>'&lt;"


class Seen(HTMLParser):
    """What a browser would make of it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.texts = set(), set(), ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs if not name.startswith("aria-")}

    def handle_data(self, data):
        self.texts += data


RENDERERS = {
    "notice": r.render_notice,
    "examples": lambda given_text: r.render_examples([given_text]),
    "taken": lambda given_text: r.render_source(given_text, 1, 2),
    "quota": lambda given_text: r.render_quota(given_text, Quota(1, 0, 1), is_known=True),
    "state": lambda given_text: r.render_notice(r.render_state(Progress(state=given_text))),
    "link": lambda given_text: r.render_saved(Saved(given_text, 1, 1, url="data:text/csv;base64,")),
    "path": lambda given_text: r.render_saved(Saved("x", 1, 1, path=Path("/") / given_text.replace("\0", ""))),
    "counts": lambda given_text: r.render_counts({given_text: 1}),
    "head": r.render_head,
    "hint": r.render_hint,
}


@given(st.text() | st.just(HOSTILE), st.sampled_from(sorted(RENDERERS)))
def test_no_text_becomes_markup(given_text, name):
    seen = Seen(RENDERERS[name](given_text))
    assert seen.tags <= OURS
    assert seen.attributes <= ATTRIBUTES


def test_long_texts_are_cut():
    assert len(Seen(r.render_notice("x" * 100_000)).texts) == r.LONGEST


def test_the_estimate_says_what_is_paid_for():
    plan = plan_run(rows=260, missing=5, malformed=5, unique=250, known=20, quota=Quota(100, 40, 60))
    seen = Seen(r.render_plan(plan))
    assert seen.texts.startswith(
        "rows260missing rows5malformed rows, free5distinct addresses250known20to submit230days3"
    )
    assert "the rest waits for another day" in seen.texts


def test_the_estimate_names_the_most_units_where_asking_again_may_cost_more():
    counts = {"rows": 50, "missing": 0, "malformed": 0, "unique": 50, "quota": Quota(1_000, 0, 1_000)}
    assert "at most 150 units" in Seen(r.render_plan(plan_run(**counts, repeats=2))).texts
    assert "at most" not in Seen(r.render_plan(plan_run(**counts))).texts


def test_the_state_names_the_pace_and_the_time_left_during_a_run():
    progress = Progress(state="running", total=90, settled=40, pace=12.5, seconds_left=200.0)
    assert r.render_state(progress) == (
        "Verifying: 40 of 90 addresses settled; 12.5 addresses a second, about 4 min left"
    )
    assert "limiter refuses" in r.render_state(replace(progress, pace=0.0, seconds_left=None))
    assert r.render_state(replace(progress, state="done")) == "Done: 40 of 90 addresses settled"


def test_without_a_quota_nothing_is_submitted_and_no_days_are_shown():
    texts = Seen(r.render_plan(plan_run(rows=3, missing=0, malformed=0, unique=3))).texts
    assert "to verify3" in texts
    assert "days" not in texts


def test_a_quota_that_never_allows_it_says_never():
    assert (
        "daysnever"
        in Seen(r.render_plan(plan_run(rows=3, missing=0, malformed=0, unique=3, quota=Quota(0, 0, 0)))).texts
    )


def test_the_bar_is_known_to_screen_readers():
    progress = Progress(total=8, settled=3, verdicts={"valid": 2, "risky": 0, "invalid": 1, "unknown": 0})
    bar = r.render_progress(progress)
    assert 'role="progressbar"' in bar
    assert 'aria-valuemax="8" aria-valuenow="3"' in bar
    assert "width:25.00%" in bar
    assert "error" not in bar
    assert "error" in Seen(r.render_progress(replace(progress, errors=1))).texts


def test_errors_are_announced_and_other_messages_wait():
    assert 'role="alert"' in r.render_notice("x", "failed")
    assert 'role="status"' in r.render_notice("x")
    assert r.render_notice("") == ""


def test_sizes_are_for_people():
    assert [r.size_of(octets) for octets in (0, 1_200, 99_999, 2_500_000)] == ["0.1 kB", "1.2 kB", "100.0 kB", "2.5 MB"]
