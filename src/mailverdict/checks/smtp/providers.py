"""Facts about large providers, each with a date and a source."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from ...errors import SettingsError

TABLE = "providers.toml"


@dataclass(frozen=True, slots=True)
class Provider:
    """Behaviour of a provider's mail servers; the fields are those of the table."""

    suffix: str  # host name in lower case; it stands for itself and all names below it
    name: str
    behaviour: str  # what was seen
    seen: datetime.date  # when it was last seen
    source: str  # by whom
    catch_all: bool | None = None  # True: accepts every recipient at RCPT; False: refuses unknown ones; None: ask
    rcpt_per_transaction: int | None = None
    one_domain: bool = False  # one domain per transaction


def load_providers() -> dict[str, Provider]:
    """Read the packaged table, by suffix.

    >>> load_providers()["yahoodns.net"].catch_all
    True
    """
    return parse_providers(files("mailverdict.data").joinpath(TABLE).read_text(encoding="utf-8"))


def parse_providers(text: str) -> dict[str, Provider]:
    """Parse a table of providers: TOML with one ``[[provider]]`` per row."""
    try:
        rows = [Provider(**row) for row in tomllib.loads(text).get("provider", [])]
    except (tomllib.TOMLDecodeError, TypeError) as exc:
        raise SettingsError(f"{TABLE} cannot be read: {exc}") from exc
    return {row.suffix: row for row in rows}


def find_provider(host: str, providers: Mapping[str, Provider]) -> Provider | None:
    """Find the row with the longest suffix of a host name, which is in lower case without the final dot.

    >>> find_provider("mta5.am0.yahoodns.net", load_providers()).name
    'Yahoo, AOL'
    """
    labels = host.split(".")
    suffixes = (".".join(labels[start:]) for start in range(len(labels)))
    return next((providers[suffix] for suffix in suffixes if suffix in providers), None)


def organisation(host: str) -> str:
    """The domain that a mail server's name belongs to, as a rule: what it shares with the servers beside it.

    A coarse rule is enough: all names of one exchange are one owner, and too large an owner only costs time.

    >>> organisation("alt1.aspmx.l.google.com"), organisation("mx.firm.co.uk"), organisation("mx")
    ('google.com', 'firm.co.uk', 'mx')
    """
    labels = host.rsplit(".", 3)[-3:]
    is_country = len(labels) == 3 and len(labels[2]) == 2 and len(labels[1]) <= 3
    return ".".join(labels if is_country else labels[-2:])
