"""The commands of a window, and whether replies are theirs."""

from __future__ import annotations

from typing import Any

from mailverdict.checks.smtp.protocol.commands import (
    OpenTransaction,
    Recipient,
    is_misplaced,
    plan_window,
    transaction_after,
)
from mailverdict.checks.smtp.replies import Reply
from tests.doubles.tables import each_row

A, B, C = Recipient("a@x.example"), Recipient("b@x.example"), Recipient("c@y.example")
ZOE = Recipient("zoë@x.example")
PROBE = Recipient("zq7k@x.example", is_probe=True)
PLAIN: dict[str, Any] = {
    "mail_from": "",
    "per_transaction": 50,
    "one_domain": False,
    "utf8": frozenset(),
    "begins_with_rset": False,
}

WINDOWS = [
    ([A], {}, "M a", "one recipient"),
    ([A, B, C], {}, "M a b c", "one transaction"),
    ([A, B, C], {"per_transaction": 2}, "M a b R M c", "at most two a transaction"),
    ([A, C, B], {"one_domain": True}, "M a b R M c", "one domain a transaction"),
    ([PROBE, A], {}, "M a R M zq7k", "a probe stands alone and comes last"),
    ([PROBE], {}, "M zq7k", "a probe alone"),
    ([A, ZOE, B], {}, "M a b R M8 zoë", "SMTPUTF8 only where it is needed"),
    ([A, B], {"utf8": frozenset({B})}, "M a R M8 b", "or was asked for"),
    ([A], {"begins_with_rset": True}, "R M a", "after another window"),
    (
        [A, C],
        {"begins_with_rset": True, "transaction": OpenTransaction(1, frozenset())},
        "a c",
        "the transaction goes on",
    ),
    (
        [A, B],
        {"begins_with_rset": True, "transaction": OpenTransaction(49)},
        "a R M b",
        "as long as it has room",
    ),
    ([A], {"begins_with_rset": True, "transaction": OpenTransaction(60)}, "R M a", "and no longer"),
    (
        [A, ZOE, PROBE],
        {"transaction": OpenTransaction(1)},
        "a R M8 zoë R M zq7k",
        "and not for those who need their own",
    ),
    (
        [A],
        {"begins_with_rset": True, "transaction": OpenTransaction(1), "one_domain": True},
        "R M a",
        "nor across domains",
    ),
    ([], {}, "", "nothing"),
]


def short(entry: Any) -> str:
    """RSET, MAIL and MAIL with SMTPUTF8 as R, M and M8; RCPT as its local part."""
    if entry.recipient:
        return str(entry.recipient.address.partition("@")[0])
    return entry.verb[0] + ("8" if b"SMTPUTF8" in entry.data else "")


@each_row(("recipients", "how", "expected", "why"), WINDOWS)
def test_plan_window_groups_recipients(
    recipients: list[Recipient], how: dict[str, Any], expected: str, why: str
) -> None:
    assert (
        " ".join(short(entry) for entry in plan_window(recipients, **{**PLAIN, **how})) == expected
    ), why


def test_plan_window_counts_companions_and_domains() -> None:
    entries = plan_window([A, B, C, PROBE], **PLAIN)

    assert [(e.companions, e.domains) for e in entries if e.recipient] == [
        (3, 2),
        (3, 2),
        (3, 2),
        (1, 1),
    ]


def test_plan_window_counts_recipients_of_the_open_transaction() -> None:
    entries = plan_window(
        [C], **{**PLAIN, "transaction": OpenTransaction(2, frozenset({"x.example"}))}
    )

    assert [(e.companions, e.domains) for e in entries] == [(3, 2)]


STANDING = OpenTransaction(2, frozenset({"x.example"}))
AFTER = [
    ([A, C], None, OpenTransaction(2, frozenset({"x.example", "y.example"})), "a new one"),
    ([A, ZOE], None, None, "the last one has SMTPUTF8"),
    ([A, PROBE], None, None, "the last one is a probe's"),
    (
        [C],
        STANDING,
        OpenTransaction(3, frozenset({"x.example", "y.example"})),
        "the one before, with one more",
    ),
]


@each_row(("recipients", "before", "after", "why"), AFTER)
def test_transaction_after_a_window(recipients: Any, before: Any, after: Any, why: str) -> None:
    assert (
        transaction_after(plan_window(recipients, **PLAIN, transaction=before), before) == after
    ), why


OK = Reply(250, None, "Ok")
REPLIES = [
    (["<a@x.example> unknown", "<b@x.example> unknown"], False, "each names its own"),
    (["<b@x.example> unknown", "<c@y.example> unknown"], True, "shifted by one"),
    (["User unknown", "User unknown"], False, "none names any"),
    (["<A@X.Example> unknown"], False, "in another case"),
    (["<postmaster@x.example> can help"], False, "a stranger"),
    (["<v@client.example>: a@x.example unknown"], False, "its own beside another"),
]


@each_row(("texts", "expected", "why"), REPLIES)
def test_is_misplaced_by_the_address_named(texts: list[str], expected: bool, why: str) -> None:
    entries = plan_window([A, B, C], **PLAIN)

    assert (
        is_misplaced(entries, [OK, *(Reply(550, "5.1.1", text) for text in texts)]) is expected
    ), why


def test_the_reply_to_quit_shows_that_one_before_it_was_lost() -> None:
    entries = plan_window([A, B], **PLAIN)

    assert is_misplaced(entries, [OK, OK, Reply(221, "2.0.0", "Bye")])


def test_is_misplaced_takes_no_offence_at_acceptance() -> None:
    entries = plan_window([A, B], **PLAIN)

    assert not is_misplaced(entries, [OK, Reply(250, None, "<b@x.example> ok"), OK])
