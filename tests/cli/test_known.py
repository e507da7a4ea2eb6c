"""`verify --known`, `plan --known`, `estimate --known` and `compare`: results of other verifiers on the command line."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.sandbox import World
from tests.doubles.tables import each_row, rows_of_csv

LIST = [
    "ada@plain.example",
    "bo@plain.example",
    "Cy <cy@plain.example>",
    "bo@plain.example",
    "",
    "di@gone.example",
]


@pytest.fixture(scope="module")
def world():
    with World() as opened:
        yield opened


@pytest.fixture
def contacts(tmp_path):
    path = tmp_path / "contacts.csv"
    pd.DataFrame({"id": range(len(LIST)), "email": LIST}).to_csv(path, index=False)
    return path


@pytest.fixture
def export(tmp_path):
    path = tmp_path / "export.csv"
    path.write_text(
        "E-Mail,ZB Status,ZB Sub Status\nbo@plain.example,invalid,mailbox_not_found\ncy@plain.example,valid,\n"
        "ada@plain.example,unknown,greylisted\n"
    )
    return path


@pytest.mark.parametrize("through", ["service", "here", "regex"])
def test_verify_asks_only_what_the_export_left_open(
    run, contacts, export, world, tmp_path, through
):
    out = tmp_path / "out.csv"
    resolver = world.backend.settings.resolver
    way = {
        "service": ("--backend", world.url, "--journal", "none"),
        "here": ("--resolver", resolver, "--no-resolver-check"),
        "regex": ("-t", "regex"),
    }
    used = mv.quota(world.url).used
    status, _, told = run(
        "verify", contacts, "-c", "email", "--known", export, "-o", out, *way[through]
    )
    assert status == 0
    assert (
        f"{export}: 2 addresses are settled and not asked; the answers are without dates\n" in told
    )
    rows = rows_of_csv(out)
    assert [row["email"] for row in rows] == LIST
    here = "remote" if through == "service" else "local"
    assert [row["email_source"] for row in rows] == [here, *["ZeroBounce"] * 3, "", here]
    assert [row["email_verdict"] for row in rows][:4] == ["valid", "invalid", "valid", "invalid"]
    assert mv.quota(world.url).used - used == (2 if through == "service" else 0)


def test_plan_shows_what_it_saves(run, contacts, export, world):
    arguments = (
        "plan",
        contacts,
        "-c",
        "email",
        "--backend",
        world.url,
        "--journal",
        "none",
        "--known",
        export,
    )
    status, out, _ = run(*arguments)
    assert status == 0
    assert re.search(r"settled by another verifier \(never sent\) +2\n", out)
    found = json.loads(run(*arguments, "--json")[1])
    assert (found["unique"], found["given"], found["to_submit"]) == (4, 2, 2)


@pytest.mark.slow
def test_an_estimate_draws_from_what_is_open(run, contacts, export, world):
    arguments = (
        "estimate",
        contacts,
        "-c",
        "email",
        "--backend",
        world.url,
        "--journal",
        "none",
        "--json",
    )
    resolver = ("--resolver", world.backend.settings.resolver, "--no-resolver-check", "-q")
    whole, rest = (
        json.loads(run(*arguments, *resolver, *known)[1]) for known in ((), ("--known", export))
    )
    assert (whole["population"], rest["population"]) == (3, 1)


def test_an_output_of_ours_is_known_too(run, contacts, tmp_path):
    out = tmp_path / "out.csv"
    assert run("verify", contacts, "-c", "email", "-t", "regex", "-o", out, "-q")[0] == 0
    again = tmp_path / "again.csv"
    assert (
        run("verify", contacts, "-c", "email", "-t", "regex", "--known", out, "-o", again, "-q")[0]
        == 0
    )
    assert {row["email_source"] for row in rows_of_csv(again)} == {"journal", ""}


def test_the_known_file_is_not_replaced(run, contacts, export):
    status, _, told = run(
        "verify", contacts, "-c", "email", "-t", "regex", "--known", export, "-o", export
    )
    assert (status, told) == (
        2,
        f"mailverdict: --output {export} would replace {export}: give another name\n",
    )


def test_a_file_of_nobody_is_one_line(run, contacts, tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("email,opinion\nada@plain.example,good\n")
    status, _, told = run("verify", contacts, "-c", "email", "-t", "regex", "--known", path)
    assert status == 2
    assert told.startswith(
        f"mailverdict: {path} is not an export of a verifier that is known: name its columns, "
    )
    assert told.count("\n") == 1


@pytest.fixture
def ours(run, contacts, tmp_path):
    path = tmp_path / "ours.csv"
    assert run("verify", contacts, "-c", "email", "-t", "regex", "-o", path, "-q")[0] == 0
    return path


@pytest.mark.slow
def test_compare_prints_the_figures_and_writes_the_contradictions(run, ours, export, tmp_path):
    out = tmp_path / "wrong.csv"
    status, said, told = run("compare", ours, export, "-o", out)
    assert (status, told) == (0, f"written: {out}\n")
    assert said == f"{mv.compare(ours, export)}\n"
    assert rows_of_csv(out) == [
        {
            "address": "bo@plain.example",
            "a": "valid",
            "b": "invalid",
            "why_a": "",
            "why_b": "mailbox_not_found",
        }
    ]


@pytest.mark.slow
def test_compare_says_who_was_right_also_as_json(run, ours, export, tmp_path):
    bounces = tmp_path / "bounces.csv"
    bounces.write_text("who,what\nbo@plain.example,hard\n")
    arguments = (
        "compare",
        ours,
        export,
        "--bounces",
        bounces,
        "--bounce-columns",
        "address=who,outcome=what",
    )
    assert "who was right" in run(*arguments)[1]
    status, said, _ = run(*arguments, "--json")
    found = json.loads(said)
    assert status == 0
    assert (found["a"], found["b"], found["both"], found["contradictions"]) == (
        "mailverdict",
        "ZeroBounce",
        3,
        1,
    )
    assert found["agreement"]["valid"] == {"valid": 1, "risky": 0, "invalid": 1, "unknown": 1}
    right = {(each["by"], each["claim"]): (each["known"], each["right"]) for each in found["right"]}
    assert right["ZeroBounce", "where they contradict"] == (1, 1)
    assert right["mailverdict", "where they contradict"] == (1, 0)


def test_compare_writes_to_standard_output_alone(run, ours, export):
    status, said, told = run("compare", ours, export, "-o", "-")
    assert (status, said.splitlines()[0], told) == (0, "address,a,b,why_a,why_b", "")


def test_compare_replaces_no_file_that_it_reads(run, ours, export):
    for path in (ours, export):
        status, _, told = run("compare", ours, export, "-o", path)
        assert (status, told) == (
            2,
            f"mailverdict: --output {path} would replace {path}: give another name\n",
        )


@pytest.fixture
def other(tmp_path):
    """The export of a verifier that is not known."""
    path = tmp_path / "other.csv"
    path.write_text(
        "Address,Grade,Day\nbo@plain.example,F,2024-05-01\ncy@plain.example,A,2026-02-03\n"
    )
    return path


MAP = ("--map", "email=Address,status=Grade,at=Day", "--map", "A=valid,F=invalid")


def test_columns_and_words_of_any_other_verifier_are_mapped(run, contacts, other, tmp_path):
    out = tmp_path / "out.csv"
    verify = ("verify", contacts, "-c", "email", "-t", "regex", "--known", other, "-o", out, "-q")
    status, _, told = run(*verify, *MAP)
    assert (status, told) == (
        0,
        f"{other}: 2 addresses are settled and not asked; the answers are from 2024-05-01 to 2026-02-03\n",
    )
    assert [row["email_source"] for row in rows_of_csv(out)][1:3] == ["another verifier"] * 2


def test_older_answers_are_left_out_if_max_age_is_given(run, contacts, other, tmp_path):
    verify = ("verify", contacts, "-c", "email", "-t", "regex", "--known", other, "-q", *MAP)
    told = run(*verify, "-o", tmp_path / "out.csv", "--max-age", "1D")[2]
    assert told == (
        f"{other}: 0 addresses are settled and not asked; 2 older answers are left out\n"
    )


@each_row(
    ("mapped", "problem"),
    [
        ("Address", "--map 'Address': write email=COLUMN, status=COLUMN, or WORD=MEANING"),
        ("email=", "--map 'email=': write email=COLUMN"),
        ("A=good", "outcomes['A']='good': one of valid, risky, invalid, unknown, skip, "),
        ("email=Address", "columns: give the column of 'status', too"),
    ],
)
def test_a_map_that_cannot_work_is_one_line(run, contacts, other, mapped, problem):
    status, _, told = run(
        "verify", contacts, "-c", "email", "-t", "regex", "--known", other, "--map", mapped
    )
    assert (status, told.count("\n")) == (2, 1)
    assert told.startswith(f"mailverdict: {problem}")


def test_a_map_without_a_known_file_is_refused(run, contacts):
    status, _, told = run("verify", contacts, "-c", "email", "-t", "regex", *MAP)
    assert (status, told) == (
        2, "mailverdict: --map is for the file of --known: give that, too\n"
    )  # fmt: skip


def test_compare_maps_the_file_that_has_the_columns(run, other, export, tmp_path):
    status, said, told = run("compare", export, other, *MAP, "--json")
    found = json.loads(said)
    assert (status, found["a"], found["b"]) == (0, "ZeroBounce", "another verifier")
    assert (found["both"], found["contradictions"]) == (2, 0)
    assert f"{export}: read without the columns of --map: no column 'Address'" in told
    both = json.loads(run("compare", other, other, *MAP, "--json")[1])
    assert (both["a"], both["b"]) == ("another verifier (a)", "another verifier (b)")


def test_compare_takes_a_file_of_ours_as_ours_also_with_the_columns_of_the_export(
    run, other, tmp_path
):
    ours = tmp_path / "ours.csv"
    assert run("verify", other, "-c", "Address", "-t", "regex", "-o", ours, "-q")[0] == 0
    found = json.loads(run("compare", ours, other, *MAP, "--json")[1])
    assert (found["a"], found["b"], found["contradictions"]) == (
        "mailverdict",
        "another verifier",
        1,
    )


def test_compare_refuses_a_map_that_no_file_has(run, export):
    status, _, told = run("compare", export, export, "--map", "email=Adress,status=Grade")
    assert status == 2
    assert told.endswith("mailverdict: neither file has the columns of --map\n")


def test_the_sheet_of_a_workbook_that_is_read_is_named(run, contacts, tmp_path):
    path = tmp_path / "known.xlsx"
    with pd.ExcelWriter(path) as book:
        for name in ("May", "June"):
            rows = pd.DataFrame({"Address": ["ada@plain.example"], "Result": ["valid"]})
            rows.to_excel(book, sheet_name=name, index=False)
    verify = ("verify", contacts, "-c", "email", "-t", "regex", "-q")
    mapped = ("--map", "email=Address,status=Result")
    status, _, told = run(*verify, "--known", path, *mapped)
    assert status == 0
    assert "only sheet 'May' (the first with a column of addresses) is read, and not 'June'" in told
    status, _, told = run(*verify, "--known", path, "--map", "email=Adress,status=Result")
    assert status == 2
    assert "only sheet 'May'" in told
    status, _, told = run(*verify, "--suppress", path, "--against-column", "Address")
    assert status == 0
    assert "the suppression list: only sheet 'May'" in told


def test_a_column_of_the_map_counts_before_that_of_the_second_tables(run, contacts, tmp_path):
    path = tmp_path / "known.csv"
    path.write_text("Address,added_by,Result\nada@plain.example,x@shop.example,deliverable\n")
    verify = ("verify", contacts, "-c", "email", "-t", "regex", "-q", "--known", path)
    columns = ("--map", "email=Address,status=Result")
    status, _, told = run(*verify, *columns, "--against-column", "added_by")
    assert status == 0
    assert f"{path}: --map names its column of addresses, and not --against-column" in told
    status, _, told = run(*verify, "--against-column", "Address")
    assert status == 0
    assert "1 address is settled" in told
