"""The domains of a column: each distinct one is checked once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from email_validator import SPECIAL_USE_DOMAIN_NAMES

from ..syntax import DomainName, normalize_domain
from .cut import Bools, Positions, bools, join_texts, pack

__all__ = ["Domains", "check_domains"]

LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
HOST_NAME = rf"\A@(?:{LABEL}\.)+(?:[A-Za-z0-9][A-Za-z0-9\-]*)?[A-Za-z]\z"  # the top-level label ends with a letter
LONG_LABEL = r"[^@.]{64}"  # RFC 1035 section 2.3.4


@dataclass(frozen=True, slots=True)
class Domains:
    """What is known of the domains as written."""

    codes: Positions  # which of `names`; -1 where refused
    lowerable: Bools  # a plain host name with capitals
    foreign: dict[int, DomainName]  # accepted by email-validator itself, by position
    names: pa.StringArray  # the distinct accepted ones, lower case, in A-labels


def check_domains(written: pa.StringArray) -> Domains:
    """Check distinct domains that come with their @ in front."""
    lowered = pc.ascii_lower(written)
    foreign = check_foreign(written, is_foreign(lowered))
    plain = is_host_name(lowered)
    accepted = plain.copy()
    accepted[list(foreign)] = True
    names = pack(*join_texts([pc.utf8_slice_codeunits(lowered, 1)], [{code: f.ascii for code, f in foreign.items()}]))
    encoded = pc.if_else(pa.array(accepted), names, None).dictionary_encode()
    lowerable = plain & bools(pc.not_equal(lowered, written))
    return Domains(encoded.indices.fill_null(-1).to_numpy(), lowerable, foreign, encoded.dictionary)


def is_foreign(lowered: pa.StringArray) -> Bools:
    """Whether IDNA may have to do with a domain; two hyphens can only be right in an A-label (RFC 5891 4.2.3.1)."""
    return ~bools(pc.string_is_ascii(lowered)) | bools(pc.match_substring(lowered, "--"))


def is_host_name(lowered: pa.StringArray) -> Bools:
    """Whether a domain is a plain host name that may be on the Internet."""
    plain = bools(pc.match_substring_regex(lowered, HOST_NAME)) & ~bools(pc.match_substring(lowered, "--"))
    for name in SPECIAL_USE_DOMAIN_NAMES:
        plain &= ~bools(pc.ends_with(lowered, f".{name}")) & ~bools(pc.equal(lowered, f"@{name}"))
    long = np.flatnonzero(bools(pc.greater(pc.binary_length(lowered), 64)) & plain)
    plain[long] = ~bools(pc.match_substring_regex(lowered.take(pa.array(long)), LONG_LABEL))
    return plain


def check_foreign(written: pa.StringArray, concerned: Bools) -> dict[int, DomainName]:
    """Ask email-validator about some domains; give the accepted ones by position."""
    accepted = {}
    texts = written.filter(pa.array(concerned)).to_pylist()
    for code, domain in zip(np.flatnonzero(concerned).tolist(), texts, strict=True):
        name = normalize_domain(domain[1:])
        if name is not None:
            accepted[code] = name
    return accepted
