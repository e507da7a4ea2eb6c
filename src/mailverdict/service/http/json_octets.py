"""JSON as octets: `encode_json` and `decode_json`, by orjson where it is installed.

The standard library encodes and decodes what orjson refuses, so that both give the same values but
for two kinds of numbers, which no request of the contract has: orjson reads integers of more than
64 bits as floats, and writes NaN as null, which the standard library refuses.
"""

from __future__ import annotations

import json
from typing import Any

try:
    import orjson
except ImportError:  # as on platforms that it has no package for
    HAS_ORJSON = False
else:
    HAS_ORJSON = True

# No value here contains itself, and to check that would take a third of the time.
ENCODER = json.JSONEncoder(
    ensure_ascii=True, check_circular=False, separators=(",", ":"), allow_nan=False
)
DECODER = json.JSONDecoder()


def encode_json(value: Any) -> bytes:
    r"""JSON in ASCII: a lone surrogate becomes the escape that it came as.

    >>> encode_json({"email": "ada@bücher.example"})
    b'{"email":"ada@b\\u00fccher.example"}'
    """
    if HAS_ORJSON:
        try:
            octets: bytes = orjson.dumps(value)
        except TypeError:  # a lone surrogate, a named tuple, an integer of more than 64 bits
            pass
        else:
            if octets.isascii():
                return octets
    return ENCODER.encode(value).encode("ascii")


def decode_json(octets: bytes | bytearray) -> Any:
    """The value of JSON in UTF-8.

    ValueError, or RecursionError for deep nesting, if it is anything else.

    >>> decode_json(b'{"limit": 100}')
    {'limit': 100}
    """
    if HAS_ORJSON:
        try:
            return orjson.loads(octets)
        except ValueError:  # a lone surrogate, perhaps
            pass
    return DECODER.decode(octets.decode("utf-8"))
