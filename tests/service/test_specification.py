"""The table of the specification: every sentence has a test that names it, and the tests are there."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

from tests import TESTS
from tests.doubles.tables import assert_none_differ, rows_of_csv

ROWS = rows_of_csv(Path(__file__).parent / "specification.csv")
# The headings of the specification, and the tables below them.
SECTIONS = [
    "document",
    "what it does",
    "envelope",
    "meta",
    "payload",
    "payload rules",
    "verdict",
    "precedence",
    "meaning of valid",
    "saturation",
    "quota record",
    "bulk entry",
    "job record",
    "states",
    "check-email",
    "quota",
    "bulk-check-email",
    "verification-result",
    "polling guidance",
    "authentication",
    "events",
    "standard errors",
    "short errors",
    "limits",
    "versioning",
    "earlier revision",
]


@cache
def functions_of(path: str) -> frozenset[str]:
    """The test functions of a file."""
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_every_sentence_has_tests_that_exist() -> None:
    named = [
        (row["section"], row["sentence"], *each.partition("::"))
        for row in ROWS
        for each in row["tests"].split(";")
    ]
    assert_none_differ(
        (section, sentence, path, function)
        for section, sentence, path, _, function in named
        if not function.startswith("test_") or function not in functions_of(path)
    )


def test_table_follows_the_specification_section_by_section() -> None:
    assert list(dict.fromkeys(row["section"] for row in ROWS)) == SECTIONS


def test_no_sentence_stands_there_twice() -> None:
    counted = Counter((row["section"], row["sentence"]) for row in ROWS)
    assert [key for key, count in counted.items() if count > 1] == []
