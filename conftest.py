"""For every run of pytest: which modules have doctests, and how a test that failed is run alone."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

ROOT = Path(__file__).parent
PACKAGE = ROOT / "src" / "mailverdict"
TESTS = ROOT / "tests"
MOST = 20  # commands shown


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out modules of the package without doctests: each worker would import them."""
    if collection_path.suffix == ".py" and PACKAGE in collection_path.parents:
        return ">>>" not in collection_path.read_text(encoding="utf-8") or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for no doctests in the tests."""
    found = yield
    return [
        each
        for each in found
        if TESTS not in file_path.parents or not isinstance(each, DoctestModule)
    ]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print the commands after everything else; the first process has the reports of the others."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(config, "workerinput"):
        return
    failed = [
        report.nodeid for kind in ("error", "failed") for report in reporter.stats.get(kind, [])
    ]
    commands = list(dict.fromkeys(map(command_for, failed)))
    if commands:
        reporter.write_line("Run alone what failed:")
    for line in commands[:MOST]:
        reporter.write_line(f"  {line}")
    if len(commands) > MOST:
        reporter.write_line(f"  and {len(commands) - MOST} more")


def command_for(nodeid: str) -> str:
    """The command for one test; ``-m ''`` lets it run whatever its marks are."""
    path = nodeid.partition("::")[0]
    options = ["-m", ""]
    if path.endswith(".ipynb"):
        nodeid = path  # a cell needs those before it
        options = [
            "--nbval-lax",
            "--nbval-current-env",
            "--nbval-sanitize-with",
            "tests/nbval_sanitize.cfg",
        ]
    elif not path.startswith("tests/"):
        options = ["--doctest-modules", "--doctest-glob=*.md"]
    python = Path(sys.executable)
    shown = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
    return shlex.join([str(shown), "-m", "pytest", *options, nodeid])
