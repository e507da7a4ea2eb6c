"""CSV to CSV: what is not ours passes through byte for byte."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.errors import InputError
from mailverdict.files import delimited, table_file
from mailverdict.files.delimited import head_texts
from mailverdict.files.lines import align, read_regular, split_cells, split_end, split_rows, unquote
from mailverdict.files.readers import ReadOptions, open_table
from mailverdict.files.table_file import (
    ALWAYS_ADDED,
    LONGEST_CELL,
    LONGEST_HEADER,
    LONGEST_LINE,
    MAX_ADDED,
    MAX_COLUMNS,
)
from mailverdict.files.writers import FormulaColumns, create_table
from tests.doubles.tables import crossed, each_row

ADDRESS = "+ada@example.org"
# Encoding, the byte order mark before it, and what the reader must be told.
ENCODINGS = [
    ("utf-8", b"", None),
    ("utf-8", b"\xef\xbb\xbf", None),
    ("utf-16-le", b"\xff\xfe", None),
    ("utf-16-be", b"\xfe\xff", None),
    ("utf-16-le", b"", "utf-16-le"),
    ("cp1252", b"", None),
    ("cp1252", b"", "cp1252"),
    ("latin-1", b"", "latin-1"),
    ("cp1251", b"", None),
    ("cp1251", b"", "cp1251"),
    ("shift_jis", b"", "shift_jis"),
    ("cp932", b"", None),
    ("gb18030", b"", "gb18030"),
    ("cp037", b"", "cp037"),
]


def copied(path, out, *, column="email", columns=("verdict",), in_all=False, **hints):
    """Verify a file as the command line does; the bytes that are written."""
    with open_table(path, ReadOptions(**hints)) as source:
        source.address_at = source.columns.index(column)
        escaped = FormulaColumns(column, None, in_all=in_all)
        with create_table(out, is_escaped=escaped, like=source.format) as writer:
            for piece in source.pieces([column], with_lines=True):
                writer.write(
                    mv.verify(
                        piece, column, validation_type="regex", columns=list(columns), clean=False
                    )
                )
        remarks = [*source.remarks, *source.final_remarks()]
    return out.read_bytes(), remarks


def encode(text, encoding, mark=b""):
    return mark + text.encode(encoding)


def in_quotes(cell, encoding):
    quote = '"'.encode(encoding)
    return quote + cell.replace(quote, quote * 2) + quote


@st.composite
def cells(draw, encoding):
    """A cell of random bytes, as it stands in a file; quoted where it may hold anything."""
    unit = len("x".encode(encoding))
    raw = draw(st.binary(max_size=12))
    raw += bytes(-len(raw) % unit)
    specials = [special.encode(encoding) for special in ('"', ",", "\n", "\r")]
    units = [raw[i : i + unit] for i in range(0, len(raw), unit)]
    if draw(st.booleans()):
        quoted = b"".join(each * 2 if each == specials[0] else each for each in units)
        return specials[0] + quoted + specials[0]
    return b"".join(each for each in units if each not in specials)


@each_row(("columns", "rows"), [(2, 50), (15_000, 5), (30_000, 3)])
def test_fewer_rows_of_a_wide_table_are_decoded_to_find_its_beginning(columns, rows):
    data = (b",".join([b"x"] * columns) + b"\n") * 60
    assert len(head_texts(data, b",", "utf-8", is_last=True)) == rows


@pytest.mark.slow
def test_a_title_before_a_wide_header_is_not_the_header(tmp_path):
    names = [f"question {n} of the survey" for n in range(2_500)]  # 60 kB
    rows = [[f"ada{n}@example.org", *["yes"] * (len(names) - 1)] for n in range(20)]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["Answers of 2026", ",".join(names), *map(",".join, rows)]))
    with open_table(path) as table:
        assert table.columns == tuple(names)
        assert sum(map(len, table.pieces())) == 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("encoding", "mark", "given_encoding"), ENCODINGS, ids=lambda v: repr(v)[:14]
)
@settings(max_examples=settings.default.max_examples // 5)  # of each encoding
@given(data=st.data())
def test_random_bytes_in_other_columns_pass_through(
    tmp_path_factory, encoding, mark, given_encoding, data
):
    folder = tmp_path_factory.mktemp("csv")
    end = data.draw(st.sampled_from(["\n", "\r\n", "\r"])).encode(encoding)
    comma = ",".encode(encoding)
    rows = data.draw(st.lists(st.tuples(cells(encoding), cells(encoding)), min_size=1, max_size=20))
    addresses = [f"ada{n}@example.org" if n % 3 else "not one @" for n in range(len(rows))]
    header = comma.join([each.encode(encoding) for each in ("left", "email", "right")])
    lines = [
        comma.join([a, e.encode(encoding), b]) for e, (a, b) in zip(addresses, rows, strict=True)
    ]
    last = data.draw(st.booleans())
    whole = mark + end.join([header, *lines]) + (end if last else b"")
    (folder / "in.csv").write_bytes(whole)
    written, _ = copied(folder / "in.csv", folder / "out.csv", encoding=given_encoding)
    verdicts = [
        ("valid" if "@example" in address else "invalid").encode(encoding) for address in addresses
    ]
    wanted = end.join(
        [
            header + comma + "email_verdict".encode(encoding),
            *map(comma.join, zip(lines, verdicts, strict=True)),
        ]
    )
    assert written == mark + wanted + (end if last else b"")


@given(st.text(st.sampled_from('a",\n\r x'), max_size=30))
def test_rows_are_those_of_pythons_csv_module(text):
    rows = split_rows(text.encode(), b",", is_last=True, keeps_blank=True)
    if rows.rest:  # a quote is not closed
        return
    wanted = [row or [""] for row in csv.reader(io.StringIO(text, newline=""))]
    octets = [rows.octets(at) for at in range(len(rows.cells))]
    assert rows.cells == wanted
    assert b"".join(octets) == text.encode()
    assert [
        [unquote(cell).decode() for cell in split_cells(split_end(each)[0], b",")]
        for each in octets
    ] == wanted


CELLS = st.sampled_from(
    ["", "a", '"a"', '"', 'a"', '"a" b', '"a,b"', '"a""b"', '""""', '"a\nb"', '"\n\n"', '"\r\n"']
)


