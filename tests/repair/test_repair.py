"""Repair of one cell: the table of messy cells, what is never invented, and that no cell takes long."""

from __future__ import annotations

import json
import random
import string
from collections import Counter
from functools import cache
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.checks.syntax.address import is_well_formed, observe_syntax
from mailverdict.checks.syntax.lenient import accept_leniently
from mailverdict.frames.clean import repair_column
from mailverdict.repair.addresses import SIGN_IN_ADDRESS, find_addresses
from mailverdict.repair.characters import (
    DECODERS,
    LATE_DECODERS,
    SIGN_OF_CODE,
    remove_invisible,
)
from mailverdict.repair.guess import guess_plain
from mailverdict.repair.repair import MAX_CELL, REPAIRS, RepairedCell, is_unclear, repair_cell
from tests.doubles.tables import assert_none_differ, each_row, first_ones, rows_of_csv

CASES = Path(__file__).parents[1] / "cases"


def read_cases(name):
    rows = rows_of_csv(CASES / name)
    return [(row["class"], json.loads(row["cell"]), json.loads(row["expected"])) for row in rows]


# The cells of all but the first table were written without knowledge of the rules.
TABLES = (
    "messy_cells.csv",
    "messy_cells_more.csv",
    "messy_cells_census.csv",
    "messy_cells_lists.csv",
)
ROWS = [row for name in TABLES for row in read_cases(name)]


@cache
def clean_all():
    """All cells of the tables in one call, which takes a hundredth of the time of a call for each."""
    cells = dict.fromkeys(
        [
            *(cell for _, cell, _ in ROWS),
            *(cell for cell, _ in NOT_INVENTED),
            *(r.before for r in REPAIRS),
        ]
    )
    out = mv.clean(pd.Series(list(cells), dtype=object)).fillna("-")
    return dict(zip(cells, out.itertuples(index=False), strict=True))


def cleaned(kind):
    """Cell, expected value, and what `clean` gives, for each row of a class."""
    return [
        (cell, expected, clean_all()[cell]) for row_kind, cell, expected in ROWS if row_kind == kind
    ]


def test_every_row_has_a_class_that_is_tested():
    counts = Counter(kind for kind, _, _ in ROWS)
    assert counts == {"safe": 1147, "ask": 195, "several": 147, "none": 456, "kept": 111, "odd": 72}


def test_a_safe_repair_is_applied():
    assert_none_differ(
        row for row in cleaned("safe") if row[2].clean != row[1] or row[2].change == ""
    )


def test_a_guess_is_only_suggested():
    assert_none_differ(row for row in cleaned("ask") if row[2] != ("-", row[1] or "-", ""))


def test_several_addresses_are_all_found():
    rows = [(*row, list(repair_cell(row[0]).addresses)) for row in cleaned("several")]
    assert_none_differ(row for row in rows if row[3] != row[1] or row[2].clean != "-")


def test_a_cell_without_an_address_gives_none():
    rows = [(*row, repair_cell(row[0]).addresses) for row in cleaned("none")]
    assert_none_differ(
        row for row in rows if row[1] is not None or row[2].clean != "-" or row[3] != ()
    )


def test_a_well_formed_address_is_kept():
    assert_none_differ(
        row for row in cleaned("kept") if (row[2].clean, row[2].change) != (row[1], "")
    )


def test_a_well_formed_address_that_looks_odd_is_kept_and_another_one_suggested():
    assert_none_differ(row for row in cleaned("odd") if row[2] != (row[0], row[1] or "-", ""))


@each_row("repair", REPAIRS, ids=lambda each: each.name)
def test_each_row_of_the_table_shows_what_happens(repair):
    out = clean_all()[repair.before]
    if repair.is_safe:
        assert out.clean == repair.after
        assert repair.name in out.change.split(";")
    else:
        assert out.suggestion == repair.after
        assert out.clean in ("-", repair.before)


