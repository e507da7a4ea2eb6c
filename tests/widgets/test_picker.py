"""Choosing a file."""

import gzip

import pytest

from mailverdict.errors import InputError
from mailverdict.widgets import Audit
from tests.widgets.conftest import press, ready, said
from tests.widgets.test_source import upload


def test_a_file_is_uploaded_and_another_opened(tmp_path):
    audit = Audit(validation_type="regex")
    audit._panel.picker.upload.value = (upload("a.csv", b"mail\nada@example.org\n"),)
    audit.wait(30)
    assert audit._panel.source.name == "a.csv"
    (tmp_path / "b.csv").write_text("post\nbob@example.org\n")
    audit._panel.picker.path.value = str(tmp_path / "b.csv")
    audit.wait(30)
    assert audit._panel.source.name == "b.csv"
    assert audit._panel.form.column.label == "post"


def test_one_way_of_opening_a_path_is_enough(tmp_path):
    audit, read = Audit(validation_type="regex"), []
    (tmp_path / "b.csv").write_text("post\nbob@example.org\n")
    audit._panel.picker.on_source = lambda source: read.append(source.name)
    audit._panel.picker.path.value = str(tmp_path / "b.csv")
    press(audit._panel.picker.open)  # the box was left by clicking on the button
    assert read == ["b.csv"]


def test_a_guessed_encoding_is_shown_and_can_be_changed():
    audit = Audit(validation_type="regex")
    audit._panel.picker.upload.value = (upload("old.csv", "who,mail\nJürgen,a@b.example\n".encode("cp1252")),)
    audit.wait(30)
    assert audit._panel.source.frame["who"].tolist() == ["Jürgen"]
    assert "encoding: cp1252 (guessed)" in audit._panel.picker.taken.value
    assert audit._panel.picker.encoding.layout.display is None
    audit._panel.picker.encoding.value = "cp1251"
    audit.wait(30)
    assert audit._panel.source.frame["who"].tolist() == ["Jьrgen"]
    audit._panel.picker.upload.value = (upload("new.csv", "who,mail\nJürgen,a@b.example\n".encode()),)
    assert audit._panel.source.frame["who"].tolist() == ["Jürgen"], "the encoding was the last file's"
    assert audit._panel.picker.encoding.layout.display == "none"
    audit.wait(30)


def test_a_bad_upload_keeps_the_loaded_table_and_offers_encodings(contacts):
    audit = ready(contacts, validation_type="regex")
    audit._panel.picker.upload.value = (upload("old.csv", b"PK\x03\x04 not a table"),)
    assert "old.csv" in said(audit)
    assert "--" not in said(audit), "there is no command line here"
    assert audit._panel.source.frame is contacts
    assert audit._panel.picker.encoding.layout.display is None


def test_a_compressed_file_is_uploaded():
    audit = Audit(validation_type="regex")
    audit._panel.picker.upload.value = (upload("a.csv.gz", gzip.compress(b"mail\nada@example.org\n")),)
    audit.wait(30)
    assert audit._panel.source.frame["mail"].tolist() == ["ada@example.org"]


def test_strangers_open_no_paths():
    audit = Audit(allow_paths=False)
    shown = [child for box in audit._panel.picker.box.children for child in getattr(box, "children", (box,))]
    assert audit._panel.picker.upload in shown
    assert audit._panel.picker.path not in shown
    assert audit._panel.picker.open not in shown


def test_a_path_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        Audit(tmp_path / "nowhere.csv")
