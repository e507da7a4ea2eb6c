"""What the model knows of a list: the mailbox and the cell of each row.

Rows of one cell are forecast alike. A cell is a verdict with its reason, an operator and a domain:

    email             verdict  why        operator      domain of the cell
    ada@firm.example  risky    catch_all  microsoft365  firm.example
    bo@tiny.example   risky    catch_all  microsoft365                (of fewer than 3 mailboxes)
    cy@gmail.com      valid    none       google        gmail.com

Everything is a code for each row and a name for each code, so that a million rows need no Python
loop (`Coded`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.operators import SELF, known_operators
from ..errors import InputError
from ..frames.duplicates import read_mailboxes
from ..frames.results import Results
from ..model.arrow import Bools, to_bools
from ..model.table import SOURCE_JOURNAL, SOURCE_LOCAL, SOURCE_REMOTE
from ..model.words import WHY_MEANING, ValidationType, Verdict
from ..table.columns import ARROW_TYPES
from .list_key import key_of_list
from .notes import read_note
from .rates import CELL, NO_REASON, Codes, is_good_cell

# The reason of a valid row whose mailbox no mail server was asked about.
NOT_ASKED = "mailbox_not_asked"
OTHER = "other"  # the reason where it is a word that only a service has
KNOWN_REASONS = (NO_REASON, NOT_ASKED, *WHY_MEANING)
# Mailboxes of a list: a domain with fewer may be a person, and is counted with others.
SMALL_DOMAIN = 3
Names = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of texts."""

    code: Codes  # of each row
    names: Names  # of each code

    def at(self, rows: Codes) -> Names:
        """The texts of some rows."""
        return self.names[self.code[rows]]

    def joined(self) -> Coded:
        """The same with one code for equal names."""
        short, names = pd.factorize(self.names)
        return Coded(short[self.code], np.asarray(names, object))


@dataclass(frozen=True, eq=False)
class ListMailboxes:
    """The mailbox of each row, and the domain of each mailbox."""

    code: Codes  # of each row; -1 where there is no address
    names: pa.StringArray  # of each code: the text by which an address is matched
    domain: Codes  # of each code
    domains: pa.StringArray  # the names of the domains

    @property
    def has_one(self) -> Bools:
        """Rows with an address."""
        return np.asarray(self.code >= 0, np.bool_)

    def first_of(self, mask: Bools) -> Codes:
        """The first row of each mailbox, of some rows."""
        rows = np.flatnonzero(mask)
        is_repeated = pd.Series(self.code[rows]).duplicated().to_numpy()
        return rows[~is_repeated]


def name_mailboxes(texts: pa.StringArray) -> pa.StringArray:
    """The mailbox of each address, as in `duplicates`; of other texts the text in lower case."""
    mailboxes = read_mailboxes(texts.fill_null("")).names
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    return pc.coalesce(mailboxes, lower)


def read_list_mailboxes(rows: Results) -> ListMailboxes:
    """The mailboxes of a list."""
    coded = name_mailboxes(rows.addresses).dictionary_encode()
    names = coded.dictionary
    domain = pc.replace_substring_regex(names, "^.*@", "").dictionary_encode()
    return ListMailboxes(
        code=coded.indices.fill_null(-1).to_numpy().astype(np.int64),
        names=names,
        domain=domain.indices.to_numpy().astype(np.int64),
        domains=domain.dictionary,
    )


@dataclass(frozen=True, eq=False)
class ListCells:
    """The cell of each row, and a line for each cell."""

    mailboxes: ListMailboxes
    cell: Codes  # of each row: the line of the table
    table: pd.DataFrame  # the columns of `CELL`, and `domains`: how many a line is about
    key: str  # of the list: that of the note if there is one, since the frame may be a part

    @property
    def is_good(self) -> Bools:
        """Rows that are valid, and a mail server was asked."""
        return is_good_cell(self.table)[self.cell]

    @property
    def operators(self) -> Names:
        """The operator of each row; empty where it is not known, or small."""
        return self.table["operator"].to_numpy(object)[self.cell]


def cells_of(
    rows: Results, mailboxes: ListMailboxes, known: pd.DataFrame | None = None
) -> ListCells:
    """The cells of a list.

    The domain of a cell is empty if fewer than three mailboxes of the list are there, and so is an
    operator that the packaged table does not have, unless they are in `known` counts. A word that
    only a service has is ``other``, since it may have a part of an address.
    """
    known_domains = set[str]()
    known_operator_names = {SELF, *known_operators()}
    if known is not None:
        known_domains |= set(known["domain"])
        known_operator_names |= set(known["operator"])
    domains = code_domains(mailboxes, known_domains)
    operators = code_operators(rows, mailboxes, known_operator_names)
    columns = [code_verdicts(rows), code_reasons(rows), operators, domains]
    columns = [column.joined() for column in columns]

    # A number for each combination, then one for each that is there.
    cell = np.zeros(len(rows), np.int64)
    for column in columns:
        cell = cell * len(column.names) + column.code
        cell = pd.factorize(cell)[0].astype(np.int64)
    size = int(cell.max(initial=-1)) + 1
    row = first_rows(cell, size)
    lines = {name: column.at(row) for name, column in zip(CELL, columns, strict=True)}
    table = pd.DataFrame(lines)
    table["domains"] = count_domains(cell, domains.code, size)
    key = read_note(rows).key or key_of_list(mailboxes.names)
    return ListCells(mailboxes, cell, table, key)


def first_rows(group: Codes, size: int) -> Codes:
    """The first row of each group; rows of -1 are in none."""
    first = np.zeros(size, np.int64)
    rows = np.flatnonzero(group >= 0)[::-1]
    first[group[rows]] = rows
    return first


