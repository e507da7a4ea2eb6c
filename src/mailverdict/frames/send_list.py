"""The send list of a service, and those to take off there: `send_list`.

A verified export of HubSpot goes back as two small files. Of these rows

    Record ID  Email              clean             action
    101        Ada@Example.org    Ada@example.org   send
    102        cy@dead.example                      drop
    103        info@firm.example                    review

the first file has the record 101 with its address, and the second one the record 102; 103 is in
neither. `SendListMaker` makes them piece by piece, for tables of any size: of a row that is sent
two hashes are kept, of a row that is taken off everything.

Nobody may be unsubscribed by mistake. So the second file never has an address or an identifier that
is also in the first one: not of a row that repeats a mailbox, and not the cell "Ada <ada@x.org>",
which an importer could read as the very address that is sent.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.lists.mailboxes import find_mailboxes
from ..model.arrow import Bools, one_array, to_bools
from ..model.words import count_of
from ..table.cells import as_text, strip_texts, to_array
from ..table.importers import Importer, find_importer
from ..table.table import Frame, Table, polars_of
from .duplicates import SentMailboxes
from .policy import Policy, decide_rows, find_policy, read_decided
from .results import Results

ONE_ADDRESS = r"^[^@\s]+@[^@\s]+$"  # what a service may have as the address of a person
# Actions whose rows are in neither file.
NEITHER = {"review": "to review", "retry": "to verify again", "unchecked": "without a verdict"}
LONGEST_ADDRESS = 320  # characters of a cell that may be an address
INVISIBLE = ("Cc", "Cf", "Zs", "Zl", "Zp")  # categories of characters that are not seen


@dataclass(frozen=True)
class SendList(Generic[Frame]):
    """The two files for the importer of a service.

    Attributes
    ----------
    service : str
        The name of the service, as it writes it.
    send : DataFrame
        The people to send to: the identifier column of the export, if it has one, and the address
        under the name that the importer expects; of the kind that was given.
    remove : DataFrame
        The people to unsubscribe or delete there, in the same form.
    notes : tuple of str
        What to know about the files, as sentences.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"Record ID": [101, 102], "Email": ["ada@example.org", "bob@example"]})
    >>> out = mv.verify(df, "Email", validation_type="regex")
    >>> mv.send_list(out, service="hubspot")
    SendList(HubSpot: send=1, remove=1)
    """

    service: str
    send: Frame
    remove: Frame
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        """One line of counts."""
        counts = f"send={len(self.send):,}, remove={len(self.remove):,}"  # type: ignore[arg-type]
        return f"SendList({self.service}: {counts})"


def send_list(
    out: Frame,
    column: Hashable | None = None,
    *,
    service: str,
    policy: Policy | str = "balanced",
    prefix: str | None = None,
) -> SendList[Frame]:
    """Make the send list in the form that a service imports, and the list of those to take off.

    Uses no network. Of the rows that are sent, only the first one of each mailbox is in the list.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned for an export of the service: a pandas, Polars or Arrow frame.
    column : hashable, optional
        The column that was verified; by default the only one.
    service : {"hubspot", "mailchimp", "brevo", "klaviyo", "salesforce"}
        Whose importer it is.
    policy : Policy or {"strict", "balanced", "lenient"}
        What is sent and what is dropped, as in `decide`.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    SendList
        `.send`: the identifier column of the export under its own name, as text (as ``Record ID``
        for HubSpot), and the repaired address under the name that the importer expects; without
        such a column only the address. `.remove`: the same for rows that are dropped or
        suppressed; rows to review or to verify again, and those without a verdict, are in neither.
        Where the importer finds people by their address, the old address of a repaired row is in
        `.remove`, too, since the service would keep it: ``bob@gmial.com``, whose suggestion a
        person has chosen. Nothing in `.remove` names a person in `.send`; so a cell around the same
        address, as ``Ada <ada@example.org>``, is no old address.

    Raises
    ------
    ColumnError, InputError
        As `decide`.
    SettingsError
        As `decide`, or if the service is not known.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"Email Address": ["Ada <ada@example.org>", "bob@example", None]})
    >>> out = mv.verify(df, "Email Address", validation_type="regex")
    >>> files = mv.send_list(out, service="mailchimp")
    >>> files.send
         Email Address
    0  ada@example.org
    >>> files.remove["Email Address"].tolist()
    ['bob@example']
    """
    importer = find_importer(service)
    chosen = find_policy(policy)
    rows = read_decided(out, column, prefix)
    identifier = importer.find_identifier(rows.data.labels(), rows.column)
    maker = SendListMaker(importer, identifier, keeps_repeats=False)
    action = decide_rows(rows, chosen)["action"].cast(pa.string())
    send = maker.add(rows, one_array(action))
    remove = maker.removed()
    return SendList(
        importer.label,
        like(rows.data, send),
        like(rows.data, remove),
        tuple(maker.notes()),
    )


def like(data: Table, table: pa.Table) -> Any:
    """A table of texts as the kind of frame of the caller's data."""
    if data.library == "arrow":
        return table
    if data.library == "polars":
        return polars_of(table)
    columns = {}
    for name in table.column_names:
        columns[name] = pd.array(table[name].to_pylist(), "string")
    return pd.DataFrame(columns)


