"""The page of `mailverdict audit`: one audit of one person, served on 127.0.0.1 behind a token.

The page itself and its scripts are open; everything about the audit needs the token, which other
users of the machine do not have. It comes in a header and not in a cookie, since a browser sends
the cookies of 127.0.0.1 to every port. A download is a link, which has no header, so that its
address has a ticket for one use.

Each start has a new token. A page that was open before goes on by itself, although anybody may have
its port by then: it sends no token, but a nonce, and the server answers with a proof that it knows
the token of the page:

    page    POST /proof  nonce
    server  salt, HMAC(token of the page, "proof PORT nonce salt"),
            present token XOR HMAC(token of the page, "token ...")

Whoever does not know the token of the page learns nothing from the answer. Since the port is part
of it, nobody can ask the server on another port and pass its answer on.
"""

from __future__ import annotations

import asyncio
import errno
import hmac
import json
import logging
import os
import re
import secrets
import shutil
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import SettingsError
from ..http_server import Bounds, bounded_http
from ..theme import stylesheet
from .actions import PAGE_ACTIONS, read_message
from .state import SECTIONS, AuditState
from .transfer import SPARE, path_name, shown_name
from .view import take_snapshots
from .wording import VERDICT_LABELS, marks

LOG = logging.getLogger(__name__)
HOST = "127.0.0.1"
BEAT = 1.0  # seconds between lines of the stream, at most
AWAY = 600.0  # seconds without an open page until a run is paused
LONGEST_BODY = 64 * 2**20  # bytes of an action; a list may be pasted
TAB = re.compile(r"[A-Za-z0-9-]{8,40}")
NONCE = re.compile(rb"[0-9a-f]{32,64}")
LONGEST_NONCE = 64
MAX_TABS = 100
MAX_OFFERS = 8
BOUNDS = Bounds(send_timeout=60.0)  # a person may pause a download
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>mailverdict</title>
<link rel="stylesheet" href="/static/page.css">
<script type="module" src="/static/page.js"></script>
</head>
<body class="mv-page"><main id="mv-audit"></main></body>
</html>
"""
TYPES = {".js": "text/javascript", ".css": "text/css"}


class Tab:
    """What one page is to be told besides the sections."""

    def __init__(self) -> None:
        self.notes: list[dict[str, Any]] = []
        self.wake = asyncio.Event()


class PageServer:
    """The application: its routes, who may use them, and which pages are open.

    `former` are tokens of starts before, whose pages may go on.
    """

    def __init__(
        self,
        state: AuditState,
        token: str,
        port: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        former: Sequence[str] = (),
    ) -> None:
        self.state = state
        self.token = token
        self.clock = clock
        self.port = port
        self.known_tokens = (token, *former)
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}"}
        self.tabs: dict[str, Tab] = {}  # a tab that is loaded again has the same id
        self.offers: dict[str, tuple[str, Path]] = {}  # by ticket
        self.sections: dict[str, Any] = {"marks": marks(), "words": VERDICT_LABELS}
        self.stale = set(SECTIONS)  # sections that have changed since they were taken
        self.open_pages = 0
        self.last_seen = clock()
        self.is_closing = False
        self.taking = asyncio.Lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        state.work.on_change = self.changed
        state.on_file = self.offer
        routes = [
            Route("/", self.page),
            Route("/static/{name:path}", self.static),
            Route("/proof", self.prove, methods=["POST"]),
            Route("/events", self.events),
            Route("/act", self.act, methods=["POST"]),
            Route("/file", self.upload, methods=["PUT"]),
            Route("/file/{ticket}", self.download),
        ]
        app = Starlette(routes=routes, lifespan=self.run)
        app.router.redirect_slashes = False
        self.app = guarded(app, self.refusal)

    @asynccontextmanager
    async def run(self, app: Starlette) -> AsyncIterator[None]:
        """Look after the audit for as long as the server runs."""
        self.loop = asyncio.get_running_loop()
        watching = asyncio.create_task(self.watch())
        try:
            yield
        finally:
            watching.cancel()
            self.loop = None

    async def watch(self) -> None:
        """Pause a run that nobody looks at: it would go on to spend."""
        while True:
            self.look()
            await asyncio.sleep(BEAT)

    def look(self) -> None:
        """Note that a page is open, or how long none was."""
        now = self.clock()
        if self.open_pages:
            self.last_seen = now
        elif now - self.last_seen >= AWAY:
            self.state.check.pause_unseen()

    # --- who may ask ------------------------------------------------------------------------------

    def refusal(self, request: Request) -> Response | None:
        """Why a request is refused, if it is: another site's, or without the token."""
        origin = request.headers.get("origin")
        is_of_page = origin is None or origin.removeprefix("http://") in self.hosts
        if request.headers.get("host") not in self.hosts or not is_of_page:
            return PlainTextResponse("only the page of this server may ask", 403)
        if is_open(request):
            return None
        given = request.headers.get("authorization", "").encode()
        if secrets.compare_digest(given, f"Bearer {self.token}".encode()):
            return None
        return PlainTextResponse(
            "the token is missing or wrong: open the address that the command has printed", 401
        )

    async def prove(self, request: Request) -> Response:
        """Prove to a page that this server knows its token, and give it the present one.

        Nobody else can read it.
        """
        nonce = b""
        async for part in request.stream():
            nonce += part
            if len(nonce) > LONGEST_NONCE:
                break
        if not NONCE.fullmatch(nonce):
            return PlainTextResponse("the body must be a nonce of 32 to 64 hexadecimal digits", 400)
        answers = []
        for token in self.known_tokens:
            salt = secrets.token_hex(16)
            about = f"{self.port} {nonce.decode()} {salt}"
            mask = sign(token, f"token {about}")
            masked = bytes(a ^ b for a, b in zip(self.token.encode(), mask, strict=False))
            proof = sign(token, f"proof {about}").hex()
            answers.append({"salt": salt, "proof": proof, "masked": masked.hex()})
        return Response(json.dumps({"answers": answers}), media_type="application/json")

    # --- the page ---------------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        return HTMLResponse(PAGE)

    async def static(self, request: Request) -> Response:
        """A file of the front end."""
        name = request.path_params["name"]
        content = static_files().get(name)
        if content is None:
            return PlainTextResponse("there is no such file", 404)
        return Response(content, media_type=TYPES[Path(name).suffix])

    # --- the stream -------------------------------------------------------------------------------

    def tab(self, name: Any) -> Tab | None:
        """The tab with an id; None where that is none."""
        if not isinstance(name, str) or not TAB.fullmatch(name):
            return None
        while name not in self.tabs and len(self.tabs) >= MAX_TABS:
            del self.tabs[next(iter(self.tabs))]
        return self.tabs.setdefault(name, Tab())

    async def events(self, request: Request) -> Response:
        """All sections, then those that change, and what the tab is to be told.

        At least one line each second.
        """
        tab = self.tab(request.query_params.get("tab"))
        if tab is None:
            return PlainTextResponse("tab: give an id of 8 to 40 letters, digits and hyphens", 400)
        return StreamingResponse(self.lines(tab), media_type="application/x-ndjson")

    async def lines(self, tab: Tab) -> AsyncIterator[str]:
        """The lines of one stream."""
        sent: dict[str, Any] = {}
        self.open_pages += 1
        try:
            while not self.is_closing:
                tab.wake.clear()
                notes = tab.notes  # before the sections: these have what is answered
                tab.notes = []
                taking = asyncio.create_task(self.take_sections())
                while not (await asyncio.wait([taking], timeout=BEAT))[0]:
                    yield "{}\n"  # a large list is being opened: the server is there
                sections = taking.result()
                changed = {
                    name: value for name, value in sections.items() if sent.get(name) is not value
                }
                sent = sections
                if changed or not notes:
                    yield json_line(changed)
                for note in notes:
                    yield json_line(note)
                with suppress(TimeoutError):
                    await asyncio.wait_for(tab.wake.wait(), BEAT)
        finally:
            self.open_pages -= 1
            self.last_seen = self.clock()

    async def take_sections(self) -> dict[str, Any]:
        """The sections as they are now; one that has not changed is the same object."""
        async with self.taking:
            if self.stale:
                names = self.stale
                self.stale = set()
                sections = await run_in_threadpool(self.take_what_can_be_shown, names)
                for name, section in sections.items():
                    if self.sections.get(name) != section:
                        self.sections[name] = section
            return {**self.sections}

    def take_what_can_be_shown(self, names: Collection[str]) -> dict[str, Any]:
        """The sections of one moment.

        If one fails, it costs itself only: they are made one by one then.
        """
        try:
            return take_snapshots(self.state, names)
        except Exception:
            LOG.exception("a part of the page could not be shown; it stays as it was")
        sections: dict[str, Any] = {}
        for name in names:
            with suppress(Exception):  # told above
                sections |= take_snapshots(self.state, [name])
        return sections

    def changed(self, names: Sequence[str]) -> None:
        """Tell all pages that sections have changed; called on any thread."""
        loop = self.loop
        if loop is not None:
            with suppress(RuntimeError):  # it was closed just now
                loop.call_soon_threadsafe(self.wake, names)

    def wake(self, names: Sequence[str]) -> None:
        self.stale.update(names)
        for tab in self.tabs.values():
            tab.wake.set()

    def tell(self, tab: Tab, note: dict[str, Any]) -> None:
        """Send a line to one tab."""
        tab.notes.append(note)
        tab.wake.set()

    # --- actions ----------------------------------------------------------------------------------

    async def act(self, request: Request) -> Response:
        """Do what the page asks for; why it is refused is said in the section."""
        try:
            body = json.loads(await read_body(request))
        except TooLargeError:
            return PlainTextResponse(f"an action has at most {LONGEST_BODY:,} bytes", 413)
        except (ValueError, RecursionError):
            return PlainTextResponse("the body must be JSON", 400)
        if not isinstance(body, Mapping) or not isinstance(body.get("act"), str):
            return PlainTextResponse('the body must be an object with "act"', 400)
        message = read_message(body)
        tab = self.tab(body.get("tab"))
        if message.action not in PAGE_ACTIONS:
            return PlainTextResponse("there is no such action", 400)
        tab_id = str(body.get("tab", ""))
        await run_in_threadpool(
            partial(self.state.act, message.action, tab=tab_id, **message.arguments)
        )
        if tab is not None and message.answer:
            self.tell(tab, {"answered": message.answer})
        return Response(status_code=204)

    # --- files ------------------------------------------------------------------------------------

    async def upload(self, request: Request) -> Response:
        """Receive a file for a purpose."""
        name = shown_name(request.query_params.get("name", ""))
        purpose = request.query_params.get("purpose", "")
        folder = Path(self.state.folder, secrets.token_hex(8))
        path = folder / path_name(name)
        try:
            size = int(request.headers.get("content-length", 0))
            free = max(0, shutil.disk_usage(self.state.folder).free - SPARE)
            if size > free:
                return PlainTextResponse(
                    f"{name} has {size:,} bytes; the disk has room for {free:,}", 413
                )
            with open_private(path) as file:
                async for piece in request.stream():  # in chunks, its size is not known before
                    await run_in_threadpool(file.write, piece)
                    if shutil.disk_usage(self.state.folder).free < SPARE:
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except (OSError, ValueError, ClientDisconnect) as exc:
            shutil.rmtree(folder, ignore_errors=True)
            why = getattr(exc, "strerror", None) or "the upload stopped"
            return PlainTextResponse(f"{name}: {why}", 400)
        await run_in_threadpool(self.state.use_file, path, name, purpose)
        return Response(status_code=204)

    def offer(self, name: str, path: Path, tab: str) -> None:
        """Let the tab that asked for a file download it; called on any thread."""
        loop = self.loop
        if loop is not None:
            loop.call_soon_threadsafe(self.offer_to, name, path, tab)

    def offer_to(self, name: str, path: Path, tab_id: str) -> None:
        tab = self.tab(tab_id)
        if tab is None:
            remove(path)
            return
        while len(self.offers) >= MAX_OFFERS:
            oldest = next(iter(self.offers))
            _, old_path = self.offers.pop(oldest)
            remove(old_path)
        ticket = secrets.token_urlsafe(24)
        self.offers[ticket] = (name, path)
        self.tell(tab, {"save": {"name": name, "ticket": ticket, "size": path.stat().st_size}})

    async def download(self, request: Request) -> Response:
        """The file of a ticket, once."""
        name, path = self.offers.pop(request.path_params["ticket"], ("", Path()))
        if not name or not path.is_file():
            return PlainTextResponse("this link has been used already; make the file again", 404)
        return FileResponse(
            path,
            media_type="application/octet-stream",
            filename=name,
            background=BackgroundTask(remove, path),
        )