# Two texts in each: the cell, and an address that a careless reading would make of it.
NOT_INVENTED = [
    ("ada.love lace@firm.com", "lace@firm.com"),
    ("ada.love\nlace@firm.com", "lace@firm.com"),
    ("ada lovelace@firm.com; bob@firm.com", "lovelace@firm.com"),
    ("иван петров@firm.ru", "петров@firm.ru"),
    ("a da@firm.com", "da@firm.com"),
    ("el ena.jones@firm.com", "ena.jones@firm.com"),
    ("neu mann@firm.com", "mann@firm.com"),
    ("office manager@firm.com", "manager@firm.com"),
    ("nan cy@firm.com; bob@firm.com", "cy@firm.com"),
    ("ada@firm.co uk", "ada@firm.co"),
    ("ada@firm.co\nuk", "ada@firm.co"),
    ("ada@firm.co,uk", "ada@firm.co"),
    ("ada@firm.co;uk", "ada@firm.co"),
    ("ada@sub.fi-\nrm.com", "ada@sub.fi"),
    ("ada@my.firm example.com", "ada@my.firm"),
    ("<ada@firm.co．uk> x", "ada@firm.co"),
    ("ada@mail.firm[.]com", "ada@mail.firm"),
    ("ada@firm.co (dot) uk", "ada@firm.co"),
    ("ada&#46;lovelace@firm.com", "lovelace@firm.com"),
    ("ada/bob@firm.com (work)", "bob@firm.com"),
    ("+ada@gmail.com (work)", "ada@gmail.com"),
    ("x!ada@firm.com (work)", "ada@firm.com"),
    ("ssh://git@github.com/x", "git@github.com"),
    ("https://user:pass@firm.com/x", "pass@firm.com"),
    ("<m\ufffdller@firm.de>", "ller@firm.de"),
    ("<m\u00c3\u00b6ller@firm.de>", "ller@firm.de"),
    ("M\u00c3\x9cller@firm.de;", "M\u00c3ller@firm.de"),
    ("\u202eada@firm.com x", "ada@firm.com"),
    ("Pat O’Brien <o’brien@firm.com>", "brien@firm.com"),
    ("Jean–Luc <jean–luc@firm.com>", "luc@firm.com"),
    ("“o’brien@firm.com”", "brien@firm.com"),
    ('O"Brien <o"brien@firm.com>', "brien@firm.com"),
    ("o&quot;brien@firm.com", "brien@firm.com"),
    ("o´brien@firm.com;", "brien@firm.com"),
    ("mu¨ller@firm.com;", "ller@firm.com"),
    ("\x81mit@firm.com", "mit@firm.com"),
    ("\ufffdmit@firm.com;", "mit@firm.com"),
    ("bob@firm.com\\nbob@firm.com", "nbob@firm.com"),
    ("ada@firm.com\\nina@firm.com", "nina@firm.com"),
    ("ada,lovelace@firm.com", "lovelace@firm.com"),
    ('"ada lovelace"@firm.com', "lovelace@firm.com"),
    ("a@b@firm.com", "b@firm.com"),
    ("名前ada@firm.com;", "ada@firm.com"),
    ("x" * 300 + "ada@firm.com;", "ada@firm.com"),
    ("\\u003cada@firm.com\\u003e", "u003cada@firm.com"),
    ("\\u007fada@firm.com;", "u007fada@firm.com"),
    ("=3Cada@firm.com=3E", "3Cada@firm.com"),
    ("ada@firm.co=\nm", "ada@firm.co"),
    ("ada@firm.co=2Euk", "ada@firm.co"),
    ("ada@firm.co\\\nuk", "ada@firm.co"),
    ("ada@firm.co dot uk", "ada@firm.co"),
    ("ada@firm.co..uk", "ada@firm.co"),
    ("<ada@firm.co..uk>", "ada@firm.co"),
    ("<ada@firm.co...uk>", "ada@firm.co"),
    ("ada@firm.co.[dot]uk", "ada@firm.co"),
    ("ada@firm.com.+br", "ada@firm.com"),
    ("ada@firm.co·uk", "ada@firm.co"),
    ('ada@firm.co"uk', "ada@firm.co"),
    ("\x1b[1mada@firm.com\x1b[0m", "1mada@firm.com"),
    ("[1mada@firm.com;", "1mada@firm.com"),
    ("①ada@firm.com", "1ada@firm.com"),
    ("<ada@firm.com™>", "ada@firm.comtm"),
    ("ada@firm.com\x00x;", "ada@firm.comx"),
    ("<ada@firm.co-uk>", "ada@firm.co-uk"),
    ("ada@firm.comâ€;", "ada@firm.comâ"),
    ("b'ada@firm.com'", "b'ada@firm.com"),
    ("email'ada@firm.com'", "email'ada@firm.com"),
    ("git@firm.com:ada/tool.git", "git@firm.com"),
    ("root@firm.com:~/x", "root@firm.com"),
    ("@ada@firm.com", "ada@firm.com"),
    ("Ada Byron <ada byron@firm.com>", "byron@firm.com"),
    ("Ada Byron <ada,byron@firm.com>", "byron@firm.com"),
    ("Email:ada@firm.comPhone:5551234567", "ada@firm.comphone"),
    ("<ada@firm.comPhone>", "ada@firm.comphone"),
]


