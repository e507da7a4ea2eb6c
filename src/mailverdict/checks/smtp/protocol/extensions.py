"""What a server says it can do, out of its reply to EHLO."""

from __future__ import annotations

import re

from ..replies import Reply

__all__ = ["parse_extensions", "parse_limits"]

KEYWORD = re.compile(r"([A-Za-z0-9][A-Za-z0-9-]*)(?:[ =](.*))?")  # some old servers write AUTH=LOGIN
LIMIT = re.compile(r"([A-Za-z]+)=([1-9][0-9]{0,5})")


def parse_extensions(reply: Reply) -> dict[str, str]:
    """Extensions by keyword with their parameters; the first line is the server's name, the last one counts.

    >>> parse_extensions(Reply(250, None, "", ("mx.example.org", "SIZE 1000", "PIPELINING")))
    {'SIZE': '1000', 'PIPELINING': ''}
    """
    matches = (KEYWORD.fullmatch(line.strip()) for line in reply.lines[1:])
    return {match[1].upper(): match[2] or "" for match in matches if match}


def parse_limits(parameters: str) -> dict[str, int]:
    """Limits by name, out of the parameters of LIMITS (RFC 9422).

    >>> parse_limits("RCPTMAX=20 RCPTDOMAINMAX=1")
    {'RCPTMAX': 20, 'RCPTDOMAINMAX': 1}
    """
    return {name.upper(): int(value) for name, value in LIMIT.findall(parameters)}
