"""Files that appear complete or not at all."""

from __future__ import annotations

import errno
import os
import stat
import threading

import pytest

from mailverdict.atomic_write import atomic_write, check_writable
from tests.doubles.other_system import needs_posix


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask():
    """The process's umask is 0o027 during the test."""
    if os.name != "posix":
        pytest.skip("Windows has no umask")
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def test_the_file_appears_at_the_end_and_nothing_else_stays(tmp_path):
    with atomic_write(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
        assert temporary.parent == tmp_path
        assert not (tmp_path / "a.txt").exists()
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a.txt", "new")]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_leaves_the_old_file_and_no_temporary_one(tmp_path, error):
    (tmp_path / "a.txt").write_text("old")

    def fail(temporary):
        temporary.write_text("new")
        raise error

    with pytest.raises(error), atomic_write(tmp_path / "a.txt") as temporary:
        fail(temporary)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a.txt", "old")]


def test_a_target_that_cannot_be_replaced_leaves_no_temporary_file(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"), atomic_write(tmp_path / "folder"):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_a_failed_write_names_the_file_and_not_the_temporary_one(tmp_path):
    def fill(temporary):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        pytest.raises(OSError, match="No space left") as caught,
        atomic_write(tmp_path / "a.txt") as temporary,
    ):
        fill(temporary)
    assert caught.value.filename == str(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "nowhere" / "a.txt"):
        pass
    assert caught.value.filename == str(tmp_path / "nowhere" / "a.txt")


@pytest.mark.parametrize("sync", [False, True])
def test_a_new_file_has_the_mode_that_the_umask_allows(tmp_path, umask, sync):
    with atomic_write(tmp_path / "a.txt", sync=sync) as temporary:
        assert mode(temporary) == 0o640
    assert mode(tmp_path / "a.txt") == 0o640


@pytest.mark.parametrize("existing", [0o600, 0o666, 0o755, 0o240])
def test_an_existing_file_keeps_its_mode(tmp_path, umask, existing):
    (tmp_path / "a.txt").touch()
    (tmp_path / "a.txt").chmod(existing)
    with atomic_write(tmp_path / "a.txt") as temporary:
        assert mode(temporary) & ~stat.S_IWUSR & ~existing == 0  # nobody else may read it meanwhile
        temporary.write_text("new")
    assert (mode(tmp_path / "a.txt"), (tmp_path / "a.txt").read_text()) == (existing, "new")


def write_new(path):
    with atomic_write(path) as temporary:
        temporary.write_text("new")


@pytest.mark.parametrize("write", [write_new, check_writable])
@pytest.mark.parametrize(
    "problem",
    [
        *("no folder", "a folder", "read-only"),
        pytest.param("read-only target", marks=needs_posix),
        pytest.param("of another user", marks=needs_posix),
    ],
)
def test_what_cannot_be_replaced_is_refused_before_anything_is_written(
    tmp_path, monkeypatch, write, problem
):
    path = tmp_path / ("nowhere/a.txt" if problem == "no folder" else "a.txt")
    if problem == "a folder":
        path.mkdir()
    elif problem == "read-only target":
        (tmp_path / "b.txt").touch(0o400)
        path.symlink_to(tmp_path / "b.txt")
    elif problem != "no folder":
        path.touch(0o600 if problem == "of another user" else 0o444)
    if problem == "of another user":  # as in /tmp, where only the owner of a file may replace it
        tmp_path.chmod(0o1777)
        monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(
        OSError, match="read-only" if problem.startswith("read-only") else "directory|another user"
    ) as caught:
        write(path)
    assert caught.value.filename == str(path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_check_leaves_the_file_as_it_is(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    check_writable(tmp_path / "a.txt")
    check_writable(tmp_path / "b.txt")
    check_writable("/dev/null")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a.txt", "old")]


@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path, exists):
    target = tmp_path / "elsewhere" / "b.txt"
    target.parent.mkdir()
    if exists:
        target.write_text("old")
    (tmp_path / "a.txt").symlink_to(target)
    with atomic_write(tmp_path / "a.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "a.txt").is_symlink()
    assert target.read_text() == "new"


def test_a_name_of_the_largest_length_has_room_for_the_temporary_one(tmp_path):
    with atomic_write(tmp_path / ("x" * 255)) as temporary:
        temporary.write_text("new")
    assert (tmp_path / ("x" * 255)).read_text() == "new"


@pytest.mark.parametrize("times", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_threads_that_create_files_meanwhile_keep_their_umask(tmp_path, umask, times):
    """Reading the umask means setting it for a moment, in which another thread's file would get the mode 0o666."""
    written = threading.Event()

    def write(number):
        for _ in range(times):
            with atomic_write(tmp_path / f"same-{number % 2}.txt") as temporary:
                temporary.write_text(str(number) * 100)

    def create():
        number = 0
        while not written.is_set():
            (tmp_path / f"other-{number}").touch()
            number += 1

    creator = threading.Thread(target=create)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in (creator, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    written.set()
    creator.join()
    assert {mode(path) for path in tmp_path.iterdir()} == {0o640}
    for number in range(2):
        # One writer's content, complete.
        assert len(set((tmp_path / f"same-{number}.txt").read_text())) == 1
    assert not list(tmp_path.glob(".*"))