@given(
    st.lists(st.lists(CELLS, max_size=3)), st.integers(1, 3), st.sampled_from(["\n", "\r\n"]), CELLS
)
def test_regular_rows_are_those_of_pythons_csv_module(rows, columns, end, rest):
    text = "".join(",".join(row) + end for row in rows) + rest
    found = read_regular(text.encode(), b",", columns, range(columns))
    wanted = split_rows(text.encode(), b",", is_last=False, keeps_blank=columns == 1)
    if found is not None:
        (*cells, octets), size = found
        count = len(octets)
        assert [
            list(map(bytes.decode, row))
            for row in zip(*map(pa.Array.to_pylist, cells), strict=True)
        ] == wanted.cells[:count]
        assert octets.to_pylist() == [wanted.octets(at) for at in range(count)]
        assert size == wanted.starts[count]
        assert count >= len(wanted.cells) - 1


@each_row("row", ["1,a", '"1","a"', '1,"a\nb"', '"a ""b""\r\n",'])
def test_rows_of_usual_files_are_regular(row):
    (_, octets), _ = read_regular(f"{row}\n".encode() * 9, b",", 2, [1])
    assert octets.to_pylist() == [f"{row}\n".encode()] * 8


@pytest.mark.parametrize("block", [40, 64, 1_000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blocks_of_any_size_give_the_same_file(tmp_path, monkeypatch, block, end):
    monkeypatch.setattr(delimited, "BLOCK", block)
    lines = [f'{n},"a ""b"", {end}c",ada{n}@x.org' for n in range(30)]
    lines[7] += end * 3  # blank lines
    path = tmp_path / "in.csv"
    path.write_bytes((end * 2 + end.join(["id,note,email", *lines])).encode())
    written, _ = copied(path, tmp_path / "out.csv")
    added = [line.rstrip(end) + ",valid" + line[len(line.rstrip(end)) :] for line in lines]
    assert written.decode() == end * 2 + end.join(["id,note,email,email_verdict", *added])


def test_results_of_an_earlier_run_are_replaced_in_place(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(
        b'email,email_verdict,email_status,"no te"\nada@x.org,invalid,done,"x"\nbad,,,\xff\n'
    )
    with open_table(path) as source:
        piece = next(source.pieces(["email"], with_lines=True))
        with create_table(tmp_path / "out.csv", like=source.format) as writer:
            made = pa.array(["valid", "a,b"])
            writer.write(piece.set_column(1, "email_verdict", made))
    assert (tmp_path / "out.csv").read_bytes() == (
        b'email,email_verdict,email_status,"no te"\nada@x.org,valid,done,"x"\nbad,"a,b",,\xff\n'
    )


def test_formulas_of_the_caller_are_escaped_on_request_and_other_cells_stay(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(
        b'email,note\n+ada@x.org,"=1+1"\n=b@x.org,-5.3e-05\nc@x.org,"say ""hi"""\nd@x.org,@x\n'
    )
    written, _ = copied(path, tmp_path / "out.csv", in_all=True)
    assert written == (
        b'email,note,email_verdict\n+ada@x.org,"\'=1+1",valid\n=b@x.org,-5.3e-05,valid\n'
        b'c@x.org,"say ""hi""",valid\nd@x.org,"\'@x",valid\n'
    )


# Header, row, and the row's values: too few cells, too many.
RAGGED = [
    ("id,email,note", "1,ada@x.org", ["1", "ada@x.org", ""]),
    ("id,email,note", "1", ["1", "", ""]),
    ("id,name,email", "1,ada@x.org", ["1", "", "ada@x.org"]),
    ("name,email,note", "Lovelace, Ada,ada@x.org,hi", ["Lovelace, Ada", "ada@x.org", "hi"]),
    (
        "id,name,email,note",
        "1,Lovelace, Ada,ada@x.org,hi",
        ["1", "Lovelace, Ada", "ada@x.org", "hi"],
    ),
    ("name,id,email", "Lovelace, Ada,1,ada@x.org", ["Lovelace, Ada", "1", "ada@x.org"]),
    ("email,note", "ada@x.org,hi, there, you", ["ada@x.org", "hi, there, you"]),
    ("email,note", 'ada@x.org,"hi, ""there""",you', ["ada@x.org", 'hi, "there",you']),
    ("id,email,note", "1,ada@x.org,bob@x.org,hi", ["1", "ada@x.org", "bob@x.org,hi"]),
    ("id,email,note", "1,none,2,3", ["1", "none", "2,3"]),
    ("name,email,note", '"A, B", C,<ada@x.org>,hi', ["A, B, C", "<ada@x.org>", "hi"]),
    ("email", "ada@x.org,bob@x.org", ["ada@x.org,bob@x.org"]),
    ("email", "ada@x.org,", ["ada@x.org"]),
    ("id,email", "1,ada@x.org,,", ["1", "ada@x.org"]),
    ("id,name,email,note", "1,Lovelace, Ada,ada@x.org,", ["1", "Lovelace, Ada", "ada@x.org", ""]),
    ("id,email,note", '1,ada@x.org,hi,,""', ["1", "ada@x.org", "hi"]),
    ("email,note", "x,ada@x.org,hi", ["x,ada@x.org", "hi"]),
]


@pytest.mark.parametrize(("header", "line", "values"), RAGGED)
def test_ragged_rows_are_kept_and_aligned(tmp_path, header, line, values):
    path = tmp_path / "in.csv"
    good = ",".join("x@x.org" for _ in header.split(","))
    blank = "\n" if "," in header else ""  # where a row is one cell, a blank line is a row
    path.write_text(f"{header}\n{good}\n{line}\n{blank}{good}\n")
    written, remarks = copied(path, tmp_path / "out.csv")
    rows = list(csv.reader(io.StringIO(written.decode(), newline="")))
    assert [row[:-1] for row in rows if row] == [
        header.split(","),
        good.split(","),
        values,
        good.split(","),
    ]
    assert remarks == ["1 row with too many or too few cells, kept and aligned: line 3"]


@given(
    st.lists(
        st.sampled_from([b"", b"x", b" y", b'"q"', b"a@x.org", b"b@x.org"]), min_size=1, max_size=8
    ),
    st.integers(1, 6),
    st.none() | st.integers(0, 5),
)
def test_alignment_gives_the_right_number_of_cells_and_loses_no_text(row, columns, address_at):
    at = None if address_at is None else min(address_at, columns - 1)
    found = align(row, columns, b",", at)
    assert len(found) == columns
    wanted = [unquote(cell) for cell in row if unquote(cell)]
    joined = b",".join(map(unquote, found))
    assert [cell for cell in joined.split(b",") if cell] == wanted


@given(
    st.lists(st.sampled_from([b"a", b" b", b" ", b"x@y.org"]), max_size=12),
    st.integers(1, 8),
    st.integers(0, 7),
)
def test_a_name_with_the_delimiter_in_it_is_where_the_only_blanks_are(row, columns, address_at):
    if not 0 < address_at < columns or len(row) <= columns or row.count(b"x@y.org") != 1:
        return  # a name is before the address
    shift = row.index(b"x@y.org") - address_at
    if not 0 < shift <= len(row) - columns or (
        shift < len(row) - columns and address_at == columns - 1
    ):
        return  # what is too much is joined into the last column
    fitting = [
        at
        for at in range(address_at)
        if all(c.startswith(b" ") for c in row[at + 1 : at + shift + 1])
    ]
    place = fitting[0] if len(fitting) == 1 else max(0, address_at - 1)
    found = align(row, columns, b",", address_at)
    assert found[place] == b'"' + b",".join(row[place : place + shift + 1]) + b'"'
    assert found[address_at] == b"x@y.org"


@each_row("cell", [b"a@b@x.org", b"@" * 100, b"@." * 100, b"<a@b@x.org>"])
def test_a_cell_with_two_at_signs_is_not_an_address_to_align_to(cell):
    assert align([b"x", b"y", cell], 2, b",", 1) == [b"x", b'"y,' + cell + b'"']


class TestHeader:
    @pytest.mark.parametrize(
        ("content", "hints", "columns", "rows"),
        [
            (b"1,ada@x.org\n2,b@x.org\n", {}, ("column_1", "column_2"), 2),
            (b"Ada <ada@x.org>\n", {}, ("column_1",), 1),
            (b"id,email\n2,b@x.org\n", {}, ("id", "email"), 1),
            (b"id,email\n2,b@x.org\n", {"has_header": False}, ("column_1", "column_2"), 2),
            (b"1,ada@x.org\n2,b@x.org\n", {"has_header": True}, ("1", "ada@x.org"), 1),
        ],
    )
    def test_an_address_in_the_first_line_is_data(self, tmp_path, content, hints, columns, rows):
        path = tmp_path / "in.csv"
        path.write_bytes(content)
        with open_table(path, ReadOptions(**hints)) as source:
            assert source.columns == columns
            assert sum(map(len, source.pieces())) == rows
            assert any("no header line" in remark for remark in source.remarks) == (
                columns[0] == "column_1"
            )

    def test_a_file_without_a_header_gets_one(self, tmp_path):
        path = tmp_path / "in.csv"
        path.write_bytes(b"1;ada@x.org\r\n2;b@x.org")
        written, remarks = copied(path, tmp_path / "out.csv", column="column_2")
        assert (
            written == b"column_1;column_2;column_2_verdict\r\n1;ada@x.org;valid\r\n2;b@x.org;valid"
        )
        assert remarks == ["no header line: the columns are column_1 to column_2"]


TEXTS = {
    "cp1252": "name,email\nJörg,a@b.org\n",
    "cp1251": "имя,email\nИван Петров,ivan@mail.ru\nОльга Смирнова,olga@yandex.ru\n",
    "cp932": "名前,email\n山田太郎,yamada@example.jp\n鈴木一郎,suzuki@example.jp\n",
    "utf-16-le": "name,email\nJörg,a@b.org\n",
    "utf-8": "name,email\nJörg,a@b.org\n",
}


RARE = ["^", "~", "¬", "¦", "§", "\x01", "\x1f"]


@pytest.mark.parametrize(
    ("delimiter", "encoding", "is_given"),
    crossed(RARE, ["utf-8", "utf-8-sig", "cp1252", "utf-16"], [True, False]),
)
def test_a_rare_delimiter_is_found_and_every_octet_is_kept(tmp_path, delimiter, encoding, is_given):
    path = tmp_path / "in.csv"
    lines = [
        'id¬"no¬te"¬email',
        "1¬\x1f, Jörg Müller¬ada@x.org",
        '2¬"a¬""b"""¬bob@x.org',
        "3¬^\x01¬",
        '4¬;¬"Cy¬ <cy@x.org>"',
    ]
    lines = [
        line.replace("¬", delimiter)
        for line in lines
        if delimiter not in "^\x01\x1f" or line[0] in "i24"
    ]
    path.write_bytes("\r\n".join(lines).encode(encoding))
    verdicts = {"1": "valid", "2": "valid", "3": "", "4": "invalid"}
    wanted = [f"{line}{delimiter}{verdicts.get(line[0], 'email_verdict')}" for line in lines]
    written, remarks = copied(
        path, tmp_path / "out.csv", **({"delimiter": delimiter} if is_given else {})
    )
    assert written == "\r\n".join(wanted).encode(encoding)
    assert [each for each in remarks if "encoding" not in each] == []
    with open_table(path, ReadOptions(delimiter=delimiter)) as source:
        assert source.columns == ("id", f"no{delimiter}te", "email")
        rows = pa.concat_tables(source.pieces()).to_pylist()
    assert rows[-1] == {"id": "4", f"no{delimiter}te": ";", "email": f"Cy{delimiter} <cy@x.org>"}


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_cells_of_ours_may_hold_a_delimiter_that_is_not_ascii(tmp_path, encoding):
    path = tmp_path / "in.csv"
    path.write_bytes("email¬old\nada@x.org¬\x1f\n".encode(encoding))
    with open_table(path) as source:
        (piece,) = source.pieces(["email"], with_lines=True)
        with create_table(tmp_path / "out.csv", like=source.format) as writer:
            writer.write(
                piece.set_column(1, "old", pa.array(["a¬b"])).append_column(
                    "x¬", pa.array(["\x1f ¬ ł"])
                )
            )
    last = "\x1f ¬ ł".encode(encoding, "backslashreplace").decode(encoding)
    assert (
        tmp_path / "out.csv"
    ).read_bytes() == f'email¬old¬"x¬"\nada@x.org¬"a¬b"¬"{last}"\n'.encode(encoding)


def test_octets_that_are_not_in_the_encoding_are_kept_beside_a_rare_delimiter(tmp_path):
    path = tmp_path / "in.csv"
    row = b"J\xf6rg\xc2\x1f\xe2\x82\xc2\xac\xac\xc2\xacada@x.org"
    path.write_bytes("name¬note¬email\n".encode() + row)
    written, _ = copied(path, tmp_path / "out.csv", encoding="utf-8")
    assert written == "name¬note¬email¬email_verdict\n".encode() + row + "¬valid".encode()


@pytest.mark.parametrize(
    "content",
    [
        "email\nada~x@x.org\nbob~x@x.org\n",
        "ada~x@x.org\nbob~x@x.org\n",
        "§ ada@x.org\n§ bob@x.org\n",
        "email ¬\nada@x.org\nbob@x.org\n",
        "to^x ada@x.org",
        "note\n1 ¬ 2\n3 ¬ 4\n",
    ],
)
def test_a_file_of_one_column_stays_one_where_a_rare_delimiter_is_in_its_text(tmp_path, content):
    path = tmp_path / "in.csv"
    path.write_text(content, encoding="utf-8")
    with open_table(path) as source:
        assert len(source.columns) == 1


def test_a_delimiter_that_is_not_ascii_does_not_disturb_the_guess_of_the_encoding(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(
        'name¬email\r\nJörg "X"¬ada@x.org; bob@y.org\r\n¬c@x.org,d@x.org\r\nAnn¬e@x.org'.encode(
            "cp1252"
        )
    )
    with open_table(path) as source:
        assert source.columns == ("name", "email")
        assert next(source.pieces())["name"][0].as_py() == 'Jörg "X"'


def test_cells_with_several_addresses_show_a_rare_delimiter_too(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(
        "sep=¬\nname¬email\nAda¬ada@x.org; bob@x.org\nCy¬\nDee¬c@x.org,d@x.org\n", encoding="utf-8"
    )
    with open_table(path) as source:
        assert source.columns == ("name", "email")
        assert sum(map(len, source.pieces())) == 3


def test_a_file_without_a_header_may_have_a_rare_delimiter(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("1¬ada@x.org\n2¬bob@x.org\n", encoding="utf-8")
    written, _ = copied(path, tmp_path / "out.csv", column="column_2")
    assert (
        written.decode()
        == "column_1¬column_2¬column_2_verdict\n1¬ada@x.org¬valid\n2¬bob@x.org¬valid\n"
    )


@pytest.mark.parametrize("encoding", TEXTS)
def test_encodings_are_detected_and_said(tmp_path, encoding):
    path = tmp_path / "in.csv"
    path.write_bytes(TEXTS[encoding].encode(encoding))
    with open_table(path) as source:
        rows = [
            row
            for piece in source.pieces()
            for row in zip(*(c.to_pylist() for c in piece.columns), strict=True)
        ]
        assert [",".join(source.columns), *map(",".join, rows)] == TEXTS[encoding].splitlines()
        if encoding == "utf-8":
            assert source.remarks == []
        else:
            (remark,) = source.remarks
            assert remark.startswith(f"encoding: {encoding}, guessed")
            assert remark.endswith("; give another with --encoding")


def test_an_address_in_a_code_page_is_read_as_text(tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes("name,email\nMüller,jörg@example.org\n".encode("cp1252"))
    written, _ = copied(path, tmp_path / "out.csv", columns=("verdict", "normalized"))
    assert (
        written.decode("cp1252").splitlines()[1] == "Müller,jörg@example.org,valid,jörg@example.org"
    )


def test_damaged_characters_are_kept_and_counted(tmp_path):
    path = tmp_path / "in.csv"
    good = "Jörg,ö,ada@x.org\n".encode() * 20
    path.write_bytes(b"name,b,email\n" + good + b"J\xf6rg,x\0y,bob@x.org\n" + good)
    written, remarks = copied(path, tmp_path / "out.csv")
    assert b"\nJ\xf6rg,x\0y,bob@x.org,valid\n" in written
    assert remarks == ["1 line with bytes that are not utf-8, kept: line 22"]


def test_a_file_that_changes_while_it_is_read_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK", 64)
    path = tmp_path / "in.csv"
    path.write_text("email\n" + "ada@example.org\n" * 50)
    with open_table(path) as source:
        pieces = source.pieces()
        next(pieces)
        with path.open("a") as file:
            file.write("bob@example.org\n")
        with pytest.raises(
            InputError,
            match=r"in\.csv changed while it was read; run again when nothing writes to it",
        ):
            list(pieces)


@pytest.mark.slow
def test_a_header_of_ten_thousand_columns(tmp_path):
    path = tmp_path / "in.csv"
    header = ",".join(["email", *(f"column with a long name {n}" for n in range(10_000))])
    path.write_text(header + "\n" + "ada@x.org" + "," * 10_000 + "\n")
    written, _ = copied(path, tmp_path / "out.csv")
    assert written.decode() == f"{header},email_verdict\nada@x.org{',' * 10_000},valid\n"


def test_a_cell_of_a_megabyte_and_many_columns_of_quotes(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(
        f'note,email\n"{"x" * (1 << 20)}",ada@x.org\n{",".join([chr(34) * 2000, "bob@x.org"])}\n'
    )
    written, _ = copied(path, tmp_path / "out.csv")
    assert written.count(b",valid\n") == 2


WIDE_ROWS = [
    (lambda size: 'note,email\n"' + "x" * size + '",ada@x.org\n', "one cell of the second row"),
    (lambda size: '"' + "x" * size + '",email\n1,ada@x.org\n', "one cell of the header"),
    (
        lambda size: ",".join(["email", *(f"{n:0{size // 500}}" for n in range(500))]) + "\n",
        "many columns",
    ),
    (
        lambda size: 'note,email\n"' + "x" * size + '" y,ada@x.org\n',
        "text after a closing quote: split slowly",
    ),
]
# Of each octet: for each delimiter that is tried, in each part of the beginning that is read.
SCANS = 40


@pytest.mark.slow
@pytest.mark.parametrize(("content", "why"), WIDE_ROWS)
@pytest.mark.parametrize("size", [1 << 16, 1 << 18, 1 << 20])
def test_the_octets_of_a_wide_row_are_scanned_a_bounded_number_of_times(
    tmp_path, monkeypatch, content, why, size
):
    monkeypatch.setattr(delimited, "BLOCK", 1 << 21)
    scanned = []

    def count_octets(data, *args, **options):
        scanned.append(len(data))
        return split_rows(data, *args, **options)

    monkeypatch.setattr(delimited, "split_rows", count_octets)
    path = tmp_path / "in.csv"
    path.write_text(content(size))
    with open_table(path) as source:
        assert sum(map(len, source.pieces())) <= 1
    assert sum(scanned) < SCANS * path.stat().st_size, why


def commas(cells: int, cell: str = "") -> str:
    return ",".join([cell] * cells)


class TestBounds:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("content", "line", "why"),
        [
            (lambda: f"email,{commas(2_000_000)}\nada@x.org\n", 1, "the header"),
            (lambda: f"\n\nemail,{commas(2_000_000)}\n", 3, "the header below blank lines"),
            (
                lambda: f"email,note\n\nada@x.org,1\nbob@x.org,{commas(1_000_000, 'x')}\n",
                4,
                "a row",
            ),
            (
                lambda: "email,note\n" + "ada@x.org,1\n" * 200_000 + f"{commas(MAX_COLUMNS + 1)}\n",
                200_002,
                "the last row, blocks later",
            ),
            (lambda: f"email,note\n{commas(MAX_COLUMNS + 1, 'a')}\n", 2, "one cell too many"),
            (
                lambda: "email,note\n" + 'a"b,' * 500_000 + "\n",
                2,
                "a row that is split slowly",
            ),
            (lambda: 'a"b,' * 500_000 + "\n", 1, "a slowly split header"),
        ],
        ids=lambda v: v if isinstance(v, str) else "",
    )
    def test_a_row_with_too_many_cells_is_refused_with_its_line(self, tmp_path, content, line, why):
        path = tmp_path / "in.csv"
        path.write_text(content())
        with (
            pytest.raises(
                InputError,
                match=rf"in\.csv, line {line}: [0-9,]+ columns or more; 16,384 are read at most",
            ),
            open_table(path) as table,
        ):
            table.check_rows()

    @pytest.mark.slow
    @pytest.mark.parametrize("columns", [500, MAX_COLUMNS])
    def test_as_many_columns_as_a_spreadsheet_has_are_read(self, tmp_path, columns):
        path = tmp_path / "in.csv"
        path.write_text(
            f"email,{','.join(f'c{n}' for n in range(1, columns))}\nada@x.org,"
            f"{commas(columns - 1, 'y')}\n"
        )
        written, _ = copied(path, tmp_path / "out.csv")
        assert written.endswith(b",y,valid\n")

    def test_of_the_first_rows_a_bounded_part_is_looked_at(self):
        data = ("x" * 10_000 + "," + commas(100_000) + "\n").encode() * 3
        rows = head_texts(data, b",", "utf-8", is_last=True)
        assert list(map(len, rows)) == [MAX_COLUMNS]
        assert len(rows[0][0]) == 1_000

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (
                lambda: f"email,{'x' * LONGEST_HEADER}\nada@x.org,1\n",
                "line 1: the header has 2,097,158 bytes, and 2,097,152 are",
            ),
            (
                lambda: f'email,"\n{"x" * LONGEST_HEADER}"\nada@x.org,1\n',
                "line 1: the header has 2,097,161 bytes",
            ),
            (
                lambda: f"email,x\n,y\nada@x.org,{'x' * (LONGEST_CELL + 1)}\n",
                "line 3: a cell is longer than 4,194,304 bytes",
            ),
            (
                lambda: 'email,x\n"a\nb",y\n"' + "ada@x.org,1\n" * 400_000 + '"\n',
                "line 4: a cell is longer than 4,194,304 bytes",
            ),
            (
                lambda: "email,x,y\n" + f",{'x' * LONGEST_CELL},{'y' * LONGEST_CELL}\n",
                "line 2: a row is longer than 8,388,608",
            ),
            (
                lambda: "email,x\n,1\n," + "x" * (3 * LONGEST_LINE) + "\n",
                "line 3: a row is longer than 8,388,608 bytes, or a quote",
            ),
        ],
        ids=["header", "header of two lines", "cell", "quote", "row", "row beyond two blocks"],
    )
    def test_what_is_too_long_is_refused_with_its_line(self, tmp_path, content, told):
        path = tmp_path / "in.csv"
        path.write_text(content())
        with pytest.raises(InputError, match=f"in\\.csv, {told}"), open_table(path) as table:
            table.check_rows()

    @pytest.mark.slow
    @pytest.mark.parametrize("size", [1 << 20, LONGEST_CELL - 2])
    def test_long_notes_are_read(self, tmp_path, size):
        path = tmp_path / "in.csv"
        notes = "note, " * (size // 6)
        path.write_text("email,a,b\n" + f'ada@x.org,"{notes}",{"x" * (LONGEST_CELL // 2)}\n' * 3)
        written, remarks = copied(path, tmp_path / "out.csv")
        assert (written.count(notes.encode()), written.count(b",valid\n"), remarks) == (3, 3, [])

    def test_rows_with_far_too_few_cells_are_refused(self, tmp_path):
        path, columns = tmp_path / "in.csv", 10_000
        path.write_text(
            f"email,{','.join(f'c{n}' for n in range(1, columns))}\n" + "ada@x.org\n" * 2_500
        )
        with (
            pytest.raises(
                InputError,
                match=r"lines from 2 on: rows have far fewer cells .* so that 24,997,500 empty",
            ),
            open_table(path) as table,
        ):
            table.check_rows()
        assert columns * 2_500 > max(ALWAYS_ADDED, MAX_ADDED * path.stat().st_size)

    def test_rows_with_too_few_cells_are_counted_anew_each_time(self, tmp_path, monkeypatch):
        monkeypatch.setattr(table_file, "ALWAYS_ADDED", 200_000)
        monkeypatch.setattr(delimited, "PIECE_SIZE", 50_000)
        path, columns = tmp_path / "in.csv", 1_000
        path.write_text(
            f"email,{','.join(f'c{n}' for n in range(1, columns))}\n" + "ada@x.org\n" * 150
        )
        with open_table(path) as table:
            table.check_rows()
            for _ in range(2):
                sizes = list(map(len, table.pieces(["email"])))
                assert sum(sizes) == 150
                assert max(sizes) * columns <= delimited.PIECE_SIZE + columns
            assert len(table.ragged_lines) == 150
        added = (columns - 1) * 150
        assert MAX_ADDED * path.stat().st_size < added < table_file.ALWAYS_ADDED < 2 * added


class TestEscapedQuotes:
    @pytest.mark.parametrize(
        "row",
        [
            rb'"say \"hi\", now",ada@x.example',
            rb'"\"hi\" there",ada@x.example',
            rb'1,"C:\\dir \"x\""',
            b'"first\nsecond \\"x\\" end",ada@x.example',
        ],
    )
    def test_they_are_refused_with_the_line(self, tmp_path, row):
        path = tmp_path / "in.csv"
        path.write_bytes(b"note,email\n1,bob@x.example\n" + row + b"\n")
        line = 4 if b"\n" in row else 3
        with pytest.raises(
            InputError,
            match=rf"in\.csv, line {line}: a quote within a cell is escaped with a backslash",
        ):
            open_table(path)

    @pytest.mark.parametrize(
        ("row", "note"),
        [
            (rb'"C:\dir\",ada@x.example', "C:\\dir\\"),
            (rb'"a ""b\"" c",ada@x.example', 'a "b\\" c'),
            (rb"5\" disk,ada@x.example", '5\\" disk'),
            (rb'"a,""b\""",ada@x.example', 'a,"b\\"'),
        ],
    )
    def test_a_backslash_that_is_text_is_kept(self, tmp_path, row, note):
        path = tmp_path / "in.csv"
        path.write_bytes(b"note,email\n" + row + b"\n")
        with open_table(path) as table:
            assert pa.concat_tables(table.pieces()).to_pylist() == [
                {"note": note, "email": "ada@x.example"}
            ]
