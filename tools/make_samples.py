"""Make the files in data/samples: one made-up CRM export in four formats, and a suppression list.

Run ``python -m tools.make_samples`` from the root of a checkout. The same seed gives the same files.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import xlsxwriter

from .sample_mess import MESS, ROWS, Cell, Mess, as_is, fictional_number
from .sample_people import Dice, Person, make_person

__all__ = ["FILES", "Contact", "make_contacts", "write_samples"]

SAMPLES = Path(__file__).parents[1] / "data" / "samples"
SEED = 20_260_301
FIRST_DAY, DAYS = date(2017, 2, 6), 3_300
FIRST_ID = 10_001
MADE_AT = datetime(2026, 3, 1)  # noqa: DTZ001 - workbooks know no zones; fixed, so that the file is always the same

AS_IT_SHOULD_BE = Mess(
    "as it should be", ROWS - sum(mess.rows for mess in MESS), ("consumer", "business"), as_is, "most of the file"
)
NOTES = (
    "met at the spring fair", "prefers to be called in the morning", "invoice by post, please", "VIP", "asked twice",
    "moved from Lindenstraße 4; new address unknown", "wants the \"small\" catalogue", "Grüße von Frau Föhrensang",
    "two lines:\nthis is the second", "a; b; c, and d", "<b>do not call</b>", "<script>alert('crm')</script>",
    "<img src=x onerror=alert(1)>", "=1+1", "=SUM(A1:A3)", "+1 for the newsletter", "-> see ticket 4711", "@reception",
    "☎ twice, no answer", "100 % satisfied", "O'Dunharrow's colleague", "tab\there",
)  # fmt: skip
BILLING = (
    "accounts@{domain}", "accounts@{domain}", "billing@{domain}", "invoices@{domain}", "{email}", "Billing@{DOMAIN}",
    "accounts@{domain}; {email}", "same as above", " office@{domain}",
)  # fmt: skip


@dataclass(frozen=True)
class Contact:
    """A row of the export, in the types of a workbook."""

    contact_id: int
    first_name: str | None
    last_name: str | None
    company: str | None
    country: str
    email: Cell
    billing_email: str | None
    phone: str | None
    created_at: date
    newsletter: bool | None
    lifetime_value: float | None
    notes: str | None


PLAIN_ADDRESS = re.compile(r"[a-z0-9]+(\.[a-z0-9]+)*@[a-z0-9-]+(\.[a-z0-9-]+)+")
COLUMNS = tuple(field.name for field in fields(Contact))


def make_contacts(seed: int = SEED) -> list[Contact]:
    """Make all rows, in the order of the file."""
    dice = Dice(seed)
    kinds = [mess for mess in (AS_IT_SHOULD_BE, *MESS) for _ in range(mess.rows)]
    people: list[Person] = []
    contacts = []
    for number, mess in enumerate(dice.shuffled(kinds)):
        repeated = mess.repeats and bool(people)
        person = dice.pick(people) if repeated else make_person(dice, dice.pick(mess.people))
        contacts.append(make_contact(dice, FIRST_ID + number, person, mess.cell(dice, person)))
        if mess is AS_IT_SHOULD_BE:
            people.append(person)
    return contacts


def make_contact(dice: Dice, number: int, person: Person, email: Cell) -> Contact:
    """The other columns of a row, about half of them empty."""
    is_business = bool(person.company)
    return Contact(
        contact_id=number,
        first_name=person.first if dice.chance(0.97) else None,
        last_name=person.family,
        company=person.company or None,
        country=person.country,
        email=email,
        billing_email=billing(dice, person) if is_business and dice.chance(0.45) else None,
        phone=fictional_number(dice, person.country) or None if dice.chance(0.6) else None,
        created_at=FIRST_DAY + timedelta(days=dice.below(DAYS)),
        newsletter=dice.pick((True, True, False, None)),
        lifetime_value=dice.below(900_000 if is_business else 60_000) / 100 if dice.chance(0.7) else None,
        notes=dice.turn("note", NOTES) if dice.chance(0.24) else None,
    )


def billing(dice: Dice, person: Person) -> str:
    return dice.turn("billing", BILLING).format(domain=person.domain, DOMAIN=person.domain.upper(), email=person.email)


@dataclass(frozen=True)
class CsvStyle:
    """How spreadsheets of a country write CSV."""

    delimiter: str
    newline: str
    encoding: str
    decimal: str
    day: str


PLAIN = CsvStyle(",", "\n", "utf-8", ".", "%Y-%m-%d")
GERMAN_EXCEL = CsvStyle(";", "\r\n", "utf-8-sig", ",", "%d.%m.%Y")


def as_text(value: Cell | float, style: CsvStyle) -> str:
    """A cell as a spreadsheet shows it, and therefore writes it."""
    for kind, render in RENDER:
        if isinstance(value, kind):
            return render(value, style)
    return "" if value is None else str(value)


def render_number(value: int, style: CsvStyle) -> str:
    """Twelve digits and more are shown with an exponent, so that a CSV loses most of them."""
    return str(value) if value < 10**11 else f"{value:.5E}".replace(".", style.decimal)


RENDER: tuple[tuple[type, Callable[[Any, CsvStyle], str]], ...] = (
    (bool, lambda value, style: "yes" if value else "no"),
    (int, render_number),
    (float, lambda value, style: f"{value:.2f}".replace(".", style.decimal)),
    (date, lambda value, style: value.strftime(style.day)),
)


def render_csv(contacts: Sequence[Contact], style: CsvStyle) -> bytes:
    """A whole CSV file."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=style.delimiter, lineterminator=style.newline)
    writer.writerow(COLUMNS)
    writer.writerows([as_text(value, style) for value in astuple(contact)] for contact in contacts)
    return buffer.getvalue().encode(style.encoding)