def test_a_part_of_an_address_is_never_taken_for_an_address():
    rows = [
        (cell, wrong, repair_cell(cell).addresses, clean_all()[cell].clean)
        for cell, wrong in NOT_INVENTED
    ]
    assert_none_differ(row for row in rows if row[1] in row[2] or row[1] == row[3])


IN_FRONT = [
    "\\u003c", "\\u007f", "\\x3c", "=3C", "=20", "%3C", "+", "\\", "\\t", "\\n", "\x1b[1m", "[1m", "b'", 'b"', "E:", "<b>", "&lt",
    "&lt;", "&#60;", "&nbsp;", "_x000D_", "\u00c2 ", "\u00e2\u20ac\u0153", "--", "::", ":", "//", "mailto:", "mailto:to=", "?to=",
    "https://", "sip:", "@", "1)", "(1)", "#", "…", "..", "'", "''", '"', "`", "´", "’", "“", "(", "((", "[", "{", "${", "<<", "||",
    "\u200b", "\u2066", "\ufeff", "\x00", "\x85", "\ufffd", "王", "①", "⑴", "№", "ada ", "Ada ", "名前", "名前：", "<mailto:", "Ada(",
    "Ada<", "Ada:", "Ada;", "Ada,", "Ada|", "FIRM\\", "m. ", "Dr. ", "de ", "©", "²", "½",
]  # fmt: skip
BEHIND = [
    "\\u003e", "\\x3e", "=3E", "=20", "%3E", "%20", "\\", "\\t", "\\n", "\\nBob", "\x1b[0m", "[0m", "'", '"', "'s", "</b>", "<br>",
    "&gt", "&gt;", "&nbsp;", "_x000D_", "\u00c2 ", "\u00e2\u20ac", "--", "-", "_", "**", "~", "?", "?x=1", "=", "=x", "::", ":22",
    ":a/b", "/x", "@", "@x", "..", "…", "'", "´", "’", ")", "]", "}", ">", "|x", "\u200b", "\u2069", "\x00", "\x85", "\ufffd",
    "①", "™", "²", "½", ",", "、", ",x", ", x", ",uk", ";uk", " uk", "\nuk", " dot uk", "·uk", "‧uk", "'uk", '"uk', "\\.uk",
    " .com", "\\\nuk", "-\nuk",
]  # fmt: skip


@pytest.mark.slow
@each_row("address", ["ada@firm.com", "Ada.L-x@mail.firm.co"])
def test_nothing_that_touches_an_address_becomes_a_part_of_it(address):
    alone = [front for front in IN_FRONT if not is_well_formed(front + address)]
    cells = [front + address + behind for front in ["", *alone] for behind in BEHIND]
    found = [
        set(repair_cell(cell).addresses) - {address} for cell in cells if not is_well_formed(cell)
    ]
    assert len(found) > 3_000
    assert not any(found)


def test_what_can_be_read_but_not_with_certainty_is_told():
    found = repair_cell("ada@firm.com bob@firm")
    assert (found.addresses, found.suggestion) == ((), "ada@firm.com")
    assert is_unclear("ada@firm.com bob@firm")
    assert not is_unclear("nobody")


