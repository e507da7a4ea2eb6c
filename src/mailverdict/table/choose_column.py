"""Which column of a table has the addresses of its people: one decision for all that read a table.

An export has more than one column of addresses: the person's, and those of whoever owns, sold or
entered the record. Each column with addresses is a `Candidate`. Those whose name says e-mail come
first, then those whose name says nothing, then those whose name is a role ("owner", "added by",
"billing"). Of one rank the column with the most different addresses comes first: two salesmen fill
a column of 1,500 rows, but they are two. For example

    email 1,310 of 1,500 rows, 1,290 different; owner 1,500 rows, 2 different     -> email
    work email 900 of 1,000 rows, 900 different; home email 950 rows, 940         -> ambiguous

A column whose name says e-mail, and that has addresses in under a tenth of the rows, has no rank by
its name. Of two columns that are equally likely, the one whose name says nothing but e-mail is
meant; without such a name the user must say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnError
from ..model.words import count_of, printable_text
from .cells import is_filled, read_cells, read_texts
from .column_names import NameRank, is_plain_email, rank_name, says_email
from .columns import CLEAN_COLUMNS, COLUMNS, DUPLICATE_COLUMNS, listed

LOOKED_AT = 100_000  # rows that are looked at
SAMPLE_ROWS = 2_000  # of these, which tell whether a column has addresses at all
MIN_SHARE = 0.3  # of the filled cells; a notes column that mentions an address has far less
ENOUGH_ROWS = 0.1  # of the rows; a name alone does not make a column with fewer the right one
MANY_TIMES = 2  # as many different addresses: a column with so many more is the one
MOST_OTHERS = 3  # candidates that are named beside the chosen one
LONGEST_CELL = 1 << 16  # characters of a cell that is looked at; it may hold many addresses
LONGEST_LABEL = 80  # characters of a column's name in a message
ADDRESS = r"(?i)\S@\S|\S\s*[\[({]\s*at\s*[\])}]\s*\S"  # in any text with an address
# One address or several, in angle brackets, after a label, or with a written-out @.
ADDRESS_LIKE = (
    r"(?i)^\s*\S+@\S+\.\S+(?:\s+(?:[/|&;,]\s*|and\s+|or\s+)?\S+@\S+\.\S+)*\s*$|<\S+@\S+>"
    r"|^\s*[\w\-]{1,12}\s*[:=]\s*\S+@\S+\.\S+\s*$|^\s*\S+\s*[\[({]\s*at\s*[\])}]\s*\S+\s*$"
)
# Two columns that `verify`, `clean` or `duplicates` wrote, by which others of the same prefix are
# recognized.
WRITTEN_TOGETHER = (("verdict", "status"), ("clean", "change"), ("identity", "duplicate_of"))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A column that has addresses, or whose name says so."""

    name: Any
    rank: NameRank
    is_plain: bool  # its name says e-mail and nothing else
    rows: int  # looked at
    filled: int
    with_address: int
    with_mention: int  # cells with an address in their text, or nothing else
    different: int  # addresses, without regard to case
    addresses: pa.StringArray = field(repr=False)  # in small letters; null in rows without one

    @property
    def label(self) -> str:
        """The name for a message."""
        return printable_text(str(self.name), LONGEST_LABEL)

    def describe(self, extent: str = "") -> str:
        """The figures in words; `extent` is "the first " if the table has more rows."""
        if not self.filled:
            return "no filled cell"
        addresses = "no address"
        if self.different:
            addresses = count_of(self.different, "different address", "different addresses")
        return f"{self.filled:,} of {extent}{self.rows:,} rows filled, {addresses}"


