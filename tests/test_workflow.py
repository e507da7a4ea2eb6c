"""The workflow for systems without make: its commands have the arguments of the Makefile's targets."""

from __future__ import annotations

import re
import shlex
import tomllib

import pytest
import yaml

from tests import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))


def variable(name: str) -> list[str]:
    """The words of a variable of the Makefile, with those that it names."""
    found = re.search(rf"^{name} \??:?= ([^#\n]*)", MAKEFILE, re.MULTILINE)
    assert found is not None, name
    text = re.sub(r"\$\((\w+)\)", lambda named: " ".join(variable(named[1])), found[1])
    return shlex.split(text)


def commands(job: str) -> list[list[str]]:
    """The command lines of a job."""
    steps = WORKFLOW["jobs"][job]["steps"]
    return [shlex.split(step["run"]) for step in steps if "run" in step and "name" not in step]


def test_the_tests_of_other_systems_are_those_of_make_test() -> None:
    tests = next(command for command in commands("elsewhere") if "--doctest-modules" in command)
    assert tests == [
        *("python", "-m", "pytest", "-q"),
        *variable("PARALLEL"),
        *variable("UNUSED"),
        *variable("TESTED"),
    ]


@pytest.mark.parametrize("command", ["ruff check", "ruff format --check"])
def test_the_style_is_checked_in_the_same_files(command: str) -> None:
    words = shlex.split(command)
    found = next(each for each in commands("elsewhere") if each[: len(words)] == words)
    assert found[len(words) :] == variable("PYTHON_FILES")


def test_linux_runs_targets_that_the_makefile_has() -> None:
    lines = [*commands("linux"), *commands("rest")]
    words = [word for line in lines if "make" in line for word in line[line.index("make") + 1 :]]
    assert words
    assert [word for word in words if not re.search(rf"^{word}:", MAKEFILE, re.MULTILINE)] == []


def test_every_release_of_python_that_is_declared_is_run() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classifiers = project["classifiers"]
    declared = {each.rpartition(" ")[2] for each in classifiers if "Python :: 3." in each}
    for job in ("linux", "elsewhere"):
        assert set(WORKFLOW["jobs"][job]["strategy"]["matrix"]["python"]) == declared
