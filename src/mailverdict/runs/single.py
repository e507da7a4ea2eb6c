"""One address: `check`, and which backend checks it and how.

    check("ada@web.de") -> LocalBackend.check, or the service's single check
                        -> a batch of one, for a user's backend that has no `check`

Also used by `explain` and by the service.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import AsyncIterator, Hashable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ..backend import Backend, Batch, Deferred, Noticed, Settled
from ..checks.lists.suggestions import suggest_domain
from ..checks.syntax.address import observe_syntax
from ..errors import BackendError, ContractError, QuotaExceeded, RateLimited, SettingsError
from ..local.backend import CheckRecord, LocalBackend
from ..loop import run_sync
from ..model.evidence import SyntaxEvidence
from ..model.table import verification_of
from ..model.verification import Verification, parse_errors
from ..model.words import Status, ValidationType, ValidationTypeWord, Verdict
from .options import parse_validation_type, pick_backend

LONGEST_EMAIL = 1_000  # characters; an address has at most 254 octets (RFC 5321 section 4.5.3.1.3)


def check(
    email: str,
    *,
    validation_type: ValidationType | ValidationTypeWord = "mx",
    backend: Backend | str | None = None,
) -> Verification:
    """Verify one address now; nothing is journalled.

    Parameters
    ----------
    email : str
        The address.
    validation_type : {"mx", "smtp", "mx_blacklist", "regex"}, default "mx"
        As in `verify`. Only ``"smtp"`` asks mail servers, on port 25.
    backend : backend, str or None
        As in `verify`; a service may count a check against the daily quota.

    Returns
    -------
    Verification
        Its `to_dict` is the contract's payload. A malformed address is ``invalid``, never sent.

    Raises
    ------
    SettingsError
        If `email` is not text or empty, or another argument cannot work.
    BackendError
        If the backend could not answer.

    Examples
    --------
    >>> import mailverdict as mv
    >>> mv.check("ada@example", validation_type="regex").result
    'invalid'
    """
    address = parse_email(email)
    kind = parse_validation_type(validation_type)
    record = CheckRecord()

    async def check_once() -> Verification:
        async with open_backend(backend) as opened:
            return await check_address(address, kind, opened, record)

    verification = run_sync(check_once())
    for notice in record.notices:
        warnings.warn(notice, UserWarning, stacklevel=2)
    return verification


def parse_email(email: str) -> str:
    """The address of a call for one address: stripped, of bounded length."""
    if not isinstance(email, str) or not email.strip():
        raise SettingsError(f"email={email!r:.80}: give one address as text")
    return email.strip()[:LONGEST_EMAIL]


@asynccontextmanager
async def open_backend(backend: Any) -> AsyncIterator[Backend]:
    """The backend behind an argument of the user; closed afterwards, unless the user made it."""
    picked = pick_backend(backend)
    try:
        yield picked
    finally:
        if picked is not backend:
            await picked.aclose()


async def check_address(
    email: str,
    validation_type: ValidationType,
    backend: Backend,
    record: CheckRecord | None = None,
    *,
    client: Hashable = None,
) -> Verification:
    """Verify one stripped address; a malformed one is settled here and costs no quota."""
    if isinstance(backend, LocalBackend):
        return await backend.check(email, validation_type, client=client, record=record)
    syntax = observe_syntax(email)
    if not syntax.ok:
        return await LocalBackend().check(email, validation_type, record=record)
    if hasattr(backend, "check"):
        verification: Verification = await backend.check(email, str(validation_type))
    else:
        verification = await check_by_batch(email, validation_type, backend, record)
    return with_suggestion(verification, syntax)


def with_suggestion(verification: Verification, syntax: SyntaxEvidence) -> Verification:
    """The verification with the address that was probably meant, if it has none."""
    if verification.suggestion:
        return verification
    meant = suggest_domain(syntax.ascii_domain)
    if not meant:
        return verification
    metadata = {**verification.metadata, "suggestion": f"{syntax.local}@{meant}"}
    return replace(verification, metadata=metadata)


async def check_by_batch(
    email: str, validation_type: ValidationType, backend: Backend, record: CheckRecord | None
) -> Verification:
    """The same with a user's backend that verifies batches only."""
    batch = Batch(pa.array([email], pa.string()), str(validation_type))
    async with aclosing(backend.verify(batch)) as events:  # type: ignore[type-var]
        async for event in events:
            if isinstance(event, Noticed) and record is not None:
                record.notices.append(event.message)
            elif isinstance(event, Settled) and len(event.rows):
                row = event.rows.to_pylist()[0]
                return replace(read_row(row), email=email)
            elif isinstance(event, Deferred) and event.emails:
                raise refusal(event)
    raise ContractError(f"{backend!r} did not answer")


def read_row(row: dict[str, Any]) -> Verification:
    """The verification in a row, or the exception that stands for its status."""
    if row["status"] != Status.DONE:
        errors = parse_errors(row["errors"] and json.loads(row["errors"]))
        cause = errors[0].message if errors else "no cause is known"
        raise BackendError(f"the backend could not verify the address: {cause}")
    if row["result"] not in tuple(Verdict):
        message = f"the verdict is {row['result']!r}, none of {', '.join(Verdict)}"
        raise ContractError(message, path="result")
    return verification_of(row)


def refusal(event: Deferred) -> BackendError:
    """The exception for an address that the backend put off."""
    if event.why == "quota":
        return QuotaExceeded("today's quota is used up: the address was not verified", requested=1)
    message = f"the backend has not verified the address yet: {event.why}"
    return RateLimited(message, retry_after=event.retry_after)
