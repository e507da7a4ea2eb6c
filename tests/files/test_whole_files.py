"""Files that are read whole: arrays of JSON objects, vCards, and workbooks of old Excel."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from mailverdict.errors import InputError
from mailverdict.files.readers import open_table
from mailverdict.files.writers import check_target


def rows(path, **options):
    with open_table(path, **options) as opened:
        return [row for piece in opened.read() for row in piece.to_pylist()], opened.remarks


def write(path: Path, octets: bytes | str) -> Path:
    path.write_bytes(octets.encode() if isinstance(octets, str) else octets)
    return path


class TestArrays:
    def test_each_object_is_a_row(self, tmp_path):
        text = '\ufeff[{"id": 1, "email": "ada@firm.example"},\n {"email": "bo@firm.example", "tags": ["x"]}]'
        found, remarks = rows(write(tmp_path / "a.json", text))
        assert [row["email"] for row in found] == ["ada@firm.example", "bo@firm.example"]
        assert found[1] == {"id": None, "email": "bo@firm.example", "tags": '["x"]'}
        assert remarks == ["an array of objects: what is written as JSON has a line for each"]

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            (
                '["ada@firm.example"]',
                "has items that are not objects; give addresses alone as text",
            ),
            ('[{"email": "ada@firm.example"}', "not valid JSON"),
            ("[" * 100_000, "not valid JSON"),
        ],
    )
    def test_what_is_not_a_table_is_an_error(self, tmp_path, text, says):
        with pytest.raises(InputError, match=says):
            rows(write(tmp_path / "a.json", text))


class TestOldWorkbooks:
    def test_a_sheet_is_read_as_that_of_any_workbook(self):
        found, _ = rows(Path(__file__).with_name("people.xls"))  # written by xlwt 1.3.0
        assert found == [
            {"id": 1, "Email": "ada@firm.example"},
            {"id": 2, "Email": "Bo <bo@firm.example>"},
            {"id": 3, "Email": None},
        ]

    def test_one_without_a_name_is_known_by_its_octets(self, monkeypatch):
        octets = Path(__file__).with_name("people.xls").read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(octets)))
        found, _ = rows("-")
        assert [row["id"] for row in found] == [1, 2, 3]

    def test_octets_that_are_not_a_workbook_are_an_error(self, tmp_path):
        with pytest.raises(InputError, match="cannot be read as a workbook"):
            rows(write(tmp_path / "a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 2_000))

    @pytest.mark.parametrize(
        ("octets", "next_step"),
        [
            (
                b"<html><body><table><tr><td>email",
                "it is a web page; open it in a spreadsheet program",
            ),
            (
                b"email\tname\nada@firm.example\tAda\n",
                "it is text; if it is a table, rename it to .csv",
            ),
        ],
    )
    @pytest.mark.parametrize("ending", [".xls", ".xlsx"])
    def test_a_page_or_text_with_the_ending_of_a_workbook_has_a_next_step(
        self, tmp_path, ending, octets, next_step
    ):
        with pytest.raises(InputError, match=next_step):
            rows(write(tmp_path / f"a{ending}", octets))


@pytest.mark.parametrize(
    ("ending", "other"),
    [(".xls", ".xlsx"), (".ods", ".xlsx"), (".XLSB", ".xlsx"), (".vcf", ".csv")],
)
def test_what_is_only_read_is_not_a_kind_to_write(tmp_path, ending, other):
    with pytest.raises(
        InputError, match=rf"read and not written: name another file, .*out\{other}$"
    ):
        check_target(tmp_path / f"out{ending}")