@each_row(
    "cell",
    [
        "ada@vol ny.com",
        "a d a @ firm . com, bob",
        "ada@(firm|firma).com",
        "ada@[192.168.1.10]",
        "ada@[IPv6:2001:db8::1]",
        "ada@gmail.com@",
    ],
)
def test_a_cell_that_may_hold_an_address_is_left_to_a_person(cell):
    assert repair_cell(cell) == RepairedCell()
    assert is_unclear(cell)


@each_row("cell", ["5 @ 3.50 EUR", "lunch @ 12.30", "ada@work", "user@{{domain}}", "@ada"])
def test_an_at_sign_alone_is_nothing_to_look_at(cell):
    assert repair_cell(cell) == RepairedCell()
    assert not is_unclear(cell)


@each_row(
    "cell",
    [
        "ad...@firm.com",
        "{ada,bob}@firm.com",
        "www.gmail.com",
        "https://gmail.com",
        "tariqgmail.com",
    ],
)
def test_no_address_is_guessed_where_letters_are_missing_or_there_is_none(cell):
    assert repair_cell(cell).suggestion is None


CARRIERS = ["docomo.ne.jp", "ezweb.ne.jp", "au.com", "d.vodafone.ne.jp", "I.SoftBank.jp"]
ODD_LOCALS = ["hoge.", ".hoge", "a..b", "a...b", "a,.b", "a..", "hoge ."]
SURROUNDINGS = [
    "{}",
    " {} ",
    "<{}>",
    "Ada <{}>",
    "mailto:{}",
    "E-Mail: {}",
    "{};",
    '"{}"',
    "({})",
    "{} foo",
]


@each_row("surrounding", SURROUNDINGS)
@each_row("sign", ["@", "@@", " @ ", " at ", "(at)"])
def test_no_dot_is_taken_out_of_a_local_part_at_a_carrier(surrounding, sign):
    for domain in CARRIERS:
        for local in ODD_LOCALS:
            found = repair_cell(surrounding.format(f"{local}{sign}{domain}"))
            assert (found.addresses, found.suggestion) == ((), None)


@each_row("surrounding", SURROUNDINGS[:-3])
def test_an_odd_dot_elsewhere_may_be_a_typing_error(surrounding):
    assert repair_cell(surrounding.format("a..b@firm.com")).suggestion == "a.b@firm.com"


NAME_NOBODY = [
    "None <none@noemail.com>",
    "noemail@noemail,com",
    "noemail@noemail..com",
    "no-email @ no-email.com",
]


@each_row("cell", NAME_NOBODY)
def test_an_address_that_names_nobody_is_not_suggested(cell):
    found = repair_cell(cell)
    assert (found.addresses, found.suggestion) == ((), None)


def test_a_column_reads_an_address_that_names_nobody_as_an_empty_cell():
    texts = pa.array(["NoEmail@NoEmail.com", "noemail@gmail.com", "ada@noemail.com"])
    found = repair_column(texts)
    assert found["text"].to_pylist() == ["", "noemail@gmail.com", "ada@noemail.com"]
    assert found["clean"].to_pylist() == [None, "noemail@gmail.com", "ada@noemail.com"]
    assert found["count"].to_pylist() == [0, 1, 1]
    assert found["change"].to_pylist() == ["", "", ""]


PIECES = st.sampled_from(
    [*string.ascii_letters[::5], "ada", "@", "@", ".", ".com", "firm", " ", ",", ";", "<", ">", "(", ")", "[", "]", "'", '"',
     "*", "/", "=", "&", "%40", "&#64;", "-", "_", "+", "\n", "\t", "\u200b", "mailto:", "Email:", "＠", "é", "e\u0301",
     "王", "my_host.", '"a..b"@', "[at]", "(dot)", "<br>", "\\n", "n/a", "and", "://", "|", "\ufffd", "\u202e", "Σ"]
)  # fmt: skip
CELLS = st.lists(PIECES, max_size=14).map("".join)


