"""Files that are read whole: JSON of one value, and workbooks of old Excel."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from mailverdict.errors import InputError
from mailverdict.files.table_file import LONGEST_LINE, MAX_COLUMNS
from mailverdict.files.whole_files import MOST_OCTETS, members_at_start
from mailverdict.files.writers import check_target
from tests.doubles.tables import file_rows, write_file


class TestArrays:
    def test_each_object_is_a_row(self, tmp_path):
        text = (
            '\ufeff[{"id": 1, "email": "ada@firm.example"},\n'
            ' {"email": "bo@firm.example", "tags": ["x"]}]'
        )
        found, remarks = file_rows(write_file(tmp_path / "a.json", text))
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
            file_rows(write_file(tmp_path / "a.json", text))


PEOPLE = [{"email": "ada@firm.example"}, {"email": "bo@firm.example"}]
THINGS = [{"id": 1}, {"id": 2}]


def emails(path, column="email"):
    return [row[column] for row in file_rows(path)[0]]


class TestObjects:
    """JSON of one object, as the answer of a service is saved."""

    @pytest.mark.parametrize("indent", [None, 2])
    @pytest.mark.parametrize(
        ("document", "where"),
        [
            ({"results": PEOPLE}, "results"),
            ({"contacts": PEOPLE, "paging": {"next": {"after": "x"}}, "tags": ["a"]}, "contacts"),
            ({"ok": True, "data": {"total": 2, "people": PEOPLE}}, "data.people"),
            ({"owner": "me@firm.example", "results": PEOPLE}, "results"),
        ],
    )
    def test_the_only_list_of_objects_is_the_table(self, tmp_path, document, where, indent):
        path = write_file(tmp_path / "a.json", json.dumps(document, indent=indent))
        found, remarks = file_rows(path)
        assert found == PEOPLE
        assert remarks == [
            f"the table is the list {where!r} of the object: what is written as JSON has a line "
            "for each item"
        ]

    def test_of_several_lists_it_is_the_one_with_addresses(self, tmp_path):
        path = write_file(tmp_path / "a.json", json.dumps({"things": THINGS, "people": PEOPLE}))
        found, remarks = file_rows(path)
        assert found == PEOPLE
        assert "the list 'people' of the object, and not 'things': " in remarks[0]

    @pytest.mark.parametrize(
        "document",
        [{"a": {"staff": PEOPLE}, "people": PEOPLE}, {"a": {"staff": THINGS}, "people": THINGS}],
    )
    def test_several_lists_that_could_be_the_table_are_an_error_with_their_names(
        self, tmp_path, document
    ):
        with pytest.raises(InputError) as caught:
            file_rows(write_file(tmp_path / "a.json", json.dumps(document)))
        assert str(caught.value).endswith(
            "a.json: its members are nested, and several are lists that could be the table: "
            "'people' (2 objects), "
            "'a.staff' (2 objects); give one of them alone, as with jq -c '.people[]'"
        )

    def test_nested_members_are_columns_with_a_dot(self, tmp_path):
        people = [
            {"id": 1, "properties": {"email": "ada@firm.example", "name": {"first": "Ada"}}},
            {"id": 2, "properties": {"email": None}, "tags": ["x"], "extra": {}},
        ]
        for value in ({"results": people}, people):
            found, _ = file_rows(write_file(tmp_path / "a.json", json.dumps(value)))
            assert found == [
                {
                    "id": 1,
                    "properties.email": "ada@firm.example",
                    "properties.name.first": "Ada",
                    "tags": None,
                },
                {"id": 2, "properties.email": None, "properties.name.first": None, "tags": '["x"]'},
            ]

    def test_addresses_in_a_list_of_objects_are_columns_with_a_number(self, tmp_path):
        contacts = [
            {"name": "Ada", "emails": [{"value": "ada@x.org"}, {"value": "ada@home.example"}]},
            {"name": "Bo", "emails": [], "orders": [{"id": 1}]},
        ]
        path = write_file(tmp_path / "a.json", json.dumps({"contacts": contacts}))
        assert emails(path, "emails.1.value") == ["ada@x.org", None]
        assert emails(path, "emails.2.value") == ["ada@home.example", None]
        assert emails(path, "orders") == [None, '[{"id": 1}]']

    @pytest.mark.parametrize("indent", [None, 2])
    def test_an_object_without_a_list_is_a_row_if_it_has_an_address(self, tmp_path, indent):
        person = {"id": 1, "contact": {"email": "ada@firm.example"}, "orders": THINGS}
        found, remarks = file_rows(
            write_file(tmp_path / "a.json", json.dumps(person, indent=indent))
        )
        assert [row["contact.email"] for row in found] == ["ada@firm.example"]
        assert remarks == ["one object: a table of one row"]

    def test_a_line_of_json_lines_is_a_row_whatever_is_in_it(self, tmp_path):
        path = write_file(tmp_path / "a.jsonl", json.dumps({"email": "c@x.org", "friends": PEOPLE}))
        assert emails(path) == ["c@x.org"]

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            (
                '{\n"id": 5\n}',
                "it is one object, without a list of objects and without an address; give",
            ),
            (
                '{"people": {"a": {"email": "a@x.org"}, "b": {"email": "b@x.org"}}}',
                "one object with 2 addresses nested in 'people', and without a list of objects; "
                "give a list",
            ),
            ('{"emails": ["a@x.org", "b@x.org"]}', "2 addresses nested in 'emails'"),
            ('{\n"results": [\n{"id": 1}\n', r"a\.json: not valid JSON: .* line 4"),
            ('{\n"id": 5\n}\n{\n"id": 6\n}', r"line 1: not valid JSON.*jq -c \."),
            (
                '{"a": [{"x.y": 1, "x": {"y": 2}}]}',
                r"nested member and another one are both named 'x\.y'",
            ),
            ('{"a": ' * 100_000, "not valid JSON"),
            ('{"a": [{"' + "x" * 2_000 + '": 1}]}', "is longer than 1,000 characters"),
        ],
    )
    def test_what_is_not_a_table_is_an_error_with_a_way_out(self, tmp_path, text, says):
        with pytest.raises(InputError, match=says):
            file_rows(write_file(tmp_path / "a.json", text))

    def test_an_object_with_too_many_members_is_refused_before_it_is_read_whole(self, tmp_path):
        members = ", ".join(f'"c{n}": [{n}]' for n in range(MAX_COLUMNS + 1))
        path = write_file(tmp_path / "a.json", f"{{{members}")
        with path.open("ab") as file:
            file.truncate(MOST_OCTETS + 1)
        with pytest.raises(InputError, match=r"16,385 columns or more; 16,384 are read at most"):
            file_rows(path)

    def test_members_are_counted_in_the_first_octets_of_an_object(self, tmp_path):
        members = ", ".join(f'"c{n}": {n}' for n in range(MAX_COLUMNS))
        path = write_file(
            tmp_path / "a.json", f'{{"results": [{{"email": "ada@x.org"}}], {members}'
        )
        assert members_at_start(path) == MAX_COLUMNS + 1
        path = write_file(tmp_path / "a.json", f'{{"note": "{"x" * LONGEST_LINE}", {members}')
        assert members_at_start(path) == 0

    def test_an_object_with_as_many_members_as_columns_is_read(self, tmp_path):
        document = {f"c{n}": n for n in range(MAX_COLUMNS - 1)} | {"people": PEOPLE}
        path = write_file(tmp_path / "a.json", json.dumps(document))
        assert len(file_rows(path)[0]) == len(PEOPLE)

    def test_members_below_many_others_are_a_cell(self, tmp_path):
        deep = {"email": "ada@firm.example"}
        for _ in range(200):
            deep = {"a": deep}
        path = write_file(
            tmp_path / "a.json", json.dumps({"results": [{"email": "x@y.org", "b": deep}]})
        )
        assert emails(path) == ["x@y.org"]


class TestOldWorkbooks:
    def test_a_sheet_is_read_as_that_of_any_workbook(self):
        found, _ = file_rows(Path(__file__).with_name("people.xls"))  # written by xlwt 1.3.0
        assert found == [
            {"id": 1, "Email": "ada@firm.example"},
            {"id": 2, "Email": "Bo <bo@firm.example>"},
            {"id": 3, "Email": None},
        ]

    def test_one_without_a_name_is_known_by_its_octets(self, monkeypatch):
        octets = Path(__file__).with_name("people.xls").read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(octets)))
        found, _ = file_rows("-")
        assert [row["id"] for row in found] == [1, 2, 3]

    def test_octets_that_are_not_a_workbook_are_an_error(self, tmp_path):
        with pytest.raises(InputError, match="cannot be read as a workbook"):
            file_rows(
                write_file(tmp_path / "a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 2_000)
            )

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
            file_rows(write_file(tmp_path / f"a{ending}", octets))


@pytest.mark.parametrize(
    ("ending", "other"),
    [(".xls", ".xlsx"), (".ods", ".xlsx"), (".XLSB", ".xlsx"), (".vcf", ".csv")],
)
def test_what_is_only_read_is_not_a_kind_to_write(tmp_path, ending, other):
    with pytest.raises(
        InputError, match=rf"read and not written: name another file, .*out\{other}$"
    ):
        check_target(tmp_path / f"out{ending}")


def test_items_that_are_not_objects_cost_themselves_only(tmp_path):
    octets = b'[{"email": "a@x.example"}, null, {"email": "b@x.example"}, 17]'
    rows, remarks = file_rows(write_file(tmp_path / "in.json", octets))
    assert remarks[-1] == "2 items of the array without an object, read as a row without cells"
    assert [row["email"] for row in rows] == ["a@x.example", None, "b@x.example", None]