def to_table(contacts: Sequence[Contact]) -> pa.Table:
    """Typed columns; the addresses are text as in the CSV."""
    table = pa.Table.from_pylist([vars(contact) | {"email": email_text(contact)} for contact in contacts], PARQUET)
    return table.replace_schema_metadata(None)


def email_text(contact: Contact) -> str | None:
    return None if contact.email is None else as_text(contact.email, PLAIN)


TEXT = pa.string()
TYPES = {"contact_id": pa.int64(), "created_at": pa.date32(), "newsletter": pa.bool_(), "lifetime_value": pa.float64()}
PARQUET = pa.schema([(name, TYPES.get(name, TEXT)) for name in COLUMNS])


def render_parquet(contacts: Sequence[Contact]) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(to_table(contacts), sink)
    return sink.getvalue()


def render_xlsx(contacts: Sequence[Contact]) -> bytes:
    """A workbook with numbers, dates and booleans, some of them in the wrong column."""
    sink = io.BytesIO()
    options = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(sink, options) as book:
        book.set_properties({"title": "CRM export (made up)", "created": MADE_AT})
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        sheet = book.add_worksheet("contacts")
        sheet.write_row(0, 0, COLUMNS)
        sheet.freeze_panes(1, 0)
        for at, row in enumerate(cells_of(contacts), start=1):
            write_row(sheet, at, row, day)
    return sink.getvalue()


def cells_of(contacts: Sequence[Contact]) -> Iterator[tuple[Any, ...]]:
    yield from (astuple(contact) for contact in contacts)


def write_row(sheet: Any, at: int, row: tuple[Any, ...], day: Any) -> None:
    for column, value in enumerate(row):
        if isinstance(value, date):
            sheet.write_datetime(at, column, datetime(value.year, value.month, value.day), day)  # noqa: DTZ001
        elif value is not None:
            sheet.write(at, column, value)


def render_readme(contacts: Sequence[Contact]) -> bytes:
    """The page that explains the files."""
    table = "\n".join(f"| {mess.name} | {mess.rows:,} | {mess.why} |" for mess in (AS_IT_SHOULD_BE, *MESS))
    return README.format(rows=len(contacts), seed=SEED, table=table).encode()


def render_unsubscribed(contacts: Sequence[Contact]) -> bytes:
    """Addresses of some contacts, in other spellings, and a domain: a suppression list as a sender keeps it."""
    plain = [c.email for c in contacts if isinstance(c.email, str) and PLAIN_ADDRESS.fullmatch(c.email)]
    spellings = (str.lower, str.upper, str, lambda email: f"<{email}>")
    entries = [spellings[at % len(spellings)](email) for at, email in enumerate(plain[::37])]
    return "\n".join(["# unsubscribed or complained, until 2026-02-28", "@trashmail.com", *entries, ""]).encode()


README = """\
# A made-up CRM export

{rows:,} contacts of a firm that does not exist, with the mess that real exports have. It is what `make demo` verifies.

| file | what it is |
|---|---|
| `crm_export.csv` | UTF-8, commas |
| `crm_export_semicolon.csv` | as a German Excel writes it: semicolons, byte order mark, CRLF, `4,50`, `31.12.2025` |
| `crm_export.xlsx` | with the types of a workbook: dates and numbers, some of them in the `email` column |
| `crm_export.parquet` | with typed columns; `email` is text |
| `unsubscribed.txt` | addresses, in other spellings, and a domain that must not be mailed |

All four exports hold the same rows. Columns: `contact_id`, `first_name`, `last_name`, `company`, `country`, `email`,
`billing_email`, `phone`, `created_at`, `newsletter`, `lifetime_value`, `notes`. Some notes hold markup or begin with
`=`, `+` or `@`, as they do in the wild: whoever shows or exports them has to escape them.

## Nobody in it is real

Family names are invented and put together with common first names by chance; organisations are made up; phone numbers
come from ranges that regulators keep for fiction. Some domains bear the names of real mail providers, because a column
without them would be no CRM export. **Verify these files against the sandbox** (`--sandbox`, or
`mailverdict.sandbox.World`): it answers for all of these domains on this machine. Asking real mail servers about
made-up mailboxes would only waste their time.

## What is in the `email` column

| kind | rows | why |
|---|---|---|
{table}

## How it was made

`python -m tools.make_samples` writes every file here, this page too; the same seed ({seed}) gives the same rows. The
kinds of mess are one table in `tools/sample_mess.py`, people and organisations are in `tools/sample_people.py`. A test
holds the files to what the generator makes.
"""

FILES: dict[str, Callable[[Sequence[Contact]], bytes]] = {
    "README.md": render_readme,
    "crm_export.csv": lambda contacts: render_csv(contacts, PLAIN),
    "crm_export_semicolon.csv": lambda contacts: render_csv(contacts, GERMAN_EXCEL),
    "crm_export.xlsx": render_xlsx,
    "crm_export.parquet": render_parquet,
    "unsubscribed.txt": render_unsubscribed,
}


def write_samples(folder: Path) -> list[Path]:
    """Write all files and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    contacts = make_contacts()
    for name, render in FILES.items():
        (folder / name).write_bytes(render(contacts))
    return [folder / name for name in FILES]


if __name__ == "__main__":
    for path in write_samples(SAMPLES):
        print(f"{path.stat().st_size:>9,} {path.name}", file=sys.stderr)
