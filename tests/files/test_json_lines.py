"""JSON lines: columns and types from all lines, written as they were read."""

import json
import re

import pyarrow as pa
import pytest

from mailverdict.errors import InputError
from mailverdict.files import json_lines
from mailverdict.files.readers import open_table
from mailverdict.files.table_file import LONGEST_LINE, MAX_COLUMNS
from mailverdict.files.writers import create_table

LINES = [
    {
        "email": "ada@x.example",
        "n": 1,
        "share": 1,
        "ok": True,
        "tags": ["a", {"b": None}],
        "mixed": 5,
        "long": 2**70,
    },
    {"email": None, "n": 2**62, "share": 0.5, "ok": None, "tags": None, "mixed": "x", "long": 1},
    {"email": "jürgen@x.example", "late": "only here"},
]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in LINES) + "\n\n", encoding="utf-8")
    return path


def whole(path, only=None):
    with open_table(path) as table:
        return pa.concat_tables(table.pieces(only))


def test_each_column_has_the_type_of_its_values(path):
    found = whole(path)
    assert dict(zip(found.column_names, found.schema.types, strict=True)) == {
        "email": pa.string(), "n": pa.int64(), "share": pa.float64(), "ok": pa.bool_(),
        "tags": pa.string(), "mixed": pa.string(), "long": pa.string(), "late": pa.string(),
    }  # fmt: skip
    assert found["mixed"].to_pylist() == ["5", "x", None]
    assert found["long"].to_pylist() == [str(2**70), "1", None]
    assert found["n"].to_pylist() == [1, 2**62, None]


def test_pieces_have_one_schema(path, monkeypatch):
    monkeypatch.setattr(json_lines, "ROWS", 1)
    with open_table(path) as table:
        pieces = list(table.pieces())
    assert [len(piece) for piece in pieces] == [1, 1, 1]
    assert len({str(piece.schema) for piece in pieces}) == 1


class TestBounds:
    @pytest.mark.parametrize(
        ("lines", "line", "why"),
        [
            ([range(5), range(MAX_COLUMNS + 1)], 2, "one object"),
            ([range(n, n + 1000) for n in range(0, 50_000, 1000)], 17, "all objects together"),
        ],
        ids=lambda v: v if isinstance(v, str) else "",
    )
    def test_too_many_columns_are_refused_with_the_line(self, tmp_path, lines, line, why):
        path = tmp_path / "in.jsonl"
        path.write_text(
            "".join(json.dumps({f"c{n}": 1 for n in numbers}) + "\n" for numbers in lines)
        )
        with pytest.raises(
            InputError, match=rf"in\.jsonl, line {line}: [0-9,]+ columns or more; 16,384 are read"
        ):
            open_table(path)

    @pytest.mark.slow
    def test_as_many_columns_as_a_spreadsheet_has_are_read(self, tmp_path):
        path = tmp_path / "in.jsonl"
        path.write_text((json.dumps({f"c{n}": 1 for n in range(MAX_COLUMNS)}) + "\n") * 2)
        assert whole(path, ["c0"]).shape == (2, MAX_COLUMNS)

    def test_a_line_that_is_too_long_is_not_read_to_its_end(self, tmp_path):
        path = tmp_path / "in.jsonl"
        path.write_text('{"note": "short"}\n{"note": "' + "x" * LONGEST_LINE + "\n")
        with pytest.raises(
            InputError, match=r"in\.jsonl, line 2 is longer than 8,388,608 bytes"
        ) as refused:
            open_table(path)
        assert "leave out what is not needed" in str(refused.value)

    @pytest.mark.slow
    def test_long_notes_are_read(self, tmp_path):
        path = tmp_path / "in.jsonl"
        path.write_text((json.dumps({"email": "ada@x.org", "note": "x" * (7 << 20)}) + "\n") * 3)
        with open_table(path) as table:
            assert [len(piece) for piece in table.pieces()] == [2, 1], (
                "a piece is bounded by its octets, too"
            )

    def test_objects_with_far_fewer_members_than_there_are_columns_are_refused(self, tmp_path):
        path = tmp_path / "in.jsonl"
        path.write_text(
            json.dumps({f"c{n}": 1 for n in range(MAX_COLUMNS)}) + "\n" + "{}\n" * 2_000
        )
        with pytest.raises(InputError, match="so that 32,768,000 empty cells would be added"):
            open_table(path)

    @pytest.mark.slow
    def test_a_piece_has_fewer_rows_if_there_are_many_columns(self, tmp_path):
        path = tmp_path / "in.jsonl"
        path.write_text(json.dumps({f"c{n}": 1 for n in range(MAX_COLUMNS)}) + "\n" + "{}\n" * 900)
        with open_table(path) as table:
            sizes = [len(piece) for piece in table.pieces(["c0"])]
        assert sum(sizes) == 901
        assert max(sizes) * MAX_COLUMNS <= json_lines.PIECE_SIZE


