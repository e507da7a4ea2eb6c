"""The made-up domains of the sandbox, as tables.

Names of real providers are included so that realistic columns work offline. Their MX records are
made up and lead to loopback addresses; they say nothing about the real providers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from ..checks.dns.names import normal_name
from ..checks.dns.self_test import load_probes
from ..model.evidence import DnsOutcome
from .dns_table import DnsFault, DomainRecords

__all__ = [
    "CASES",
    "CLIENT",
    "EXCHANGE_ADDRESSES",
    "LISTS",
    "Case",
    "sandbox_zones",
    "shared_domains",
]


@dataclass(frozen=True, slots=True)
class Case:
    """A made-up domain for one case of DNS."""

    domain: str  # in A-labels
    records: DomainRecords
    outcome: DnsOutcome  # that the resolver must find
    why: str  # what it tests


def mx(*exchanges: str, ttl: int = 300, delay: float = 0.0) -> DomainRecords:
    """Records of a domain with exchanges, as ``10 mx.example``."""
    return DomainRecords({"MX": exchanges}, ttl=ttl, delay=delay)


def faulty(rdtype: str, fault: DnsFault, *exchanges: str) -> DomainRecords:
    """Records of a domain with a fault in the answer for one type."""
    records = {}
    if exchanges:
        records["MX"] = exchanges
    return DomainRecords(records, {rdtype: fault})


def alias(target: str, fault: DnsFault | None = None) -> DomainRecords:
    """Records of an alias."""
    faults = {}
    if fault is not None:
        faults["*"] = fault
    return DomainRecords({"CNAME": (target,)}, faults)


# Mail servers, each on a loopback address of its own.
EXCHANGE_ADDRESSES = {
    "mx1.bigmail.example": "127.0.10.1",
    "mx2.bigmail.example": "127.0.10.2",
    "mx1.skymail.example": "127.0.11.1",
    "mx2.skymail.example": "127.0.11.2",
    "mx1.orchardmail.example": "127.0.12.1",
    "mx1.oldmail.example": "127.0.13.1",
    "mx1.regionalmail.example": "127.0.14.1",
    "mx2.regionalmail.example": "127.0.14.2",
    "mx1.privatemail.example": "127.0.15.1",
    "mx1.throwaway.example": "127.0.16.1",
    "mx1.hosting-one.example": "127.0.20.1",
    "mx2.hosting-one.example": "127.0.20.2",
    "mx1.hosting-two.example": "127.0.21.1",
    "mx1.office-suite.example": "127.0.22.1",
    "mx2.office-suite.example": "127.0.22.2",
    "mx1.cases.example": "127.0.30.1",
    "mx2.cases.example": "127.0.30.2",
    "mx3.cases.example": "127.0.30.3",
    "mx.listed.example": "127.0.40.1",
    "mx.pool.example": "127.0.40.2",
    "mx.refusing-list.example": "127.0.40.3",
}
LISTED_ADDRESS = EXCHANGE_ADDRESSES["mx.listed.example"]

MX, IMPLICIT, NULL, NO_EXCHANGE = (
    DnsOutcome.MX,
    DnsOutcome.IMPLICIT_MX,
    DnsOutcome.NULL_MX,
    DnsOutcome.NO_EXCHANGE,
)
NXDOMAIN, NODATA, UNDETERMINED = DnsOutcome.NXDOMAIN, DnsOutcome.NODATA, DnsOutcome.UNDETERMINED

CASES = (
    # A domain with exchanges
    Case("one.example", mx("10 mx1.cases.example"), MX, "the usual case"),
    Case(
        "three.example",
        mx("30 mx3.cases.example", "10 mx1.cases.example", "20 mx2.cases.example"),
        MX,
        "exchanges come in any order and are sorted by preference",
    ),
    Case(
        "equal.example",
        mx("10 mx2.cases.example", "10 mx1.cases.example"),
        MX,
        "equal preferences share the load",
    ),
    Case(
        "twice.example",
        mx("20 mx1.cases.example", "10 MX1.Cases.Example"),
        MX,
        "one host given twice, in two cases",
    ),
    Case(
        "extreme.example",
        mx("65535 mx2.cases.example", "0 mx1.cases.example"),
        MX,
        "both ends of the preference",
    ),
    Case(
        "sub.department.one.example",
        mx("10 mx1.cases.example"),
        MX,
        "a deep sub-domain with records of its own",
    ),
    Case(
        "xn--mller-bau-q9a.example",
        mx("10 mx1.cases.example"),
        MX,
        "an international domain: müller-bau.example",
    ),
    Case(
        "xn--fiqs8s.example",
        mx("10 mx1.cases.example"),
        MX,
        "one that is not in Latin script: 中国.example",
    ),
    Case(
        "short-lived.example",
        mx("10 mx1.cases.example", ttl=0),
        MX,
        "a TTL of 0 must not cause a query for each row",
    ),
    Case("slow.example", mx("10 mx1.cases.example", delay=0.2), MX, "a slow answer"),
    Case(
        "many.example",
        mx(*(f"{n} mx{n}.wide-open-exchange-farm.example" for n in range(80))),
        MX,
        "an answer too large for a datagram, with more exchanges than are kept",
    ),
    Case(
        "loopback.example",
        mx("10 localhost.cases.example"),
        MX,
        "an exchange at 127.0.0.1, which is this host",
    ),
    Case(
        "private.example",
        mx("10 intranet.cases.example"),
        MX,
        "an exchange at a private address: not contacted",
    ),
    Case(
        "gone-exchange.example",
        mx("10 nowhere.cases.example"),
        MX,
        "its exchange has no address; the MX stands",
    ),
    Case("trap.example", mx("10 mx1.cases.example"), MX, "on the spamtrap list of the sandbox"),
    Case(
        "numeric-only.example",
        mx("10 192.0.2.25"),
        UNDETERMINED,
        "an address instead of a host name, a mistake",
    ),
    Case(
        "numeric.example",
        mx("10 192.0.2.25", "20 nowhere.cases.example"),
        MX,
        "the same beside a host: ignored",
    ),
    Case(
        "localhost.example",
        mx("10 localhost"),
        NO_EXCHANGE,
        "its exchange is the machine that looks (RFC 6761 6.3)",
    ),
    Case(
        "number.example",
        mx("0 0"),
        NO_EXCHANGE,
        "a number in place of the root, which is what a null MX names (RFC 7505)",
    ),
    Case(
        "localhost-slip.example",
        mx("5 localhost", "10 mx1.cases.example"),
        MX,
        "the same beside a real exchange",
    ),
    # Mail without MX, and domains that accept no mail
    Case(
        "implicit.example",
        DomainRecords({"A": ("127.0.30.9",)}),
        IMPLICIT,
        "no MX but an address (RFC 5321 5.1)",
    ),
    Case(
        "implicit6.example",
        DomainRecords({"AAAA": ("2001:db8::25",)}),
        IMPLICIT,
        "the same over IPv6 only",
    ),
    Case("null.example", mx("0 ."), NULL, "the domain declares that it accepts no mail (RFC 7505)"),
    Case(
        "null-slip.example",
        mx("0 .", "10 mx1.cases.example"),
        MX,
        "a null MX beside a real one is a mistake",
    ),
    Case(
        "parked.example",
        DomainRecords({"TXT": ("v=spf1 -all",)}),
        NODATA,
        "registered, with nothing for mail",
    ),
    Case(
        "department.one.example",
        DomainRecords(),
        NODATA,
        "exists only because a name below it does",
    ),
    Case("no-such-domain.example", faulty("*", DnsFault.NXDOMAIN), NXDOMAIN, "does not exist"),
    # Aliases
    Case("alias.example", alias("one.example"), MX, "a CNAME to a domain with exchanges"),
    Case("alias-of-alias.example", alias("alias.example"), MX, "two of them in a row"),
    Case(
        "alias-of-host.example",
        alias("implicit.example"),
        IMPLICIT,
        "leads to a host, which is its implicit MX",
    ),
    Case(
        "alias-of-nothing.example",
        alias("no-such-domain.example"),
        NXDOMAIN,
        "leads to a name that does not exist",
    ),
    Case(
        "alias-half.example",
        alias("one.example", DnsFault.ALIAS_ONLY),
        MX,
        "the server does not follow the alias",
    ),
    Case("loop-a.example", alias("loop-b.example"), UNDETERMINED, "an alias of an alias of itself"),
    Case("loop-b.example", alias("loop-a.example"), UNDETERMINED, "the other half of the loop"),
    # Failing servers: nothing is known about the domain
    Case(
        "servfail.example",
        faulty("*", DnsFault.SERVFAIL),
        UNDETERMINED,
        "its name servers are broken or unsigned",
    ),
    Case(
        "refused.example",
        faulty("*", DnsFault.REFUSED),
        UNDETERMINED,
        "the resolver refuses to answer",
    ),
    Case(
        "silent.example",
        faulty("*", DnsFault.SILENCE),
        UNDETERMINED,
        "no answer, however often it is asked",
    ),
    Case(
        "lame.example",
        faulty("*", DnsFault.REFERRAL),
        UNDETERMINED,
        "referred to servers without the zone",
    ),
    Case(
        "garbage.example", faulty("*", DnsFault.GARBAGE), UNDETERMINED, "an answer that is cut off"
    ),
    Case(
        "address-servfail.example",
        faulty("A", DnsFault.SERVFAIL),
        UNDETERMINED,
        "no MX, and the address is not known",
    ),
    Case(
        "six-servfail.example",
        DomainRecords({"A": ("127.0.30.9",)}, {"AAAA": DnsFault.SERVFAIL}),
        IMPLICIT,
        "one address family is enough",
    ),
    Case(
        "only-six-known.example",
        DomainRecords({"AAAA": ("2001:db8::25",)}, {"A": DnsFault.SERVFAIL}),
        IMPLICIT,
        "the same the other way round",
    ),
    Case(
        "denied-mx.example",
        DomainRecords({"A": ("127.0.30.9",)}, {"MX": DnsFault.NXDOMAIN}),
        UNDETERMINED,
        "its server answers NXDOMAIN to every type but A",
    ),
    Case(
        "blocked.example",
        DomainRecords({"A": ("0.0.0.0",), "AAAA": ("::",)}),  # noqa: S104 - not an address to bind
        UNDETERMINED,
        "a filter gives the unspecified address for a name that it blocks",
    ),
    Case(
        "implicit-loopback.example",
        DomainRecords({"AAAA": ("::1",)}),
        UNDETERMINED,
        "its only address is that of the machine that looks, as filters give it",
    ),
    Case(
        "implicit-private.example",
        DomainRecords({"A": ("10.20.30.40",), "AAAA": ("fd00::25",)}),
        UNDETERMINED,
        "no MX but private addresses, which no host on the Internet has",
    ),
    # Truncated, outdated and forged answers
    Case(
        "truncated.example",
        faulty("MX", DnsFault.TRUNCATED, "10 mx1.cases.example"),
        MX,
        "must be asked over TCP",
    ),
    Case(
        "truncated-dead.example",
        faulty("MX", DnsFault.TCP_SILENCE, "10 mx1.cases.example"),
        UNDETERMINED,
        "must be asked over TCP, where nobody answers",
    ),
    Case(
        "truncated-forged.example",
        faulty("MX", DnsFault.TCP_FORGED, "10 mx1.cases.example"),
        UNDETERMINED,
        "must be asked over TCP, where another question is answered",
    ),
    Case(
        "old-server.example",
        faulty("MX", DnsFault.NO_EDNS, "10 mx1.cases.example"),
        MX,
        "its server does not support EDNS",
    ),
    Case(
        "wrong-id.example",
        faulty("*", DnsFault.WRONG_ID),
        UNDETERMINED,
        "only a forger answers, guessing the id",
    ),
    Case(
        "wrong-question.example",
        faulty("*", DnsFault.WRONG_QUESTION),
        UNDETERMINED,
        "a forger answers another question",
    ),
    Case(
        "forged.example",
        faulty("MX", DnsFault.FORGED_FIRST, "10 mx1.cases.example"),
        MX,
        "two forged answers come before the correct one",
    ),
    # Blacklists
    Case("listed.example", mx("10 mx.listed.example"), MX, "its exchange is on bl.sandbox.example"),
    Case(
        "listed-second.example",
        mx("10 mx1.cases.example", "20 mx.listed.example"),
        MX,
        "one of two exchanges is",
    ),
    Case("pool.example", mx("10 mx.pool.example"), MX, "listed with a code that users may ignore"),
    Case(
        "refusing-list.example",
        mx("10 mx.refusing-list.example"),
        MX,
        "the list refuses to answer, so it is not known to be clean",
    ),
)

BIGMAIL = ("10 mx1.bigmail.example", "20 mx2.bigmail.example")
SKYMAIL = ("5 mx1.skymail.example", "10 mx2.skymail.example")
REGIONAL = ("10 mx1.regionalmail.example", "10 mx2.regionalmail.example")
OFFICE = ("0 mx1.office-suite.example", "10 mx2.office-suite.example")
HOSTING_ONE = ("10 mx1.hosting-one.example", "20 mx2.hosting-one.example")

# Exchanges and the domains that share them, as thousands of real domains share the exchanges of a
# few providers.
PROVIDERS: dict[tuple[str, ...], str] = {
    BIGMAIL: "gmail.com googlemail.com",
    SKYMAIL: (
        "outlook.com outlook.de outlook.fr outlook.es hotmail.com hotmail.co.uk hotmail.de "
        "hotmail.fr hotmail.it hotmail.es live.com live.co.uk live.fr live.nl msn.com"
    ),
    ("10 mx1.orchardmail.example",): "icloud.com me.com mac.com privaterelay.appleid.com",
    ("10 mx1.oldmail.example",): (
        "yahoo.com yahoo.co.uk yahoo.de yahoo.fr yahoo.es yahoo.it yahoo.co.in yahoo.com.br "
        "ymail.com rocketmail.com aol.com"
    ),
    REGIONAL: (
        "gmx.de gmx.net gmx.com gmx.at gmx.ch web.de t-online.de freenet.de posteo.de mailbox.org "
        "orange.fr wanadoo.fr free.fr sfr.fr laposte.net libero.it virgilio.it tiscali.it wp.pl "
        "o2.pl onet.pl seznam.cz centrum.cz bluewin.ch btinternet.com sky.com comcast.net "
        "verizon.net att.net bol.com.br uol.com.br qq.com 163.com naver.com yandex.ru mail.ru "
        "mail.com"
    ),
    ("10 mx1.privatemail.example",): (
        "proton.me protonmail.com pm.me tuta.com tutanota.com fastmail.com hey.com zoho.com "
        "duck.com mozmail.com"
    ),
}

DISPOSABLE: dict[tuple[str, ...], str] = {
    ("10 mx1.throwaway.example",): (
        "mailinator.com yopmail.com guerrillamail.com sharklasers.com 10minutemail.com "
        "temp-mail.org trashmail.com throwawaymail.com getnada.com maildrop.cc dispostable.com "
        "mohmal.com"
    ),
}

# Made-up organisations; should one of the names be registered, it does not matter on loopback.
COMPANIES: dict[tuple[str, ...], str] = {
    OFFICE: (
        "nordlicht-logistik.de halvorsen-shipping.no brightwater-analytics.com "
        "castellan-insurance.co.uk vandermeer-bouw.nl meridian-orthopaedics.com "
        "kestrel-aerospace.co.uk lindqvist-papper.se obermayr-maschinenbau.at "
        "quillfeather-press.com solvane-energy.com tamarind-textiles.in westmarch-council.org.uk "
        "alderbrook-school.org pinewick-dental.com corvallen-biotech.com harrow-and-finch.law "
        "bluepeak-outdoor.ca"
    ),
    BIGMAIL: (
        "fernhollow-studio.com atelier-lumignon.fr panaderia-solana.es tinkerlane-games.io "
        "cafe-zwölfuhr.de marlowe-and-daughters.com greenloop-recycling.org openquill.dev "
        "sandpiper-travel.com.au officina-ferrante.it kinoshita-design.jp mapleforge.ca"
    ),
    HOSTING_ONE: (
        "schreinerei-ackerl.at boulangerie-du-quai.fr garage-lenoir.be autohaus-wendlandt.de "
        "bloemen-jansma.nl clinica-vereda.pt gasthof-zirbenhof.at hollyhock-vets.co.uk "
        "ristorante-dalponte.it talleres-mendoza.es tischlerei-brandauer.de vineyard-casals.cat "
        "zahnarzt-kuehnel.de weingut-rebstoeckl.de pension-alpenrose.ch fotostudio-lindgren.se "
        "copyshop-uferstrasse.de"
    ),
    ("10 mx1.hosting-two.example",): (
        "ridgeline-surveyors.com oakmoss-candles.co.uk driftwood-yoga.com lumen-and-larch.com "
        "copperkettle-brewing.com halfmoon-bakery.co.nz stonebridge-archery.org "
        "tallow-and-thread.com northfork-cycles.com willowbend-nursery.com firefly-childcare.org "
        "hearthside-books.com little-otter-press.com saltmarsh-kayaks.com"
    ),
}

# DNS lists that behave differently (RFC 5782); an address is reversed below the list's name.
TEST_ENTRY = {"A": ("127.0.0.2",), "TXT": ("test entry",)}
LISTS: dict[str, dict[str, DomainRecords]] = {
    # well kept: 127.0.0.2 is listed and 127.0.0.1 is not
    "bl.sandbox.example": {
        "127.0.0.2": DomainRecords(TEST_ENTRY),
        LISTED_ADDRESS: DomainRecords(
            {"A": ("127.0.0.2",), "TXT": ("seen sending unwanted mail",)}
        ),
        EXCHANGE_ADDRESSES["mx.pool.example"]: DomainRecords({"A": ("127.0.0.10",)}),
        EXCHANGE_ADDRESSES["mx.refusing-list.example"]: DomainRecords({"A": ("127.255.255.254",)}),
    },
    # abandoned: every name below it has an address
    "wildcard-bl.sandbox.example": {"*": DomainRecords({"A": ("127.0.0.2",)})},
    # abandoned, without entries
    "empty-bl.sandbox.example": {},
    # refuses queries from public resolvers
    "refusing-bl.sandbox.example": {"*": DomainRecords({"A": ("127.255.255.254",)})},
    # broken servers
    "broken-bl.sandbox.example": {"*": DomainRecords(faults={"*": DnsFault.SERVFAIL})},
    # behind a resolver that answers every unknown name with the address of an advertisement
    "hijacked-bl.sandbox.example": {"*": DomainRecords({"A": ("192.0.2.80",)})},
}

CLIENT = "client.sandbox.example"  # the host that verifies, 127.0.0.1
OTHER_HOSTS = {
    CLIENT: DomainRecords({"A": ("127.0.0.1",)}),
    "localhost.cases.example": DomainRecords({"A": ("127.0.0.1",)}),
    "intranet.cases.example": DomainRecords({"A": ("10.20.30.40",), "AAAA": ("fd00::25",)}),
}


@cache  # every World begins with them
def sandbox_zones() -> Mapping[str, DomainRecords]:
    """All names of the sandbox for `DnsServer`: domains, hosts, reverse names and DNS lists.

    >>> sandbox_zones()["gmail.com"].records["MX"]
    ('10 mx1.bigmail.example', '20 mx2.bigmail.example')
    """
    zones = {case.domain: case.records for case in CASES} | OTHER_HOSTS
    # As in the real DNS, which every run tests.
    zones |= {domain: mx(*REGIONAL) for domain in load_probes().known}
    zones |= {domain: mx(*exchanges) for exchanges, domain in shared_domains()}
    zones |= {
        host: DomainRecords({"A": (address,)}) for host, address in EXCHANGE_ADDRESSES.items()
    }
    zones |= {
        reverse(address, "in-addr.arpa"): DomainRecords({"PTR": (host,)})
        for host, address in EXCHANGE_ADDRESSES.items()
    }
    zones[reverse("127.0.0.1", "in-addr.arpa")] = DomainRecords({"PTR": (CLIENT,)})
    for name, entries in LISTS.items():
        zones[name] = DomainRecords({"TXT": ("a made-up DNS list",)})
        zones |= {reverse(address, name): records for address, records in entries.items()}
    return zones


def shared_domains() -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the exchanges and the name of every domain in the tables of shared exchanges."""
    for table in (PROVIDERS, DISPOSABLE, COMPANIES):
        for exchanges, names in table.items():
            yield from ((exchanges, normal_name(domain)) for domain in names.split())


def reverse(address: str, zone: str) -> str:
    """An IPv4 address, or a star, reversed below a zone.

    >>> reverse("127.0.0.2", "bl.sandbox.example")
    '2.0.0.127.bl.sandbox.example'
    """
    return ".".join([*reversed(address.split(".")), zone])
