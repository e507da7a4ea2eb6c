"""Addresses that wrap another one."""

from __future__ import annotations

from mailverdict.checks.syntax.address import is_well_formed
from mailverdict.repair.guess import guess_plain
from mailverdict.repair.wrapped import unwrap_address
from tests.doubles.tables import each_row


@each_row(
    ("address", "inner"),
    [
        ("SRS0=HHH=TT=firm.com=ada@forwarder.net", "ada@firm.com"),
        ("srs0+yf09=Cw=firm.com=a=b@forwarder.net", "a=b@firm.com"),
        ("SRS0-4Abc=2X=sub.firm.co.uk=ada.l+x@forwarder.net", "ada.l+x@sub.firm.co.uk"),
        ("SRS1=xxxx=first.net==HHH=TT=firm.com=ada@second.net", "ada@firm.com"),
        ("SRS0=HHH=TT=firm.com=SRS0=HHH=TT=home.org=ada@forwarder.net", "ada@home.org"),
        ("ada_firm.com#EXT#@tenant.onmicrosoft.com", "ada@firm.com"),
        ("a_b_l_firm.co.uk#ext#@tenant.onmicrosoft.com", "a_b_l@firm.co.uk"),
        ("prvs=0123456789=ada@firm.com", "ada@firm.com"),
        ("prvs=14717f1a5e=ada@firm.com", "ada@firm.com"),
        ("prvs=ada=0123abcdef@firm.com", "ada@firm.com"),
        ("btv1==0123456789a==ada@firm.com", "ada@firm.com"),
        ("SRS0=HHH=TT=firm.com=prvs=0123456789=ada@forwarder.net", "ada@firm.com"),
        ("IMCEASMTP-ada+40firm+2Ecom@exchange.net", "ada@firm.com"),
        ("IMCEAINVALID-ada+2Bx+40firm+2Ecom@exchange.net", "ada+x@firm.com"),
        ("IMCEAEX-_O=FIRM_OU=FIRST_cn=Recipients_cn=ada+40firm+2Ecom@firm.net", "ada@firm.com"),
        ("staff-bounces+ada=firm.com@lists.net", "ada@firm.com"),
        ("staff-return-17-ada=firm.com@lists.net", "ada@firm.com"),
        ("bounces+1234567-89ab-ada=firm.com@em12.shop.com", "ada@firm.com"),
        ("bounce+0123ab.c0ffee-ada=firm.com@mg.shop.com", "ada@firm.com"),
        ("xn--info@wr-projekt-dtb.de", "info@öwr-projekt.de"),
    ],
)
def test_the_address_inside_is_found(address, inner):
    assert is_well_formed(address)
    assert unwrap_address(address) == guess_plain(address) == inner


@each_row(
    "address",
    [
        "ada@firm.com",
        "SRS0@firm.com",
        "SRS0=HHH=TT=firm=ada@forwarder.net",  # the address inside is not one
        "SRS0=HHH=TT=firm.com@forwarder.net",
        "SRS0=HHH=1=firm.com=ada@forwarder.net",  # no time stamp
        "ada_firm#EXT#@tenant.onmicrosoft.com",
        "ada#EXT#@tenant.onmicrosoft.com",
        "prvs=ada@firm.com",
        "x=y@firm.com",
        "IMCEAEX-_O=FIRM_OU=FIRST_cn=Recipients_cn=ada@firm.net",  # names a mailbox of Exchange
        "IMCEASMTP-ada@exchange.net",
        "staff-bounces@lists.net",
        "staff+ada=firm.com@lists.net",
        "staff+bncBABC@googlegroups.com",
        "xn--ada@firm.com",
        "xn--bcher-kva@firm.de",
        "ada@xn--bcher-kva.de",
    ],
)
def test_nothing_is_found_in_another_address(address):
    assert unwrap_address(address) is None
