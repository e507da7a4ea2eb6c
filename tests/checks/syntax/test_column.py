"""A column: row by row the answer of `observe_syntax`, for every Arrow text type."""

import functools
import itertools
import json
import random
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailverdict.checks.syntax.address import ANY_DOT_ATOM, describe_refusal, observe_syntax
from mailverdict.checks.syntax.column import (
    PIECE_ROWS,
    SyntaxColumn,
    describe_refusals,
    fault_messages,
    observe_column,
)
from mailverdict.checks.syntax.faults import MAX_OCTETS
from mailverdict.checks.syntax.kernels import BLOCK_OCTETS
from mailverdict.model.evidence import SyntaxEvidence
from tests import CASES
from tests.doubles.tables import crossed, each_row, rows_of_csv

VECTORS = CASES / "syntax_vectors.csv"
COMMON = "abz09AZ.@-_+"
SPECIAL = "\"'(),:;<>[]\\ \t\r\n\x00\x1f\x7f/!#$%&*=?^`{|}~"
FOREIGN = (
    "éßÅſıİ\u0301\u0338\u200b\u200d\u202e\xa0\xad。．｡＠﹫\u037e\u0958ابא١ᚠ石𝒜😀\ue000\u0378\u2028K"
)
WORDS = (
    *(
        "info",
        "INFO",
        "Postmaster",
        "mar\u212aeting",
        "local",
        "test",
        "invalid",
        "LOCALHOST",
        "com",
        "de",
        "co.uk",
    ),
    *(
        "xn--",
        "XN--",
        "xn--bcher-kva",
        "xn--80ak6aa92e",
        "xn--a",
        "xn--zz-9",
        "axn--b",
        "ab--c",
        "bücher",
        "BÜCHER",
        "почта",
    ),
    *(
        "a" * 62,
        "a" * 63,
        "b" * 64,
        "c" * 120,
        "é" * 30,
        "石" * 40,
        "\u0958" * 20,
        "--",
        "..",
        "@@",
        "mailto:",
        "IPv6:",
    ),
    *(
        "192.0.2.7",
        "<ada@web.de>",
        '"a b"',
        "(work)",
        "; b@web.de",
        ".local",
        ".test",
        "web.de",
        "@web.de",
        "gmail.com",
    ),
)
TOKENS = (*COMMON, *COMMON, *COMMON, *SPECIAL, *FOREIGN, *WORDS, *WORDS)


@functools.cache
def hostile_texts() -> list[str]:
    """50,000 texts, always the same: some are addresses, some nearly."""
    rng = random.Random(11)
    shapes = (
        lambda: "".join(rng.choices(TOKENS, k=rng.randrange(8))),
        lambda: "".join(rng.choices(TOKENS, k=rng.randrange(1, 4))) + "@web.de",
        lambda: (
            "ada@" + "".join(rng.choices(TOKENS, k=rng.randrange(1, 4))) + rng.choice((".de", ""))
        ),
        lambda: (
            "".join(rng.choices(WORDS, k=2))
            + "@"
            + ".".join(rng.choices(WORDS, k=rng.randrange(1, 5)))
        ),
        lambda: (
            rng.choice(("a", "é", "e\u0301")) * rng.randrange(1, 250)
            + "@"
            + ".".join(rng.choices(WORDS, k=3))
        ),
        lambda: (
            rng.choice(("Ada", "info", "石井", "o'neil"))
            + "@"
            + rng.choice(WORDS)
            + rng.choice((".com", ".COM", "。jp"))
        ),
    )
    return [rng.choice(shapes)().strip() for _ in range(50_000)]


def rows_of(texts: pa.Array, seen: SyntaxColumn) -> list[SyntaxEvidence]:
    """The column's answers as `observe_syntax` returns them."""
    messages = fault_messages(texts, seen.ok).to_pylist()
    domains = [
        None if code is None else seen.domains[code].as_py()
        for code in seen.domain_codes.to_pylist()
    ]
    columns = (
        seen.ok.to_pylist(),
        seen.normalized().to_pylist(),
        seen.local().to_pylist(),
        domains,
        messages,
    )
    return [
        SyntaxEvidence(ok, *("" if each is None else each for each in rest))
        for ok, *rest in zip(*columns, strict=True)
    ]


def differing_rows(texts: list[str], found: list[SyntaxEvidence]) -> list[int]:
    """The positions where a column's answer is not that of `observe_syntax`."""
    return [row for row, text in enumerate(texts) if observe_syntax(text) != found[row]]


