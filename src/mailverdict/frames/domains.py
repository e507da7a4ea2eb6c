"""`lookup_domains`: what the DNS and the lists say about each domain of a column, as a table.

    column: ada@gmail.com, bo@gone.example, eve@gmail.com, nobody

    domain        rows  outcome   mx_records               free
    gmail.com     2     mx        gmail-smtp-in.google...  true
    gone.example  1     nxdomain                           false

The cells are read and repaired as by `verify`; of their addresses only the domains are asked about,
each once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..checks.lists.flags import load_lists
from ..checks.syntax.column import observe_column
from ..errors import SettingsError
from ..local.backend import LocalBackend
from ..local.batch import FLAGS, constant_moment
from ..loop import run_sync
from ..model.evidence import DnsOutcome, DomainEvidence
from ..model.words import ValidationType
from ..runs.options import check_flag, pick_backend
from ..table.columns import to_boolean, to_string, to_utc
from ..table.notices import warn_user
from ..table.options import ColumnChoice
from .reading import read_addresses
from .verify import tables_of

OUTCOME_DTYPE = pd.CategoricalDtype(list(map(str, DnsOutcome)))


def lookup_domains(
    data: Any,
    column: ColumnChoice | None = None,
    *,
    backend: LocalBackend | None = None,
    clean: bool = True,
) -> Any:
    """Look each distinct domain of a column up in the DNS.

    Gives a table with one row per domain, for joins.

    ``verify`` with ``mx`` gives the same evidence to every row of a domain. A table by domain is
    smaller, and other tables can be joined to it in SQL, dbt or DuckDB by the domain of their
    addresses. No quota is used, and no mail server is asked.

    Parameters
    ----------
    data, column
        As in `verify`.
    backend : LocalBackend, optional
        Its resolver and its lists are used; by default those of this machine. A verification
        service gives no evidence by domain.
    clean : bool, default True
        Repair each cell first, as `verify` does.

    Returns
    -------
    DataFrame
        The same kind as `data`, pandas for a Series or list; sorted by `rows`, then by `domain`:

        - `domain`: string, lower case, in A-labels (RFC 5890)
        - `rows`: int64, rows of the column with a well-formed address of this domain
        - `outcome`: category; ``mx``, ``implicit_mx`` (no MX record, but an address: RFC 5321
          section 5.1), ``null_mx`` (RFC 7505), ``no_exchange`` (MX records only of names that no
          host on the Internet has: localhost, RFC 6761, or a number), ``nxdomain``, ``nodata``
          (neither MX record nor address) or ``undetermined`` (no usable answer: nothing is known)
        - `mx_records`: string, the mail servers by preference, joined by ``;``; NA where there are
          none
        - `spamtrap`, `disposable`, `free`: boolean, from the lists; `spamtrap` is True or NA
        - `message`: string, what was seen where there is no mail server; else NA
        - `checked_at`: datetime64[us, UTC]

    Raises
    ------
    ColumnError, SettingsError
        As `verify`; also for a `backend` that is not a `LocalBackend`.
    ResolverError
        If the DNS resolver answers falsely or not at all.

    Warns
    -----
    UserWarning
        If some answers of the resolver are not believed.

    Examples
    --------
    >>> import mailverdict as mv
    >>> emails = ["ada@gmail.com", "bo@gone.example", "eve@gmail.com", "nobody"]
    >>> with mv.sandbox.World() as world:
    ...     found = mv.lookup_domains(emails, backend=world.backend)
    >>> found[["domain", "rows", "outcome", "free"]]
             domain  rows   outcome   free
    0     gmail.com     2        mx   True
    1  gone.example     1  nxdomain  False
    """
    picked = pick_backend(backend)
    if not isinstance(picked, LocalBackend):
        raise SettingsError(
            f"backend={backend!r:.200}: give a LocalBackend, whose resolver is asked"
        )
    tables = tables_of(data, column)
    cells = [table.values() for table in tables]
    read = read_addresses(cells, clean=check_flag("clean", clean))
    syntax = observe_column(read["text"], lenient=clean)
    names = syntax["domain"].dictionary.to_pylist()
    codes = syntax["domain"].indices.drop_null().to_numpy()
    counts = np.bincount(codes, minlength=len(names))
    seen, notices = run_sync(look_up(names, picked, is_owned=picked is not backend))
    warn_user(*notices)
    frame = evidence_frame(names, counts.tolist(), seen, picked)
    converted = tables[0].convert(frame.set_index("domain"))
    if isinstance(converted, pd.DataFrame):
        return converted.reset_index()
    return converted


domains = lookup_domains  # its earlier name


async def look_up(
    names: Sequence[str], backend: LocalBackend, *, is_owned: bool
) -> tuple[dict[int, DomainEvidence], list[str]]:
    """The evidence about each domain by its position, and warnings about the resolver."""
    backend._require_open()
    try:
        if not names:
            return {}, []
        await backend.domains.require_resolver()
        observed = backend.domains.observe(names, ValidationType.MX)
        evidence = {seen.code: seen.dns async for seen in observed}
        return evidence, backend.domains.take_notices()
    finally:
        if is_owned:
            await backend.aclose()


def evidence_frame(
    names: Sequence[str],
    counts: Sequence[int],
    seen: dict[int, DomainEvidence],
    backend: LocalBackend,
) -> pd.DataFrame:
    """The table, with the same dtypes for every input."""
    flags = load_lists(backend.settings.lists).domain_flags(names)
    outcomes = []
    hosts = []
    messages = []
    for code in range(len(names)):
        dns = seen[code]
        names_of_hosts = [exchange.host for exchange in dns.exchanges]
        outcomes.append(str(dns.outcome))
        hosts.append(";".join(names_of_hosts) or None)
        messages.append(dns.message or None)
    moments = constant_moment(backend.clock(), len(names))
    columns: dict[str, Any] = {
        "domain": texts_of(names),
        "rows": np.array(counts, np.int64),
        "outcome": pd.Categorical(outcomes, dtype=OUTCOME_DTYPE),
        "mx_records": texts_of(hosts),
    }
    for name in FLAGS:
        columns[name] = to_boolean(pa.chunked_array([flags[name]]))
    columns["message"] = texts_of(messages)
    columns["checked_at"] = to_utc(pa.chunked_array([moments]))
    frame = pd.DataFrame(columns)
    return frame.sort_values(["rows", "domain"], ascending=[False, True], ignore_index=True)


def texts_of(values: Sequence[str | None]) -> Any:
    return to_string(pa.chunked_array([pa.array(values, pa.string())]))
