"""What the results show of themselves, at a prompt and in a notebook: short, escaped, in the words of the documentation."""

import re
from html.parser import HTMLParser

import mailverdict as mv
from mailverdict.model.words import (
    REASON_LABELS,
    REASON_MEANING,
    STATE_MEANING,
    WHY_MEANING,
    Reason,
    count_of,
)
from mailverdict.reports.explain import CheckStep
from mailverdict.reports.host_audit import Finding
from mailverdict.runs.plan import plan_run
from mailverdict.runs.run import render_progress
from mailverdict.theme import LABELS, MARKS
from tests.doubles.tables import each_row

HOSTILE = '<img src=x onerror="alert(1)">\x1b[2J\n&'
REFUSED = mv.Verification(
    "nobody@plain.example",
    "smtp",
    "invalid",
    ("mailbox_not_found", "role"),
    role=True,
    catch_all=False,
    reason="SMTP",
    errors=(mv.Fault("SMTP", "550 no such user"), mv.Fault("MAILBOX_DISABLED", "550 no such user")),
    metadata={"suggestion": "nobody@plane.example"},
)
FOREIGN = mv.Verification(
    HOSTILE,
    HOSTILE,
    HOSTILE,
    (HOSTILE,),
    errors=(mv.Fault(HOSTILE, HOSTILE),),
    metadata={"suggestion": HOSTILE},
)
VALUES = {
    "verification": REFUSED,
    "foreign verification": FOREIGN,
    "quota": mv.Quota(100, 40, 60),
    "no quota": mv.Quota(0, 0, 0),
    "plan": plan_run(
        rows=260,
        missing=5,
        malformed=5,
        unique=250,
        in_flight=2,
        quota=mv.Quota(100, 0, 100),
        repeats=2,
    ),
    "split": mv.Split([0], [], [1], [], []),
    "explanation": mv.Explanation(FOREIGN, (CheckStep(HOSTILE, HOSTILE, (HOSTILE,)),)),
    "audit": mv.HostAudit(
        None, HOSTILE, (Finding("port_25", False, HOSTILE), Finding(HOSTILE, None, HOSTILE))
    ),
}


class Elements(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)
        if tag not in ("path", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "circle"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


def test_a_verification_says_why_what_was_meant_and_its_flags():
    assert repr(REFUSED).splitlines() == [
        "nobody@plain.example is invalid (smtp)",
        "  mailbox_not_found: the mail server reports that there is no such mailbox, or that it is closed",
        "  role: shared mailbox such as info@, which several people may read",
        "  SMTP: 550 no such user",
        "  did you mean nobody@plane.example?",
        "  flags: role",
    ]
    text = Elements(REFUSED._repr_html_()).text
    assert text.startswith("Invalid nobody@plain.example (smtp)")
    assert "Did you mean nobody@plane.example?" in text


def test_what_was_not_asked_is_said():
    assert repr(mv.check("ada@example.org", validation_type="regex")).splitlines() == [
        "ada@example.org is valid (regex)",
        "  not asked: whether the domain can receive mail, and whether the mailbox exists",
    ]
    with mv.sandbox.World() as world:
        found, steps = (
            mv.check("ada@plain.example", backend=world.backend),
            mv.explain("ada@plain.example", backend=world.backend),
        )
    assert repr(found).splitlines()[1:] == ["  not asked: whether the mailbox exists"]
    assert "Not asked: whether the mailbox exists." in found._repr_html_()
    assert str(steps).endswith("verdict: valid\n    not asked: whether the mailbox exists")


@each_row(
    "found",
    [REFUSED, mv.check("ada@@example.org", validation_type="regex")],
    ids=["smtp", "refused"],
)
def test_nothing_is_left_open_by_a_refusal_or_after_the_mailbox(found):
    assert "not asked" not in repr(found)


def test_texts_of_other_hosts_are_cut_and_cannot_move_the_cursor():
    lines = repr(mv.Verification("a@" + "b" * 5_000, "smtp", "valid", (HOSTILE,))).splitlines()
    assert max(map(len, lines)) < 400
    assert all(line.isprintable() for line in lines)


@each_row("name", VALUES)
def test_a_notebook_shows_it_escaped(name):
    page = Elements(VALUES[name]._repr_html_())
    assert page.open == []
    assert {"img", "script"} & {*page.names} == set()
    assert page.text.strip()


@each_row("name", VALUES)
def test_a_prompt_shows_it_in_a_few_lines(name):
    assert 1 <= len(repr(VALUES[name]).splitlines()) <= 13
    assert "\x1b" not in repr(VALUES[name])


@each_row(
    ("quota", "shown"),
    [
        (mv.Quota(100, 40, 60), "60 of 100 addresses left today"),
        (mv.Quota(1, 1, 0), "0 of 1 address left today"),
        (mv.Quota(12_000, 0, 12_000), "12,000 of 12,000 addresses left today"),
    ],
)
def test_a_quota_prints_as_a_sentence(quota, shown):
    assert str(quota) == shown
    assert shown in quota._repr_html_()


def test_a_split_has_a_badge_and_the_attribute_of_each_part():
    text = Elements(VALUES["split"]._repr_html_()).text
    for name, rows in (
        ("send", "1 row"),
        ("review", "0 rows"),
        ("drop", "0 rows"),
        ("unchecked", "0 rows"),
    ):
        assert f"{LABELS[name]}{rows}.{name}" in text


def test_a_run_shows_rows_without_a_verdict_too():
    run = mv.Progress(
        state="stopped",
        total=9,
        settled=6,
        verdicts=dict.fromkeys(map(str, mv.Verdict), 1),
        errors=2,
    )
    text = Elements(render_progress(run)).text
    assert "Stopped: 6 of 9 addresses checked" in text
    assert "Not checked yet3" in text
    assert "Technical error2" in text


class TestWords:
    def test_every_reason_has_a_label_and_a_meaning(self):
        assert list(REASON_MEANING) == list(Reason)
        assert list(WHY_MEANING)[: len(Reason)] == list(Reason)
        assert {*WHY_MEANING} <= {*REASON_LABELS}
        assert {*STATE_MEANING} <= {*LABELS}

    def test_a_meaning_can_follow_a_colon(self):
        for words in (*WHY_MEANING.values(), *STATE_MEANING.values()):
            assert words[0].islower(), words
            assert not words.endswith("."), words

    def test_a_label_is_short_and_for_people(self):
        for label in (
            *REASON_LABELS.values(),
            *LABELS.values(),
            *(m.label for m in MARKS.values()),
        ):
            assert label[0].isupper(), label
            assert len(label) <= 50, label
            assert not re.search(r"_|\bMX\b|RCPT|\.$", label), label

    @each_row(
        ("count", "noun", "shown"),
        [
            (0, "row", "0 rows"),
            (1, "row", "1 row"),
            (1_500, "address", "1,500 addresses"),
            (2, "entry", "2 entries"),
            (2, "day", "2 days"),
            (2, "mailbox", "2 mailboxes"),
        ],
    )
    def test_a_count_has_its_plural(self, count, noun, shown):
        assert count_of(count, noun) == shown
