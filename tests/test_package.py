"""The sdist and the wheel made from it, installed without the checkout: what a new user does first works there.

Only a package that is installed alone shows a file that the wheel lacks, or a dependency that only the tests bring. The
environment is empty but for the wheel, what its extra `audit` asks for, and JupyterLab; nothing in it finds the checkout.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import httpx
import pytest

from mailverdict import __version__
from tests import ROOT
from tests.widgets.browser import (
    CHROMIUM,
    NOTEBOOK,
    audit_page,
    chromium,
    folder_with_notebook,
    open_in_lab,
)
from tests.widgets.jupyter import jupyter_lab

pytestmark = [pytest.mark.package, pytest.mark.timeout(1200)]
needs_chromium = pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"
)
SCRIPTS = "Scripts" if sys.platform == "win32" else "bin"
EXAMPLE = re.compile(r"```pycon\n(.*?)```", re.DOTALL)
BUILD = "from hatchling.build import build_{0}; print(build_{0}({1!r}))"
CELL = """
import pandas as pd
import mailverdict as mv
frame = pd.DataFrame({"email": ["ada@gmail.com", "no address"]})
audit = mv.widgets.Audit(frame, validation_type="regex")
audit
"""


@dataclass
class Installed:
    """An environment with the package."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / SCRIPTS / "python"

    @property
    def command(self) -> Path:
        return self.folder / SCRIPTS / "mailverdict"

    def run(self, *arguments: object, cwd: Path) -> str:
        """What the environment's Python prints."""
        return run(self.python, *arguments, cwd=cwd)


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment() -> dict[str, str]:
    """Without what leads Python to the checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def build(kind: str, source: Path, to: Path) -> Path:
    """Make an sdist or a wheel of a source tree, as a tool for packages asks hatchling to."""
    name = run(sys.executable, "-c", BUILD.format(kind, str(to)), cwd=source).split()[-1]
    return to / name


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from the sdist, as where there is no wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return build("wheel", folder / f"mailverdict-{__version__}", folder)


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    made = Installed(tmp_path_factory.mktemp("installed") / "venv")
    venv.create(made.folder, with_pip=True)
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
    constraints = ("--constraint", ROOT / "constraints.txt")
    made.run(*pip, *constraints, f"{wheel}[audit]", "jupyterlab", cwd=made.folder)
    return made


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert expected - set(zipfile.ZipFile(wheel).namelist()) == set()


def test_the_sdist_has_the_tests_and_the_samples_and_no_other_data(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames()}
    assert {"src", "tests", "data", "README.md", "LICENSE", "NOTICE", "pyproject.toml"} <= tops
    assert tops.isdisjoint({"build", "benchmarks", ".venv", "out", "site"})


def test_the_installed_package_is_not_the_checkout(installed: Installed, tmp_path: Path) -> None:
    place = installed.run("-c", "import mailverdict; print(mailverdict.__file__)", cwd=tmp_path)
    assert Path(place.strip()).is_relative_to(installed.folder)


def test_the_first_example_of_the_readme_gives_what_it_says(
    installed: Installed, tmp_path: Path
) -> None:
    found = EXAMPLE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    (tmp_path / "first.md").write_text(found[1], encoding="utf-8")
    installed.run("-m", "doctest", "-o", "NORMALIZE_WHITESPACE", "first.md", cwd=tmp_path)


@pytest.fixture
def audit_url(installed: Installed, tmp_path: Path) -> Iterator[str]:
    """The address of the page of `mailverdict audit FILE --sandbox`."""
    (tmp_path / "contacts.csv").write_text("email\nada@gmail.com\nada@gone.example\n")
    command = [str(installed.command), "audit", "contacts.csv", "--sandbox", "--no-browser"]
    with (tmp_path / "said.txt").open("w") as said:
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**environment(), "XDG_DATA_HOME": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
    assert process.stdout is not None
    with process.stdout:
        url = process.stdout.readline().strip()
        assert url, (tmp_path / "said.txt").read_text()
        try:
            yield url
        finally:
            process.terminate()
            process.wait()


def test_the_audit_serves_its_page_and_the_files_of_the_front_end(audit_url: str) -> None:
    base = audit_url.partition("/#")[0]
    page = httpx.get(base).text
    files = re.findall(r"(?:src|href)=\"\.?/?([\w./-]+\.(?:js|css))\"", page)
    assert len(files) >= 2
    for name in files:
        assert httpx.get(f"{base}/{name}").status_code == 200


@needs_chromium
def test_the_audit_is_shown_in_a_browser_and_in_jupyterlab(
    installed: Installed, audit_url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    notebook = folder_with_notebook(tmp_path_factory, "notebook", CELL)
    with chromium() as browser:
        with audit_page(browser) as opened:
            opened.go_to(audit_url)
            opened.shown("contacts.csv")
            assert opened.is_clean()
        outside = mock.patch.dict(os.environ, environment(), clear=True)
        python = mock.patch.object(sys, "executable", str(installed.python))
        with outside, python, jupyter_lab(notebook) as lab, audit_page(browser) as opened:
            open_in_lab(opened, lab, NOTEBOOK)
            opened.shown("2 rows")
            assert opened.is_clean()
