"""The sample files: full of every kind of mess, answered for by the sandbox, and shown by the demo."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from python_calamine import CalamineWorkbook

import mailverdict as mv
from mailverdict.checks.dns.names import normal_name
from mailverdict.files.readers import open_table
from mailverdict.sandbox.zones import sandbox_zones
from tests import ROOT
from tests.doubles.tables import each_row

SAMPLES = ROOT / "data" / "samples"
CSV, SEMICOLON, XLSX, PARQUET = (
    SAMPLES / name
    for name in (
        "crm_export.csv",
        "crm_export_semicolon.csv",
        "crm_export.xlsx",
        "crm_export.parquet",
    )
)
ROWS = 2_000
HEADER = "contact_id,first_name,last_name,company,country,email,billing_email,phone,created_at,newsletter,lifetime_value,notes,lead_source"
# Domains of well-formed addresses that have no records.
CLOSED = {
    *(
        "thornwick-cutlery.co.uk",
        "velograf-kurierdienst.de",
        "amberlight-voyages.fr",
        "pixelmoor-games.com",
    ),
    "dockside-reklame.se",
}
SLIPS = {
    *(
        "gmial.com",
        "gmail.con",
        "gamil.com",
        "gmai.com",
        "gmail.co",
        "gnail.com",
        "gmaill.com",
        "gmail.comm",
    ),
    *(
        "hotmial.com",
        "hotmail.con",
        "hotmal.com",
        "yaho.com",
        "yahooo.com",
        "outlok.com",
        "icluod.com",
        "web.dee",
    ),
    "gmx.dee",
}

# What a cell of the e-mail column looks like, how many there are at least, and why there should be any.
KINDS = (
    (r"^[^@\s<>;,]+@[^@\s<>;,]+\.[a-z]+$", 1400, "most of an export is fine"),
    (r"^\s+$", 5, "looks empty and is not"),
    (r"^(n/a|N/A)$", 1, "pandas takes it for missing, other readers do not"),
    (r"^(-|none|unknown|keine)$", 4, "placeholders in a mandatory field"),
    (r"^[ \t]+\S|\S[ \t]+$", 15, "blanks around"),
    ("\u00a0", 8, "no-break spaces from web pages"),
    ("[\u200b\u2060\ufeff\u00ad]", 8, "characters that cannot be seen"),
    (r"^[\w' .-]+ <\S+@\S+>$", 8, "a display name"),
    (r'^"[^"]+, [^"]+" <\S+@\S+>$', 2, "a display name with a comma, in quotes"),
    (r"^<\S+@\S+>$", 2, "angle brackets alone"),
    (r"^(mailto|MAILTO):", 10, "a link"),
    (r"\?subject=", 1, "a link with more than the address"),
    (r"\S+@\S+[;,/ \n]+\S+@\S+", 8, "two addresses in one cell"),
    (r"\n", 1, "a line break inside a cell"),
    (r"[^@]+@[^@]+;\s?$", 4, "a list's separator"),
    (r"[^@]+@[^@]+[.,]$", 2, "other trailing punctuation"),
    (r"^['\"].*@.*['\"]$", 3, "in quotes"),
    (r'^=".*@.*"$', 3, "the way exports keep spreadsheets from guessing"),
    (
        r"^(E-Mail|email|Mail|e-mail|work|correo|courriel) ?[:-] \S+@\S+$",
        8,
        "the name of the field before it",
    ),
    (r"^<a href=\"mailto:|<br>$|&#64;|^<b>", 6, "HTML"),
    ("\uff20", 4, "a full-width sign"),
    (r"^\S+ ?[\[{]at[\]}] ?\S+$", 4, "the sign in brackets"),
    (r"^\S+@\S+ (\(work\)|- prefers)|@\S+, Tel\.|; n/a$", 4, "words beside the address"),
    (r"> ?; Office <", 4, "two addresses with names"),
    (r"^\+49 ", 5, "a phone number in the wrong field"),
    (r"^#(NAME\?|REF!|N/A)$", 2, "a spreadsheet's error"),
    (r"@(gmial|gamil|gnail)\.com$", 4, "a slip in the name"),
    (r"@hotmial\.com$", 1, "a slip in another name"),
    (r"@(gmail|hotmail)\.con$", 2, "a slip in the end"),
    (r"@\S*[^\x00-\x7f]", 15, "a domain that is not ASCII"),
    (r"^\S*[^\x00-\x7f]\S*@\S+\.", 5, "a local part that is not ASCII"),
    (r"^(info|sales|billing|noreply)@", 20, "role accounts"),
    (r"@(mailinator|yopmail|guerrillamail)\.com$", 3, "disposable mailboxes"),
    (r"@(gmail\.com|gmx\.de|web\.de|orange\.fr)$", 200, "consumer providers"),
    (r"\+crm@", 10, "sub-addresses"),
    (r"^[A-Z.-]+@|@[A-Z.-]+$", 8, "upper case"),
    (r"@null\.example$", 2, "a domain that takes no mail (RFC 7505)"),
    (r"@parked\.example$", 2, "a domain without mail"),
    (r"@velograf-kurierdienst\.de$", 2, "a domain that is gone"),
    (r"@silent\.example$", 2, "a domain whose servers do not answer"),
    (r"@servfail\.example$", 2, "a domain whose servers fail"),
    (r"@(implicit|alias)\.example$", 2, "mail without an MX of its own"),
    (r"@(private|loopback|numeric|gone-exchange)\.example$", 2, "exchanges that nobody can reach"),
    (r"@listed(-second)?\.example$", 1, "an exchange on a blacklist"),
    (r"@@|\.\.|\(at\)| at |^www\.|^https?:|<a href", 8, "typed wrongly, or something else"),
)
FICTION = r"(\+49 30 23125 \d{3}|\+44 7700 900\d{3}|\(212\) 555-01\d\d|\+1 416 555 01\d\d|01 99 00 \d\d \d\d)"


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """The export with every cell as it is in the file."""
    return pd.read_csv(CSV, dtype=str, keep_default_na=False)


@pytest.fixture(scope="module")
def world() -> Iterator[mv.sandbox.World]:
    with mv.sandbox.World() as world:
        yield world


@pytest.fixture(scope="module")
def finished() -> subprocess.CompletedProcess[str]:
    """What the demo said."""
    command = [sys.executable, "-X", "utf8", "-m", "tools.demo"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=120)


class TestFiles:
    def test_the_export_has_its_size_and_header(self, frame: pd.DataFrame) -> None:
        assert len(frame) == ROWS
        assert ",".join(frame.columns) == HEADER
        assert frame["contact_id"].is_unique

    def test_semicolons_are_the_german_manner_of_the_same(self, frame: pd.DataFrame) -> None:
        content = SEMICOLON.read_bytes()
        assert content.startswith(b"\xef\xbb\xbf")
        assert content.count(b"\r\n") == ROWS + 1
        german = pd.read_csv(
            SEMICOLON, sep=";", encoding="utf-8-sig", dtype=str, keep_default_na=False
        )
        german["lifetime_value"] = german["lifetime_value"].str.replace(",", ".")
        german["created_at"] = pd.to_datetime(german["created_at"], format="%d.%m.%Y").dt.strftime(
            "%Y-%m-%d"
        )
        german["email"] = german["email"].str.replace(r"^(\d),(\d{5}E)", r"\1.\2", regex=True)
        german["email"] = german["email"].str.replace(
            r"^(\d\d)\.(\d\d)\.(\d{4})$", r"\3-\2-\1", regex=True
        )
        pd.testing.assert_frame_equal(german, frame)

    def test_parquet_has_types_and_the_same_text(self, frame: pd.DataFrame) -> None:
        table = pq.read_table(PARQUET).to_pandas()
        assert table["lifetime_value"].dtype == "float64"
        assert isinstance(table["created_at"][0], date)
        for name in ("first_name", "company", "email", "billing_email", "notes", "lead_source"):
            assert table[name].fillna("").tolist() == frame[name].tolist()

    def test_workbook_has_numbers_and_dates_where_addresses_belong(
        self, frame: pd.DataFrame
    ) -> None:
        header, *rows = CalamineWorkbook.from_path(XLSX).get_sheet_by_index(0).to_python()
        cells = [row[header.index("email")] for row in rows]
        assert len(rows) == ROWS
        assert sum(isinstance(cell, int | float) for cell in cells) == 6
        assert sum(isinstance(cell, date | datetime) for cell in cells) == 3
        texts = [
            (ours, theirs)
            for ours, theirs in zip(cells, frame["email"], strict=True)
            if isinstance(ours, str)
        ]
        assert all(ours == theirs for ours, theirs in texts)

    @each_row("path", [CSV, SEMICOLON, XLSX, PARQUET], ids=lambda path: path.name)
    def test_every_file_is_read_whole_without_options(self, path: Path) -> None:
        opened = open_table(path)
        assert ",".join(opened.columns) == HEADER
        assert sum(len(piece) for piece in opened.pieces()) == ROWS

    def test_notes_hold_what_must_be_escaped(self, frame: pd.DataFrame) -> None:
        for start in ("<script>", "<b>", "=", "+", "@", "-"):
            assert frame["notes"].str.startswith(start).any(), start


class TestMess:
    def test_every_kind_is_there(self, frame: pd.DataFrame) -> None:
        cells = frame["email"].tolist()
        counts = [
            (why, sum(bool(re.search(pattern, cell)) for cell in cells), least)
            for pattern, least, why in KINDS
        ]
        assert [each for each in counts if each[1] < each[2]] == []

    def test_the_export_has_empty_cells(self, frame: pd.DataFrame) -> None:
        assert (frame["email"] == "").sum() == 205

    def test_excel_shows_long_numbers_with_an_exponent(self, frame: pd.DataFrame) -> None:
        assert frame["email"].str.fullmatch(r"\d\.\d{5}E\+11").sum() == 6

    def test_the_same_mailbox_occurs_again_also_in_another_case(self, frame: pd.DataFrame) -> None:
        filled = frame["email"][frame["email"].str.contains("@")]
        assert filled.duplicated().sum() >= 30
        assert filled.str.lower().duplicated().sum() >= filled.duplicated().sum() + 30

    def test_phone_numbers_are_of_ranges_kept_for_fiction(self, frame: pd.DataFrame) -> None:
        numbers = frame["phone"][frame["phone"] != ""]
        assert len(numbers) > 500
        assert numbers.str.fullmatch(FICTION).all()


@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
class TestSandbox:
    def test_every_domain_exists_except_those_that_should_not(self, frame: pd.DataFrame) -> None:
        plain = frame["email"].str.extract(r"^[\w.+-]+@([^\W_][\w-]*(?:\.[\w-]+)+)$")[0].dropna()
        assert {normal_name(name) for name in plain} - sandbox_zones().keys() == CLOSED | SLIPS

    @pytest.mark.slow
    def test_verdicts_are_mixed_as_in_a_real_export(self, world: mv.sandbox.World) -> None:
        out = mv.verify(
            pd.read_csv(CSV), "email", validation_type="mx", clean=False, backend=world.backend
        )
        share = mv.summary(out, "email")["share"]
        assert 0.70 <= share["valid"] <= 0.75
        assert 0.10 <= share["invalid"] <= 0.17
        assert 0.01 <= share["unknown"] <= 0.04
        assert 0.08 <= share["missing"] <= 0.15
        assert (share[["risky", "error", "pending"]] == 0).all()

    @pytest.mark.slow
    def test_repairs_save_addresses(self, world: mv.sandbox.World) -> None:
        valid = [
            (
                mv.verify(pd.read_csv(CSV), "email", clean=clean, backend=world.backend)[
                    "email_verdict"
                ]
                == "valid"
            ).sum()
            for clean in (False, True)
        ]
        assert valid[1] >= valid[0] + 50

    def test_the_lead_source_says_where_invalid_addresses_come_from(
        self, world: mv.sandbox.World
    ) -> None:
        out = mv.verify(pd.read_csv(CSV), "email", backend=world.backend)
        found = mv.breakdown(out)
        assert found.loc["lead_source", "says"] == "differs"
        groups = mv.breakdown(out, "lead_source")
        assert groups.index[0] == "Trade fair"
        assert groups.loc["Trade fair", "invalid_share"].round(2) == 0.32
        assert groups.loc["Trade fair", "elsewhere"].round(2) == 0.06

    def test_slips_come_with_a_suggestion(self, world: mv.sandbox.World) -> None:
        out = mv.verify(pd.read_csv(CSV), "email", backend=world.backend)
        slips = out[
            out["email"].str.endswith(("@gmial.com", "@hotmial.com", "@gmail.con"), na=False)
        ]
        assert len(slips) > 8
        assert slips["email_suggestion"].str.endswith(("@gmail.com", "@hotmail.com")).all()


@pytest.mark.slow
class TestDemo:
    def test_it_prints_nothing_on_stderr(self, finished: subprocess.CompletedProcess[str]) -> None:
        assert (finished.returncode, finished.stderr) == (0, "")

    def test_the_first_line_names_the_sandbox(
        self, finished: subprocess.CompletedProcess[str]
    ) -> None:
        assert "sandbox: made-up domains on this machine" in finished.stdout.splitlines()[0]

    def test_it_shows_the_mess(self, finished: subprocess.CompletedProcess[str]) -> None:
        for kind in (
            "display name",
            "no-break space",
            "two addresses",
            "Excel's number",
            "placeholder",
            "typo",
        ):
            assert re.search(rf"^{kind} +\d{{5}} ", finished.stdout, re.MULTILINE), kind

    def test_it_prints_a_summary(self, finished: subprocess.CompletedProcess[str]) -> None:
        assert re.search(r"^  Valid +1,\d{3} +7\d\.\d%", finished.stdout, re.MULTILINE)
        assert "valid means that the domain can receive mail" in finished.stdout
        assert all(
            cause in finished.stdout
            for cause in ("does not exist", "accepts no mail", "no answer in", "There is no @")
        )

    def test_it_verifies_mailboxes(self, finished: subprocess.CompletedProcess[str]) -> None:
        deep = finished.stdout.partition("does the mailbox exist?")[2]
        assert "Mailbox does not exist" in deep
        assert "the mailbox exists and no problem was found" in deep
        assert "can be mailed" in (ROOT / "out" / "crm_report.html").read_text(encoding="utf-8")

    def test_it_writes_every_row(self, finished: subprocess.CompletedProcess[str]) -> None:
        written = pd.read_csv(ROOT / "out" / "crm_verified.csv", dtype=str)
        assert len(written) > ROWS
        assert written["contact_id"].nunique() == ROWS
        assert {
            "email_clean",
            "email_duplicate_of",
            "email_suppressed",
            "email_verdict",
            "email_error_message",
            "email_suggestion",
        } <= set(written.columns)
        notes = pd.read_csv(CSV, dtype=str)["notes"]
        assert set(written["notes"].dropna()) == set(notes.dropna()), (
            "cells of the user stay as they are"
        )
