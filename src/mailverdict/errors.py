"""Every exception of mailverdict.

A bad mailbox is a result, not an exception. An exception means that the call could not be
completed.

    MailVerdictError
      x SettingsError (ValueError)       a wrong setting or argument
      x ColumnError (KeyError)           no such column, or an ambiguous one
      x InputError (ValueError)          a file or frame that cannot be read as asked
      x MissingExtraError (ImportError)  an optional dependency is not installed
      x JournalError                     .partial; a damaged, foreign or unwritable file
      x BackendError
        - QuotaExceeded                  .limit .remaining .requested .partial
        - RateLimited                    .retry_after
        - ContractError                  .path; an answer that violates the contract
        - ServiceError                   .code .status; the service answered with an error
        - TransportError (ConnectionError)  no answer
        - ResolverError                  the DNS resolver answers falsely, or not at all
"""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
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
    "ResolverError",
    "ServiceError",
    "SettingsError",
    "TransportError",
]


class MailVerdictError(Exception):
    """Base class of all exceptions of this package."""

    def _render_traceback_(self) -> list[str]:
        """What IPython and Jupyter show: the user's lines that led here, and the message."""
        import traceback  # noqa: PLC0415 - only for an error in a notebook

        frames = traceback.extract_tb(self.__traceback__)
        own = Path(__file__).parent
        before = takewhile(lambda frame: not Path(frame.filename).is_relative_to(own), frames)
        # It calls the cell.
        theirs = [frame for frame in before if "IPython" not in Path(frame.filename).parts]
        lines = ["Traceback (most recent call last):\n", *traceback.format_list(theirs)]
        return "".join([*lines, *traceback.format_exception_only(self)]).splitlines()


class SettingsError(MailVerdictError, ValueError):
    """A setting or an argument has a wrong value."""


class InputError(MailVerdictError, ValueError):
    """A file or frame cannot be read in the given format."""


class ColumnError(MailVerdictError, KeyError):
    """The frame has no such column, or has it more than once."""

    def __str__(self) -> str:
        """The message; ``KeyError`` would show its repr."""
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
        """Pickle both arguments."""
        return type(self), (self.what, self.extra)


class JournalError(MailVerdictError):
    """A journal file is damaged, is not a journal, or cannot be written any more.

    One that is not a journal was not changed.

    Attributes
    ----------
    partial : pandas.DataFrame or None
        The rows checked before, if a column was being verified.
    """

    partial: Any = None


class BackendError(MailVerdictError):
    """The backend failed; this says nothing about any address.

    Attributes
    ----------
    partial : pandas.DataFrame or None
        The rows checked before, if a column was being verified.
    """

    partial: Any = None


class QuotaExceeded(BackendError):
    """The daily quota does not cover the request.

    Parameters
    ----------
    message : str
        What happened and what to do.
    limit, remaining, requested : int or None
        Addresses per day, left today, requested; None if the service did not report it.
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
    """The service asks to be called later.

    Parameters
    ----------
    message : str
        What happened.
    retry_after : float or None
        Seconds to wait; None if the service did not report it.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ContractError(BackendError):
    """An answer violates the contract.

    Parameters
    ----------
    message : str
        What was expected and what was received (shortened).
    path : str
        The position in the answer, as ``data.result.status``.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class ServiceError(BackendError):
    """The service answered with an error.

    Parameters
    ----------
    message : str
        The service's message and the request.
    code : str
        ``error.code`` as sent; not always a code of the contract.
    status : int
        HTTP status.
    """

    def __init__(self, message: str, *, code: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class TransportError(BackendError, ConnectionError):
    """No answer was received: connection refused or reset, time-out, TLS failure."""


class ResolverError(BackendError):
    """The DNS resolver denies domains that are known to exist, or answers about none of them.

    Raised before a row is checked; during a run only if the resolver changes then. Rows checked
    before are on `partial`. `LocalBackend` has a setting `resolver_check` for private networks.
    """