def code_domains(mailboxes: ListMailboxes, known: set[str]) -> Coded:
    """The domain of each row; small ones are empty, and so is that of a row without an address."""
    sizes = np.bincount(mailboxes.domain, minlength=len(mailboxes.domains))
    names = keep_large(mailboxes.domains, sizes, known)
    # The last name is that of a row without an address, whose code is -1.
    code = np.append(mailboxes.domain, -1)[mailboxes.code]
    return Coded(code, np.append(names, ""))


def code_operators(rows: Results, mailboxes: ListMailboxes, known: set[str]) -> Coded:
    """The operator of each row; empty where it is not known, or small."""
    coded = rows["operator"].cast(pa.string()).fill_null("").dictionary_encode()
    code = coded.indices.to_numpy().astype(np.int64)
    # An operator counts by mailboxes, so that a repeated row says nothing.
    first = first_rows(mailboxes.code, len(mailboxes.names))
    sizes = np.bincount(code[first], minlength=len(coded.dictionary))
    return Coded(code, keep_large(coded.dictionary, sizes, known))


def keep_large(names: pa.Array, sizes: Codes, known: set[str]) -> Names:
    """The names that are known or have `SMALL_DOMAIN` mailboxes; empty texts for the others."""
    texts = names.to_numpy(zero_copy_only=False)
    is_kept = sizes >= SMALL_DOMAIN
    if known:
        is_known = pc.is_in(names, pa.array(list(known), names.type))
        is_kept = is_kept | to_bools(is_known)
    return np.asarray(np.where(is_kept, texts, ""), object)


def code_verdicts(rows: Results) -> Coded:
    """The verdict of each row, or what stands in its place."""
    bucket = rows.buckets
    code = bucket.indices.fill_null(0).to_numpy().astype(np.int64)
    return Coded(code, bucket.dictionary.to_numpy(zero_copy_only=False))


def count_domains(cell: Codes, domain: Codes, size: int) -> Codes:
    """How many domains each cell is about, at least one."""
    width = int(domain.max(initial=0)) + 2
    pairs = pd.unique(cell * width + domain + 1)
    count = np.bincount(pairs // width, minlength=size)
    return np.maximum(count, 1)


def code_reasons(rows: Results) -> Coded:
    """The reason of each row in a word."""
    coded = rows.why.fill_null(NO_REASON).dictionary_encode()
    words = [*coded.dictionary.to_pylist(), NOT_ASKED]
    code = coded.indices.to_numpy().astype(np.int64)
    if NO_REASON in words:
        is_valid = to_bools(pc.equal(rows.buckets, str(Verdict.VALID)).fill_null(False))
        is_bare = is_valid & (code == words.index(NO_REASON))
        code[is_bare & ~is_asked(rows)] = words.index(NOT_ASKED)
    names = [OTHER] * len(words)
    for place, word in enumerate(words):
        if word in KNOWN_REASONS:
            names[place] = word
    return Coded(code, np.array(names, object))


def is_asked(rows: Results) -> Bools:
    """Whether a mail server was asked about each mailbox, as other verifiers do."""
    is_foreign = is_of_another_verifier(rows)
    by_flag = to_bools(rows["catch_all"].is_valid()) | is_foreign
    smtp = str(ValidationType.SMTP)
    if "validation_type" in rows:
        kind = rows["validation_type"].cast(pa.string())
        return to_bools(pc.equal(kind, smtp).fill_null(False)) | by_flag
    noted = rows.data.notes().get("validation_type")
    if noted:
        return np.full(len(rows), noted == smtp) | is_foreign
    if is_foreign.any():
        return by_flag
    return np.full(len(rows), bool(by_flag.any()))


def is_of_another_verifier(rows: Results) -> Bools:
    """Rows whose result was read from the export of another verifier."""
    if "source" not in rows:
        return np.zeros(len(rows), np.bool_)
    ours = pa.array([SOURCE_LOCAL, SOURCE_REMOTE, SOURCE_JOURNAL])
    source = rows["source"].cast(pa.string())
    return to_bools(pc.and_not(source.is_valid(), pc.is_in(source, ours)))


def says_who_was_asked(rows: Results) -> bool:
    """Whether a column or a note tells if mail servers were asked."""
    if "validation_type" in rows or "validation_type" in rows.data.notes():
        return True
    has_value = [rows[name].null_count < len(rows) for name in ("catch_all", "source")]
    return any(has_value)


def read_waves(rows: Results) -> Codes:
    """The wave of each row; 0 for none."""
    message = f"the column of waves of {rows.column!r} holds something else than 1, 2, ..."
    try:
        texts = pc.coalesce(rows["wave"].cast(pa.string()), "0")
        numbers = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        raise InputError(message) from None
    is_whole = np.isin(numbers % 1, [0.0])
    is_number = is_whole & (numbers >= 0) & (numbers < 2**31)
    if not is_number.all():
        raise InputError(message)
    return np.asarray(numbers, np.int64)


def read_wave_times(
    rows: Results, wave_of: Codes, released: Mapping[int, datetime]
) -> pa.TimestampArray:
    """When the wave of each row was planned, by the column or the note; null where it is not known.

    Polars and CSV lose the note, and a frame of an earlier release has no column.
    """
    noted = times_of_waves(wave_of, released)
    times = pc.coalesce(rows["wave_at"].cast(noted.type), noted)
    return pc.if_else(pa.array(wave_of > 0), times, None)


def times_of_waves(wave_of: Codes, times: Mapping[int, datetime]) -> pa.TimestampArray:
    """The time of each row's wave; null where it is not known."""
    numbers = pa.array(list(times), pa.int64())
    values = pa.array(list(times.values()), ARROW_TYPES["moment"])
    return values.take(pc.index_in(pa.array(wave_of, pa.int64()), numbers))
