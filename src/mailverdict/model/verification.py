"""`Verification`, the outcome of verifying one address, and its JSON form, the contract's payload.

First the value, then the table of the payload's keys with writing, then reading. Payloads of both
revisions of the contract are read; the earlier one is recognised by its shape:

    {"email": "info@firm.example", "validation_type": "mx", "result": "risky", "details": "role",
     "reasons": ["role"], "checks": {"syntax": true, "dns": true}, "role": true, "errors": []}
    {"email": "info@firm.example", "validation_type": "mx", "valid": false, "reason": "DNS",
     "checks": {"syntax": true, "dns": false}, "errors": []}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from ..errors import ContractError
from .json_fields import optional_field, require_field, shorten
from .words import (
    FLAGS,
    NOT_ASKED,
    REASON_MEANING,
    Reason,
    ValidationType,
    Verdict,
    escape_controls,
)


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


LONGEST_LINE = 300  # characters of a line of text; addresses and texts of servers are among them


@dataclass(frozen=True, slots=True, repr=False)
class Verification:
    """The outcome of verifying one address, one attribute per key of the payload.

    It prints as a few lines: the verdict, why, the suggestion and the flags that are true. A
    notebook shows a badge.

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
        ``validated_at``, ``mx_records``, ``smtp_host``, ``smtp_error``, ``suggestion`` and what
        else a check noted.
    extra : mapping
        Keys of a service's payload that the contract does not name, kept as they came.

    Examples
    --------
    >>> import mailverdict as mv
    >>> found = mv.check("info@example.org", validation_type="regex")
    >>> found.result, found.role, found.spamtrap
    ('valid', True, None)
    >>> mv.check("info@@gmail.com", validation_type="regex")
    info@@gmail.com is invalid (regex)
      REGEX: There is more than one @.
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
        if not self.reasons:
            return None
        return self.reasons[0]

    @property
    def suggestion(self) -> str | None:
        """The address that was probably meant, or None; never applied by itself."""
        meant = self.metadata.get("suggestion")
        if not isinstance(meant, str):
            return None
        return meant

    @property
    def asked_mailbox(self) -> bool:
        """Whether the server flags belong to this verification at all."""
        return self.validation_type == ValidationType.SMTP

    @property
    def title(self) -> str:
        """The verdict in one line, as ``ada@example.org is valid (mx)``."""
        return f"{self.email} is {self.result} ({self.validation_type})"

    def _why(self) -> list[tuple[str, str]]:
        """Reasons, the first of which decides, then errors: a code and a sentence each."""
        known = tuple(Reason)
        lines = []
        for reason in self.reasons:
            meaning = ""
            if reason in known:
                meaning = REASON_MEANING[Reason(reason)]
            lines.append((reason, meaning))
        messages = set()
        for fault in self.errors or ():
            if fault.message not in messages:
                messages.add(fault.message)
                lines.append((fault.code, fault.message))
        return lines

    def _not_asked(self) -> str | None:
        """What this verification leaves open, in words; a refusal leaves nothing open."""
        asked = self.validation_type
        if self.result == Verdict.INVALID or asked not in NOT_ASKED:
            return None
        return NOT_ASKED[ValidationType(asked)]

    def _flags(self) -> list[str]:
        """The flags that are true, in words."""
        return [name.replace("_", "-") for name in FLAGS if getattr(self, name)]

    def __repr__(self) -> str:
        """A few lines; texts of other hosts are cut, and without control characters."""
        lines = [self.title]
        for code, words in self._why():
            line = f"  {code}"
            if words:
                line += f": {words}"
            lines.append(line)
        if self.suggestion is not None:
            lines.append(f"  did you mean {self.suggestion}?")
        flags = self._flags()
        if flags:
            lines.append(f"  flags: {', '.join(flags)}")
        left_open = self._not_asked()
        if left_open is not None:
            lines.append(f"  {left_open}")
        shown = [escape_controls(line[:LONGEST_LINE]) for line in lines]
        return "\n".join(shown)

    def _repr_html_(self) -> str:
        """The same with a badge, for a notebook; every text is escaped."""
        from html import escape  # noqa: PLC0415 - only notebooks need it

        from ..theme import MARKS, badge, notebook  # noqa: PLC0415 - as above

        def shown(text: str) -> str:
            return escape(text[:LONGEST_LINE])

        mark = shown(self.result)
        if self.result in MARKS:
            mark = badge(self.result)
        asked = f'<span class="mv-soft">({shown(self.validation_type)})</span>'
        body = [f"<p>{mark} <b>{shown(self.email)}</b> {asked}</p>"]
        rows = []
        for code, words in self._why():
            rows.append(f"<tr><th>{shown(code)}</th><td>{shown(words)}</td></tr>")
        if rows:
            body.append(f"<table>{''.join(rows)}</table>")
        if self.suggestion is not None:
            body.append(f"<p>Did you mean <b>{shown(self.suggestion)}</b>?</p>")
        flags = self._flags()
        if flags:
            body.append(f'<p class="mv-soft">Flags: {escape(", ".join(flags))}</p>')
        left_open = self._not_asked()
        if left_open is not None:
            body.append(f'<p class="mv-soft">{left_open.capitalize()}.</p>')
        return notebook("".join(body))

    def to_dict(self) -> dict[str, Any]:
        """Give the verification payload, key for key as the service's contract has it.

        Returns
        -------
        dict
            JSON-ready; a flag that was never determined is an absent key.

        Examples
        --------
        >>> from mailverdict import Verification
        >>> verification = Verification("ada@example.org", "regex", "valid")
        >>> verification.to_dict()["result"]
        'valid'
        """
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
        return parse_payload(payload)


