"""The table of mailboxes at real servers: `cases/real_servers.csv`."""

from __future__ import annotations

from typing import NamedTuple

from tests import CASES
from tests.doubles.tables import rows_of_csv
from tests.servers import exim, postfix

TABLE = CASES / "real_servers.csv"


class Row(NamedTuple):
    """A mailbox: what its server says in a plain session, and what the verdict is.

    `result` and `reasons` may name more than one that is right, between bars.
    """

    address: str
    mail_from: str
    phase: str
    reply: str
    result: str
    reasons: str
    catch_all: str
    protected: str
    why: str

    @property
    def domain(self) -> str:
        """The address's domain."""
        return self.address.partition("@")[2]

    @property
    def host(self) -> str:
        """Address of the preferred exchange."""
        if self.domain in postfix.DOMAINS:
            return postfix.HOSTS[postfix.DOMAINS[self.domain][0]]
        listeners = (
            postfix.LISTENERS if self.domain.endswith(".postfix.example") else exim.LISTENERS
        )
        return listeners[self.domain.partition(".")[0]].host

    def __str__(self) -> str:
        """Name the case."""
        return self.address + (f" from {self.mail_from}" if self.mail_from else "")


def read_rows() -> list[Row]:
    """Read the table."""
    return [Row(**record) for record in rows_of_csv(TABLE)]