@dataclass(frozen=True, eq=False)
class ChosenColumn:
    """What was decided about the columns of a table.

    If `chosen` is None, two columns are equally likely (`doubted`), or there is none.
    """

    chosen: Candidate | None
    doubted: tuple[Candidate, ...] = ()
    others: tuple[Candidate, ...] = ()  # with addresses, beside the chosen one
    names: tuple[Any, ...] = ()  # of all columns
    is_whole: bool = True  # all rows were looked at

    @property
    def is_ambiguous(self) -> bool:
        return bool(self.doubted)

    @property
    def is_sure(self) -> bool:
        """Whether nobody else's addresses can be meant: nobody looks at a second table."""
        if self.chosen is None:
            return False
        return self.chosen.rank is not NameRank.ROLE or len(self.names) == 1

    def name(self) -> Any:
        """The chosen column; raise `ColumnError` if there is none."""
        if self.chosen is None:
            raise ColumnError(self.problem())
        return self.chosen.name

    def require_sure(self) -> Any:
        """The chosen column of a table that nobody looks at; `ColumnError` in doubt."""
        if self.chosen is not None and not self.is_sure:
            figures = self.figures(self.chosen)
            raise ColumnError(
                f"the addresses of column {self.chosen.label} ({figures}) may be of somebody else "
                "than the people of the rows: name the column that is meant"
            )
        return self.name()

    def figures(self, candidate: Candidate) -> str:
        """The figures of a column in words."""
        extent = "" if self.is_whole else "the first "
        return candidate.describe(extent)

    def describe(self) -> str:
        """What was chosen, and what else there was.

        >>> people = [f"p{number}@firm.example" for number in range(20)]
        >>> table = {"owner": ["ann@shop.example"] * 20, "email": people}
        >>> for part in choose_column(table).describe().split("; "):
        ...     print(part)
        column email: 20 of 20 rows filled, 20 different addresses
        addresses are also in owner (20 filled, 1 different)
        """
        if self.chosen is None:
            return ""
        parts = [f"column {self.chosen.label}: {self.figures(self.chosen)}"]
        if self.chosen.rank is NameRank.ROLE:
            parts.append("by its name they may be somebody else's")
        if self.others:
            shown = []
            for other in self.others[:MOST_OTHERS]:
                figures = f"{other.filled:,} filled, {other.different:,} different"
                shown.append(f"{other.label} ({figures})")
            left = len(self.others) - len(shown)
            if left:
                shown.append(f"{left:,} more")
            parts.append(f"addresses are also in {' and '.join(shown)}")
        return "; ".join(parts)

    def problem(self) -> str:
        """Why no column was chosen."""
        if self.doubted:
            shown = []
            for candidate in self.doubted:
                shown.append(f"{candidate.label} ({self.figures(candidate)})")
            named = " or ".join(shown)
            return f"the addresses may be those of column {named}: name the one that is meant"
        if not self.names:
            return "the table has no columns to choose from: name the one with the addresses"
        return f"no column looks like e-mail addresses; name one of {listed(list(self.names))}"


def choose_column(columns: Mapping[Any, Any], *, is_whole: bool = True) -> ChosenColumn:
    """Choose the column of addresses by the names and cells of all columns.

    Parameters
    ----------
    columns : mapping
        The cells of each column by its name: of an Arrow table, a frame, or lists. The first
        100,000 rows are looked at.
    is_whole : bool, default True
        Whether these are all rows of the table.

    Returns
    -------
    ChosenColumn
        The column with its figures; or the two that are equally likely; or neither.

    Examples
    --------
    >>> staff, people = ["ann@shop.example"] * 3, ["a@x.example", "b@x.example", None]
    >>> choose_column({"added_by": staff, "E-mail": people}).name()
    'E-mail'
    """
    names = tuple(columns)
    rows = max((len(cells) for cells in columns.values()), default=0)
    is_whole = is_whole and rows <= LOOKED_AT
    written = written_by_us(names)
    candidates = []
    named = []
    for name, cells in columns.items():
        if name in written:
            continue
        candidate = look_at(name, cells)
        if candidate is None:
            continue
        if is_likely(candidate):
            candidates.append(candidate)
        elif says_email(name):
            named.append(candidate)
    if not candidates:
        return ChosenColumn(by_name(named), names=names, is_whole=is_whole)
    candidates.sort(key=likelihood)
    best, *others = candidates
    chosen, doubted = settle([best, *find_rivals(best, others, named)])
    if chosen is not None:
        others = [candidate for candidate in candidates if candidate is not chosen]
        doubted = ()
    return ChosenColumn(chosen, doubted, tuple(others), names, is_whole)


