"""The command `audit`: the interactive audit as a page in the browser, without a notebook."""

from __future__ import annotations

import json
import os
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError, MissingExtraError, SettingsError
from ..files.readers import STDIN
from ..frames.policy import find_policy
from ..model.paths import user_path
from ..model.words import ValidationType, count_of
from ..table.columns import check_column
from .files import choice_of, open_source, pick_column
from .options import ColumnName, Kind, PolicyName, ResolverAt, ResolverCheck, Sandbox, Service
from .status import print_status
from .terminal import app, check_sandbox, chosen_backend, chosen_service

# Opened instead of the address itself, since all users of the machine can read the arguments of a
# browser's process.
OPENER = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<title>mailverdict</title>
<script>location.replace(URL_OF_PAGE);</script>
"""


@app.command()
def audit(
    context: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(help="CSV, TSV, Parquet or workbook file; it can be chosen later."),
    ] = None,
    column: ColumnName = None,
    validation_type: Kind = ValidationType.MX,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    resolver_check: ResolverCheck = True,
    policy: PolicyName = None,
    port: Annotated[
        int, typer.Option(help="TCP port on 127.0.0.1; 0: any free port.", min=0, max=65535)
    ] = 0,
    browser: Annotated[
        bool,
        typer.Option("--browser/--no-browser", help="Open the page in a browser (on by default)."),
    ] = True,
    forget: Annotated[
        bool, typer.Option("--forget", help="Delete all audits that are kept, and end.")
    ] = False,
) -> None:
    """Verify a list in the browser, without writing code.

    Only this machine can open the page. Runs until Ctrl-C. What you chose and the result are kept
    for 30 days: the same list opens where you left it, and without a file the page offers what is
    there.
    """
    check_sandbox(backend, resolver, sandbox=sandbox)
    if backend:
        chosen_service(backend)
    find_policy(policy or "balanced")
    if file is None and column is not None:
        raise SettingsError("--column needs a file")
    if file is not None:
        file, column = check_file(file, column)
    try:
        from ..widgets.server import open_port, serve  # noqa: PLC0415 - an extra
        from ..widgets.session import Sessions, temporary_folder  # noqa: PLC0415 - as above
        from ..widgets.state import AuditState  # noqa: PLC0415 - as above
    except ImportError as exc:
        raise MissingExtraError("mailverdict audit", "audit") from exc

    sessions = Sessions()
    if forget:
        count = sessions.remove_all()
        print_status(f"{count_of(count, 'audit')} deleted from {sessions.folder}")
        return
    with (
        private_files(),
        temporary_folder() as folder,
        chosen_backend(
            backend, sandbox=sandbox, resolver=resolver, resolver_check=resolver_check
        ) as asked,
    ):
        sessions.remove_old()
        listener, token, former = sessions.open_door(port, open_port)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/#{token}"
        settings = {"backend": asked, "journal": "auto", "screen": None, "limit": None}
        wanted = {}
        source = context.get_parameter_source("validation_type")
        if source is not None and source.name != "DEFAULT":
            wanted["depth"] = str(validation_type)
        if policy is not None:
            wanted["policy"] = policy
        state = AuditState(
            settings,
            str(validation_type),
            policy or "balanced",
            folder=folder,
            sessions=sessions,
            wanted=wanted,
        )

        def announce() -> None:
            if browser and open_browser(write_redirect(folder, url)):
                print_status("The page opens in your browser. Its address:")
            else:
                print_status("Open the page in a browser. Its address:")
            print(url, flush=True)
            print_status("The address is a key to the page: do not share it. Stop with Ctrl-C.")
            if file is not None:  # it is read meanwhile; on one core the address would wait for it
                state.load_file(file, column=column)

        try:
            serve(state, token, listener, announce, former)
        finally:
            state.close()
    print_status("stopped")


@contextmanager
def private_files() -> Iterator[None]:
    """All files that this process makes are for their user alone."""
    previous = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(previous)


def write_redirect(folder: Path, url: str) -> Path:
    """A file that opens the page: other users can read the arguments of a process."""
    path = folder / "open.html"
    path.write_text(OPENER.replace("URL_OF_PAGE", json.dumps(url)), encoding="utf-8")
    return path


def check_file(file: str, column: str | None) -> tuple[str, str | None]:
    """The absolute path and the given column; what cannot be used is an error.

    Without a column the page chooses it in the same way, and asks where two are equally likely.
    """
    path = user_path(file)
    if file == STDIN or (path.exists() and not path.is_file() and not path.is_dir()):
        raise InputError(f"{file}: the page reads the file itself; give the path of a file on disk")
    with open_source(file) as source:
        if column is None and choice_of(source).is_ambiguous:
            print_status("two columns may hold the addresses: the page asks which one is meant")
            return str(path.absolute()), None
        names = source.columns
        name = pick_column(source, column)
        # The page has no name for one of several columns with the same name.
        if names and name not in names:
            check_column(names[source.columns.index(name)], names)
        if column is None:
            return str(path.absolute()), None
        return str(path.absolute()), name


def open_browser(path: Path) -> bool:
    """Open a file in the browser; False where there is none that has a window."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform.startswith("linux") and not any(map(os.environ.get, names)):
        return False  # what is left are browsers for terminals, which would use this one
    try:
        program = webbrowser.get()
    except webbrowser.Error:
        return False
    threading.Thread(target=program.open, args=(path.as_uri(),), daemon=True).start()
    return True