def test_columns_that_are_not_needed_are_null(path):
    found = whole(path, ["email"])
    assert found["email"].to_pylist() == ["ada@x.example", None, "jürgen@x.example"]
    assert pa.types.is_null(found["n"].type)


def test_what_is_written_is_what_was_read(path, tmp_path):
    out = tmp_path / "out.ndjson"
    with create_table(out) as writer:
        writer.write(whole(path))
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    names = list(found[0])
    # Absent and null are the same, and values of a column with several types are text.
    expected = [{name: line.get(name) for name in names} for line in LINES]
    expected[0] |= {"mixed": "5", "long": str(2**70)}
    expected[1] |= {"long": "1"}
    assert found == expected


def test_values_that_json_does_not_have_are_written_as_text_or_null(tmp_path):
    table = pa.table({
        "x": [float("nan"), float("inf"), 1.5],
        "at": pa.array([0, None, 1], pa.timestamp("s", "UTC")),
        "kind": pa.array(["a", None, "b"]).dictionary_encode(),
    })  # fmt: skip
    with create_table(tmp_path / "out.jsonl") as writer:
        writer.write(table)
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [
        {"x": None, "at": "1970-01-01T00:00:00+00:00", "kind": "a"},
        {"x": None, "at": None, "kind": None},
        {"x": 1.5, "at": "1970-01-01T00:00:01+00:00", "kind": "b"},
    ]


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_a_file_without_a_line_is_a_table_without_rows_that_has_any_column(tmp_path, content):
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    with open_table(path) as table:
        assert table.columns == ()
        table.check_column("email")
        assert table.columns == ("email",)
        assert [(len(piece), piece.column_names) for piece in table.pieces()] == [(0, ["email"])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1}\n{"a": ', "line 2: not valid JSON"),
        (b'17\n{"a": 1}\n', "line 1: not a JSON object, but 17"),
        (b'{"a": 1}\n1\n2\n', "line 2: not a JSON object, but 1; most lines are not objects"),
        (b'{"a": "\xff"}\n', "line 1: a byte is not UTF-8"),
        (b'{"a": 1}\n' + b"[" * 100_000, "line 2: not valid JSON"),
        (b'{\n  "a": 1\n}\n{\n  "a": 2\n}\n', r"line 1: not valid JSON.*jq -c \."),
        (b"{}\n{}\n", "no columns"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path, content, message):
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"in.jsonl.*{message}"):
        open_table(path)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"email": oops}', "not valid JSON: Expecting value"),
        (b'{"email": "b@x.example"', "not valid JSON"),
        (b"null", "not a JSON object, but null"),
        (b'["b@x.example"]', r'not a JSON object, but \["b@x.example"\]'),
        (b'{"email": "\xff"}', "a byte is not UTF-8"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_a_line_that_is_not_an_object_costs_itself_only(tmp_path, line, problem):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    first, last = b'{"email": "a@x.example"}\n', b'{"email": "c@x.example", "n": 1}\n'
    path.write_bytes(first + line + b"\n" + last)
    with open_table(path) as table:
        [remark] = table.remarks
        pieces = pa.concat_tables(table.pieces())
    assert re.match(f"1 line without a JSON object, .* cells: line 2: {problem}", remark)
    assert pieces["email"].to_pylist() == ["a@x.example", None, "c@x.example"]
    written = copied(path, out, ["valid", None, "x"]).splitlines()
    assert written[1] == b'{"email_verdict": null}'
    assert written[2] == last[:-2] + b', "email_verdict": "x"}'


def test_half_of_a_character_costs_itself_only(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(
        rb'{"email": "a@x.example", "note\udc00": ["cut \ud83d"]}'
        + b"\n"
        + rb'{"note": "\ud83d\ude00"}'
    )
    with open_table(path) as table:
        assert table.columns == ("email", "note\ufffd", "note")
        assert table.remarks == [
            "in 1 line half of a character is left of one that was cut, which is read as \ufffd"
        ]
        [piece] = table.pieces()
    assert piece["note\ufffd"].to_pylist() == ['["cut \ufffd"]', None]
    assert piece["note"].to_pylist() == [None, "\U0001f600"]


def test_lines_are_read_from_a_file_that_ends_in_json(path):
    renamed = path.rename(path.with_suffix(".json"))
    assert whole(renamed)["email"].to_pylist() == ["ada@x.example", None, "jürgen@x.example"]


def test_a_byte_order_mark_is_not_part_of_the_first_line(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"email": "a@x.example"}\r\n')
    assert whole(path).to_pydict() == {"email": ["a@x.example"]}


def test_what_is_not_a_number_of_json_is_missing(tmp_path):
    path, out = tmp_path / "a.jsonl", tmp_path / "out.jsonl"
    path.write_text(
        '{"email": "a@x.org", "n": 1e400, "i": -Infinity, "m": NaN}\n'
        '{"email": "b@x.org", "n": 2.5, "i": 1, "m": 3.5}\n'
    )
    with open_table(path) as source, create_table(str(out)) as writer:
        for piece in source.pieces():
            writer.write(piece)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["n"] for row in rows] == [None, 2.5]
    assert [row["i"] for row in rows] == [None, 1]
    assert [row["m"] for row in rows] == [None, 3.5]


def test_long_integers_beside_fractions_are_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 9007199254740993}\n{"n": 0.5}\n')
    assert whole(path)["n"].to_pylist() == [float(2**53), 0.5]


