"""What `mailing` says in words: warnings about the waves before, and how this one was chosen.

warnings_of   wave 1 of this list is not in the experience: learn it from its bounces first. ...
explain       Nothing has been learnt yet: it is assumed, with a wide margin, that ... bounce.
              120 good and 40 doubtful rows, those of the lowest forecast. ...
"""

from __future__ import annotations

from ..model.words import count_of
from .cells import says_who_was_asked
from .choice import Choice
from .forecast import Forecast
from .list_key import FEWEST
from .list_to_mail import Budget, ListToMail, describe_before
from .rates import PRIORS

RESUME = "Find the cause, then go on with resume=True"


def warnings_of(
    listed: ListToMail, forecast: Forecast, choice: Choice, *, again: bool
) -> list[str]:
    """What a person has to know before the wave is mailed."""
    warnings = []
    if not again:
        warnings += warnings_about_before(listed)
    warnings += [warning_not_learnt(listed, wave) for wave in listed.not_learnt]
    warnings += forecast.doubts
    warnings += choice.reputation.complaints
    warnings += [f"{refusal}. {RESUME}" for refusal in choice.refusals]
    if choice.withheld:
        warnings.append(f"wave {listed.wave} is withheld: {choice.withheld}. {RESUME}")
    if not says_who_was_asked(listed.rows):
        label = listed.label("validation_type")
        warnings.append(
            f"there is no column {label}, and {listed.label('catch_all')} has no value, so that "
            "nothing says whether mail servers were asked, and all rows are doubtful: verify with "
            f"columns='all', or add {label} with 'smtp' if they were"
        )
    return warnings


def warnings_about_before(listed: ListToMail) -> list[str]:
    """That the people of a frame without waves were mailed already, or may have been."""
    warnings = []
    if listed.mailed_before is not None:
        warnings.append(
            f"{listed.mailed_before} {describe_before(listed)}. If this is another mailing, that "
            "is right; to go on with that one, give its Mailing.frame"
        )
    if listed.maybe_mailed_before is not None:
        warnings.append(
            f"{listed.maybe_mailed_before} of a list of fewer than {FEWEST} mailboxes is in the "
            "experience, and this list is as short: of so few no key is kept, which would tell "
            "whether they are the same people. If they are, give Mailing.frame of the last call, "
            "or they are mailed again"
        )
    return warnings


def warning_not_learnt(listed: ListToMail, wave: int) -> str:
    """That the experience lacks a wave of the frame."""
    not_mailed = ""
    if wave == listed.last_wave:
        not_mailed = (
            f" If wave {wave} was not mailed, as when a cell ran twice, plan it again with "
            "again=True."
        )
    return (
        f"wave {wave} of this list is not in the experience: learn it from its bounces "
        f"first.{not_mailed} If it was learnt, the list or its verdicts have changed since; "
        "then begin a new experience and learn all waves from this list"
    )


def explain(listed: ListToMail, budget: Budget, forecast: Forecast, choice: Choice) -> list[str]:
    """How the wave was chosen, in sentences."""
    sentences = [describe_known(listed, forecast)]
    if budget.assumed:
        assumed = " and ".join(budget.assumed)
        taken = "are the defaults"
        if len(budget.assumed) == 1:
            taken = "is the default"
        sentences.append(
            f"{assumed} {taken}; neither the frame nor the experience has another value."
        )
    if "operator" not in listed.rows:
        sentences.append(
            f"Without the column {listed.label('operator')} (columns='all') nothing is known of "
            "who runs the mailboxes."
        )
    if listed.known.mailings and forecast.surprise > 1:
        sentences.append(
            "More doubtful rows of the last wave bounced than its rates say: they are taken "
            f"{forecast.surprise:.1f} times as high."
        )
    sentences += describe_rows(listed, budget, choice)
    sentences += [f"{sentence}." for sentence in (*choice.reputation.complaints, *choice.refusals)]
    return sentences


def describe_rows(listed: ListToMail, budget: Budget, choice: Choice) -> list[str]:
    """Which rows are mailed and why so many, in sentences; or why none is."""
    if choice.withheld:
        return [f"The wave is withheld: {choice.withheld}."]
    if not choice.left:
        return ["No row is left that may be mailed."]
    if not len(choice.now):
        return [
            f"No row is mailed: as far as is known, none of the {choice.left:,} rows that are left "
            f"is sure enough for a rate of {budget.rate:.1%}."
        ]
    good = int(listed.cells.is_good[choice.now].sum())
    doubtful = len(choice.now) - good
    rows = f"{good:,} good and {doubtful:,} doubtful rows"
    if choice.is_pilot:
        sentences = [f"A pilot of {rows}, those whose bounces teach the most."]
        if choice.expected.bounces > budget.rate * len(choice.now):
            sentences.append(f"It is expected to be above the budget of {budget.rate:.1%}.")
        return sentences
    bound = f"In so small a wave a bounce more than expected may be above {budget.rate:.1%}."
    if choice.is_sure:
        bound = f"Of such waves 95 % stay below {budget.rate:.1%}."
    return [f"{rows}, those of the lowest forecast.", bound]


def describe_known(listed: ListToMail, forecast: Forecast) -> str:
    """What is known, in sentences: of this list, of others, or nothing."""
    last = forecast.last
    if last is not None:
        return (
            f"The last mailing had {count_of(last.mailed, 'mail')}, "
            f"{count_of(last.hard, 'hard bounce')} and {last.total('unclear'):,} blocked or "
            "deferred; mails without a report count as reached."
        )
    assumed = " and ".join(f"{prior.rate:.1%} of {name} rows" for name, prior in PRIORS.items())
    first = f"it is assumed, with a wide margin, that {assumed} bounce."
    if not listed.known.mailings:
        return f"Nothing has been learnt yet: {first}"
    mailed = sum(mailing.mailed for mailing in forecast.others)
    hard = sum(mailing.hard for mailing in forecast.others)
    return (
        f"Nothing has been learnt of this list yet: {first} Of other lists "
        f"{count_of(mailed, 'mail')} with {count_of(hard, 'hard bounce')} are known; they count "
        "for the domains that are also in this one, and no further: a list is not another list."
    )
