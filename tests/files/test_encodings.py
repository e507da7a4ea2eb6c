"""The encoding of a text file, apart from the rows that are read with it."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.errors import InputError
from mailverdict.files import encodings
from mailverdict.files.readers import open_table


@given(
    text=st.text(st.sampled_from("aé€😀")), damage=st.binary(max_size=2), block=st.integers(1, 9)
)
def test_utf8_is_recognized_across_blocks(tmp_path_factory, text, damage, block):
    path = tmp_path_factory.mktemp("scan") / "x.csv"
    data = text.encode() + damage + text.encode()
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encodings, "BLOCK", block)
        assert encodings.scan_bytes(path).is_utf8 == encodings.decodes(data, "utf-8")


# Headings, names and places of lists, and the encodings in which programs write them.
WESTERN = ("cp1252", "mac_roman")
CENTRAL = ("cp1250", "iso8859_2")
LISTS = {
    "Finnish": ("Etunimi;Sähköposti", "Päivi Hämäläinen;Väinö Järvinen;Jyväskylä", WESTERN),
    "Swedish": ("Förnamn;E-post", "Åsa Sjöberg;Örjan Åkesson;Göteborg", WESTERN),
    "Danish": ("Fornavn;E-mail", "Søren Kjær;Åse Jørgensen;Næstved", WESTERN),
    "German": ("Straße;E-Mail", "Jürgen Groß;Käthe Schröder;Düsseldorf;Köln–Bonn", WESTERN),
    "French": ("Prénom;Courriel", "Benoît Lefèvre;François Crête;rue de l’Église", WESTERN),
    "Spanish": ("Dirección;Correo", "María Núñez;Íñigo Ibáñez;Málaga", WESTERN),
    "Portuguese": ("Endereço;E-mail", "João Simões;Conceição Leitão;Avaré;mão", WESTERN),
    "Italian": ("Città;Email", "Niccolò Cantù;Salomè;Forlì;Università", WESTERN),
    "Dutch": ("Plaats;Email", "Zoë Coördinatie;België;Renée", WESTERN),
    "Icelandic": ("Staður;Netfang", "Þór Guðmundsson;Sigríður;Hafnarfjörður", ("cp1252",)),
    "Estonian": ("Tänav;E-post", "Tõnu Jõgi;Ülle Põld;Pärnu", ("cp1252", "cp1257")),
    "several of the West": ("Name;Email", "Müller;Muñoz;Søren;François;João;Åsa;Zoë", WESTERN),
    "English": ("Name;Email", "Zoë O’Neill;Chloé D’Arcy;“The Cottage”;Queen’s Gate", WESTERN),
    "one letter": ("Name;Email", "Siân Smith;Peter Jones", ("cp1252",)),
    "signs alone": ("Name;Price;Email", "Peter;5 €;x;20–30", ("cp1252",)),
    "Polish": ("Imię;E-mail", "Łukasz Wójcik;Grażyna Zieliński;Łódź", CENTRAL),
    "Czech": ("Jméno;E-mail", "Jiří Dvořák;Šárka Šťastný;Plzeň;Ústí", CENTRAL),
    "Slovak": ("Priezvisko;E-mail", "Ľubomír Baláž;Žofia Kováč;Košice", CENTRAL),
    "Hungarian": ("E-mail cím", "Győző Szűcs;László Erdős;Ágnes Kőszegi;Győr", CENTRAL),
    "Romanian": ("Stradă;E-mail", "Ştefan Ioniţă;Mădălina Bălan;Braşov", CENTRAL),
    "Serbian": ("Ime;E-mail", "Đorđe Živković;Saša Kovačević;Niš", CENTRAL),
    "Slovene": ("Ime;E-pošta", "Žiga Kovač;Špela Zupančič;Škofja Loka", CENTRAL),
    "Turkish": ("Şehir;E-posta", "Ayşe Yılmaz;Gülşen Öztürk;Eskişehir", ("cp1254",)),
    "Lithuanian": ("Gatvė;El. paštas", "Jūratė Žukauskas;Šarūnas;Panevėžys", ("cp1257",)),
    "Latvian": ("Pilsēta;E-pasts", "Jānis Bērziņš;Līga Kalniņš;Rēzekne", ("cp1257",)),
    "Russian": ("Имя;Почта", "Мария Иванова;Сергей Петров;Казань", ("cp1251", "koi8_r")),
    "Greek": ("Όνομα;Email", "Γιώργος Παπαδόπουλος;Ελένη;Αθήνα", ("cp1253",)),
    "Japanese": ("姓名;メール", "山田太郎;佐藤花子;東京都;さくら", ("cp932", "euc_jp")),
    "Chinese": ("姓名;邮箱", "王秀英;李静;北京市;解放大道", ("gb18030",)),
    "Chinese in Taiwan": ("姓名;電子郵件", "陳志明;林春嬌;臺北市", ("big5",)),
    "Korean": ("성명;이메일", "김민준;박서연;서울", ("cp949",)),
}
CASES = [(name, encoding) for name, (_, _, known) in LISTS.items() for encoding in known]


def write_list(path, name, encoding):
    head, cells, _ = LISTS[name]
    lines = [head, *(f"{cell};ada@firm.example" for cell in cells.split(";"))]
    text = "\r\n".join([*lines, ""])
    path.write_bytes(text.encode(encoding))
    return text


@pytest.mark.parametrize(("name", "encoding"), CASES)
def test_a_list_is_read_with_its_own_letters(tmp_path, name, encoding):
    path = tmp_path / "a.csv"
    text = write_list(path, name, encoding)
    with open_table(path) as source:
        read = path.read_bytes().decode(str(source.format.encoding))
        assert read == text
        assert source.remarks[0].startswith(f"encoding: {source.format.encoding}, guessed")
        assert "; give another with --encoding" in source.remarks[0]


def test_the_remark_names_a_word_and_what_else_it_could_be(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("Name;Email\r\nSiân Smith;ada@firm.example\r\n".encode("cp1252"))
    with open_table(path) as source:
        assert source.remarks == [
            "encoding: cp1252, guessed by its letters, as in 'Siân', since the file is not UTF-8;"
            " it could also be "
            "cp1257 ('Siān'); give another with --encoding"
        ]


@pytest.mark.parametrize("count", [1, 5, 10])
def test_words_in_utf_8_say_nothing_about_the_others(count):
    names = [
        "Müller",
        "Jürgen",
        "Köhler",
        "Schäfer",
        "Groß",
        "Käthe",
        "Björn",
        "Böhm",
        "Jäger",
        "Weiß",
    ]
    lines = [name.encode("cp1252") for name in names] + [name.encode() for name in names[:count]]
    assert encodings.guess_encoding(b"\n".join(lines), ";").name == "cp1252"


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF32_LE])
def test_utf_32_is_refused_with_a_way_out(tmp_path, mark):
    path = tmp_path / "a.csv"
    path.write_bytes(mark + "name,email\nJörg,a@b.org\n".encode("utf-32-le"))
    with pytest.raises(InputError, match="is UTF-32, which is not read: save it as UTF-8"):
        open_table(path)


@pytest.mark.parametrize("piece", [b"a", b"\xe9", b"a\xe9", b"\x92a", b"\xe9 ", b"a\x92"])
def test_long_runs_of_letters_take_no_longer_than_others(piece):
    """A word without an end once took time by the square of its length: the time limit shows it."""
    sample = piece * (100_000 // len(piece)) + b" \xe9"
    assert encodings.guess_encoding(sample, ",").name
