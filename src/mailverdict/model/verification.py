"""What is known about one address: the value behind the contract's verification payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .words import ValidationType

__all__ = ["Fault", "Verification"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One entry of the payload's `errors`.

    Attributes
    ----------
    code : str
        Upper case: ``REGEX``, ``DNS``, ``BLACKLIST``, ``SMTP`` or a finer code of the check.
    message : str
        Why, in a sentence a reader of the data understands.

    Examples
    --------
    >>> import mailverdict as mv
    >>> mv.check("nobody", validation_type="regex").errors
    (Fault(code='REGEX', message='There is no @.'),)
    """

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of verifying one address, one attribute per key of the payload.

    `role`, `spamtrap`, `disposable` and `free` are None when never determined (an absent key).
    `catch_all` and `protected` are meaningful only for ``smtp``, where None is the payload's
    ``null``: asked, but inconclusive.

    Attributes
    ----------
    email : str
        The address as given, without surrounding blanks.
    validation_type : str
        The type actually used.
    result : str
        ``valid``, ``risky``, ``invalid`` or ``unknown``.
    reasons : tuple of str
        Every reason in order of precedence; empty when none.
    checks : mapping of str to bool
        Outcome of each sub-check that applied.
    role, spamtrap, disposable, free : bool or None
        Address flags.
    catch_all, protected : bool or None
        Server flags.
    reason : str or None
        Upper-case code of the first error.
    errors : tuple of Fault or None
        What failed, with a sentence each.
    metadata : mapping
        ``validated_at``, ``mx_records``, ``smtp_host``, ``smtp_error`` and what else a check noted.
    extra : mapping
        Keys of a service's payload that the contract does not name, kept as they came.

    Examples
    --------
    >>> import mailverdict as mv
    >>> found = mv.check("info@example.org", validation_type="regex")
    >>> found.result, found.role, found.spamtrap
    ('valid', True, None)
    """

    email: str
    validation_type: str
    result: str
    reasons: tuple[str, ...] = ()
    checks: Mapping[str, bool] = field(default_factory=dict)
    role: bool | None = None
    spamtrap: bool | None = None
    disposable: bool | None = None
    free: bool | None = None
    catch_all: bool | None = None
    protected: bool | None = None
    reason: str | None = None
    errors: tuple[Fault, ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def details(self) -> str | None:
        """The dominant reason, or None."""
        return self.reasons[0] if self.reasons else None

    @property
    def asked_mailbox(self) -> bool:
        """Whether the server flags belong to this verification at all."""
        return self.validation_type == ValidationType.SMTP

    def to_dict(self) -> dict[str, Any]:
        """Give the verification payload, key for key as the service's contract has it.

        Returns
        -------
        dict
            JSON-ready; a flag that was never determined is an absent key.

        Examples
        --------
        >>> from mailverdict import Verification
        >>> Verification("ada@example.org", "regex", "valid", checks={"syntax": True}).to_dict()["result"]
        'valid'
        """
        from ..contract.payload import dump_payload  # noqa: PLC0415 - the value's one door to its JSON form

        return dump_payload(self)

    @classmethod
    def from_dict(cls, payload: Mapping[str, Any]) -> Verification:
        """Read a payload of either revision of the contract.

        Parameters
        ----------
        payload : mapping
            A decoded verification payload; the revision is recognised by its shape.

        Returns
        -------
        Verification
            Unknown keys are kept in `extra`, unknown reasons as they are.

        Raises
        ------
        ContractError
            If `payload` is not a payload of either revision; `path` says where.

        Examples
        --------
        >>> from mailverdict import Verification
        >>> old = {"email": "ada@example.org", "validation_type": "mx", "valid": False,
        ...        "checks": {"syntax": True, "dns": False}, "reason": "DNS", "errors": []}
        >>> Verification.from_dict(old).result
        'invalid'
        """
        from ..contract.payload import parse_payload  # noqa: PLC0415 - the value's one door to its JSON form

        return parse_payload(payload)
