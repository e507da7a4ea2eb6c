"""Failures of the connection as reasons."""

from __future__ import annotations

import csv

from mailverdict.checks.smtp.classify.classification import (
    Action,
    ConnectionFailure,
    FailureKind,
    classify_failure,
)
from mailverdict.model.words import Reason
from tests import CASES
from tests.doubles.tables import each_row

TABLE = {
    FailureKind.NOT_DIALLED: Reason.PORT_CLOSED,
    FailureKind.REFUSED: Reason.PORT_CLOSED,
    FailureKind.UNREACHABLE: Reason.PORT_CLOSED,
    FailureKind.CONNECT_TIMEOUT: Reason.TIMEOUT,
    FailureKind.BANNER_TIMEOUT: Reason.TIMEOUT,
    FailureKind.REPLY_TIMEOUT: Reason.TIMEOUT,
    FailureKind.SESSION_TIMEOUT: Reason.TIMEOUT,
    FailureKind.NO_DATA: Reason.NO_SMTP_DATA,
    FailureKind.NOT_SMTP: Reason.NO_SMTP_DATA,
    FailureKind.NO_REPLY: Reason.INCONCLUSIVE,
    FailureKind.DROPPED: Reason.CONNECTION_DROPPED,
    FailureKind.TLS: Reason.INCONCLUSIVE,
}
# The rows of the reply table that are not replies, by what happens in them.
SEEN = {
    "<TCP open, no banner within the limit>": FailureKind.BANNER_TIMEOUT,
    "HTTP/1.1 400 Bad Request": FailureKind.NOT_SMTP,
    "<EOF after RCPT was sent>": FailureKind.DROPPED,
    "<ECONNRESET after EHLO>": FailureKind.DROPPED,
}


@each_row("kind", FailureKind)
def test_failure_has_a_reason(kind: FailureKind) -> None:
    assert classify_failure(ConnectionFailure(kind)).reason is TABLE[kind]


def test_failed_handshake_asks_for_a_session_without_tls() -> None:
    assert classify_failure(ConnectionFailure(FailureKind.TLS)).action is Action.WITHOUT_TLS


def test_every_transport_row_of_the_reply_table_has_its_failure() -> None:
    path = CASES / "smtp_replies.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = {
            row["text"]: row["expected_reason"] for row in csv.DictReader(file) if not row["code"]
        }

    assert rows == {
        text: classify_failure(ConnectionFailure(kind)).reason for text, kind in SEEN.items()
    }
