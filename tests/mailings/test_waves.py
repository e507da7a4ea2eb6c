"""A list mailed in waves.

What is never mailed, what waits, and what happens when bounces or the list are not right.
"""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from tests.doubles.tables import each_row
from tests.mailings.test_experience import a_list, reports

GOOD = (1200, "valid", "google", "big.example")
DOUBTFUL = [(30, "risky", ("fine", "bad")[n % 2], f"d{n}.example") for n in range(20)]
BIG = a_list(GOOD, *DOUBTFUL)


def outcome_of(plan, rates=None):
    """The reports of a wave: of each operator every n-th mail bounces, the others are delivered."""
    rates = {"google": 0.005, "fine": 0.0, "bad": 0.5} | (rates or {})
    rows = plan.next.reset_index(drop=True)
    share = rows["email_operator"].map(rates).astype(float)
    number = rows.groupby("email_operator").cumcount()
    is_hard = np.floor((number + 1) * share) > np.floor(number * share)
    return {"hard": rows["email"][is_hard].tolist(), "delivered": rows["email"][~is_hard].tolist()}


@functools.cache
def campaign(max_bounce_rate=0.02):
    """The plans of four waves, each learnt from the reports of all waves before."""
    out, plans, told, experience = BIG, [], {"hard": [], "delivered": []}, None
    for _ in range(4):
        plan = mv.mailing(
            out, "email", waves=4, experience=experience, max_bounce_rate=max_bounce_rate
        )
        plans.append(plan)
        for word, addresses in outcome_of(plan).items():
            told[word] += addresses
        experience = mv.learn(plan.frame, "email", reports(**told)) + (
            experience or mv.Experience()
        )
        out = plan.frame
    return plans


class TestCampaign:
    @pytest.mark.slow
    def test_what_does_not_bounce_is_mailed_and_what_does_is_held(self):
        plans = campaign(max_bounce_rate=0.05)
        by_operator = (
            plans[-1]
            .frame.assign(mailed=lambda f: f["email_wave"].notna())
            .groupby("email_operator")["mailed"]
            .mean()
        )
        assert by_operator["google"] == 1
        assert by_operator["fine"] > 0.9
        assert by_operator["bad"] < 0.5

    def test_each_row_is_in_one_wave_or_held(self):
        plans = campaign()
        mailed = pd.concat([plan.next for plan in plans])
        assert not mailed["email"].duplicated().any()
        assert len(mailed) + len(plans[-1].held) == len(BIG)
        assert mailed.index.sort_values().union(plans[-1].held.index).equals(BIG.index)
        assert [plan.wave for plan in plans] == [1, 2, 3, 4]

    def test_the_bounces_that_were_expected_are_those_that_came(self):
        for plan in campaign()[1:]:
            assert plan.expected.low <= len(outcome_of(plan)["hard"]) <= plan.expected.high * 1.1
            assert plan.expected.bounces <= 0.02 * len(plan.next)

    def test_after_the_last_wave_there_is_none(self):
        with pytest.raises(mv.SettingsError, match="waves=4: all of them have been released"):
            mv.mailing(campaign()[-1].frame, "email", waves=4)

    @pytest.mark.slow
    def test_a_plan_is_the_same_when_it_is_made_again(self):
        first, again = (mv.mailing(BIG, "email") for _ in range(2))
        frames = [plan.frame.drop(columns="email_wave_at") for plan in (first, again)]
        pd.testing.assert_frame_equal(*frames)

    @pytest.mark.slow
    @each_row("make", [pl.from_pandas, pa.Table.from_pandas])
    def test_other_frames_come_back_as_their_kind(self, make):
        plan, expected = mv.mailing(make(BIG), "email"), mv.mailing(BIG, "email")
        assert type(plan.next) is type(plan.held) is type(plan.frame) is type(make(BIG))
        assert list(plan.next["email"]) == (
            list(expected.next["email"]) if make is pl.from_pandas else list(plan.next["email"])
        )
        assert len(plan.held) == len(expected.held)


