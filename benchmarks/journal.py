"""How long a column that is known takes: `verify` over a journal of 100,000 and of a million settled addresses.

The journal is filled first; the service's transport refuses every request, so that an answer can
only come from the journal. The median of several rounds counts.

Run it as ``python -m benchmarks journal``.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
import pandas as pd
import pyarrow as pa

import mailverdict as mv
from mailverdict.backend import Settled
from mailverdict.model.table import complete_table
from mailverdict.remote.backend import RemoteBackend
from mailverdict.runs.journal.journal import Journal

from .figures import OURS, read_options, record

DOMAINS = 50_000
PIECE = 50_000
OUTCOMES = [
    ("valid", ""),
    ("risky", "role"),
    ("invalid", "mailbox_not_found"),
    ("unknown", "mailbox_full"),
]


def refuse(request: httpx.Request) -> httpx.Response:
    raise AssertionError(f"asked {request.url}")


def settled(emails: pa.StringArray, begin: int) -> pa.Table:
    """Answers as `smtp` gives them: the exchange of each domain is in the metadata."""
    numbers = np.arange(begin, begin + len(emails))
    codes = pa.array(numbers % len(OUTCOMES))
    hosts = pa.array([f'{{"smtp_host":"mx{n % DOMAINS}.example.org"}}' for n in numbers.tolist()])
    columns = {
        "email": emails,
        "status": pa.repeat(pa.scalar("done"), len(emails)),
        "validation_type": pa.repeat(pa.scalar("smtp"), len(emails)),
        "result": pa.array([result for result, _ in OUTCOMES]).take(codes),
        "reasons": pa.array([reasons for _, reasons in OUTCOMES]).take(codes),
        "metadata": hosts,
        "source": pa.repeat(pa.scalar("remote"), len(emails)),
    }
    return complete_table(columns, len(emails))


def main() -> None:
    given = read_options(__doc__, addresses=(1_000_000, 20_000), rounds=(3, 1))
    for count in (given.addresses // 10, given.addresses):
        measure(count, given.rounds)


def measure(count: int, rounds: int) -> None:
    """Fill a journal, then verify the same column."""
    emails = pa.array([f"user{n}@domain{n % DOMAINS}.example.org" for n in range(count)])
    backend = RemoteBackend("http://verify.test", transport=httpx.MockTransport(refuse))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        begun = time.perf_counter()
        with Journal(path) as journal:
            for begin in range(0, count, PIECE):
                rows = settled(emails.slice(begin, PIECE), begin)
                journal.record(backend.journal_key("smtp"), Settled(rows))
        record("a journal of new answers", OURS, [time.perf_counter() - begun], size=count)
        record("a journal's file", OURS, [path.stat().st_size / 1e6], "MB", count)
        frame = pd.DataFrame({"email": emails.to_pandas()})
        seconds = []
        for _ in range(rounds):
            begun = time.perf_counter()
            out = mv.verify(
                frame,
                "email",
                validation_type="smtp",
                backend=backend,
                journal=path,
                progress=False,
            )
            seconds.append(time.perf_counter() - begun)
            assert (out["email_status"] == "done").all(), "not everything came from the journal"
    record("a column that the journal knows", OURS, seconds, size=count)


if __name__ == "__main__":
    main()
