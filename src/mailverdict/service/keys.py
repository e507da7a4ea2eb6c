"""Client keys: who may use the service, by a file of names and hashed keys.

A key is ``mv_<identifier>_<secret>``. The file has the identifier and the SHA-256 digest of the
whole key; a slow hash would add nothing, since the secret is 256 random bits. The key itself is
shown once, when it is made.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..atomic_write import atomic_write
from ..errors import SettingsError

LOG = logging.getLogger(__name__)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}")  # it is part of the client's account
KEY = re.compile(r"mv_([0-9a-f]{16})_[A-Za-z0-9_-]{43}")
DIGEST = re.compile(r"[0-9a-f]{64}")
IDENTIFIER = re.compile(r"[0-9a-f]{16}")
# Others may neither read nor write the file; its group may read it, as with root:mailverdict 0640.
FORBIDDEN = stat.S_IRWXO | stat.S_IWGRP | stat.S_IXGRP
RELOAD_INTERVAL = 1.0  # seconds between looks at the file
ABSENT = "0" * 64  # compared with the digest of a key whose identifier is unknown


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A client's key as it is in the file."""

    name: str
    identifier: str  # the part of the key that is not secret
    sha256: str  # of the whole key, as hexadecimal digits
    created: str  # ISO 8601
    revoked: str | None = None  # ISO 8601; a revoked name is not given again, since it has results

    @property
    def account(self) -> str:
        """What quota, rate limit and results belong to."""
        return f"key:{self.name}"


def read_keys(path: str | os.PathLike[str]) -> list[ClientKey]:
    """Read the file; `SettingsError` if it is missing, damaged, or others can read it."""
    file = Path(path)
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(
            f"key_file={str(file)!r} cannot be read: {exc}; make one with 'mailverdict keys add'"
        ) from exc
    if sys.platform != "win32" and stat.S_IMODE(mode) & FORBIDDEN:
        shown = f"{stat.S_IMODE(mode):04o}"
        raise SettingsError(
            f"key_file={str(file)!r}: others can read or change it (mode {shown}); "
            "run chmod 600 on it"
        )
    try:
        return check_unique([parse_entry(entry) for entry in json.loads(text)["keys"]])
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        raise SettingsError(
            f"key_file={str(file)!r} is damaged: {exc}; restore it, or make a new one"
        ) from exc


def parse_entry(entry: Any) -> ClientKey:
    """One entry of the file; a `ValueError` does not show the digest."""
    key = ClientKey(**entry)
    texts = [key.name, key.identifier, key.sha256, key.created]
    if key.revoked is not None:
        texts.append(key.revoked)
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("an entry has a value that is not text")
    forms = ((NAME, key.name), (IDENTIFIER, key.identifier), (DIGEST, key.sha256))
    if not all(form.fullmatch(text) for form, text in forms):
        raise ValueError(f"the entry {key.name[:50]!r} has a value of a wrong form")
    return key


def check_unique(keys: list[ClientKey]) -> list[ClientKey]:
    """The same keys; `ValueError` if two have one name or one identifier."""
    for what in ("name", "identifier"):
        if len({getattr(key, what) for key in keys}) < len(keys):
            raise ValueError(f"two entries have the same {what}")
    return keys


def write_keys(path: Path, keys: Iterable[ClientKey]) -> None:
    """Replace the file; a new one can be read by its owner only."""
    text = json.dumps({"keys": [asdict(key) for key in keys]}, indent=1) + "\n"
    is_new = not path.exists()
    with atomic_write(path, sync=True) as temporary:
        if is_new:
            temporary.chmod(0o600)
        temporary.write_text(text, encoding="utf-8")


def add_key(path: str | os.PathLike[str], name: str) -> str:
    """Add a client to the file, which is created if it is missing; return its key."""
    if not NAME.fullmatch(name):
        raise SettingsError(
            f"name={name!r}: give 1 to 50 letters, digits, '.', '_' or '-', "
            "and begin with a letter or digit"
        )
    file = Path(path)
    keys = read_keys(file) if file.exists() else []
    if any(key.name == name for key in keys):
        raise SettingsError(
            f"name={name!r} is in {str(file)!r} already, perhaps revoked; choose another name"
        )
    identifier = secrets.token_hex(8)
    key = f"mv_{identifier}_{secrets.token_urlsafe(32)}"
    write_keys(file, [*keys, ClientKey(name, identifier, digest_of(key), iso_now())])
    return key


def revoke_key(path: str | os.PathLike[str], name: str) -> ClientKey:
    """Mark a client's key as revoked; a running service refuses it a second later."""
    file = Path(path)
    keys = read_keys(file)
    found = next((key for key in keys if key.name == name), None)
    if found is None or found.revoked:
        what = "is revoked already" if found else "is not in the file"
        raise SettingsError(f"name={name!r} {what}: {str(file)!r}")
    revoked = replace(found, revoked=iso_now())
    keys[keys.index(found)] = revoked
    write_keys(file, keys)
    return revoked


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def iso_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class KeyRing:
    """The keys of a file, which is read again when it was changed.

    Without the file no key is valid: who removes it wants nobody to get in, and a file that is
    replaced is never missing. One that was damaged does not change the keys, so that a mistake of
    an editor does not shut out all clients. Both go to the log.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = Path(path)
        self.clock = clock
        self.keys = {key.identifier: key for key in read_keys(self.path)}
        self.version = self.read_version()
        self.looked_at = clock()

    def account(self, authorization: str) -> str | None:
        """The account of a request by its field ``Authorization``, or None if it has no valid key.

        The digest is compared in constant time, also if the identifier is unknown.
        """
        self.reload()
        scheme, _, key = authorization.strip().partition(" ")
        match = KEY.fullmatch(key.strip())
        if match is None or scheme.lower() != "bearer":
            return None
        found = self.keys.get(match[1])
        digest = found.sha256 if found else ABSENT
        is_same = hmac.compare_digest(digest_of(match[0]), digest)
        if not found or not is_same or found.revoked:
            return None
        return found.account

    def reload(self) -> None:
        """Read the file again if it was changed since the last look."""
        now = self.clock()
        if now - self.looked_at < RELOAD_INTERVAL:
            return
        self.looked_at = now
        version = self.read_version()
        if version == self.version:
            return
        self.version = version
        if version is None:
            self.keys = {}
            LOG.error("key_file=%r is missing: no key is valid until it is back", str(self.path))
            return
        try:
            self.keys = {key.identifier: key for key in read_keys(self.path)}
        except SettingsError as exc:
            LOG.error("the client keys stay as they were: %s", exc)

    def read_version(self) -> tuple[int, ...] | None:
        """What changes with the file; None if it is missing."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)
