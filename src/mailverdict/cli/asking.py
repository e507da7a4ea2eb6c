"""Commands about one address, a service, this host, journals and lists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import mailverdict as mv

from ..errors import InputError
from ..model.words import ValidationType
from ..reports.explain import printable
from ..reports.summary import MEANING_OF_VALID
from .terminal import USAGE, Email, Json, Kind, ResolverAt, Sandbox, Service, app, chosen_backend, fail, tell

__all__ = ["audit_host", "check", "explain", "quota"]

lists_app = typer.Typer(
    help="Show the lists behind the flags, or update the disposable one.", invoke_without_command=True
)
app.add_typer(lists_app, name="lists")


@app.command()
def check(
    email: Email,
    validation_type: Kind = ValidationType.SMTP,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    as_json: Json = False,
) -> None:
    """Verify one address now."""
    with chosen_backend(backend, sandbox=sandbox, resolver=resolver) as asked:
        found = mv.check(email, validation_type=validation_type, backend=asked)
    print(json.dumps(found.to_dict(), ensure_ascii=False, indent=2) if as_json else render_verification(found))


@app.command()
def explain(
    email: Email,
    validation_type: Kind = ValidationType.SMTP,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
) -> None:
    """Show the evidence behind a verdict, step by step."""
    with chosen_backend(backend, sandbox=sandbox, resolver=resolver) as asked:
        print(mv.explain(email, validation_type=validation_type, backend=asked))


@app.command()
def quota(backend: Service = None, as_json: Json = False) -> None:
    """Ask a verification service how much of today's quota is left."""
    if backend is None:
        raise mv.SettingsError("which service? give --backend URL")
    found = mv.quota(backend)
    left = {"daily_limit": found.daily_limit, "used": found.used, "remaining": found.remaining}
    print(json.dumps(left) if as_json else f"{found.remaining:,} of {found.daily_limit:,} addresses left today")


@app.command("audit-host")
def audit_host(
    resolver: ResolverAt = None,
    helo_name: Annotated[str | None, typer.Option(help="Our name in EHLO.", envvar="MAILVERDICT_HELO_NAME")] = None,
    address: Annotated[str | None, typer.Option(help="Our address as servers see it.")] = None,
    port: Annotated[int, typer.Option(help="SMTP port.")] = 25,
) -> None:
    """Look whether mail servers will answer this host. Exit 1 if it is not fit to ask."""
    backend = mv.LocalBackend(resolver=resolver, helo_name=helo_name, smtp_port=port)
    found = mv.audit_host(backend, address=address)
    print(found)
    if not found.is_fit:
        raise typer.Exit(1)


@app.command()
def runs(
    journal: Annotated[str, typer.Option(help="The journal file; 'auto': the user's own.")] = "auto",
    export: Annotated[Path | None, typer.Option(help="Write every settled answer to this Parquet file.")] = None,
    as_json: Json = False,
) -> None:
    """List what a journal holds: settled answers and jobs in flight, by type and service."""
    from ..runs.journal.journal import open_journal  # noqa: PLC0415 - brings SQLite
    from ..runs.opening import default_journal  # noqa: PLC0415 - as above

    path = default_journal() if journal == "auto" else Path(journal)
    if not path.exists():
        raise InputError(f"{path}: there is no journal")
    with open_journal(path) as opened:
        entries = opened.runs()
        if export is not None:
            opened.export(export)
            tell(f"written: {export}")
    if as_json:
        print(json.dumps([{name: getattr(e, name) for name in e.__slots__} for e in entries], indent=2))
    else:
        tell(str(path))
        print("\n".join(render_entry(entry) for entry in entries) or "nothing yet")


def render_entry(entry: Any) -> str:
    """One key of a journal on one line."""
    verdicts = ", ".join(f"{verdict} {count:,}" for verdict, count in entry.verdicts.items() if count)
    left = (
        f"; {entry.in_flight:,} in flight, {entry.uncertain:,} uncertain" if entry.in_flight or entry.uncertain else ""
    )
    return f"{entry.key}: {entry.settled:,} settled ({verdicts or 'none'}){left}"


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
        made = f"{row['licence']:<8} {row['date']}  {row['source']} ({row['origin']})"
        print(f"{row['list']:<20}{row['rows']:>8,} rows  {made}")


@lists_app.command()
def update(
    source: Annotated[str | None, typer.Option(help="URL or file; the list's own source when not given.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the difference and write nothing.")] = False,
    accept: Annotated[list[str] | None, typer.Option(help="Let this guard pass: loss or gain.")] = None,
) -> None:
    """Fetch the disposable list anew; the only command that fetches a list, and never done by itself."""
    from ..checks.lists.update import DEFAULT_SOURCE, update_disposable  # noqa: PLC0415 - only this command needs it

    found = update_disposable(fetch, source=source or DEFAULT_SOURCE, dry_run=dry_run, accept=tuple(accept or ()))
    print(found.to_text())
    if found.refusals:
        fail("the new edition was refused; the list in use stays", USAGE)


def fetch(source: str) -> bytes:
    """The bytes of a URL or a file."""
    if source.startswith(("http://", "https://")):
        from ..remote.client import download  # noqa: PLC0415 - brings httpx

        return download(source)
    return Path(source).read_bytes()


def render_verification(found: mv.Verification) -> str:
    """One address for a person."""
    lines = [f"{found.email}: {found.result}" + (f" ({', '.join(found.reasons)})" if found.reasons else "")]
    lines += [f"  {fault.code}: {fault.message}" for fault in found.errors or ()]
    flags = {
        name: getattr(found, name) for name in ("role", "spamtrap", "disposable", "free", "catch_all", "protected")
    }
    if known := [f"{name}={str(value).lower()}" for name, value in flags.items() if value is not None]:
        lines.append(f"  flags: {', '.join(known)}")
    lines.append(f"  ({MEANING_OF_VALID[ValidationType(found.validation_type)]})")
    return "\n".join(map(printable, lines))
