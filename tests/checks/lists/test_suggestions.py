"""Suggestions: typing errors and their providers; no suggestion for real domains."""

from __future__ import annotations

import functools

from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.lists.files import find_lists, read_entries
from mailverdict.checks.lists.suggestions import (
    LETTERS,
    MIN_ANCHORED,
    MIN_LABEL,
    SuggestionIndex,
    build_index,
    first_letters,
    neighbours_of,
    parse_pairs,
    suggest_domain,
    suggest_domains,
    wrong_endings,
)
from tests import CASES
from tests.doubles.tables import assert_none_differ, each_row, rows_of_csv

COUNT = "count_in_1.47M(bounceshift)"


def entries(name: str) -> tuple[str, ...]:
    return read_entries(find_lists([name])[name])


@functools.cache
def rules_alone() -> SuggestionIndex:
    """The index without the table of known slips and without the known domains."""
    return build_index(entries("suggestion_targets"), {}, ())


TYPOS = rows_of_csv(CASES / "typo_domains.csv")
REAL = [row["domain"] for row in rows_of_csv(CASES / "real_domains.csv")]
TARGETS = entries("suggestion_targets")


class TestRecall:
    def test_seen_typos_by_how_often_they_were_seen(self) -> None:
        seen = [row for row in TYPOS if row[COUNT]]
        right = sum(
            int(row[COUNT]) for row in seen if suggest_domain(row["typo"]) == row["intended"]
        )
        assert right >= 0.95 * sum(int(row[COUNT]) for row in seen)

    def test_rules_alone_find_nearly_all_that_was_seen(self) -> None:
        rules = rules_alone()
        seen = [row for row in TYPOS if row[COUNT]]
        right = sum(
            int(row[COUNT]) for row in seen if rules.suggest(row["typo"]) == row["intended"]
        )
        assert right >= 0.95 * sum(int(row[COUNT]) for row in seen)

    def test_published_typo_tables_are_covered(self) -> None:
        found = suggest_domains([row["typo"] for row in TYPOS])
        # Of 125.
        assert sum(each == row["intended"] for each, row in zip(found, TYPOS, strict=True)) >= 120

    def test_no_wrong_suggestion_for_a_known_typo(self) -> None:
        found = suggest_domains([row["typo"] for row in TYPOS])
        assert [
            row
            for each, row in zip(found, TYPOS, strict=True)
            if each not in {row["intended"], None}
        ] == []

    def test_every_pair_of_the_table(self) -> None:
        pairs = list(parse_pairs(entries("typo_domains")))
        assert_none_differ(
            (slip, meant, suggest_domain(slip))
            for slip, meant in pairs
            if suggest_domain(slip) != meant
        )
        assert pairs


class TestSilence:
    def test_at_most_two_in_ten_thousand_real_domains(self) -> None:
        domains = [*REAL, *entries("disposable")]
        wrong = {
            domain: each
            for domain, each in zip(domains, suggest_domains(domains), strict=True)
            if each
        }
        assert len(wrong) <= 2 * len(domains) / 10_000, wrong

    def test_real_domains_get_no_suggestion(self) -> None:
        assert [
            domain for domain, each in zip(REAL, suggest_domains(REAL), strict=True) if each
        ] == []

    @each_row("name", ["suggestion_targets", "known_domains", "free", "free_more", "relays"])
    def test_never_for_a_known_domain(self, name: str) -> None:
        assert set(suggest_domains(entries(name))) == {None}

    def test_rules_hardly_need_the_known_domains(self) -> None:
        """The free list holds 4,400 names of mail providers, the hardest there are to tell from slips."""
        rules = rules_alone()
        free = (*entries("free"), *entries("free_more"))
        assert sorted(each for each in free if rules.suggest(each)) == [
            "earthling.net",
            "ymail.com",
        ]

    @each_row(
        ("domain", "why"),
        [
            ("mail.com", "a provider"),
            ("ymail.com", "a provider, one letter from gmail.com"),
            ("gmx.de", "short, and a target itself"),
            ("gmy.de", "short names are not corrected"),
            ("ing.name", "the zone of personal names"),
            ("gmail.cam", "an end that exists"),
            ("yahoo.ie", "an end that exists"),
            ("hotmail.dt", "two ends are as near"),
            ("micloud.com", "a letter before a name of six is another name"),
            ("range.fr", "and so is one less"),
            ("aql.com", "short names are not corrected"),
            ("gmail.fr", "another end may be another owner's"),
            ("mgmail.com", "the first letter is neither right nor a neighbour"),
            ("gmaaail.com", "two edits"),
            ("hotmail.gmail.com", "a sub-domain is not a typo"),
            ("hot.mail.com", "a dot too many: a sub-domain of a provider"),
            ("cloud.com", "the lost first letter is not guessed"),
            ("live.co", "an end that exists, and no owner of both"),
            ("example.org", "nothing near"),
            ("com", "no domain of two labels"),
            ("", "nothing"),
            (".", "nothing"),
        ],
    )
    def test_a_domain_that_may_be_meant_gets_no_suggestion(self, domain: str, why: str) -> None:
        assert suggest_domain(domain) is None, why


