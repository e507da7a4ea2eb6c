"""The table of operators: who is in it, how a host finds its row, and that no row takes the hosts of another."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from mailverdict.checks.lists.flags import normal_domain
from mailverdict.checks.operators import (
    KINDS,
    Operator,
    find_operator,
    load_behaviour,
    load_operators,
    load_providers,
    name_operators,
    parse_operators,
)
from mailverdict.errors import SettingsError
from tests.doubles.tables import each_row

HINTS = {"refuses_unknown", "accepts_all", "depends", "defers", "blocks", "slow"}
HOSTS = [
    ("mta5.am0.yahoodns.net", "am0.yahoodns.net", "yahoo", "Yahoo"),
    (
        "mx-biz.mail.am0.yahoodns.net",
        "mx-biz.mail.am0.yahoodns.net",
        "yahoo-smallbiz",
        "the longest suffix",
    ),
    ("yahoodns.net", "yahoodns.net", "yahoo", "the suffix itself"),
    ("eur.olc.protection.outlook.com", "olc.protection.outlook.com", "outlook", "Outlook.com"),
    (
        "contoso-com.mail.protection.outlook.com",
        "mail.protection.outlook.com",
        "microsoft365",
        "a tenant",
    ),
    ("alt1.gmail-smtp-in.l.google.com", "gmail-smtp-in.l.google.com", "gmail", "Gmail"),
    ("alt2.aspmx.l.google.com", "aspmx.l.google.com", "google", "Google Workspace"),
    (
        "firm-com.mail.protection.outlook.com.firm.example",
        None,
        None,
        "a forgotten final dot is not Microsoft",
    ),
    ("163mx01.mxmail.netease.com", "mxmail.netease.com", "netease", "163.com and business"),
    (
        "firm-us.mail.protection.office365.us",
        "mail.protection.office365.us",
        "microsoft365-gov",
        "a tenant",
    ),
    ("mx2.aruba.it", "aruba.it", "aruba", "a host of Aruba"),
    ("mx.pec.aruba.it", "mx.pec.aruba.it", "aruba-pec", "registered mail"),
    ("mx00.perfora.net", "perfora.net", "ionos", "an old name of IONOS"),
    ("mx0.ovh.net", "mx0.ovh.net", "ovh", "OVH"),
    ("vps1.ovh.net", None, None, "a customer's own machine"),
    ("mta-gw.infomaniak.com", "infomaniak.com", "infomaniak", "Infomaniak"),
    ("eir-07.mx.a.cloudfilter.net", "cloudfilter.net", "cloudfilter", "in front of providers"),
    ("mx1.mxge.comcast.net", "mxge.comcast.net", "comcast", "Comcast"),
    ("notyahoodns.net", None, None, "only whole labels count"),
    ("phone.com", None, None, "one.com is the end of its text, not of its labels"),
    ("mx.example.org", None, None, "nobody"),
    ("", None, None, "no name"),
]
# Rows below others, by the upper one: the longer name is of another operator or service, or says more.
NESTED = {
    "yahoodns.net": "am0 gm0 mail.am0 mx-biz.mail.am0 mx-rogers.mail.am0",
    "am0.yahoodns.net": "mail mx-biz.mail mx-rogers.mail",
    "mail.am0.yahoodns.net": "mx-biz mx-rogers",
    "aruba.it": "mx.pec",
    "google.com": "aspmx.l gmail-smtp-in.l gmr-smtp-in.l smtp",
    "barracudanetworks.com": "ess",
    "pphosted.com": "gslb",
    "cloud.openwave.ai": "mx.altice.prod",
    "hostedemail.com": "mx.hover.com.cust",
    "oxcs.net": "spacemail.xion",
    "spamexperts.com": "mx",
    "tutanota.de": "mail",
}


@each_row(("host", "suffix", "operator", "why"), HOSTS)
def test_a_host_belongs_to_the_longest_suffix(
    host: str, suffix: str | None, operator: str | None, why: str
) -> None:
    found = find_operator(host, load_operators())

    assert (found and found.suffix, found and found.operator) == (suffix, operator), why


def test_no_row_takes_the_hosts_of_another_by_accident() -> None:
    names = load_operators()
    below: dict[str, set[str]] = {}
    for name in names:
        labels = name.split(".")
        for start in range(1, len(labels)):
            if (upper := ".".join(labels[start:])) in names:
                below.setdefault(upper, set()).add(".".join(labels[:start]))
    assert below == {upper: set(lower.split()) for upper, lower in NESTED.items()}


def test_every_fact_has_a_date_and_a_source() -> None:
    for row in load_operators().values():
        assert normal_domain(row.suffix) == row.suffix or row.suffix == "localhost", row
        assert row.operator == row.operator.lower(), row
        assert " " not in row.operator, row
        assert row.kind in KINDS, row
        assert isinstance(row.seen, datetime.date), row
        assert row.source.startswith("https://"), row
        assert set(row.rcpt) <= HINTS, row
        if row.rcpt or row.behaviour:
            assert isinstance(row.behaviour_seen, datetime.date), row
            assert row.behaviour_source.startswith("https://"), row


def test_an_operator_has_one_kind_of_flag() -> None:
    kinds: dict[str, set[str]] = {}
    for row in load_operators().values():
        kinds.setdefault(row.operator, set()).add(row.kind)
    flagged = [each for each in kinds.values() if each & {"parking", "disposable"}]
    assert [each for each in flagged if len(each) > 1] == []


BEHAVIOUR = [
    ("mta5.am0.yahoodns.net", True, None, False),
    ("mx-biz.mail.am0.yahoodns.net", True, None, False),
    ("x.olc.protection.outlook.com", False, 1, False),
    ("x.mail.protection.outlook.com", None, 1, True),
    ("gmail-smtp-in.l.google.com", False, None, True),
    ("aspmx.l.google.com", None, None, True),
]


@each_row(("host", "catch_all", "most", "one_domain"), BEHAVIOUR)
def test_a_longer_name_has_the_behaviour_of_the_shorter(
    host: str, catch_all: bool | None, most: int | None, one_domain: bool
) -> None:
    found = find_operator(host, load_behaviour())
    assert found is not None
    assert (found.catch_all, found.rcpt_per_transaction, found.one_domain) == (
        catch_all,
        most,
        one_domain,
    )


@each_row("row", load_behaviour().values(), ids=lambda row: row.suffix)
def test_behaviour_changes_a_session(row: Operator) -> None:
    assert row.catch_all is not None or row.rcpt_per_transaction or row.one_domain


NAMED = [
    ("aspmx.l.google.com", "ada@firm.example", "google"),
    ("mx.firm.example", "ada@firm.example", "self"),
    ("mx.firm.example", "ada@sales.firm.example", "self"),
    ("firm.example", "firm.example", "self"),
    ("mail.firm.co.uk", "ada@firm.co.uk", "self"),
    ("mail.other.co.uk", "ada@firm.co.uk", "other.co.uk"),
    ("mx.xn--bcher-kva.example", "ada@bücher.example", "self"),
    ("mx1.hoster.example", "ada@firm.example", "hoster.example"),
    ("mx1.hoster.example", None, "hoster.example"),
    ("home.duckdns.org", "ada@firm.example", "home.duckdns.org"),
    (None, "ada@firm.example", None),
    # Everybody can have a mailbox there, so it is no company with a server of its own.
    ("mx1.seznam.cz", "ada@seznam.cz", "seznam.cz"),
    ("mx1.seznam.cz", "ada@email.cz", "seznam.cz"),
    ("mxbw.lb.bluewin.ch", "ada@bluewin.ch", "bluewin.ch"),
    ("mx.uol.com.br", "ada@uol.com.br", "uol.com.br"),
    ("mx.uol.com.br", "ada@bol.com.br", "uol.com.br"),
    ("mx.seznam.cz", "ada@posta.seznam.cz", "seznam.cz"),
]
# Providers of mailboxes: the preferred mail server of each domain (2026-10), and the word of the table.
PROVIDERS = [
    ("t-online.de", "mx00.t-online.de", "t-online"),
    ("web.de", "mx-ha02.web.de", "webde"),
    ("free.fr", "mx1.free.fr", "free"),
    ("orange.fr", "smtp-in.orange.fr", "orange"),
    ("wanadoo.fr", "smtp-in.orange.fr", "orange"),
    ("sfr.fr", "smtp-in.sfr.fr", "sfr"),
    ("mail.ru", "mxs.mail.ru", "mailru"),
    ("bk.ru", "mxs.mail.ru", "mailru"),
    ("libero.it", "smtp-in.libero.it", "libero"),
    ("virgilio.it", "smtp-in.virgilio.it", "libero"),
    ("comcast.net", "mx1a1.comcast.net", "comcast"),
    ("charter.net", "mx0.charter.net", "spectrum"),
    ("naver.com", "mx1.naver.com", "naver"),
    ("hanmail.net", "mx1.hanmail.net", "kakao"),
    ("daum.net", "mx1.hanmail.net", "kakao"),
    ("telenet.be", "mx1.telenet-ops.be", "telenet"),
    ("ziggo.nl", "mxin10.ziggo.nl", "ziggo"),
    ("163.com", "163mx00.mxmail.netease.com", "netease"),
]


def test_a_host_that_is_not_in_the_table_has_the_name_of_its_domain() -> None:
    hosts, addresses, names = zip(*NAMED, strict=True)
    assert name_operators(pa.array(hosts), pa.array(addresses)).to_pylist() == list(names)


@each_row(("domain", "host", "operator"), PROVIDERS)
def test_all_domains_of_a_provider_have_one_operator(domain: str, host: str, operator: str) -> None:
    assert name_operators(pa.array([host]), pa.array([f"ada@{domain}"])).to_pylist() == [operator]


def test_a_provider_is_never_self() -> None:
    domains = [*load_providers()]
    hosts = [f"mx.{domain}" for domain in domains]
    assert "self" not in name_operators(pa.array(hosts), pa.array(domains)).to_pylist()


@each_row(
    "line",
    [
        "x.example,x",
        "x.example,x,X,mailbox,yesterday,us",
        "x.example,x,X,mailbox,2026-01-01,us,,perhaps",
        "x.example,x,X,mailbox,2026-01-01,us,,,many",
    ],
)
def test_another_table_is_refused(line: str) -> None:
    with pytest.raises(SettingsError, match=r"operators\.csv cannot be read: 'x\.example"):
        parse_operators([line])


def test_a_suffix_has_one_row() -> None:
    with pytest.raises(SettingsError, match=r"x\.example occurs twice"):
        parse_operators(["x.example,x,X,mailbox,2026-01-01,us"] * 2)
