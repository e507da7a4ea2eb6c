"""Made-up people and the organisations they work for, for the sample files."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import TypeVar

__all__ = ["ORGANISATIONS", "Dice", "Organisation", "Person", "make_person", "plain_letters"]

T = TypeVar("T")


class Dice:
    """Random choices from `Random.random` alone: the only method whose sequence Python guarantees."""

    def __init__(self, seed: int) -> None:
        self.roll: Callable[[], float] = Random(seed).random
        self.turns: defaultdict[str, count[int]] = defaultdict(count)

    def below(self, end: int) -> int:
        """A number from 0 to below `end`."""
        return int(self.roll() * end)

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices; repeat one to make it likelier."""
        return choices[self.below(len(choices))]

    def word(self, words: str) -> str:
        """One of the words of a text."""
        return self.pick(words.split())

    def turn(self, what: str, choices: Sequence[T]) -> T:
        """The choices in turn, so that all of them occur."""
        return choices[next(self.turns[what]) % len(choices)]

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self.roll() < share

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in another order."""
        keys = [self.roll() for _ in items]
        return [items[at] for at in sorted(range(len(items)), key=keys.__getitem__)]


# First names are common; family names are invented, so that no pair is likely to be a real person.
FIRST = {
    "german": "Anna Lukas Jürgen Sabine Björn Heike Felix Katharina Matthias Jana Uwe Petra Tobias Ulrike Sören Mia",
    "english": "Emma Oliver Grace Thomas Chloe Harry Ruth Daniel Amelia George Nadia Marcus Isla Peter Fiona Samuel",
    "french": "Élodie Julien Camille Benoît Hélène Mathieu Amélie Thierry Chloé Laurent Zoé François Inès Luc",
    "nordic": "Astrid Lars Ingrid Søren Freja Mikkel Åsa Henrik Linnéa Jørgen Sigrid Nils Elin Gustav",
    "dutch": "Sanne Joost Femke Bram Lotte Ruben Anouk Thijs Marieke Daan Noor Sjoerd",
    "iberian": "Lucía Javier Inês Álvaro Marta Nuno Carmen Íñigo Beatriz Tomás Núria Paulo",
    "italian": "Giulia Marco Chiara Niccolò Elena Davide Sofia Matteo Francesca Luca",
    "indian": "Ananya Rohan Meera Arjun Kavya Vikram Priya Sanjay",
    "japanese": "Haruka Kenji Yuki Naoki Aiko Takumi Emi Ren",
    "chinese": "Wei Fang Min Jing Lei",
}
FAMILY = {
    "german": "Obrenstett Wielandsee Kühnlinger Ackerlohn Zirbenau Rebstöckler Quastmeyer Brandaufer Mörtelbeck "
    "Strudthofer Eiblinghaus Hasselwitz Lindkrüger Föhrensang",
    "english": "Quillfeather Marlowick Thistlewain Brackenshawe Pinewickham Saltmarchley Fennimoor Oakmossop Tallowby "
    "Kestrelby Larchmundy O'Dunharrow Ridgelake-Finch Hollybourne",
    "french": "Lumignonet Vauclairin Desbrouettes Fontgivalle Pétrinoix Marchevoix Roquebellin D'Aubrelac Montfauvelle "
    "Grisendeau Beauchêvre Lenoirmontet",
    "nordic": "Halvorskog Lindqvarn Bergströmsen Åkerlundby Nordhvass Sjögrensvik Møllerstrøm Fjellvåg Östermarken "
    "Ravnkildesen",
    "dutch": "Vandermeerse Jansmolen Van_Hoogwaard De_Wilgaert Bloemendijker Rietschoof Kloosterhagen Zeewaarder",
    "iberian": "Solanillo Mendozar Veredal Casalseta Ferreirinhal Peñalbosa Oliveirão Quintamarilla Arrozaleda",
    "italian": "Ferrantello Dalpontini Lucernelli Brusacorte Montevardi Pescarotto Campolarghi",
    "indian": "Tamarindwala Chandrapurkar Venkatalingam Bhatnagarh Deshpandekar Iyengarwal",
    "japanese": "Kinoshigawa Hayamizuno Tachibanari Shirogawata Fujimorita Okunohara",
    "chinese": "Ouyangshan Zhugelin Simaqing Shangguanyu",
}
CULTURE = {
    "DE": "german", "AT": "german", "CH": "german", "GB": "english", "US": "english", "CA": "english",
    "AU": "english", "NZ": "english", "FR": "french", "BE": "french", "NL": "dutch", "SE": "nordic", "NO": "nordic",
    "ES": "iberian", "PT": "iberian", "IT": "italian", "IN": "indian", "JP": "japanese",
    "CN": "chinese",
}  # fmt: skip

HOME_COUNTRIES = "DE DE DE DE AT CH GB GB GB US US US FR FR NL SE NO ES PT IT IN JP"
EVERYWHERE = "gmail.com " * 9 + "outlook.com outlook.com hotmail.com icloud.com yahoo.com proton.me me.com"
AT_HOME = {
    "german": "gmx.de gmx.de web.de web.de t-online.de gmx.net freenet.de posteo.de mailbox.org gmx.at bluewin.ch",
    "english": "hotmail.co.uk yahoo.co.uk btinternet.com sky.com comcast.net aol.com live.co.uk verizon.net",
    "french": "orange.fr orange.fr free.fr wanadoo.fr laposte.net sfr.fr hotmail.fr yahoo.fr",
    "nordic": "live.com hotmail.com",
    "dutch": "live.nl hotmail.com",
    "iberian": "hotmail.es yahoo.es outlook.es",
    "italian": "libero.it libero.it virgilio.it tiscali.it hotmail.it",
    "indian": "yahoo.co.in gmail.com",
    "japanese": "gmail.com yahoo.com",
}


@dataclass(frozen=True)
class Organisation:
    """An organisation and the form of its addresses."""

    domain: str
    name: str
    country: str
    pattern: int


# domain | name | country. The first group is most of the file; the others are for the kinds of cells of that name.
ORGANISATION_ROWS = {
    "business": """
        nordlicht-logistik.de | Nordlicht Logistik GmbH | DE
        halvorsen-shipping.no | Halvorsen Shipping AS | NO
        brightwater-analytics.com | Brightwater Analytics, Inc. | US
        castellan-insurance.co.uk | Castellan Insurance Ltd | GB
        vandermeer-bouw.nl | Vandermeer Bouw B.V. | NL
        meridian-orthopaedics.com | Meridian Orthopaedics | US
        kestrel-aerospace.co.uk | Kestrel Aerospace plc | GB
        lindqvist-papper.se | Lindqvist Papper AB | SE
        obermayr-maschinenbau.at | Obermayr Maschinenbau GmbH & Co KG | AT
        quillfeather-press.com | Quillfeather Press | GB
        solvane-energy.com | Solvane Energy | US
        tamarind-textiles.in | Tamarind Textiles Pvt Ltd | IN
        westmarch-council.org.uk | Westmarch Council | GB
        alderbrook-school.org | Alderbrook School | US
        corvallen-biotech.com | Corvallen Biotech | US
        harrow-and-finch.law | Harrow & Finch | GB
        bluepeak-outdoor.ca | Bluepeak Outdoor | CA
        fernhollow-studio.com | Fernhollow Studio | GB
        atelier-lumignon.fr | Atelier Lumignon | FR
        panaderia-solana.es | Panadería Solana | ES
        officina-ferrante.it | Officina Ferrante s.r.l. | IT
        kinoshita-design.jp | Kinoshita Design | JP
        sandpiper-travel.com.au | Sandpiper Travel Pty Ltd | AU
        greenloop-recycling.org | Greenloop Recycling | US
        schreinerei-ackerl.at | Schreinerei Ackerl | AT
        boulangerie-du-quai.fr | Boulangerie du Quai | FR
        garage-lenoir.be | Garage Lenoir | BE
        autohaus-wendlandt.de | Autohaus Wendlandt GmbH | DE
        bloemen-jansma.nl | Bloemen Jansma | NL
        clinica-vereda.pt | Clínica Vereda | PT
        ristorante-dalponte.it | Ristorante Dal Ponte | IT
        weingut-rebstoeckl.de | Weingut Rebstöckl | DE
        pension-alpenrose.ch | Pension Alpenrose | CH
        hollyhock-vets.co.uk | Hollyhock Vets | GB
        ridgeline-surveyors.com | Ridgeline Surveyors | US
        copperkettle-brewing.com | Copperkettle Brewing Co. | US
        oakmoss-candles.co.uk | Oakmoss Candles | GB
        halfmoon-bakery.co.nz | Halfmoon Bakery | NZ
        stonebridge-archery.org | Stonebridge Archery | GB
        hearthside-books.com | Hearthside Books | US""",
    "international": """
        cafe-zwölfuhr.de | Café Zwölfuhr | DE
        müller-bau.example | Müller Bau | DE
        中国.example | 中国贸易 (China Trading) | CN""",
    "closed": """
        thornwick-cutlery.co.uk | Thornwick Cutlery (closed) | GB
        velograf-kurierdienst.de | Velograf Kurierdienst | DE
        amberlight-voyages.fr | Amberlight Voyages | FR
        pixelmoor-games.com | Pixelmoor Games | US
        dockside-reklame.se | Dockside Reklame AB | SE""",
    "no mail": """
        null.example | Null & Söhne | DE
        parked.example | Parked Brands Ltd | GB""",
    "unusual": """
        implicit.example | Implicit Ceramics | US
        alias.example | Alias Films | FR
        many.example | Many Hands Foundation | US
        slow.example | Slow Food Cooperative | IT
        gone-exchange.example | Gone Exchange | US
        private.example | Private Office Partners | GB
        loopback.example | Loopback Records | DE
        numeric.example | Numeric Tools | SE
        listed.example | Listed Buildings Trust | GB
        listed-second.example | Second List Media | NL""",
    "trouble": """
        silent.example | Silent Running Ltd | GB
        servfail.example | Servfail Catering | DE
        servfail.example | Servfail Catering | DE
        refused.example | Refused Freight | NL
        lame.example | Lame Duck Inn | US""",
}
PATTERNS = ("{first}.{family}", "{initial}.{family}", "{first}", "{initial}{family}", "{family}.{first}")


def read_organisations(rows: str) -> list[Organisation]:
    return [read_organisation(row, at % len(PATTERNS)) for at, row in enumerate(rows.strip().splitlines())]


def read_organisation(row: str, pattern: int) -> Organisation:
    domain, name, country = (part.strip() for part in row.split("|"))
    return Organisation(domain, name, country, pattern)


ORGANISATIONS = {group: read_organisations(rows) for group, rows in ORGANISATION_ROWS.items()}


@dataclass(frozen=True)
class Person:
    """A made-up person."""

    first: str
    family: str
    country: str
    company: str
    domain: str
    local: str

    @property
    def email(self) -> str:
        """Their address."""
        return f"{self.local}@{self.domain}"

    def at(self, domain: str) -> str:
        """The same local part at another domain."""
        return f"{self.local}@{domain}"


TRANSLITERATED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "ø": "o", "å": "a", "æ": "ae"})


def plain_letters(name: str) -> str:
    """A name in ASCII letters and hyphens, as in most addresses.

    >>> plain_letters("Jørgen O'Köhler-Núñez")
    'jorgenokoehler-nunez'
    """
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFC", name.lower()).translate(TRANSLITERATED))
    return "".join(letter for letter in text if letter == "-" or (letter.isascii() and letter.isalpha()))


def local_part(pattern: str, first: str, family: str) -> str:
    plain_first, plain_family = plain_letters(first), plain_letters(family)
    return pattern.format(first=plain_first, family=plain_family, initial=plain_first[0])


def make_person(dice: Dice, group: str) -> Person:
    """Make a person: a ``consumer``, or of one of the groups of organisations."""
    return make_consumer(dice) if group == "consumer" else make_employee(dice, dice.pick(ORGANISATIONS[group]))


def make_employee(dice: Dice, where: Organisation) -> Person:
    first, family = make_name(dice, where.country)
    local = local_part(PATTERNS[where.pattern], first, family)
    return Person(first, family, where.country, where.name, where.domain, local)


def make_consumer(dice: Dice) -> Person:
    country = dice.word(HOME_COUNTRIES)
    first, family = make_name(dice, country)
    domain = dice.word(EVERYWHERE if dice.chance(0.5) else AT_HOME[CULTURE[country]])
    local = local_part(dice.pick(PATTERNS[:2] + PATTERNS[3:]), first, family)
    number = f"{dice.below(100):02}" if dice.chance(0.3) else ""
    return Person(first, family, country, "", domain, local + number)


def make_name(dice: Dice, country: str) -> tuple[str, str]:
    culture = CULTURE[country]
    return dice.word(FIRST[culture]), dice.word(FAMILY[culture]).replace("_", " ")
