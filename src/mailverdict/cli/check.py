"""Commands for one address, a service's quota and this host: check, explain, quota, audit-host."""

from __future__ import annotations

import json
from typing import Annotated

import typer

import mailverdict as mv

from ..model.words import ValidationType
from ..reports.explain import printable
from ..reports.summary import MEANING_OF_VALID
from .status import printed_warnings
from .terminal import (
    Email,
    Json,
    Kind,
    ResolverAt,
    ResolverCheck,
    Sandbox,
    Service,
    app,
    chosen_backend,
    chosen_service,
)

__all__ = ["audit_host", "check", "explain", "quota"]


@app.command()
def check(
    email: Email,
    validation_type: Kind = ValidationType.SMTP,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    resolver_check: ResolverCheck = True,
    as_json: Json = False,
) -> None:
    """Verify one address now."""
    with (
        chosen_backend(backend, sandbox=sandbox, resolver=resolver, resolver_check=resolver_check) as asked,
        printed_warnings(),
    ):
        found = mv.check(email, validation_type=validation_type, backend=asked)
    print(json.dumps(found.to_dict(), ensure_ascii=False, indent=2) if as_json else render_verification(found))


@app.command()
def explain(
    email: Email,
    validation_type: Kind = ValidationType.SMTP,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    resolver_check: ResolverCheck = True,
) -> None:
    """Show the evidence for a verdict, step by step."""
    with chosen_backend(backend, sandbox=sandbox, resolver=resolver, resolver_check=resolver_check) as asked:
        print(mv.explain(email, validation_type=validation_type, backend=asked))


@app.command()
def quota(backend: Service = None, as_json: Json = False) -> None:
    """Show what is left of today's quota."""
    if backend is None:
        raise mv.SettingsError("give the service with --backend URL")
    found = mv.quota(chosen_service(backend))
    left = {"daily_limit": found.daily_limit, "used": found.used, "remaining": found.remaining}
    print(json.dumps(left) if as_json else f"{found.remaining:,} of {found.daily_limit:,} addresses left today")


@app.command("audit-host")
def audit_host(
    resolver: ResolverAt = None,
    resolver_check: ResolverCheck = True,
    helo_name: Annotated[str | None, typer.Option(help="Name of this host in EHLO.")] = None,
    address: Annotated[str | None, typer.Option(help="IP address of this host as mail servers see it.")] = None,
    port: Annotated[int, typer.Option(help="SMTP port.")] = 25,
) -> None:
    """Check whether mail servers will answer this host. Exit status 1 if not."""
    backend = mv.LocalBackend(resolver=resolver, resolver_check=resolver_check, helo_name=helo_name, smtp_port=port)
    found = mv.audit_host(backend, address=address)
    print(found)
    if not found.is_fit:
        raise typer.Exit(1)


def render_verification(found: mv.Verification) -> str:
    """The verdict on one address as text."""
    lines = [f"{found.email}: {found.result}" + (f" ({', '.join(found.reasons)})" if found.reasons else "")]
    lines += [f"  {fault.code}: {fault.message}" for fault in found.errors or ()]
    if found.suggestion is not None:
        lines.append(f"  did you mean {found.suggestion}?")
    flags = {
        name: getattr(found, name) for name in ("role", "spamtrap", "disposable", "free", "catch_all", "protected")
    }
    if known := [f"{name}={str(value).lower()}" for name, value in flags.items() if value is not None]:
        lines.append(f"  flags: {', '.join(known)}")
    lines.append(f"  ({MEANING_OF_VALID[ValidationType(found.validation_type)]})")
    return "\n".join(map(printable, lines))
