"""A PostgreSQL cluster of Debian's package, for as long as the tests run."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import create_engine, text

from mailverdict.service import ServiceSettings
from mailverdict.service.jobs.store import Store

SERVER = "postgres"
USER = "postgres"  # the server refuses to run as root
PATIENCE = "300"  # seconds for a start on a busy machine


def binaries() -> Path | None:
    """Where the server's programs are, or None where it is not installed."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    return found[-1].parent if found else None


def as_server(command: list[str]) -> list[str]:
    """The command under an account that the server accepts."""
    return ["runuser", "-u", USER, "--", *command] if os.geteuid() == 0 else command


@dataclass
class Cluster:
    """A running cluster that is reached by a socket in its own directory."""

    folder: Path
    programs: Path
    numbers: itertools.count = field(default_factory=itertools.count)
    template: str | None = None  # a database that is copied
    port: int | None = None  # TCP on loopback, where a password is asked for; None: only the socket

    def start(self) -> None:
        self.folder.mkdir(parents=True)
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER, USER)
        methods = ("--auth-local=trust", "--auth-host=scram-sha-256")
        self.run("initdb", "-D", str(self.data), "-U", USER, *methods, "-E", "UTF8", "--no-sync")
        self.start_server()

    def start_server(self) -> None:
        listen = "''" if self.port is None else f"127.0.0.1 -c port={self.port}"
        options = (
            f"-c listen_addresses={listen} -c unix_socket_directories={self.folder} -c fsync=off"
        )
        self.control("-l", str(self.folder / "log"), "-o", options, "start")

    def restart(self) -> None:
        """Stop at once, as in a crash, and start again."""
        self.control("-l", str(self.folder / "log"), "-m", "immediate", "restart")

    def stop(self) -> None:
        self.control("-m", "immediate", "stop")

    def control(self, *arguments: str) -> None:
        """Start or stop the server, and wait until that is done."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "-t", PATIENCE, *arguments)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(self, program: str, *arguments: str) -> None:
        command = as_server([str(self.programs / program), *arguments])
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")

    def url(self, database: str) -> str:
        port = "" if self.port is None else f"&port={self.port}"
        return f"postgresql+psycopg://{USER}@/{database}?host={self.folder}{port}"

    def prepared_database(self) -> str:
        """The URL of a new database with the tables of a store, in a tenth of the time."""
        if self.template is None:
            url = self.empty_database()
            Store(ServiceSettings(store=url)).close()
            self.template = url.split("@/")[1].split("?", maxsplit=1)[0]
        return self.empty_database(self.template)

    def empty_database(self, template: str = "template1") -> str:
        """The URL of a new database."""
        name = f"test{next(self.numbers)}"
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {template}"))
        engine.dispose()
        return self.url(name)