# --- writing ------------------------------------------------------------------------------------

# Every key of the payload in the contract's order.
KEYS = (
    "email",
    "validation_type",
    "result",
    "details",
    "reasons",
    "checks",
    "role",
    "spamtrap",
    "disposable",
    "free",
    "catch_all",
    "protected",
    "reason",
    "errors",
    "metadata",
)


def dump_payload(v: Verification) -> dict[str, Any]:
    """The payload of `v`; keys that a service added beyond the contract come last, unchanged."""
    payload: dict[str, Any] = {
        "email": v.email,
        "validation_type": v.validation_type,
        "result": v.result,
        "details": v.details,
        "reasons": list(v.reasons),
        "checks": dict(v.checks),
    }
    for name in ("role", "spamtrap", "disposable", "free"):
        flag = getattr(v, name)
        if flag is not None:  # absent means not determined
            payload[name] = flag
    if v.asked_mailbox:  # null means inconclusive, absent means not asked
        payload["catch_all"] = v.catch_all
        payload["protected"] = v.protected
    payload["reason"] = v.reason
    payload["errors"] = v.errors
    if v.errors is not None:
        payload["errors"] = dump_errors(v.errors)
    if v.metadata:
        payload["metadata"] = dict(v.metadata)
    payload.update(v.extra)
    return payload


def dump_errors(errors: Iterable[Fault]) -> list[dict[str, str]]:
    """The list of `{code, message}` that payloads and rows have."""
    return [{"code": error.code, "message": error.message} for error in errors]


# --- reading ------------------------------------------------------------------------------------

LONGEST_WORD = 80  # characters of a reason, a code or the name of a check
LONGEST_SENTENCE = 1_000  # characters of an error's message


def parse_payload(payload: object, path: str = "") -> Verification:
    """Read a payload of either revision; `ContractError` if it is neither."""
    if is_earlier_payload(payload):
        return parse_earlier_payload(payload, path)
    email = require_field(payload, "email", str, path)
    assert isinstance(payload, Mapping)
    code = optional_field(payload, "reason", str, path)
    if code is not None:
        code = shorten(code, LONGEST_WORD)
    return Verification(
        email=email,
        validation_type=shorten(require_field(payload, "validation_type", str, path), LONGEST_WORD),
        result=parse_result(payload, path),
        reasons=parse_reasons(payload, path),
        checks=parse_checks(payload.get("checks")),
        role=optional_field(payload, "role", bool, path),
        spamtrap=optional_field(payload, "spamtrap", bool, path),
        disposable=optional_field(payload, "disposable", bool, path),
        free=optional_field(payload, "free", bool, path),
        catch_all=optional_field(payload, "catch_all", bool, path),
        protected=optional_field(payload, "protected", bool, path),
        reason=code,
        errors=parse_errors(payload.get("errors")),
        metadata=dict(optional_field(payload, "metadata", dict, path) or {}),
        extra={key: value for key, value in payload.items() if key not in KEYS},
    )


