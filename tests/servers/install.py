"""Bring Debian's Postfix, Exim and postgrey onto this machine, next to whatever mail server it runs.

Two mail servers cannot be installed side by side (both provide ``mail-transport-agent``), and a test must not
throw out the one that a machine relies on. So their packages are downloaded and unpacked into a folder of their
own; only the libraries that they need are installed, and PostgreSQL where there is none. Nothing is started here.

Run as root: ``python tests/servers/install.py``. Where that cannot work, it says so and does nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

FOLDER = Path("/var/cache/mailverdict-servers")
PACKAGES = ("postfix", "exim4-daemon-light", "postgrey")
UNPACKED = FOLDER / "unpacked"  # written last: it names what is there
POSTGRESQL = Path("/usr/lib/postgresql")
APT = (
    "apt-get",
    "-o",
    "Acquire::Retries=2",
    "-o",
    "Acquire::http::Timeout=20",
    "-o",
    "DPkg::Lock::Timeout=60",
)
PATIENCE = 150.0  # seconds for everything
QUIET = {"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
USERS = ("postfix", "Debian-exim")  # the users that the servers run as after they drop root
GROUPS = ("postdrop",)  # Postfix does not start without a group for its drop


class CannotInstallError(Exception):
    """Something is missing here; the message says what."""


def run(*command: str, cwd: Path | None = None, until: float | None = None) -> str:
    """Run a command; give what it prints."""
    left = None if until is None else max(1.0, until - time.monotonic())
    try:
        done = subprocess.run(
            command, cwd=cwd, env=QUIET, check=True, capture_output=True, text=True, timeout=left
        )
    except subprocess.CalledProcessError as exc:
        raise CannotInstallError(
            f"{' '.join(command)}: {exc.stderr.strip() or exc.stdout.strip()}"
        ) from exc
    except subprocess.TimeoutExpired as exc:
        raise CannotInstallError(f"{' '.join(command)} takes too long") from exc
    return done.stdout


def why_not() -> str | None:
    """Say why nothing can be installed here, if so."""
    if os.geteuid() != 0:
        return "only root may install them and listen on port 25"
    if shutil.which("apt-get", path=QUIET["PATH"]) is None:
        return "there is no apt-get here"
    return None


def is_unpacked() -> bool:
    """Whether the folder holds the servers, from a run before."""
    return UNPACKED.exists() and UNPACKED.read_text().split() == list(PACKAGES)


def library_names(depends: str) -> list[str]:
    """Names of the libraries among a package's dependencies; the first of alternatives."""
    names = (re.split(r"[\s|(:]", each.strip(), maxsplit=1)[0] for each in depends.split(","))
    return [name for name in names if name.startswith("lib")]


def unpack_servers(until: float) -> None:
    """Download the packages, install their libraries, unpack them."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        downloads = Path(name)
        run(
            *APT, "-o", "APT::Sandbox::User=root", "download", *PACKAGES, cwd=downloads, until=until
        )
        packages = [str(each) for each in sorted(downloads.glob("*.deb"))]
        depends = (run("dpkg-deb", "--field", each, "Depends") for each in packages)
        libraries = {name for each in depends for name in library_names(each)}
        install("openssl", "perl", "adduser", *sorted(libraries), until=until)
        for each in packages:
            run("dpkg-deb", "--extract", each, str(FOLDER))


def install(*packages: str, until: float) -> None:
    """Install packages, and nothing that they merely recommend."""
    run(*APT, "install", "--yes", "--no-install-recommends", *packages, until=until)


def add_users() -> None:
    """Make the users and groups that the packages would make; those that are there stay as they are."""
    for group in GROUPS:
        run("addgroup", "--system", "--quiet", group)
    for user in USERS:
        options = (
            "--system",
            "--group",
            "--quiet",
            "--no-create-home",
            "--home",
            "/nonexistent",
            "--force-badname",
        )
        run("adduser", *options, user)


def install_missing() -> None:
    """Bring what is not there yet."""
    until = time.monotonic() + PATIENCE
    if not POSTGRESQL.exists() or not is_unpacked():
        run(*APT, "update", until=until)
    if not POSTGRESQL.exists():
        install("postgresql", until=until)
    if not is_unpacked():
        unpack_servers(until)
        add_users()
        UNPACKED.write_text("\n".join(PACKAGES))


def main() -> None:
    """Install what is missing, and say what came of it."""
    try:
        if reason := why_not():
            raise CannotInstallError(reason)
        install_missing()
    except CannotInstallError as exc:
        print(f"The servers are not installed, and their tests will be skipped: {exc}")
    else:
        print(f"Postfix, Exim and postgrey are in {FOLDER}, PostgreSQL is in {POSTGRESQL}.")


if __name__ == "__main__":
    main()