def test_a_name_that_occurs_twice_is_named_where_json_cannot_have_it(tmp_path):
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["name", "name"])
    with (
        pytest.raises(InputError, match="2 columns are named 'name'"),
        create_table(str(tmp_path / "o.jsonl")) as writer,
    ):
        writer.write(table)


# Lines as they may be written, and what follows them; a column of ours is added to each.
ODD_LINES = [
    b'{"email":"ada@x.org","n":1.0,"tags":["a",{"b":null}]}\n',
    b'\t{ "n" : 1e400 , "email" : "b\\u006fb@x.org" , "n" : 2 } \r\n',
    b'{"email": "J\\u00fcrgen <j@x.org>", "na\\u006de": "{", "late": true}\n',
    b"{}\n",
    b'{"note": "\xc3\xa4 }", "email": null}',
]


def copied(path, out, values, put=None):
    """Write a file again as the command line does, with a column of ours."""
    with open_table(path) as source, create_table(out, columns=source.columns) as writer:
        for piece in source.pieces(["email", "email_verdict"], with_lines=True):
            writer.write(
                put(piece) if put else piece.append_column("email_verdict", pa.array(values))
            )
    return out.read_bytes()


def test_lines_are_copied_octet_for_octet_and_ours_are_added(tmp_path):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(b"".join(ODD_LINES))
    values = ["valid", None, 'a "b"', "x", "y"]
    written = copied(path, out, values)
    ends = [line.rindex(b"}") for line in ODD_LINES]
    added = [
        b", " * (line != b"{}\n") + b'"email_verdict": ' + json.dumps(v).encode()
        for line, v in zip(ODD_LINES, values, strict=True)
    ]
    assert written == b"".join(
        line[:end] + ours + line[end:]
        for line, ours, end in zip(ODD_LINES, added, ends, strict=True)
    )
    assert [json.loads(line)["email_verdict"] for line in written.splitlines()] == values


def test_members_of_an_earlier_run_are_replaced_where_they_are(tmp_path):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(
        b'{"email_verdict" : "inv\\"alid", "x":{"email_verdict":1}, "email":"a@x.org" }\n'
        b'{"email":"b@x.org"}\n{"email":"c@x.org","email\\u005fverdict":null,"n":1.0}'
    )
    values = pa.array(["valid", "risky", "x"])
    written = copied(
        path,
        out,
        None,
        lambda piece: piece.set_column(
            piece.column_names.index("email_verdict"), "email_verdict", values
        ),
    )
    assert written == (
        b'{"email_verdict" : "valid", "x":{"email_verdict":1}, "email":"a@x.org" }\n'
        b'{"email":"b@x.org", "email_verdict": "risky"}\n'
        b'{"email":"c@x.org","email\\u005fverdict":"x","n":1.0}'
    )