class TestRules:
    @each_row(
        ("domain", "meant", "why"),
        [
            ("yaaho.co.uk", None, "two edits, as yahoo loses one o and gains one a"),
            ("yahho.co.uk", "yahoo.co.uk", "one letter wrong, the end of a country"),
            ("outlok.fr", "outlook.fr", "one letter lost"),
            ("wanadooo.fr", "wanadoo.fr", "one letter too many"),
            ("lapsote.net", "laposte.net", "two letters exchanged"),
            ("jotmail.com", "hotmail.com", "the first letter's neighbour on the keyboard"),
            ("rediffmail.con", "rediffmail.com", "the end slipped"),
            ("hotmial.cmo", "hotmail.com", "name and end slipped"),
            ("comcast.ner", "comcast.net", "a slip of another end"),
            ("gmail.come", "gmail.com", "a letter too many in the end"),
            ("yahoo.coml", "yahoo.com", "a letter too many in the end"),
            ("gmx.dd", "gmx.de", "a wrong letter in the end"),
            ("libero.itt", "libero.it", "a letter too many in the end"),
            ("hotmail.co.ukk", "hotmail.co.uk", "a letter too many in the end"),
            ("jahoo.it", "yahoo.it", "a letter of the same sound"),
            ("iscali.it", "tiscali.it", "the first letter is lost"),
            ("ahotmail.com", "hotmail.com", "a letter before the name"),
            ("btinternet.cm", None, "an end that exists, and not among the largest"),
            ("gmail.om", "gmail.com", "an end that exists, and among the largest"),
            ("qq.con", "qq.com", "a short name whose end slipped"),
            ("yahoo.couk", "yahoo.co.uk", "a lost dot"),
            ("gmailc.om", "gmail.com", "a moved dot"),
        ],
    )
    def test_a_rule_suggests_what_is_not_in_the_table(
        self, domain: str, meant: str | None, why: str
    ) -> None:
        assert rules_alone().suggest(domain) == meant, why

    def test_two_candidates_are_none(self) -> None:
        index = build_index(["metal.example", "medal.example"], {}, ())
        assert index.suggest("meal.example") is None
        assert index.suggest("metall.example") == "metal.example"

    def test_table_comes_before_everything(self) -> None:
        index = build_index(
            ["metal.example"], {"metall.example": "steel.example"}, {"metall.example"}
        )
        assert index.suggest("metall.example") == "steel.example"

    @each_row(
        ("key", "around"), [("g", "fhtyvb"), ("a", "sqwz"), ("p", "o0-l"), ("m", "njk"), ("é", "")]
    )
    def test_neighbours_on_the_keyboard(self, key: str, around: str) -> None:
        assert sorted(neighbours_of(key)) == sorted(around)

    def test_no_slip_is_a_right_end(self) -> None:
        ends = {target.partition(".")[2] for target in TARGETS}
        assert ends.isdisjoint(each for end in ends for each in wrong_endings(end))


def distance(a: str, b: str) -> int:
    """Optimal string alignment, as the textbook has it: slow, and plainly right."""
    table = [[i + j if not i * j else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
            )
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


def near_targets(domain: str) -> set[str]:
    """Targets with the same end, a long enough label one edit away, and a plausible first letter."""
    label, _, end = domain.partition(".")
    found = set()
    for target in TARGETS:
        right, _, right_end = target.partition(".")
        plausible = label[:1] and label[0] in first_letters(right)
        if len(right) >= MIN_ANCHORED and label in {right[1:], *(each + right for each in LETTERS)}:
            plausible = True
        if (
            end == right_end
            and len(right) >= MIN_LABEL
            and plausible
            and distance(label, right) == 1
        ):
            found.add(target)
    return found


@st.composite
def mistyped(draw: st.DrawFn) -> str:
    """A target with up to two random edits of its first label."""
    label, _, end = draw(st.sampled_from(TARGETS)).partition(".")
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(label)))
        letter = draw(st.sampled_from(["", *"aeghilmoty0-"]))
        label = label[:at] + letter + label[at + draw(st.integers(0, 1)) :]
    return f"{label}.{end}"


RULES = rules_alone()


@given(mistyped())
def test_written_out_edits_are_the_distance(domain: str) -> None:
    expected = near_targets(domain) - {domain}
    if domain in TARGETS or domain.replace(".", "") in RULES.undotted:
        expected = set()
    if len(expected) == 1:
        assert RULES.suggest(domain) == expected.pop()
    else:
        assert RULES.suggest(domain) is None


@given(st.text())
def test_never_raises_and_gives_a_target_or_nothing(domain: str) -> None:
    assert suggest_domain(domain) in {None, *TARGETS}


@given(st.lists(st.sampled_from([row["typo"] for row in TYPOS] + REAL)))
def test_many_have_the_same_suggestion_as_one(domains: list[str]) -> None:
    assert suggest_domains(domains) == [suggest_domain(each) for each in domains]
