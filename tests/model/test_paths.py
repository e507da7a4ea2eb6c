"""Paths as users write them: `~` is the home directory, wherever a path is given."""

from pathlib import Path

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.errors import ColumnError
from mailverdict.files.readers import open_table
from mailverdict.files.writers import create_table
from mailverdict.model.paths import user_path
from mailverdict.runs.journal.journal import Journal

LIST = "email\nada@example.org\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "list.csv").write_text(LIST)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("~/list.csv", "{home}/list.csv"),
        (Path("~/list.csv"), "{home}/list.csv"),
        ("~", "{home}"),
        ("a/~/list.csv", "a/~/list.csv"),
        ("~nobody-has-this-name/list.csv", "~nobody-has-this-name/list.csv"),
    ],
)
def test_only_a_home_directory_at_the_beginning_is_replaced(home, given, path):
    assert user_path(given) == Path(path.format(home=home))


def test_tables_reports_lists_and_journals_are_found_in_the_home_directory(home):
    with open_table("~/list.csv") as table:
        assert table.columns == ("email",)
        with create_table("~/copy.csv") as writer:
            for piece in table.pieces():
                writer.write(piece)
    assert (home / "copy.csv").read_text() == LIST
    out = mv.verify(pd.DataFrame({"email": ["ada@example.org"]}), "email", validation_type="regex")
    out.to_csv(home / "earlier.csv", index=False)
    assert (
        mv.report(out, "email", earlier="~/earlier.csv").save("~/report.html")
        == home / "report.html"
    )
    assert mv.suppress(out, "email", "~/list.csv")["email_suppressed"].tolist() == [True]
    with pytest.raises(ColumnError, match=r"list\.csv"):  # found, and not a table of bounces
        mv.read_bounces("~/list.csv")
    with Journal("~/journal.db") as journal:
        journal.export("~/answers.parquet")
    assert (home / "answers.parquet").exists()
    assert not Path("~").exists()
