"""From arguments to an execution: what is checked, what is the default, what is opened."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.errors import SettingsError
from mailverdict.model.words import ValidationType
from mailverdict.runs.options import default_journal, open_execution
from mailverdict.table.options import check_options
from tests.doubles.scripted_backend import ScriptedBackend
from tests.doubles.tables import each_row


def checked(**given):
    """Options with the defaults of `verify` for those that are not given."""
    return check_options("verify", given)


def test_the_defaults_ask_the_dns_and_keep_no_journal():
    options = checked()
    assert options.validation_type is ValidationType.MX
    assert isinstance(options.backend, mv.LocalBackend)
    assert options.journal is None
    assert (options.settings.max_age, options.settings.limit, options.settings.on_quota) == (
        30 * 86_400,
        None,
        "stop",
    )
    assert options.owns_backend


@each_row("value", ["regex", "mx", "mx_blacklist", "smtp", ValidationType.SMTP])
def test_every_validation_type_is_accepted(value):
    assert checked(validation_type=value, journal=None).validation_type == value


@each_row("value", ["", "MX", None, 1, ["mx"], "email"])
def test_another_validation_type_is_refused_with_those_there_are(value):
    with pytest.raises(SettingsError, match="give one of regex, mx, mx_blacklist, smtp"):
        checked(validation_type=value)


@each_row(
    ("given", "kind", "wanted"),
    [
        ("auto", "regex", None),
        ("auto", "mx", None),
        ("auto", "smtp", "default"),
        ("x.db", "mx", "x.db"),
        (Path("x.db"), "smtp", "x.db"),
        ("x.db", "regex", None),
        (None, "smtp", None),
    ],
)
def test_where_the_journal_is(given, kind, wanted):
    found = checked(validation_type=kind, journal=given).journal
    assert found == (default_journal() if wanted == "default" else wanted and Path(wanted))


def test_the_default_journal_is_one_file_of_the_users():
    assert default_journal().parts[-2:] == ("mailverdict", "journal.db")


@each_row(
    ("value", "seconds"),
    [("12h", 43_200), (90, 90), (1.5, 1.5), (timedelta(days=2), 172_800), ("0", 0)],
)
def test_a_duration_may_have_several_forms(value, seconds):
    assert checked(max_age=value).settings.max_age == seconds


@each_row(("value", "limit"), [(None, None), (0, 0), (7, 7), (np.int64(7), 7)])
def test_a_limit_may_be_a_number_or_none(value, limit):
    assert checked(limit=value).settings.limit == limit


@each_row("value", ["unknown", {"unknown"}, ["unknown"], ("unknown",), (v for v in ["unknown"])])
def test_verdicts_to_ask_again_may_be_one_or_several(value):
    assert checked(refresh=value).settings.refresh == {"unknown"}


def test_a_url_is_a_service_with_a_journal():
    options = checked(backend="http://127.0.0.1:1")
    assert options.backend.source == "remote"
    assert options.journal == default_journal()
    assert options.owns_backend


def test_a_url_that_cannot_work_is_named_as_the_caller_gave_it():
    with pytest.raises(SettingsError, match=r"^backend=.ftp://verify\.example"):
        checked(backend="ftp://verify.example")


def test_the_callers_own_backend_stays_the_callers():
    backend = ScriptedBackend()
    options = checked(backend=backend)
    assert options.backend is backend
    assert not options.owns_backend


def execution_of(**options):
    return open_execution(pa.array(["a@example.org"]), checked(**{"journal": None, **options}))


def test_a_service_never_sees_the_malformed_and_dead_domains_only_on_request():
    assert execution_of(backend=ScriptedBackend()).screen.with_dns is False
    assert execution_of(backend=ScriptedBackend(), screen="mx").screen.with_dns is True


def test_offline_looks_nothing_up_whatever_is_asked():
    assert (
        execution_of(backend=ScriptedBackend(), screen="mx", offline=True).screen.with_dns is False
    )
    backend = mv.LocalBackend()
    assert execution_of(backend=backend, offline=True).screen.backend is backend
    assert execution_of(backend=backend).screen is None


def test_a_journal_is_opened_and_closed_with_the_run(tmp_path):
    execution = execution_of(backend=ScriptedBackend(), journal=tmp_path / "new" / "journal.db")
    assert execution.journal.path == tmp_path / "new" / "journal.db"
    execution.journal.close()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_the_default_folder_of_journals_is_private(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "mailverdict.runs.options.default_journal", lambda: tmp_path / "data" / "journal.db"
    )
    execution_of(backend=mv.RemoteBackend("http://127.0.0.1:1"), journal="auto").journal.close()
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
