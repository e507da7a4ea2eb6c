"""Errors where people read them: in IPython and Jupyter without the frames of this package."""

from __future__ import annotations

import pytest
from IPython.core.interactiveshell import InteractiveShell

MISTAKES = {
    "a mistyped column": ('mv.verify(df, "emial")', "ColumnError: no column 'emial' (did you mean 'email'?)"),
    "a mistyped option": (
        'mv.verify(df, "email", colums="short")',
        "has no argument 'colums' (did you mean 'columns'?)",
    ),
    "a wrong value": ('mv.verify(df, "email", validation_type="mail")', "SettingsError: validation_type='mail'"),
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
    assert len(shown.splitlines()) <= 6


def test_another_error_keeps_its_frames(shell, capsys):
    shell.run_cell("mv.verify((1 / 0 for _ in [1]), validation_type='regex')")
    shown = capsys.readouterr().out
    assert "ZeroDivisionError" in shown
    assert "mailverdict/" in shown
