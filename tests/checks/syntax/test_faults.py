"""The table of faults: every row is reached, and nothing in ASCII is left without an explanation."""

import random
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.syntax.address import observe_syntax
from mailverdict.checks.syntax.faults import (
    SYNTAX_FAULTS,
    describe_character,
    describe_non_ascii,
    describe_unsafe,
    search_faults,
)
from tests.doubles.tables import each_row

ASCII = "".join(map(chr, range(128)))


def test_sample_is_refused_and_reaches_its_own_row_first():
    for fault in SYNTAX_FAULTS:
        seen, sentence = (
            observe_syntax(fault.sample),
            re.escape(fault.sentence).replace(r"\{char\}", ".+"),
        )
        assert not seen.ok, fault.sentence
        assert next(each for each in SYNTAX_FAULTS if each.search(fault.sample)) is fault, (
            fault.sentence
        )
        assert re.fullmatch(sentence, seen.message), fault.sentence


def test_sentences_are_distinct_and_end_like_sentences():
    sentences = [fault.sentence for fault in SYNTAX_FAULTS]
    assert len(set(sentences)) == len(sentences)
    assert [each for each in sentences if not each.endswith(".")] == []


def test_only_rows_marked_non_ascii_need_such_a_character():
    assert [
        each.sentence for each in SYNTAX_FAULTS if each.non_ascii is each.sample.isascii()
    ] == []


@given(
    st.text(st.sampled_from('ab.@-_ "(),:;<>[]\\\x00\t9xnX'), max_size=14)
    | st.text(ASCII, max_size=20)
)
def test_every_refused_ascii_text_has_a_row_unless_it_is_about_idna(text):
    if not observe_syntax(text).ok and "xn--" not in text.lower():
        assert search_faults(text) is not None


@pytest.mark.slow
def test_every_refused_one_of_many_mutated_addresses_has_a_row():
    rng = random.Random(5)
    left = []
    for _ in range(20_000):
        text = list("ada.b-c@web-1.co.uk")
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(text))
            text[at : at + rng.randrange(2)] = rng.choice(ASCII)
        address = "".join(text)
        if not observe_syntax(address).ok and search_faults(address) is None:
            left.append(address)
    assert left == []


@each_row(
    ("char", "description"),
    [
        (",", "',' (U+002C)"),
        ("\\", "'\\' (U+005C)"),
        ("é", "'é' (U+00E9)"),
        ("\x00", "U+0000"),
        ("\n", "U+000A"),
        (" ", "U+0020 (SPACE)"),
        ("\u200b", "U+200B (ZERO WIDTH SPACE)"),
        ("\u202e", "U+202E (RIGHT-TO-LEFT OVERRIDE)"),
        ("\u0301", "U+0301 (COMBINING ACUTE ACCENT)"),
        ("\ue000", "U+E000"),
        ("\ud800", "U+D800"),
        ("\U000e0001", "U+E0001 (LANGUAGE TAG)"),
    ],
)
def test_describe_character_when_it_can_or_cannot_be_seen(char, description):
    assert describe_character(char) == description


def test_no_description_contains_a_character_that_hides_or_reorders_text():
    risky = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Mn", "Me"}
    shown = [chr(code) for code in range(0x3000) if unicodedata.category(chr(code)) in risky]
    assert [char for char in shown if char in describe_character(char)] == []


@each_row(
    ("text", "named"),
    [("a\u200b@web.de", "U+200B"), ("a@\u0301web.de", "U+0301"), ("é@web.de", None)],
)
def test_an_unsafe_character_is_named(text, named):
    message = describe_unsafe(text)
    assert (
        (message is None)
        if named is None
        else (message.startswith("There is a character") and named in message)
    )


@each_row(
    ("text", "local_ok", "domain_ok", "start"),
    [
        ("é@web.de", False, True, "The part before the @"),
        ("é@web.de", True, False, "The domain is not a valid"),
        ("é@web.de", True, True, "The address is longer"),
    ],
)
def test_describe_non_ascii_names_the_side_at_fault(text, local_ok, domain_ok, start):
    assert describe_non_ascii(text, local_ok=local_ok, domain_ok=domain_ok).startswith(start)
