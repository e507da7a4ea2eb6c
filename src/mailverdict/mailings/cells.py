"""What the model knows of a list: the mailbox and the cell of each row.

Rows of one cell are forecast alike. A cell is a verdict with its reason, an operator and a domain:

    email                 verdict  why        operator      domain of the cell
    ada@firm.example      risky    catch_all  microsoft365  firm.example
    bo@tiny.example       risky    catch_all  microsoft365             (fewer than three mailboxes
    are there) cy@gmail.com          valid    none       google        gmail.com

Everything is a code for each row and a name for each code, so that a million rows need no Python
loop.
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
from .rates import CELL, NO_REASON, Codes

# The reason of a valid row whose mailbox no mail server was asked about.
NOT_ASKED = "mailbox_not_asked"
OTHER = "other"  # the reason where it is a word that only a service has
KNOWN_REASONS = (NO_REASON, NOT_ASKED, *WHY_MEANING)
# Mailboxes of a list: a domain with fewer may be a person, and is counted with others.
SMALL_DOMAIN = 3


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


def name_mailboxes(texts: pa.StringArray) -> pa.StringArray:
    """The mailbox of each address, as in `duplicates`; of other texts the text in lower case."""
    others = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    return pc.coalesce(read_mailboxes(texts.fill_null("")).names, others)


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
        table = self.table
        is_good = (table["verdict"] == str(Verdict.VALID)) & (table["why"] == NO_REASON)
        return is_good.to_numpy(np.bool_)[self.cell]

    @property
    def operators(self) -> npt.NDArray[np.object_]:
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
    known_names = {SELF, *known_operators()}
    if known is not None:
        known_domains |= set(known["domain"])
        known_names |= set(known["operator"])
    code = mailboxes.code
    # A row of each mailbox: an operator counts by mailboxes, so that a repeated row says nothing.
    first = np.zeros(len(mailboxes.names), np.int64)
    has_one = np.flatnonzero(code >= 0)[::-1]
    first[code[has_one]] = has_one

    sizes = np.bincount(mailboxes.domain, minlength=len(mailboxes.domains))
    domain_names = keep_large(mailboxes.domains, sizes, known_domains)
    domain_code = np.append(mailboxes.domain, -1)[code]

    operator = rows["operator"].cast(pa.string()).fill_null("").dictionary_encode()
    operator_code = operator.indices.to_numpy().astype(np.int64)
    sizes = np.bincount(operator_code[first], minlength=len(operator.dictionary))
    operator_names = keep_large(operator.dictionary, sizes, known_names)

    bucket = rows.buckets
    verdict_names = bucket.dictionary.to_numpy(zero_copy_only=False)
    verdict_code = bucket.indices.fill_null(0).to_numpy().astype(np.int64)
    why_names, why_code = code_reasons(rows)

    named = [
        (verdict_names, verdict_code),
        (why_names, why_code),
        (operator_names, operator_code),
        (np.append(domain_names, ""), domain_code),
    ]
    whole = np.zeros(len(code), np.int64)
    columns = []
    for names, codes in named:
        short, distinct = pd.factorize(np.asarray(names, object))
        columns.append((distinct, short[codes]))
        whole = whole * len(distinct) + short[codes]
        whole = pd.factorize(whole)[0].astype(np.int64)
    size = int(whole.max(initial=-1)) + 1
    line = np.zeros(size, np.int64)
    line[whole[::-1]] = np.arange(len(whole))[::-1]
    table = pd.DataFrame(
        {name: distinct[codes[line]] for name, (distinct, codes) in zip(CELL, columns, strict=True)}
    )
    table["domains"] = count_domains(whole, domain_code, size)
    key = read_note(rows).key or key_of_list(mailboxes.names)
    return ListCells(mailboxes, whole, table, key)


def keep_large(names: pa.Array, sizes: Codes, known: set[str]) -> npt.NDArray[np.object_]:
    """The names that are known or have `SMALL_DOMAIN` mailboxes; empty texts for the others."""
    texts = names.to_numpy(zero_copy_only=False)
    is_kept = sizes >= SMALL_DOMAIN
    if known:
        is_kept = is_kept | to_bools(pc.is_in(names, pa.array(list(known), names.type)))
    return np.asarray(np.where(is_kept, texts, ""), object)


def count_domains(cell: Codes, domain: Codes, size: int) -> Codes:
    """How many domains each cell is about, at least one."""
    pairs = pd.unique(cell * (int(domain.max(initial=0)) + 2) + domain + 1)
    count = np.bincount(pairs // (int(domain.max(initial=0)) + 2), minlength=size)
    return np.maximum(count, 1)


def code_reasons(rows: Results) -> tuple[npt.NDArray[np.object_], Codes]:
    """The reason of each row as a code, and the word of each code."""
    coded = rows.why.fill_null(NO_REASON).dictionary_encode()
    words = [*coded.dictionary.to_pylist(), NOT_ASKED]
    code = coded.indices.to_numpy().astype(np.int64)
    if NO_REASON in words:
        is_valid = to_bools(pc.equal(rows.buckets, str(Verdict.VALID)).fill_null(False))
        is_bare = is_valid & (code == words.index(NO_REASON))
        code[is_bare & ~is_asked(rows)] = len(words) - 1
    names = [word if word in KNOWN_REASONS else OTHER for word in words]
    return np.array(names, object), code


def is_asked(rows: Results) -> Bools:
    """Whether a mail server was asked about each mailbox, as other verifiers do."""
    is_foreign = np.zeros(len(rows), np.bool_)
    if "source" in rows:
        ours = pa.array([SOURCE_LOCAL, SOURCE_REMOTE, SOURCE_JOURNAL])
        source = rows["source"].cast(pa.string())
        is_foreign = to_bools(pc.and_not(source.is_valid(), pc.is_in(source, ours)))
    by_flag = to_bools(rows["catch_all"].is_valid()) | is_foreign
    if "validation_type" in rows:
        kind = rows["validation_type"].cast(pa.string())
        return to_bools(pc.equal(kind, str(ValidationType.SMTP)).fill_null(False)) | by_flag
    noted = rows.data.notes().get("validation_type")
    if noted:
        return np.full(len(rows), noted == ValidationType.SMTP) | is_foreign
    if is_foreign.any():
        return by_flag
    return np.full(len(rows), bool(by_flag.any()))


def says_who_was_asked(rows: Results) -> bool:
    """Whether a column or a note tells if mail servers were asked."""
    if "validation_type" in rows or "validation_type" in rows.data.notes():
        return True
    return any(rows[name].null_count < len(rows) for name in ("catch_all", "source"))


def read_waves(rows: Results) -> Codes:
    """The wave of each row; 0 for none."""
    message = f"the column of waves of {rows.column!r} holds something else than 1, 2, ..."
    try:
        texts = pc.coalesce(rows["wave"].cast(pa.string()), "0")
        numbers = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        raise InputError(message) from None
    is_whole = np.isin(numbers % 1, [0.0]) & (numbers >= 0) & (numbers < 2**31)
    if not is_whole.all():
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
