"""What ``make demo`` shows: a messy CRM export verified against the sandbox, on this machine, in seconds."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd
import pyarrow as pa

import mailverdict as mv
from mailverdict.files.writers import FormulaColumns, create_table
from mailverdict.frames.results import Results
from mailverdict.model.words import ValidationType
from mailverdict.reports.counts import Counts
from mailverdict.reports.summary import render_counts

ROOT = Path(__file__).parents[1]
EXPORT = ROOT / "data" / "samples" / "crm_export.csv"
RESULT = ROOT / "out" / "crm_verified.csv"
UNSUBSCRIBED = ROOT / "data" / "samples" / "unsubscribed.txt"
REPORT = ROOT / "out" / "crm_report.html"
SANDBOX = "This demo uses the sandbox: made-up domains on this machine; no real server is asked."
MESSY = {
    "display name": r"^[^;]+ <\S+@\S+>$",
    "link": "^mailto:",
    "label": "^E-Mail: ",
    "HTML": "^<a href",
    "sign in brackets": r"\[at\]",
    "full-width sign": "\uff20",
    "no-break space": "\u00a0\\S|\\S\u00a0",
    "zero-width space": "\u200b",
    "two addresses": r"@.*[;,] .*@",
    "list separator": ";$",
    "phone number": r"^\+49 30",
    "Excel's number": r"E\+11$",
    "placeholder": "^-$",
    "typo": r"@gmial\.com$",
}
INSTRUCTIVE = (
    "does not exist",
    "accepts no mail",
    "has no mail server",
    "no answer in",
    "SERVFAIL",
    "two dots",
    "There is no @",
)
YOURSELF = """\
Do it yourself, in Python:

    import pandas as pd
    import mailverdict as mv

    df = pd.read_csv("contacts.csv")
    out = mv.verify(df, "email")   # repairs each cell, then asks the DNS; spends nothing
    mv.summary(out, "email")
    mv.report(out, "email", "report.html")
    out.to_csv("verified.csv", index=False)

or on the command line (with --sandbox, as here; leave it out to ask the real DNS):

    .venv/bin/mailverdict verify data/samples/crm_export.csv -c email -t mx -o out/verified.csv --sandbox

or in the browser, without code (installs what the page needs the first time):

    make audit                      # this export, with the sandbox
    make audit FILE=contacts.csv    # a list of yours

