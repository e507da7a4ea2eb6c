"""Files of vCards: a row for each address, and nobody is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.errors import InputError
from mailverdict.files.contacts import read_contacts, split_line
from tests.doubles.tables import file_rows, write_file

CARDS = """BEGIN:VCARD
VERSION:2.1
FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=B6rg =
M=C3=BCller
EMAIL;INTERNET:joerg@firm.ex
 ample
item1.EMAIL;TYPE="work:main":j2@firm.example
END:VCARD
BEGIN:VCARD
VERSION:4.0
FN:Lovelace\\, Ada
TEL:555
END:VCARD
BEGIN:VCARD
EMAIL:last@firm.example
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_each_address_is_a_row_and_no_contact_is_lost(tmp_path, line_end):
    found, remarks = file_rows(write_file(tmp_path / "a.vcf", CARDS.replace("\n", line_end)))
    assert found == [
        {"name": "J\u00f6rg M\u00fcller", "email": "joerg@firm.example"},
        {"name": "J\u00f6rg M\u00fcller", "email": "j2@firm.example"},
        {"name": "Lovelace, Ada", "email": None},
        {"name": None, "email": "last@firm.example"},
    ]
    assert remarks == ["contacts: a row for each address, or for a contact without one"]


def test_letters_that_are_not_utf_8_are_those_of_western_windows(tmp_path):
    octets = "BEGIN:VCARD\nFN:J\u00f6rg\nEMAIL:j@firm.example\nEND:VCARD\n".encode("cp1252")
    assert file_rows(write_file(tmp_path / "a.vcf", octets))[0] == [
        {"name": "J\u00f6rg", "email": "j@firm.example"}
    ]


def test_a_file_without_a_contact_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"a\.vcf has no contact: no line is BEGIN:VCARD"):
        file_rows(write_file(tmp_path / "a.vcf", "name,email\nAda,ada@firm.example\n"))


def card(*lines):
    return "\r\n".join(["BEGIN:VCARD", "VERSION:3.0", *lines, "END:VCARD", ""])


ADA = card("FN:Ada", "EMAIL:ada@firm.example")
BO = card("FN:Bo", "EMAIL:bo@firm.example")
BOTH = [("Ada", "ada@firm.example"), ("Bo", "bo@firm.example")]


def read(text):
    return [
        (contact.name or None, address)
        for contact in read_contacts(text)
        for address in contact.addresses or [None]
    ]


