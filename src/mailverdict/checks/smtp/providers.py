"""What is known of large providers before they are asked: data, with a date and a source for each fact."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from ...errors import SettingsError

__all__ = ["Provider", "find_provider", "load_providers", "parse_providers"]

TABLE = "providers.toml"


@dataclass(frozen=True, slots=True)
class Provider:
    """Habits of a provider's exchanges.

    Attributes
    ----------
    suffix : str
        Host name that stands for itself and all below it, in lower case.
    name : str
        Who that is.
    why : str
        What was seen.
    seen : datetime.date
        When it was last seen.
    source : str
        By whom.
    catch_all : bool or None
        True: accepts every recipient at RCPT; False: known to refuse unknown ones; None: to be asked.
    rcpt_per_transaction : int or None
        Most recipients that one MAIL is given.
    one_domain : bool
        Whether one MAIL is given recipients of one domain only.
    """

    suffix: str
    name: str
    why: str
    seen: datetime.date
    source: str
    catch_all: bool | None = None
    rcpt_per_transaction: int | None = None
    one_domain: bool = False


def load_providers() -> dict[str, Provider]:
    """Read the packaged table.

    Returns
    -------
    dict of str to Provider
        By suffix.

    Examples
    --------
    >>> load_providers()["yahoodns.net"].catch_all
    True
    """
    return parse_providers(files("mailverdict.data").joinpath(TABLE).read_text(encoding="utf-8"))


def parse_providers(text: str) -> dict[str, Provider]:
    """Parse a table of providers.

    Parameters
    ----------
    text : str
        TOML with one ``[[provider]]`` a row.

    Returns
    -------
    dict of str to Provider
        By suffix.

    Raises
    ------
    SettingsError
        If it is no such table.

    Examples
    --------
    >>> parse_providers("")
    {}
    """
    try:
        rows = [Provider(**row) for row in tomllib.loads(text).get("provider", [])]
    except (tomllib.TOMLDecodeError, TypeError) as exc:
        raise SettingsError(f"{TABLE} cannot be read: {exc}") from exc
    return {row.suffix: row for row in rows}


def find_provider(host: str, providers: Mapping[str, Provider]) -> Provider | None:
    """Find the row with the longest suffix of an exchange's host name.

    Parameters
    ----------
    host : str
        Host name, in lower case and without the final dot.
    providers : mapping of str to Provider
        By suffix.

    Returns
    -------
    Provider or None
        None: nothing is known.

    Examples
    --------
    >>> find_provider("mta5.am0.yahoodns.net", load_providers()).name
    'Yahoo, AOL'
    """
    labels = host.split(".")
    suffixes = (".".join(labels[start:]) for start in range(len(labels)))
    return next((providers[suffix] for suffix in suffixes if suffix in providers), None)
