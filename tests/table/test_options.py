"""The shared keyword arguments: one source for signatures, defaults, completion and documentation."""

from __future__ import annotations

import inspect

import pandas as pd
import pytest
from numpydoc.docscrape import FunctionDoc

import mailverdict as mv
import mailverdict.dask
import mailverdict.spark
from mailverdict import SettingsError
from mailverdict.cli.tables import plan, verify
from mailverdict.table.options import DEFAULTS, VerifyOptions
from tests.doubles.tables import each_row

SHARING = [
    mv.averify,
    mv.start,
    mv.plan,
    mailverdict.dask.verify,
    mailverdict.dask.plan,
    mailverdict.spark.verify,
    mailverdict.spark.plan,
]
names = [f"{function.__module__}.{function.__qualname__}" for function in SHARING]


def keyword_arguments(function):
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}


def test_names_and_defaults_are_the_same_in_the_same_order():
    assert set(DEFAULTS) == set(VerifyOptions.__annotations__)


def test_verify_shows_all_arguments_with_their_defaults():
    assert keyword_arguments(mv.verify) == DEFAULTS


@each_row("function", SHARING, ids=names)
def test_the_others_refer_to_verify(function):
    documented = {each.name: " ".join(each.desc) for each in FunctionDoc(function)["Parameters"]}
    (options,) = [text for name, text in documented.items() if "options" in name]
    assert "verify`" in options


def test_verify_documents_every_argument_once():
    documented = [each.name for each in FunctionDoc(mv.verify)["Parameters"]]
    assert documented == ["data", "column", *DEFAULTS, "**unknown"]


@each_row("function", [mv.verify, mv.start, mv.plan])
def test_an_unknown_argument_is_named(function):
    with pytest.raises(
        SettingsError,
        match=r"^\w+ has no argument 'validationtype' \(did you mean 'validation_type'\?\)$",
    ):
        function(["ada@example.org"], validationtype="regex")


def test_notebooks_complete_arguments():
    ipython = pytest.importorskip("IPython.core.completer")
    completer = ipython.IPCompleter(namespace={"mv": mv, "df": pd.DataFrame({"email": []})})
    completer.use_jedi = False
    with ipython.provisionalcompleter():
        arguments, methods = (
            [each.text for each in completer.completions(text, len(text))]
            for text in ("mv.verify(df, 'email', val", "df.mailverdict.")
        )
    assert "validation_type=" in arguments
    assert methods == [f".{name}" for name in dir(pd.DataFrame({"email": []}).mailverdict)]


@each_row("command", [verify, plan])
def test_the_command_line_has_the_same_defaults(command):
    """Repeated values are one text on the command line, progress is --quiet, and cells are repaired by default."""
    shared = {
        name: default
        for name, default in keyword_arguments_of_command(command).items()
        if name in DEFAULTS
    }
    assert {"validation_type", "limit", "journal", "max_age", "offline"} <= set(shared)
    expected = DEFAULTS | {"refresh": "", "clean": True}
    assert shared == {name: expected[name] for name in shared}


def keyword_arguments_of_command(command):
    return {each.name: each.default for each in inspect.signature(command).parameters.values()}