@given(CELLS)
def test_what_is_found_is_well_formed_and_found_again(cell):
    found = repair_cell(cell)
    for address in found.addresses:
        assert observe_syntax(address).ok or accept_leniently(address).text == address
        assert mv.clean([address])["clean"].tolist() == [address]
    if found.suggestion is not None:
        suggestion = found.suggestion
        assert observe_syntax(suggestion).ok or accept_leniently(suggestion).text == suggestion
        assert mv.clean([found.suggestion])["change"].tolist() == [""]
    assert len({address.casefold() for address in found.addresses}) == len(found.addresses)


@given(CELLS)
def test_the_check_of_a_part_agrees_with_the_syntax_check(text):
    assert is_well_formed(text) == observe_syntax(text).ok


@given(CELLS | st.text(string.printable))
@example("_x000D_ada@firm.com")
def test_a_printable_text_without_signs_of_a_code_has_nothing_to_decode(cell):
    if (
        cell.isascii()
        and cell.isprintable()
        and "_x00" not in cell
        and not SIGN_OF_CODE.search(cell)
    ):
        text = cell.strip()
        assert remove_invisible(cell) == text
        assert {decode(text) for _, decode in (*DECODERS, *LATE_DECODERS)} == {text}


@given(CELLS | st.text("ab1@@@.._-+'é\u0301\u202e "))
@example("ada@firm.com")
@example("é@firm.co")
@example("a+@1_-b.x")
def test_a_text_has_an_address_only_around_a_sign_that_is_looked_for(text):
    if find_addresses(text)[0]:
        assert SIGN_IN_ADDRESS.search(text)


@given(
    CELLS.filter(
        lambda cell: "%" not in cell and cell.isascii() and "&" not in cell and "(" not in cell
    )
)
def test_an_address_that_is_found_stands_in_the_cell(cell):
    decoded = cell.replace("[at]", "@").casefold()
    assert all(
        address.casefold().partition("@")[0] in decoded for address in repair_cell(cell).addresses
    )


HUGE = {
    "letters": "x" * MAX_CELL,
    "at signs": "@" * 900_000,
    "half addresses": "a@" * 400_000,
    "open tags": "<a " * 300_000,
    "nested tags": "<b>" * 250_000 + "ada@firm.com" + "</b>" * 100_000,
    "nested quotes": '"' * 400_000 + "ada@firm.com" + "'" * 400_000,
    "entities": "&amp;" * 180_000,
    "cut entities": "&" * 900_000,
    "bidirectional controls": "\u202a\u202b\u202c\u2066" * 200_000 + "ada@firm.com",
    "blanks": "ada" + " " * 900_000 + "@firm.com",
    "brackets": "[" * 900_000,
    "dots": "ada@" + "." * 900_000,
    "hyphens": "ada@a" + "-" * 900_000 + ".com",
    "underscores": "ada@a" + "_" * 900_000,
    "mailto": "mailto:" * 130_000,
    "percent": "%40" * 300_000,
    "words": "word " * 180_000 + "ada@firm.com",
    "at words": " (at) " * 150_000,
    "escaped lines": "\\n" * 450_000,
    "angle brackets": "<" * 900_000,
    "nested brackets": "([{<" * 10_000 + "ada@firm.com" + ">}])" * 10_000,
    "quoted-printable": "=3C=\n" * 150_000,
    "escapes": "\\u003c" * 150_000,
    "terminal colours": "\x1b[1m" * 200_000,
    "braces": "{ada@" * 150_000 + "}",
    "paths": "git@firm.com:" + "a" * 900_000,
    "symbols": "①™" * 400_000,
    "wrongly decoded": "\u00e2\u20ac\u0153" * 200_000,
    "apostrophes": "b'" * 400_000 + "@firm.com'",
    "comments": "<!--" * 200_000,
    "NULs": "\x00" * 900_000,
}


