"""`domains`: one row for each distinct domain, whatever the kind of frame."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.errors import ColumnError, ResolverError, SettingsError
from mailverdict.model.settings import LocalSettings
from mailverdict.sandbox.dns_table import DnsFault, DomainRecords

EMAILS = [
    "bo@gone.example",
    "ada@gmail.com",
    "eve@GMAIL.com",
    "nobody",
    None,
    7,
    "x@spamtrap.example",
]
ZONES = {
    "null.example": DomainRecords({"MX": ("0 .",)}),
    "empty.example": DomainRecords({"TXT": ("x",)}),
    "bare.example": DomainRecords({"A": ("127.0.0.5",)}),
    "broken.example": DomainRecords(faults={"*": DnsFault.SERVFAIL}),
    "two.example": DomainRecords({"MX": ("20 b.two.example", "10 a.two.example")}),
}


@pytest.fixture(scope="module")
def world():
    with mv.sandbox.World(ZONES) as world:
        yield world


def test_each_outcome_has_its_word(world):
    emails = [f"ada@{name}" for name in ZONES]
    found = mv.lookup_domains(emails, backend=world.backend).set_index("domain")
    assert found["outcome"].astype(str).to_dict() == {
        "null.example": "null_mx",
        "empty.example": "nodata",
        "bare.example": "implicit_mx",
        "broken.example": "undetermined",
        "two.example": "mx",
    }
    assert found.loc["two.example", "mx_records"] == "a.two.example;b.two.example"
    assert found.loc["bare.example", "mx_records"] == "bare.example"
    assert (
        found.loc["null.example", "message"] == "the domain says that it accepts no mail (RFC 7505)"
    )
    assert found.loc[["two.example", "bare.example"], "message"].isna().all()


def test_rows_are_counted_and_sorted(world):
    found = mv.lookup_domains(pd.DataFrame({"email": EMAILS}), "email", backend=world.backend)
    assert found["domain"].tolist()[0] == "gmail.com"
    assert found["rows"].tolist() == [2, 1, 1]
    assert found["free"].tolist() == [True, False, False]


def test_evidence_is_that_of_verify(world):
    frame = pd.DataFrame({"email": EMAILS})
    out = mv.verify(frame, "email", backend=world.backend, columns="all", progress=False)
    found = mv.lookup_domains(frame, "email", backend=world.backend).set_index("domain")
    gmail = out.loc[out["email"].eq("ada@gmail.com")].iloc[0]
    assert found.loc["gmail.com", "mx_records"] == gmail["email_mx_records"]
    assert found.loc["gone.example", "message"] == out["email_error_message"].iloc[0]


@pytest.mark.parametrize("emails", [[], [None, "nobody"]])
def test_dtypes_do_not_depend_on_the_rows(world, emails):
    full = mv.lookup_domains(["ada@gmail.com"], backend=world.backend)
    empty = mv.lookup_domains(emails, backend=world.backend)
    assert len(empty) == 0
    assert empty.dtypes.to_dict() == full.dtypes.to_dict()


def test_each_kind_of_frame_comes_back(world):
    wanted = mv.lookup_domains(EMAILS, backend=world.backend)["domain"].tolist()
    texts = [each if isinstance(each, str) else None for each in EMAILS]
    arrow = mv.lookup_domains(pa.table({"email": texts}), "email", backend=world.backend)
    assert isinstance(arrow, pa.Table)
    assert arrow["domain"].to_pylist() == wanted
    polars = mv.lookup_domains(pl.DataFrame({"email": texts}), "email", backend=world.backend)
    assert isinstance(polars, pl.DataFrame)
    assert polars["domain"].to_list() == wanted


def test_several_columns_and_repaired_cells_are_counted_together(world):
    frame = pd.DataFrame(
        {"a": ["Ada <ada@gmail.com>", None], "b": ["bo@gmail.com", "x@two.example"]}
    )
    found = mv.lookup_domains(frame, ["a", "b"], backend=world.backend, clean=True)
    assert found[["domain", "rows"]].to_numpy().tolist() == [["gmail.com", 2], ["two.example", 1]]


class TestWhatCannotWork:
    def test_a_service_is_refused(self):
        with pytest.raises(SettingsError, match="give a LocalBackend"):
            mv.lookup_domains(EMAILS, backend="http://127.0.0.1:9")

    def test_a_resolver_without_answers_is_named(self):
        silent = LocalSettings(resolver="127.0.0.1:9", dns_timeout=0.05)
        backend = mv.LocalBackend.from_settings(silent)
        with pytest.raises(ResolverError, match=r"127\.0\.0\.1:9"):
            mv.lookup_domains(["a@b.example"], backend=backend)

    def test_a_column_that_is_not_there(self, world):
        with pytest.raises(ColumnError, match="no column 'mail'"):
            mv.lookup_domains(pd.DataFrame({"email": EMAILS}), "mail", backend=world.backend)

    def test_a_flag_of_another_type(self, world):
        with pytest.raises(SettingsError, match="clean='yes'"):
            mv.lookup_domains(EMAILS, backend=world.backend, clean="yes")
