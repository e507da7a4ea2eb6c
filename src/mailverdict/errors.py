"""Every exception of mailverdict.

A bad mailbox is data; an exception means that the call could not do its job.

::

    MailVerdictError
      x SettingsError (ValueError)       a setting or argument that cannot work
      x ColumnError (KeyError)           no such column, or an ambiguous one
      x InputError (ValueError)          a file or frame that cannot be read as asked
      x MissingExtraError (ImportError)  an optional dependency is not installed
      x JournalError                     a journal that is not ours, or is damaged
      x BackendError
        - QuotaExceeded                  .limit .remaining .requested .partial
        - RateLimited                    .retry_after
        - ContractError                  .path; an answer that does not speak the contract
        - ServiceError                   .code .status; the service said no
        - TransportError (ConnectionError)  no answer at all
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BackendError",
    "ColumnError",
    "ContractError",
    "InputError",
    "JournalError",
    "MailVerdictError",
    "MissingExtraError",
    "QuotaExceeded",
    "RateLimited",
    "ServiceError",
    "SettingsError",
    "TransportError",
]


class MailVerdictError(Exception):
    """Base of everything this package raises on purpose."""


class SettingsError(MailVerdictError, ValueError):
    """A setting or an argument has a value that cannot work."""


class InputError(MailVerdictError, ValueError):
    """A file or frame cannot be read as what it was said to be."""


class ColumnError(MailVerdictError, KeyError):
    """The frame has no such column, or has it more than once."""

    def __str__(self) -> str:
        """Give the message itself; ``KeyError`` would show its repr."""
        return str(self.args[0]) if self.args else ""


class MissingExtraError(MailVerdictError, ImportError):
    """An optional dependency is not installed.

    Parameters
    ----------
    what : str
        What the user wanted to do, in words.
    extra : str
        The extra of this package that brings the dependency.
    """

    def __init__(self, what: str, extra: str) -> None:
        self.what, self.extra = what, extra
        super().__init__(f"{what} needs an optional dependency: pip install 'mailverdict[{extra}]'")

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        """Travel between processes whole."""
        return type(self), (self.what, self.extra)


class JournalError(MailVerdictError):
    """A journal file is damaged, or belongs to something else; it was left as it is."""


class BackendError(MailVerdictError):
    """The backend could not answer; says nothing about any address.

    Attributes
    ----------
    partial : pandas.DataFrame or None
        What was settled before, where the caller asked for a column.
    """

    partial: Any = None


class QuotaExceeded(BackendError):
    """The daily quota does not cover the request.

    Parameters
    ----------
    message : str
        What happened and what to do.
    limit, remaining, requested : int or None
        Addresses per day, left today, asked for; None where the service did not say.
    """

    def __init__(
        self,
        message: str,
        *,
        limit: int | None = None,
        remaining: int | None = None,
        requested: int | None = None,
    ) -> None:
        super().__init__(message)
        self.limit = limit
        self.remaining = remaining
        self.requested = requested


class RateLimited(BackendError):
    """The service asks to be asked later.

    Parameters
    ----------
    message : str
        What happened.
    retry_after : float or None
        Seconds the service asked to wait; None where it did not say.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ContractError(BackendError):
    """An answer is not in the form that the contract gives.

    Parameters
    ----------
    message : str
        What was expected and what was seen (shortened).
    path : str
        Where in the answer, as ``data.result.status``.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class ServiceError(BackendError):
    """The service answered with an error of its own.

    Parameters
    ----------
    message : str
        The service's message and what it was asked.
    code : str
        ``error.code`` as sent; may be one that no table knows.
    status : int
        HTTP status.
    """

    def __init__(self, message: str, *, code: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class TransportError(BackendError, ConnectionError):
    """No usable answer came back: refused, reset, timed out, TLS failed."""
