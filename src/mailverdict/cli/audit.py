"""The command `audit`: the interactive audit as a page in the browser, without a notebook."""

from __future__ import annotations

import html
import os
import sys
import tempfile
import threading
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

import mailverdict as mv

from ..errors import InputError, MailVerdictError, MissingExtraError, SettingsError
from ..files.readers import STDIN
from ..frames.policy import find_policy
from ..model.paths import user_path
from ..model.words import ValidationType
from ..table.columns import check_column
from .files import open_source, pick_column
from .options import ColumnName, Kind, PolicyName, ResolverAt, ResolverCheck, Sandbox, Service
from .status import print_status
from .terminal import SANDBOX_NOTE, app, check_sandbox, chosen_service


@app.command()
def audit(
    file: Annotated[str | None, typer.Argument(help="CSV, TSV, Parquet or XLSX file; it can be chosen later.")] = None,
    column: ColumnName = None,
    validation_type: Kind = ValidationType.MX,
    backend: Service = None,
    sandbox: Sandbox = False,
    resolver: ResolverAt = None,
    resolver_check: ResolverCheck = True,
    policy: PolicyName = None,
    port: Annotated[int, typer.Option(help="TCP port on 127.0.0.1; 0: any free port.", min=0, max=65535)] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser (on by default).")
    ] = True,
) -> None:
    """Verify a list in the browser, without writing code.

    Only this machine can open the page. Runs until Ctrl-C.
    """
    check_sandbox(backend, resolver, sandbox=sandbox)
    if backend:
        chosen_service(backend)
    find_policy(policy or "balanced")
    if file is None and column is not None:
        raise SettingsError("--column needs a file")
    if file is not None:
        file, column = check_file(file, column)
    options = {
        "file": file,
        "column": column,
        "validation_type": str(validation_type),
        "policy": policy or "balanced",
        "backend": backend,
        "is_sandbox": sandbox,
        "resolver": resolver,
        "resolver_check": resolver_check,
    }
    if sandbox:
        print_status(SANDBOX_NOTE)
    print_status("Starting the page ...")
    try:
        from ..widgets.page_server import serve_page  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise MissingExtraError("mailverdict audit", "audit") from exc

    def announce(url: str, file_to_open: Path) -> None:
        is_opened = browser and open_browser(file_to_open)
        print_status(f"{'The page opens in your browser' if is_opened else 'Open the page in a browser'}. Its address:")
        print(url, flush=True)
        print_status("The address is a key to the page: do not share it. Stop with Ctrl-C.")

    title = "mailverdict" if file is None else f"{Path(file).name} - mailverdict"
    serve_page(f"from mailverdict.cli.audit import show_page\nshow_page(**{options!r})", title, port, announce)
    print_status("stopped")


def check_file(file: str, column: str | None) -> tuple[str, str]:
    """The absolute path and the column; a file or column that cannot be used is an error, as `verify` gives it."""
    path = user_path(file)
    if file == STDIN or (path.exists() and not path.is_file() and not path.is_dir()):
        raise InputError(f"{file}: the page reads the file itself; give the path of a file on disk")
    with open_source(file) as source:
        names = source.columns
        found = pick_column(source, column)
        if names and found not in names:  # the page has no name for one of several columns with the same name
            check_column(names[source.columns.index(found)], names)
        return str(path.absolute()), found


def open_browser(path: Path) -> bool:
    """Open a file in the browser; False where there is none that has a window."""
    if sys.platform.startswith("linux") and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        return False  # what is left are browsers for terminals, which would use this one
    try:
        found = webbrowser.get()
    except webbrowser.Error:
        return False
    threading.Thread(target=found.open, args=(path.as_uri(),), daemon=True).start()
    return True


def show_page(
    *,
    file: str | None,
    column: str | None,
    validation_type: str,
    policy: str,
    backend: str | None,
    is_sandbox: bool,
    resolver: str | None,
    resolver_check: bool,
) -> Any:
    """Make the audit that the command asked for; runs in the kernel of the page."""
    from ..widgets import Audit  # noqa: PLC0415 - an extra

    tempfile.tempdir = tempfile.mkdtemp(prefix="files-", dir=Path.cwd())  # the command removes it, however this ends
    if is_sandbox:
        from ..sandbox import World  # noqa: PLC0415 - servers that few calls need

        asked: Any = World().__enter__().backend  # for the whole life of this process
    elif backend:
        asked = chosen_service(backend)
    else:
        asked = mv.LocalBackend(resolver=resolver, resolver_check=resolver_check)
    try:
        return Audit(file, asked, column=column, validation_type=validation_type, policy=policy)
    except (MailVerdictError, OSError) as exc:  # since the file was checked, it may have been moved
        from IPython.display import HTML  # noqa: PLC0415 - comes with the extra

        return HTML(f"<p role='alert'>{html.escape(str(exc))}</p>")  # type: ignore[no-untyped-call]