def look_at(name: Any, cells: Any) -> Candidate | None:
    """What a column holds; None if neither a sample of it nor its name speaks of addresses."""
    sample = rows_of(cells, 1)
    step = max(1, len(sample) // SAMPLE_ROWS)
    if not says_email(name) and not has_address(rows_of(sample, step)):
        return None
    texts = read_cells(sample, longest=LONGEST_CELL)["stripped"]
    is_address = pc.match_substring_regex(texts, ADDRESS_LIKE)
    addresses = pc.utf8_lower(pc.if_else(is_address, texts, None))
    has_mention = pc.match_substring_regex(texts, ADDRESS)
    return Candidate(
        name=name,
        rank=rank_name(name),
        is_plain=is_plain_email(name),
        rows=len(texts),
        filled=is_filled(texts).true_count,
        with_address=len(addresses) - addresses.null_count,
        with_mention=has_mention.true_count,
        different=pc.count_distinct(addresses).as_py(),
        addresses=addresses,
    )


def rows_of(cells: Any, step: int) -> Any:
    """Each row of a column that is looked at, or each second, third ..."""
    by_position = getattr(cells, "iloc", cells)
    return by_position[:LOOKED_AT:step]


def has_address(cells: Any) -> bool:
    """Whether any of some cells has an address in it."""
    kind = pa.null()
    if isinstance(cells, pa.Array | pa.ChunkedArray):
        kind = cells.type
    texts = cells
    if not pa.types.is_string(kind) and not pa.types.is_large_string(kind):
        texts = read_texts(cells, longest=LONGEST_CELL)
    has_any = pc.any(pc.match_substring_regex(texts, ADDRESS))
    return bool(has_any.as_py())


def is_likely(candidate: Candidate) -> bool:
    """Whether a column holds addresses, and not only mentions some."""
    if not candidate.with_address:
        return False
    if candidate.with_address >= MIN_SHARE * candidate.filled:
        return True
    return candidate.rank is NameRank.EMAIL and not is_sparse(candidate)


def is_sparse(candidate: Candidate) -> bool:
    """Whether so few rows have an address that the name alone does not decide."""
    return candidate.with_address < ENOUGH_ROWS * candidate.rows


def standing(candidate: Candidate) -> NameRank:
    """The rank that counts."""
    return NameRank.ROLE if is_sparse(candidate) else candidate.rank


def likelihood(candidate: Candidate) -> tuple[NameRank, int]:
    """The likeliest candidate is the first in this order."""
    return standing(candidate), -candidate.different


def find_rivals(
    best: Candidate, others: Iterable[Candidate], named: Iterable[Candidate]
) -> list[Candidate]:
    """The columns that may be meant as well as the best one."""
    rivals = []
    for other in others:
        if standing(other) is not standing(best):
            break
        is_frequent = not (is_sparse(best) or is_sparse(other))
        is_near = best.different < MANY_TIMES * other.different
        is_rival = is_frequent and is_near
        # Somebody else's addresses, beside a few in a column whose name is no role.
        if best.rank is NameRank.ROLE and other.rank is not NameRank.ROLE:
            is_rival = True
        if is_rival and are_different(best, other):
            rivals.append(other)
    if best.rank is NameRank.ROLE:  # somebody else's addresses, beside a column without any
        rivals += [candidate for candidate in named if candidate.is_plain]
    return rivals


def settle(likely: list[Candidate]) -> tuple[Candidate | None, tuple[Candidate, ...]]:
    """The one that is meant of some likely columns; or None, and two of them.

    It is the only one, or the only one whose name says e-mail and nothing else.
    """
    if len(likely) == 1:
        return likely[0], ()
    plain = [candidate for candidate in likely if candidate.is_plain and not is_sparse(candidate)]
    if len(plain) == 1:
        return plain[0], ()
    doubted = plain or likely
    return None, (doubted[0], doubted[1])


def are_different(one: Candidate, other: Candidate) -> bool:
    """Whether most addresses of two columns differ, row by row."""
    same: int = pc.equal(one.addresses, other.addresses).true_count
    return 2 * same < min(one.with_address, other.with_address)


def by_name(named: list[Candidate]) -> Candidate | None:
    """The only column whose name says e-mail, if its cells are empty or mention addresses.

    Of several it is the one whose name says nothing else.
    """
    plain = [candidate for candidate in named if candidate.is_plain]
    likely = plain or named
    if len(likely) != 1:
        return None
    (candidate,) = likely
    if candidate.filled and candidate.with_mention < max(1, MIN_SHARE * candidate.filled):
        return None
    return candidate


def written_by_us(names: Iterable[Any]) -> frozenset[Any]:
    """The columns that mailverdict writes beside another column of the table.

    >>> sorted(written_by_us(["mail", "mail_clean", "clean"]))
    ['mail_clean']
    """
    texts = frozenset(name for name in names if isinstance(name, str))
    ours = [column.name for column in (*COLUMNS, *CLEAN_COLUMNS, *DUPLICATE_COLUMNS)]
    written = set()
    for name in texts:
        for result in ours:
            prefix = name.removesuffix(result)
            if prefix == name:
                continue
            if prefix.endswith("_") and prefix[:-1] in texts:
                written.add(name)
            for one, other in WRITTEN_TOGETHER:
                if prefix + one in texts and prefix + other in texts:
                    written.add(name)
    return frozenset(written)