@pytest.mark.parametrize("size", [MAX_CELL // 10, pytest.param(MAX_CELL, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cell", first_ones(HUGE.values(), 8), ids=HUGE)
def test_a_huge_cell_is_read_to_its_end(cell, size):
    """Quadratic time would need hours for the full size, and minutes for a tenth."""
    found = repair_cell(cell if len(cell) <= size else cell[: size // 2] + cell[-size // 2 :])
    assert len(found.addresses) <= 1


def test_a_thousand_addresses_are_all_found():
    addresses = [f"user{number}@firm{number % 7}.com" for number in range(1_000)]
    assert repair_cell("; ".join(addresses)).addresses == tuple(addresses)


def test_a_cell_that_may_have_been_cut_is_not_repaired():
    cell = ("x " * MAX_CELL)[: MAX_CELL - 20] + " ada@firm.com.example"
    assert mv.clean([cell])["clean"].isna().all()


FRAMES = st.sampled_from(
    ["{}", "<{}>", "Ada Lovelace <{}>", '"Lovelace, Ada" <{}>;', "mailto:{}", "MAILTO:{}?subject=Hi there", "Email: {}",
     "work:{}", "* {}", "- {}", "{};", "{}.,", "'{}'", '"{}"', "{} (work)", "{} (at)", "Ada <{}>", "Mail:{};", "- {};",
     "At Dot <{}>", '"a" <{}>', "mailto:{}?subject=ada,bob", "{}?x=1", "Contact: '{}'",
     "{}, +49 30 1234567", "{}; 7", "{}, 7 ", "\u200b{}", "{}\ufeff", "\ufeff{};", "\u200b<{}>", '["{}"]', '["{}",]']
)  # fmt: skip
PLAIN = st.one_of(
    st.from_regex(
        r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,5}@[A-Za-z0-9.-]{1,6}\.[A-Za-z]{1,3}", fullmatch=True
    ),
    st.sampled_from(
        [
            "ada@firm.com",
            "Ada@FIRM.com",
            "ada@gmial.com",
            "_x000D_ada@firm.com",
            "a_x000D_b@firm.com",
        ]
    ),
)


WORDS = st.text("ab1@@..-_+", min_size=3, max_size=12)


@given(st.builds(str.format, FRAMES, PLAIN) | WORDS)
@example("a_x000D_b@firm.com;")
@example("mailto:ada@firm.com?subject=Hi there")
@example("Do Not Mail <ada@firm.com>")
@example("- ada@firm.com;")
@example("ada@firm.com-")
@example("ada@firm..com")
def test_a_blank_in_front_of_a_cell_changes_nothing_else(cell):
    """With it, a bare word is read as any other text."""
    if is_well_formed(cell.strip()):
        return
    alone = repair_cell(cell)
    other = repair_cell(f" {cell}")
    changes = other.changes
    if "blanks" not in alone.changes:
        changes = changes[1:]
    assert alone == other._replace(changes=changes)


@pytest.mark.slow
@given(st.lists(st.builds(str.format, FRAMES, PLAIN) | CELLS | st.text(max_size=12), max_size=8))
@example(["Do Not Mail <ada@firm.com>", "ada at firm dot com", "adagmail.com"])
def test_a_column_gives_each_malformed_cell_what_it_gets_alone(cells):
    refused = [cell for cell in cells if not is_well_formed(cell.strip())]
    found = repair_column(pa.array(refused, pa.string()))
    for at, cell in enumerate(refused):
        alone = repair_cell(cell)
        assert found["clean"][at].as_py() == (
            alone.addresses[0] if len(alone.addresses) == 1 else None
        )
        assert found["change"][at].as_py() == ";".join(alone.changes)
        assert found["count"][at].as_py() == len(alone.addresses)
        assert alone.addresses or found["suggestion"][at].as_py() == alone.suggestion


@each_row(
    ("address", "meant"),
    [
        ("'ada@firm.com", "ada@firm.com"),
        ("%20ada@firm.com", "ada@firm.com"),
        ("email=ada@firm.com", "ada@firm.com"),
        ("邮箱：ada@firm.com", "ada@firm.com"),
        ("o'neil@firm.com", None),
        ("x%40y@firm.com", None),
        ("*ada@firm.com", None),
        ("mu¨ller@firm.com", None),
        ("ada™bob@firm.com", None),
        ("名前ada@firm.com", None),
        ("сара@firm.com", None),
        ("ışık@firm.com", None),
    ],
)
def test_odd_first_characters_of_an_address_are_only_asked_about(address, meant):
    assert guess_plain(address) == meant
    out = mv.clean([address]).fillna("-").iloc[0]
    assert (out["clean"], out["suggestion"]) == (address, meant or "-")


def test_the_canonical_form_of_an_address_is_not_suggested_for_it():
    assert mv.clean(["eva@firm。com"]).fillna("-").iloc[0].tolist() == [
        "eva@firm.com",
        "-",
        "unicode",
    ]


def test_a_column_gives_each_cell_what_it_gets_alone():
    cells = [cell for kind, cell, _ in ROWS if kind != "kept" and cell.strip()]
    random.Random(1).shuffle(cells)
    found = repair_column(pa.array(cells, pa.string()))
    for cell, address, count in zip(
        cells, found["clean"].to_pylist(), found["count"].to_pylist(), strict=True
    ):
        if not is_well_formed(cell.strip()):
            alone = repair_cell(cell)
            assert (address, count) == (
                alone.addresses[0] if len(alone.addresses) == 1 else None,
                len(alone.addresses),
            )


REMARKED = [
    "ada@firm.com - do not contact",
    "ada@firm.com (do not e-mail)",
    "DO_NOT_MAIL <ada@firm.com>",
    "ada@firm.com - don’t mail",
    "ada@firm.com [unsubscribed 2021-03-04]",
    "ada@firm.com opted-out",
    "ada@firm.com (no longer works here)",
    "ada@firm.com (left the company)",
    "Ada <ada@firm.com> - hard bounce",
    "ada@firm.com (old)",
    "OLD: ada@firm.com",
    "Ada Lovelace <ada@firm.com> [old]",
    "ada@firm.com (gone 2020)",
    "ada@firm.com invalid",
    "ada@firm.com †",
    "ada@firm.com, verstorben",
    "ada@firm.com nicht anschreiben!",
    "ada@firm.com (nicht mehr aktuell)",
    "ada@firm.com – keine Werbung",
    "ada@firm.com (ne plus contacter)",
    "ada@firm.com (no contactar)",
    "ada@firm.com (non più attivo)",
    "ada@firm.com (niet meer mailen)",
    "ada@firm.com (nie kontaktować)",
    "ada@firm.com (не писать)",
    "ada@firm.com (please remove)",
    "ada@firm.com (asked to be removed)",
    "ada@firm.com (delete!)",
    "ada@firm.com - bitte löschen",
    "ada@firm.com (gelöscht 2021)",
    "ada@firm.com (à supprimer)",
    "ada@firm.com (por favor eliminar)",
    "ada@firm.com (da rimuovere, per favore rimuovere)",
    "ada@firm.com (graag verwijderen)",
    "ada@firm.com (proszę usunąć)",
    "ada@firm.com (просьба удалить)",
]


def test_words_that_ask_for_no_mail_are_a_remark():
    rows = [(cell, repair_cell(cell)) for cell in REMARKED]
    assert_none_differ(
        row
        for row in rows
        if row[1].addresses != ("ada@firm.com",) or "remark" not in row[1].changes
    )


@each_row(
    "cell",
    [
        "Old Mill Hotel <ada@firm.com>",
        "Left Bank Books <ada@firm.com>",
        "Bounce House <ada@firm.com>",
        "Not Just Bikes <ada@firm.com>",
        "No Limits <ada@firm.com>",
        "mail stop 4, ada@firm.com",
        "Contact: ada@firm.com",
        "ada@firm.com (new)",
        "Tot Ziens BV <ada@firm.com>",
        "Stain Remove Ltd <ada@firm.com>",
        "Delete Records <ada@firm.com>",
        "Please Mind the Gap <ada@firm.com>",
    ],
)
def test_names_are_not_remarks(cell):
    assert repair_cell(cell).addresses == ("ada@firm.com",)
    assert "remark" not in repair_cell(cell).changes
