"""The kinds of e-mail cells in the sample files, as one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from .sample_people import Dice, Person, plain_letters

__all__ = ["MESS", "ROWS", "Cell", "Mess", "fictional_number"]

# Text; a number or a date where a spreadsheet converted the cell to one; None for an empty cell.
Cell = str | int | date | None
MakeCell = Callable[[Dice, Person], Cell]

ROWS = 2_000
ROLES = "info info info sales office contact support billing hr noreply marketing admin webmaster jobs"
THROWAWAY = (
    "mailinator.com yopmail.com guerrillamail.com sharklasers.com 10minutemail.com temp-mail.org trashmail.com "
    "throwawaymail.com getnada.com maildrop.cc dispostable.com mohmal.com"
)
SLIPS = (
    "gmial.com gmial.com gmial.com gmail.con gmail.con gamil.com gmai.com gmail.co gnail.com gmaill.com gmail.comm "
    "hotmial.com hotmial.com hotmail.con hotmal.com yaho.com yahooo.com outlok.com icluod.com web.dee gmx.dee"
)
PLACEHOLDERS = "n/a n/a n/a N/A - - - none none unknown keine tbd x ? no@email nomail 0000 xxx"
SPREADSHEET_ERRORS = ("#NAME?", "#NAME?", "#REF!", "#N/A")
WORLD_MAILBOXES = (
    "jürgen@müller-bau.example", "søren@cafe-zwölfuhr.de", "用户@中国.example", "дмитрий@cafe-zwölfuhr.de",
    "josé.peña@one.example", "ολγα@müller-bau.example", "renée@atelier-lumignon.fr", "björn@lindqvist-papper.se",
)  # fmt: skip
LABELS = ("E-Mail: {0}", "email: {0}", "Mail - {0}", "e-mail: {0}", "work: {0}", "correo: {0}", "courriel : {0}")
HTML = ('<a href="mailto:{0}">{0}</a>', "{0}<br>", "{1}&#64;{2}", "<b>{0}</b>")
BRACKETS = ("{1} [at] {2}", "{1}[at]{2}", "{1} {{at}} {2}", "{1}(at){2}")
BESIDE = ("{0} (work)", "{0}, Tel. +49 30 23125 555", "{0} - prefers e-mail", "{0}; n/a", "({0})")
ZERO_WIDTH = ("\u200b", "\ufeff", "\u2060", "\u00ad")
BROKEN: tuple[Callable[[Person], str], ...] = (
    lambda p: p.local,
    lambda p: f"{p.local}.{p.domain}",
    lambda p: f"{p.local}@@{p.domain}",
    lambda p: p.at(p.domain.partition(".")[0]),
    lambda p: f"{p.local.replace('.', ' ')} @{p.domain}",
    lambda p: p.at(p.domain.replace(".", ",")),
    lambda p: p.at(p.domain.replace(".", "..")),
    lambda p: f"{p.local}.@{p.domain}",
    lambda p: f".{p.email}",
    lambda p: f"{p.local}..{plain_letters(p.family)}@{p.domain}",
    lambda p: f"{p.local}@",
    lambda p: f"@{p.domain}",
    lambda p: f"{p.local}(at){p.domain}",
    lambda p: f"{p.local} at {p.domain}",
    lambda p: f"www.{p.domain}",
    lambda p: f"https://{p.domain}/contact",
    lambda p: f'<a href="mailto:{p.email}">{p.email}</a>',
    lambda p: p.at(f"-{p.domain}"),
)
WRAPPINGS: tuple[Callable[[Person], str], ...] = (
    lambda p: f"{p.first} {p.family} <{p.email}>",
    lambda p: f"{p.first} {p.family} <{p.email}>",
    lambda p: f'"{p.family}, {p.first}" <{p.email}>',
    lambda p: f"<{p.email}>",
)


@dataclass(frozen=True)
class Mess:
    """A kind of e-mail cell."""

    name: str  # unique
    rows: int  # of the file
    people: tuple[str, ...]  # groups in which it occurs, see `sample_people.make_person`
    cell: MakeCell
    why: str
    repeats: bool = False  # a person who is in the file already


ANYBODY = ("consumer", "business", "business")
CONSUMER, BUSINESS = ("consumer",), ("business",)


def as_is(dice: Dice, person: Person) -> Cell:
    return person.email


def spread_case(dice: Dice, person: Person) -> Cell:
    return dice.pick((person.email.upper(), person.email.title(), f"{person.local.title()}@{person.domain.upper()}"))


def padded(*around: str) -> MakeCell:
    """A cell with blanks before, after or on both sides."""
    shapes = ("{0}{1}", "{1}{0}", "{0}{1}{0}")
    return lambda dice, person: dice.pick(shapes).format(dice.pick(around), person.email)


def mailto(dice: Dice, person: Person) -> Cell:
    return dice.turn("link", ("mailto:{}", "mailto:{}", "MAILTO:{}", "mailto:{}?subject=Hello")).format(person.email)


def two_addresses(dice: Dice, person: Person) -> Cell:
    second = f"{dice.word(ROLES)}@{person.domain}"
    return dice.turn("two", ("{}; {}", "{}, {}", "{} / {}", "{}\n{}")).format(person.email, second)


def two_with_names(dice: Dice, person: Person) -> Cell:
    return f"{person.first} {person.family} <{person.email}>; Office <office@{person.domain}>"


def in_form(stream: str, forms: tuple[str, ...]) -> MakeCell:
    """A cell with the address in each of the forms in turn."""
    return lambda dice, person: dice.turn(stream, forms).format(person.email, person.local, person.domain)


def invisible(dice: Dice, person: Person) -> Cell:
    at = dice.below(len(person.local) + 1)
    return person.email[:at] + dice.turn("invisible", ZERO_WIDTH) + person.email[at:]


def fictional_number(dice: Dice, country: str) -> str:
    """A phone number from a range reserved for fiction; empty if we know none for the country."""
    make = FICTION.get(country)
    return make(dice) if make else ""


FICTION: dict[str, Callable[[Dice], str]] = {
    "DE": lambda dice: f"+49 30 23125 {dice.below(1000):03}",
    "GB": lambda dice: f"+44 7700 900{dice.below(1000):03}",
    "US": lambda dice: f"(212) 555-01{dice.below(100):02}",
    "CA": lambda dice: f"+1 416 555 01{dice.below(100):02}",
    "FR": lambda dice: f"01 99 00 {dice.below(100):02} {dice.below(100):02}",
}


def number_cell(dice: Dice, person: Person) -> Cell:
    return 493023125000 + dice.below(1000)


def date_cell(dice: Dice, person: Person) -> Cell:
    return date(2023, 1, 5) + timedelta(days=dice.below(700))


# The remaining cells, up to ROWS, are ordinary addresses. The rows of the file are shuffled.
MESS: tuple[Mess, ...] = (
    # Valid addresses with a property worth knowing
    Mess("role account", 66, BUSINESS, lambda d, p: f"{d.word(ROLES)}@{p.domain}", "names a function, not a person"),
    Mess(
        "disposable",
        36,
        CONSUMER,
        lambda d, p: p.at(d.turn("throwaway", THROWAWAY.split())),
        "a mailbox that is thrown away",
    ),
    Mess("plus tag", 16, CONSUMER, lambda d, p: f"{p.local}+crm@{p.domain}", "a sub-address of the same mailbox"),
    Mess("IDN domain", 20, ("international",), as_is, "a domain that is not ASCII"),
    Mess(
        "internationalised local part",
        8,
        ("international",),
        lambda d, p: d.turn("mailbox", WORLD_MAILBOXES),
        "a mailbox that needs SMTPUTF8",
    ),
    Mess("unusual DNS", 24, ("unusual",), as_is, "implicit MX, aliases, exchanges nobody can reach, listed ones"),
    # The same person again
    Mess("duplicate", 30, ANYBODY, as_is, "entered twice", repeats=True),
    Mess("duplicate in another case", 34, ANYBODY, spread_case, "entered twice, in another case", repeats=True),
    # No address
    Mess("empty", 205, ANYBODY, lambda d, p: None, "never asked for"),
    Mess("only blanks", 14, ANYBODY, lambda d, p: d.pick((" ", "   ", "\u00a0")), "looks empty and is not"),
    Mess(
        "placeholder", 22, ANYBODY, lambda d, p: d.turn("placeholder", PLACEHOLDERS.split()), "the field was mandatory"
    ),
    # An address with something around it, which `clean` removes
    Mess("blanks around", 34, ANYBODY, padded(" ", "  ", "\t"), "copied with blanks"),
    Mess("no-break space", 12, ANYBODY, padded("\u00a0"), "copied from a web page"),
    Mess("display name", 30, ANYBODY, lambda d, p: d.turn("wrapping", WRAPPINGS)(p), "copied from a mail client"),
    Mess("mailto", 14, ANYBODY, mailto, "copied from a link"),
    Mess(
        "trailing punctuation",
        16,
        ANYBODY,
        lambda d, p: p.email + d.pick((";", ";", ",", ".", "; ")),
        "the separator of a list came along",
    ),
    Mess("invisible character", 10, ANYBODY, invisible, "zero-width characters cannot be seen and break the address"),
    Mess("label", 14, ANYBODY, in_form("label", LABELS), "the name of the field came along"),
    Mess("HTML", 8, ANYBODY, in_form("html", HTML), "copied from the source of a web page"),
    Mess("full-width sign", 6, ANYBODY, lambda d, p: f"{p.local}\uff20{p.domain}", "typed with an East Asian keyboard"),
    Mess("sign in brackets", 8, ANYBODY, in_form("bracket", BRACKETS), "written so that robots do not read it"),
    Mess("words beside", 10, ANYBODY, in_form("beside", BESIDE), "a note or a phone number in the same cell"),
    Mess("in quotes", 6, ANYBODY, lambda d, p: d.pick(("'{}'", '"{}"')).format(p.email), "quoted twice on the way"),
    # Not an address
    Mess("two in one", 10, ANYBODY, two_addresses, "two addresses where one belongs"),
    Mess("two with names", 6, BUSINESS, two_with_names, "the recipients of a message, pasted"),
    Mess("malformed", 36, ANYBODY, lambda d, p: d.turn("broken", BROKEN)(p), "typed wrongly, or something else"),
    Mess("phone number", 8, ANYBODY, lambda d, p: fictional_number(d, "DE"), "typed into the wrong field"),
    Mess("number", 6, ANYBODY, number_cell, "a phone number that a spreadsheet made a number of, 4.93023E+11 in CSV"),
    Mess("date", 3, ANYBODY, date_cell, "something that a spreadsheet made a date of"),
    Mess("spreadsheet error", 4, ANYBODY, lambda d, p: d.turn("error", SPREADSHEET_ERRORS), "a formula went wrong"),
    Mess("formula text", 4, ANYBODY, lambda d, p: f'="{p.email}"', "the way exports keep spreadsheets from guessing"),
    # Well formed, but without mail
    Mess("typo", 46, CONSUMER, lambda d, p: p.at(d.turn("slip", SLIPS.split())), "a slip in a well-known domain"),
    Mess("closed", 38, ("closed",), as_is, "the organisation's domain is gone"),
    Mess("takes no mail", 14, ("no mail",), as_is, "a null MX (RFC 7505), or a parked domain without any"),
    # Unknown today
    Mess("DNS trouble", 46, ("trouble",), as_is, "its name servers time out, fail or refuse: unknown, not invalid"),
)
