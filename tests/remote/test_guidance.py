"""What the contract recommends to clients that poll, sentence by sentence, in both revisions: virtual time."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from tests.doubles.remote import Outcome, addresses, verify_scripted
from tests.doubles.scripted_service import ScriptedService, payload
from tests.doubles.tables import each_row

NEVER = 1e9  # seconds that a job takes, or is not found


def seconds_between_polls(outcome: Outcome, service: ScriptedService) -> dict[str, set[int]]:
    """Of the only job, by its age at the poll before."""
    [job] = service.jobs.values()
    ages = [0.0, *(at - job.made_at for at in job.polled_at)]
    found: dict[str, set[int]] = {"first 30 s": set(), "up to 2 min": set(), "beyond": set()}
    for before, after in pairwise(ages):
        name = "first 30 s" if before < 30 else "up to 2 min" if before < 120 else "beyond"
        found[name].add(round(after - before))
    return found


def errors(outcome: Outcome, service: ScriptedService) -> Any:
    return [(row["status"], row["error"], row["result"]) for row in outcome.rows.values()], len(
        outcome.rows
    )


def polls_before_the_error(outcome: Outcome, service: ScriptedService) -> tuple[list[str], bool]:
    [job] = service.jobs.values()
    return [row["error"] for row in outcome.rows.values()], 3 <= len(job.polled_at) <= 10


def minutes_until_given_up(
    outcome: Outcome, service: ScriptedService
) -> tuple[list[str], int, int]:
    return list(outcome.deferred.values()), round(outcome.seconds / 60), len(outcome.rows)


def most_at_once_and_polls_of_finished_jobs(
    outcome: Outcome, service: ScriptedService
) -> tuple[bool, int, list[str]]:
    """At most eight polls and a submission at once; times of the first polls; polls after a final status."""
    first = {job.polled_at[0] for job in service.jobs.values()}
    return service.most_parallel <= 9, len(first), service.violations


def buckets(outcome: Outcome, service: ScriptedService) -> dict[str, int]:
    """Verdicts of jobs that are done, and what failed technically beside them."""
    return Counter(
        row["result"] if row["status"] == "done" else row["status"] for row in outcome.rows.values()
    )


def verdict_of(email: str, validation_type: str) -> dict[str, Any] | None:
    results = ("valid", "risky", "invalid", "unknown", None)
    result = results[int(email.partition("@")[0].removeprefix("user")) % len(results)]
    return None if result is None else payload(email, validation_type, result)


@dataclass
class Sentence:
    """A recommendation, a service that shows whether it is kept, what is looked at, and what it must be."""

    text: str
    count: int
    seen: Callable[[Outcome, ScriptedService], Any]
    expected: Any
    expected_earlier: Any = None  # None: the same
    service: dict[str, Any] = field(default_factory=dict)


SENTENCES = [
    Sentence(
        "every 2 s for the first 30 s, every 5 s up to 2 min, every 15 s beyond",
        1,
        seconds_between_polls,
        {"first 30 s": {2}, "up to 2 min": {5}, "beyond": {15}},
        service={"duration": lambda _: 200.0},
    ),
    Sentence(
        "early 404: treat as pending",
        3,
        errors,
        ([("done", None, "valid")] * 3, 3),
        service={"hidden": 5.0},
    ),
    Sentence(
        "early 404: failure only after a few consecutive attempts",
        1,
        polls_before_the_error,
        (["JOB_NOT_FOUND"], True),
        service={"hidden": NEVER},
    ),
    Sentence(
        "give up after about 15 minutes of pending",
        2,
        minutes_until_given_up,
        (["gave_up", "gave_up"], 15, 0),
        service={"duration": lambda _: NEVER},
    ),
    Sentence(
        "stagger requests instead of 100 parallel polls; poll only pending ids",
        100,
        most_at_once_and_polls_of_finished_jobs,
        (True, 100, []),
        service={"duration": lambda email: 60.0 if email.startswith("user1") else 1.0},
    ),
    Sentence(
        "records with status error form a fifth bucket beside valid, risky, invalid, unknown",
        10,
        buckets,
        {"valid": 2, "risky": 2, "invalid": 2, "unknown": 2, "error": 2},
        # The earlier revision has valid, invalid and error; the double calls risky valid, and unknown invalid.
        expected_earlier={"valid": 4, "invalid": 4, "error": 2},
        service={"verdict": verdict_of},
    ),
]


@pytest.mark.slow
@each_row("earlier", [False, True], ids=["current", "earlier"])
@each_row("sentence", SENTENCES, ids=lambda each: each.text)
def test_the_client_polls_as_the_contract_recommends(sentence: Sentence, earlier: bool) -> None:
    outcome, service = verify_scripted(
        addresses(sentence.count), earlier=earlier, **sentence.service
    )
    expected = (
        sentence.expected_earlier if earlier and sentence.expected_earlier else sentence.expected
    )
    assert sentence.seen(outcome, service) == expected
    assert service.violations_and_double_payments == []
    assert outcome.error is None
