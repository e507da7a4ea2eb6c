"""The package as a whole: its names, what importing it costs, and what its documentation promises."""

from __future__ import annotations

import ast
import dataclasses
import enum
import importlib
import inspect
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from numpydoc.docscrape import FunctionDoc
from numpydoc.validate import validate

import mailverdict as mv
from tests.doubles.tables import assert_none_differ, each_row

SOURCE = Path(mv.__file__).parent
MODULES = sorted(
    ".".join(("mailverdict", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(
        ".__init__"
    )
    for path in SOURCE.rglob("*.py")
    if path.name != "__main__.py"
)
PUBLIC = [name for name in mv.__all__ if name not in ("errors", "__version__")]
HEAVY = {
    "httpx",
    "ipywidgets",
    "matplotlib",
    "dns",
    "starlette",
    "sqlalchemy",
    "typer",
    "tqdm",
    "sqlite3",
    "IPython",
    "polars",
}

# What numpydoc asks for and this project does not, with the reason.
NOT_ASKED = {
    "ES01": "a summary that says it all needs no extension",
    "SA01": "siblings are named in the text where they matter",
    "SS05": "takes nouns in the plural for verbs in the third person",
}
NOT_ASKED_OF = {
    "values": {"PR01": "fields of a dataclass or enum are its Attributes"},
    "errors": {"EX01": "an error is met, not made"},
    "methods": {"EX01": "the class has the example"},
    "one-liners": {"PR01": "named by its arguments", "RT01": "the sentence says what it gives"},
    "one line for many": {"PR04": "'a, b, c: as in another function' has no types of its own"},
    "shared options": {"PR01": "documented in verify", "PR02": "**options stands for all of them"},
}


def annotated_imports():
    """Public name and module, as type checkers see them."""
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    names = [(node.module, alias) for node in imports for alias in node.names]
    assert all(alias.name == alias.asname for _, alias in names)  # else it is not exported
    return {alias.name: module for module, alias in names}


class TestNames:
    def test_type_checkers_see_the_public_names(self):
        deprecated = {name: module for name, (module, _) in mv._DEPRECATED.items()}
        submodules = dict.fromkeys(mv._SUBMODULES)
        assert annotated_imports() == {**mv._MODULES, **deprecated, **submodules}
        assert {*mv._MODULES, "errors", "__version__"} == set(mv.__all__)
        assert len(mv.__all__) == len(set(mv.__all__))

    def test_every_name_is_there(self):
        assert [name for name in mv.__all__ if getattr(mv, name, None) is None] == []

    @pytest.mark.parametrize("name", mv._DEPRECATED)
    def test_a_deprecated_name_works_and_warns_once_at_the_line_of_its_user(self, name):
        module, instead = mv._DEPRECATED[name]
        said = f"mailverdict.{name} is deprecated and will be removed: use {instead}"
        with pytest.warns(FutureWarning) as caught:
            thing = getattr(mv, name)
        assert thing is getattr(importlib.import_module(f"mailverdict.{module}"), name)
        assert [(str(each.message), each.filename) for each in caught] == [(said, __file__)]
        assert name not in {*dir(mv), *mv.__all__}

    @pytest.mark.parametrize("name", ["by_domain", "by_operator", "domains"])
    def test_a_deprecated_method_warns_too(self, name):
        with pytest.warns(FutureWarning, match=f"mailverdict.{name} is deprecated") as caught:
            getattr(OUT.mailverdict, name)
        assert [each.filename for each in caught] == [__file__]

    def test_what_is_to_be_used_in_place_of_a_deprecated_value_is_equal(self):
        from mailverdict.model.settings import LocalSettings
        from mailverdict.table.columns import STATUS_DTYPE, VERDICT_DTYPE

        assert mv.schema("pandas")["verdict"] == VERDICT_DTYPE
        assert mv.schema("pandas")["status"] == STATUS_DTYPE
        assert mv.LocalBackend(deadline="2min").settings == LocalSettings(deadline="2min")

    def test_class_names_are_unique(self):
        texts = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
        names = Counter(
            name for text in texts for name in re.findall(r"^ *class (\w+)", text, re.MULTILINE)
        )
        assert [name for name, count in names.items() if count > 1] == []

    def test_completion_offers_what_users_call_or_make(self):
        offered = dir(mv)
        assert set(offered) <= set(mv.__all__)
        assert {"verify", "lookup_domains", "errors", "Policy", "LocalBackend"} <= set(offered)
        assert not {"SettingsError", "Verdict", "PollSchedule", "domains"} & set(offered)

    def test_every_name_is_that_of_its_module(self):
        for name, module in mv._MODULES.items():
            assert getattr(importlib.import_module(f"mailverdict.{module}"), name) is getattr(
                mv, name
            )

    def test_submodules_are_attributes(self):
        for name in mv._SUBMODULES:
            assert inspect.ismodule(getattr(mv, name))

    def test_another_name_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="module 'mailverdict' has no attribute 'verfy'"):
            mv.verfy  # noqa: B018 - looking is the test

    def test_every_module_can_be_imported_and_has_what_it_offers(self):
        for module in map(importlib.import_module, MODULES):
            offered = getattr(module, "__all__", [])
            assert [each for each in offered if not hasattr(module, each)] == []
            assert len(offered) == len(set(offered))


def test_the_package_says_that_it_is_typed():
    assert (SOURCE / "py.typed").is_file()


def modules_after(*statements):
    """Modules that a fresh interpreter has loaded after each of some statements."""
    code = "; ".join(
        ["import sys", *(f"{statement}; print(*sorted(sys.modules))" for statement in statements)]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [set(line.split()) for line in done.stdout.splitlines()]


class TestWeight:
    def test_working_on_syntax_alone_loads_no_network_and_no_rules_for_replies(self):
        imported, checked, verified = modules_after(
            "import mailverdict as mv",
            "mv.check('ada@example.org', validation_type='regex')",
            "mv.verify(['ada@example.org'], validation_type='regex')",
        )
        assert imported & HEAVY == set()
        assert checked & HEAVY == set()
        assert verified & (HEAVY - {"tqdm"}) == set()
        assert "mailverdict.checks.smtp.classify.languages" not in checked

    @pytest.mark.slow
    def test_the_command_line_loads_no_service_and_no_client(self):
        (loaded,) = modules_after("import mailverdict.cli")
        assert loaded & {"httpx", "starlette", "sqlalchemy", "uvicorn"} == set()


def exemptions(name, thing):
    """Codes that are not asked of this thing."""
    codes = set(NOT_ASKED)
    if dataclasses.is_dataclass(thing) or (inspect.isclass(thing) and issubclass(thing, enum.Enum)):
        codes |= set(NOT_ASKED_OF["values"])
    if inspect.isclass(thing) and issubclass(thing, Exception):
        codes |= set(NOT_ASKED_OF["errors"])
    if "." in name:
        codes |= set(NOT_ASKED_OF["methods"])
        if len((thing.__doc__ or "").strip().splitlines()) == 1:
            codes |= set(NOT_ASKED_OF["one-liners"])
    if "**options" in (thing.__doc__ or ""):
        codes |= set(NOT_ASKED_OF["shared options"])
    if refers_to_another(thing):
        codes |= set(NOT_ASKED_OF["one line for many"])
    return codes


def refers_to_another(thing):
    parameters = FunctionDoc(thing)["Parameters"] if inspect.isfunction(thing) else []
    return any(
        "," in each.name and each.desc and each.desc[0].startswith("As in") for each in parameters
    )


def documented_things():
    """Every public name, and every method of a class among them."""
    for name in PUBLIC:
        thing = getattr(mv, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield name, thing
        if inspect.isclass(thing):
            for attribute, value in vars(thing).items():
                plain = getattr(value, "fget", None) or getattr(value, "__func__", value)
                if not attribute.startswith("_") and inspect.isfunction(plain):
                    yield f"{name}.{attribute}", plain


DOCUMENTED = dict(documented_things())


def test_public_names_are_documented():
    found = [
        (name, *each) for name, thing in DOCUMENTED.items() for each in what_is_missing(name, thing)
    ]
    assert_none_differ(found)


def what_is_missing(name, thing):
    """What numpydoc finds in the documentation of a name, by code and message."""
    owner, _, attribute = name.partition(".")
    home = f"mailverdict.{mv._MODULES[owner]}.{owner}"
    found = validate(f"{home}.{attribute}" if attribute else home)["errors"]
    # Its arguments are the fields of LocalSettings, by signature.
    if owner == "LocalBackend" and not attribute:
        found = [each for each in found if each[0] not in ("PR01", "PR02")]
    return [each for each in found if each[0] not in exemptions(name, thing)]


@each_row("error", [getattr(mv, n) for n in PUBLIC if n.endswith(("Error", "Exceeded", "Limited"))])
def test_errors_are_ours_and_drawn_in_the_tree(error):
    assert issubclass(error, mv.MailVerdictError)
    assert error.__name__ in mv.errors.__doc__.split()
    if issubclass(error, mv.BackendError):
        assert error("x").partial is None


def test_a_column_error_reads_like_a_sentence():
    assert str(mv.ColumnError("no column 'x'")) == "no column 'x'"
    assert str(mv.ColumnError()) == ""
    with pytest.raises(KeyError):
        raise mv.ColumnError("x")


def test_a_missing_extra_says_what_to_install():
    error = mv.MissingExtraError("reading XLSX", "excel")
    assert (
        str(error) == "reading XLSX needs an optional dependency: pip install 'mailverdict[excel]'"
    )
    assert isinstance(error, ImportError)


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert mv.__version__ == version("mailverdict")


OUT = mv.verify(pd.DataFrame({"email": ["ada@example.org"]}), "email", validation_type="regex")
SHOWN = {
    "Policy": (mv.Policy("mine"), "action_of drop name retry review review_suggestions send"),
    "Split": (mv.split(OUT, "email"), "counts drop retry review send unchecked"),
    "Report": (mv.report(OUT, "email"), "save to_html"),
    "df.mailverdict": (
        OUT.mailverdict,
        "breakdown clean contradicted decide diff duplicates estimate explode lookup_domains outcomes plan report split start summary"
        " suppress verify",
    ),
    "s.mailverdict": (
        OUT["email"].mailverdict,
        "clean domain duplicates estimate is_well_formed local plan start suppress verify",
    ),
}


@each_row(("value", "names"), SHOWN.values(), ids=SHOWN)
def test_a_value_shows_its_documented_names_and_nothing_else(value, names):
    assert [name for name in dir(value) if not name.startswith("_")] == names.split()
