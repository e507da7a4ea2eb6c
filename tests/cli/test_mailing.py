"""`mailverdict mailing` and `learn`: a list through two waves, from file to file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

import mailverdict as mv
from tests.doubles.tables import rows_of_csv
from tests.mailings.test_experience import a_list

LIST = a_list((400, "valid", "google", "big.example"), (40, "risky", "self", "firm.example"))


@pytest.fixture
def verified(tmp_path):
    path = tmp_path / "verified.csv"
    LIST.to_csv(path, index=False)
    return path


def write_bounces(path, rows, hard):
    lines = [
        f"{row['email']},{'hard' if at < hard else 'delivered'}" for at, row in enumerate(rows)
    ]
    path.write_text("\n".join(["who,what", *lines]) + "\n")
    return path


def test_a_list_is_mailed_in_two_waves(run, verified, tmp_path):
    whole, first, second, learnt = (
        tmp_path / name for name in ("list.csv", "1.csv", "2.csv", "experience.json")
    )
    status, shown, told = run(
        "mailing", verified, "-c", "email", "-o", whole, "--next", first, "--waves", "2"
    )
    assert status == 0
    assert shown.startswith("Mailing: wave 1 of 2: ")
    assert told.endswith(f"written: {whole}\nwritten: {first}\n")
    mailed = rows_of_csv(first)
    assert 150 < len(mailed) < 250
    assert [row["email"] for row in rows_of_csv(whole)] == LIST["email"].tolist()
    assert [row["email"] for row in rows_of_csv(whole) if row["email_wave"]] == [
        row["email"] for row in mailed
    ]

    bounces = write_bounces(tmp_path / "bounces.csv", mailed, hard=1)
    arguments = (
        "learn",
        whole,
        bounces,
        "--experience",
        learnt,
        "--bounce-columns",
        "address=who,outcome=what",
    )
    status, shown, told = run(*arguments, "-c", "email")
    assert (status, told) == (0, f"written: {learnt}\n")
    assert shown.startswith(f"Experience: 1 mailing, {len(mailed)} mailboxes, 1 hard bounce (")
    before = learnt.read_text()
    assert run(*arguments, "-c", "email", "-q")[0] == 0
    assert learnt.read_text() == before  # the same wave counts once

    options = ("--in-place", "--next", second, "--experience", learnt, "--waves", "2", "-q")
    assert run("mailing", whole, "-c", "email", *options) == (0, "", "")
    assert not {row["email"] for row in mailed} & {row["email"] for row in rows_of_csv(second)}
    assert {row["email_wave"] for row in rows_of_csv(whole)} == {"1", "2", ""} - (
        {""} if len(rows_of_csv(second)) + len(mailed) == 440 else set()
    )


def test_a_wrong_export_is_one_line_and_the_experience_stays(run, verified, tmp_path):
    learnt = tmp_path / "experience.json"
    mv.Experience().save(learnt)
    before = learnt.read_text()
    bounces = tmp_path / "bounces.csv"
    bounces.write_text("who,what\nzoe@other.example,hard\n")
    columns = ("--bounce-columns", "address=who,outcome=what")
    whole = ("learn", verified, bounces, "-c", "email", "--experience", learnt, *columns)
    status, shown, told = run(*whole)
    assert (status, shown, len(told.splitlines())) == (2, "", 1)
    assert "or --all-mailed if it was every row" in told
    status, shown, told = run(*whole, "--all-mailed")
    assert (status, shown, len(told.splitlines())) == (2, "", 1)
    assert told.startswith(
        "mailverdict: none of the 1 addresses with a report is among the mailed rows of 'email'"
    )
    assert learnt.read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--next", "{next}"), "--next needs --output"),
        (("-o", "{list}", "--next", "{list}"), "--next {list} would replace {list}"),
        (("-o", "{list}", "--experience", "{list}"), "--output {list} would replace {list}"),
        (("-o", "{list}", "--experience", "{none}"), "{none}: no such file"),
        (("-o", "{list}", "--max-bounce-rate", "3"), "--max-bounce-rate 3.0: give a part of 1"),
        (("-o", "{verified}"), "{verified} is the input"),
    ],
)
def test_what_cannot_be_done_is_one_line(run, verified, tmp_path, arguments, message):
    names = {name: tmp_path / name for name in ("next", "list", "none")} | {"verified": verified}
    names = {
        name: path if name == "verified" else path.with_suffix(".csv")
        for name, path in names.items()
    }
    status, _, told = run(
        "mailing", verified, "-c", "email", *(each.format(**names) for each in arguments)
    )
    assert (status, len(told.splitlines())) == (2, 1)
    assert message.format(**names) in told
    assert not names["list"].exists()


def test_the_column_of_mailed_rows_is_given(run, tmp_path):
    path, learnt = tmp_path / "verified.csv", tmp_path / "experience.json"
    LIST.assign(sent=["yes"] * 10 + ["no"] * 430).to_csv(path, index=False)
    bounces = write_bounces(tmp_path / "bounces.csv", LIST[:10].to_dict("records"), hard=2)
    columns = ("--bounce-columns", "address=who,outcome=what")
    status, shown, _ = run(
        "learn", path, bounces, "-c", "email", "--mailed", "sent", "--experience", learnt, *columns
    )
    assert status == 0
    assert "10 mailboxes, 2 hard bounces (20.0%, " in shown
    assert pd.read_json(learnt, typ="series")["version"] == 2


DOUBTFUL = a_list((400, "valid", "google", "big.example"), email_validation_type="mx")


class TestMistakes:
    """The same mistakes as in Python have the remedies of the command line."""

    def first_wave(self, run, verified, tmp_path, *options):
        whole, wave, learnt = (tmp_path / name for name in ("list.csv", "1.csv", "e.json"))
        run("mailing", verified, "-c", "email", "-o", whole, "--next", wave, *options)
        return whole, rows_of_csv(wave), learnt

    def learn(self, run, whole, bounces, learnt, *options):
        columns = ("--bounce-columns", "address=who,outcome=what")
        arguments = ("learn", whole, bounces, "-c", "email", "--experience", learnt)
        return run(*arguments, *columns, *options)

    def test_the_verified_file_is_refused_after_its_first_wave(self, run, verified, tmp_path):
        whole, mailed, learnt = self.first_wave(run, verified, tmp_path)
        bounces = write_bounces(tmp_path / "bounces.csv", mailed, hard=1)
        assert self.learn(run, whole, bounces, learnt)[0] == 0
        other = tmp_path / "other.csv"
        arguments = ("mailing", verified, "-c", "email", "-o", other, "--experience", learnt)
        status, _, told = run(*arguments)
        assert (status, len(told.splitlines())) == (2, 1)
        assert "wave 1 of this list is in the experience" in told
        assert "Give the file of --output of the last call" in told
        assert "--again plans wave 1 again" in told
        assert not other.exists()

    def test_a_wave_that_was_planned_twice_is_told_and_taken_back(self, run, verified, tmp_path):
        whole, mailed, _ = self.first_wave(run, verified, tmp_path, "--waves", "3")
        again = ("mailing", whole, "-c", "email", "--in-place", "--waves", "3")
        _, shown, told = run(*again, "--again")
        assert shown.startswith("Mailing: wave 1 of 3: ")
        assert told == f"written: {whole}\n"
        assert [row["email"] for row in rows_of_csv(whole) if row["email_wave"]] == [
            row["email"] for row in mailed
        ]
        _, _, told = run(*again)
        assert "wave 1 of this list is not in the experience" in told
        assert "plan it again with --again" in told

    def test_the_budget_of_a_parquet_file_is_kept_and_that_of_a_csv_is_named(self, run, tmp_path):
        verified, whole = tmp_path / "verified.parquet", tmp_path / "list.parquet"
        LIST.to_parquet(verified)
        options = ("--waves", "3", "--max-bounce-rate", "0.05")
        run("mailing", verified, "-c", "email", "-o", whole, *options)
        _, shown, _ = run("mailing", whole, "-c", "email", "-o", tmp_path / "2.csv")
        assert shown.startswith("Mailing: wave 2 of 3: ")
        assert "default" not in shown
        _, shown, _ = run("mailing", tmp_path / "2.csv", "-c", "email", "--in-place")
        assert "--max-bounce-rate 0.02 and --waves 6 are the defaults" in shown

    def test_a_file_of_the_short_columns_names_the_one_that_is_missing(self, run, tmp_path):
        short, given = tmp_path / "short.csv", tmp_path / "given.csv"
        people = "".join(f"user{n}@firm{n % 9}.example\n" for n in range(300))
        given.write_text(f"email\n{people}")
        run("verify", given, "-t", "regex", "--columns", "short", "-o", short)
        status, shown, told = run("mailing", short, "-c", "email", "-o", tmp_path / "list.csv")
        assert status == 0
        assert shown.startswith("Mailing: wave 1 of 6: 0 rows")
        assert "there is no column 'email_validation_type'" in told
        assert "verify with --columns all" in told

    def test_a_list_without_sure_rows_has_a_pilot(self, run, tmp_path):
        verified, whole = tmp_path / "verified.csv", tmp_path / "list.csv"
        DOUBTFUL.to_csv(verified, index=False)
        arguments = ("mailing", verified, "-c", "email", "-o", whole)
        _, shown, _ = run(*arguments)
        assert "mail a pilot (--pilot 200)" in shown
        _, shown, _ = run(*arguments, "--pilot", "50")
        assert shown.startswith("Mailing: wave 1 of 6, a pilot: 50 rows")

    def test_a_wave_is_withheld_until_it_is_resumed(self, run, verified, tmp_path):
        whole, mailed, learnt = self.first_wave(run, verified, tmp_path)
        bounces = tmp_path / "bounces.csv"
        lines = [f"{row['email']},complaint" for row in mailed[:5]]
        bounces.write_text("\n".join(["who,what", *lines]) + "\n")
        self.learn(run, whole, bounces, learnt)
        arguments = ("mailing", whole, "-c", "email", "--in-place", "--experience", learnt)
        _, shown, told = run(*arguments)
        assert shown.startswith("Mailing: wave 2 of 6: 0 rows")
        assert "go on with --resume" in told
        _, shown, told = run(*arguments, "--resume")
        assert "0 rows" not in shown.splitlines()[0]

    @pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
    def test_bounces_that_are_older_than_a_wave_do_not_count(self, run, verified, tmp_path, kind):
        whole, learnt = tmp_path / f"list.{kind}", tmp_path / "e.json"
        wave = tmp_path / "1.csv"
        run("mailing", verified, "-c", "email", "-o", whole, "--next", wave)
        mailed = [row["email"] for row in rows_of_csv(wave)]
        now, then = (datetime.now(UTC) - timedelta(days=days) for days in (0, 30))
        lines = [f"{address},hard,{then.isoformat()}" for address in mailed[1:9]]
        bounces = tmp_path / "bounces.csv"
        bounces.write_text("\n".join(["who,what,when", *lines]) + "\n")
        columns = ("--bounce-columns", "address=who,outcome=what,at=when", "-q")
        arguments = ("learn", whole, bounces, "-c", "email", "--experience", learnt, *columns)
        status, _, told = run(*arguments)
        assert (status, len(told.splitlines())) == (2, 1)
        assert "8 reports are more than 2 days older than the wave" in told
        lines.append(f"{mailed[0]},hard,{now.isoformat()}")
        bounces.write_text("\n".join(["who,what,when", *lines]) + "\n")
        status, _, told = run(*arguments)
        assert status == 0
        assert "8 reports are more than 2 days older than the wave" in told
        assert mv.Experience.load(learnt).counts["hard"].sum() == 1

    def test_a_file_of_the_rows_that_are_left_is_refused(self, run, verified, tmp_path):
        whole, mailed, learnt = self.first_wave(run, verified, tmp_path)
        bounces = write_bounces(tmp_path / "bounces.csv", mailed, hard=1)
        self.learn(run, whole, bounces, learnt)
        left = tmp_path / "left.csv"
        rows = pd.read_csv(whole, dtype="string")
        rows[rows["email_wave"].isna()].to_csv(left, index=False)
        other = tmp_path / "2.csv"
        status, _, told = run("mailing", left, "-c", "email", "-o", other, "--experience", learnt)
        assert (status, len(told.splitlines())) == (2, 1)
        assert "no row of this file has a wave in 'email_wave'" in told
        assert "Give the file of --output of the last call" in told
        assert not other.exists()

    def test_a_list_that_is_too_short_to_be_known_is_told(self, run, tmp_path):
        verified = tmp_path / "verified.csv"
        a_list((6, "valid", "google", "few.example")).to_csv(verified, index=False)
        whole, mailed, learnt = self.first_wave(run, verified, tmp_path)
        bounces = write_bounces(tmp_path / "bounces.csv", mailed, hard=0)
        assert self.learn(run, whole, bounces, learnt)[0] == 0
        arguments = ("mailing", verified, "-c", "email", "--experience", learnt)
        status, _, told = run(*arguments, "-o", tmp_path / "other.csv")
        assert status == 0
        assert "wave 1 of a list of fewer than 10 mailboxes is in the experience" in told
        assert "If they are, give the file of --output of the last call" in told

    def test_without_the_operators_it_is_said_what_is_lost(self, run, tmp_path):
        verified = tmp_path / "verified.csv"
        LIST.drop(columns="email_operator").to_csv(verified, index=False)
        _, shown, _ = run("mailing", verified, "-c", "email", "-o", tmp_path / "list.csv")
        assert "Without the column 'email_operator' (--columns all) nothing is known of" in shown

    def test_of_an_operator_that_blocks_the_rows_are_withheld(self, run, tmp_path):
        verified, bounces = tmp_path / "verified.csv", tmp_path / "bounces.csv"
        groups = ((600, "valid", "google", "a.example"), (600, "valid", "yahoo", "b.example"))
        a_list(*groups).to_csv(verified, index=False)
        whole, mailed, learnt = self.first_wave(run, verified, tmp_path)
        at_google = [row["email"] for row in mailed if row["email_operator"] == "google"]
        lines = [f"{address},blocked" for address in at_google]
        bounces.write_text("\n".join(["who,what", *lines]) + "\n")
        self.learn(run, whole, bounces, learnt)
        second = tmp_path / "2.csv"
        arguments = ("mailing", whole, "-c", "email", "--in-place", "--experience", learnt)
        _, _, told = run(*arguments, "--next", second)
        assert "its rows are withheld. Find the cause, then go on with --resume" in told
        assert {row["email_operator"] for row in rows_of_csv(second)} == {"yahoo"}

    def test_an_export_that_lacks_bounces_is_doubted_until_it_is_said_to_be_complete(
        self, run, tmp_path
    ):
        verified = tmp_path / "verified.csv"
        a_list((3000, "valid", "google", "big.example")).to_csv(verified, index=False)
        whole, first, learnt = self.first_wave(run, verified, tmp_path, "--waves", "3")
        bounces = write_bounces(tmp_path / "bounces.csv", first, hard=15)
        self.learn(run, whole, bounces, learnt)
        second = tmp_path / "2.csv"
        next_wave = ("mailing", whole, "-c", "email", "--in-place", "--experience", learnt)
        run(*next_wave, "--waves", "3", "--next", second)
        bounces = write_bounces(bounces, [*first, rows_of_csv(second)[0]], hard=15)
        third = ("mailing", whole, "-c", "email", "-o", tmp_path / "3.csv", "--experience", learnt)
        self.learn(run, whole, bounces, learnt)
        assert "does its export lack some?" in run(*third)[2]
        self.learn(run, whole, bounces, learnt, "--complete")
        assert "does its export lack some?" not in run(*third)[2]

    def test_one_name_for_two_lists_is_refused(self, run, verified, tmp_path):
        whole, mailed, learnt = self.first_wave(run, verified, tmp_path)
        bounces = write_bounces(tmp_path / "bounces.csv", mailed, hard=1)
        assert self.learn(run, whole, bounces, learnt, "--name", "march")[0] == 0
        other = tmp_path / "other.csv"
        people = a_list((300, "valid", "google", "other.example"))
        people.to_csv(other, index=False)
        bounces = write_bounces(tmp_path / "bounces.csv", people.to_dict("records"), hard=3)
        assert self.learn(run, other, bounces, learnt, "--name", "march", "--all-mailed")[0] == 0
        whole, mailed, _ = self.first_wave(run, other, tmp_path)
        bounces = write_bounces(tmp_path / "bounces.csv", mailed, hard=1)
        status, _, told = self.learn(run, whole, bounces, learnt, "--name", "march")
        assert (status, len(told.splitlines())) == (2, 1)
        assert "'march' is the name of another list" in told
