"""One window of a session: which commands, in which order, and whether the replies are theirs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from ..replies import Reply
from . import commands as command
from .steps import Recipient

__all__ = ["OpenTransaction", "WindowCommand", "is_misplaced", "plan_window", "transaction_after"]


class WindowCommand(NamedTuple):
    """One command of a window.

    Attributes
    ----------
    verb : str
        ``RSET``, ``MAIL`` or ``RCPT``.
    data : bytes
        The command as it is sent.
    recipient : Recipient or None
        Of an RCPT.
    companions : int
        Recipients of its transaction, itself included.
    domains : int
        Domains of its transaction.
    """

    verb: str
    data: bytes
    recipient: Recipient | None = None
    companions: int = 0
    domains: int = 0

    @property
    def phase(self) -> str:
        """How replies to it are classified."""
        return "rcpt" if self.verb == "RCPT" else "mail"


class OpenTransaction(NamedTuple):
    """A transaction that may go on into the next window.

    Attributes
    ----------
    asked : int
        Recipients that were asked in it.
    domains : frozenset of str
        Their domains.
    """

    asked: int = 0
    domains: frozenset[str] = frozenset()


def plan_window(
    recipients: Sequence[Recipient],
    *,
    mail_from: str,
    per_transaction: int,
    one_domain: bool,
    utf8: Set[Recipient],
    begins_with_rset: bool,
    transaction: OpenTransaction | None = None,
) -> list[WindowCommand]:
    """Lay out the commands that ask about `recipients`; transactions are parted by RSET.

    Parameters
    ----------
    recipients : sequence of Recipient
        All of them sendable.
    mail_from : str
        Sender; empty is the null reverse-path.
    per_transaction : int
        Most recipients of one.
    one_domain : bool
        Whether each holds recipients of one domain only.
    utf8 : set of Recipient
        Those that need SMTPUTF8 although their address does not show it.
    begins_with_rset : bool
        Whether a transaction is under way.
    transaction : OpenTransaction, optional
        That transaction, if it may take more recipients: a MAIL the fewer, which in step is a round trip.

    Returns
    -------
    list of WindowCommand
        In the order to send.

    Examples
    --------
    >>> ask = [Recipient("a@x.example"), Recipient("zq7k@x.example", is_probe=True)]
    >>> how = {"mail_from": "", "per_transaction": 50, "one_domain": False, "utf8": set(), "begins_with_rset": False}
    >>> [entry.verb for entry in plan_window(ask, **how)]
    ['MAIL', 'RCPT', 'RSET', 'MAIL', 'RCPT']
    """
    going_on = (
        [] if transaction is None or one_domain else who_goes_on(recipients, per_transaction - transaction.asked, utf8)
    )
    entries = lay_out(going_on, transaction or OpenTransaction())
    gone = set(going_on)
    for group, needs_utf8 in transactions(
        (r for r in recipients if r not in gone), per_transaction, utf8, one_domain=one_domain
    ):
        if entries or begins_with_rset:
            entries.append(WindowCommand("RSET", command.RSET))
        entries.append(WindowCommand("MAIL", command.mail(mail_from, smtputf8=needs_utf8)))
        entries += lay_out(group, OpenTransaction())
    return entries


def who_goes_on(recipients: Iterable[Recipient], room: int, utf8: Set[Recipient]) -> list[Recipient]:
    """Whom a transaction without SMTPUTF8 can still take."""
    plain = [r for r in recipients if not r.is_probe and r not in utf8 and r.address.isascii()]
    return plain[: max(0, room)]


def lay_out(group: Sequence[Recipient], transaction: OpenTransaction) -> list[WindowCommand]:
    """The RCPT commands of a transaction that has had others before."""
    companions, domains = len(group) + transaction.asked, len(transaction.domains.union(r.domain for r in group))
    return [WindowCommand("RCPT", command.rcpt(r.address), r, companions, domains) for r in group]


def transaction_after(entries: Sequence[WindowCommand], before: OpenTransaction | None) -> OpenTransaction | None:
    """The transaction that is under way after a window; None: it takes no more, as those of probes and SMTPUTF8."""
    last = max((index for index, entry in enumerate(entries) if entry.verb == "MAIL"), default=-1)
    asked = [entry.recipient for entry in entries[last + 1 :] if entry.recipient]
    if last >= 0:
        is_plain = not entries[last].data.endswith(b"SMTPUTF8\r\n") and not any(r.is_probe for r in asked)
        before = OpenTransaction() if is_plain else None
    if before is None:
        return None
    return OpenTransaction(before.asked + len(asked), before.domains.union(r.domain for r in asked))


def transactions(
    recipients: Iterable[Recipient], size: int, utf8: Set[Recipient], *, one_domain: bool
) -> Iterator[tuple[list[Recipient], bool]]:
    """Group what may share a MAIL command; probes stand alone, since their fate must not touch anyone else's."""
    groups: dict[tuple[bool, str], list[Recipient]] = {}
    probes: list[Recipient] = []
    for recipient in recipients:
        if recipient.is_probe:
            probes.append(recipient)
            continue
        needs_utf8 = recipient in utf8 or not recipient.address.isascii()
        groups.setdefault((needs_utf8, recipient.domain if one_domain else ""), []).append(recipient)
    for (needs_utf8, _), group in groups.items():
        for start in range(0, len(group), size):
            yield group[start : start + size], needs_utf8
    for probe in probes:
        yield [probe], not probe.address.isascii()


def is_misplaced(entries: Sequence[WindowCommand], replies: Sequence[Reply]) -> bool:
    """Whether a refusal names a recipient of this window other than the one it would be taken for.

    A server that loses a reply under pipelining shifts all later ones, and a shifted 550 would be a
    wrong `mailbox_not_found`.

    Parameters
    ----------
    entries : sequence of WindowCommand
        As sent.
    replies : sequence of Reply
        As they came; may be fewer.

    Returns
    -------
    bool
        True: the replies are not in step.
    """
    asked = [entry.recipient.address.lower() for entry in entries if entry.recipient]
    for entry, reply in zip(entries, replies, strict=False):
        if reply.is_positive or entry.recipient is None or "@" not in reply.text or len(asked) == 1:
            continue
        text = reply.text.lower()
        if entry.recipient.address.lower() not in text and any(address in text for address in asked):
            return True
    return False
