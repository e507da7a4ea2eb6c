"""The table of importers: which column names a person, and where that was read."""

import pytest

from mailverdict.errors import SettingsError
from mailverdict.table.column_names import read_table
from mailverdict.table.importers import find_importer, importers


@pytest.mark.parametrize("name", importers())
def test_every_importer_says_where_and_when_it_was_read(name):
    (row,) = (row for row in read_table("importers.toml")["importer"] if row["name"] == name)
    assert len(row["source"]) > 30
    assert row["seen"].year >= 2026
    assert row["address"]
    assert row["remove_address"]
    assert row["remove"]


def test_the_identifier_is_found_whatever_its_case_and_punctuation():
    brevo = find_importer("Brevo")
    assert brevo.find_identifier(["EMAIL", "EXT_ID", "CONTACT ID"], "EMAIL") == "CONTACT ID"
    assert brevo.find_identifier(["EMAIL", "ext-id"], "EMAIL") == "ext-id"
    assert brevo.find_identifier(["EMAIL", "COMPANY ID"], "EMAIL") is None


def test_an_unknown_service_is_an_error_with_the_nearest_name():
    with pytest.raises(SettingsError, match="did you mean 'salesforce'"):
        find_importer("sales force")
