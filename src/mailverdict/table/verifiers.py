"""What other verifiers call their columns and results: the table of `verifiers.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from .columns import plain_word

WORDS = ("status", "reason")  # fields with words of the service; one that is in no row is not known
FLAGS = (
    "role",
    "spamtrap",
    "disposable",
    "free",
    "catch_all",
)  # fields that are columns of ours, too
SKIP = "skip"  # nothing was checked


@dataclass(frozen=True)
class VerifierLayout:
    """The result files of a service or tool; all names and words are in the form of `plain_word`."""

    service: str
    source: str  # where the layout was seen, and when
    needs: tuple[
        frozenset[str], ...
    ]  # the columns by which it is known; of several sets one is enough
    columns: Mapping[str, tuple[str, ...]]  # ours -> theirs; the first that is there counts
    rows: tuple[tuple[Mapping[str, frozenset[str] | bool], str], ...]  # what fits, and what it is

    def fits(self, names: frozenset[str]) -> int:
        """How many of the columns by which it is known a table has; 0 if one is not there."""
        return max((len(needed) for needed in self.needs if needed <= names), default=0)

    @cached_property
    def words(self) -> Mapping[str, frozenset[str]]:
        """The known words of each field of `WORDS`."""
        found: dict[str, set[str]] = {name: set() for name in WORDS}
        for fields, _ in self.rows:
            for name in found.keys() & fields.keys():
                words = fields[name]
                found[name].update(() if isinstance(words, bool) else words)
        return {name: frozenset(words) for name, words in found.items()}


@cache
def verifier_layouts() -> tuple[VerifierLayout, ...]:
    """The known layouts, each service once."""
    text = files("mailverdict.data").joinpath("verifiers.toml").read_text(encoding="utf-8")
    return tuple(
        VerifierLayout(
            each["service"],
            each["source"],
            tuple(frozenset(plain_words(names)) for names in each["needs"]),
            {ours: plain_words(theirs) for ours, theirs in each["columns"].items()},
            tuple(
                (
                    {
                        name: value if isinstance(value, bool) else frozenset(plain_words(value))
                        for name, value in row.items()
                        if name != "is"
                    },
                    row["is"],
                )
                for row in each["rows"]
            ),
        )
        for each in tomllib.loads(text)["layout"]
    )


def plain_words(text: str) -> tuple[str, ...]:
    return tuple(map(plain_word, text.split()))
