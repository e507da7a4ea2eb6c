"""Errors and messages where people read them: in IPython and Jupyter."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell

import mailverdict as mv

MISTAKES = {
    "a mistyped column": (
        'mv.verify(df, "emial")',
        "ColumnError: no column 'emial' (did you mean 'email'?)",
    ),
    "a mistyped option": (
        'mv.verify(df, "email", colums="short")',
        "has no argument 'colums' (did you mean 'columns'?)",
    ),
    "a wrong value": (
        'mv.verify(df, "email", validation_type="mail")',
        "SettingsError: validation_type='mail'",
    ),
    "through an accessor": ('df.mailverdict.verify("emial")', "ColumnError: no column 'emial'"),
}
SETUP = 'import pandas as pd, mailverdict as mv\ndf = pd.DataFrame({"email": ["ada@example.org"]})'


@pytest.fixture(scope="module")
def shell():
    shell = InteractiveShell()
    shell.colors = "nocolor"
    assert shell.run_cell(SETUP).success
    return shell


@pytest.mark.parametrize("name", MISTAKES)
def test_a_notebook_shows_the_users_line_and_the_message(shell, capsys, name):
    code, said = MISTAKES[name]
    shell.run_cell(code)
    shown = capsys.readouterr().out
    assert said in shown
    assert code in shown
    assert "mailverdict/" not in shown
    assert "IPython/core" not in shown
    assert len(shown.splitlines()) <= 6


@pytest.mark.slow
def test_another_error_keeps_its_frames(shell, capsys):
    shell.run_cell("mv.verify((1 / 0 for _ in [1]), validation_type='regex')")
    shown = capsys.readouterr().out
    assert "ZeroDivisionError" in shown
    assert "mailverdict/" in shown


def test_a_message_about_the_data_is_printed_in_a_notebook_and_a_warning_elsewhere(
    monkeypatch, capsys
):
    cells = ["ada@example.org; bo@example.org"]
    with pytest.warns(UserWarning, match="1 row holds several addresses"):
        mv.verify(cells, validation_type="regex")
    monkeypatch.setattr("mailverdict.table.notices.is_notebook", lambda: True)
    mv.verify(cells, validation_type="regex", progress=False)
    assert capsys.readouterr().out.startswith("1 row holds several addresses")