class SendListMaker:
    """Makes both lists of a table that comes in pieces.

    `add` returns the rows to send of a piece; after the last one `removed` gives those to take off,
    and `notes` what to know about both. Each is a table of texts that is written as it is.
    """

    def __init__(
        self, importer: Importer, identifier: Hashable | None, *, keeps_repeats: bool = True
    ) -> None:
        self.importer = importer
        self.identifier = identifier  # the column of the export that names a person, if it has one
        self.keeps_repeats = keeps_repeats
        self.mailboxes = SentMailboxes()
        self.identifiers = SentMailboxes()  # of the rows that are sent
        self.candidates: list[pa.Table] = []  # what may be taken off, of all pieces
        self.sent = 0  # rows of the first list
        self.actions: Counter[str] = Counter()  # rows by what is done with them
        self.repeats = 0  # rows that are left out, since an earlier one is sent at their mailbox
        self.left_out = 0  # rows that are not taken off, since they name a person who is sent
        nothing = pa.nulls(0, pa.string())
        self.add_candidates(nothing, nothing)

    def no_rows(self) -> pa.Table:
        """The first list without rows, for its header."""
        nothing = pa.nulls(0, pa.string())
        return self.table_of(nothing, nothing, self.importer.address)

    def add(self, rows: Results, action: pa.Array) -> pa.Table:
        """Add a piece with the action of each row; gives the rows to send."""
        self.actions.update(action.to_pylist())
        addresses = strip_texts(rows.addresses)
        identifiers = self.read_identifiers(rows)
        is_sent = to_bools(pc.equal(action, "send"))
        is_removed = to_bools(pc.equal(action, "drop"))
        mailboxes = find_mailboxes(addresses).names
        is_repeat = self.find_repeats(mailboxes, is_sent)
        if not self.keeps_repeats:
            self.repeats += int(np.count_nonzero(is_repeat))
            is_sent &= ~is_repeat
        # Of several addresses of a record the first one is its address; the others are new people.
        named = pc.if_else(is_sent, identifiers, None)
        is_used = self.identifiers.find_repeats(named) > 0
        identifiers = pc.if_else(is_used, None, identifiers)

        self.add_candidates(identifiers.filter(is_removed), addresses.filter(is_removed))
        is_by_address = to_bools(identifiers.is_null()) & (is_sent | is_removed)
        self.add_old_addresses(rows, addresses, is_by_address)
        self.sent += int(np.count_nonzero(is_sent))
        return self.table_of(
            identifiers.filter(is_sent), addresses.filter(is_sent), self.importer.address
        )

    def add_old_addresses(
        self, rows: Results, addresses: pa.StringArray, is_by_address: Bools
    ) -> None:
        """Keep the cells of repaired rows that the service finds by their address."""
        written = strip_texts(rows.texts)
        is_changed = to_bools(pc.not_equal(written, addresses))
        is_changed &= is_by_address
        cells = written.filter(is_changed).to_pylist()
        repaired = addresses.filter(is_changed).to_pylist()
        old = pa.array(old_addresses(cells, repaired), pa.string())
        without = pa.nulls(len(old), pa.string())
        self.add_candidates(without, old, is_old=True)

    def read_identifiers(self, rows: Results) -> pa.StringArray:
        """The identifier of each row as text; null where there is none."""
        if self.identifier is None:
            return pa.nulls(len(rows), pa.string())
        cells = to_array(rows.data.cells(self.identifier))
        if pa.types.is_floating(cells.type):  # as pandas reads whole numbers beside empty cells
            whole = cells.cast(pa.int64(), safe=False)
            is_whole = pc.all(pc.equal(whole, cells))
            if is_whole.as_py() is not False:
                cells = whole
        texts = strip_texts(as_text(cells))
        return pc.if_else(pc.equal(texts, ""), None, texts)

    def find_repeats(self, mailboxes: pa.StringArray, is_sent: Bools) -> Bools:
        """Which rows that are sent repeat the mailbox of an earlier one."""
        sent = pc.if_else(is_sent, mailboxes, None)
        is_repeat: Bools = self.mailboxes.find_repeats(one_array(sent)) > 0
        return is_repeat

    def add_candidates(
        self, identifiers: pa.Array, addresses: pa.Array, *, is_old: bool = False
    ) -> None:
        """Keep what may be taken off; `is_old` is for addresses that a repaired row had before."""
        columns = {
            "identifier": identifiers,
            "address": addresses,
            "is_old": pa.array(np.full(len(addresses), is_old)),
        }
        self.candidates.append(pa.table(columns))

    def removed(self) -> pa.Table:
        """The people to unsubscribe or delete, each once, after all pieces were added."""
        table = pa.concat_tables(self.candidates).combine_chunks()
        addresses = one_array(table["address"])
        identifiers = one_array(table["identifier"])
        is_sent = self.mailboxes.has(find_mailboxes(addresses).names)
        is_sent |= self.identifiers.has(identifiers)
        is_one = pc.match_substring_regex(addresses, ONE_ADDRESS)
        is_named = to_bools(identifiers.is_valid()) | to_bools(is_one)
        is_taken = is_named & ~is_sent
        is_old = to_bools(table["is_old"])
        self.left_out = int(np.count_nonzero(~is_taken & ~is_old))
        identifiers = identifiers.filter(is_taken)
        addresses = addresses.filter(is_taken)
        folded = pc.utf8_lower(addresses)
        people = pa.table({"identifier": identifiers, "address": folded}).to_pandas()
        is_first = ~people.duplicated().to_numpy(bool)
        return self.table_of(
            identifiers.filter(is_first),
            addresses.filter(is_first),
            self.importer.remove_address,
        )

    def table_of(self, identifiers: pa.Array, addresses: pa.Array, name: str) -> pa.Table:
        """Rows of a file: the identifier, if the export has one, and the address."""
        if self.identifier is None:
            return pa.table({name: addresses})
        label = str(self.identifier)
        return pa.table([identifiers, addresses], names=[label, name])

    def notes(self) -> list[str]:
        """What to know about both files, after `removed`."""
        label = self.importer.label
        notes = [f"{label} finds people by their address: the export has no column that names them"]
        if self.identifier is not None:
            notes = [f"{label} finds people by the column {str(self.identifier)!r:.80}"]
        elif not self.importer.identifiers:
            notes = [f"{label} finds people by their address"]
        if self.repeats:
            rows = count_of(self.repeats, "row has a mailbox", "rows have a mailbox")
            notes.append(f"{rows} that an earlier row is sent at: not in the list")
        if self.left_out:
            rows = count_of(self.left_out, "dropped row is", "dropped rows are")
            notes.append(f"{rows} not taken off: of a person who is sent, or without an address")
        others = []
        for action, words in NEITHER.items():
            count = self.actions[action]
            if count:
                others.append(f"{count:,} {words}")
        if others:
            notes.append(f"in neither file: {', '.join(others)}")
        notes.append(f"to take people off {label}: {self.importer.remove}")
        return notes


def old_addresses(written: Sequence[str], sent: Sequence[str]) -> list[str]:
    """The cells that a service may have as the address of another person than the repaired one.

    >>> old_addresses(["ada@gmial.com", "Ada <ada@x.org>"], ["ada@gmail.com", "ada@x.org"])
    ['ada@gmial.com']
    """
    old = []
    for cell, address in zip(written, sent, strict=True):
        is_short = len(cell) <= LONGEST_ADDRESS
        if is_short and "@" in cell and fold_address(address) not in fold_address(cell):
            old.append(cell)
    return old


def fold_address(text: str) -> str:
    """An address as an importer might compare it: without case, blanks and invisible characters."""
    normal = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in normal if unicodedata.category(c) not in INVISIBLE)
