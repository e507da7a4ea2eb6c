"""Files in pieces, without a browser: every message of `transfer.js`, and those that it never sends."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mailverdict.errors import InputError
from mailverdict.widgets import transfer as module
from mailverdict.widgets.transfer import LARGEST_PIECE, MAX_OFFERS, MAX_UPLOADS, FileTransfer

ONE, OTHER = "aaaaaaaa", "bbbbbbbb"


class Channel:
    """A transfer and all that it sent and reported."""

    def __init__(self, folder: Path) -> None:
        self.sent: list[tuple[dict, list]] = []
        self.files: list[tuple[str, Path]] = []
        self.failures: list[tuple[str, str]] = []
        self.transfer = FileTransfer(
            lambda content, buffers: self.sent.append((content, buffers)),
            folder,
            on_file=lambda name, path, purpose: self.files.append((name, path)),
            on_failed=lambda *failure: self.failures.append(failure),
        )

    def __call__(self, step: str, identity: str = ONE, buffers: tuple = (), **more: object) -> dict:
        """Send a message as the browser does; gives the answer, or an empty one."""
        before = len(self.sent)
        assert self.transfer.on_message({"transfer": step, "id": identity, **more}, [memoryview(b) for b in buffers])
        return self.sent[-1][0] if len(self.sent) > before else {}


@pytest.fixture
def channel(tmp_path):
    opened = Channel(tmp_path)
    yield opened
    opened.transfer.close()
    assert list(tmp_path.iterdir()) == []


def test_an_upload_arrives_in_pieces_and_each_is_acknowledged(channel, tmp_path):
    content = bytes(range(256)) * 10
    assert channel("begin", name="contacts.csv.gz", size=len(content)) == {"transfer": "ack", "id": ONE, "received": 0}
    for offset in range(0, len(content), 1000):
        assert channel.files == []
        answer = channel("piece", offset=offset, buffers=(content[offset : offset + 1000],))
        assert answer["received"] == min(offset + 1000, len(content))
    ((name, path),) = channel.files
    assert (name, path.read_bytes()) == ("contacts.csv.gz", content)
    assert path.name.endswith("-contacts.csv.gz")
    assert tmp_path in path.parents
    assert channel.failures == []
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_empty_file_is_finished_at_once(channel):
    assert channel("begin", name="empty.csv", size=0)["received"] == 0
    assert [(name, path.read_bytes()) for name, path in channel.files] == [("empty.csv", b"")]


def test_an_upload_may_be_begun_twice_since_the_first_message_or_its_answer_can_be_lost(channel):
    channel("begin", name="list.csv", size=6)
    channel("piece", offset=0, buffers=(b"abc",))
    assert channel("begin", name="list.csv", size=6)["received"] == 3
    channel("piece", offset=3, buffers=(b"def",))
    assert channel("begin", name="list.csv", size=6)["received"] == 6
    assert [path.read_bytes() for _, path in channel.files] == [b"abcdef"]
    assert "another size has begun already" in channel("begin", name="list.csv", size=7)["why"]


def test_two_uploads_do_not_mix(channel):
    channel("begin", name="a.csv", size=4)
    channel("begin", OTHER, name="a.csv", size=4)
    channel("piece", offset=0, buffers=(b"on",))
    channel("piece", OTHER, offset=0, buffers=(b"twoo",))
    channel("piece", offset=2, buffers=(b"ee",))
    assert [path.read_bytes() for _, path in channel.files] == [b"twoo", b"onee"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\ada\\list.csv", "list.csv"),
        ("/", "the file"),
        ("", "the file"),
        ("..", ".."),
        ("a\nb\x00c\u202e.csv", "a b c .csv"),
        ("\ud800.csv", ".csv"),
        ("x" * 500 + ".csv.gz", None),
        ("\U0001f600" * 200, None),
        (None, "None"),
        (["a", "/b"], "b']"),
    ],
)
def test_a_name_is_a_name_and_never_a_path(channel, name, shown):
    channel("begin", name=name, size=0)
    ((given, path),) = channel.files
    assert shown is None or given == shown
    assert given.isprintable()
    assert len(given) <= 60
    assert path.parent == channel.transfer.folder
    assert set(path.name) <= {*"-_."} | {c for c in path.name if c.isalnum()}


BAD_STEPS = {
    "too much": {"offset": 2, "buffers": (b"123456789",)},
    "no piece": {"offset": 2, "buffers": ()},
    "two pieces": {"offset": 2, "buffers": (b"1", b"2")},
    "an empty piece": {"offset": 2, "buffers": (b"",)},
    "a negative offset": {"offset": -1, "buffers": (b"x",)},
    "true": {"offset": True, "buffers": (b"x",)},
    "a text": {"offset": "2", "buffers": (b"x",)},
    "no offset": {"buffers": (b"x",)},
}


@pytest.mark.parametrize("why", BAD_STEPS)
def test_a_piece_that_does_not_fit_ends_the_upload_and_removes_it(channel, why):
    channel("begin", name="list.csv", size=10)
    channel("piece", offset=0, buffers=(b"ab",))
    assert channel("piece", **BAD_STEPS[why])["transfer"] == "refused"
    assert [name for name, _ in channel.failures] == ["list.csv"]
    assert list(channel.transfer.folder.iterdir()) == []
    assert channel("piece", offset=2, buffers=(b"cd",))["why"] == "this upload has ended; choose the file again"
    assert len(channel.failures) == 1, "pieces that were on the way are not reported again"
    assert channel.files == []


def test_a_piece_after_a_lost_one_is_answered_with_the_byte_that_is_missed(channel):
    channel("begin", name="list.csv", size=6)
    channel("piece", offset=0, buffers=(b"ab",))
    assert channel("piece", offset=4, attempt=3, buffers=(b"ef",)) == {
        "transfer": "ack",
        "id": ONE,
        "received": 2,
        "missed": 3,
    }
    assert channel("piece", offset=0, attempt=3, buffers=(b"ab",))["received"] == 2, "it came twice"
    channel("piece", offset=2, attempt=4, buffers=(b"cd",))
    channel("piece", offset=4, attempt=4, buffers=(b"ef",))
    assert channel.files[0][1].read_bytes() == b"abcdef"
    assert channel("piece", offset=4, attempt=4, buffers=(b"ef",))["received"] == 6, "complete by now"
    assert (len(channel.files), channel.failures) == (1, [])


def test_a_piece_may_not_be_huge(channel):
    channel("begin", name="list.csv", size=2 * LARGEST_PIECE)
    assert "bytes; this one has" in channel("piece", offset=0, buffers=(bytes(LARGEST_PIECE + 1),))["why"]


@pytest.mark.parametrize("size", [-1, 1.5, "10", None, True, 2**53, float("nan")])
def test_a_size_that_is_none_is_refused(channel, size):
    assert "must be a whole number of bytes" in channel("begin", name="list.csv", size=size)["why"]
    assert channel.failures[0][0] == "list.csv"


def test_a_file_larger_than_the_disk_is_refused_before_it_is_sent(channel):
    answer = channel("begin", name="list.csv", size=2**52)
    assert "the disk for temporary files has room for" in answer["why"]
    assert channel.failures == [("list.csv", answer["why"])]


def test_a_full_disk_ends_the_upload(channel):
    channel("begin", name="list.csv", size=10)

    class FullDisk:
        def write(self, piece: object) -> None:
            raise OSError(28, "No space left on device", "/somewhere/private")

        close = write

    upload = channel.transfer.uploads[ONE]
    upload.file.close()
    upload.file = FullDisk()
    upload.file.close = lambda: upload.file.write(b"")
    assert channel("piece", offset=0, buffers=(b"x",))["why"] == "No space left on device"
    assert channel.failures == [("list.csv", "No space left on device")]
    assert list(channel.transfer.folder.iterdir()) == []


def test_a_cancelled_upload_is_removed_without_an_error(channel):
    channel("begin", name="list.csv", size=10)
    channel("piece", offset=0, buffers=(b"x",))
    assert channel("cancel") == {}
    assert list(channel.transfer.folder.iterdir()) == []
    assert (channel.files, channel.failures) == ([], [])
    assert channel("cancel") == {}


def test_the_browser_learns_how_much_has_arrived(channel):
    channel("begin", name="list.csv", size=3)
    channel("piece", offset=0, buffers=(b"x",))
    assert channel("status", asked=7) == {"transfer": "ack", "id": ONE, "received": 1, "asked": 7}
    channel("piece", offset=1, buffers=(b"yz",))
    assert channel("status", asked=8)["received"] == 3, "also when the last answer was lost"
    assert len(channel.files) == 1
    assert channel("status", OTHER, asked=1)["transfer"] == "refused"


def test_uploads_of_pages_that_were_closed_do_not_pile_up(channel):
    for n in range(MAX_UPLOADS + 1):
        channel("begin", f"upload-{n}", name=f"{n}.csv", size=10)
        channel("piece", "upload-0", offset=n, buffers=(b"x",))
    assert channel.failures == [("1.csv", "the upload stopped, and others began since")]
    assert len(list(channel.transfer.folder.iterdir())) == MAX_UPLOADS


def test_other_messages_are_left_to_the_page(channel):
    for content in ({"action": "verify"}, None, "transfer", [], {"id": ONE}):
        assert channel.transfer.on_message(content) is False
    assert channel.sent == []


@pytest.mark.parametrize("identity", [None, 5, "", "short", "../../etc/passwd", "x" * 41, {"a": 1}])
def test_an_id_must_be_one(channel, identity):
    assert "id of a transfer must be" in channel("begin", identity, name="a", size=0)["why"]
    assert channel.files == []


def test_an_unknown_step_is_refused(channel):
    assert "'burn' is not a step of a transfer; there are begin, piece" in channel("burn")["why"]


def download(channel: Channel, identity: str, size: int, part: int = 1000) -> bytes:
    """All parts of an offer, the last first."""
    parts = {}
    for offset in reversed(range(0, max(size, 1), part)):
        answer = channel("read", file=identity, offset=offset, size=part)
        assert (answer["transfer"], answer["offset"], answer["size"]) == ("part", offset, size)
        parts[offset] = bytes(channel.sent[-1][1][0])
    return b"".join(parts[offset] for offset in sorted(parts))


@pytest.mark.parametrize("content", [b"", b"x", bytes(range(256)) * 10])
@pytest.mark.parametrize("kind", ["bytes", "file"])
def test_an_offer_is_read_in_parts(channel, content, kind):
    source = content
    if kind == "file":
        source = channel.transfer.folder / "made.csv"
        source.write_bytes(content)
    identity = channel.transfer.offer("made.csv", source)
    assert download(channel, identity, len(content)) == content
    assert channel("done", file=identity) == {}
    assert list(channel.transfer.folder.iterdir()) == [], "what was made for the download is removed"
    assert "not offered any more" in channel("read", file=identity, offset=0, size=10)["why"]


def test_a_user_s_own_file_is_not_removed(channel, tmp_path_factory):
    own = tmp_path_factory.mktemp("own") / "list.csv"
    own.write_bytes(b"abc")
    identity = channel.transfer.offer("list.csv", own)
    channel("done", file=identity)
    assert own.read_bytes() == b"abc"


def test_a_file_that_changes_while_it_is_read_is_an_error(channel):
    made = channel.transfer.folder / "made.csv"
    made.write_bytes(b"abc")
    identity = channel.transfer.offer("made.csv", str(made))
    channel("read", file=identity, offset=0, size=2)
    made.write_bytes(b"abcdef")
    assert "was changed while it was downloaded" in channel("read", file=identity, offset=2, size=2)["why"]
    made.unlink()
    assert channel("read", file=identity, offset=2, size=2)["why"] == "No such file or directory"
    assert [name for name, _ in channel.failures] == ["made.csv"] * 2


@pytest.mark.parametrize("wrong", [{"offset": 4}, {"offset": -1}, {"size": LARGEST_PIECE + 1}, {"size": None}])
def test_a_part_beyond_the_offer_is_refused(channel, wrong):
    identity = channel.transfer.offer("made.csv", b"abc")
    assert channel("read", **{"file": identity, "offset": 0, "size": 3} | wrong)["transfer"] == "refused"


def test_offers_do_not_pile_up(channel):
    made = channel.transfer.folder / "made.csv"
    made.write_bytes(b"abc")
    first = channel.transfer.offer("made.csv", made)
    for _ in range(MAX_OFFERS):
        channel.transfer.offer("more.csv", b"")
    assert len(channel.transfer.offers) == MAX_OFFERS
    assert first not in channel.transfer.offers
    assert not made.exists()


def test_a_missing_file_cannot_be_offered(channel, tmp_path_factory):
    missing = tmp_path_factory.mktemp("empty") / "missing.csv"
    with pytest.raises(InputError, match=r"missing\.csv: no such file"):
        channel.transfer.offer("list.csv", missing)


def test_files_are_gone_when_the_process_ends(tmp_path):
    code = f"""
from mailverdict.widgets.transfer import FileTransfer
transfer = FileTransfer(lambda *message: None, {str(tmp_path)!r})
transfer.on_message({{"transfer": "begin", "id": "aaaaaaaa", "name": "a.csv", "size": 10}})
print(len(list(transfer.folder.iterdir())))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "1\n"), ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_script_comes_with_the_package():
    script = Path(module.__file__).with_name("static") / "transfer.js"
    assert "export { createTransfer };" in script.read_text(encoding="utf-8")
