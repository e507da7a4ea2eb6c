"""Commands that run until they are stopped, and those for a service's client keys."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..backend import Backend
from ..errors import SettingsError
from .options import Json, with_host_options
from .settings import service_environment
from .status import print_status
from .terminal import SANDBOX_NOTE, app

if TYPE_CHECKING:
    from ..sandbox import World


@app.command()
@with_host_options
def serve(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="TCP port; 0: any free port.")] = 8000,
    store: Annotated[str | None, typer.Option(help="sqlite:///jobs.db or postgresql://...")] = None,
    daily_limit: Annotated[int | None, typer.Option(help="Addresses per client and day.")] = None,
    when_saturated: Annotated[
        str | None,
        typer.Option(help="wait: bulk jobs wait. settle: they end as rate_limited or throttled."),
    ] = None,
    revision: Annotated[str | None, typer.Option(help="current or earlier.")] = None,
    host_settings: dict[str, Any],
    trusted_proxy: Annotated[
        list[str] | None, typer.Option(help="Network whose X-Forwarded-For is trusted.")
    ] = None,
    key_file: Annotated[
        str | None,
        typer.Option(help="File of client keys (mailverdict keys add); requests then need a key."),
    ] = None,
    ssl_certfile: Annotated[
        str | None, typer.Option(help="Certificate chain in PEM; serves HTTPS.")
    ] = None,
    ssl_keyfile: Annotated[str | None, typer.Option(help="The certificate's private key.")] = None,
    is_sandbox: Annotated[
        bool, typer.Option("--sandbox", help="Verify against made-up servers.")
    ] = False,
) -> None:
    """Run the verification service over HTTP. MAILVERDICT_* variables set everything else."""
    from ..service import from_environment, run  # noqa: PLC0415 - an extra

    settings = from_environment(
        service_environment(os.environ),
        store=store,
        daily_limit=daily_limit,
        when_saturated=when_saturated,
        revision=revision,
        trusted_proxies=trusted_proxy,
        key_file=key_file,
        ssl_certfile=ssl_certfile,
        ssl_keyfile=ssl_keyfile,
        **host_settings,
    )
    print_status(f"quota: {settings.daily_limit:,} addresses per client and day")
    if not is_sandbox:
        run(settings, host, port)
        return
    if any(host_settings[name] for name in ("resolver", "smtp_port", "allow_networks")):
        raise SettingsError(
            "--sandbox has its own servers: leave out --resolver, --smtp-port and --allow-network"
        )
    from ..sandbox import World  # noqa: PLC0415 - servers that few calls need

    with World() as world:
        print_status(SANDBOX_NOTE)
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


keys_app = typer.Typer(
    help="Add, list or revoke the client keys of a service.", no_args_is_help=True
)
app.add_typer(keys_app, name="keys")
KeyFile = Annotated[
    str,
    typer.Option(
        "--file", help="File of client keys, as in serve --key-file.", envvar="MAILVERDICT_KEY_FILE"
    ),
]
KeyName = Annotated[str, typer.Argument(help="The client's name; quota and results belong to it.")]


@keys_app.command("add")
def add(name: KeyName, file: KeyFile) -> None:
    """Make a key for a client and print it.

    The file keeps only the digest of the key.
    """
    from ..service.keys import add_key  # noqa: PLC0415 - an extra

    key = add_key(file, name)
    print_status(f"the key of {name}, which is not shown again:")
    print(key)


@keys_app.command("list")
def list_keys(file: KeyFile, as_json: Json = False) -> None:
    """List the clients of a file; keys are not in it."""
    from ..service.keys import read_keys  # noqa: PLC0415 - an extra

    clients = read_keys(file)
    if as_json:
        records = []
        for key in clients:
            records.append(
                {
                    "name": key.name,
                    "id": key.identifier,
                    "created": key.created,
                    "revoked": key.revoked,
                }
            )
        print(json.dumps(records, indent=2))
        return
    for key in clients:
        state = "valid"
        if key.revoked:
            state = f"revoked {key.revoked}"
        print(f"{key.name:<30} mv_{key.identifier}_...  created {key.created}  {state}")


@keys_app.command("revoke")
def revoke(name: KeyName, file: KeyFile) -> None:
    """Revoke a client's key; running services refuse it a second later."""
    from ..service.keys import revoke_key  # noqa: PLC0415 - an extra

    print_status(f"revoked: {revoke_key(file, name).name}")


def show_world(world: World) -> None:
    """Print where the servers listen; scripts wait for the last line."""
    settings = world.backend.settings
    print_status(f"try: mailverdict check ada@gmail.com -t mx --resolver {settings.resolver}")
    print_status("made-up domains only; stop with Ctrl-C")
    print(f"resolver       {settings.resolver}")
    print(f"smtp_port      {settings.smtp_port}")
    print(f"allow_networks {', '.join(map(str, settings.allow_networks))}")
    print(f"service        {world.url}", flush=True)