def compare(texts: list[str]) -> list[int]:
    column = pa.array(texts, pa.string())
    found = rows_of(column, observe_column(column))
    refused = pa.array(
        [text for text in texts if not observe_syntax(text).ok and len(text.encode()) <= MAX_OCTETS]
    )
    messages: dict[str, int] = {}
    codes = describe_refusals(
        refused.cast(pa.string()), messages
    ).tolist()  # the path of many refused texts
    assert [list(messages)[code] for code in codes] == [
        describe_refusal(text) for text in refused.to_pylist()
    ]
    return differing_rows(texts, found)


@given(st.lists(st.lists(st.sampled_from(TOKENS), max_size=6).map("".join), max_size=12))
@example(["a@b.c", "d@e.f", "", "@", "a@@b.c", "x" * 255, "x" * 251 + "@b.c"])
@example([""])
@example(["."])
@example(["a.", "@b.de", ".a@b.de"])
@example(["mar\u212aeting@web.de", "MARKETING@web.de", "Marketing+x@web.de"])
def test_column_is_row_by_row_what_one_address_is(texts):
    assert compare(texts) == []


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=8))
def test_column_is_row_by_row_what_one_address_is_for_any_text(texts):
    assert (
        compare(
            [*texts, *(f"{text}@web.de" for text in texts), *(f"ada@{text}.de" for text in texts)]
        )
        == []
    )


@pytest.mark.slow
@pytest.mark.parametrize("count", [3_000, 50_000])
def test_column_is_row_by_row_what_one_address_is_for_many_hostile_texts(count):
    texts = hostile_texts()[:count]
    column = pa.array(texts)
    seen = observe_column(column)
    assert 0.1 < seen.ok.true_count / count < 0.5, "the texts no longer try both outcomes"
    assert differing_rows(texts, rows_of(column, seen)) == []


@pytest.mark.slow
@pytest.mark.parametrize("longest", [3, 4])
def test_column_is_row_by_row_what_one_address_is_for_all_short_local_parts_and_domains(longest):
    alphabet = 'aZ9.-@_" \xe9'
    short = [
        "".join(each)
        for size in range(longest + 1)
        for each in itertools.product(alphabet, repeat=size)
    ]
    assert compare([f"{text}@b.de" for text in short]) == []
    assert compare([f"a@{text}de" for text in short]) == []


def test_column_is_row_by_row_what_one_address_is_for_every_vector():
    texts = {json.loads(row["address_json"]).strip() for row in rows_of_csv(VECTORS)}
    encodable = sorted(text for text in texts if not re.search("[\ud800-\udfff]", text))
    assert len(encodable) > 400
    assert compare(encodable) == []


@pytest.mark.slow
@each_row(
    "spoil",
    [
        lambda seen: SyntaxEvidence(
            not seen.ok, seen.normalized, seen.local, seen.ascii_domain, seen.message
        ),
        lambda seen: SyntaxEvidence(
            seen.ok, seen.normalized + "x", seen.local, seen.ascii_domain, seen.message
        ),
        lambda seen: SyntaxEvidence(
            seen.ok, seen.normalized, seen.local.upper() + "X", seen.ascii_domain, seen.message
        ),
        lambda seen: SyntaxEvidence(
            seen.ok, seen.normalized, seen.local, "x" + seen.ascii_domain, seen.message
        ),
        lambda seen: SyntaxEvidence(
            seen.ok, seen.normalized, seen.local, seen.ascii_domain, seen.message + "."
        ),
    ],
)
def test_the_comparison_finds_a_spoiled_row(spoil):
    texts = hostile_texts()[:300]
    found = rows_of(pa.array(texts), observe_column(pa.array(texts)))
    found[137] = spoil(found[137])
    assert differing_rows(texts, found) == [137]