# What a row has so that it is never mailed, and the beginnings of what is said, without and with a
# decision to send.
NEVER = [
    (
        "email_suppressed",
        True,
        [
            "on your suppression list, or a column says no",
            "on your suppression list, or a column says no",
        ],
    ),
    ("email_spamtrap", True, ["flagged spamtrap", "flagged"]),
    ("email_disposable", True, ["flagged disposable", "flagged"]),
    ("email_verdict", "invalid", ["cannot receive mail", "cannot receive mail"]),
    ("email_status", "pending", ["no check has reached the row yet", "it has no verdict"]),
]


class TestNever:
    @each_row("decision", [None, "send"])
    def test_such_a_row_is_held(self, decision):
        out = a_list(
            GOOD, email_decision=pd.array([decision] * 1200, "string"), email_decided_address=pd.NA
        )
        out["email_decided_address"] = out["email_decided_address"].astype("string")
        out["email_suppressed"] = pd.array([False] * 1200, "boolean")
        out[["email_spamtrap", "email_disposable"]] = False
        for row, (column, value, _) in enumerate(NEVER):
            out.loc[row, column] = value
        out["email_verdict"] = out["email_verdict"].mask(out["email_status"] == "pending")
        held = mv.mailing(out, "email", waves=1).held["email_held"]
        assert held.index.tolist() == list(range(len(NEVER)))
        for text, (_, _, said) in zip(held, NEVER, strict=True):
            assert text.startswith(said[decision == "send"])

    def test_a_row_that_a_person_took_out_is_held(self):
        decisions = pd.array(["remove"] + [None] * 1199, "string")
        out = a_list(
            GOOD, email_decision=decisions, email_decided_address=pd.array([None] * 1200, "string")
        )
        assert mv.mailing(out, "email", waves=1).held["email_held"].tolist() == [
            "a person decided so, whatever the policy says"
        ]

    def test_of_a_mailbox_one_row_is_mailed_in_all_waves(self):
        out = pd.concat([BIG, BIG], ignore_index=True)
        plan = mv.mailing(out, "email", waves=1)
        assert len(plan.next) <= len(BIG)
        assert not plan.next["email"].duplicated().any()
        assert (plan.held["email_held"] == "its mailbox is in another row").sum() >= 1200
        before = out.assign(email_wave=pd.array([pd.NA] * len(BIG) + [1] * len(BIG), "Int64"))
        with pytest.warns(UserWarning, match="wave 1 of this list is not in the experience"):
            assert len(mv.mailing(before, "email", waves=2).next) == 0

    def test_a_list_that_was_verified_by_mx_only_has_no_good_rows(self):
        plan = mv.mailing(BIG.assign(email_validation_type="mx"), "email")
        assert len(plan.next) == 0
        assert "No row is mailed" in plan.why
        assert plan.can_pilot
        assert "Verify them by smtp, learn from an earlier mailing, or mail a pilot" in str(plan)
        assert str(plan).startswith(
            "Mailing: wave 1 of 6: 0 rows, 0 hard bounces expected, 0 to 0; 1,800 held"
        )


