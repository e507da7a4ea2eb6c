"""Commands for one address, a service's quota and this host: check, explain, quota, audit-host."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

import mailverdict as mv

from ..model.words import ValidationType
from .options import Email, HeloName, Json, Kind, ResolverAt, ResolverCheck, Sandbox, Service
from .status import printed_warnings
from .terminal import app, chosen_backend


@app.command()
def check(
    email: Email,
    validation_type: Kind = ValidationType.MX,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    resolver_check: ResolverCheck = True,
    as_json: Json = False,
) -> None:
    """Verify one address now."""
    with (
        chosen_backend(
            backend, sandbox=sandbox, resolver=resolver, resolver_check=resolver_check
        ) as asked,
        printed_warnings(),
    ):
        verification = mv.check(email, validation_type=validation_type, backend=asked)
    if as_json:
        print(json.dumps(verification.to_dict(), ensure_ascii=False, indent=2))
    else:
        print(verification)


@app.command()
def explain(
    email: Email,
    validation_type: Kind = ValidationType.MX,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    resolver_check: ResolverCheck = True,
) -> None:
    """Show the evidence for a verdict, step by step."""
    with chosen_backend(
        backend, sandbox=sandbox, resolver=resolver, resolver_check=resolver_check
    ) as asked:
        print(mv.explain(email, validation_type=validation_type, backend=asked))


@app.command()
def quota(backend: Service = None, sandbox: Sandbox = False, as_json: Json = False) -> None:
    """Show what is left of today's quota."""
    if backend is None and not sandbox:
        raise mv.SettingsError("give the service with --backend URL")
    with chosen_backend(backend, sandbox=sandbox, as_service=True) as service:
        assert service is not None
        quota_left = mv.quota(service)
    if as_json:
        print(json.dumps(asdict(quota_left)))
    else:
        print(quota_left)


@app.command("audit-host")
def audit_host(
    resolver: ResolverAt = None,
    resolver_check: ResolverCheck = True,
    helo_name: HeloName = None,
    address: Annotated[
        str | None, typer.Option(help="IP address of this host as mail servers see it.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="SMTP port; 25 when not given.")] = None,
    sandbox: Sandbox = False,
) -> None:
    """Check whether mail servers will answer this host. Exit status 1 if not."""
    settings: dict[str, Any] = {}
    if helo_name is not None:
        settings["helo_name"] = helo_name
    if port is not None:
        settings["smtp_port"] = port
    with chosen_backend(
        None, sandbox=sandbox, resolver=resolver, resolver_check=resolver_check, **settings
    ) as backend:
        assert isinstance(backend, mv.LocalBackend)
        audit = mv.audit_host(backend, address=address)
    print(audit)
    if not audit.is_fit:
        raise typer.Exit(1)
