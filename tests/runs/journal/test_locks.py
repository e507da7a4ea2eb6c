"""Whether a run has ended, by the lock that it holds."""

from pathlib import Path

import pytest

from mailverdict.runs.journal.locks import RunLock, delete_unlocked, is_locked, lock_path


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def test_a_lock_is_held_until_it_is_released_whoever_looks(journal: Path) -> None:
    path = lock_path(journal, 1)
    assert not is_locked(path)
    lock = RunLock(path)
    assert lock.is_held
    assert is_locked(path)
    assert is_locked(path), "looking has not freed it"
    assert not RunLock(path).is_held
    assert not is_locked(lock_path(journal, 2))
    lock.release()
    lock.release()
    assert not is_locked(path)
    assert list(journal.parent.iterdir()) == []


def test_files_of_killed_runs_are_deleted_and_no_others(journal: Path) -> None:
    lock = RunLock(lock_path(journal, 7))
    others = ["journal.db", "journal.db-run.lock", "journal.db-run1.lock.txt", "other.db-run1.lock"]
    for name in [*others, "journal.db-run1.lock"]:
        (journal.parent / name).touch()
    delete_unlocked(journal)
    assert {each.name for each in journal.parent.iterdir()} == {*others, "journal.db-run7.lock"}
    lock.release()
