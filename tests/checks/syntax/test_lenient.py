"""The two forms that are accepted only where cells are repaired."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.syntax.address import is_well_formed, observe_syntax
from mailverdict.checks.syntax.lenient import accept_leniently
from tests.doubles.tables import each_row


@each_row(
    ("text", "canonical", "ascii_domain"),
    [
        ('"hoge."@Docomo.NE.jp', '"hoge."@docomo.ne.jp', "docomo.ne.jp"),
        ('".hoge"@ezweb.ne.jp', '".hoge"@ezweb.ne.jp', "ezweb.ne.jp"),
        ('"A..b"@mail.ru', '"A..b"@mail.ru', "mail.ru"),
        ('"a..b"@Bücher.de', '"a..b"@bücher.de', "xn--bcher-kva.de"),
        ("ada@My_Host.firm.com", "ada@my_host.firm.com", "my_host.firm.com"),
        ("ada@_mail.firm.co.uk", "ada@_mail.firm.co.uk", "_mail.firm.co.uk"),
        ("ada@a_.b_c.firm.com", "ada@a_.b_c.firm.com", "a_.b_c.firm.com"),
        ('"a..b"@my_host.firm.com', '"a..b"@my_host.firm.com', "my_host.firm.com"),
    ],
)
def test_both_forms_are_accepted(text, canonical, ascii_domain):
    found = accept_leniently(text)
    assert (found.text, found.ascii_domain) == (canonical, ascii_domain)
    assert found.local == text.rpartition("@")[0]
    assert not observe_syntax(text).ok


@each_row(
    "text",
    [
        "ada@firm.com",  # accepted as it is
        '"ada"@firm.com',  # quotes that say nothing
        '"a.b"@firm.com',
        '"."@firm.com',
        '"a b.."@firm.com',
        '"a@b.."@firm.com',
        '"a\\\\.."@firm.com',
        '"a"."@firm.com',
        '"é.."@firm.com',
        "a..b@firm.com",
        '"a..b@firm.com',
        '"a..b"@firm',
        '"a..b"@[192.0.2.7]',
        '"a..b"@firm.local',
        "ada@my_firm.com",
        "ada@host.my_firm.com",
        "ada@my_firm.co.uk",
        "ada@_.firm.com",
        "ada@__.firm.com",
        "ada@_-_.firm.com",
        "ada@-_a.firm.com",
        "ada@xn--a_b.firm.com",
        "ada@é_a.firm.com",
        "ada@my_host.com_",
        "ada@my_host",
        "a..b@my_host.firm.com",
        f'"{"a." * 150}"@firm.com',
    ],
)
def test_nothing_else_is_accepted(text):
    assert accept_leniently(text) is None


@given(st.text('ab."@_-x n', max_size=20).map(lambda text: f"{text}.firm.com"))
def test_what_is_accepted_is_an_address_but_for_dots_or_underscores(text):
    found = accept_leniently(text)
    if found is not None:
        local = "a" if found.local.startswith('"') else found.local
        assert is_well_formed(f"{local}@{found.ascii_domain.replace('_', 'x')}")