class TestWarnings:
    def test_what_is_more_likely_to_bounce_than_not_is_never_mailed(self):
        out = a_list(GOOD, (100, "risky", "dead", "gone.example"))
        first = mv.mailing(out, "email", waves=2, max_bounce_rate=0.1)
        hard = first.next["email"][first.next["email_operator"] == "dead"].tolist()
        assert len(hard) > 2
        experience = mv.learn(first.frame, "email", reports(hard=hard))
        last = mv.mailing(first.frame, "email", waves=2, max_bounce_rate=0.1, experience=experience)
        assert (last.next["email_operator"] == "dead").sum() == 0

    def test_a_wave_without_its_bounces_is_told_and_opens_nothing_further(self):
        first = mv.mailing(BIG, "email")
        with pytest.warns(
            UserWarning,
            match="wave 1 of this list is not in the experience: learn it from its bounces first",
        ):
            blind = mv.mailing(first.frame, "email")
        seen = mv.mailing(
            first.frame,
            "email",
            experience=mv.learn(first.frame, "email", reports(**outcome_of(first))),
        )
        assert (blind.next["email_operator"] != "google").sum() <= (
            seen.next["email_operator"] != "google"
        ).sum()
        assert blind.why.startswith("Nothing has been learnt yet")

    @pytest.mark.slow
    def test_a_list_that_changed_after_its_wave_was_learnt_is_told(self):
        first = mv.mailing(BIG, "email")
        experience = mv.learn(first.frame, "email", reports(**outcome_of(first)))
        removed = first.frame.drop(index=first.next.index[:3])
        # Rows that were taken out change nothing.
        mv.mailing(removed, "email", experience=experience)
        changed = first.frame.copy()
        changed.loc[first.next.index, "email_verdict"] = "unknown"
        with pytest.warns(
            UserWarning, match="or its verdicts have changed since|list or its verdicts"
        ):
            mv.mailing(changed, "email", experience=experience)

    @pytest.mark.slow
    def test_a_wave_with_far_fewer_bounces_than_expected_does_not_count_until_it_is_complete(self):
        first = mv.mailing(
            a_list((9000, "valid", "google", "big.example"), *DOUBTFUL), "email", waves=2
        )
        with pytest.warns(UserWarning, match="wave 1 of this list is not in the experience"):
            without = mv.mailing(first.frame, "email", waves=2)
        few = reports(hard=first.next["email"][:1].tolist())
        assert len(first.next) > 3000
        assert first.expected.low > 1
        with pytest.warns(
            UserWarning,
            match="wave 1 had 1 hard bounce of .* were expected: does its export lack some",
        ):
            doubted = mv.mailing(
                first.frame, "email", waves=2, experience=mv.learn(first.frame, "email", few)
            )
        assert set(doubted.next.index) <= set(without.next.index)
        assert doubted.expected.bounces / len(doubted.next) >= without.expected.bounces / len(
            without.next
        )
        whole = mv.learn(first.frame, "email", few, complete=True)
        believed = mv.mailing(first.frame, "email", waves=2, experience=whole)
        assert (
            "1 hard bounce and 0 blocked or deferred; mails without a report count as reached"
            in believed.why
        )
        assert believed.expected.high < doubted.expected.high

    @each_row(
        ("options", "message"),
        [
            ({"max_bounce_rate": 2}, "max_bounce_rate=2: give a part of 1"),
            ({"waves": 0}, "waves=0: give a whole number from 1"),
            ({"experience": 5}, "experience is of type int"),
        ],
    )
    def test_wrong_options_are_refused(self, options, message):
        with pytest.raises(mv.SettingsError, match=message):
            mv.mailing(BIG, "email", **options)

    def test_a_column_of_the_caller_is_not_replaced(self):
        with pytest.raises(mv.SettingsError, match="email_held"):
            mv.mailing(BIG.assign(email_held="mine"), "email")


class TestShown:
    def test_all_reasons_are_counted(self):
        out = BIG.copy()
        whys = [
            "mailbox_not_found",
            "no_mx_record",
            "no_domain",
            "blacklisted",
            "syntax_error",
            "disabled_mailbox",
        ]
        whys += ["mailbox_full", "greylisted", "spam_policy", "dnsbl_listed", "no_connection"]
        out.loc[: len(whys) - 1, "email_why"] = whys
        out.loc[: len(whys) - 1, "email_verdict"] = "invalid"
        plan = mv.mailing(out, "email")
        assert sum(plan._shown().values()) == sum(plan.reasons.values()) == len(plan.held)

    def test_it_is_a_few_lines_in_words(self):
        text = str(mv.mailing(BIG, "email"))
        assert text.splitlines()[0].startswith("Mailing: wave 1 of 6: ")
        assert (
            "it is assumed, with a wide margin, that 0.6% of good rows and 12.0% of doubtful "
            "rows bounce" in text
        )
        assert len(text.splitlines()) < 8

    def test_html_is_escaped(self):
        page = mv.mailing(BIG, "email")._repr_html_()
        assert "kept for a later wave" in page
        assert "<script" not in page


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_a_short_list_is_mailed_from_the_first_wave_on(rows):
    plan = mv.mailing(a_list((rows, "valid", "google", "big.example")), "email")
    assert len(plan.next) == 1
    assert plan.frame["email_wave"].max() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_bounce_rate": "2%"}, "max_bounce_rate='2%': give a part of 1"),
        ({"waves": "6"}, "waves='6': give a whole number"),
        ({"waves": 2.5}, "waves=2.5"),
        ({"waves": True}, "waves=True"),
    ],
)
def test_options_of_a_wrong_type_are_refused(options, message):
    with pytest.raises(mv.SettingsError, match=message):
        mv.mailing(a_list((3, "valid", "google", "big.example")), "email", **options)
