"""The servers are what their rows say: asked without this package, they give the replies of the table.

Without this a verdict could be right for the wrong reason.
"""

from __future__ import annotations

import re

import pytest

from tests.servers.asking import Said, ask
from tests.servers.conftest import Servers
from tests.servers.postfix import DOMAINS, domain_of
from tests.servers.table import Row, read_rows

pytestmark = pytest.mark.servers

OTHER_SENDER = (
    "probe@plain.postfix.example"  # postgrey remembers senders: the engine's is not used up here
)
ROWS = read_rows()
SAYING = [row for row in ROWS if row.reply]
# What a plain session to the preferred exchange must see; postscreen remembers clients, so it is left to the engine.
ACCEPTING = [
    row
    for row in ROWS
    if row.result in ("valid", "risky")
    and not row.reply
    and row.domain not in (*DOMAINS, domain_of("screened"))
]


def ask_as(row: Row) -> Said:
    """Ask about a row's mailbox."""
    return ask(
        row.host, OTHER_SENDER if row.domain == domain_of("grey") else row.mail_from, row.address
    )


@pytest.mark.parametrize("row", SAYING, ids=str)
def test_server_says_what_the_table_has(servers: Servers, row: Row) -> None:
    said = ask_as(row)

    assert said.phase == row.phase
    assert re.match(row.reply, f"{said.code} {said.text}"), said


@pytest.mark.parametrize("row", ACCEPTING, ids=str)
def test_server_accepts_who_is_there(servers: Servers, row: Row) -> None:
    said = ask_as(row)

    assert (said.phase, said.code) == ("rcpt", 250), said
