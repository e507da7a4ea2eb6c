"""Write a file so that it appears complete or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def atomic_write(
    path: str | os.PathLike[str],
    *,
    sync: bool = False,
    choose: Callable[[], str | os.PathLike[str]] | None = None,
) -> Iterator[Path]:
    """Yield the path of an empty temporary file that replaces `path` at the end.

    After an exception it is removed.

    The temporary file is in the same directory, because only a rename within a file system is
    atomic. A symbolic link is followed. An existing file keeps its mode; a new one gets what the
    umask allows. With `sync`, the content is on the disk before the file is replaced. `choose` is
    called at the end and may return another path to replace. An `OSError` about the temporary file,
    also that the disk is full, names `path`. A file that is read-only is not replaced, although the
    system would allow it where its directory is writable.

    What is not a regular file (``/dev/null``, a pipe, ``/dev/stdout``) cannot be replaced: its own
    path is yielded.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(f"{folder}/a.txt") as temporary:
    ...         _ = temporary.write_text("complete")
    ...     Path(folder, "a.txt").read_text()
    'complete'
    """
    if is_device(path):
        yield Path(path)
        return
    target = Path(os.path.realpath(path))
    mode = mode_of(target)
    temporary = create_temporary(path, target, mode)
    try:
        yield temporary
        if sync:
            with temporary.open("rb+") as file:  # Windows syncs no file that is open for reading
                os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target if choose is None else os.path.realpath(choose()))
    except BaseException as exc:
        temporary.unlink(missing_ok=True)
        if isinstance(exc, OSError) and exc.errno in NO_ROOM and exc.filename is None:
            exc.filename = str(path)  # a failed write does not name its file
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise the `OSError` with which `atomic_write` would refuse a path.

    No file is left behind or changed.
    """
    if not is_device(path):
        target = Path(os.path.realpath(path))
        create_temporary(path, target, mode_of(target)).unlink()


def create_temporary(path: str | os.PathLike[str], target: Path, mode: int | None) -> Path:
    """Create the file beside `target` that replaces it.

    `path` is the name of the target that the caller knows.
    """
    if mode is not None:
        check_replaceable(path, target, mode)
    temporary = target.with_name(f".{target.name[:50]}-{secrets.token_hex(8)}.part")
    # open() applies the umask itself. os.umask() reads it only by changing it for the whole
    # process.
    created = 0o666 if mode is None else mode & 0o666 | stat.S_IWUSR
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, created))
    except OSError as exc:
        exc.filename = str(path)
        raise
    return temporary


def check_replaceable(path: str | os.PathLike[str], target: Path, mode: int) -> None:
    """Raise an `OSError` for a file that is read-only, or is of others in a folder such as /tmp."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not mode & 0o222 or not os.access(target, os.W_OK):
        raise PermissionError(
            errno.EACCES, "it is read-only; make it writable, or give another name", str(path)
        )
    if sys.platform != "win32":  # which has no such directories
        folder = target.parent.stat()
        owners = (0, folder.st_uid, target.stat().st_uid)
        if folder.st_mode & stat.S_ISVTX and os.geteuid() not in owners:
            raise PermissionError(
                errno.EPERM, "it belongs to another user; give another name", str(path)
            )


def is_device(path: str | os.PathLike[str]) -> bool:
    """Whether a path can only be written to: a device, a pipe, or an open file's descriptor."""
    try:
        found = Path(path).stat()
    except OSError:
        return False
    is_descriptor = Path(path).is_symlink() and str(Path(path).readlink()).startswith(
        ("/proc/", "/dev/fd/")
    )
    return is_descriptor or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))


def mode_of(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None
