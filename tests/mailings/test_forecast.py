"""What earlier mailings say about a list.

Those of other lists, an export that lacks bounces, and rates that rise.
"""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.frames.results import Results
from mailverdict.mailings.cells import cells_of, read_list_mailboxes
from mailverdict.mailings.experience import Experience, LearntMailing
from mailverdict.mailings.forecast import doubt, forecast_list, lessen
from tests.doubles.simulated_mailings import BUDGET, WORLDS, run_campaign
from tests.mailings.test_experience import a_list, learn_all, reports

LIST = a_list(
    (400, "valid", "google", "big.example"),
    *((20, "risky", "hosting.example", f"d{n}.example") for n in range(20)),
)


def forecast(known, out=LIST):
    rows = Results(out, "email", None)
    cells = cells_of(rows, read_list_mailboxes(rows), known.counts)
    return forecast_list(cells, np.zeros(len(out), np.int64), known), out


def rate_at(forecast_of_list, domain):
    found, out = forecast_of_list
    row = np.flatnonzero(out["email"].str.endswith(f"@{domain}"))[0]
    return float(found.rates.cells.rate[found.cell[row]])


def other_list(*domains, hard=0):
    """What was learnt of other people at some domains, of which so many bounced."""
    out = a_list(*((40, "risky", "hosting.example", domain) for domain in domains))
    out["email"] = "other-" + out["email"]
    out["email_clean"] = out["email"]
    return learn_all(out, "email", reports(hard=out["email"][:hard], delivered=out["email"][hard:]))


def mailing(hard, mailed=1000, **options):
    line = ["valid", "none", "google", "big.example", 1, mailed, hard, 0, 0, 0]
    names = ["verdict", "why", "operator", "domain"]
    names += ["domains", "mailed", "hard", "unclear", "blocked", "complaints"]
    return LearntMailing(1, pd.DataFrame([line], columns=names), **options)


class TestOtherLists:
    def test_they_say_nothing_about_the_other_domains(self):
        nothing = forecast(Experience())
        known = forecast(other_list("else1.example", "else2.example"))
        assert known[0].others
        assert not known[0].mailings
        assert rate_at(known, "d3.example") == rate_at(nothing, "d3.example")

    def test_a_domain_of_both_counts_for_itself_and_little(self):
        nothing = forecast(Experience())
        fine = forecast(other_list("d3.example"))
        bad = forecast(other_list("d3.example", hard=40))
        assert rate_at(fine, "d3.example") == pytest.approx(0.06, abs=0.01)
        assert rate_at(bad, "d3.example") > 0.5
        assert rate_at(bad, "d4.example") == rate_at(nothing, "d4.example")

    def test_the_same_list_counts_in_full(self):
        hard = LIST["email"][500:520]
        known = forecast(learn_all(LIST, "email", reports(hard=hard)))
        assert known[0].mailings
        assert rate_at(known, "d3.example") < 0.05

    def test_a_mailing_without_a_key_is_known_by_its_rows(self):
        plan = mv.mailing(LIST, "email")
        learnt = mv.learn(plan.frame, "email", reports(hard=plan.next["email"][:1]))
        old = LearntMailing(1, learnt.mailings[0].counts)
        following = mv.mailing(plan.frame, "email", experience=Experience((old,)))
        assert following.not_learnt == ()

    def test_a_wave_that_was_learnt_from_its_rows_alone_is_known(self):
        plan = mv.mailing(LIST, "email")
        rows = pd.read_csv(io.StringIO(plan.next.to_csv(index=False)))
        learnt = mv.learn(rows, "email", reports(hard=rows["email"][:1]))
        following = mv.mailing(plan.frame, "email", experience=learnt)
        assert following.not_learnt == ()


class TestDoubt:
    def test_so_many_mails_count_as_fit_the_bounces(self):
        (first, second), doubts = doubt([mailing(20), mailing(1)])
        assert first.mailed == 1000
        assert 40 < second.mailed < 80
        assert second.hard == 1
        assert "1 hard bounce of 1,000 mails" in doubts[0]

    def test_what_was_said_to_be_complete_is_believed(self):
        mailings, doubts = doubt([mailing(20), mailing(1, is_complete=True)])
        assert [each.mailed for each in mailings] == [1000, 1000]
        assert doubts == []

    def test_without_any_bounce_nothing_is_left(self):
        assert lessen(mailing(0), 0.0).mailed == 0


def test_a_wave_that_bounces_more_than_its_rates_say_raises_all_rates():
    plan = mv.mailing(LIST, "email", pilot=100)
    rows = plan.next["email"]
    usual = mv.learn(plan.frame, "email", reports(hard=rows[:10], delivered=rows[10:]))
    second = mv.mailing(plan.frame, "email", experience=usual, pilot=100)
    told = {"hard": [*rows[:10], *second.next["email"][:90]], "delivered": rows[10:]}
    risen = mv.learn(second.frame, "email", reports(**told))
    third = mv.mailing(second.frame, "email", experience=risen)
    assert "More doubtful rows of the last wave bounced than its rates say" in third.why


@pytest.mark.slow
def test_campaigns_win_most_of_what_an_oracle_would_and_keep_to_the_budget():
    found = [run_campaign(seed) for seed in range(5)]
    waves = [rate > BUDGET for campaign in found for rate in campaign.rates]
    assert np.median([campaign.won for campaign in found]) >= 0.65
    assert np.mean(waves) <= 0.1  # of these thirty; of more campaigns less than 0.05
    assert not any(campaign.rate > BUDGET for campaign in found)


@pytest.mark.slow
@pytest.mark.parametrize("world", [name for name in WORLDS if name.startswith("after ")])
def test_the_first_wave_after_another_list_is_not_far_above_the_budget(world):
    assert run_campaign(3, WORLDS[world], rows=10_000).rates[0] <= 1.5 * BUDGET