README.md explains the other options and what each answer means."""


def main() -> None:
    """Clean, verify and report on the export, and print each step."""
    print(SANDBOX)
    df = pd.read_csv(EXPORT)
    show_mess(df)
    tidied = tidy(df)
    marked = mark(tidied)
    with mv.sandbox.World() as world:
        out = verify(marked, world)
        print(f"With clean=False, {count_valid(df, world):,} rows would be valid.")
        show_origins(out)
        show_reasons(out)
        deep = ask_mailboxes(marked, world)
    write(deep)
    print(YOURSELF)


def headline(text: str) -> None:
    print(f"\n== {text} ==\n")


def show(table: pd.DataFrame) -> None:
    """Print a table with text aligned to the left."""
    numbers = table.select_dtypes("number").columns
    shown = {
        name: table[name].tolist() if name in numbers else align_left(table[name]) for name in table
    }
    print(pd.DataFrame(shown, index=table.index.tolist()).to_string(justify="left"))


def align_left(cells: pd.Series[Any]) -> list[str]:
    """Texts padded to one length, with invisible characters as in a Python literal."""
    texts = ["" if pd.isna(cell) else visible(str(cell)) for cell in cells]
    return [text.ljust(max(map(len, texts))) for text in texts]


def visible(text: str) -> str:
    return text if text.isprintable() and text == text.strip() else repr(text)


def show_mess(df: pd.DataFrame) -> None:
    """Print one row for each kind of mess."""
    headline(
        f"1. A CRM export, {EXPORT.relative_to(ROOT)}: {len(df):,} rows, {len(df.columns)} columns"
    )
    rows = pd.concat(
        [first(df, df["email"].str.contains(pattern, na=False)) for pattern in MESSY.values()]
    )
    show(rows[["contact_id", "last_name", "email"]].set_axis(list(MESSY), axis="index"))
    print(f"\n... and {df['email'].isna().sum():,} rows without any address.")


def first(df: pd.DataFrame, mask: pd.Series[bool]) -> pd.DataFrame:
    return df[mask].head(1)


def tidy(df: pd.DataFrame) -> pd.DataFrame:
    """Show what `explode` and `clean` do; the rows are those of `explode`."""
    headline(
        '2. mv.explode(df, "email"), mv.clean(df, "email"): one address a cell, without what is around it'
    )
    exploded = mv.explode(df, "email")
    print(
        f"{len(df):,} rows become {len(exploded):,}: cells with several addresses are made rows.\n"
    )
    tidied = mv.clean(exploded, "email")
    changed = tidied[tidied["email_change"] != ""]
    show(changed.drop_duplicates("email_change")[["email", "email_clean", "email_change"]].head(8))
    print(
        f"\n{len(changed):,} cells cleaned. A domain is never changed; corrections are only suggested."
    )
    return exploded


def mark(df: pd.DataFrame) -> pd.DataFrame:
    """Mark duplicates and the rows on the suppression list."""
    headline(
        f'3. mv.duplicates(df, "email"), mv.suppress(df, "email", "{UNSUBSCRIBED.relative_to(ROOT)}")'
    )
    marked = mv.suppress(mv.duplicates(df, "email"), "email", UNSUBSCRIBED)
    repeated = marked[marked["email_duplicate_of"].notna()]
    show(
        repeated.drop_duplicates("email_identity")[
            ["email", "email_identity", "email_duplicate_of"]
        ].head(4)
    )
    print(f"\n{len(repeated):,} rows repeat the mailbox of an earlier row; ", end="")
    print(f"{marked['email_suppressed'].sum():,} rows are on the suppression list.")
    return marked


def verify(df: pd.DataFrame, world: mv.sandbox.World) -> pd.DataFrame:
    """Verify the column and show the summary."""
    headline('4. mv.verify(df, "email", validation_type="mx"): a verdict for every row')
    began = perf_counter()
    out: pd.DataFrame = mv.verify(
        df, "email", validation_type="mx", columns="all", backend=world.backend
    )
    took = perf_counter() - began
    sum_up(out, ValidationType.MX)
    print(
        f"\n{len(out):,} rows, {world.dns.count():,} DNS queries, {took:.1f} s; one of the servers never answers."
    )
    return out


def sum_up(out: pd.DataFrame, validation_type: ValidationType) -> None:
    """Print the summary that the command line prints."""
    counts = Counts()
    counts.add(Results(out, "email", None, ("verdict", "why", "status")))
    print(render_counts(counts, validation_type))


def ask_mailboxes(df: pd.DataFrame, world: mv.sandbox.World) -> pd.DataFrame:
    """Verify the mailboxes, and show the summary and the policy."""
    headline('7. mv.verify(df, "email", validation_type="smtp"): does the mailbox exist?')
    began = perf_counter()
    out: pd.DataFrame = mv.verify(
        df, "email", validation_type="smtp", columns="all", backend=world.backend
    )
    took = perf_counter() - began
    sum_up(out, ValidationType.SMTP)
    print(f"\n{took:.1f} s, no mail sent. What to do with each row, mv.split(out, 'email'):")
    print(f"    {mv.split(out, 'email')}")
    return out


def count_valid(df: pd.DataFrame, world: mv.sandbox.World) -> int:
    out = mv.verify(df, "email", validation_type="mx", clean=False, backend=world.backend)
    return int((out["email_verdict"] == "valid").sum())


def show_origins(out: pd.DataFrame) -> None:
    """What the other columns say of the invalid addresses."""
    headline("5. mv.breakdown(out): where the invalid addresses come from")
    print(mv.breakdown(out))
    print()
    print(mv.breakdown(out, "lead_source"))


def show_reasons(out: pd.DataFrame) -> None:
    """Print one row for each reason."""
    headline(
        "6. The reason for each row (columns email_verdict, email_error_message, email_suggestion)"
    )
    message = out["email_error_message"]
    masks = [
        out["email_suggestion"].notna(),
        *(message.str.contains(text, regex=False) for text in INSTRUCTIVE),
    ]
    rows = pd.concat([first(out, mask) for mask in masks])
    show(rows[["email", "email_verdict", "email_error_message", "email_suggestion"]])


def write(out: pd.DataFrame) -> None:
    """Write the file as the command line does: no message is a formula in a spreadsheet."""
    RESULT.parent.mkdir(exist_ok=True)
    with create_table(RESULT, is_escaped=FormulaColumns("email", None, in_all=False)) as writer:
        writer.write(pa.Table.from_pandas(out, preserve_index=False))
    mv.report(out, "email", REPORT)
    headline(f"Written: {RESULT.relative_to(ROOT)}, {len(out):,} rows, {len(out.columns)} columns")
    print(f"A report as a web page: {REPORT.relative_to(ROOT)}, open it in a browser.\n")


if __name__ == "__main__":
    main()
