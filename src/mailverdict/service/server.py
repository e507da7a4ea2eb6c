"""`run`: the service on uvicorn, with the bounds of `http_server`."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import ssl
import sys

import uvicorn
from starlette.types import ASGIApp

from ..backend import Backend
from ..checks.lists.flags import load_lists
from ..checks.smtp.classify.classifier import prepare_rules
from ..errors import SettingsError
from ..http_server import Bounds, bounded_http
from .app import create_app
from .http.access import AccessLog
from .jobs.queue import Queue
from .jobs.store import Store
from .settings import ServiceSettings

LOG = logging.getLogger(__name__)
KEEP_ALIVE = 30  # seconds; clients poll every 2 to 15
MAX_PORT = 65_535
# New objects until Python looks for garbage among them. Sixty requests under way have more than its
# usual 700, so that it would look for some in each turn of the event loop: 2 % of a check.
COLLECTED = 5_000
GRACEFUL_SHUTDOWN = 15  # seconds that running requests have when the service is stopped


def run(
    settings: ServiceSettings | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    backend: Backend | None = None,
) -> None:
    """Serve until a signal stops the process; unfinished jobs continue at the next start.

    The access log goes to standard output, everything else to standard error.

    Parameters
    ----------
    settings : ServiceSettings, optional
        The settings; the defaults if not given.
    host : str
        Address to listen on.
    port : int
        TCP port; 0: any free one.
    backend : Backend, optional
        What verifies addresses; a `mailverdict.LocalBackend` with ``settings.local`` by default.

    Raises
    ------
    SettingsError
        If the store cannot be opened or another service uses it, if a list cannot be read, or if
        the port is in use.
    """
    settings = settings or ServiceSettings()
    log = AccessLog(sys.stdout)
    try:
        serve(
            create_app(settings, backend, log=log),
            settings,
            host,
            port,
            lacks_keys=settings.key_file is None,
        )
    finally:
        log.flush()


def serve(
    app: ASGIApp, settings: ServiceSettings, host: str, port: int, *, lacks_keys: bool = False
) -> None:
    """Serve an application until a signal stops the process.

    `lacks_keys`: clients should need keys, and do not.
    """
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s"
    )
    check(settings, host, port, lacks_keys=lacks_keys)
    # The first job by `smtp` would wait for a second, and every request with it.
    prepare_rules()
    load_lists(settings.local.lists)
    # A full garbage collection would scan the rules and the lists, a hundred thousand objects:
    # without this line a check takes 7 % longer (median of nine pairs of processes).
    gc.freeze()
    gc.set_threshold(COLLECTED)
    uvicorn.Server(configure(app, settings, host, port)).run()


def check(settings: ServiceSettings, host: str, port: int, *, lacks_keys: bool = False) -> None:
    """Raise `SettingsError` if the store, a list, the certificate or the address cannot be used.

    uvicorn would show a traceback, and bind after the application has started, when the worker may
    have begun with jobs. Without client keys, an address that other hosts can connect to gives a
    warning.
    """
    store = Store(settings)
    try:
        if not store.is_shared:
            Queue(store).recover()
    finally:
        store.close()
    load_lists(settings.local.lists)
    if settings.ssl_certfile is not None:
        # With None, OpenSSL would ask for it on the terminal.
        password = settings.ssl_keyfile_password or ""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile, password)
        except OSError as exc:  # ssl.SSLError is one, too
            files = " and ".join(filter(None, (settings.ssl_certfile, settings.ssl_keyfile)))
            raise SettingsError(
                f"ssl_certfile: the certificate in {files} cannot be used: {exc}"
            ) from exc
    if not 0 <= port <= MAX_PORT:
        raise SettingsError(f"port={port}: give a number from 0 to {MAX_PORT}; 0 is any free one")
    try:
        addresses = asyncio.run(listen(host, port))
    except (OSError, UnicodeError) as exc:  # UnicodeError: a text that cannot be a host name
        raise SettingsError(
            f"cannot listen on host {host!r:.80}, port {port}: {exc}; give another one"
        ) from exc
    is_local = True
    for address in addresses:
        address_alone, _, _ = address.partition("%")  # without the scope of IPv6
        is_local = is_local and ipaddress.ip_address(address_alone).is_loopback
    if lacks_keys and not is_local:
        LOG.warning(
            "the service listens on %r and has no client keys: whoever can connect can use it. "
            "Give it keys (mailverdict keys add, serve --key-file), or let only networks that you "
            "trust connect",
            host,
        )


async def listen(host: str, port: int) -> list[str]:
    """Listen for a moment, as uvicorn will; return the addresses."""
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, port)
    addresses = [each.getsockname()[0] for each in server.sockets]
    server.close()
    return addresses


def configure(app: ASGIApp, settings: ServiceSettings, host: str, port: int) -> uvicorn.Config:
    """The server's configuration; `access.client_account` handles proxies instead of uvicorn."""
    bounds = Bounds(settings.header_limit, settings.seconds("header_timeout"))
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=bounded_http(bounds),
        ws="none",
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACEFUL_SHUTDOWN,
        ssl_certfile=settings.ssl_certfile,
        ssl_keyfile=settings.ssl_keyfile,
        ssl_keyfile_password=settings.ssl_keyfile_password,
    )