@pytest.mark.parametrize(
    "text",
    [
        (ADA + BO).replace("END:VCARD\r\nBEGIN", "END:VCARDBEGIN"),
        (ADA + BO).replace("END:VCARD\r\nBEGIN", "END:VCARD BEGIN"),
        (ADA + BO).replace("\r\nEND:VCARD", "END:VCARD"),
        (ADA + BO).replace("\r\nEND:VCARD", ""),
        (ADA + BO).replace("BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Bo", "FN:Bo"),
        (ADA + BO).replace("\r\n", "\r"),
        (ADA + BO).replace("\r\n", "\n\n"),
        (ADA + BO).lower().replace("ada\r", "Ada\r").replace("bo\r", "Bo\r"),
        ADA + "\ufeff" + BO,
        (ADA + BO).replace("EMAIL:bo", "E-Mail 2:bo"),
        (ADA + BO).replace("EMAIL:bo", "item2.EMAIL;TYPE=INTERNET;TYPE=HOME:bo"),
        (ADA + BO).replace("EMAIL:bo", "EMAIL;INTERNET:bo"),
        (ADA + BO).replace("EMAIL:bo", 'EMAIL;X-L="a:b;c":bo'),
        (ADA + BO).replace("EMAIL:bo", 'EMAIL;X-L="not closed:bo'),
        (ADA + BO).replace("EMAIL:bo@firm", "EMAIL:b\r\n o@fi\r\n\trm"),
        (ADA + BO).replace("EMAIL:bo@", "EMAIL;QUOTED-PRINTABLE:bo=\r\n=40"),
        (ADA + BO).replace("END:", "NOTE;ENCODING=QUOTED-PRINTABLE:x=\r\nEND:"),
        (ADA + BO).replace("EMAIL", "NOTE:see x@y.example\r\nEMAIL"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_every_contact_has_its_name_and_address(tmp_path, text, encoding):
    found, _ = file_rows(write_file(tmp_path / "a.vcf", text.encode(encoding)))
    assert [(row["name"], row["email"]) for row in found] == BOTH


def test_the_contact_of_an_assistant_is_one_of_its_own_and_takes_nothing_from_the_other():
    inner = card("FN:Bo", "EMAIL:bo@firm.example")
    for agent in ("AGENT:\r\n" + inner, "AGENT:" + inner):
        text = card("FN:Ada", agent.rstrip(), "EMAIL:ada@firm.example")
        assert sorted(read(text)) == BOTH


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:J=C3=B6rg", "J\u00f6rg"),
        ("FN;ENCODING=QUOTED-PRINTABLE:J=C3=B6rg", "J\u00f6rg"),
        ("FN;ENCODING=QUOTED-PRINTABLE:J=F6rg", "J\u00f6rg"),
        ("FN;CHARSET=ISO-8859-2;ENCODING=QUOTED-PRINTABLE:=A3ukasz", "\u0141ukasz"),
        ("FN;CHARSET=punycode;ENCODING=QUOTED-PRINTABLE:Ada", "Ada"),
    ],
)
def test_a_quoted_name_is_decoded(line, name):
    assert read(card(line)) == [(name, None)]


def test_a_contact_whose_address_is_elsewhere_is_counted(tmp_path):
    text = ADA + card("FN:Bo", "IMPP:xmpp:bo@firm.example")
    found, remarks = file_rows(write_file(tmp_path / "a.vcf", text))
    assert [row["email"] for row in found] == ["ada@firm.example", None]
    assert remarks[1:] == [
        "1 contact without an address in EMAIL, but with one in 'IMPP', which is not read"
    ]


def test_contacts_of_which_none_has_its_address_in_a_known_place_are_an_error(tmp_path):
    text = card("FN:Ada", "X-WORK:ada@firm.example") + card("FN:Bo", "X-WORK:bo@firm.example")
    with pytest.raises(InputError) as caught:
        file_rows(write_file(tmp_path / "a.vcf", text))
    assert str(caught.value).endswith(
        "a.vcf: of 2 contacts none has the property EMAIL, but the text has 2 addresses in "
        "'X-WORK': name that "
        "property EMAIL, or export the contacts as CSV"
    )


def test_a_contact_within_the_text_of_another_is_counted(tmp_path):
    note = card("FN:Bo").strip().replace("\r\n", "\\n")
    _, remarks = file_rows(
        write_file(tmp_path / "a.vcf", card("EMAIL:ada@x.org", f"NOTE:was {note}"))
    )
    assert remarks[1:] == [
        "1 of 2 BEGIN:VCARD are within the text of another contact, and are not read"
    ]


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le"])
def test_utf_32_is_refused_with_a_way_out(tmp_path, encoding):
    with pytest.raises(InputError, match="is UTF-32, which is not read: save it as UTF-8"):
        file_rows(write_file(tmp_path / "a.vcf", ADA.encode(encoding)))


@pytest.mark.parametrize(
    "piece", ['"', ";", ":", '";', '";:', ";x", '"x:', "=", ".", "@", "a@", "\\", "\n ", "=\n"]
)
@pytest.mark.parametrize(
    "start", ["", "NOTE;", 'NOTE;x="', "NOTE;QUOTED-PRINTABLE:", "EMAIL:", "BEGIN:VCARD\nE"]
)
def test_hostile_lines_take_no_longer_than_others(start, piece):
    """They took minutes from 150 characters on: the time limit of a test is what shows it."""
    read(card(start + piece * (100_000 // len(piece))))


@given(st.text(st.sampled_from('EMAIL;:".=@ \n\tab\\1')))
def test_a_line_is_split_without_loss(text):
    _name, parameters, value = split_line(text)
    assert text.endswith(value)
    assert parameters in text
    list(read_contacts(text))
