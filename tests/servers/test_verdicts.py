"""Verdicts about mailboxes at Debian's own servers, and how those were treated."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from typing import Any, NamedTuple

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.model.settings import LocalSettings
from tests.servers.asking import HELO_NAME
from tests.servers.conftest import Servers
from tests.servers.mail_log import Account, Session
from tests.servers.table import Row, read_rows

# Some of the runs are refused as a whole, which `verify` warns about.
pytestmark = [
    pytest.mark.servers,
    pytest.mark.filterwarnings("ignore:.*have no verdict, since:UserWarning"),
]

ROWS = read_rows()
SENDERS = sorted({row.mail_from for row in ROWS})
FLAGS = {"true": True, "false": False, "": None}
SESSIONS = 2  # at one exchange
BEHIND = "behind"  # only gateways call there
# postgrey wants two seconds, postscreen two for its greeting; who says "come back" has to mean soon here.
SETTINGS = {
    "helo_name": HELO_NAME,
    "allow_networks": ("127.0.0.0/8",),
    "max_sessions_per_exchange": SESSIONS,
    "connect_timeout": 10,
    "command_timeout": 10,
    "deadline": 60,
    "backoff_min": 0.2,
    "backoff_max": 2,
    "retry_greylisted": 3,
}


def verify(servers: Servers, addresses: list[str], **settings: Any) -> pd.DataFrame:
    """Verify with the engine; all result columns, by address."""
    wanted = LocalSettings(resolver=servers.resolver, **{**SETTINGS, **settings})
    backend = mv.LocalBackend.from_settings(wanted)
    with warnings.catch_warnings():
        # Greylisting that stays is in the table.
        warnings.filterwarnings("ignore", "some answers are temporary")
        out = mv.verify(
            addresses,
            backend=backend,
            validation_type="smtp",
            journal=None,
            columns="all",
            progress=False,
        )
    out.index = pd.Index(addresses)
    return out


class Run(NamedTuple):
    """The table's addresses, verified: by sender, a frame; and what Postfix saw."""

    frames: dict[str, pd.DataFrame]
    sessions: list[Session]
    most_at_once: dict[str, int]


@pytest.fixture(scope="module")
def run(servers: Servers) -> Run:
    """Every address of the table, all together."""
    account = Account(servers.mail_log)
    frames = {
        sender: verify(
            servers, [row.address for row in ROWS if row.mail_from == sender], mail_from=sender
        )
        for sender in SENDERS
    }
    ours = [each for each in account.sessions() if each.face != BEHIND]
    return Run(frames, ours, account.most_at_once())


def flag_of(value: Any) -> bool | None:
    """A flag as true, false or None."""
    return None if value is pd.NA else bool(value)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_verdict_is_the_tables(run: Run, row: Row) -> None:
    found = run.frames[row.mail_from].loc[row.address]
    seen = f"{found['smtp_host']}: {found['error_message']}"

    assert found["verdict"] in row.result.split("|"), seen
    assert found["reasons"] in row.reasons.split("|"), seen
    assert flag_of(found["catch_all"]) is FLAGS[row.catch_all], seen
    assert flag_of(found["protected"]) is FLAGS[row.protected], seen


def test_single_check_says_the_same(servers: Servers) -> None:
    settings = LocalSettings(resolver=servers.resolver, **SETTINGS)
    backend = mv.LocalBackend.from_settings(settings)
    seen = mv.check(
        "nosuch@plain.postfix.example", validation_type="smtp", backend=backend
    ).to_dict()

    assert (seen["result"], seen["reasons"], seen["catch_all"]) == (
        "invalid",
        ["mailbox_not_found"],
        False,
    )
    assert seen["metadata"]["smtp_host"] == "mx.plain.postfix.example"
    assert "User unknown" in seen["metadata"]["smtp_error"]


def test_no_message_is_ever_sent(run: Run) -> None:
    assert run.sessions
    assert not [each for each in run.sessions if {"data", "bdat"} & each.given.keys()]


def test_exchanges_are_left_room(run: Run) -> None:
    assert max(run.most_at_once.values()) <= SESSIONS


def test_sessions_end_with_quit(run: Run) -> None:
    assert not [each for each in run.sessions if not each.given.get("quit")]


REJECTED = re.compile(r"reject: RCPT from [^<]*<(nosuch\d+)@")


class Busy(NamedTuple):
    """Many addresses of one domain, verified; what its Postfix saw, and its log."""

    frame: pd.DataFrame
    sessions: list[Session]
    log: str


@pytest.fixture(scope="module")
def busy(servers: Servers) -> Busy:
    """A hundred mailboxes that are there and sixty that are not, at one Postfix with default limits."""
    account = Account(servers.mail_log)
    frame = verify(servers, some("plain.postfix.example", known=100, unknown=60))
    return Busy(frame, account.sessions(), account.text())


def some(domain: str, *, known: int, unknown: int) -> list[str]:
    """Addresses of a domain, the unknown ones first."""
    return [
        *(f"nosuch{n}@{domain}" for n in range(unknown)),
        *(f"known{n}@{domain}" for n in range(known)),
    ]


def wrong_rows(out: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows whose verdict is not what the local part says."""
    expected = ["valid" if address.startswith("known") else "invalid" for address in out.index]
    return out[out["verdict"].astype(str) != expected].to_dict("records")


class TestManyMailboxesAtOneServer:
    def test_all_verdicts_are_right(self, busy: Busy) -> None:
        assert wrong_rows(busy.frame) == []

    def test_addresses_are_asked_about_once_but_for_those_that_confirm_refusals(
        self, busy: Busy
    ) -> None:
        given, refused = (
            sum(getattr(each, of).get("rcpt", 0) for each in busy.sessions)
            for of in ("given", "refused")
        )
        # A session that ends with three refusals or more asks one address that should be accepted; replies that get
        # lost are asked for again, too.
        assert 100 <= given - refused <= 102 + len(busy.sessions)
        assert Counter(REJECTED.findall(busy.log)) == Counter(f"nosuch{n}" for n in range(60))
        # The random address; postmaster, which this Postfix does not know, perhaps by both sessions at once.
        assert refused - 60 in (1, 2, 3)

    def test_no_session_runs_into_the_servers_limit(self, busy: Busy) -> None:
        assert "too many errors" not in busy.log
        assert max(each.refused.get("rcpt", 0) for each in busy.sessions) < 20


@pytest.mark.parametrize(
    "domain",
    [
        pytest.param("strict.postfix.example", id="cuts at 6 refusals a session"),
        pytest.param("crowded.postfix.example", id="one session at a time, says a Postfix"),
        pytest.param("crowded.exim.example", id="one session at a time, says an Exim"),
        pytest.param("few.postfix.example", id="three recipients a transaction, says a Postfix"),
        pytest.param("few.exim.example", id="three recipients a transaction, says an Exim"),
    ],
)
def test_limits_are_learned(servers: Servers, domain: str) -> None:
    out = verify(servers, some(domain, known=20, unknown=14))

    assert wrong_rows(out) == []


def test_a_close_after_refusals_is_not_an_answer_about_the_next_address(servers: Servers) -> None:
    out = verify(servers, some("impatient.exim.example", known=20, unknown=14))
    settled = out["verdict"].isin(["valid", "invalid"])

    assert wrong_rows(out[settled]) == []
    assert settled.mean() > 0.5
