"""Audits that are kept, in the user's data folder.

Choices are JSON, the list and the result Arrow files.

Each audit has a folder, named by the content of its list: the same list opens it again. All that is
in it is for its user alone. An audit that nobody has opened for 30 days is removed. `keep` writes
what a restart of the program or the machine would lose, and `open_session` brings it back.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import platformdirs
import psutil
import pyarrow as pa

from ..atomic_write import atomic_write
from ..errors import InputError, SettingsError
from ..files.table_file import ReadOptions
from ..model.arrow import one_array
from ..runs.journal.locks import RunLock, is_locked, is_ours
from .choices import ByPerson, Choices
from .listing import AuditedRows, Listing
from .result import Result
from .source import TYPES, Source, read_file, read_frame, read_pasted
from .steps import Prepared, ResultInfo, Suppression, prepare, read_suppression
from .wording import date_text

if TYPE_CHECKING:
    from .state import AuditState

KEPT_FOR = 30 * 86_400.0  # seconds
FORM = 2  # of the files
STATE = "audit.json"
LIST = "list.arrow"
RESULT = "result.arrow"
DECIDED = "decided.arrow"
WAVED = "waved.arrow"
TIMES = b"times"  # of the waves, in the metadata of a table
ABOUT = "about.json"  # what a list of audits shows, and the process that has the audit open
DOOR = "page.json"  # port and tokens
LOCK = "open.lock"  # held by the process that has the audit open
OPEN_ELSEWHERE = "this list is open in another `mailverdict audit`; use its page, or stop it first"
TEMPORARY = "mailverdict-audit-"  # beginning of the names of temporary folders
OWNER = "owner.json"  # the process that has one
FORMER_TOKENS = 8  # of starts before, whose pages may still be open
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException)


def default_folder() -> Path:
    """Where the audits of this user are kept."""
    return Path(platformdirs.user_data_dir("mailverdict", appauthor=False)) / "audits"


@dataclass(frozen=True, eq=False)
class Given:
    """Where a list comes from, to read it again: a file, a text that was pasted, or a frame."""

    path: Path | None = None
    name: str | None = None  # what a browser calls the file
    text: str | None = None
    data: Any = None
    encoding: str = ""  # these three as chosen on the page; else they are found out
    has_header: str = ""  # yes or no
    sheet: str = ""

    def read(self) -> Source:
        """Read the list."""
        has_header = {"yes": True, "no": False}.get(self.has_header)
        if self.text is not None:
            return read_pasted(self.text, has_header=has_header)
        if self.path is None:
            return read_frame(self.data)
        options = ReadOptions(
            self.encoding or None, sheet=self.sheet or None, has_header=has_header
        )
        return read_file(self.path, self.name, options)

    def id(self) -> str:
        """The id of the audit of a list, by its content."""
        if self.text is not None:
            return id_of(self.text.encode("utf-8", "backslashreplace"))
        assert self.path is not None
        try:
            return id_of(self.path)
        except OSError as exc:
            raise InputError(f"{self.name or self.path}: {exc.strerror}") from exc

    def move(self, folder: Path, temporary: Path | None) -> Given:
        """The same, where a file that was uploaded has moved to the folder of its audit."""
        if self.path is None or temporary is None or temporary not in self.path.parents:
            return self
        target = folder / f"list-{self.path.name}"
        shutil.move(self.path, target)
        return replace(self, path=target)

    def to_json(self) -> dict[str, Any]:
        """Values that JSON can hold, but for how it is read."""
        path = None
        if self.path is not None:
            path = str(self.path.absolute())
        return {"path": path, "name": self.name, "text": self.text}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any], read: Sequence[str]) -> Given:
        """What was kept."""
        path = kept["path"]
        if path is not None:
            path = Path(path)
        return cls(path, kept["name"], kept["text"], None, *read)


@dataclass(frozen=True)
class KeptAudit:
    """An audit for a list to choose from."""

    id: str
    name: str
    when: float  # seconds since 1970
    rows: int


class Door(NamedTuple):
    """Where the page is, the token that it needs, and those of starts before."""

    listener: socket
    token: str
    former: tuple[str, ...]


class Sessions:
    """The audits in a folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = default_folder() if folder is None else folder

    def session(self, identity: str) -> AuditSession:
        """The audit with an id, kept or not."""
        if not identity.isalnum():
            raise SettingsError("this audit is not kept any more")
        return AuditSession(self.folder / identity)

    def all(self) -> list[KeptAudit]:
        """All audits that can be opened, the last one first."""
        audits = []
        for path in self.folder.glob(f"*/{STATE}"):
            with suppress(*UNREADABLE):
                about = AuditSession(path.parent).read(ABOUT)
                audit = KeptAudit(
                    id=path.parent.name,
                    name=str(about["name"]),
                    when=path.stat().st_mtime,
                    rows=int(about["rows"]),
                )
                audits.append(audit)
        return sorted(audits, key=lambda audit: -audit.when)

    def remove_old(self) -> None:
        """Remove the audits that nobody has opened for long."""
        for path in self.folder.glob(f"*/{STATE}"):
            if time.time() - path.stat().st_mtime > KEPT_FOR:
                self.remove(path.parent.name)

    def remove(self, identity: str) -> None:
        """Remove an audit."""
        session = self.session(identity)
        session.check_owner()
        shutil.rmtree(session.folder, ignore_errors=True)

    def open_door(self, port: int, open_port: Callable[[int], socket]) -> Door:
        """A port and a new token for the page.

        The port is that of the last time if it is free, so that open pages go on.
        """
        door_file = self.folder / DOOR
        last_port = 0
        former: list[str] = []
        with suppress(*UNREADABLE):
            kept = read_json(door_file)
            former = list(map(str, kept["tokens"][:FORMER_TOKENS]))
            last_port = int(kept["port"])
        listener = None
        if last_port and port in (0, last_port):
            with suppress(SettingsError):
                listener = open_port(last_port)
        if listener is None:
            listener = open_port(port)
        token = secrets.token_urlsafe(32)
        self.folder.mkdir(0o700, parents=True, exist_ok=True)
        content = {"port": listener.getsockname()[1], "tokens": [token, *former]}
        write_json(door_file, content)
        return Door(listener, token, tuple(former))

    def remove_all(self) -> int:
        """Remove everything; how many audits that were."""
        count = len(self.all())
        shutil.rmtree(self.folder, ignore_errors=True)
        return count


