"""Commands for a service on several hosts: worker, and those for its store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SettingsError
from ..local.backend import LocalBackend
from ..model.words import ValidationType
from .options import split_list, with_host_options
from .settings import service_environment
from .status import print_status
from .terminal import app

if TYPE_CHECKING:
    from ..service import ServiceSettings

store_app = typer.Typer(
    help="Upgrade a service's store, or move it to PostgreSQL.", no_args_is_help=True
)
app.add_typer(store_app, name="store")
ALL_TYPES = tuple(map(str, ValidationType))


@app.command()
@with_host_options
def worker(
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on, for /healthz and /metrics.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port; 0: any free port.")] = 8001,
    store: Annotated[str | None, typer.Option(help="postgresql://...")] = None,
    types: Annotated[
        str, typer.Option(help="What this host can verify, separated by commas.")
    ] = ",".join(ALL_TYPES),
    egress: Annotated[
        str | None,
        typer.Option(
            help="Name of the network by which this host connects; see MAILVERDICT_EGRESS_ROUTES."
        ),
    ] = None,
    tasks: Annotated[
        int, typer.Option(help="Tasks at once; each asks one owner of mail servers.", min=1)
    ] = 100,
    check_port: Annotated[
        bool,
        typer.Option(
            "--check-port/--no-check-port", help="Test first whether port 25 is open, for smtp."
        ),
    ] = True,
    host_settings: dict[str, Any],
) -> None:
    """Verify the jobs of a service on PostgreSQL. MAILVERDICT_* variables set everything else."""
    from ..service import from_environment  # noqa: PLC0415 - an extra
    from ..service.jobs.program import run_worker  # noqa: PLC0415
    from ..service.jobs.worker import WorkerAbilities  # noqa: PLC0415

    settings = from_environment(service_environment(os.environ), store=store, **host_settings)
    network = None
    if egress:
        network = egress.lower()
    abilities = WorkerAbilities(parse_types(types), network, tasks)
    if check_port and ValidationType.SMTP in abilities.types:
        require_port(settings)
    print_status(f"worker for {', '.join(abilities.types)}; http://{host}:{port}/healthz")
    run_worker(settings, abilities, host, port)


def parse_types(text: str) -> tuple[str, ...]:
    """The validation types in a list; at least one."""
    types = tuple(dict.fromkeys(split_list(text)))
    if not types or not set(types).issubset(ALL_TYPES):
        raise SettingsError(
            f"--types {text!r}: give some of {','.join(ALL_TYPES)}, separated by commas"
        )
    return types


def require_port(settings: ServiceSettings) -> None:
    """Refuse `smtp` where port 25 is closed: every answer would be unknown."""
    from ..reports.host_audit import audit_host  # noqa: PLC0415 - only this command needs it

    if settings.local.smtp_port != 25:
        return
    with LocalBackend.from_settings(settings.local) as backend:
        findings = {finding.name: finding for finding in audit_host(backend).findings}
    if findings["port_25"].ok is False:
        others = ",".join(word for word in ALL_TYPES if word != ValidationType.SMTP)
        seen = findings["port_25"].seen
        raise SettingsError(
            f"this host cannot verify by smtp: {seen}. Start it with --types {others}"
        )


@store_app.command()
def upgrade(
    store: Annotated[
        str | None,
        typer.Option(help="sqlite:///jobs.db or postgresql://...; MAILVERDICT_STORE by default."),
    ] = None,
) -> None:
    """Bring a store to this version's schema.

    All jobs and quota stay. Its services and workers must be stopped.
    """
    from ..service import from_environment  # noqa: PLC0415 - an extra
    from ..service.jobs.migration import upgrade as upgrade_store  # noqa: PLC0415

    settings = from_environment(service_environment(os.environ), store=store)
    before, after = upgrade_store(settings.store)
    if before == after:
        print_status(f"schema {after}")
    else:
        print_status(f"schema {before or 'none'} became {after}")


@store_app.command()
def copy(
    source: Annotated[str, typer.Argument(help="sqlite:///jobs.db; its service must be stopped.")],
    target: Annotated[str, typer.Argument(help="postgresql://...; an empty database.")],
) -> None:
    """Copy jobs, results and quota from an SQLite file to PostgreSQL. The file is not changed."""
    from ..service import ServiceSettings  # noqa: PLC0415 - an extra
    from ..service.jobs.migration import copy_store  # noqa: PLC0415

    for url in (source, target):
        ServiceSettings(store=url)  # refuses what is not the URL of a store
    copied = copy_store(source, target)
    print_status(f"copied: {copied.jobs:,} jobs, {copied.quota:,} rows of quota")
