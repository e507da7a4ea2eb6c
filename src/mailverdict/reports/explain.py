"""`explain`: the evidence behind one verdict."""

from __future__ import annotations

from typing import Any

from ..errors import SettingsError
from ..local.backend import LocalBackend
from ..local.explain import explain_here
from ..loop import run_sync
from ..model.explanation import Explanation, Step
from ..model.verification import Verification
from ..runs.opening import parse_validation_type, pick_backend

__all__ = ["explain"]


def explain(email: str, *, validation_type: str = "smtp", backend: Any = None) -> Explanation:
    """Show the evidence behind a verdict: each check, what it saw, and the rule that decided.

    Parameters
    ----------
    email : str
        The address.
    validation_type : {"smtp", "mx", "mx_blacklist", "regex"}, default "smtp"
        How deep; what goes over the network is as in `verify`.
    backend : backend, str or None
        As in `verify`. A service tells its payload only, and may count it against the quota.

    Returns
    -------
    Explanation
        Prints as text, shows as HTML in a notebook; its `verification` is the verdict.

    Raises
    ------
    SettingsError
        If `email` is not text or empty, or another argument cannot work.
    BackendError
        If the backend could not answer.

    Examples
    --------
    >>> import mailverdict as mv
    >>> with mv.sandbox.World() as world:
    ...     mv.explain("ada@gmial.com", validation_type="mx", backend=world.backend).verification.result
    'invalid'
    """
    if not isinstance(email, str) or not email.strip():
        raise SettingsError(f"email={email!r}: give one address as text")
    kind = parse_validation_type(validation_type)
    asked = pick_backend(backend)
    if isinstance(asked, LocalBackend):
        return run_sync(explain_here(asked, email.strip(), kind))
    from ..frames.verify import check  # noqa: PLC0415 - the frames' part is needed for a service only

    return explain_answer(check(email, validation_type=kind, backend=asked))


def explain_answer(found: Verification) -> Explanation:
    """What a service's payload tells of its evidence."""
    checks = Step(
        "checks", "as the service tells them", tuple(f"{k}: {str(v).lower()}" for k, v in found.checks.items())
    )
    notes = Step(
        "metadata", "as the service tells it", tuple(f"{k}: {str(v)[:300]}" for k, v in found.metadata.items())
    )
    why = (*(f"{reason}" for reason in found.reasons), *(f"{e.code}: {e.message}" for e in found.errors or ()))
    return Explanation(found, (checks, notes, Step("verdict", found.result, why)))
