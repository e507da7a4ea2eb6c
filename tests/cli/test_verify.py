"""`mailverdict verify` and `clean` over files: rows, messages, exit status, and nothing left behind."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path

import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import xlsxwriter

from mailverdict import schema
from mailverdict.backend import Deferred, Settled
from mailverdict.cli import files, tables
from mailverdict.errors import BackendError
from mailverdict.files.delimited import DelimitedFile
from mailverdict.files.writers import create_table
from mailverdict.model.words import count_of
from mailverdict.sandbox import World
from mailverdict.table.columns import SHORT
from tests.doubles.scripted_backend import ScriptedBackend
from tests.doubles.scripted_backend import rows_of as settled_rows
from tests.doubles.scripted_service import ScriptedService, payload
from tests.doubles.serving import serve
from tests.doubles.tables import each_row, rows_of_csv
from tests.doubles.waiting import wait_until
from tests.doubles.workbooks import add_sheet, cells_of, change_parts, write_raw

FROM_STANDARD_INPUT = (sys.executable, "-m", "mailverdict", "verify", "-", "-t", "regex")
CONTACTS = (
    'id,email,note\n1,ada@example.org,"a, b"\n2,Bob@GMIAL.com,+49 30 1\n3,,=1+1\n4,not one,@x\n'
)
ADDED = [
    "verdict", "why", "details", "reasons", "role", "spamtrap", "disposable", "free", "catch_all", "protected", "status",
    "suggestion", "error_message", "clean", "change",
]  # fmt: skip


@pytest.fixture
def contacts(tmp_path):
    path = tmp_path / "contacts.csv"
    path.write_text(CONTACTS)
    return path


class TestVerify:
    def test_every_row_comes_back_with_result_columns_beside_its_own(self, run, contacts, tmp_path):
        out = tmp_path / "out.csv"
        status, printed, told = run("verify", contacts, "-t", "regex", "-o", out)
        assert (status, printed) == (0, "")
        rows = rows_of_csv(out)
        assert list(rows[0]) == ["id", "email", "note", *(f"email_{name}" for name in ADDED)]
        assert [row["email_verdict"] for row in rows] == ["valid", "valid", "", "invalid"]
        assert [row["email_status"] for row in rows] == ["done", "done", "missing", "done"]
        assert rows[1]["email_suggestion"] == "Bob@gmail.com"
        assert rows[3]["email_error_message"] == "There is no @."
        assert [row["note"] for row in rows] == ["a, b", "+49 30 1", "=1+1", "@x"]
        assert told.splitlines()[0] == (
            "using column email: 3 of 4 rows filled, 2 different addresses; give another with --column"
        )
        assert "4 rows, 3 with a verdict by regex" in told
        assert told.splitlines()[-1] == f"written: {out}"

    def test_quiet_says_nothing(self, run, contacts, tmp_path):
        assert run(
            "verify", contacts, "-c", "email", "-t", "regex", "-o", tmp_path / "o.csv", "-q"
        ) == (0, "", "")

    def test_the_caller_s_cells_are_as_they_were_unless_escaped(self, run, tmp_path):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        cells = ["-5.3e-05", "-inf", "@ada", "-5 EUR", "=1+1", "'x"]
        lines = [f"+ada{n}@gmail.com,{cell}" for n, cell in enumerate(cells)]
        path.write_text("\n".join(["email,note", *lines]) + "\n")
        for more in ((), ("--escape-formulas",)):
            arguments = (
                "verify",
                path,
                "-c",
                "email",
                "-t",
                "regex",
                "-o",
                out,
                "-q",
                "--columns",
                "verdict",
            )
            assert run(*arguments, *more)[0] == 0
            rows = rows_of_csv(out)
            escaped = (
                ["-5.3e-05", "-inf", "'@ada", "'-5 EUR", "'=1+1", "'x"]
                if "--escape-formulas" in more
                else cells
            )
            assert [row["note"] for row in rows] == escaped
            assert [row["email"] for row in rows] == [
                f"+ada{n}@gmail.com" for n in range(len(cells))
            ]
            assert {row["email_verdict"] for row in rows} == {"valid"}

    @pytest.mark.slow
    def test_a_sheet_with_formulas_that_would_be_lost_is_not_replaced(self, run, tmp_path):
        path = tmp_path / "x.xlsx"
        with create_table(path) as table:
            table.write(pa.table({"email": ["ada@example.org", "ben@example.org"]}))
        formula = b'<c r="A3"><f>"ben@example.org"</f><v /></c></row>'  # as openpyxl writes it
        change_parts(
            path, "xl/worksheets/", lambda octets: re.sub(rb'<c r="A3".*?</row>', formula, octets)
        )
        before = path.read_bytes()
        status, _, told = run("verify", path, "-c", "email", "-t", "regex", "--in-place")
        assert status == 2
        assert "1 formula without a saved value in its sheets, and replacing it would empty" in told
        assert path.read_bytes() == before
        status, _, told = run(
            "verify", path, "-c", "email", "-t", "regex", "-o", tmp_path / "out.xlsx"
        )
        assert (status, "1 formula without a saved value" in told) == (0, True)

    @pytest.mark.slow
    def test_a_workbook_of_ours_is_replaced_in_place_and_another_one_is_not(
        self, run, contacts, tmp_path
    ):
        ours, options = tmp_path / "ours.xlsx", ("-c", "email", "-t", "regex")
        assert run("verify", contacts, *options, "-o", ours)[0] == 0
        for command in (
            ("clean", ours, "-c", "email"),
            ("verify", ours, *options, "--policy", "balanced"),
        ):
            assert run(*command, "--in-place")[0] == 0
        assert len(cells_of(ours)) == 7
        add_sheet(ours)
        mine = write_raw(tmp_path / "mine.xlsx", FAR.replace("XFD1048576", "A2"))
        for path in (ours, mine):
            before = path.read_bytes()
            for command in ("clean", "verify", "explode", "duplicates"):
                status, _, told = run(command, path, "-c", "email", "--in-place")
                assert (status, told.count("\n")) == (2, 1)
                assert (
                    f"{path} has sheets that this version of mailverdict did not write, and is not repl"
                    in told
                )
            assert path.read_bytes() == before

    def test_the_input_is_replaced_only_when_told(self, run, contacts, tmp_path):
        (tmp_path / "link.csv").symlink_to(contacts)
        for name in ("contacts.csv", "link.csv"):
            status, _, told = run(
                "verify", contacts, "-c", "email", "-t", "regex", "-o", tmp_path / name
            )
            assert (status, told) == (
                2,
                f"mailverdict: {tmp_path / name} is the input: name another output, or add --in-place to replace it\n",
            )
        assert contacts.read_text() == CONTACTS
        for more, said in (
            (("-o", tmp_path / "other.csv"), "--in-place replaces"),
            (("-o", "-"), "--in-place replaces"),
        ):
            status, _, told = run(
                "verify", contacts, "-c", "email", "-t", "regex", "--in-place", *more
            )
            assert status == 2
            assert said in told
        assert (
            "standard input cannot be replaced"
            in run("verify", "-", "-t", "regex", "--in-place")[2]
        )

    @pytest.mark.slow
    def test_a_device_is_written_to_and_not_replaced(self, run, contacts, tmp_path):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        with begin(
            "verify", contacts, "-c", "email", "-t", "regex", "-q", "-o", "/dev/stdout"
        ) as process:
            assert process.stdout.read().count("\n") == 5
            assert (process.wait(), process.stderr.read()) == (0, "")
        with ThreadPoolExecutor(1) as reader:
            read = reader.submit(pipe.read_text)
            for output in ("/dev/null", pipe):
                assert run(
                    "verify", contacts, "-c", "email", "-t", "regex", "-q", "-o", output
                ) == (0, "", "")
            assert read.result().count("\n") == 5
        assert Path("/dev/null").is_char_device()
        assert pipe.is_fifo()

    def test_standard_input_to_standard_output(self, tmp_path):
        done = subprocess.run(
            [*FROM_STANDARD_INPUT, "-o", "-", "--columns", "verdict"],
            input=CONTACTS.encode(),
            capture_output=True,
            check=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
        assert [row["email_verdict"] for row in rows] == ["valid", "valid", "", "invalid"]
        assert list(tmp_path.iterdir()) == []

    def test_json_is_on_standard_output(self, run, contacts):
        status, printed, _ = run("verify", contacts, "-c", "email", "-t", "regex", "--json")
        assert status == 0
        summary = json.loads(printed)
        assert {name: summary[name] for name in list(summary)[: list(summary).index("validation_type")]} == {
            "rows": 4, "valid": 2, "risky": 0, "invalid": 1, "unknown": 0, "error": 0, "pending": 0, "missing": 1,
            "why": {"syntax_error": 1},
            "flags": {"role": 0, "disposable": 0, "free": 0, "spamtrap": 0, "catch_all": 0, "protected": 0},
            "suggestions": 1, "cleaned": 1,
        }  # fmt: skip

    def test_a_file_may_be_written_over_itself_and_verified_again(self, run, contacts):
        for _ in range(2):
            assert run("verify", contacts, "-c", "email", "-t", "regex", "--in-place", "-q")[0] == 0
        rows = rows_of_csv(contacts)
        assert list(rows[0]) == ["id", "email", "note", *(f"email_{name}" for name in ADDED)]
        assert [row["email_verdict"] for row in rows] == ["valid", "valid", "", "invalid"]
        assert [each.name for each in contacts.parent.iterdir()] == ["contacts.csv"]

    @pytest.mark.parametrize("columns", ["short", "core", "all", "verdict,status,role"])
    def test_again_over_its_own_output_replaces_the_columns(self, run, tmp_path, columns):
        first, second = tmp_path / "first.csv", tmp_path / "second.csv"
        (tmp_path / "in.csv").write_text("id,email\n1,nobody\n2,ada@example.org\n3,\n")
        common = ("-c", "email", "-t", "regex", "-q", "--columns", columns)
        assert run("verify", tmp_path / "in.csv", *common, "-o", first)[0] == 0
        first.write_text(first.read_text().replace("1,nobody", "1,bo@example.org"))
        kept = (
            "note: column 'email': the addresses in 'email_clean' were verified as they stand; drop 'email_clean' to "
            "have the cells repaired again\n"
        )
        said = (
            ""
            if columns == "verdict,status,role" and "email_clean" not in first.read_text()
            else kept
        )
        assert run("verify", first, *common, "-o", second) == (0, "", said)
        rows = rows_of_csv(second)
        assert list(rows[0]) == list(rows_of_csv(first)[0])
        assert [row["email_verdict"] for row in rows] == ["valid", "valid", ""]

    @pytest.mark.parametrize(
        "columns", ["verdict", "verdict, status", "short", "all", "core,normalized"]
    )
    def test_only_the_columns_asked_for_are_written(self, run, contacts, tmp_path, columns):
        out = tmp_path / "o.csv"
        assert (
            run(
                "verify",
                contacts,
                "-c",
                "email",
                "-t",
                "regex",
                "-o",
                out,
                "-q",
                "--columns",
                columns,
            )[0]
            == 0
        )
        written = [
            name.removeprefix("email_") for name in rows_of_csv(out)[0] if name.startswith("email_")
        ]
        if columns == "short":
            assert written == list(SHORT)
        elif columns == "all":
            assert written == list(schema("pandas", "all"))
        elif columns.startswith("core"):
            assert written == [*ADDED[:-2], "normalized", "clean", "change"]
        else:
            assert written == [*columns.split(", "), "clean", "change"]

    def test_the_input_s_delimiter_and_mark_are_kept(self, run, tmp_path):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_bytes("\ufeffid;email\n1;ada@example.org\n".encode())
        assert (
            run(
                "verify", path, "-t", "regex", "-o", out, "-q", "--no-clean", "--columns", "verdict"
            )[0]
            == 0
        )
        assert (
            out.read_bytes() == "\ufeffid;email;email_verdict\n1;ada@example.org;valid\n".encode()
        )

    def test_other_kinds_in_and_out(self, run, tmp_path):
        source, sheet, parquet = (
            tmp_path / "in.parquet",
            tmp_path / "out.xlsx",
            tmp_path / "out.parquet",
        )
        pa.parquet.write_table(pa.table({"n": [1, 2], "email": ["ada@example.org", None]}), source)
        assert run("verify", source, "-c", "email", "-t", "regex", "-o", sheet, "-q")[0] == 0
        assert run("verify", sheet, "-c", "email", "-t", "regex", "-o", parquet, "-q")[0] == 0
        frame = pd.read_parquet(parquet)
        assert frame["n"].tolist() == [1, 2]
        assert frame["email_verdict"].astype("string").fillna("-").tolist() == ["valid", "-"]
        assert frame["email_role"].tolist() == [False, None]

    def test_a_header_alone_gives_a_header_alone(self, run, tmp_path):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text("id,email\n")
        assert run("verify", path, "-c", "email", "-t", "regex", "-o", out, "-q")[0] == 0
        assert out.read_text().startswith("id,email,email_verdict,")
        assert len(out.read_text().splitlines()) == 1

    def test_names_that_occur_twice_stay_twice(self, run, tmp_path):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text("a,a,email\n1,2,ada@example.org\n")
        only = ("--no-clean", "--columns", "verdict")
        assert run("verify", path, "-c", "email", "-t", "regex", "-o", out, "-q", *only)[0] == 0
        assert out.read_text() == "a,a,email,email_verdict\n1,2,ada@example.org,valid\n"

    def test_a_limit_is_for_the_whole_file(self, run, contacts, tmp_path):
        out = tmp_path / "out.csv"
        assert (
            run("verify", contacts, "-c", "email", "-t", "regex", "-o", out, "-q", "--limit", "1")[
                0
            ]
            == 0
        )
        assert [row["email_status"] for row in rows_of_csv(out)] == [
            "done",
            "pending",
            "missing",
            "pending",
        ]


class TestClean:
    def test_a_column_is_tidied_beside_itself(self, run, tmp_path):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text("email\nAda <Ada@Example.org>\nada@example.org\nnobody\n")
        status, printed, told = run("clean", path, "-c", "email", "-o", out)
        assert (status, printed) == (0, "")
        assert told == f"rows: 3; cells cleaned: 1\nwritten: {out}\n"
        assert [row["email_clean"] for row in rows_of_csv(out)] == [
            "Ada@example.org",
            "ada@example.org",
            "",
        ]

    def test_what_was_cleaned_can_be_verified(self, run, contacts):
        assert run("clean", contacts, "-c", "email", "-o", contacts, "--in-place", "-q")[0] == 0
        assert run("verify", contacts, "-c", "email", "-t", "regex", "--in-place", "-q")[0] == 0
        assert run("clean", contacts, "-c", "email", "-o", contacts, "--in-place", "-q")[0] == 0
        names = list(rows_of_csv(contacts)[0])
        assert len(names) == len(set(names)) == 3 + len(ADDED)


FAR = (  # apart, so that the rectangle has more cells than there is memory
    '<row><c r="A1" t="str"><v>email</v></c></row><row><c r="XFD1048576" t="str"><v>ada@example.org</v></c></row>'
)


@pytest.mark.parametrize(
    "command",
    [
        ("verify", "{far}", "-t", "regex", "-o", "{out}"),
        ("verify", "{far}", "-t", "regex", "-o", "{sheets}"),
        ("verify", "{csv}", "-t", "regex", "-o", "{out}", "--suppress", "{far}"),
        (
            "verify",
            "{csv}",
            "-t",
            "regex",
            "-o",
            "{out}",
            "--report",
            "{folder}/r.html",
            "--earlier",
            "{far}",
        ),
        ("clean", "{far}", "-o", "{out}"),
        ("clean", "{far}", "--in-place"),
        ("explode", "{far}", "-o", "{out}"),
        ("plan", "{far}"),
        ("report", "{far}", "-o", "{folder}/r.html"),
        ("outcomes", "{csv}", "--bounces", "{far}"),
    ],
    ids=" ".join,
)
def test_a_workbook_that_asks_for_too_much_is_one_line_status_2_and_nothing_lost(
    run, contacts, tmp_path, command
):
    out, sheets = tmp_path / "out.csv", tmp_path / "out.xlsx"
    out.write_text("before")
    with create_table(sheets) as table:
        table.write(pa.table({"email": ["ada@example.org"]}))
    far = write_raw(tmp_path / "far.xlsx", FAR)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    places = {"far": far, "csv": contacts, "out": out, "sheets": sheets, "folder": tmp_path}
    status, printed, said = run(*(each.format(**places) for each in command), "-c", "email")
    assert (status, printed, said.count("\n")) == (2, "", 1)
    assert f"{far} cannot be read with " in said
    assert "delete what is outside the table, or save it as CSV" in said
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


# What is wrong: file name, content (None: not there; ... a directory), more arguments, what is said.
WRONG = [
    ("x.csv", None, (), "x.csv: no such file"),
    ("x.csv", ..., (), "x.csv is a directory without Parquet files; give a file"),
    ("x.csv", b"", (), "x.csv is empty"),
    (
        "x.jsonl",
        b"",
        (),
        "the table has no columns to choose from: name the one with the addresses",
    ),
    (
        "x.numbers",
        b"PK\x03\x04",
        (),
        "x.numbers is a spreadsheet of a kind that is not read: save it as .xlsx or .csv",
    ),
    (
        "x.ods",
        b"PK\x03\x04 and no more",
        (),
        "x.ods cannot be read as a workbook",
    ),
    (
        "x.csv",
        b"email\nada@x.org\n",
        ("-o", "y.ods"),
        "y.ods: .ods files are read and not written: name another file, as y.xlsx",
    ),
    ("x.foo", b"email\n", (), "x.foo: cannot tell what kind of table this is; known endings: .csv"),
    (
        "x.csv",
        b"id,mail\n1,a\n",
        ("-c", "email"),
        "x.csv: no column 'email' (did you mean 'mail'?); there are 'id', 'mail'",
    ),
    (
        "x.csv",
        b"id,mail\n1,a\n",
        ("-c", "2"),
        "x.csv: no column '2' (give its name, not its position); there are 'id', 'mail'",
    ),
    (
        "x.csv",
        b"email,email\n1,2\n",
        ("-c", "email"),
        "x.csv: the column name 'email' occurs 2 times",
    ),
    (
        "x.csv",
        b"id,name\n1,Ada\n",
        (),
        "no column looks like e-mail addresses; name one of 'id', 'name'",
    ),
    (
        "x.csv",
        b"id,name\n1,J\xf6rg\n",
        (),
        "name one of 'id', 'name'; encoding: cp1252, guessed by its letters, as in 'J\xf6rg'",
    ),
    (
        "x.csv",
        b"id,email\n1,a@b.org\n2\n",
        ("-c", "email", "--strict"),
        "x.csv, line 3: 1 cell where the header has 2",
    ),
    (
        "x.csv",
        b'id,email\n1,"a@b.org\n2,b\n',
        ("-c", "email"),
        "x.csv ends inside quotes: it is truncated",
    ),
    (
        "x.csv",
        "name,email\nJörg,a@b.org\n".encode("latin-1"),
        ("-c", "email", "--strict", "--encoding", "utf-8"),
        "line 2: a byte is not utf-8; give another --encoding",
    ),
    (
        "x.csv",
        b"name,email\n" + b"x,a@b.org\n" * 9_000 + "Jörg,a@b.org\n".encode("latin-1"),
        ("-c", "email", "--encoding", "utf-8", "--strict"),
        "line 9002: a byte is not utf-8; give another --encoding",
    ),
    ("x.csv", b"email\n", ("--encoding", "klingon"), "encoding 'klingon' is not known"),
    ("x.csv", b"email\n", ("--delimiter", "::"), "delimiter '::': give one character"),
    ("x.parquet", b"PAR1 and no more", (), "x.parquet: Parquet magic bytes not found in footer"),
    ("x.xlsx", b"PK\x03\x04 and no more", (), "x.xlsx cannot be read as a workbook"),
    (
        "x.csv",
        b"email,email_role\na@b.org,boss\n",
        ("-c", "email"),
        "a column 'email_role' that mailverdict did not write; give another prefix",
    ),
    (
        "x.csv",
        b"email\na@b.org\n",
        ("--columns", "verdicts"),
        "columns: 'verdicts' is not one of verdict, why",
    ),
    (
        "x.csv",
        b"email\na@b.org\n",
        ("--max-age", "soon"),
        "mailverdict: --max-age 'soon' is not a duration",
    ),
    (
        "x.csv",
        b"email\na@b.org\n",
        ("--on-quota", "cry"),
        "mailverdict: --on-quota 'cry': give one of stop, raise, wait",
    ),
    (
        "x.csv",
        b"email\na@b.org\n",
        ("--limit", "-1"),
        "mailverdict: --limit -1: give a whole number",
    ),
    (
        "x.csv",
        b"email\na@b.org\n",
        ("--resolver", "dns"),
        "mailverdict: --resolver 'dns': give an IP address",
    ),
    ("x.csv", b"email\na@b.org\n", ("-o", "{folder}/nowhere/out.csv"), "there is no directory"),
    (
        "x.csv",
        b"email\na@b.org\n",
        ("-o", "{folder}/out.doc"),
        "cannot tell what kind of table to write",
    ),
]


@pytest.mark.parametrize("name", ["x.ods", "x.xls", "x.XLSB", "x.vcf"])
def test_what_is_only_read_is_not_replaced_and_nothing_is_read(run, tmp_path, name):
    status, printed, said = run("verify", tmp_path / name, "--in-place")
    assert (status, printed) == (2, "")
    assert "files are read and not written: name another file with --output, as " in said


@pytest.mark.parametrize(("name", "content", "more", "told"), WRONG, ids=[w[3][:40] for w in WRONG])
def test_what_is_wrong_is_one_line_status_2_and_no_file(run, tmp_path, name, content, more, told):
    if content is ...:
        (tmp_path / name).mkdir()
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    before = sorted(each.name for each in tmp_path.iterdir())
    more = [argument.format(folder=tmp_path) for argument in more]
    out = [] if "-o" in more else ["-o", tmp_path / "out.csv"]
    status, printed, said = run("verify", tmp_path / name, "-t", "regex", *out, *more)
    assert (status, printed) == (2, "")
    lines = [line for line in said.splitlines() if not line.startswith("using column")]
    assert len(lines) == 1
    assert lines[0].startswith("mailverdict: ")
    assert told in lines[0]
    assert sorted(each.name for each in tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("verify",), "Missing argument"),
        (
            ("verify", "x.csv", "-t", "mxx"),
            "'mxx' is not one of 'regex', 'mx', 'mx_blacklist', 'smtp'",
        ),
        (("verify", "x.csv", "--colour"), "No such option"),
        (("verfy",), "No such command 'verfy'"),
        (("verify", "", "-t", "regex"), "the name of the file is empty"),
    ],
)
def test_usage_is_status_2(run, arguments, told):
    status, printed, said = run(*arguments)
    assert (status, printed) == (2, "")
    assert told in said


def test_without_an_output_a_person_reads_that_no_table_was_written(run, contacts):
    told = "no table was written: --output names a file for it\n"
    for command in (("verify", contacts, "-t", "regex"), ("clean", contacts, "-c", "email")):
        assert run(*command)[2].endswith(told)
        assert told not in run(*command, "--quiet")[2]
    assert told not in run("verify", contacts, "-t", "regex", "--json")[2]


def test_json_and_a_table_do_not_share_standard_output(run, contacts):
    status, printed, said = run("verify", contacts, "-t", "regex", "--json", "-o", "-")
    assert (status, printed) == (2, "")
    assert (
        said
        == "mailverdict: --json and -o - cannot both use standard output: write the table to a file\n"
    )


def test_columns_of_an_earlier_run_are_replaced_or_emptied(run, tmp_path):
    first, second, third, fourth = (tmp_path / f"{n}.csv" for n in (1, 2, 3, 4))
    first.write_text("id,email,x\n1,ada@plain.example,q\n2,Bo <bo@plain.example>,r\n")
    for source, target, options in (
        (first, second, ("--policy", "balanced")),
        (second, third, ("--policy", "strict")),
    ):
        assert run("verify", source, "-c", "email", "-t", "regex", "-o", target, *options)[0] == 0
    assert third.read_text().splitlines()[0] == second.read_text().splitlines()[0], (
        "no column twice"
    )
    assert run("verify", third, "-c", "email", "-t", "regex", "-o", fourth, "--no-clean")[0] == 0
    rows = rows_of_csv(fourth)
    assert [row["email_verdict"] for row in rows] == ["valid", "invalid"]
    assert {
        row[f"email_{name}"] for row in rows for name in ("clean", "change", "action", "action_why")
    } == {""}


@pytest.fixture
def world():
    with World(daily_limit=2) as opened:
        yield opened


def asking(url, path, out):
    """The arguments that verify a list by a service, with a journal beside the result."""
    files = ("verify", path, "-o", out, "--journal", out.with_name("j.db"))
    return *files, "-t", "mx", "--backend", url


class TestService:
    """Exit status of what a service does, against the sandbox's own."""

    def test_a_quota_that_ends_is_status_3_with_every_row(self, run, world, tmp_path):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text("email\n" + "".join(f"ada{n}@gmail.com\n" for n in range(5)) + "nobody\n")
        arguments = asking(world.url, path, out)
        status, _, said = run(*arguments, "--limit", "2")
        assert (status, sorted(row["email_status"] for row in rows_of_csv(out))) == (
            0,
            ["done"] * 3 + ["pending"] * 3,
        )
        status, _, said = run(*arguments)
        assert status == 3
        assert said.splitlines()[-1] == (
            "mailverdict: today's quota is used up: 3 rows are not checked yet; run the command again to continue"
        )
        assert (
            sorted(row["email_status"] for row in rows_of_csv(out))
            == ["done"] * 3 + ["pending"] * 3
        )

    @pytest.mark.slow
    def test_without_a_journal_no_later_run_continues(self, run, world, tmp_path):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text("email\n" + "".join(f"ada{n}@gmail.com\n" for n in range(9)))
        status, _, said = run(
            "verify", path, "-o", out, "--backend", world.url, "--journal", "none"
        )
        assert status == 3
        assert said.splitlines()[-1].endswith(
            "the next run begins at the first row, unless --journal keeps the answers"
        )

    @pytest.mark.slow
    def test_rows_about_which_the_service_gave_no_verdict_are_status_4(self, run, tmp_path):
        def verdict(email, kind):
            kind = "regex" if email.startswith("weak") else kind
            result, reasons = (
                ("invalid", ["greylisted"]) if email.startswith("torn") else ("valid", [])
            )
            return (
                None if email.startswith("lost") else payload(email, kind, result, reasons=reasons)
            )

        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text(
            "email\nada@one.example\nlost@one.example\nweak@one.example\ntorn@one.example\n"
        )
        service = ScriptedService(time.time, verdict=verdict, duration=lambda _: 0.0)
        with serve(service) as url:
            status, printed, said = run(
                "verify", path, "-t", "mx", "-o", out, "--backend", url, "-q", "--json"
            )
        assert (status, json.loads(printed)["exit_status"]) == (4, 4)
        assert (
            "no verdict about 3 addresses (1 ERROR, 1 OTHER_TYPE, 1 CONTRADICTION)"
            in said.splitlines()[-1]
        )
        assert [row["email_status"] for row in rows_of_csv(out)] == [
            "done",
            "error",
            "error",
            "error",
        ]
        assert "checked by 'regex', not by 'mx'" in rows_of_csv(out)[2]["email_error_message"]
        assert "greylisted means 'unknown'" in rows_of_csv(out)[3]["email_error_message"]

    def test_jobs_that_the_service_reports_as_failed_are_a_warning(self, run, tmp_path):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text("email\nada@one.example\nlost@one.example\n")
        service = ScriptedService(
            time.time,
            verdict=lambda email, kind: None if email.startswith("lost") else payload(email, kind),
            duration=lambda _: 0.0,
        )
        with serve(service) as url:
            status, _, said = run("verify", path, "-t", "mx", "-o", out, "--backend", url, "-q")
        assert status == 0
        assert "no verdict about 1 address (1 ERROR)" in said
        assert [row["email_status"] for row in rows_of_csv(out)] == ["done", "error"]

    @pytest.mark.slow
    def test_shortly_before_midnight_the_quota_of_the_next_day_is_not_spent(
        self, run, world, tmp_path
    ):
        service = world.service()
        service.clock_offset += 86_400 - (time.time() + service.clock_offset) % 86_400 - 300
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text("email\n" + "".join(f"ada{n}@gmail.com\n" for n in range(9)))
        status, _, _ = run(*asking(world.url, path, out))
        assert (status, "pending" in {row["email_status"] for row in rows_of_csv(out)}) == (3, True)

    def test_a_column_that_must_not_be_replaced_is_found_before_anything_is_spent(
        self, run, tmp_path, monkeypatch
    ):
        rows = [
            {"email": f"ada{n}@gmail.com", "email_verdict": verdict, "email_status": "done"}
            for n, verdict in enumerate(["valid", "risky", "ask Ada"])
        ]
        path = tmp_path / "in.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        monkeypatch.setattr("mailverdict.files.json_lines.ROWS", 1)
        backend = ScriptedBackend()
        monkeypatch.setattr(tables, "chosen_backend", lambda *_, **__: nullcontext(backend))
        status, _, said = run("verify", path, "-c", "email", "-o", tmp_path / "out.csv")
        assert (status, backend.asked) == (2, [])
        assert "(it holds 'ask Ada', which mailverdict never writes there)" in said

    @pytest.mark.slow
    @pytest.mark.parametrize("validation_type", ["mx", "regex"])
    def test_a_row_that_is_too_wide_is_found_before_anything_is_spent(
        self, run, tmp_path, monkeypatch, validation_type
    ):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text("email\n" + "ada@gmail.com\n" * 1_000_000 + "x," * 2_000_000 + "\n")
        backend = ScriptedBackend()
        monkeypatch.setattr(tables, "chosen_backend", lambda *_, **__: nullcontext(backend))
        status, _, said = run("verify", path, "-c", "email", "-t", validation_type, "-o", out)
        assert (status, out.exists()) == (2, False)
        assert not backend.asked or validation_type == "regex"
        assert (
            "in.csv, line 1000002: 2,000,001 columns or more; 16,384 are read at most: give another --delimiter"
            in said
        )

    @pytest.mark.parametrize(
        ("more", "told"),
        [
            (
                ("--report", "nowhere/r.html"),
                "nowhere/r.html cannot be written: there is no directory nowhere",
            ),
            (("--report", "read-only.html"), "read-only.html cannot be written: it is read-only"),
            (("-o", "read-only.csv"), "read-only.csv cannot be written: it is read-only"),
            (
                ("-o", "read-only.csv", "--report", "r.html"),
                "read-only.csv cannot be written: it is read-only",
            ),
            (("-o", "x.xlsx"), "more than 2 rows do not fit a workbook"),
            (("-o", "x.xlsx", "--explode"), "more than 2 rows do not fit a workbook"),
            (("-o", "x.jsonl"), "2 columns are named 'note', which an object of JSON cannot have"),
            (
                ("-o", "x.xlsx", "--report", "./x.xlsx"),
                "--report ./x.xlsx would replace x.xlsx: give another name",
            ),
            (("--report", "in.csv"), "--report in.csv would replace in.csv"),
            (
                ("-o", "list.csv", "--suppress", "list.csv"),
                "--output list.csv would replace list.csv",
            ),
            (("--in-place",), "in.csv cannot be written: it is read-only"),
        ],
    )
    def test_an_output_that_cannot_be_written_is_refused_before_anything_is_asked(
        self, run, tmp_path, monkeypatch, more, told
    ):
        monkeypatch.chdir(tmp_path)
        Path("in.csv").write_text(
            "email,note,note\na@gmail.com; b@gmail.com,,\nc@gmail.com,,\nd@gmail.com,,\n"
        )
        Path("list.csv").write_text("email\nc@gmail.com\n")
        for name in (
            "read-only.html",
            "read-only.csv",
            *(["in.csv"] if more == ("--in-place",) else ()),
        ):
            Path(name).touch()
            Path(name).chmod(0o444)
        before = {path: path.read_bytes() for path in Path().iterdir()}
        monkeypatch.setattr("mailverdict.files.workbook.XLSX_ROWS", 3)
        backend = ScriptedBackend()
        monkeypatch.setattr(tables, "chosen_backend", lambda *_, **__: nullcontext(backend))
        status, _, said = run("verify", "in.csv", "-c", "email", *more)
        assert (status, backend.asked) == (2, [])
        assert told in said
        assert {path: path.read_bytes() for path in Path().iterdir()} == before

    @pytest.mark.parametrize(
        "more",
        [
            ("-o", "mine.xlsx"),
            ("-o", "out.csv", "--report", "mine.xlsx"),
            ("-o", "mine.csv", "--report", "mine.xlsx", "--policy", "balanced"),
            ("-o", "failed.xlsx"),  # beside which a run that fails writes failed.partial.xlsx
        ],
    )
    def test_a_workbook_of_somebody_else_is_not_replaced_and_nothing_is_asked(
        self, run, tmp_path, monkeypatch, more
    ):
        monkeypatch.chdir(tmp_path)
        Path("in.csv").write_text("email\na@gmail.com\n")
        for name in ("mine.xlsx", "failed.partial.xlsx"):
            write_raw(Path(name), FAR)
        before = {path: path.read_bytes() for path in Path().iterdir()}
        backend = ScriptedBackend()
        monkeypatch.setattr(tables, "chosen_backend", lambda *_, **__: nullcontext(backend))
        status, _, said = run("verify", "in.csv", "-c", "email", *more)
        assert (status, backend.asked, said.count("\n")) == (2, [], 1)
        assert said.endswith(
            "did not write, and is not replaced: give another name, or remove it\n"
        )
        assert {path: path.read_bytes() for path in Path().iterdir()} == before

    def test_a_home_directory_is_known_in_every_path(self, run, contacts, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("USERPROFILE", str(tmp_path))
        more = (
            "-c",
            "email",
            "-t",
            "regex",
            "-o",
            "~/out.csv",
            "--report",
            "~/r.html",
            "--suppress",
            "~/contacts.csv",
        )
        assert run("verify", "~/contacts.csv", *more)[0] == 0
        assert (len(rows_of_csv(tmp_path / "out.csv")), (tmp_path / "r.html").exists()) == (4, True)
        assert "is the input" in run("verify", contacts, "-c", "email", "-o", "~/contacts.csv")[2]

    @pytest.mark.parametrize("why", ["gave_up", "uncertain", "refused"])
    def test_rows_that_the_service_left_pending_are_status_4(self, run, tmp_path, monkeypatch, why):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text("email\n" + "".join(f"ada{n}@example.org\n" for n in range(5)))
        emails = [f"ada{n}@example.org" for n in range(5)]
        backend = ScriptedBackend(
            [Settled(settled_rows(emails[:3])), Deferred(tuple(emails[3:]), why)]
        )
        monkeypatch.setattr(tables, "chosen_backend", lambda *_, **__: nullcontext(backend))
        status, printed, said = run(
            "verify", path, "-c", "email", "-o", out, "--json", "--fail-above", "pending=0"
        )
        assert (status, json.loads(printed)["exit_status"]) == (4, 4)
        assert [row["email_status"] for row in rows_of_csv(out)] == ["done"] * 3 + ["pending"] * 2
        assert said.splitlines()[-1].startswith(
            "mailverdict: the service has not answered for all rows: 2 rows are not checked yet"
        )

    def test_a_service_that_is_not_there_is_status_4_and_no_file(self, run, contacts, tmp_path):
        out = tmp_path / "out.csv"
        contacts.write_text("email\nada@example.org\n")
        status, _, said = run(
            "verify",
            contacts,
            "-c",
            "email",
            "-o",
            out,
            "--backend",
            "http://127.0.0.1:9",
            "--journal",
            "none",
        )
        assert (status, out.exists()) == (4, False)
        assert len(said.splitlines()) == 1

    def test_a_failed_run_leaves_the_older_output_and_writes_beside_it(
        self, run, tmp_path, monkeypatch
    ):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text("email\n" + "".join(f"ada{n}@example.org\n" for n in range(6)))
        out.write_text("yesterday")
        pieces = [
            pa.table({"email": [f"ada{n}@example.org" for n in rows]})
            for rows in ((0, 1, 2), (3, 4, 5))
        ]
        script = [
            Settled(settled_rows(pieces[0]["email"].to_pylist())),
            BackendError("the service is down"),
        ]
        backend = ScriptedBackend(script)
        monkeypatch.setattr(DelimitedFile, "read", lambda *_, **__: iter(pieces))
        monkeypatch.setattr(tables, "chosen_backend", lambda *_, **__: nullcontext(backend))
        status, _, said = run("verify", path, "-c", "email", "-o", out)
        assert (status, out.read_text()) == (4, "yesterday")
        rows = rows_of_csv(tmp_path / "out.partial.csv")
        assert [row["email_status"] for row in rows] == ["done"] * 3 + ["pending"] * 3
        assert said.splitlines()[-3:] == [
            f"the run failed: {out} is not changed; what is checked so far is in {tmp_path / 'out.partial.csv'}",
            "3 rows are not checked yet; the next run begins at the first row, unless --journal keeps the answers",
            "mailverdict: the service is down",
        ]
        assert sorted(each.name for each in tmp_path.iterdir()) == [
            "in.csv",
            "out.csv",
            "out.partial.csv",
        ]


@each_row(
    ("path", "partial"),
    [
        ("a/out.csv", "a/out.partial.csv"),
        ("my.data.csv", "my.data.partial.csv"),
        ("x.csv.gz", "x.partial.csv.gz"),
    ],
)
def test_a_partial_output_has_the_same_ending(path, partial):
    assert str(files.partial_path(path)) == partial


def begin(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "mailverdict", *map(str, arguments)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
class TestInterruption:
    @pytest.mark.slow
    # test_stopper.py has each signal without a process.
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_writes_every_row(self, tmp_path, number):
        rows, status = 50_000, 0
        while status == 0:  # it was over before the interrupt came: try with more rows
            rows *= 2
            for each in tmp_path.iterdir():
                each.unlink()
            path, out = big_file(tmp_path, rows), tmp_path / "out.csv"
            with begin(
                "verify", path, "-c", "email", "-t", "regex", "-o", out, "--columns", "status"
            ) as process:
                wait_until(lambda: process.poll() is not None or written_so_far(tmp_path))
                process.send_signal(number)
                _, said = process.communicate()
            status = process.returncode
        assert status == 128 + number, said
        states = states_in_order(out.read_text(), rows)
        pending = states.count("pending")
        left = count_of(pending, "row is", "rows are")
        ending = f"mailverdict: interrupted: {left} not checked yet; the next run begins at the first row"
        assert said.splitlines()[-1] == ending
        assert sorted(each.name for each in tmp_path.iterdir()) == ["big.csv", "out.csv"]

    @pytest.mark.slow  # a process with a large file; tests/cli/test_stopper.py has the second signal
    def test_a_second_ctrl_c_leaves_at_once(self, tmp_path):
        path = big_file(tmp_path, 400_000)
        with begin("verify", path, "-c", "email", "-t", "regex", "-o", "-") as process:
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            wait_for_line(process, "stopping: unfinished rows will be pending")
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=30)
            # One that comes just before a write to a full pipe waits for its end.
            process.send_signal(signal.SIGINT)
            assert process.wait() == 130
        assert [each.name for each in tmp_path.iterdir()] == ["big.csv"]

    @pytest.mark.slow  # a process; the signal above leaves nothing either, and `TestKindsOfFiles` copies standard input
    def test_a_signal_while_standard_input_is_copied_leaves_nothing(self, tmp_path):
        process = subprocess.Popen(
            [*FROM_STANDARD_INPUT, "-o", tmp_path / "out.csv"],
            stdin=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        with process:
            process.stdin.write(b"email\n" + b"ada@example.org\n" * 100_000)
            process.stdin.flush()
            wait_until(
                lambda: (
                    any(tmp_path.iterdir())
                    and psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING
                )
            )
            process.send_signal(signal.SIGHUP)  # while it waits for more
            assert process.wait() == 128 + signal.SIGHUP
        assert list(tmp_path.iterdir()) == []


def big_file(folder, rows):
    path = folder / "big.csv"
    path.write_text(
        "id,email\n" + "".join(f"{n},ada{n}@d{n % 999}.example.org\n" for n in range(rows))
    )
    return path


def states_in_order(text, rows):
    """The status of each row: all rows are there, first those that are done."""
    lines = [line.split(",") for line in text.splitlines()]
    assert [line[0] for line in lines[1:]] == [str(n) for n in range(rows)]
    states = [line[2] for line in lines[1:]]
    pending = states.count("pending")
    assert states == ["done"] * (rows - pending) + ["pending"] * pending
    return states


def wait_for_line(process, start):
    """Read what a process says until a line begins with a text."""
    while not (line := process.stderr.readline()).startswith(start):
        assert line, "the process has ended"


def written_so_far(folder):
    """Octets in the temporary file beside the output."""
    return sum(each.stat().st_size for each in folder.glob(".out.csv-*.part"))


@pytest.mark.slow
def test_a_reader_that_goes_away_leaves_no_traceback(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("email\n" + "ada@example.org\n" * 50_000)
    with begin("verify", path, "-t", "regex", "-o", "-", "-q") as process:
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()
    assert "Traceback" not in said
    assert process.wait() == 0, "`| head` has all that it wants"


class TestKindsOfFiles:
    """Each kind of table file through the command line, in and out."""

    TABLE = pa.table({"id": [1, 2, 3], "mail": ["ada@x.example", "nobody", None]})

    def write(self, path):
        if path.suffix == ".parquet":
            pyarrow.parquet.write_table(self.TABLE, path)
        elif path.suffix == ".feather":
            pyarrow.feather.write_feather(self.TABLE, str(path))
        elif path.suffix == ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in self.TABLE.to_pylist()))
        else:
            path.mkdir()
            pyarrow.parquet.write_table(self.TABLE, path / "part-0.parquet")

    def read(self, path):
        if path.suffix == ".parquet":
            return pyarrow.parquet.read_table(path).to_pylist()
        if path.suffix == ".feather":
            return pyarrow.feather.read_table(str(path)).to_pylist()
        return [json.loads(line) for line in path.read_text().splitlines()]

    @pytest.mark.parametrize("source", ["in.parquet", "in.feather", "in.jsonl", "folder"])
    @pytest.mark.parametrize("target", ["out.parquet", "out.feather", "out.jsonl"])
    def test_every_kind_gives_every_kind(self, run, tmp_path, source, target):
        self.write(tmp_path / source)
        status, _, told = run("verify", tmp_path / source, "-t", "regex", "-o", tmp_path / target)
        assert status == 0, told
        rows = self.read(tmp_path / target)
        assert [row["id"] for row in rows] == [1, 2, 3]
        assert [row["mail_verdict"] for row in rows] == ["valid", "invalid", None]
        assert [row["mail_status"] for row in rows] == ["done", "done", "missing"]

    @pytest.mark.parametrize(
        ("name", "octets"),
        [
            ("in.csv", b'id;"mail"\r\n1;"ada@x.example"\r\n2;nobody\xff\r\n'),
            ("in.jsonl", b'{"id":1.0,"mail":"ada@x.example" }\n{ "mail":"nobody","n":1e400}\r\n'),
        ],
    )
    def test_a_repeated_run_replaces_only_what_is_ours(self, run, tmp_path, name, octets):
        path, out = tmp_path / name, tmp_path / f"out.{name}"
        path.write_bytes(octets)
        assert run("verify", path, "-c", "mail", "-t", "regex", "-o", out)[0] == 0
        once = out.read_bytes()
        for line, copied in zip(octets.splitlines(), once.splitlines(), strict=True):
            assert copied.startswith(line.rstrip(b"}"))
        assert run("verify", out, "-c", "mail", "-t", "regex", "--in-place")[0] == 0
        assert out.read_bytes() == once

    @pytest.mark.parametrize("source", ["in.parquet", "in.feather", "in.jsonl"])
    def test_standard_input_is_recognized_by_its_content(self, run, tmp_path, monkeypatch, source):
        self.write(tmp_path / source)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        with (tmp_path / source).open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            status, printed, told = run(
                "verify", "-", "-t", "regex", "-o", "-", "--columns", "verdict"
            )
        assert status == 0, told
        rows = list(csv.DictReader(io.StringIO(printed)))
        assert [row["mail_verdict"] for row in rows] == ["valid", "invalid", ""]
        assert [each.name for each in tmp_path.iterdir()] == [source]


def write_table(folder, kind, octets):
    """A CSV with these octets, or a workbook with the same cells, where empty ones are those of a merged cell."""
    path = folder / f"in.{kind}"
    if kind == "csv":
        path.write_bytes(octets)
        return path
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for at, row in enumerate(csv.reader(octets.decode().splitlines(), delimiter=";")):
            sheet.write_row(at, 0, [cell or None for cell in row])
        if octets.startswith(b"Name;E-Mail;;"):
            sheet.merge_range("B1:D1", "E-Mail")
    return path


SPANNED = b'Name;E-Mail;;;Phone\r\nAda;ada@one.example;ada@two.example;;12\r\n"Bo";bo@one.example;;"bo@four.example";\r\n'
REPEATED = b"Email;Name;Email\nada@one.example;Ada;ada@two.example\nbo@one.example;Bo;\n"
ONE_OF_TWO = b"Email;Name;Email\r\n;Ada;ada@two.example\r\n;Bo;bo@two.example\r\n"


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
class TestHeaderThatDoesNotNameEachColumn:
    @pytest.mark.slow
    @pytest.mark.parametrize("given", [(), ("-c", "E-Mail")])
    def test_addresses_in_columns_without_a_name_are_told_and_verified_by_their_position(
        self, run, tmp_path, kind, given
    ):
        path, out, again = (
            write_table(tmp_path, kind, SPANNED),
            tmp_path / "out.csv",
            tmp_path / "again.csv",
        )
        options = ("-t", "regex", "--columns", "verdict", "--no-clean")
        status, _, said = run("verify", path, *given, "-o", out, *options)
        assert status == 0
        note = next(
            line for line in said.splitlines() if line.startswith("note: addresses are also in ")
        )
        assert re.findall("'([^']+)'", note) == ["column_3", "column_4"]
        assert "--column" in note
        status, _, said = run("verify", out, "-c", "column_4", "-o", again, *options)
        assert (status, re.findall("'([^']+)'", said)) == (0, ["E-Mail", "column_3"])
        delimiter = ";" if kind == "csv" else ","
        assert [line.split(delimiter)[-2:] for line in again.read_text().splitlines()] == [
            ["E-Mail_verdict", "column_4_verdict"],
            ["valid", ""],
            ["valid", "valid"],
        ]

    def test_the_octets_of_a_header_without_names_come_back(self, run, tmp_path, kind):
        path, out = write_table(tmp_path, kind, SPANNED), tmp_path / "out.csv"
        only = ("--columns", "verdict", "--no-clean", "-q")
        assert run("verify", path, "-c", "column_4", "-t", "regex", "-o", out, *only)[0] == 0
        if kind == "csv":
            own, end = SPANNED.splitlines(), (b";column_4_verdict", b";", b";valid")
            assert out.read_bytes() == b"".join(
                a + b + b"\r\n" for a, b in zip(own, end, strict=True)
            )
        else:
            assert out.read_bytes().startswith(
                b"Name,E-Mail,column_3,column_4,Phone,column_4_verdict\n"
            )

    @pytest.mark.slow
    @pytest.mark.parametrize("given", [(), ("-c", "Email")])
    @pytest.mark.parametrize("command", ["verify", "plan"])
    def test_one_of_two_columns_of_a_name_is_used_if_it_alone_has_addresses(
        self, run, tmp_path, kind, command, given
    ):
        path = write_table(tmp_path, kind, ONE_OF_TWO)
        status, _, said = run(command, path, *given, "-t", "regex")
        assert (status, said.count("using column 'column_3'")) == (0, 1)
        assert "of 2 columns named 'Email' the only one with addresses" in said

    @pytest.mark.parametrize("given", [(), ("-c", "Email")])
    @pytest.mark.parametrize("command", ["verify", "plan", "clean", "audit"])
    def test_two_columns_of_a_name_with_addresses_are_an_error_that_says_which(
        self, run, tmp_path, kind, command, given
    ):
        status, _, said = run(command, write_table(tmp_path, kind, REPEATED), *given)
        assert (
            status,
            "the column name 'Email' occurs 2 times (columns 1 and 3 of 3)" in said,
        ) == (2, True)
        assert "or give column_1 or column_3" in said

    @pytest.mark.parametrize(
        ("number", "verdicts"), [(1, [b"valid", b"valid"]), (3, [b"valid", b""])]
    )
    def test_each_of_them_can_be_given_by_its_position(self, run, tmp_path, kind, number, verdicts):
        path, out = write_table(tmp_path, kind, REPEATED), tmp_path / "out.csv"
        only = ("--columns", "verdict", "--no-clean", "-q")
        assert (
            run("verify", path, "-c", f"column_{number}", "-t", "regex", "-o", out, *only)[0] == 0
        )
        lines, delimiter = out.read_bytes().splitlines(), b";" if kind == "csv" else b","
        assert [line.rpartition(delimiter)[2] for line in lines] == [
            f"column_{number}_verdict".encode(),
            *verdicts,
        ]
        if kind == "csv":
            assert [line.rpartition(b";")[0] for line in lines] == REPEATED.splitlines()

    def test_json_lines_have_all_columns(self, run, tmp_path, kind):
        path, out = write_table(tmp_path, kind, SPANNED), tmp_path / "out.jsonl"
        assert run("verify", path, "-t", "regex", "-o", out, "-q")[0] == 0
        rows = list(map(json.loads, out.read_text().splitlines()))
        assert [row["column_3"] or None for row in rows] == ["ada@two.example", None]
        assert [row["column_4"] or None for row in rows] == [None, "bo@four.example"]


def test_the_page_does_not_open_a_column_that_it_could_not_name(run, tmp_path):
    status, _, said = run("audit", write_table(tmp_path, "csv", ONE_OF_TWO))
    assert (status, "occurs 2 times (columns 1 and 3 of 3)" in said) == (2, True)
