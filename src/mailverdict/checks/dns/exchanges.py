"""What the name of an exchange can be: a host, an address to deliver to, or neither.

The data of an MX record is a host name (RFC 1035 section 3.3.9). Some domains have an IP address
there, a name that no other host has, or a number: `MX 0 0.` where a null MX is `MX 0 .` (RFC 7505).
"""

from __future__ import annotations

import re
import socket

from ..networks import UNSPECIFIED

# Names that are not another host, by definition: the machine that looks (RFC 6761 section 6.3),
# none (6.4), one on this link (RFC 6762 section 3). Below `test` and `example` (6.2, 6.5) a
# resolver may have hosts, so those count.
SPECIAL = re.compile(r"(?:.*\.)?(?:localhost|invalid|local)")
ADDRESS = re.compile(r"\[?(?:\d{1,3}(?:\.\d{1,3}){3}|[\da-f.]*:[\da-f:.]*)\]?")
NUMBER = re.compile(r"(?:.*\.)?\d+")  # no top-level domain is a number (RFC 3696 section 2)


def may_be_host_name(name: str) -> bool:
    """Whether a host on the Internet can have the name of an exchange.

    >>> may_be_host_name("mx.ada.example"), may_be_host_name("localhost"), may_be_host_name("0")
    (True, False, False)
    """
    return not any(pattern.fullmatch(name) for pattern in (SPECIAL, ADDRESS, NUMBER))


def is_address(name: str) -> bool:
    """Whether some systems read an IP address in the name of an exchange, and deliver to it.

    >>> is_address("192.0.2.25"), is_address("3221225985"), is_address("0"), is_address("0.0.0.0")
    (True, True, False, False)
    """
    if name.strip("[]") in UNSPECIFIED:
        return False
    if ADDRESS.fullmatch(name):
        return True
    if not NUMBER.fullmatch(name):
        return False
    try:
        packed = socket.inet_aton(name)  # also reads short forms
    except OSError:
        return False
    return packed[0] != 0  # 0.0.0.0/8 is this network (RFC 791)