class AuditSession:
    """The files of one audit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock: RunLock | None = None

    @property
    def id(self) -> str:
        return self.folder.name

    def exists(self) -> bool:
        """Whether the audit is kept."""
        return (self.folder / STATE).is_file() and (self.folder / LIST).is_file()

    def make(self) -> None:
        """Make the folder."""
        self.folder.parent.mkdir(0o700, parents=True, exist_ok=True)
        self.folder.mkdir(0o700, exist_ok=True)

    def read(self, name: str = STATE) -> dict[str, Any]:
        """What was kept besides the tables, or what there is to know about the audit."""
        kept: dict[str, Any] = read_json(self.folder / name)
        if kept["form"] != FORM:
            raise InputError("this audit was kept by another version of mailverdict")
        return kept

    def check_owner(self) -> None:
        """Raise an error if another process has the audit open.

        Each would replace what the other keeps.
        """
        lock = self.folder / LOCK
        if is_locked(lock) and not is_ours(lock):
            raise SettingsError(OPEN_ELSEWHERE)
        owner = None
        with suppress(*UNREADABLE):
            owner = self.read(ABOUT)["owner"]
        if owner != process_mark() and is_running(owner):  # of a version that had no lock
            raise SettingsError(OPEN_ELSEWHERE)

    def claim(self) -> None:
        """Open the audit for this process alone.

        Of two that are started together, one gets the error.
        """
        self.check_owner()
        self.make()
        lock = self.folder / LOCK
        if is_ours(lock):
            return
        self.lock = RunLock(lock)
        if not self.lock.is_held:
            raise SettingsError(OPEN_ELSEWHERE)

    def unlock(self) -> None:
        """Let other processes claim the audit."""
        if self.lock is not None:
            self.lock.unlock()
            self.lock = None

    def write(self, kept: Mapping[str, Any]) -> None:
        """Keep what is not a table."""
        about = {
            "form": FORM,
            "name": kept["name"],
            "rows": kept["rows"],
            "owner": process_mark(),
        }
        write_json(self.folder / ABOUT, about)
        write_json(self.folder / STATE, {"form": FORM, **kept})

    def release(self) -> None:
        """Let other processes open the audit."""
        with suppress(*UNREADABLE):
            about = {**self.read(ABOUT), "owner": None}
            write_json(self.folder / ABOUT, about)
        self.unlock()

    def write_list(self, source: Source) -> None:
        """Keep the list.

        Columns are named by their position: names may occur twice, or may not be texts.
        """
        columns = {}
        for at in range(source.frame.shape[1]):
            columns[str(at)] = to_arrow(source.frame.iloc[:, at])
        write_table(self.folder / LIST, pa.table(columns))

    def read_list(self, kept: Mapping[str, Any]) -> Source:
        """The list as it was loaded."""
        frame = read_table(self.folder / LIST).to_pandas(types_mapper=TYPES.get)
        frame.columns = pd.Index(kept["labels"])
        return Source(
            kept["name"],
            frame,
            tuple(kept["remarks"]),
            kept["has_header"],
            kept["is_text"],
            kept["sheet"],
            tuple(kept["sheets"]),
        )

    def write_result(self, rows: AuditedRows) -> None:
        """Keep the result; its own columns are those of the list as it was prepared."""
        write_table(self.folder / RESULT, rows.table)

    def read_result(self, prepared: Prepared, note: dict[str, Any]) -> AuditedRows | None:
        """The result of a check of the prepared list.

        None if it is not of this list, as after an update.
        """
        table = read_table(self.folder / RESULT).unify_dictionaries().combine_chunks()
        if len(table) != len(prepared.frame):
            return None
        return AuditedRows(prepared.frame, prepared.column, table, note)

    def write_people(self, name: str, people: ByPerson) -> None:
        """Keep values by person."""
        table = pa.table({"key": people.keys, "value": people.values})
        times = {value: time.isoformat() for value, time in people.times.items()}
        table = table.replace_schema_metadata({TIMES: json.dumps(times)})
        write_table(self.folder / name, table)

    def read_people(self, name: str, kind: str) -> ByPerson:
        """The values by person that were kept."""
        table = read_table(self.folder / name)
        metadata = table.schema.metadata or {}
        times = {}
        for value, time_of_wave in json.loads(metadata.get(TIMES, "{}")).items():
            times[int(value)] = datetime.fromisoformat(time_of_wave)
        table = table.cast(pa.schema({"key": "string", "value": kind}))
        return ByPerson(one_array(table["key"]), one_array(table["value"]), times)


def process_mark() -> list[Any]:
    """What tells this process from others, also from one that gets its number later."""
    return [os.getpid(), psutil.Process().create_time()]


def is_running(mark: Any) -> bool:
    """Whether the process with a mark has not ended."""
    try:
        number, began = mark
        return bool(psutil.Process(number).create_time() == began)
    except (TypeError, ValueError, psutil.Error):
        return False


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A private folder for the files of an audit on their way.

    Those of processes that were killed are removed.
    """
    parent = Path(tempfile.gettempdir()).resolve()
    for mark in parent.glob(f"{TEMPORARY}*/{OWNER}"):
        with suppress(OSError, ValueError):
            if not is_own_folder(mark.parent):
                continue
            if not is_running(read_json(mark)):
                shutil.rmtree(mark.parent, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        write_json(folder / OWNER, process_mark())
        yield folder


def is_own_folder(folder: Path) -> bool:
    """Whether a folder among the temporary files is this user's.

    On Windows the directory for temporary files is the user's own.
    """
    if folder.is_symlink():
        return False
    return sys.platform == "win32" or folder.stat().st_uid == os.getuid()


def describe_source(source: Source) -> dict[str, Any]:
    """A list for JSON, without its rows."""
    return {
        "name": source.name,
        "rows": len(source.frame),
        "labels": [str(label) for label in source.frame.columns],
        "remarks": list(source.remarks),
        "has_header": source.has_header,
        "is_text": source.is_text,
        "sheet": source.sheet,
        "sheets": list(source.sheets),
    }


def id_of(content: Path | bytes) -> str:
    """A name for a content."""
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()[:32]
    with content.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def file_of(key: str, suppression: Suppression) -> str:
    """The name of a suppression list in the folder of an audit."""
    name = suppression.path.name
    if name.startswith("suppression-"):
        return name
    return f"suppression-{key}-{name}"


def copy_private(source: Path, target: Path) -> None:
    """Copy a file that only its owner can read, unless that was done."""
    if not target.exists():
        with private_write(target) as temporary:
            shutil.copyfile(source, temporary)


def to_arrow(cells: pd.Series[Any]) -> pa.Array:
    """A column; what Arrow has no type for is kept as text."""
    try:
        return pa.array(cells, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        texts = [None if cell is None else str(cell) for cell in cells]
        return pa.array(texts, pa.string())


@contextmanager
def private_write(path: Path) -> Iterator[Path]:
    """A temporary file that only its owner can read; at the end it takes the place of `path`."""
    with atomic_write(path, sync=True) as temporary:
        temporary.chmod(0o600)
        yield temporary


def write_json(path: Path, content: Any) -> None:
    """Write values as JSON; the file appears whole."""
    with private_write(path) as temporary:
        temporary.write_text(json.dumps(content), encoding="utf-8")


def read_json(path: Path) -> Any:
    """The values of a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table; the file appears whole."""
    options = pa.ipc.IpcWriteOptions(unify_dictionaries=True)
    with (
        private_write(path) as temporary,
        pa.OSFile(str(temporary), "wb") as file,
        pa.ipc.new_file(file, table.schema, options=options) as writer,
    ):
        writer.write_table(table)


def read_table(path: Path) -> pa.Table:
    """A table that was kept."""
    with pa.OSFile(str(path), "rb") as file:
        return pa.ipc.open_file(file).read_all()


# --- from the state and back to it ----------------------------------------------------------------


logger = logging.getLogger("mailverdict")
INTERRUPTED = "The check was interrupted. What was checked is kept. Press Resume to go on."


class Written(NamedTuple):
    """What an audit has kept as tables, which are written again when they are others."""

    source: Source | None = None
    result: Result | None = None
    decided: ByPerson | None = None
    waved: ByPerson | None = None


def open_session(state: AuditState, session: AuditSession, column: Hashable | None = None) -> bool:
    """Bring an audit back as it was left; False if it cannot be read."""
    session.claim()
    try:
        kept = read_session(session, state.wanted)
    except UNREADABLE as exc:
        logger.warning("a kept audit cannot be read: %s", exc)
        session.unlock()
        return False
    source = kept.source
    choices = kept.choices
    with state.lock:
        state.require_idle()
        state.forget()
        state.source = source
        state.given = kept.given
        state.sheets = source.sheets
        state.suppressions |= kept.suppressions
        state.guess = kept.values["guess"]
        if choices.policy not in state.policies:
            choices = replace(choices, policy=state.choices.policy)
        state.choices = choices
        check = state.check
        check.is_refreshing, check.asked_since = kept.values["refreshing"]
        check.info = kept.run
        check.state = kept.values["state"]
        if kept.result is not None:
            info = kept.result.info
            listing = Listing(kept.result.rows, state.policy, choices)
            state.result = Result(listing, info, kept.values["view"])
            # The list was prepared for it: that is not done again where nothing else was chosen.
            inputs = (source, info.made_from.for_tidy())
            state.steps["tidy"].made = (inputs, kept.result.prepared)
        state.written = Written(source, state.result, choices.decided, choices.waved)
        state.session = session
        when = datetime.fromtimestamp((session.folder / STATE).stat().st_mtime, UTC)
        state.work.say("list", f"{source.name} is as you left it on {date_text(when)}.", "done")
        if kept.run is not None and check.state in ("running", "pausing"):
            check.state = "stopped"
            state.work.say("check", INTERRUPTED, "warned")
    names = list(source.frame.columns)
    if column is not None and column in names and names.index(column) != state.choices.column:
        state.choose_column(names.index(column))
    return True


@dataclass(frozen=True, eq=False)
class KeptSession:
    """What was kept of an audit, read again."""

    values: Mapping[str, Any]  # of JSON
    choices: Choices
    source: Source
    given: Given
    suppressions: dict[str, Suppression]
    run: ResultInfo | None  # what the last run was made from
    result: KeptResult | None


def read_session(session: AuditSession, wanted: Mapping[str, Any]) -> KeptSession:
    """Read what was kept; `wanted` are choices that hold whatever was chosen then."""
    kept = session.read()
    choices = replace(
        Choices.from_json(kept["choices"]),
        decided=session.read_people(DECIDED, "string"),
        waved=session.read_people(WAVED, "int64"),
        **wanted,
    )
    source = session.read_list(kept)
    suppressions = {}
    for key, (name, file) in kept["suppressions"].items():
        path = session.folder / Path(file).name
        suppressions[str(key)] = read_suppression(path, str(name))
    run = None
    if kept["run"]:
        run = ResultInfo.from_json(kept["run"])
    return KeptSession(
        values=kept,
        choices=choices,
        source=source,
        given=Given.from_json(kept["given"], kept["read"]),
        suppressions=suppressions,
        run=run,
        result=read_result(session, kept, source, suppressions),
    )


@dataclass(frozen=True, eq=False)
class KeptResult:
    """A result that was kept, and the list for which it was made."""

    rows: AuditedRows
    info: ResultInfo
    prepared: Prepared


def read_result(
    session: AuditSession,
    kept: Mapping[str, Any],
    source: Source,
    suppressions: Mapping[str, Suppression],
) -> KeptResult | None:
    """The result that was kept, if there was one."""
    if kept["result"] is None:
        return None
    info = ResultInfo.from_json(kept["result"])
    choices = info.made_from
    prepared = prepare(source, choices, suppressions.get(choices.suppression))
    rows = session.read_result(prepared, kept["note"])
    if rows is None:
        return None
    return KeptResult(rows, info, prepared)


def to_keep(state: AuditState) -> tuple[Any, ...]:
    """What is kept, to compare."""
    check = state.check
    return (
        state.source,
        state.result,
        state.result and state.result.looks(),
        state.choices,
        check.state,
        check.is_refreshing,
        check.asked_since,
    )


def keep(state: AuditState) -> None:
    """Keep the audit as it is, so that it comes back after the program or the machine has ended."""
    with state.lock:
        session = state.session
        source = state.source
        given = state.given
        result = state.result
        check = state.check
        choices = state.choices
        if session is None or source is None or given is None:
            return
        used = {choices.suppression}
        if result is not None:
            used.add(result.info.made_from.suppression)
        suppressions = {key: state.suppressions[key] for key in used if key}
        files = {}  # name, and the file in the folder
        for key, suppression in suppressions.items():
            files[key] = [suppression.name, file_of(key, suppression)]
        kept = {
            **describe_source(source),
            "given": given.to_json(),
            "guess": state.guess,
            "read": [given.encoding, given.has_header, given.sheet],
            "choices": choices.to_json(),
            "suppressions": files,
            "refreshing": [check.is_refreshing, check.asked_since],
            "run": check.info and check.info.to_json(),
            "state": check.state,
            "result": result and result.info.to_json(),
            "note": result and result.listing.rows.note,
            "view": result and result.looks(),
        }
    session.make()
    for key, suppression in suppressions.items():
        copy_private(suppression.path, session.folder / file_of(key, suppression))
    before = state.written
    if before.source is not source:
        session.write_list(source)
    if result is not None and before.result is not result:
        session.write_result(result.listing.rows)
    if before.decided is not choices.decided:
        session.write_people(DECIDED, choices.decided)
    if before.waved is not choices.waved:
        session.write_people(WAVED, choices.waved)
    state.written = Written(source, result, choices.decided, choices.waved)
    session.write(kept)
