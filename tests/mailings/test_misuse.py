"""What a person does wrong between two waves: an error or a warning that names the remedy."""

from __future__ import annotations

import functools
import io
from datetime import UTC, datetime, timedelta

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from tests.doubles.tables import each_row
from tests.mailings.test_experience import a_list, learn_all, reports

GOOD = (1200, "valid", "google", "big.example")
DOUBTFUL = [(30, "risky", ("fine", "bad")[n % 2], f"d{n}.example") for n in range(20)]
BIG = a_list(GOOD, *DOUBTFUL)
OTHER = a_list((900, "valid", "google", "other.example"), (90, "risky", "fine", "e.example"))


@functools.cache
def first_wave(**options):
    return mv.mailing(BIG, "email", **options)


def few_hard(plan, **more):
    """A few of the wave's mails bounced, as was expected."""
    return reports(hard=plan.next["email"][:2].tolist(), **more)


@functools.cache
def first_experience(**options):
    plan = first_wave(**options)
    return mv.learn(plan.frame, "email", few_hard(plan), name="spring")


def through_csv(frame):
    return pd.read_csv(io.StringIO(frame.to_csv(index=False)))


def through_polars_csv(frame):
    return pl.read_csv(pl.from_pandas(frame).write_csv().encode())


def through_parquet(frame, folder):
    frame.to_parquet(folder / "list.parquet")
    return pd.read_parquet(folder / "list.parquet")