def is_earlier_payload(payload: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a payload has the earlier shape: `valid` as true or false, and no `result`."""
    return (
        isinstance(payload, Mapping)
        and "result" not in payload
        and isinstance(payload.get("valid"), bool)
    )


EARLIER_KEYS = frozenset({"email", "validation_type", "valid", "checks", "reason", "errors"})
UNREACHED_CHECKS = frozenset({"smtp_port", "smtp_connection"})  # their failure is not a refusal
# The earlier revision's `reason` of what is not valid.
EARLIER_CODES = ("REGEX", "DNS", "BLACKLIST", "SMTP")


def parse_earlier_payload(payload: Mapping[str, Any], path: str = "") -> Verification:
    """Read an earlier payload; it has neither reasons nor flags.

    It has no `unknown` either: a service says ``"valid": false`` of a mail server that did not
    answer, too. So that is `invalid` only if a check shows a refusal.
    """
    checks = parse_checks(payload.get("checks"))
    code = optional_field(payload, "reason", str, path)
    is_valid = require_field(payload, "valid", bool, path)
    if is_valid and code in EARLIER_CODES:
        where = f"{path}.reason" if path else "reason"
        raise ContractError(f"{where} is {code!r} although valid is true", path=where)
    failed = {name for name, passed in checks.items() if not passed}
    if failed & UNREACHED_CHECKS:
        failed -= UNREACHED_CHECKS | {"smtp"}  # which sums up the others
    result = Verdict.UNKNOWN
    if is_valid:
        result = Verdict.VALID
    elif failed or code == "REGEX":
        result = Verdict.INVALID
    email = require_field(payload, "email", str, path)
    validation_type = optional_field(payload, "validation_type", str, path)
    return Verification(
        email=email,
        validation_type=validation_type or str(ValidationType.SMTP),
        result=str(result),
        checks=checks,
        reason=code,
        errors=parse_errors(payload.get("errors")) or None,
        extra={key: value for key, value in payload.items() if key not in EARLIER_KEYS},
    )


def parse_result(payload: object, path: str) -> str:
    """One of the four verdicts, or a `ContractError`."""
    result = require_field(payload, "result", str, path)
    if result not in tuple(Verdict):
        where = f"{path}.result" if path else "result"
        raise ContractError(
            f"{where} is {shorten(result)!r}, none of {', '.join(Verdict)}", path=where
        )
    return result


def parse_reasons(payload: Mapping[str, Any], path: str) -> tuple[str, ...]:
    """The reasons, bounded and without ``;``; first `details` if the list lacks it."""
    details = optional_field(payload, "details", str, path)
    reasons = optional_field(payload, "reasons", list, path) or []
    if details not in reasons:
        reasons = [details, *reasons]
    words = []
    for reason in reasons:
        if reason:
            words.append(shorten(str(reason), LONGEST_WORD).replace(";", ","))
    return tuple(words)


def parse_checks(checks: object) -> dict[str, bool]:
    """Booleans by name; anything else is left out, since an absent check was not made."""
    outcomes: dict[str, bool] = {}
    if not isinstance(checks, Mapping):
        return outcomes
    for name, outcome in checks.items():
        if isinstance(outcome, bool):
            outcomes[shorten(str(name), LONGEST_WORD)] = outcome
    return outcomes


def parse_errors(errors: object) -> tuple[Fault, ...] | None:
    """The list of `{code, message}`; an entry of another shape is kept as a message."""
    if not isinstance(errors, list):
        return None
    return tuple(map(parse_fault, errors))


def parse_fault(entry: object) -> Fault:
    code = None
    message = entry
    if isinstance(entry, Mapping):
        code = entry.get("code")
        message = entry.get("message")
    return Fault(
        code=shorten(str(code or ""), LONGEST_WORD),
        message=shorten(str(message or ""), LONGEST_SENTENCE),
    )