def is_open(request: Request) -> bool:
    """Whether a request needs no token.

    A link to a file has a ticket, and a proof gives nothing to those who have no token.
    """
    path = request.url.path
    if path in ("/", "/proof") or path.startswith("/static/"):
        return True
    return request.method == "GET" and path.startswith("/file/")


def json_line(value: Any) -> str:
    """A line of the stream."""
    return json.dumps(value, ensure_ascii=False) + "\n"


def sign(token: str, text: str) -> bytes:
    """The HMAC of a text; 64 octets, since a token, which it masks, is shorter."""
    return hmac.digest(token.encode(), text.encode(), "sha512")


def serve(
    state: AuditState,
    token: str,
    listener: socket.socket,
    on_ready: Callable[[], None],
    former: Sequence[str] = (),
) -> None:
    """Serve the page until SIGINT, SIGTERM or SIGHUP."""
    page = PageServer(state, token, listener.getsockname()[1], former=former)
    server = OneServer(make_config(page))
    server.page = page
    server.on_ready = on_ready
    previous = {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None:
            previous[number] = signal.signal(number, server.handle_exit)
    try:
        server.run(sockets=[listener])
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def make_config(page: PageServer) -> uvicorn.Config:
    """The server's configuration; it logs nothing, since the terminal is for people."""
    return uvicorn.Config(
        page.app,
        loop="asyncio",
        http=bounded_http(BOUNDS),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=2,  # a stream ends with its next line
    )


class OneServer(uvicorn.Server):
    """uvicorn whose streams end with it, and which leaves the signals to `serve`."""

    page: PageServer
    on_ready: Callable[[], None]

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Raise no signal again at the end: it has stopped the server, as was asked."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.on_ready()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop; a second signal does not wait for requests."""
        self.page.is_closing = True
        super().handle_exit(sig, frame)


def open_port(port: int) -> socket.socket:
    """A socket that listens on 127.0.0.1; 0 is any port that is free."""
    try:
        return socket.create_server((HOST, port), backlog=128)
    except OSError as exc:
        raise SettingsError(f"port {port} cannot be opened: {os.strerror(exc.errno or 0)}") from exc


class TooLargeError(Exception):
    """A body that is larger than any action."""


async def read_body(request: Request) -> bytes:
    """The body of an action."""
    parts = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > LONGEST_BODY:
            raise TooLargeError
        parts.append(part)
    return b"".join(parts)


def guarded(app: ASGIApp, refusal: Callable[[Request], Response | None]) -> ASGIApp:
    """The application behind a check of each request, with headers for each answer."""
    fields = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *fields]}
            await send(message)

        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        answering = refusal(Request(scope)) or app
        await answering(scope, receive, send_with_headers)

    return checked


def static_files() -> dict[str, bytes]:
    """The files of the front end by name; before the page's own style comes that of the theme."""
    folder = Path(str(files(__package__) / "static"))
    contents = {}
    for path in folder.rglob("*"):
        if path.suffix in TYPES:
            contents[path.relative_to(folder).as_posix()] = path.read_bytes()
    contents["page.css"] = stylesheet(".mv-audit").encode() + contents["page.css"]
    return contents


def open_private(path: Path) -> Any:
    """A new file that only its owner can read, in a folder of its own."""
    path.parent.mkdir(mode=0o700)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def remove(path: Path) -> None:
    """Remove a file that was downloaded, or that nobody wants, with its folder."""
    shutil.rmtree(path.parent, ignore_errors=True)