class TestAnotherFrameThanMailingFrame:
    @each_row("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, through_csv])
    def test_the_list_as_it_was_verified_is_refused_after_a_wave_was_learnt(self, make):
        message = (
            "wave 1 of 'spring' of this list is in the experience, and no row of this frame has a "
            "wave in 'email_wave': "
            "people would be mailed again. Give Mailing.frame"
        )
        with pytest.raises(mv.SettingsError, match=message):
            mv.mailing(make(BIG), "email", experience=first_experience())

    @each_row("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, through_csv])
    def test_the_rows_that_were_held_are_refused(self, make):
        with pytest.raises(mv.SettingsError, match=r"is it Mailing.held\? Give Mailing.frame"):
            mv.mailing(make(first_wave().held), "email")

    @each_row("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, through_csv])
    def test_the_rows_that_were_held_are_refused_also_with_the_experience(self, make):
        with pytest.raises(mv.SettingsError, match=r"Give Mailing.frame"):
            mv.mailing(make(first_wave().held), "email", experience=first_experience())

    def test_the_rows_of_the_wave_are_refused(self):
        with pytest.raises(mv.SettingsError, match=r"is it Mailing.next\? Give Mailing.frame"):
            mv.mailing(first_wave().next, "email", experience=first_experience())

    def test_the_list_of_another_month_is_told_that_people_are_mailed_again(self):
        month = pd.concat([BIG[:1200], OTHER], ignore_index=True)
        with pytest.warns(UserWarning, match="If this is another mailing, that is right"):
            plan = mv.mailing(month, "email", experience=first_experience())
        assert plan.wave == 1
        assert plan.rows

    def test_a_list_of_which_all_waves_were_mailed_may_be_mailed_again(self):
        plan = mv.mailing(BIG, "email", waves=1)
        learnt = mv.learn(plan.frame, "email", few_hard(plan), name="spring")
        with pytest.warns(UserWarning, match="If this is another mailing, that is right"):
            assert mv.mailing(BIG, "email", experience=learnt).wave == 1

    def test_again_mails_the_list_from_the_beginning(self):
        plan = mv.mailing(BIG, "email", experience=first_experience(), again=True)
        assert plan.wave == 1
        assert len(plan.next)

    def test_rows_may_be_taken_off_the_list_between_two_waves(self):
        left = first_wave().frame.drop(index=first_wave().next.index[:100])
        assert mv.mailing(left, "email", experience=first_experience()).wave == 2

    def test_another_list_is_not_refused(self):
        plan = mv.mailing(OTHER, "email", experience=first_experience())
        assert plan.wave == 1
        assert "a list is not another list" in plan.why


class TestListsThatAreTooShortForAKey:
    """Of fewer than ten mailboxes no key is kept, so that their list is not known again."""

    FEW = a_list((6, "valid", "google", "few.example"))
    MAYBE = (
        "wave 1 of 'spring' of a list of fewer than 10 mailboxes is in the experience, and this "
        "list is as short.*If they are, give Mailing.frame"
    )

    @functools.cached_property
    def plan(self):
        return mv.mailing(self.FEW, "email", waves=2, max_bounce_rate=0.02)

    @functools.cached_property
    def experience(self):
        return mv.learn(
            self.plan.frame, "email", reports(delivered=self.FEW["email"]), name="spring"
        )

    @each_row("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, through_csv])
    def test_the_list_as_it_was_verified_is_told_that_people_may_be_mailed_again(self, make):
        with pytest.warns(UserWarning, match=self.MAYBE):
            mv.mailing(make(self.FEW), "email", experience=self.experience)

    def test_the_frame_of_the_last_call_is_known(self):
        following = mv.mailing(through_csv(self.plan.frame), "email", experience=self.experience)
        assert (following.wave, following.not_learnt) == (2, ())

    def test_again_says_nothing(self):
        assert mv.mailing(self.FEW, "email", experience=self.experience, again=True).wave == 1

    @each_row("other", [OTHER, a_list((5, "risky", "google", "few.example"))])
    def test_a_list_that_is_longer_or_has_other_rows_is_another_one(self, other):
        assert mv.mailing(other, "email", experience=self.experience).wave == 1

    def test_one_name_for_two_of_them_is_told(self):
        more = a_list((9, "valid", "google", "more.example"))
        second = learn_all(more, "email", reports(delivered=more["email"]), name="spring")
        first = learn_all(self.FEW, "email", reports(delivered=self.FEW["email"]), name="spring")
        with pytest.warns(UserWarning, match="learn each with a name of its own"):
            assert len((first + second).mailings) == 1
        assert len((first + first).mailings) == 1


class TestBudgetAndNumberOfWaves:
    def test_the_next_call_takes_those_of_the_frame(self):
        plan = first_wave(max_bounce_rate=0.05, waves=3)
        known = first_experience(max_bounce_rate=0.05, waves=3)
        following = mv.mailing(plan.frame, "email", experience=known)
        assert (following.wave, following.waves, following.max_bounce_rate) == (2, 3, 0.05)
        assert "default" not in following.why

    def test_a_file_keeps_them(self, tmp_path):
        plan = first_wave(max_bounce_rate=0.05, waves=3)
        frame = through_parquet(plan.frame, tmp_path)
        known = first_experience(max_bounce_rate=0.05, waves=3)
        following = mv.mailing(frame, "email", experience=known)
        assert (following.waves, following.max_bounce_rate) == (3, 0.05)

    def test_the_experience_keeps_them_where_a_file_does_not(self, tmp_path):
        plan = first_wave(max_bounce_rate=0.05, waves=3)
        path = tmp_path / "experience.json"
        first_experience(max_bounce_rate=0.05, waves=3).save(path)
        following = mv.mailing(through_csv(plan.frame), "email", experience=path)
        assert (following.waves, following.max_bounce_rate) == (3, 0.05)

    def test_another_value_may_be_given(self):
        plan = first_wave(max_bounce_rate=0.05, waves=3)
        known = first_experience(max_bounce_rate=0.05, waves=3)
        options = {"waves": 9, "max_bounce_rate": 0.01}
        following = mv.mailing(plan.frame, "email", experience=known, **options)
        assert (following.waves, following.max_bounce_rate) == (9, 0.01)

    def test_defaults_are_named_where_nothing_is_known(self):
        assert "max_bounce_rate=0.02 and waves=6 are the defaults" in first_wave().why
        assert "default" not in first_wave(max_bounce_rate=0.02, waves=6).why
        with pytest.warns(UserWarning, match="not in the experience"):
            plan = mv.mailing(through_csv(first_wave(waves=3).frame), "email", waves=3)
        assert "max_bounce_rate=0.02 is the default" in plan.why


class TestOneNameForTwoLists:
    def test_it_is_an_error(self):
        first = learn_all(BIG, "email", reports(hard=["u1@big.example"]), name="march")
        second = learn_all(OTHER, "email", reports(hard=["u1@other.example"]), name="march")
        with pytest.raises(mv.SettingsError, match="'march' is the name of another list"):
            first + second

    def test_waves_without_a_name_are_two_mailings(self):
        plans = [mv.mailing(frame, "email") for frame in (BIG, OTHER)]
        experiences = [mv.learn(plan.frame, "email", few_hard(plan)) for plan in plans]
        both = experiences[0] + experiences[1]
        assert len(both.mailings) == 2

    @each_row("kept", [0.4, 0.7, 1.0])
    def test_an_export_of_another_month_keeps_its_name(self, kept):
        rows = int(kept * len(BIG))
        month = pd.concat([BIG[:rows], OTHER], ignore_index=True)
        first = learn_all(BIG, "email", reports(hard=["u1@big.example"]), name="news")
        second = learn_all(month, "email", reports(hard=["u1@big.example"]), name="news")
        assert len((first + second).mailings) == 1

    def test_a_wave_that_is_named_later_counts_once(self):
        plan = first_wave()
        unnamed = mv.learn(plan.frame, "email", few_hard(plan))
        assert len((unnamed + first_experience()).mailings) == 1


class TestColumnsThatAreNotThere:
    def short(self):
        frame = pd.DataFrame({"email": BIG["email"]})
        out = mv.verify(frame, "email", validation_type="regex", columns="short")
        return through_csv(out)

    def test_the_column_that_says_who_was_asked_is_named(self):
        with pytest.warns(UserWarning, match="there is no column 'email_validation_type', and"):
            plan = mv.mailing(self.short(), "email")
        assert plan.rows == 0

    def test_with_it_the_good_rows_are_mailed(self):
        plan = mv.mailing(self.short().assign(email_validation_type="smtp"), "email")
        assert plan.rows > 200

    def test_the_set_of_columns_that_is_the_default_loses_the_operator(self):
        core = BIG.drop(columns=["email_operator", "email_validation_type"])
        core["email_catch_all"] = core["email_verdict"] == "risky"
        plan = mv.mailing(through_csv(core), "email")
        assert plan.rows > 100
        assert "Without the column 'email_operator' (columns='all')" in plan.why
        assert "operator" not in first_wave().why


class TestAWaveThatWasNotMailed:
    def second(self):
        return mv.mailing(first_wave().frame, "email", experience=first_experience())

    def test_a_cell_that_ran_twice_is_told_and_can_be_taken_back(self):
        plan = self.second()
        message = r"wave 2 of this list is not in the experience.*plan it again with again=True"
        with pytest.warns(UserWarning, match=message):
            third = mv.mailing(plan.frame, "email", experience=first_experience())
        assert third.not_learnt == (2,)
        again = mv.mailing(plan.frame, "email", experience=first_experience(), again=True)
        assert again.wave == 2
        assert again.next.index.tolist() == plan.next.index.tolist()

    def test_a_wave_that_was_learnt_is_not_taken_back(self):
        with pytest.raises(mv.SettingsError, match="again=True: wave 1 was learnt"):
            mv.mailing(first_wave().frame, "email", experience=first_experience(), again=True)

    def test_the_last_wave_of_all_can_be_taken_back(self):
        plan = mv.mailing(BIG, "email", waves=1)
        with pytest.raises(mv.SettingsError, match="again=True if the last one was not mailed"):
            mv.mailing(plan.frame, "email")
        assert mv.mailing(plan.frame, "email", again=True).wave == 1


class TestReportsThatAreOlderThanTheWave:
    def dated(self, days, plan):
        moment = datetime.now(UTC) - timedelta(days=days)
        rows = [(address, "hard", moment) for address in plan.next["email"][:9]]
        columns = {"address": "who", "outcome": "what", "at": "when"}
        table = pd.DataFrame(rows, columns=["who", "what", "when"])
        return mv.read_bounces(table, columns=columns)

    def test_they_do_not_count(self):
        plan = first_wave()
        old, new = self.dated(40, plan), few_hard(plan)
        with pytest.warns(UserWarning, match="9 reports are more than 2 days older than the wave"):
            learnt = mv.learn(plan.frame, "email", pd.concat([old, new]))
        assert learnt.mailings[0].hard == 2

    def test_a_wave_that_was_planned_again_after_it_was_mailed_can_have_its_day_set(self):
        plan = first_wave()
        frame = plan.frame.copy()
        with pytest.raises(mv.InputError, match=r"or Mailing\.frame of the day"):
            mv.learn(frame, "email", self.dated(5, plan))
        frame["email_wave_at"] = datetime.now(UTC) - timedelta(days=6)
        assert mv.learn(frame, "email", self.dated(5, plan)).mailings[0].hard == 9

    def test_alone_they_are_an_error(self):
        plan = first_wave()
        message = "no report is among the mailed rows of 'email': 9 reports are more than 2 days"
        with pytest.raises(mv.InputError, match=message):
            mv.learn(plan.frame, "email", self.dated(40, plan))

    @each_row("make", [pl.from_pandas, pa.Table.from_pandas, through_csv, through_polars_csv])
    def test_neither_where_the_frame_has_no_note(self, make):
        plan = first_wave()
        frame = make(plan.frame)
        if isinstance(frame, pa.Table):
            frame = frame.replace_schema_metadata(None)
        with pytest.warns(UserWarning, match="9 reports are more than 2 days older than the wave"):
            learnt = mv.learn(frame, "email", pd.concat([self.dated(40, plan), few_hard(plan)]))
        assert learnt.mailings[0].hard == 2

    def test_each_wave_has_a_time_of_its_own(self):
        plan = first_wave()
        earlier = pd.Timestamp("2026-01-05 08:00", tz="UTC")
        frame = through_csv(plan.frame.assign(email_wave_at=earlier))
        with pytest.warns(UserWarning, match="not in the experience"):
            second = mv.mailing(frame, "email")
        waves = second.frame.groupby("email_wave")["email_wave_at"]
        assert waves.nunique().tolist() == [1, 1]
        assert waves.first()[1] == earlier
        assert abs(waves.first()[2] - datetime.now(UTC)) < timedelta(hours=1)
        assert second.frame["email_wave_at"].isna().equals(second.frame["email_wave"].isna())

    def test_a_wave_that_is_planned_again_has_a_new_time(self):
        frame = first_wave().frame.copy()
        frame["email_wave_at"] = pd.Timestamp("2026-01-05 08:00", tz="UTC")
        again = mv.mailing(frame, "email", again=True)
        assert (again.next["email_wave_at"] > pd.Timestamp("2026-02-01", tz="UTC")).all()

    def test_a_frame_of_an_earlier_release_has_the_time_in_its_note(self):
        plan = first_wave()
        frame = plan.frame.drop(columns="email_wave_at")
        with pytest.raises(mv.InputError, match="9 reports are more than 2 days"):
            mv.learn(frame, "email", self.dated(40, plan))

    def test_a_list_without_times_counts_all_reports(self):
        plan = first_wave()
        frame = through_csv(plan.frame.drop(columns="email_wave_at"))
        assert mv.learn(frame, "email", self.dated(40, plan)).mailings[0].hard == 9

    def test_a_time_that_nobody_wrote_is_an_error(self):
        frame = first_wave().frame.assign(email_wave_at="yesterday")
        with pytest.raises(mv.InputError, match="'email_wave_at' holds 'yesterday'"):
            mv.learn(frame, "email", few_hard(first_wave()))

    @each_row("days", [1, 0, -3])
    def test_a_date_in_another_time_zone_is_not_older(self, days):
        plan = first_wave()
        assert mv.learn(plan.frame, "email", self.dated(days, plan)).mailings[0].hard == 9


class TestPilot:
    @each_row(
        ("frame", "options"),
        [
            (BIG.assign(email_validation_type="mx"), {}),
            (BIG[1200:], {}),
            (BIG[1200:].assign(email_operator=None), {}),
            (BIG, {"max_bounce_rate": 0.001}),
        ],
    )
    def test_a_list_without_sure_rows_has_a_pilot_on_request(self, frame, options):
        plan = mv.mailing(frame, "email", **options)
        assert plan.rows == 0
        assert plan.can_pilot
        assert "mail a pilot (pilot=200)" in str(plan)
        pilot = mv.mailing(plan.frame, "email", pilot=200, **options)
        assert (pilot.wave, pilot.rows, pilot.is_pilot) == (1, 200, True)
        assert pilot.next["email"].str.partition("@")[2].nunique() >= 20
        assert pilot.expected.bounces > 1
        assert "above the budget of" in pilot.why
        assert "a pilot: 200 rows" in str(pilot)

    def test_after_the_pilot_its_bounces_decide(self):
        frame = BIG.assign(email_validation_type="mx")
        pilot = mv.mailing(frame, "email", pilot=200)
        learnt = mv.learn(pilot.frame, "email", few_hard(pilot))
        plan = mv.mailing(pilot.frame, "email", experience=learnt, max_bounce_rate=0.05)
        assert plan.wave == 2
        assert plan.rows > 200

    @each_row("pilot", [0, -1, 2.5, "200", True])
    def test_a_pilot_of_no_size_is_refused(self, pilot):
        with pytest.raises(mv.SettingsError, match=r"pilot=.*give a whole number from 1"):
            mv.mailing(BIG, "email", pilot=pilot)


class TestBlocksAndComplaints:
    def after(self, rows=None, *, options=None, **outcomes):
        """The second wave, if so many of each operator of the first had an outcome."""
        plan = mv.mailing(BIG, "email", max_bounce_rate=0.05)
        rows = plan.next if rows is None else rows
        told = {word: rows["email"][:count].tolist() for word, count in outcomes.items()}
        learnt = mv.learn(plan.frame, "email", reports(**told))
        return mv.mailing(plan.frame, "email", experience=learnt, **(options or {}))

    def test_a_wave_is_withheld_after_complaints_until_it_is_resumed(self):
        message = r"wave 2 is withheld: 3 people of .* complained.*resume=True"
        with pytest.warns(UserWarning, match=message):
            plan = self.after(complaint=3)
        assert plan.rows == 0
        assert plan.frame["email_wave"].max() == 1
        assert "The wave is withheld: 3 people of" in plan.why
        assert "resume=True" in str(plan)
        assert plan.can_resume
        assert not plan.can_pilot
        assert plan.reasons["withheld: the last wave was blocked or complained about"] > 500
        resumed = self.after(complaint=3, options={"resume": True})
        assert resumed.rows > 100
        assert not resumed.withheld

    def test_a_complaint_is_a_warning(self):
        with pytest.warns(UserWarning, match=r"1 person of .* complained.*less than 0.1 %"):
            plan = self.after(complaint=1)
        assert plan.rows > 100
        assert plan.warnings

    def test_blocks_everywhere_withhold_the_wave(self):
        with pytest.warns(UserWarning, match="wave 2 is withheld: .* were blocked"):
            plan = self.after(blocked=10_000)
        assert plan.rows == 0
        assert "not by one operator alone" in plan.withheld

    def test_blocks_at_one_operator_withhold_its_rows_alone(self):
        first = mv.mailing(BIG, "email", max_bounce_rate=0.05)
        google = first.next[first.next["email_operator"] == "google"]
        with pytest.warns(
            UserWarning, match="google blocked 100 of .* its rows are withheld.*resume=True"
        ):
            plan = self.after(google, blocked=100)
        assert "google blocked 100 of" in plan.why
        assert not plan.withheld
        assert plan.can_resume
        assert (plan.next["email_operator"] != "google").all()
        assert plan.reasons["withheld: its operator blocked the last wave"] > 500

    def test_a_few_blocks_change_nothing(self):
        plan = self.after(blocked=2, hard=3)
        assert plan.rows > 100
        assert not plan.warnings

    def test_to_resume_holds_for_one_call(self):
        first = mv.mailing(BIG, "email")
        told = {"complaint": first.next["email"][:5].tolist()}
        learnt = mv.learn(first.frame, "email", reports(**told))
        second = mv.mailing(first.frame, "email", experience=learnt, resume=True)
        told["complaint"] += second.next["email"][:5].tolist()
        learnt = mv.learn(second.frame, "email", reports(**told))
        with pytest.warns(UserWarning, match="wave 3 is withheld"):
            assert mv.mailing(second.frame, "email", experience=learnt).rows == 0
