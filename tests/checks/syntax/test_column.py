"""A column: row by row the answer of `observe_syntax`, for every Arrow text type."""

import functools
import itertools
import json
import random
import re
import unicodedata
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailverdict.checks.syntax.address import ANY_DOT_ATOM, describe_refusal, observe_syntax
from mailverdict.checks.syntax.column import (
    describe_refusals,
    fault_messages,
    normal_forms,
    observe_column,
    update_rows,
)
from mailverdict.checks.syntax.faults import MAX_OCTETS
from mailverdict.model.arrow import SLICE_ROWS
from mailverdict.model.evidence import SyntaxEvidence
from tests import CASES
from tests.doubles.tables import each_row, rows_of_csv

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


def rows_of(seen: pa.RecordBatch) -> list[SyntaxEvidence]:
    """The column's answers as `observe_syntax` returns them."""
    normal, messages = normal_forms(seen).to_pylist(), fault_messages(seen).to_pylist()
    rows = []
    for row, normalized, message in zip(seen.to_pylist(), normal, messages, strict=True):
        parts = (normalized, row["local"], row["domain"], message)
        rows.append(SyntaxEvidence(row["well_formed"], *(part or "" for part in parts)))
    return rows


def differing_rows(texts: list[str], found: list[SyntaxEvidence]) -> list[int]:
    """The positions where a column's answer is not that of `observe_syntax`."""
    return [row for row, text in enumerate(texts) if observe_syntax(text) != found[row]]


def compare(texts: list[str]) -> list[int]:
    column = pa.array(texts, pa.string())
    found = rows_of(observe_column(column))
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
    assert 0.1 < seen["well_formed"].true_count / count < 0.5, (
        "the texts no longer try both outcomes"
    )
    assert differing_rows(texts, rows_of(seen)) == []


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
    found = rows_of(observe_column(pa.array(texts)))
    found[137] = spoil(found[137])
    assert differing_rows(texts, found) == [137]


def answers_of(seen: pa.RecordBatch) -> list[list[object]]:
    columns = [seen[name] for name in ("well_formed", "local", "domain", "display")]
    return [column.to_pylist() for column in (*columns, normal_forms(seen))]


@pytest.mark.slow
@each_row("threads", [1, 2, 5, None])
def test_slices_and_threads_make_no_difference(threads):
    texts = hostile_texts()[:2_000]
    expected = answers_of(observe_column(pa.array(texts), threads=1))
    column = pa.array(["", *texts, ""]).slice(1, len(texts))
    assert answers_of(observe_column(column, threads=threads)) == expected


@pytest.mark.slow
def test_rows_in_many_slices_come_out_as_in_one():
    texts = [text for text in hostile_texts() if text.isascii()][:10_000] + hostile_texts()[:1_000]
    repeats = 2 * SLICE_ROWS // len(texts)
    once = observe_column(pa.array(texts))
    often = observe_column(pa.array(texts * repeats), threads=2)
    assert often["domain"].dictionary.equals(once["domain"].dictionary)
    for name in ("well_formed", "local"):
        assert often[name].equals(pa.concat_arrays([once[name]] * repeats))
    indices = pa.concat_arrays([once["domain"].indices] * repeats)
    assert often["domain"].indices.equals(indices)
    assert normal_forms(often).equals(pa.concat_arrays([normal_forms(once)] * repeats))


@pytest.mark.slow
def test_arrays_are_valid_and_of_the_promised_types():
    texts = hostile_texts()[:10_000]
    seen = observe_column(pa.array(texts))
    seen.validate(full=True)
    codes = pa.dictionary(pa.int32(), pa.string())
    assert seen.schema.types == [pa.string(), pa.bool_(), pa.string(), codes, codes, pa.bool_()]
    refused = seen["well_formed"].false_count
    assert [column.null_count for column in seen.columns] == [0, 0, refused, refused, refused, 0]
    for row, normal in zip(seen.to_pylist(), normal_forms(seen).to_pylist(), strict=True):
        assert row["as_written"] == (normal == row["text"])
    assert seen["domain"].dictionary.null_count == seen["display"].dictionary.null_count == 0
    messages = fault_messages(seen)
    messages.validate(full=True)
    assert messages.type == codes
    assert messages.null_count == len(texts) - refused


def test_an_empty_column_has_no_answers():
    seen = observe_column(pa.array([], pa.string()))
    assert answers_of(seen) == [[], [], [], [], []]
    assert fault_messages(seen).to_pylist() == []


@each_row("texts", [["ada@web.de"], ["x"], [""], ["ada@web.de", "ben@Web.de"], ["", "x", "@"]])
def test_a_column_may_be_accepted_or_refused_as_a_whole(texts):
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
    assert seen["domain"].dictionary.to_pylist() == ["zeta.de", "xn--bcher-kva.de", "alpha.de"]
    assert seen["domain"].indices.to_pylist() == [0, None, 1, 2, 0, 1]


def test_domains_are_distinct_lower_case_and_ascii():
    domains = observe_column(pa.array(hostile_texts()[:10_000]))["domain"].dictionary.to_pylist()
    assert len(set(domains)) == len(domains) > 100
    assert [domain for domain in domains if not domain.isascii() or domain != domain.lower()] == []


def test_a_huge_cell_is_refused_and_spoils_no_other_row():
    huge = ["a" * 10_000_000, "@" * 10_000_000, "a@" + "b." * 1_000_000 + "de"]
    column = pa.array(["ada@web.de", huge[0], "Ben@WEB.de", *huge[1:], "石@web.de"])
    seen = observe_column(column)
    assert normal_forms(seen).to_pylist() == [
        "ada@web.de",
        None,
        "Ben@web.de",
        None,
        None,
        "石@web.de",
    ]
    assert set(fault_messages(seen).to_pylist()) == {
        None,
        "The address is longer than 254 octets.",
    }
    assert normal_forms(seen).nbytes < 1_000


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


def assert_same_check(one: pa.RecordBatch, other: pa.RecordBatch) -> None:
    assert answers_of(one) == answers_of(other)


@pytest.mark.slow
def test_the_check_of_a_slice_is_that_of_its_texts():
    texts = pa.array(hostile_texts()[:5_000])
    seen = observe_column(texts)
    assert_same_check(seen.slice(9, 3_000), observe_column(texts.slice(9, 3_000)))
    mask = pa.array([at % 3 > 0 for at in range(len(texts))])
    assert_same_check(seen.filter(mask), observe_column(texts.filter(mask)))


def test_rows_that_are_updated_have_the_forms_of_the_other_check():
    before, after = hostile_texts()[:3_000], hostile_texts()[3_000:6_000]
    mask = np.arange(3_000) % 7 == 2
    others = pa.array(after).filter(pa.array(mask))
    texts = pa.array(
        [new if is_new else old for old, new, is_new in zip(before, after, mask, strict=True)]
    )
    seen = update_rows(observe_column(pa.array(before)), pa.array(mask), observe_column(others))
    expected = observe_column(texts)
    assert_same_check(seen, expected)
    assert_same_check(seen.slice(9, 50), expected.slice(9, 50))
