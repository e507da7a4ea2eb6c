"""What is learnt from a mailing.

The counts, their file, what is refused; and the forecasts made from them.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.mailings.experience import Experience, calibrate
from mailverdict.table.columns import VERDICT_DTYPE
from tests.doubles.tables import each_row

WHY = {"risky": "catch_all", "valid": None, "unknown": "greylisted", "invalid": "mailbox_not_found"}


def a_list(*lines, **columns):
    """A list as verified by smtp: lines of number of rows, verdict, operator and domain."""
    cells = [
        (f"u{n}@{domain}", verdict, operator)
        for count, verdict, operator, domain in lines
        for n in range(count)
    ]
    out = mv.verify(
        pd.DataFrame({"email": [each[0] for each in cells]}), "email", validation_type="regex"
    )
    out.attrs.clear()
    out["email_verdict"] = pd.Categorical([each[1] for each in cells], dtype=VERDICT_DTYPE)
    for name in ("why", "details"):
        out[f"email_{name}"] = pd.array([WHY[each[1]] for each in cells], dtype="string")
    out["email_operator"] = pd.array([each[2] for each in cells], dtype="string")
    out["email_validation_type"] = "smtp"
    return out.assign(**columns)


def reports(**by_outcome):
    """Bounces by outcome: lists of addresses."""
    rows = [
        (address, outcome) for outcome, addresses in by_outcome.items() for address in addresses
    ]
    return mv.read_bounces(
        pd.DataFrame(rows, columns=["who", "what"]), columns={"address": "who", "outcome": "what"}
    )


def learn_all(out, column, bounces, **options):
    """Learn from a list that was mailed whole."""
    return mv.learn(out, column, bounces, **{"mailed": True} | options)


LIST = a_list(
    (6, "valid", "google", "big.example"),
    (5, "risky", "self", "firm.example"),
    (2, "risky", "self", "ada.example"),
)
BOUNCES = reports(
    hard=["u0@firm.example", "u1@firm.example", "zoe@other.example"],
    soft=["u2@firm.example"],
    blocked=["u3@firm.example", "u0@firm.example"],
    delivered=["u0@big.example"],
)


def lines_of(experience):
    return {tuple(row[:4]): tuple(row[4:8]) for row in experience.counts.itertuples(index=False)}


class TestCounts:
    @each_row("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
    def test_they_are_by_verdict_reason_operator_and_domain(self, make):
        assert lines_of(learn_all(make(LIST), "email", BOUNCES)) == {
            ("valid", "none", "google", "big.example"): (1, 6, 0, 0),
            ("risky", "catch_all", "self", "firm.example"): (1, 5, 2, 2),
            ("risky", "catch_all", "self", ""): (1, 2, 0, 0),
        }

    def test_rows_that_were_not_mailed_teach_nothing(self):
        is_mailed = LIST["email"].isin(["u0@firm.example", "u4@firm.example"])
        assert list(lines_of(learn_all(LIST, "email", BOUNCES, mailed=is_mailed)).values()) == [
            (1, 2, 1, 0)
        ]

    def test_a_mailbox_counts_once(self):
        twice = pd.concat([LIST, LIST], ignore_index=True)
        assert lines_of(learn_all(twice, "email", BOUNCES)) == lines_of(
            learn_all(LIST, "email", BOUNCES)
        )

    def test_without_operators_it_works(self):
        found = learn_all(LIST.drop(columns="email_operator"), "email", BOUNCES).counts
        assert found["operator"].tolist() == ["", "", ""]

    def test_a_valid_address_about_which_no_mail_server_was_asked_is_counted_apart(self):
        asked = {"email_validation_type": "mx"}
        assert ("valid", "mailbox_not_asked", "google", "big.example") in lines_of(
            learn_all(LIST.assign(**asked), "email", BOUNCES)
        )
        by_others = LIST.drop(columns="email_validation_type").assign(email_source="ZeroBounce")
        assert ("valid", "none", "google", "big.example") in lines_of(
            learn_all(by_others, "email", BOUNCES)
        )


class TestRefused:
    def test_an_export_of_another_mailing_is_an_error(self):
        with pytest.raises(
            mv.InputError, match="none of the 1 addresses with a report is among the mailed rows"
        ):
            learn_all(LIST, "email", reports(hard=["zoe@other.example"]))

    def test_an_empty_export_is_an_error(self):
        with pytest.raises(mv.InputError, match="wait until they have come"):
            learn_all(LIST, "email", reports())

    def test_invalid_rows_are_not_taken_for_mailed_ones(self):
        whole = a_list(
            (3, "valid", "google", "big.example"), (1, "invalid", "google", "big.example")
        )
        bounces = reports(hard=["u0@big.example"])
        with pytest.warns(UserWarning, match="1 invalid row counts as mailed"):
            learn_all(whole, "email", bounces)
        assert learn_all(whole, "email", bounces, mailed=[True, True, True, False]).counts[
            "mailed"
        ].tolist() == [3]

    @each_row("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
    def test_a_whole_list_without_waves_needs_to_know_which_rows_were_mailed(self, make):
        with pytest.raises(
            mv.SettingsError,
            match=r"which of the 13 rows were mailed.*mailed=True if it was every row",
        ):
            mv.learn(make(LIST), "email", BOUNCES)
        with pytest.raises(mv.SettingsError, match="mailed: give"):
            mv.learn(make(LIST), "email", BOUNCES, mailed=False)

    def test_no_mailed_row_is_an_error(self):
        with pytest.raises(mv.InputError, match="no row was mailed"):
            mv.learn(
                LIST.assign(email_wave=pd.array([pd.NA] * len(LIST), "Int64")), "email", BOUNCES
            )

    def test_an_export_that_is_mostly_about_others_is_warned_about(self):
        others = [f"x{n}@other.example" for n in range(9)]
        with pytest.warns(UserWarning, match="9 of 10 addresses with a report are not in 'email'"):
            learn_all(LIST, "email", reports(hard=["u0@firm.example", *others]))

    def test_a_column_of_waves_with_something_else_is_an_error(self):
        with pytest.raises(mv.InputError, match="something else than 1, 2"):
            mv.learn(LIST.assign(email_wave="first"), "email", BOUNCES)

    @each_row("name", ["ada@firm.example", "x" * 81, None])
    def test_a_name_that_is_an_address_or_too_long_is_refused(self, name):
        with pytest.raises(
            mv.SettingsError, match="give a text without @, of at most 80 characters"
        ):
            learn_all(LIST, "email", BOUNCES, name=name)

    def test_without_bounces_it_says_so(self):
        with pytest.raises(mv.SettingsError, match="give bounces="):
            mv.learn(LIST, "email")


class TestSum:
    def waves(self, *numbers):
        return LIST.assign(email_wave=pd.array(numbers, "Int64"))

    FIRST = (*(1, 1, 1, 2, 2, 2), *(1, 1, 1, 1, 2), *(1, 2))

    def test_each_wave_is_a_mailing_and_is_learnt_again_without_counting_twice(self):
        out = self.waves(*self.FIRST)
        delivered = [f"u{n}@big.example" for n in range(6)]
        first = mv.learn(
            out, "email", reports(hard=["u0@firm.example"]), mailed=out["email_wave"] == 1
        )
        with pytest.warns(UserWarning, match="no report is about wave 2: it is not learnt"):
            early = mv.learn(
                out, "email", reports(hard=["u0@firm.example"], delivered=delivered[:3])
            )
        late = mv.learn(
            out, "email", reports(hard=["u0@firm.example", "u1@firm.example"], delivered=delivered)
        )
        assert [each.wave for each in first.mailings] == [None]
        assert lines_of(early + late) == lines_of(late)
        assert lines_of(late + early) == lines_of(late)
        assert int((early + late).counts["mailed"].sum()) == len(LIST)
        assert int((early + late).counts["hard"].sum()) == 2

    def test_a_wave_of_which_a_row_was_removed_is_the_same(self):
        large = a_list((40, "valid", "google", "big.example"), email_wave=1)
        bounces = reports(hard=["u0@big.example", "u1@big.example"])
        with pytest.warns(UserWarning, match="1 address is not in 'email' and had a hard bounce"):
            both = mv.learn(large, "email", bounces) + mv.learn(large[1:], "email", bounces)
        assert lines_of(both) == {("valid", "none", "google", "big.example"): (1, 40, 2, 0)}

    def test_other_mailings_are_added(self):
        other = a_list((9, "risky", "self", "firm.example"))
        both = learn_all(LIST, "email", BOUNCES) + learn_all(other, "email", BOUNCES)
        assert lines_of(both)["risky", "catch_all", "self", "firm.example"] == (1, 14, 4, 4)
        assert repr(both).splitlines() == [
            "Experience: 2 mailings, 22 mailboxes, 4 hard bounces (22.2%, 9.0% to 45.2%), 4 "
            "blocked or deferred",
            "  a mailing: 13 mailed, 2 hard, 2 blocked or deferred",
            "  a mailing: 9 mailed, 2 hard, 2 blocked or deferred",
            "  risky, catch all: 33.3% of 12 bounced (13.8% to 60.9%)",
            "  valid: 0.0% of 6 bounced (0.0% to 39.0%)",
        ]

    @pytest.mark.slow
    def test_a_wave_of_which_many_rows_were_removed_counts_once_and_is_told(self):
        large = a_list((40, "valid", "google", "big.example"), email_wave=1)
        first = mv.learn(large, "email", reports(hard=["u30@big.example"]))
        again = mv.learn(large[20:], "email", reports(hard=["u30@big.example"]))
        for both in ((first, again), (again, first)):
            with pytest.warns(
                UserWarning,
                match="wave 1 is in both, with .* and counts once. If these are two mailings",
            ):
                added = both[0] + both[1]
            assert lines_of(added) == {("valid", "none", "google", "big.example"): (1, 40, 1, 0)}

    def test_two_mailings_that_look_alike_are_told_apart_by_name(self):
        march, april = (learn_all(LIST, "email", BOUNCES, name=name) for name in ("march", "april"))
        assert int((march + april).counts["mailed"].sum()) == 2 * len(LIST)
        assert int((march + march).counts["mailed"].sum()) == len(LIST)
        unnamed = learn_all(LIST, "email", BOUNCES)
        with pytest.warns(
            UserWarning, match="a mailing is in both, with 13 and 13 mailboxes, and counts once"
        ):
            both = unnamed + unnamed
        assert int(both.counts["mailed"].sum()) == len(LIST)

    def test_a_named_mailing_is_the_same_however_much_its_list_has_changed(self):
        whole = a_list((40, "valid", "google", "big.example"))
        both = learn_all(whole, "email", reports(hard=["u30@big.example"]), name="march")
        both += learn_all(
            whole[20:], "email", reports(hard=["u30@big.example", "u31@big.example"]), name="march"
        )
        assert lines_of(both) == {("valid", "none", "google", "big.example"): (1, 20, 2, 0)}

    @pytest.mark.slow
    def test_a_wave_without_bounces_is_learnt_if_all_have_come(self):
        out = a_list((40, "valid", "google", "big.example"), email_wave=1)
        for bounces in (reports(), reports(hard=["u1@big.example"])):
            found = mv.learn(out, "email", bounces, complete=True)
            assert found.mailings[0].is_complete
        for wrong in (
            ["zoe@other.example"],
            ["u1@big.example", "zoe@other.example", "bo@other.example"],
        ):
            with pytest.raises(
                mv.InputError,
                match=r"none of the 1 addresses|2 of 3 addresses with a report are not",
            ):
                mv.learn(out, "email", reports(hard=wrong), complete=True)
        two = out.assign(email_wave=[1] * 20 + [2] * 20)
        assert [
            each.wave
            for each in mv.learn(
                two, "email", reports(hard=["u1@big.example"]), complete=True
            ).mailings
        ] == [1, 2]


def a_file(version=1, **changes):
    """A file with one mailing, of which something is another."""
    mailing = {"name": "", "wave": 1, "complete": False, "counts": []} | changes
    whole = {"format": "mailverdict experience", "version": version, "mailings": [mailing]}
    return json.dumps(whole)


class TestFile:
    def test_the_file_of_these_tests_is_one(self, tmp_path):
        path = tmp_path / "experience.json"
        path.write_text(a_file(counts=[["valid", "none", "", "firm.example", 1, 3, 2, 0]]))
        assert Experience.load(path).counts["mailed"].tolist() == [3]

    def test_a_file_of_the_first_version_can_be_read_added_to_and_written(self, tmp_path):
        path = tmp_path / "experience.json"
        path.write_text(a_file(counts=[["valid", "none", "google", "firm.example", 1, 3, 2, 0]]))
        both = Experience.load(path) + learn_all(LIST, "email", BOUNCES, name="march")
        both.save(path)
        assert lines_of(Experience.load(path)) == lines_of(both)
        assert both.counts["blocked"].sum() == 1

    def test_what_is_saved_is_what_is_read_and_holds_no_address(self, tmp_path):
        path = tmp_path / "experience.json"
        experience = learn_all(LIST, "email", BOUNCES, name="march", complete=True)
        experience.save(path)
        assert lines_of(Experience.load(path)) == lines_of(experience)
        assert [(each.name, each.is_complete) for each in Experience.load(path).mailings] == [
            ("march", True)
        ]
        text = path.read_text(encoding="utf-8")
        assert "@" not in text
        assert "ada.example" not in text  # a domain with fewer than three mailboxes may be a person
        assert json.loads(text)["version"] == 2

    def test_neither_a_word_of_a_service_nor_a_small_operator_names_a_person(self):
        word = "see_di_private_firm_example"
        told = {"email_why": word, "email_details": word, "email_operator": "anna-mueller.de"}
        out = a_list((2, "unknown", "x", "ada.example")).assign(**told)
        counts = learn_all(out, "email", reports(hard=["u0@ada.example"])).counts
        assert counts[["why", "operator", "domain"]].values.tolist() == [["other", "", ""]]

    def test_what_cannot_be_read_or_written_is_an_error_of_ours(self, tmp_path):
        with pytest.raises(mv.InputError, match="cannot be read"):
            Experience.load(tmp_path)
        with pytest.raises(mv.InputError, match="cannot be written"):
            Experience().save(tmp_path / "none" / "experience.json")
        with pytest.raises(TypeError, match="unsupported operand"):
            Experience() + 3

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{", "not an experience that learn wrote"),
            ('{"format": "other", "version": 1, "mailings": []}', "not an experience"),
            (
                '{"format": "mailverdict experience", "version": 3, "mailings": []}',
                "version 3 of the form; this release of mailverdict reads up to 2",
            ),
            (
                '{"format": "mailverdict experience", "version": [1], "mailings": []}',
                "version .* of the form",
            ),
            ("[" * 200_000, "damaged"),
            ('{"a":' * 200_000, "damaged"),
            (f'{{"format": {"9" * 5000}}}', "damaged"),
            ("[]", "not an experience"),
            (a_file(wave=True), "damaged"),
            (a_file(wave=2**63), "damaged"),
            (a_file(waves="6"), "damaged"),
            (a_file(max_bounce_rate=2), "damaged"),
            (a_file(max_bounce_rate=float("nan")), "damaged"),
            (a_file(list="ada@firm.example"), "damaged"),
            (a_file(list="0123"), "damaged"),
            (a_file(name="\ud800"), "damaged"),
            (a_file(counts=[["\ud800", "none", "", "firm.example", 1, 3, 2, 0]]), "damaged"),
            (a_file(counts=[["valid", "none", "", "firm.example", 1, 2**63, 2, 0]]), "damaged"),
            (a_file(counts=[["valid", "none", "", "firm.example", 1, 2**62, 2, 0]] * 4), "damaged"),
            (a_file(counts=[["valid", "none", "", "firm.example", 1, 3, 2, 0, 0, 0]]), "damaged"),
            (
                a_file(2, counts=[["valid", "none", "", "firm.example", 1, 3, 2, 0, 1, 0]]),
                "damaged",
            ),
            (
                a_file(2, counts=[["valid", "none", "", "firm.example", 1, 3, 2, 0, 0, 9]]),
                "damaged",
            ),
            (a_file(counts=[["valid", "none", "", "firm.example", 1, 1, 2, 0]]), "damaged"),
            (a_file(counts=[["valid", "none", "", "firm.example", 1, 10.7, 2, 0]]), "damaged"),
            (a_file(wave=-1), "damaged"),
            (a_file(name="ada@firm.example"), "damaged"),
            (a_file(complete="yes"), "damaged"),
            (a_file(counts=[["valid", "none", "", "firm.example", 1, 10**20, 2, 0]]), "damaged"),
        ],
    )
    def test_another_file_is_refused(self, tmp_path, text, message):
        path = tmp_path / "experience.json"
        path.write_text(text)
        with pytest.raises(mv.InputError, match=message):
            Experience.load(path)

    def test_a_file_that_is_not_there_is_an_error(self, tmp_path):
        with pytest.raises(mv.InputError, match="no such file"):
            mv.risk(LIST, "email", tmp_path / "none.json")


def learnt(rate_of, domains=60, each=30, seed=1):
    """An experience of domains of two operators with a rate of bounces each, and the list."""
    chance = np.random.default_rng(seed)
    lines = [(each, "risky", ("good", "bad")[n % 2], f"d{n}.example") for n in range(domains)]
    out = a_list(*lines)
    is_hard = chance.random(len(out)) < out["email_operator"].map(rate_of).astype(float)
    return learn_all(
        out, "email", reports(hard=out["email"][is_hard], delivered=out["email"][~is_hard])
    ), out


class TestRisk:
    def test_it_is_that_of_the_operator_and_domain(self):
        experience, out = learnt({"good": 0.02, "bad": 0.3})
        found = mv.risk(out, "email", experience)
        assert str(found["email_bounce_risk"].dtype) == "Float64"
        by_operator = found.groupby("email_operator")["email_bounce_risk"].mean()
        assert by_operator["good"] == pytest.approx(0.02, abs=0.01)
        assert by_operator["bad"] == pytest.approx(0.3, abs=0.04)
        assert (found["email_risk_low"] < found["email_bounce_risk"]).all()
        assert (found["email_bounce_risk"] < found["email_risk_high"]).all()

    @pytest.mark.slow
    def test_the_interval_holds_the_rate_of_most_domains(self):
        experience, out = learnt({"good": 0.05, "bad": 0.2})
        found = mv.risk(out, "email", experience).drop_duplicates(
            ["email_risk_low", "email_risk_high", "email_operator"]
        )
        truth = found["email_operator"].map({"good": 0.05, "bad": 0.2}).astype(float)
        assert truth.between(found["email_risk_low"], found["email_risk_high"]).mean() > 0.9

    @pytest.mark.slow
    def test_it_is_not_known_for_verdicts_that_were_never_mailed(self):
        experience, _ = learnt({"good": 0.02, "bad": 0.3})
        found = mv.risk(
            a_list((1, "unknown", "good", "d0.example"), (1, "risky", "good", "d0.example")),
            "email",
            experience,
        )
        assert found["email_bounce_risk"].isna().tolist() == [True, False]

    def test_without_an_experience_there_is_no_column(self):
        with pytest.raises(mv.SettingsError, match="nothing is known yet"):
            mv.risk(LIST, "email", Experience())

    @pytest.mark.slow
    def test_where_operators_and_domains_say_nothing_it_is_the_plain_rate(self):
        experience, out = learnt({"good": 0.1, "bad": 0.1}, domains=8, each=200, seed=3)
        assert not experience.calibration.is_better
        with pytest.warns(UserWarning, match="not better than the plain rate of the verdict"):
            found = mv.risk(out, "email", experience)
        counts = experience.counts
        assert found["email_bounce_risk"].unique().tolist() == [
            counts["hard"].sum() / counts["mailed"].sum()
        ]

    @pytest.mark.slow
    def test_polars_and_arrow_come_back_as_they_are(self):
        experience, out = learnt({"good": 0.02, "bad": 0.3})
        expected = mv.risk(out, "email", experience)["email_bounce_risk"].tolist()
        assert (
            mv.risk(pl.from_pandas(out), "email", experience)["email_bounce_risk"].to_list()
            == expected
        )
        assert (
            mv.risk(pa.Table.from_pandas(out), "email", experience)["email_bounce_risk"].to_pylist()
            == expected
        )


class TestCalibration:
    @pytest.mark.slow
    def test_domains_that_were_left_out_are_forecast(self):
        experience, _ = learnt({"good": 0.02, "bad": 0.3})
        found = experience.calibration
        assert found.is_better
        assert found.brier == pytest.approx((0.02 * 0.98 + 0.3 * 0.7) / 2, abs=0.02)
        assert repr(found).startswith(
            "forecasts are better than the plain rate of the verdict: Brier score 0.1"
        )
        assert (found.table["expected"] - found.table["seen"]).abs().max() < 0.05
        assert int(found.table["mailed"].sum()) == 1800

    def test_one_domain_is_too_little_to_say(self):
        assert not calibrate(
            learn_all(
                a_list((5, "risky", "x", "a.example")), "email", reports(hard=["u0@a.example"])
            ).counts
        ).is_better
