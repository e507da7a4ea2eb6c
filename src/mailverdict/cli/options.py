"""The options of the command line, and groups of options that several commands have.

A group is a function whose parameters are options, with a decorator for the commands that have
them::

    @with_read_options
    def plan(file: File, *, reading: ReadOptions) -> None

This command has the options of `read_options`, such as ``--encoding``, and `reading` is what
`read_options` returns.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import typer

from ..files.table_file import ReadOptions
from ..model.words import ValidationType

Command = TypeVar("Command", bound=Callable[..., Any])


def parse_kind(text: str) -> ValidationType:
    """The type of ``--type``, in any case."""
    try:
        return ValidationType(str(text).strip().lower())
    except ValueError:
        choices = ", ".join(f"'{kind}'" for kind in ValidationType)
        raise typer.BadParameter(f"{str(text)[:40]!r} is not one of {choices}") from None


File = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, Parquet, Arrow, JSON, workbook or vCard file, "
        "a folder of Parquet files, or '-'."
    ),
]
ColumnName = Annotated[
    str | None, typer.Option("--column", "-c", help="Column of addresses; guessed when not given.")
]
Kind = Annotated[
    ValidationType,
    typer.Option(
        "--type",
        "-t",
        help="How deep each address is verified.",
        parser=parse_kind,
        metavar=f"[{'|'.join(ValidationType)}]",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="File to write; its ending decides the kind; '-' is CSV on standard output.",
    ),
]
Service = Annotated[str | None, typer.Option("--backend", help="URL of a verification service.")]
Sandbox = Annotated[
    bool,
    typer.Option("--sandbox", help="Ask made-up servers on this machine instead of real ones."),
]
ResolverAt = Annotated[
    str | None, typer.Option("--resolver", help="DNS resolver, as 127.0.0.1:5353.")
]
RESOLVER_CHECK = typer.Option(
    "--resolver-check/--no-resolver-check",
    help="Test the DNS resolver first; turn it off on a private network "
    "whose resolver knows only its own names.",
)
ResolverCheck = Annotated[bool, RESOLVER_CHECK]
ServiceResolverCheck = Annotated[bool | None, RESOLVER_CHECK]  # None: as the service's settings say
SmtpPort = Annotated[int | None, typer.Option(help="Port of the mail servers; 25 except in tests.")]
HeloName = Annotated[str | None, typer.Option(help="Name of this host in EHLO.")]
AllowNetwork = Annotated[
    list[str] | None, typer.Option(help="Private network that may be contacted.")
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of a CSV; guessed when not given.")
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", help="Delimiter of a CSV; detected when not given.")
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet", help="Sheet of a workbook; by default the first with a column of addresses."
    ),
]
EscapeFormulas = Annotated[
    bool,
    typer.Option(
        "--escape-formulas",
        help="Put an apostrophe before text of your own columns "
        "that a spreadsheet would run as a formula; in a CSV.",
    ),
]
HasHeader = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line has the column names; found out by default.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Refuse a CSV with rows of a wrong length or bytes not in its encoding."
    ),
]
InPlace = Annotated[bool, typer.Option("--in-place", help="Let the output replace the input file.")]
Clean = Annotated[
    bool,
    typer.Option(
        "--clean/--no-clean",
        help="Repair each cell first, and verify the repaired address (on by default).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no summary.")]
FailAbove = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-above",
        metavar="NAME=LIMIT",
        help="Exit with status 5 if more rows than this have a verdict or status, "
        "as unknown=5% or invalid=100; "
        "may be given several times.",
    ),
]
Email = Annotated[str, typer.Argument(help="The address.")]
JournalAt = Annotated[
    str, typer.Option("--journal", help="File that keeps answers; 'auto', or 'none'.")
]
Prefix = Annotated[
    str | None,
    typer.Option("--prefix", help="Prefix of each new column's name; COLUMN_ when not given."),
]
PolicyName = Annotated[str | None, typer.Option("--policy", help="strict, balanced or lenient.")]
ForService = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="SERVICE",
        help="With --policy: two more files beside the output for the importer of "
        "hubspot, mailchimp, "
        "brevo, klaviyo or salesforce: those to send to, and those to unsubscribe.",
    ),
]
Audience = Annotated[
    str,
    typer.Option(
        "--audience", help="Who reads the report: analyst, all of it; or manager, one page."
    ),
]
Earlier = Annotated[
    str | None,
    typer.Option(
        "--earlier",
        help="An earlier verified file of the list: the report shows what changed; "
        "its rows are in memory.",
    ),
]
Suppress = Annotated[
    str | None,
    typer.Option("--suppress", help="List of people who must not be mailed; marks their rows."),
]
SuppressWhere = Annotated[
    list[str] | None,
    typer.Option(
        "--suppress-where",
        metavar="COLUMN=VALUE",
        help="Mark rows whose own column says no, as 'opt_out=yes'; may be given several times.",
    ),
]
AgainstColumn = Annotated[
    str | None,
    typer.Option(
        "--against-column",
        help="Column of addresses in the file of --suppress, --known or a suppression list.",
    ),
]
KeepRepeats = Annotated[
    bool,
    typer.Option(
        "--keep-repeats",
        help="With --policy or --report: send to all rows of a mailbox, not only to the first.",
    ),
]
Known = Annotated[
    str | None,
    typer.Option(
        "--known",
        help="Another verifier's export, or a verified file: "
        "addresses that are valid or invalid there are not verified again.",
    ),
]
Mapped = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="NAME=VALUE",
        help="Columns and words of another verifier that is not known, as "
        "email=Address,status=Result,good=valid; may be given several times.",
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", help="Verify at most this many new addresses.")
]
MaxAge = Annotated[
    str | None,
    typer.Option(
        "--max-age",
        help="How long a kept answer is used, by default 30D; if given, older answers of "
        "--known are not used either.",
    ),
]
Refresh = Annotated[
    str, typer.Option("--refresh", help="Verdicts to verify again, separated by commas.")
]
Offline = Annotated[bool, typer.Option("--offline", help="Do not use the network.")]


Bounces = Annotated[
    str,
    typer.Option(
        "--bounces",
        help="What became of the mails: mbox, Maildir, .eml, a folder of these, or a table.",
    ),
]
BounceColumns = Annotated[
    str | None,
    typer.Option(
        "--bounce-columns",
        help="Columns of a table of bounces that is not known, "
        "as address=Recipient,outcome=Result,diagnostic=Reply.",
    ),
]


def parse_journal(journal: str) -> str | Path | None:
    if journal == "none":
        return None
    return journal


def split_list(text: str) -> list[str]:
    """The values of a list separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    return [part for part in parts if part]


