"""Write a file so that it appears complete or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["atomic_write"]


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, sync: bool = False) -> Iterator[Path]:
    """Yield the path of an empty temporary file that replaces `path` at the end, or is removed on an exception.

    The temporary file is in the same directory, because only a rename within a file system is atomic. A symbolic link
    is followed. An existing file keeps its mode; a new one gets what the umask allows. With `sync`, the content is on
    the disk before the file is replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(f"{folder}/a.txt") as temporary:
    ...         _ = temporary.write_text("complete")
    ...     Path(folder, "a.txt").read_text()
    'complete'
    """
    target = Path(os.path.realpath(path))
    mode = mode_of(target)
    temporary = target.with_name(f".{target.name[:50]}-{secrets.token_hex(8)}.part")
    # open() applies the umask itself. os.umask() reads it only by changing it for the whole process.
    created = 0o666 if mode is None else mode & 0o666 | stat.S_IWUSR
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, created))
    try:
        yield temporary
        if mode is not None:
            temporary.chmod(mode)
        if sync:
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def mode_of(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None
