"""Commands that run until they are stopped: serve and sandbox."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..backend import Backend
from ..errors import SettingsError
from .terminal import ResolverAt, app, print_status

if TYPE_CHECKING:
    from ..sandbox import World

__all__ = ["sandbox", "serve"]


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port; 0: any free port.")] = 8000,
    store: Annotated[str | None, typer.Option(help="sqlite:///jobs.db or postgresql://...")] = None,
    daily_limit: Annotated[int | None, typer.Option(help="Addresses per client and day.")] = None,
    when_saturated: Annotated[
        str | None, typer.Option(help="wait: bulk jobs wait. settle: they end as rate_limited or throttled.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="current or earlier.")] = None,
    resolver: ResolverAt = None,
    resolver_check: Annotated[
        bool | None,
        typer.Option(
            "--resolver-check/--no-resolver-check",
            help="Test the DNS resolver; turn it off on a private network whose resolver knows only its own names.",
        ),
    ] = None,
    smtp_port: Annotated[int | None, typer.Option(help="Port of the mail servers; 25 except in tests.")] = None,
    helo_name: Annotated[str | None, typer.Option(help="Name of this host in EHLO.")] = None,
    allow_network: Annotated[list[str] | None, typer.Option(help="Private network that may be contacted.")] = None,
    trusted_proxy: Annotated[list[str] | None, typer.Option(help="Network whose X-Forwarded-For is trusted.")] = None,
    is_sandbox: Annotated[bool, typer.Option("--sandbox", help="Verify against made-up servers.")] = False,
) -> None:
    """Run the verification service over HTTP. MAILVERDICT_* variables set everything else."""
    from ..service import from_environment, run  # noqa: PLC0415 - an extra

    given: dict[str, Any] = {
        "store": store,
        "daily_limit": daily_limit,
        "when_saturated": when_saturated,
        "revision": revision,
        "trusted_proxies": trusted_proxy,
        "resolver": resolver,
        "resolver_check": resolver_check,
        "smtp_port": smtp_port,
        "helo_name": helo_name,
        "allow_networks": allow_network,
    }
    settings = from_environment(None, **{name: value for name, value in given.items() if value is not None})
    print_status(f"verification service on http://{host}:{port}, {settings.daily_limit:,} addresses per client and day")
    if not is_sandbox:
        run(settings, host, port)
        return
    if resolver or smtp_port or allow_network:
        raise SettingsError("--sandbox has its own servers: leave out --resolver, --smtp-port and --allow-network")
    from ..sandbox import World  # noqa: PLC0415 - servers that few calls need

    with World() as world:
        print_status("Using the sandbox: made-up domains on this machine; no real server is asked.")
        backend: Backend = world.make_backend(retry_greylisted=0)
        run(settings, host, port, backend=backend)


@app.command()
def sandbox(
    daily_limit: Annotated[int, typer.Option(help="Quota of its verification service.")] = 100,
) -> None:
    """Run the sandbox's servers until Ctrl-C.

    Made-up DNS and mail servers and the service, on loopback.
    """
    from ..sandbox import World  # noqa: PLC0415 - servers that few calls need

    try:
        with World(daily_limit=daily_limit) as world:
            show_world(world)
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        print_status("stopped")


def show_world(world: World) -> None:
    """Print where the servers listen; scripts wait for the last line."""
    settings = world.backend.settings
    print_status(f"try: mailverdict check ada@gmail.com -t mx --resolver {settings.resolver}")
    print_status("made-up domains only; stop with Ctrl-C")
    print(f"resolver       {settings.resolver}")
    print(f"smtp_port      {settings.smtp_port}")
    print(f"allow_networks {', '.join(map(str, settings.allow_networks))}")
    print(f"service        {world.url}", flush=True)