def as_chunks(texts: list[str], kind: pa.DataType) -> pa.ChunkedArray:
    """Chunks of many sizes, empty ones and slices among them."""
    whole = pa.array(["left out", *texts], kind)
    ends = sorted({0, 1, 2, 3, 10, 11, 500, len(texts) // 2, len(texts)})
    pieces = [whole.slice(1 + start, end - start) for start, end in itertools.pairwise(ends)]
    return pa.chunked_array([*pieces[:2], pa.array([], kind), *pieces[2:]], kind)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("threads", "kind"), crossed([1, 2, 5, None], [pa.string(), pa.large_string()])
)
def test_chunks_threads_and_offset_width_make_no_difference(kind, threads):
    texts = hostile_texts()[:2_000]
    plain = pa.array(texts)
    expected = observe_column(plain, threads=1)
    for column in (as_chunks(texts, kind), pa.array(["", *texts, ""], kind).slice(1, len(texts))):
        seen = observe_column(column, threads=threads)
        assert astuple_lists(seen) == astuple_lists(expected)
        assert (
            fault_messages(column, seen.ok).to_pylist()
            == fault_messages(plain, expected.ok).to_pylist()
        )


def astuple_lists(seen: SyntaxColumn) -> list[list[object]]:
    return [
        each.to_pylist()
        for each in (seen.ok, seen.local(), seen.domain_codes, seen.domains, seen.normalized())
    ]


@pytest.mark.slow
def test_rows_in_many_pieces_come_out_as_in_one():
    texts = [text for text in hostile_texts() if text.isascii()][:10_000] + hostile_texts()[:1_000]
    repeats = 2 * PIECE_ROWS // len(texts)
    once = observe_column(pa.array(texts))
    often = observe_column(pa.array(texts * repeats), threads=2)
    assert often.domains.equals(once.domains)
    for name in ("ok", "domain_codes"):
        assert getattr(often, name).equals(pa.concat_arrays([getattr(once, name)] * repeats))
    for name in ("local", "normalized"):
        assert getattr(often, name)().equals(pa.concat_arrays([getattr(once, name)()] * repeats))


@pytest.mark.slow
@each_row("shift", range(-6, 6))
def test_two_dots_are_seen_wherever_a_block_of_octets_ends(shift):
    filler = ["a@b.de"] * ((BLOCK_OCTETS + shift) // 6)
    texts = [*filler, "abc..d@b.de", *filler, "abc.@b.de"]
    assert np.flatnonzero(
        ~observe_column(pa.array(texts)).ok.to_numpy(zero_copy_only=False)
    ).tolist() == [
        len(filler),
        len(texts) - 1,
    ]


@pytest.mark.slow
def test_arrays_are_valid_and_of_the_promised_types():
    texts = hostile_texts()[:10_000]
    seen = observe_column(pa.array(texts))
    arrays = (seen.ok, seen.local(), seen.domain_codes, seen.domains, seen.normalized())
    for array in arrays:
        array.validate(full=True)
    assert [array.type for array in arrays] == [
        pa.bool_(),
        pa.string(),
        pa.int32(),
        pa.string(),
        pa.string(),
    ]
    refused = len(texts) - seen.ok.true_count
    assert [array.null_count for array in arrays] == [0, refused, refused, 0, refused]
    messages = fault_messages(pa.array(texts), seen.ok)
    messages.validate(full=True)
    assert messages.type == pa.dictionary(pa.int32(), pa.string())
    assert messages.null_count == seen.ok.true_count


@each_row("column", [pa.array([], pa.string()), pa.chunked_array([], pa.large_string())], ids=str)
def test_empty_column(column):
    seen = observe_column(column)
    assert astuple_lists(seen) == [[], [], [], [], []]
    assert fault_messages(column, seen.ok).to_pylist() == []


@each_row("texts", [["ada@web.de"], ["x"], [""], ["ada@web.de", "ben@Web.de"], ["", "x", "@"]])
def test_all_rows_accepted_or_all_refused(texts):
    assert compare(texts) == []


def test_domains_are_the_distinct_ones_of_accepted_rows_in_order_of_appearance():
    seen = observe_column(
        pa.array(
            [
                "a@Zeta.de",
                "b..c@unused.de",
                "a@bücher.de",
                "a@alpha.de",
                "a@ZETA.DE",
                "a@xn--bcher-kva.de",
            ]
        )
    )
    assert seen.domains.to_pylist() == ["zeta.de", "xn--bcher-kva.de", "alpha.de"]
    assert seen.domain_codes.to_pylist() == [0, None, 1, 2, 0, 1]


def test_domains_are_distinct_lower_case_and_ascii():
    domains = observe_column(pa.array(hostile_texts()[:10_000])).domains.to_pylist()
    assert len(set(domains)) == len(domains) > 100
    assert [domain for domain in domains if not domain.isascii() or domain != domain.lower()] == []


@each_row("kind", [pa.string(), pa.large_string()], ids=str)
def test_a_huge_cell_is_refused_and_spoils_no_other_row(kind):
    huge = ["a" * 10_000_000, "@" * 10_000_000, "a@" + "b." * 1_000_000 + "de"]
    column = pa.array(["ada@web.de", huge[0], "Ben@WEB.de", *huge[1:], "石@web.de"], kind)
    seen = observe_column(column)
    assert seen.normalized().to_pylist() == [
        "ada@web.de",
        None,
        "Ben@web.de",
        None,
        None,
        "石@web.de",
    ]
    assert set(fault_messages(column, seen.ok).to_pylist()) == {
        None,
        "The address is longer than 254 octets.",
    }
    assert seen.normalized().nbytes < 1_000


def test_rows_that_lie_behind_two_gib_of_others():
    octets = np.zeros(2**31 + 10, np.uint8)  # never touched, so that no memory is taken
    octets[-10:] = np.frombuffer(b"Ada@WEB.de", np.uint8)
    offsets = np.array([0, 2**31, 2**31 + 10], np.int64)
    column = pa.LargeStringArray.from_buffers(2, pa.py_buffer(offsets), pa.py_buffer(octets)).slice(
        1
    )
    seen = observe_column(column)
    assert seen.normalized().to_pylist() == ["Ada@web.de"]
    assert fault_messages(column, seen.ok).to_pylist() == [None]


def test_the_callers_buffers_stay_as_they_are():
    column = pa.array(["Ada@WEB.de", "INFO@Web.De", "a@XN--BCHER-KVA.de"])
    before = column.to_pylist()
    observe_column(column)
    assert column.to_pylist() == before


def every_character() -> Iterator[str]:
    return (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)


@pytest.mark.slow
def test_letters_and_digits_of_any_script_are_of_categories_that_are_never_unsafe():
    matched = [char for char in every_character() if ANY_DOT_ATOM.fullmatch(char)]
    assert len(matched) > 100_000
    assert {unicodedata.category(char)[0] for char in matched} <= set("LNPS")


@pytest.mark.slow
def test_nothing_combines_with_an_at_sign_so_that_the_first_one_always_separates():
    assert [
        char for char in every_character() if unicodedata.normalize("NFC", "@" + char)[0] != "@"
    ] == []


@pytest.mark.slow
@each_row("size", [0, 1, 20_000])
def test_the_forms_of_some_rows_are_those_of_all(size):
    texts = pa.array(
        [*hostile_texts()[:5_000], *["ada@firm.com"] * PIECE_ROWS, *hostile_texts()[:5_000]]
    )
    seen = observe_column(texts)
    rows = pa.array(np.random.default_rng(1).choice(len(texts), size, replace=False))
    assert seen.local(rows).to_pylist() == seen.local().take(rows).to_pylist()
    assert seen.normalized(rows).to_pylist() == seen.normalized().take(rows).to_pylist()
    assert seen.normalized(pa.array([None, 0])).to_pylist() == [None, seen.normalized()[0].as_py()]


def assert_same_check(one: SyntaxColumn, other: SyntaxColumn) -> None:
    assert one.domains.take(one.domain_codes).equals(other.domains.take(other.domain_codes))
    for name in ("local", "normalized"):
        assert getattr(one, name)().to_pylist() == getattr(other, name)().to_pylist()
    names, words = {"info", "local"}, {"info"}
    assert (
        one.match_locals(names, words).to_pylist() == other.match_locals(names, words).to_pylist()
    )
    assert one.ok.equals(other.ok)
    assert one.changed.tolist() == other.changed.tolist()
    assert one.unusual.tolist() == other.unusual.tolist()


def test_refused_texts_may_be_shortened_before_local_parts_are_matched():
    seen = observe_column(pa.array([f"{'a' * 70}.info@web", f"{'info' * 10}@web"]))
    shortened = replace(seen, texts=pa.array([".info", "info"]))
    assert shortened.match_locals({"info"}, {"info"}).to_pylist() == [None, None]


@pytest.mark.slow
def test_the_check_of_a_slice_is_that_of_its_texts():
    texts = pa.array(hostile_texts()[:5_000])
    assert_same_check(observe_column(texts).slice(9, 3_000), observe_column(texts.slice(9, 3_000)))
    mask = pa.array([at % 3 > 0 for at in range(len(texts))])
    assert_same_check(
        observe_column(texts).filter(texts.filter(mask), mask), observe_column(texts.filter(mask))
    )


def test_rows_that_are_replaced_have_the_forms_of_the_other_check():
    before, after = hostile_texts()[:3_000], hostile_texts()[3_000:6_000]
    mask = np.arange(3_000) % 7 == 2
    others = pa.array(after).filter(pa.array(mask))
    texts = pa.array(
        [new if is_new else old for old, new, is_new in zip(before, after, mask, strict=True)]
    )
    seen = observe_column(pa.array(before)).replace_rows(
        texts, pa.array(mask), observe_column(others)
    )
    expected = observe_column(texts)
    assert_same_check(seen, expected)
    assert_same_check(seen.slice(9, 50), expected.slice(9, 50))


@pytest.mark.slow
def test_rows_that_are_not_named_have_common_characters_and_their_normal_form():
    texts = pa.array(hostile_texts()[:20_000])
    seen = observe_column(texts)
    accepted = np.flatnonzero(seen.ok)
    differs = pc.not_equal(seen.normalized(), texts).fill_null(False)
    assert set(np.flatnonzero(differs)) <= set(seen.changed) <= set(accepted)
    common = texts.take(pa.array(np.setdiff1d(accepted, seen.unusual)))
    assert pc.all(pc.match_substring_regex(common, r"\A[A-Za-z0-9\-./_+@]*\z")).as_py()
