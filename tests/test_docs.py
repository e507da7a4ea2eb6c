"""The documentation: every example is run, every public name is there, and nothing is fetched from elsewhere."""

from __future__ import annotations

import doctest
import pydoc
import re
from types import SimpleNamespace

import pytest
from tools.check_site import errors, main
from tools.docs_hooks import BOOSTS, MARK, TABLES, on_page_content, on_page_markdown, on_post_page

import mailverdict as mv
from tests import ROOT

DOCS = ROOT / "docs"
NEEDS = {
    "duckdb.md": "duckdb",
    "schemas.md": "pandera",
    "ray.md": "ray",
}  # the engine of a recipe, without which it is skipped
PAGES = sorted(path for path in DOCS.rglob("*.md") if "notebooks" not in path.parts)
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
EXTERNAL = [
    ('<script src="https://cdn.test/x.js"></script>', "a script"),
    ('<script src="//cdn.test/x.js"></script>', "one by the page's own scheme"),
    ('<link rel="stylesheet" href="https://fonts.test/css">', "a style sheet"),
    ('<link rel="preconnect" href="https://fonts.test">', "a connection made ahead"),
    ('<img alt="" src="http://images.test/x.png">', "a picture"),
    ("<style>@import 'https://fonts.test/css';</style>", "a style sheet within another"),
    ("<style>p{background:url(https://images.test/x.png)}</style>", "a background"),
    ('<p style="background:url(//images.test/x.png)">', "one on an element"),
    ('<script>import("https://cdn.test/x.mjs")</script>', "a module, when the script runs"),
]
INTERNAL = [
    ('<a href="https://elsewhere.test/">', "a link is followed by a person"),
    ('<link rel="canonical" href="https://docs.test/">', "says where the page lives"),
    ('<script src="../assets/x.js"></script>', "a file of the site"),
    ('<img src="data:image/png;base64,AAAA">', "a picture within the page"),
    ("<code>url(https://images.test/x.png)</code>", "a text about it"),
]


@pytest.mark.filterwarnings("ignore:.*malformed row:UserWarning")  # a page may show what is told about them
@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_examples_give_what_they_say(page):
    if engine := NEEDS.get(page.name):
        pytest.importorskip(engine)
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_every_mark_has_its_table(page):
    markdown = page.read_text(encoding="utf-8")
    filled = on_page_markdown(markdown)
    assert not MARK.search(filled)
    assert filled.count("\n| --- |") + filled.count("```text") >= len(MARK.findall(markdown))


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_used_once(name):
    assert sum(f"<!-- table: {name} -->" in page.read_text(encoding="utf-8") for page in PAGES) == 1


@pytest.mark.parametrize("page", sorted((DOCS / "reference").glob("*.md")), ids=lambda path: path.stem)
def test_every_name_in_the_reference_exists(page):
    for name in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert pydoc.locate(name) is not None, name


def test_every_public_name_is_in_the_reference():
    pages = " ".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    documented = set(re.findall(r"^::: [\w.]*?(\w+)$", pages, re.MULTILINE))
    listed = {"Fault", "Reason", "STATUS_DTYPE", "Status", "VERDICT_DTYPE", "ValidationType", "Verdict", "__version__"}
    inside = {name for name in mv.__all__ if name.endswith("Error") or name in ("QuotaExceeded", "RateLimited")}
    assert set(mv.__all__) - documented - listed - inside - {"errors"} == set()


@pytest.mark.parametrize(("page", "why"), EXTERNAL, ids=[why for _, why in EXTERNAL])
def test_what_is_fetched_from_elsewhere_is_found(tmp_path, page, why):
    (tmp_path / "page.html").write_text(page)
    assert len(list(errors(tmp_path))) == 1
    assert main(tmp_path) == 1


@pytest.mark.parametrize(("page", "why"), INTERNAL, ids=[why for _, why in INTERNAL])
def test_links_within_the_site_are_accepted(tmp_path, page, why):
    (tmp_path / "page.html").write_text(page)
    assert list(errors(tmp_path)) == []
    assert main(tmp_path) == 0


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("catch-all", "explanation/smtp.md"),
        ("greylist", "explanation/smtp.md"),
        ("bounce", "how-to/outcomes.md"),
    ],
)
def test_the_search_lists_the_page_that_explains_a_word_first(word, page):
    """The search ranks a word in a heading, times the boost of the page, above all else."""
    rank = {path: BOOSTS.get(path.relative_to(DOCS).parts[0], 1.0) for path in PAGES if word in headings(path)}
    assert max(rank, key=lambda path: (rank[path], path == DOCS / page)) == DOCS / page
    assert list(rank.values()).count(max(rank.values())) == 1


def headings(page):
    return " ".join(re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)).lower()


def test_a_page_is_boosted_by_its_folder():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="how-to/clean.md"), meta={})
    assert on_page_content("<p>", page) == "<p>"
    assert page.meta == {"search": {"boost": BOOSTS["how-to"]}}


def test_the_landing_page_fits_without_scrolling_sideways():
    blocks = re.findall(
        r"^```\w+\n(.*?)^```", (DOCS / "index.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert max(len(line) for block in blocks for line in block.splitlines()) <= 80
    assert len(blocks[0].splitlines()) <= 11


def test_a_site_without_pages_is_an_error(tmp_path):
    assert main(tmp_path) == 1


def test_only_the_diagram_loader_is_taken_out_of_a_page():
    page = '<script type="module">import("//x/mermaid.mjs")</script><script>keep()</script><script src=""></script>'
    assert on_post_page(page) == "<script>keep()</script>"
