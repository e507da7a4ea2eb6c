"""Who we say we are to an exchange."""

from __future__ import annotations

import asyncio
import re
import socket

from ...model.settings import LocalSettings

__all__ = ["find_helo_name"]

FULL_NAME = re.compile(r"(?=.{4,253}\Z)(?:(?!-)[A-Za-z0-9-]{1,63}(?<!-)\.)+[A-Za-z][A-Za-z0-9-]*")


async def find_helo_name(settings: LocalSettings) -> str:
    """Give the name for EHLO: as set, else this host's own, which may have to be looked up.

    Parameters
    ----------
    settings : LocalSettings
        May name it.

    Returns
    -------
    str
        ``localhost`` where this host has no full name; many servers refuse that, and `audit_host` says so.
    """
    return settings.helo_name if settings.helo_name is not None else await asyncio.to_thread(own_name)


def own_name() -> str:
    """The full name of this host."""
    name = socket.getfqdn()
    return name if FULL_NAME.fullmatch(name) else "localhost"
