"""Files in pieces, without a browser: every message of `connection.js`, and those that it never sends."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from mailverdict.widgets.transfer import MAX_OFFERS, MAX_UPLOADS, PIECE, FileTransfer

ONE, OTHER = "aaaaaaaa", "bbbbbbbb"


class Channel:
    """A transfer and all that it sent and received."""

    def __init__(self, folder: Path) -> None:
        self.sent: list[tuple[dict, list]] = []
        self.files: list[tuple[Path, str, str]] = []
        self.folder = folder
        self.transfer = FileTransfer(
            lambda content, buffers: self.sent.append((content, buffers)),
            lambda: folder,
            lambda *file: self.files.append(file),
        )

    def __call__(
        self, step: str, identity: object = ONE, buffers: tuple = (), **more: object
    ) -> dict:
        """Send a message as the browser does; gives the answer, or an empty one."""
        before = len(self.sent)
        assert self.transfer.on_message(
            {"file": step, "id": identity, **more}, [memoryview(b) for b in buffers]
        )
        return self.sent[-1][0] if len(self.sent) > before else {}

    def put(
        self, offset: object, piece: bytes = b"", identity: object = ONE, **more: object
    ) -> dict:
        """A piece of a file of ten bytes."""
        return self(
            "put", identity, (piece,), **{"name": "list.csv", "size": 10, "offset": offset} | more
        )


@pytest.fixture
def channel(tmp_path):
    return Channel(tmp_path)


def test_an_upload_arrives_in_pieces_and_each_is_answered_with_what_is_next(channel, tmp_path):
    content = bytes(range(256)) * 10
    about = {"name": "contacts.csv.gz", "size": len(content), "purpose": "list"}
    for offset in range(0, len(content), 1000):
        assert channel.files == []
        piece = content[offset : offset + 1000]
        assert channel.put(offset, piece, **about) == {
            "file": "put",
            "id": ONE,
            "received": offset + len(piece),
        }
    ((path, name, purpose),) = channel.files
    assert (name, purpose, path.read_bytes()) == ("contacts.csv.gz", "list", content)
    assert path.name.endswith("-contacts.csv.gz")
    assert tmp_path in path.parents
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert channel("drop") == {}
    assert path.read_bytes() == content, "it belongs to the audit now"


def test_a_message_that_comes_twice_does_no_harm(channel):
    pieces = {0: b"abc", 3: b"defg", 7: b"hij"}
    for offset, piece in pieces.items():
        assert [channel.put(offset, piece)["received"] for _ in range(2)] == [
            offset + len(piece)
        ] * 2
    assert channel.put(3, b"defg")["received"] == 10
    assert [path.read_bytes() for path, _, _ in channel.files] == [b"abcdefghij"]


def test_an_empty_file_is_complete_at_once(channel):
    assert [channel.put(0, b"", name="empty.csv", size=0)["received"] for _ in range(2)] == [0, 0]
    assert [(name, path.read_bytes()) for path, name, _ in channel.files] == [("empty.csv", b"")]


def test_a_piece_after_one_that_was_lost_is_answered_with_the_byte_that_is_missed(channel):
    channel.put(0, b"ab")
    assert channel.put(4, b"ef")["received"] == 2
    channel.put(2, b"cdefghij")
    assert channel.files[0][0].read_bytes() == b"abcdefghij"


def test_two_uploads_do_not_mix(channel):
    channel.put(0, b"on", size=4)
    channel.put(0, b"twoo", OTHER, size=4)
    channel.put(2, b"ee", size=4)
    assert [path.read_bytes() for path, _, _ in channel.files] == [b"twoo", b"onee"]


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
    channel.put(0, b"", name=name, size=0)
    ((path, given, _),) = channel.files
    assert shown is None or given == shown
    assert given.isprintable()
    assert len(given) <= 60
    assert path.parent == channel.folder
    assert set(path.name) <= {*"-_."} | {c for c in path.name if c.isalnum()}


BAD_PIECES = {
    "too much": {"offset": 2, "buffers": (b"123456789",)},
    "no piece": {"offset": 2, "buffers": ()},
    "two pieces": {"offset": 2, "buffers": (b"1", b"2")},
    "a huge piece": {"offset": 2, "buffers": (bytes(PIECE + 1),)},
    "a negative offset": {"offset": -1, "buffers": (b"x",)},
    "true": {"offset": True, "buffers": (b"x",)},
    "a text": {"offset": "2", "buffers": (b"x",)},
    "no offset": {"buffers": (b"x",)},
}


@pytest.mark.parametrize("why", BAD_PIECES)
def test_a_piece_that_does_not_fit_ends_the_upload_and_removes_it(channel, why):
    channel.put(0, b"ab")
    assert channel("put", **BAD_PIECES[why])["file"] == "failed"
    assert list(channel.folder.iterdir()) == []
    assert channel.put(2, b"cd")["why"] == "this upload has ended; choose the file again"
    assert channel.files == []


@pytest.mark.parametrize("size", [-1, 1.5, "10", None, True, 2**53, float("nan")])
def test_a_size_that_is_none_is_refused(channel, size):
    assert "must be a whole number of bytes" in channel.put(0, size=size)["why"]


def test_a_file_larger_than_the_disk_is_refused_before_it_is_sent(channel):
    assert "the disk for temporary files has room for" in channel.put(0, b"x", size=2**52)["why"]


def test_a_file_that_cannot_be_written_ends_the_upload_without_its_path(channel):
    channel.put(0, b"ab")
    (path,) = channel.folder.iterdir()
    path.unlink()
    path.mkdir()
    assert channel.transfer.uploads[ONE].path == path
    assert str(path) not in channel.put(2, b"cd")["why"]
    path.rmdir()


def test_a_cancelled_upload_is_removed_without_an_error(channel):
    channel.put(0, b"ab")
    assert channel("drop") == {}
    assert list(channel.folder.iterdir()) == []
    assert (channel.files, channel("drop")) == ([], {})


def test_uploads_of_pages_that_were_closed_do_not_pile_up(channel):
    for n in range(MAX_UPLOADS + 1):
        channel.put(0, b"x", f"upload-{n}", name=f"{n}.csv")
    assert len(list(channel.folder.iterdir())) == MAX_UPLOADS
    assert channel.put(1, b"y", "upload-0")["why"] == "this upload has ended; choose the file again"


def test_other_messages_are_left_to_the_page(channel):
    for content in ({"action": "verify"}, None, "file", [], {"id": ONE}):
        assert channel.transfer.on_message(content) is False
    assert channel.sent == []


@pytest.mark.parametrize("identity", [None, 5, "", "short", "../../etc/passwd", "x" * 41, {"a": 1}])
def test_an_id_must_be_one(channel, identity):
    assert "id of a file must be" in channel.put(0, b"x", identity)["why"]
    assert channel.files == []


def download(channel: Channel, identity: str) -> bytes:
    """All pieces of an offer."""
    content = b""
    while True:
        answer = channel("get", identity, offset=len(content))
        assert (answer["file"], answer["offset"]) == ("get", len(content))
        content += bytes(channel.sent[-1][1][0])
        if len(content) >= answer["size"]:
            return content


@pytest.mark.parametrize("content", [b"", b"x", bytes(range(256)) * 5_000])
def test_an_offer_is_read_in_pieces_and_then_removed(channel, content):
    made = channel.folder / "made.csv"
    made.write_bytes(content)
    identity = channel.transfer.offer(made)
    assert download(channel, identity) == content
    assert channel("drop", identity) == {}
    assert list(channel.folder.iterdir()) == []
    assert "not offered any more" in channel("get", identity, offset=0)["why"]


@pytest.mark.parametrize("offset", [-1, None, "0", True, 2**53])
def test_a_piece_beyond_the_numbers_is_refused(channel, offset):
    made = channel.folder / "made.csv"
    made.write_bytes(b"abc")
    assert channel("get", channel.transfer.offer(made), offset=offset)["file"] == "failed"


def test_an_offer_whose_file_is_gone_is_an_error_without_its_path(channel):
    made = channel.folder / "made.csv"
    made.write_bytes(b"abc")
    identity = channel.transfer.offer(made)
    made.unlink()
    assert channel("get", identity, offset=0)["why"] == "No such file or directory"


def test_offers_do_not_pile_up(channel):
    for n in range(MAX_OFFERS + 1):
        made = channel.folder / f"{n}.csv"
        made.write_bytes(b"abc")
        channel.transfer.offer(made)
    assert len(channel.transfer.offers) == MAX_OFFERS
    assert not (channel.folder / "0.csv").exists()


@pytest.mark.slow
def test_files_are_gone_when_the_process_ends(tmp_path):
    code = f"""
from mailverdict.widgets.state import AuditState
from mailverdict.widgets.transfer import FileTransfer
state = AuditState({{}}, "regex", folder={str(tmp_path)!r})
transfer = FileTransfer(lambda *message: None, lambda: state.folder, print)
message = {{"file": "put", "id": "aaaaaaaa", "name": "a.csv", "size": 10, "offset": 0}}
transfer.on_message(message, [b"x"])
print(oct(state.folder.stat().st_mode)[-3:], len(list(state.folder.iterdir())))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "700 1\n"), ended.stderr
    assert list(tmp_path.iterdir()) == []
