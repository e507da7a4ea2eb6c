"""The documentation: every example is run, every public name is there; `make docs` checks the site that is built."""

from __future__ import annotations

import doctest
import pydoc
import re

import pytest

import mailverdict as mv
from tests import ROOT
from tests.doubles.tables import each_row

DOCS = ROOT / "docs"
# The engine of a recipe, without which it is skipped.
NEEDS = {
    "duckdb.md": "duckdb",
    "schemas.md": "pandera",
    "ray.md": "ray",
}
PROCESSES = ("every-day.md",)  # examples that start the command line several times
PAGES = sorted(path for path in DOCS.rglob("*.md") if "notebooks" not in path.parts)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


# A page may verify a frame again.
@pytest.mark.filterwarnings("ignore:.*verified as they stand:UserWarning")
@pytest.mark.filterwarnings("ignore:known=:UserWarning")  # how old the answers are
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page.name in PROCESSES else ())
        for page in PAGES
    ],
    ids=lambda path: str(path.relative_to(DOCS)),
)
def test_examples_give_what_they_say(page):
    if engine := NEEDS.get(page.name):
        pytest.importorskip(engine)
    failed, _ = doctest.testfile(
        str(page), module_relative=False, optionflags=FLAGS, encoding="utf-8"
    )
    assert failed == 0


@each_row("page", sorted((DOCS / "reference").glob("*.md")), ids=lambda path: path.stem)
def test_every_name_in_the_reference_exists(page):
    for name in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert pydoc.locate(name) is not None, name


def test_every_public_name_is_in_the_reference():
    pages = " ".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    documented = set(re.findall(r"^::: [\w.]*?(\w+)$", pages, re.MULTILINE))
    listed = {
        "Fault",
        "Reason",
        "Status",
        "ValidationType",
        "Verdict",
        "__version__",
    }
    inside = {
        name
        for name in mv.__all__
        if name.endswith("Error") or name in ("QuotaExceeded", "RateLimited")
    }
    assert set(mv.__all__) - documented - listed - inside - {"errors"} == set()


def test_the_landing_page_fits_without_scrolling_sideways():
    blocks = re.findall(
        r"^```\w+\n(.*?)^```",
        (DOCS / "index.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert max(len(line) for block in blocks for line in block.splitlines()) <= 80
    assert len(blocks[0].splitlines()) <= 11


@each_row("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_file_that_a_page_for_developers_names_exists(page):
    found = list(ROOT.glob("*"))
    for folder in ("benchmarks", "docs", "src", "tests", "tools"):
        found += (ROOT / folder).rglob("*")
    text = (ROOT / page).read_text(encoding="utf-8")
    names = re.findall(r"`([\w/-]+(?:/|\.(?:py|toml|ini|csv|txt|md)))`", text)
    assert len(names) > 20
    ends = [f"/{name.rstrip('/')}" for name in names]
    files = [path.as_posix() for path in found]
    assert [end for end in ends if not any(file.endswith(end) for file in files)] == []
