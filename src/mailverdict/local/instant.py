"""`regex` of one address without a table: for those who are asked thousands of times a second, one by one.

A batch has a fixed price of about a millisecond; here an address whose syntax is known costs a few
microseconds. The answer is the same as `LocalBackend`'s.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from ..checks.lists.flags import LoadedLists, find_mark, load_lists
from ..model.evidence import Evidence, Flags, SyntaxEvidence
from ..model.settings import Lists
from ..model.verification import Verification
from ..model.words import ValidationType
from ..verdicts import settle
from .backend import utc_now

__all__ = ["Instant"]

FRESH = 5.0  # seconds until list files are looked at again


class Instant:
    """Settles ``regex`` at once.

    Parameters
    ----------
    settings : Lists
        Which lists decide the flags.
    clock : callable
        The moment an address is checked at.
    monotonic : callable
        Seconds; decides when changed list files are noticed.

    Examples
    --------
    >>> from mailverdict.checks.syntax.address import observe_syntax
    >>> instant = Instant(Lists())
    >>> instant.settle("info@example.org", observe_syntax("info@example.org")).role
    True
    """

    def __init__(
        self,
        settings: Lists,
        *,
        clock: Callable[[], datetime] = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.monotonic = monotonic
        self.loaded: LoadedLists | None = None
        self.role_names: frozenset[str] = frozenset()
        self.stale_at = 0.0

    def settle(self, email: str, syntax: SyntaxEvidence) -> Verification:
        """Judge an address by its syntax.

        Parameters
        ----------
        email : str
            The address, without surrounding blanks.
        syntax : SyntaxEvidence
            What `observe_syntax` says of it.

        Returns
        -------
        Verification
            Of type ``regex``.
        """
        lists = self.lists()
        flags = self.flags(lists, syntax) if syntax.ok else Flags()
        decision = settle(ValidationType.REGEX, Evidence(syntax, flags=flags))
        metadata = {"lists": lists.version, "validated_at": self.clock().isoformat()}
        if syntax.ok and syntax.normalized != email:
            metadata["normalized"] = syntax.normalized
        return Verification(
            email=email,
            validation_type=ValidationType.REGEX,
            result=decision.result,
            reasons=decision.reasons,
            checks=decision.checks,
            role=flags.role,
            spamtrap=flags.spamtrap,
            disposable=flags.disposable,
            free=flags.free,
            reason=decision.error,
            errors=decision.errors,
            metadata=metadata,
        )

    def lists(self) -> LoadedLists:
        """The lists, looked at again every few seconds."""
        now = self.monotonic()
        if self.loaded is None or now >= self.stale_at:
            loaded = load_lists(self.settings)
            if loaded is not self.loaded:
                self.role_names = frozenset(loaded.role_names.to_pylist())
            self.loaded, self.stale_at = loaded, now + FRESH
        return self.loaded

    def flags(self, lists: LoadedLists, syntax: SyntaxEvidence) -> Flags:
        """The flags; the role of an ASCII local part is told without Arrow, whose rule this is."""
        if not syntax.local.isascii():
            return lists.flags(syntax.local, syntax.ascii_domain)
        held = syntax.local.lower()
        role = held in self.role_names or held.partition("+")[0] in self.role_names
        spamtrap, disposable, free = (
            find_mark(syntax.ascii_domain, marks) for marks in (lists.spamtrap, lists.disposable, lists.free)
        )
        return Flags(role, spamtrap or None, bool(disposable), bool(free))
