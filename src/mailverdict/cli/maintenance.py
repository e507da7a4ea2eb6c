"""Commands for the files that mailverdict keeps on this machine: runs (journals) and lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..model.paths import user_path
from ..model.words import ValidationType, count_of
from .options import Json
from .status import exit_with_error, print_status
from .terminal import USAGE, app

lists_app = typer.Typer(
    help="Show the lists behind the flags, or update the disposable one.",
    invoke_without_command=True,
)
app.add_typer(lists_app, name="lists")


@app.command()
def runs(
    journal: Annotated[
        str, typer.Option(help="The journal file; 'auto': the default one.")
    ] = "auto",
    export: Annotated[
        Path | None, typer.Option(help="Parquet file to write all answers to.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the contents of a journal.

    Counts the addresses that were verified, and the jobs of a service that are not done, by type
    and service.
    """
    from ..runs.journal.journal import Journal  # noqa: PLC0415 - brings SQLite
    from ..runs.options import default_journal  # noqa: PLC0415 - as above

    path = default_journal() if journal == "auto" else user_path(journal)
    if not path.exists():
        raise InputError(f"{path}: no such journal")
    with Journal(path) as opened:
        entries = opened.summary()
        if export is not None:
            opened.export(export)
            print_status(f"written: {export}")
    if as_json:
        records = []
        for entry in entries:
            records.append({name: getattr(entry, name) for name in entry.__slots__})
        print(json.dumps(records, indent=2))
    else:
        print_status(str(path))
        print("\n".join(map(render_entry, entries)) or "empty")


def render_entry(entry: Any) -> str:
    """One line for one key of a journal."""
    from ..reports.wording import CHECKS  # noqa: PLC0415 - only this command needs it
    from ..runs.journal.recall import parse_key  # noqa: PLC0415 - brings SQLite

    validation_type, service = parse_key(entry.key)
    name = entry.key
    if validation_type:
        place = service or "this computer"
        name = f"{CHECKS[ValidationType(validation_type)]}, by {place}"
    verdicts = []
    for verdict, count in entry.verdicts.items():
        if count:
            verdicts.append(f"{verdict} {count:,}")
    checked = f"{count_of(entry.settled, 'address')} checked"
    if verdicts:
        checked += f" ({', '.join(verdicts)})"
    parts = [checked]
    if entry.in_flight:
        parts.append(f"{entry.in_flight:,} paid for, without an answer yet")
    if entry.uncertain:
        lost = "perhaps paid for: the reply to their submission was lost"
        parts.append(f"{entry.uncertain:,} {lost}")
    return f"{name}: {'; '.join(parts)}"


@lists_app.callback()
def lists(context: typer.Context, as_json: Json = False) -> None:
    """Show the lists behind the flags."""
    if context.invoked_subcommand is not None:
        return
    from ..checks.lists.update import describe_lists  # noqa: PLC0415 - only this command needs it

    rows = describe_lists()
    if as_json:
        print(json.dumps(rows, default=str, indent=2))
        return
    for row in rows:
        origin = f"{row['licence']:<8} {row['date']}  {row['source']} ({row['origin']})"
        print(f"{row['list']:<20}{row['rows']:>8,} rows  {origin}")


@lists_app.command()
def update(
    source: Annotated[
        str | None, typer.Option(help="URL or file; the default source when not given.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the changes and write nothing.")
    ] = False,
    accept: Annotated[
        list[str] | None, typer.Option(help="Accept this change despite its size: loss or gain.")
    ] = None,
) -> None:
    """Download the disposable list. No other command downloads a list."""
    # Only this command needs it.
    from ..checks.lists.update import DEFAULT_SOURCE, update_disposable  # noqa: PLC0415

    source = source or DEFAULT_SOURCE
    edition = update_disposable(fetch, source=source, dry_run=dry_run, accept=tuple(accept or ()))
    print(edition.to_text())
    if edition.refusals:
        exit_with_error("the new edition was refused; the current list stays in use", USAGE)


def fetch(source: str) -> bytes:
    if source.startswith(("http://", "https://")):
        from ..remote.client import download  # noqa: PLC0415 - brings httpx

        return download(source)
    return user_path(source).read_bytes()