def add_options(group: Callable[..., Any], name: str) -> Callable[[Command], Command]:
    """A decorator that gives a command the options of a group in the place of its parameter `name`.

    That parameter gets what `group` returns.
    """
    options = inspect.signature(group, eval_str=True).parameters

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if parameter.name == name:
                for option in options.values():
                    parameters.append(option.replace(kind=option.KEYWORD_ONLY))
            else:
                parameters.append(parameter)

        @wraps(command)
        def command_with_options(**given: Any) -> Any:
            of_group = {option: given.pop(option) for option in options}
            return command(**given, **{name: group(**of_group)})

        shown = signature.replace(parameters=parameters)
        command_with_options.__signature__ = shown  # type: ignore[attr-defined]
        return cast("Command", command_with_options)

    return decorate


def read_options(
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    sheet: Sheet = None,
    header: HasHeader = None,
    strict: Strict = False,
) -> ReadOptions:
    """How a table file is read."""
    return ReadOptions(encoding, delimiter, sheet, has_header=header, is_strict=strict)


def host_options(
    resolver: ResolverAt = None,
    resolver_check: ServiceResolverCheck = None,
    smtp_port: SmtpPort = None,
    helo_name: HeloName = None,
    allow_network: AllowNetwork = None,
) -> dict[str, Any]:
    """Settings of the host that verifies for a service, by name; None: not given."""
    return {
        "resolver": resolver,
        "resolver_check": resolver_check,
        "smtp_port": smtp_port,
        "helo_name": helo_name,
        "allow_networks": allow_network,
    }


with_read_options = add_options(read_options, "reading")
with_host_options = add_options(host_options, "host_settings")
