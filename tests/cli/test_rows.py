"""`mailverdict duplicates` and `suppress` over files, and `verify --suppress`."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import mailverdict as mv
from tests.doubles.simulated_origins import simulated_list
from tests.doubles.tables import each_row, rows_of_csv

CELLS = [
    "ada@firm.example; Bob <bob@firm.example>",
    "A.da@gmail.com",
    "cy@firm.example",
    "ada+news@googlemail.com",
    "",
    "nobody",
]


@pytest.fixture
def quoted(tmp_path):
    path = tmp_path / "quoted.csv"
    pd.DataFrame({"id": range(len(CELLS)), "email": CELLS}).to_csv(path, index=False)
    return path


def test_duplicates_are_those_of_the_library_and_no_cell_changes(run, quoted, tmp_path):
    out = tmp_path / "out.csv"
    status, _, told = run("duplicates", quoted, "-c", "email", "-o", out)
    assert (status, told) == (
        0,
        f"rows: 6; distinct mailboxes: 2; rows that repeat an earlier one: 1\nwritten: {out}\n",
    )
    found = mv.duplicates(CELLS).astype(object)
    rows = rows_of_csv(out)
    assert [row["email"] for row in rows] == CELLS
    for name in ("identity", "duplicate_of", "copies"):
        assert [row[f"email_{name}"] for row in rows] == [
            "" if pd.isna(v) else str(v) for v in found[name]
        ], name


@pytest.mark.slow
def test_duplicates_are_found_over_the_pieces_of_a_file(run, tmp_path):
    path, out = tmp_path / "long.csv", tmp_path / "out.csv"
    size = 260_000  # more than one piece
    pd.DataFrame({"email": [f"a{n % 200_000}@firm.example" for n in range(size)]}).to_csv(
        path, index=False
    )
    assert run("duplicates", path, "-o", out, "-q")[0] == 0
    last = pd.read_csv(out).iloc[-1]
    assert (last["email_duplicate_of"], last["email_copies"]) == (59_999, 2)


def test_suppressed_rows_are_marked_and_wrong_entries_are_told(run, quoted, tmp_path):
    listed, out = tmp_path / "unsubscribed.txt", tmp_path / "out.csv"
    listed.write_text("# since May\nada@gmail.com\n@firm.example\nnot an address\n")
    status, _, told = run("suppress", quoted, listed, "-c", "email", "-o", out)
    assert status == 0
    assert told.startswith(
        "note: 1 of 3 entries of the suppression list are neither an address nor a domain"
    )
    assert told.endswith(f"rows: 6; rows on the list: 3\nwritten: {out}\n")
    assert [row["email_suppressed"] for row in rows_of_csv(out)] == [
        "",
        "true",
        "true",
        "true",
        "",
        "",
    ]


def test_verify_drops_what_is_on_the_suppression_list(run, quoted, tmp_path):
    listed, out = tmp_path / "unsubscribed.csv", tmp_path / "out.csv"
    listed.write_text("who\nADA@gmail.com\n")
    common = ("-c", "email", "-t", "regex", "--policy", "balanced")
    status, _, told = run("verify", quoted, "-o", out, *common, "--suppress", listed)
    assert status == 0
    assert "on the suppression list: 2 rows" in told
    rows = rows_of_csv(out)
    assert [row["email_suppressed"] for row in rows] == ["", "true", "false", "true", "", ""]
    assert [row["email_action_why"] for row in rows[1:4:2]] == [
        "on your suppression list, or a column says no"
    ] * 2
    assert rows[2]["email_action"] == "send"


def test_report_of_a_file_knows_its_suppressed_rows(run, quoted, tmp_path):
    listed, out, made = (
        tmp_path / "unsubscribed.txt",
        tmp_path / "out.csv",
        tmp_path / "report.xlsx",
    )
    listed.write_text("gmail.com\n")
    assert (
        run("verify", quoted, "-o", out, "-c", "email", "-t", "regex", "-q", "--suppress", listed)[
            0
        ]
        == 0
    )
    assert run("report", out, "-c", "email", "-o", made, "-q")[0] == 0
    dropped = pd.read_excel(made, sheet_name="Remove", engine="calamine")
    why = "Take it off the list: on your suppression list, or a column says no"
    assert dropped["What to do"].tolist().count(why) == 2


@pytest.mark.parametrize("command", ["duplicates", "suppress"])
def test_the_cells_of_a_csv_are_copied_byte_for_byte(run, tmp_path, command):
    path, listed, out = tmp_path / "bytes.csv", tmp_path / "list.txt", tmp_path / "out.csv"
    lines = [f"{n};a{n}@firm.example;".encode() + b'"x;\xe9"' for n in range(5)]
    path.write_bytes(b"id;email;note\r\n" + b"\r\n".join(lines) + b"\r\n")
    listed.write_text("a1@firm.example\n")
    against = (listed,) if command == "suppress" else ()
    assert run(command, path, *against, "-c", "email", "-o", out, "-q")[0] == 0
    written = out.read_bytes().split(b"\r\n")
    assert [line.startswith(own + b";") for line, own in zip(written[1:], lines, strict=False)] == [
        True
    ] * 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("suppress", "{file}", "{folder}/none.txt", "-c", "email"), "no such file"),
        (("duplicates", "{file}", "-c", "mail"), "no column 'mail'"),
        (("duplicates", "{file}", "-c", "email", "-o", "{file}"), "is the input"),
        (
            ("verify", "{file}", "-c", "email", "-t", "regex", "--suppress", "{folder}/none.csv"),
            "no such file",
        ),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(run, quoted, tmp_path, arguments, message):
    status, out, told = run(*(each.format(file=quoted, folder=tmp_path) for each in arguments))
    assert (status, out) == (2, "")
    assert told.startswith("mailverdict: ")
    assert message in told
    assert told.count("\n") == 1


MESSY = [
    "Ada <ada@firm.example>",
    "bo@firm.example",
    "cy at firm.example",
    "",
    "di@firm.example; ed@firm.example",
]


def test_a_list_that_a_command_reads_is_not_replaced(run, quoted, tmp_path):
    listed = tmp_path / "list.csv"
    listed.write_text("email\nada@example.org\n")
    for command in (
        ("suppress", quoted, listed),
        ("outcomes", quoted, "--bounces", listed),
        ("report", quoted, "--earlier", listed),
    ):
        status, _, told = run(*command, "-c", "email", "-o", listed)
        assert (status, told) == (
            2,
            f"mailverdict: --output {listed} would replace {listed}: give another name\n",
        )


def test_verify_repairs_each_cell_and_keeps_the_users_own(run, tmp_path):
    path, out = tmp_path / "messy.csv", tmp_path / "out.csv"
    pd.DataFrame({"email": MESSY, "n": range(len(MESSY))}).to_csv(path, index=False)
    assert run("verify", path, "-c", "email", "-t", "regex", "-o", out, "-q")[0] == 0
    rows = rows_of_csv(out)
    assert [row["email"] for row in rows] == MESSY
    assert [row["email_clean"] for row in rows] == [
        "ada@firm.example",
        "bo@firm.example",
        "",
        "",
        "",
    ]
    assert [row["email_verdict"] for row in rows] == ["valid", "valid", "invalid", "", "unknown"]
    assert rows[2]["email_suggestion"] == "cy@firm.example"
    assert run("verify", path, "-c", "email", "-t", "regex", "-o", out, "-q", "--no-clean")[0] == 0
    rows = rows_of_csv(out)
    assert "email_clean" not in rows[0]
    assert [row["email_verdict"] for row in rows] == ["invalid", "valid", "invalid", "", "invalid"]


def test_plan_counts_the_repaired_addresses(run, tmp_path):
    path = tmp_path / "messy.csv"
    pd.DataFrame({"email": MESSY}).to_csv(path, index=False)
    for option, unique in (("--clean", 2), ("--no-clean", 1)):
        status, out, _ = run("plan", path, "--offline", "-c", "email", "-t", "mx", "--json", option)
        assert (status, json.loads(out)["unique"]) == (0, unique), option


def test_explode_gives_each_address_a_row_and_keeps_the_other_cells(run, tmp_path):
    path, out = tmp_path / "messy.csv", tmp_path / "out.csv"
    pd.DataFrame({"email": MESSY, "note": ["-5.3e-05", "=x", "", "é", "a,b"]}).to_csv(
        path, index=False
    )
    status, _, told = run("explode", path, "-c", "email", "-o", out)
    assert (status, told) == (0, f"rows: 5; rows after: 6\nwritten: {out}\n")
    rows = rows_of_csv(out)
    assert [row["email"] for row in rows] == [*MESSY[:-1], "di@firm.example", "ed@firm.example"]
    assert [row["note"] for row in rows] == ["-5.3e-05", "=x", "", "é", "a,b", "a,b"]
    assert [row["email_part"] for row in rows] == ["1"] * 5 + ["2"]


def test_verify_explodes_cleans_and_suppresses_in_this_order(run, tmp_path):
    path, listed, out = tmp_path / "messy.csv", tmp_path / "list.txt", tmp_path / "out.csv"
    pd.DataFrame({"email": MESSY, "n": range(len(MESSY))}).to_csv(path, index=False)
    listed.write_text("ada@firm.example\ned@firm.example\n")
    options = ("--explode", "--suppress", listed, "--policy", "balanced", "--json")
    status, said, _ = run("verify", path, "-c", "email", "-t", "regex", "-o", out, *options)
    assert status == 0
    counts = json.loads(said)
    assert [counts[name] for name in ("rows", "valid", "invalid", "missing", "cleaned")] == [
        6,
        4,
        1,
        1,
        1,
    ]
    rows = rows_of_csv(out)
    assert [row["email_action"] for row in rows] == [
        "drop",
        "send",
        "review",
        "unchecked",
        "send",
        "drop",
    ]
    assert [row["email_suppressed"] for row in rows] == ["true", "false", "", "", "false", "true"]
    assert [row["n"] for row in rows] == ["0", "1", "2", "3", "4", "4"]


def test_duplicates_reads_a_column_of_categories(run, tmp_path):
    path = tmp_path / "in.parquet"
    cells = pd.Categorical(["ada@firm.example", "ada@firm.example", None])
    pd.DataFrame({"email": cells}).to_parquet(path)
    status, _, told = run("duplicates", path, "-o", tmp_path / "out.csv")
    assert status == 0
    assert "distinct mailboxes: 1; rows that repeat an earlier one: 1" in told


def test_a_quote_that_stays_open_is_told_before_a_service_is_asked(run, tmp_path):
    path = tmp_path / "in.csv"
    path.write_text(
        'email,note\nada@firm.example,5" pipe\nbob@firm.example,"open\ncy@firm.example,z\n'
    )
    status, _, told = run("verify", path, "--backend", "http://127.0.0.1:9", "--journal", "none")
    assert status == 2
    assert (
        "in.csv ends inside quotes: it is truncated, or a quote is not doubled; the row begins in line 3"
        in told
    )


class TestEstimate:
    @pytest.fixture
    def people(self, tmp_path):
        path = tmp_path / "people.csv"
        names = [
            f"{n}@{domain}"
            for n in ("ada", "nobody", "bo")
            for domain in ("gmail.com", "gone.example")
        ]
        pd.DataFrame({"email": [*names, "nobody"]}).to_csv(path, index=False)
        return path

    def test_a_table_is_printed(self, run, people):
        status, shown, _ = run(
            "estimate", people, "-c", "email", "--sandbox", "--journal", "none", "-q"
        )
        assert status == 0
        assert shown.splitlines()[3].split() == ["Invalid", "71.4%", "5", "5"]
        assert shown.splitlines()[-1].startswith("from all addresses; 3 addresses left, ")

    def test_json_has_it_all(self, run, people):
        common = ("--sandbox", "--journal", "none", "-q", "--json")
        found = json.loads(
            run("estimate", people, "-c", "email", "--sample", "2", "--seed", "3", *common)[1]
        )
        assert (found["sampled"], found["population"], found["cost"]["addresses"]) == (2, 3, 3)
        assert [each["bucket"] for each in found["shares"]][:3] == ["valid", "risky", "invalid"]
        assert found["operators"][0]["operator"] == "bigmail.example"

    def test_wrong_usage_is_status_2(self, run, people):
        assert run("estimate", people, "-c", "mail", "--sandbox")[0] == 2
        assert run("estimate", people, "--sample", "0", "--sandbox")[0] == 2


class TestBreakdown:
    @pytest.fixture
    def verified(self, tmp_path):
        path = tmp_path / "verified.csv"
        simulated_list(1, has_effect=True).to_csv(path, index=False)
        return path

    def test_columns_are_ranked(self, run, verified):
        status, shown, _ = run("breakdown", verified)
        assert status == 0
        lines = shown.splitlines()
        assert lines[0].startswith("1,500 people, ")
        assert lines[1].startswith("source “Fair”: ")
        assert "say nothing: words_" in shown

    def test_a_column_is_counted_by_its_groups(self, run, verified):
        status, shown, _ = run("breakdown", verified, "source", "--top", "2", "-c", "email")
        assert status == 0
        assert shown.splitlines()[1].split()[:3] == ["source", "rows", "people"]
        assert shown.splitlines()[2].split()[:3] == ["Fair", "100", "100"]
        assert (
            run("breakdown", verified, "domain", "-c", "email")[1]
            .splitlines()[2]
            .startswith("firm ")
        )

    def test_json_has_the_table(self, run, verified):
        found = json.loads(run("breakdown", verified, "source", "-c", "email", "--json")[1])
        assert (found[0]["source"], found[0]["people"]) == ("Fair", 100)
        ranked = json.loads(run("breakdown", verified, "-c", "email", "--json", "--top", "1")[1])
        assert (ranked[0]["column"], ranked[0]["says"]) == ("source", "differs")

    def test_bounces_are_read(self, run, verified, tmp_path):
        reports = tmp_path / "bounces.csv"
        reports.write_text("email,event,reason\np1@firm.example,bounce,550 5.1.1 User unknown\n")
        columns = "address=email,outcome=event,diagnostic=reason"
        options = ("--what", "bounced", "--bounces", reports, "--bounce-columns", columns)
        status, shown, _ = run("breakdown", verified, "source", "-c", "email", *options)
        assert status == 0
        assert "all people with an address count as mailed" in shown

    def test_wrong_usage_is_status_2_and_says_what_to_do(self, run, verified):
        for options, message in (
            (("sorce",), "no column 'sorce' (did you mean 'source'?)"),
            (("email",), "by='email' is the verified column"),
            (("source", "--what", "bad"), "--what 'bad': give one of"),
            (("source", "--what", "bounced"), "--what bounced: give --bounces"),
            (("source", "--bounces", "x.csv"), "--bounces goes with --what bounced"),
        ):
            status, _, told = run("breakdown", verified, "-c", "email", *options)
            assert status == 2
            assert message in told

    def test_a_report_shows_where_they_come_from(self, run, verified, tmp_path):
        page = tmp_path / "r.html"
        assert run("report", verified, "-c", "email", "-o", page, "--by", "words_2")[0] == 0
        text = page.read_text(encoding="utf-8")
        for title in ("Where they come from", "By words 2", "By source"):
            assert f"<h2>{title}</h2>" in text
        status, _, told = run("report", verified, "-c", "email", "-o", page, "--by", "sorce")
        assert status == 2
        assert "no column 'sorce'" in told

    def test_verify_reports_it_in_one_go(self, run, verified, tmp_path):
        contacts = pd.read_csv(verified)[["email", "source"]]
        contacts.to_csv(tmp_path / "contacts.csv", index=False)
        page = tmp_path / "r.html"
        options = ("-t", "regex", "-o", tmp_path / "v.csv", "--report", page)
        assert run("verify", tmp_path / "contacts.csv", "-c", "email", *options)[0] == 0
        assert "<h2>By source</h2>" in page.read_text(encoding="utf-8")


class TestOperators:
    @pytest.fixture
    def verified(self, tmp_path):
        path = tmp_path / "verified.csv"
        people = ["ada@gmail.com", "nobody@gmail.com", "ada@yahoo.com", "nobody"]
        with mv.sandbox.World() as world:
            out = mv.verify(
                pd.DataFrame({"email": people}),
                "email",
                validation_type="smtp",
                backend=world.backend,
                columns="all",
            )
        out.to_csv(path, index=False)
        return path

    def test_operators_are_counted_and_little_is_explained(self, run, verified):
        status, shown, _ = run("operators", verified)
        assert status == 0
        assert [line.split() for line in shown.splitlines()[1:3]] == [
            ["bigmail.example", "2", "2", "100.0%", "0", "0", "0", "0", "1"],
            ["oldmail.example", "1", "0", "0.0%", "1", "0", "0", "0", "0"],
        ]
        assert (
            shown.splitlines()[3]
            == "  1 of 1 accept every address, so an accepted one proves little"
        )

    def test_json_has_the_table(self, run, verified):
        found = json.loads(run("operators", verified, "-c", "email", "--top", "1", "--json")[1])
        assert [(each["operator"], each["clear"], each["note"]) for each in found] == [
            ("bigmail.example", 2, None)
        ]

    def test_a_file_without_mail_servers_says_what_to_do(self, run, verified):
        pd.read_csv(verified).drop(columns=["email_operator", "email_mx_records"]).to_csv(
            verified, index=False
        )
        status, _, told = run("operators", verified, "-c", "email")
        assert (status, "verify with columns='all'" in told) == (2, True)


class TestOutcomes:
    @pytest.fixture
    def verified(self, tmp_path):
        path = tmp_path / "verified.csv"
        frame = pd.DataFrame(
            {"email": ["ada@firm.example", "bo@firm.example", "cy@"], "sent": ["yes", "no", "no"]}
        )
        mv.verify(frame, "email", validation_type="regex", columns="all").to_csv(path, index=False)
        return path

    @pytest.fixture
    def bounces(self, tmp_path):
        path = tmp_path / "bounces.csv"
        path.write_text(
            "email,created,status,reason\nBO@firm.example,1772529300,5.1.1,550 5.1.1 =User unknown\n"
            "zoe@firm.example,1772529300,5.1.1,550 5.1.1 User unknown\nnobody,1,5.1.1,\n"
        )
        return path

    def test_counts_are_printed_and_wrong_rows_written(self, run, verified, bounces, tmp_path):
        out = tmp_path / "wrong.csv"
        status, shown, told = run(
            "outcomes", verified, "-c", "email", "--bounces", bounces, "-o", out
        )
        assert status == 0
        assert shown.splitlines()[1].split() == [
            "verdict",
            "valid",
            "2",
            "1",
            "50.0%",
            "9.5%",
            "to",
            "90.5%",
            "0",
            "0",
        ]
        assert (
            "note: 1 of 3 mails and rows could not be read: bounces.csv, row 3: 'nobody' is not an address"
            in told
        )
        assert (
            "addresses with a report: 1 mailed, 1 others; rows whose verdict was wrong: 1" in told
        )
        assert [row["email"] for row in rows_of_csv(out)] == ["bo@firm.example"]

    @pytest.mark.slow
    def test_what_a_mail_server_said_is_not_a_formula(self, run, verified, bounces, tmp_path):
        bounces.write_text(
            "email,created,status,reason\nbo@firm.example,1772529300,5.1.1,=1+1 User unknown\n"
        )
        out = tmp_path / "wrong.csv"
        assert (
            run("outcomes", verified, "-c", "email", "--bounces", bounces, "-o", out, "-q")[0] == 0
        )
        assert [row["email_outcome_diagnostic"] for row in rows_of_csv(out)] == [
            "'=1+1 User unknown"
        ]

    @pytest.mark.slow
    def test_columns_of_an_export_that_is_not_known_are_given(
        self, run, verified, bounces, tmp_path
    ):
        bounces.write_text("who,what\nbo@firm.example,hard\n")
        arguments = ("outcomes", verified, "-c", "email", "--bounces", bounces, "-q")
        status, _, told = run(*arguments)
        assert (status, "--bounce-columns address=" in told) == (2, True)
        status, shown, _ = run(
            *arguments, "--json", "--bounce-columns", "address=who, outcome=what"
        )
        assert (status, json.loads(shown)["contradicted"]) == (0, 1)
        status, _, told = run(*arguments, "--bounce-columns", "who,outcome=what")
        assert (status, "'who' names no column; write address=Recipient" in told) == (2, True)
        report = (
            "report",
            verified,
            "-c",
            "email",
            "-o",
            tmp_path / "report.html",
            "--bounces",
            bounces,
        )
        assert run(*report, "--bounce-columns", "address=who,outcome=what")[0] == 0

    @pytest.mark.slow
    def test_json_has_the_same_numbers(self, run, verified, bounces):
        status, shown, _ = run(
            "outcomes", verified, "-c", "email", "--bounces", bounces, "--json", "-q"
        )
        found = json.loads(shown)
        assert (status, found["contradicted"], found["matched"], found["unmatched"]) == (0, 1, 1, 1)
        assert {(each["by"], each["value"]): each["hard"] for each in found["counts"]}[
            ("verdict", "valid")
        ] == 1

    @pytest.mark.slow
    def test_only_mailed_rows_count(self, run, verified, bounces):
        _, shown, _ = run(
            "outcomes",
            verified,
            "-c",
            "email",
            "--bounces",
            bounces,
            "--mailed",
            "sent",
            "--json",
            "-q",
        )
        assert json.loads(shown)["contradicted"] == 0
        status, _, told = run(
            "outcomes", verified, "-c", "email", "--bounces", bounces, "--mailed", "email_error"
        )
        assert (status, "it needs true or false" in told) == (2, True)

    @pytest.mark.slow
    def test_the_report_command_shows_them(self, run, verified, bounces, tmp_path):
        page = tmp_path / "r.html"
        assert (
            run("report", verified, "-c", "email", "-o", page, "--bounces", bounces, "-q")[0] == 0
        )
        assert "Was the verdict right?" in page.read_text(encoding="utf-8")

    def test_a_mailbox_that_is_not_there_is_an_error(self, run, verified, tmp_path):
        status, _, told = run("outcomes", verified, "--bounces", tmp_path / "none")
        assert (status, "no such file or directory" in told) == (2, True)


@pytest.mark.slow
def test_a_verified_column_is_found_before_one_with_more_addresses(run, tmp_path):
    frame = pd.DataFrame({"work": ["a@x.org", "b@x.org"], "home": ["c@x.org", "nobody"]})
    verified, reports = tmp_path / "verified.csv", tmp_path / "bounces.csv"
    mv.verify(frame, "home", validation_type="regex", columns="short").to_csv(verified, index=False)
    reports.write_text("address,outcome,diagnostic\nc@x.org,hard,550 5.1.1 User unknown\n")
    columns = "address=address,outcome=outcome,diagnostic=diagnostic"
    outcomes = ("outcomes", verified, "--bounces", reports, "--bounce-columns", columns)
    for command in (("report", verified, "-o", tmp_path / "r.html"), outcomes):
        status, _, told = run(*command)
        assert (status, "using column 'home', which was verified" in told) == (0, True)


EXPORT = (
    "Email,owner,Unsubscribed from all email,Status\n"
    "ada@firm.example,ann@shop.example,,subscribed\n"
    "bo@firm.example,ann@shop.example,true,subscribed\n"
    "cy@firm.example,ben@shop.example,,cleaned\n"
    "bo@firm.example,ben@shop.example,,subscribed\n"
    "Ada <ada@firm.example>,ben@shop.example,,subscribed\n"
)


@pytest.fixture
def export(tmp_path):
    path = tmp_path / "export.csv"
    path.write_text(EXPORT)
    return path


def test_columns_that_say_no_are_offered_with_their_option_and_not_applied(run, export, tmp_path):
    out = tmp_path / "out.csv"
    status, _, told = run("verify", export, "-t", "regex", "-o", out)
    assert status == 0
    offered = "--suppress-where 'Unsubscribed from all email=true'"
    assert (
        f"note: Unsubscribed from all email: 1 row says true; to take them off: {offered}" in told
    )
    assert (
        "note: Status: 1 row says cleaned; to take them off: --suppress-where Status=cleaned"
        in told
    )
    assert "Email_suppressed" not in rows_of_csv(out)[0]


def test_rows_are_marked_by_their_own_columns_and_with_them_all_rows_of_the_mailbox(
    run, export, tmp_path
):
    out = tmp_path / "out.csv"
    where = (
        "--suppress-where",
        "Unsubscribed from all email=yes",
        "--suppress-where",
        "Status=CLEANED",
    )
    status, _, told = run("suppress", export, *where, "-o", out)
    assert status == 0
    assert "Unsubscribed from all email: 1 row says yes; their people are marked" in told
    marked = [row["Email_suppressed"] for row in rows_of_csv(out)]
    assert marked == ["false", "true", "true", "true", "false"]
    status, _, _ = run("verify", export, "-t", "regex", "--policy", "balanced", *where, "-o", out)
    assert status == 0
    rows = rows_of_csv(out)
    assert [row["Email_action"] for row in rows] == ["send", "drop", "drop", "drop", "drop"]
    assert rows[4]["Email_action_why"] == "the same mailbox as row 1"


@each_row(
    ("arguments", "said"),
    [
        (("--suppress-where", "Status=gone"), "has 'gone'; it has 'subscribed', 'cleaned'"),
        (("--suppress-where", "Statu=cleaned"), "did you mean 'Status'"),
        (("--suppress-where", "Status"), "give a column and a value of it"),
        ((), "give a list of people who must not be mailed, or --suppress-where"),
        (("--against-column", "x"), "give a list of people who must not be mailed"),
    ],
)
def test_what_marks_nobody_is_an_error(run, export, tmp_path, arguments, said):
    status, _, told = run("suppress", export, *arguments, "-o", tmp_path / "out.csv")
    assert status == 2
    assert said in told
    assert not (tmp_path / "out.csv").exists()


def test_one_row_of_a_mailbox_is_sent_in_a_file_with_a_policy(run, export, tmp_path):
    out, made = tmp_path / "out.csv", tmp_path / "report.xlsx"
    common = ("verify", export, "-t", "regex", "--policy", "balanced", "-o", out)
    status, _, told = run(*common)
    assert status == 0
    assert "2 rows have a mailbox that an earlier row is sent at: dropped; --keep-repeats" in told
    rows = rows_of_csv(out)
    assert [row["Email_action"] for row in rows] == ["send", "send", "send", "drop", "drop"]
    assert rows[3]["Email_action_why"] == "the same mailbox as row 2"
    assert run("report", out, "-c", "Email", "-o", made, "-q")[0] == 0
    assert len(pd.read_excel(made, sheet_name="Send list", engine="calamine")) == 3
    assert run(*common, "--keep-repeats")[0] == 0
    assert [row["Email_action"] for row in rows_of_csv(out)] == ["send"] * 5
    assert run("verify", export, "-t", "regex", "--keep-repeats", "-o", out)[0] == 2


def test_two_likely_columns_stop_the_command_with_both_names(run, tmp_path):
    path, out = tmp_path / "two.csv", tmp_path / "out.csv"
    lines = [f"p{number}@firm.example,p{number}@home.example" for number in range(20)]
    path.write_text("\n".join(["work email,home email", *lines]) + "\n")
    for command in ("verify", "clean", "plan", "duplicates"):
        more = () if command == "plan" else ("-o", out)
        status, _, told = run(command, path, *more)
        assert status == 2
        assert "work email (20 of 20 rows filled" in told
        assert "or home email (20 of 20 rows filled" in told
        assert "name the one that is meant with --column" in told
    assert not out.exists()
    status, _, _ = run("verify", path, "-c", "home email", "-t", "regex", "-o", out)
    assert status == 0


def test_the_column_of_a_suppression_list_can_be_given(run, export, tmp_path):
    listed, out = tmp_path / "list.csv", tmp_path / "out.csv"
    listed.write_text("name,added_by\nBo,bo@firm.example\nCy,cy@firm.example\n")
    status, _, told = run("suppress", export, listed, "-o", out)
    assert status == 2
    assert "--against-column" in told
    given = ("--against-column", "added_by")
    assert run("suppress", export, listed, *given, "-o", out, "-q")[0] == 0
    marked = [row["Email_suppressed"] for row in rows_of_csv(out)]
    assert marked == ["false", "true", "true", "true", "false"]
    assert run("verify", export, "-t", "regex", *given, "-o", out)[0] == 2
