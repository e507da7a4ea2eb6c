"""Submitting, request by request: no network, virtual time."""

import asyncio
import math
from collections.abc import Callable, Collection, Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.backend import (
    GRACE,
    Deferred,
    Job,
    Noticed,
    Quota,
    QuotaSeen,
    Settled,
    Submitted,
    Submitting,
)
from mailverdict.contract.envelope import ErrorEnvelope, SuccessEnvelope
from mailverdict.errors import BackendError, ContractError, ServiceError, TransportError
from mailverdict.remote.api import QUOTA_REQUEST, ApiAnswer, ApiRequest, NoAnswer, read_quota
from mailverdict.remote.bulk import (
    RESUBMISSIONS,
    Submission,
    batch_size,
    match_entries,
    request_quota,
    was_counted,
)
from mailverdict.remote.pace import Pace
from tests.doubles.clock import NOON, VirtualLoop, run_virtual
from tests.doubles.remote import addresses
from tests.doubles.tables import each_row

RESET = NoAnswer(TransportError("POST http://verify.test: the connection was cut"), was_sent=True)
NOT_SENT = NoAnswer(TransportError("POST http://verify.test: no connection"), was_sent=False)


def quota(used: int, limit: int = 100) -> SuccessEnvelope:
    return SuccessEnvelope({"daily_limit": limit, "used": used, "remaining": limit - used}, {})


def queued(emails: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"email": e, "status": "queued", "message": "", "job_id": f"job of {e}"} for e in emails
    ]


def accepted(emails: Sequence[str]) -> SuccessEnvelope:
    return SuccessEnvelope({"results": queued(emails)}, {})


class ScriptedClient:
    """Answers requests from a list, and keeps them among the events that come between."""

    base_url = "http://verify.test"
    is_stopped = False

    def __init__(self) -> None:
        self.answers: list[ApiAnswer] = []
        self.taken: list[Any] = []

    async def send(self, request: ApiRequest) -> ApiAnswer:
        self.taken.append(request)
        return self.answers.pop(0)


def new_submission(
    emails: Sequence[str],
    clock: Callable[[], float] = lambda: NOON,
    lost_batches: Sequence[Submitting] = (),
    pace: float = math.inf,
    elsewhere: Collection[str] = (),
) -> Submission:
    numbers = count(1)
    client = ScriptedClient()

    def claim(batch: Submitting) -> tuple[str, ...]:
        client.taken.append(batch)
        return tuple(email for email in batch.emails if email not in elsewhere)

    return Submission(
        client,  # type: ignore[arg-type]
        emails,
        "mx",
        pace=Pace(len(emails), fixed=pace),
        clock=clock,
        new_token=lambda: f"t{next(numbers)}",
        lost_batches=lost_batches,
        claim=claim,
    )


def drive(submission: Submission, answers: Sequence[ApiAnswer]) -> list[Any]:
    """Drive one batch with scripted answers, all of which must be asked for; give its requests and events in order."""
    client: Any = submission.client
    client.answers, client.taken = list(answers), []

    async def main(loop: VirtualLoop) -> None:
        async for event in submission.next_batch():
            client.taken.append(event)

    run_virtual(main)
    assert not client.answers, f"never asked for: {client.answers}"
    return client.taken


def posts(taken: Sequence[Any]) -> list[list[str]]:
    return [step.body["emails"] for step in taken if isinstance(step, ApiRequest) and step.body]


def kinds(taken: Sequence[Any]) -> list[str]:
    return [step.method if isinstance(step, ApiRequest) else type(step).__name__ for step in taken]


def test_the_quota_is_asked_first_and_the_batch_announced_before_it_is_sent() -> None:
    submission = new_submission(addresses(3))
    taken = drive(submission, [quota(0), accepted(addresses(3))])
    assert kinds(taken) == ["GET", "QuotaSeen", "Submitting", "POST", "Submitted"]
    assert taken[2] == Submitting("t1", tuple(addresses(3)), used_before=0)
    first = addresses(1)[0]
    assert taken[4].jobs[0] == Job(f"job of {first}", first, "mx", submitted_at=NOON)
    assert taken[4].token == "t1"
    assert not submission.has_work


def test_a_batch_of_which_another_run_has_a_part_is_not_sent() -> None:
    submission = new_submission(addresses(120), elsewhere=addresses(110)[90:])
    taken = drive(submission, [quota(0)])
    assert kinds(taken) == ["GET", "QuotaSeen", "Submitting", "Deferred"]
    assert (taken[3].emails, taken[3].why) == (tuple(addresses(100)[90:]), "elsewhere")
    taken = drive(submission, [quota(0)])
    assert (taken[2].emails, taken[3].emails) == (
        (*addresses(90), *addresses(110)[100:]),
        tuple(addresses(110)[100:]),
    )
    rest = [*addresses(90), *addresses(120)[110:]]
    assert posts(drive(submission, [quota(0), accepted(rest)])) == [rest]
    assert not submission.has_work


def test_a_lost_batch_of_which_another_run_has_a_part_is_not_sent_under_its_token() -> None:
    lost = [Submitting("old", ("c@x.org", "d@x.org"), 10)]
    submission = new_submission(["c@x.org", "d@x.org"], lost_batches=lost, elsewhere=["d@x.org"])
    assert drive(submission, [quota(10)])[2] == lost[0]
    taken = drive(submission, [quota(10), accepted(["c@x.org"])])
    assert (posts(taken), keys(taken)) == ([["c@x.org"]], ["t1"])


def test_a_submission_is_never_marked_repeatable() -> None:
    taken = drive(new_submission(["a@b.org"]), [quota(0), accepted(["a@b.org"])])
    assert [step.is_repeatable for step in taken if isinstance(step, ApiRequest)] == [True, False]


def test_batches_have_at_most_100_addresses() -> None:
    submission = new_submission(addresses(250))
    sizes = []
    while submission.has_work:
        expected = submission.left[:100]
        sizes += [
            len(post) for post in posts(drive(submission, [quota(0, 10_000), accepted(expected)]))
        ]
    assert sizes == [100, 100, 50]


def test_a_batch_is_not_larger_than_what_remains_and_the_rest_is_deferred() -> None:
    submission = new_submission(addresses(250))
    assert posts(drive(submission, [quota(70), accepted(addresses(30))])) == [addresses(30)]
    taken = drive(submission, [quota(100)])
    assert kinds(taken) == ["GET", "QuotaSeen", "Deferred"]
    assert (taken[2].why, len(taken[2].emails), taken[2].retry_after) == ("quota", 220, 900.0)
    assert not submission.has_work


def test_a_quota_that_cannot_be_read_is_an_error_before_anything_is_sent() -> None:
    submission = new_submission(addresses(2))
    with pytest.raises(ServiceError):
        drive(submission, [ErrorEnvelope("INTERNAL_ERROR", "m", 500, {})])
    assert submission.left == addresses(2)


def refusal(remaining: int | None, code: str = "QUOTA_EXCEEDED") -> ErrorEnvelope:
    details = {} if remaining is None else {"limit": 100, "remaining": remaining, "requested": 50}
    return ErrorEnvelope(code, "m", 429, details)


def test_a_quota_race_shrinks_the_batch_to_what_the_refusal_says() -> None:
    submission = new_submission(addresses(50))
    taken = drive(submission, [quota(0), refusal(7)])
    assert taken[-1] == Deferred((), "rejected", token="t1")
    assert posts(drive(submission, [quota(0), accepted(addresses(7))])) == [addresses(7)]
    assert len(submission.left) == 43
    assert len(posts(drive(submission, [quota(7), accepted(addresses(50)[7:])]))[0]) == 43, (
        "the shrinking is for once"
    )


def test_a_refusal_with_nothing_remaining_defers_the_rest() -> None:
    submission = new_submission(addresses(5))
    drive(submission, [quota(0), refusal(0)])
    assert drive(submission, [quota(0)])[-1].why == "quota"


@each_row("remaining", [None, 100, -3])
def test_refusals_that_make_no_sense_end_all_the_same(remaining: int | None) -> None:
    submission = new_submission(addresses(90))
    rounds = 0
    while submission.has_work:
        rounds += 1
        taken = drive(submission, [quota(0), refusal(remaining)] if rounds <= 7 else [quota(0)])
    assert taken[-1].why == "quota"
    assert rounds == 8


def test_a_service_with_a_smaller_limit_is_served_in_smaller_batches() -> None:
    submission = new_submission(addresses(100))
    drive(
        submission,
        [quota(0), ErrorEnvelope("BULK_LIMIT_EXCEEDED", "m", 422, {"limit": 25, "received": 100})],
    )
    for _ in range(4):
        assert len(posts(drive(submission, [quota(0), accepted(submission.left[:25])]))[0]) == 25
    assert not submission.has_work


@each_row(
    "failure",
    [
        ErrorEnvelope("INVALID_VALIDATION_TYPE", "m", 400, {"allowed": ["mx"]}),
        ErrorEnvelope("E1002", "m", 400, {}),
        ErrorEnvelope("", "HTML", 404, {}),
        ErrorEnvelope("", "redirected", 308, {}),
        ErrorEnvelope("WHATEVER", "m", 451, {}),
    ],
)
def test_a_refusal_ends_the_submitting_and_nothing_is_uncertain(failure: ErrorEnvelope) -> None:
    submission = new_submission(addresses(5))
    taken = drive(submission, [quota(0), failure])
    assert taken[-1] == Deferred((), "rejected", token="t1")
    assert isinstance(submission.error, ServiceError)
    assert not submission.has_work


def test_what_never_left_this_machine_is_not_uncertain() -> None:
    submission = new_submission(addresses(5))
    assert drive(submission, [quota(0), NOT_SENT])[-1] == Deferred((), "rejected", token="t1")
    assert submission.error is NOT_SENT.error


UNSURE: list[ApiAnswer] = [
    RESET,
    NoAnswer(ContractError("cut JSON"), was_sent=True),
    ErrorEnvelope("INTERNAL_ERROR", "m", 500, {}),
    ErrorEnvelope("UPSTREAM_ERROR", "m", 502, {}),
    ErrorEnvelope("", "HTML", 502, {}),
    ErrorEnvelope("E1005", "m", 400, {}),
    ErrorEnvelope("", "HTML", 408, {}),
    ErrorEnvelope("INTERNAL_ERROR", "m", 200, {}),
    SuccessEnvelope({}, {}),
    SuccessEnvelope(None, {}),
    SuccessEnvelope({"results": []}, {}),
    SuccessEnvelope({"results": [None, 3]}, {}),
]


@each_row("answer", UNSURE)
def test_a_lost_submission_that_was_counted_is_uncertain_with_a_notice(answer: ApiAnswer) -> None:
    submission = new_submission(addresses(5))
    taken = drive(submission, [quota(10), answer, quota(15)])
    assert kinds(taken)[3:] == ["POST", "Waiting", "GET", "QuotaSeen", "Deferred", "Noticed"]
    assert taken[4].seconds == GRACE
    assert taken[7] == Deferred(tuple(addresses(5)), "uncertain", token="t1")
    assert "from 10 to 15" in taken[8].message
    assert not submission.left
    assert submission.error is None


@each_row("answer", UNSURE)
def test_a_lost_submission_that_was_not_counted_is_sent_once_more_and_no_more(
    answer: ApiAnswer,
) -> None:
    submission = new_submission(addresses(5))
    taken = drive(submission, [quota(10), answer, quota(10)])
    is_handled_perhaps = isinstance(answer, NoAnswer) or getattr(answer, "status", 0) == 502
    assert taken[-1] == Deferred((), "uncounted" if is_handled_perhaps else "rejected", token="t1")
    assert submission.has_work
    taken = drive(submission, [quota(10), answer, quota(10)])
    assert posts(taken) == [addresses(5)]
    assert isinstance(submission.error, BackendError)
    assert not submission.has_work
    assert RESUBMISSIONS == 1


def keys(taken: Sequence[Any]) -> list[str]:
    return [step.key for step in taken if isinstance(step, ApiRequest) and step.body]


def test_the_batch_that_was_not_counted_is_sent_again_as_a_whole_and_with_its_key() -> None:
    emails = addresses(150)
    submission = new_submission(emails)
    first = drive(submission, [quota(10, 500), RESET, quota(10, 500)])
    submission.pace = Pace(len(emails), fixed=30.0)  # it allows fewer now
    again = drive(submission, [quota(10, 500), accepted(emails[:100])])
    other = drive(submission, [quota(110, 500), accepted(emails[100:130])])
    assert posts(first) == posts(again) == [emails[:100]]
    assert keys(first) == keys(again) == ["t1"]
    assert (posts(other), keys(other)) == ([emails[100:130]], ["t2"])


def test_lost_submissions_of_ended_runs_are_sent_first_and_under_their_tokens() -> None:
    lost = [Submitting("old", ("c@x.org", "d@x.org"), 10), Submitting("older", ("e@x.org",), 10)]
    emails = ["a@x.org", "c@x.org", "d@x.org", "e@x.org"]
    submission = new_submission(emails, lost_batches=lost)
    taken = [
        *drive(submission, [quota(10), accepted(["c@x.org", "d@x.org"])]),
        *drive(submission, [quota(12), accepted(["e@x.org"])]),
        *drive(submission, [quota(13), accepted(["a@x.org"])]),
    ]
    assert posts(taken) == [["c@x.org", "d@x.org"], ["e@x.org"], ["a@x.org"]]
    assert keys(taken) == ["old", "older", "t1"]
    assert not submission.has_work


def test_a_lost_submission_that_the_quota_does_not_cover_is_not_sent_as_it_was() -> None:
    emails = ("a@x.org", "b@x.org", "c@x.org")
    submission = new_submission(emails, lost_batches=[Submitting("old", emails, 10)])
    taken = drive(submission, [quota(98), accepted(emails[:2])])
    assert (posts(taken), keys(taken)) == ([["a@x.org", "b@x.org"]], ["t1"])
    taken = drive(submission, [quota(0), accepted(emails[2:])])
    assert (posts(taken), keys(taken)) == ([["c@x.org"]], ["t2"])


def test_another_batch_after_one_that_was_not_counted_has_another_key() -> None:
    submission = new_submission(addresses(50))
    assert keys(drive(submission, [quota(0), RESET, quota(0)])) == ["t1"]
    taken = drive(submission, [quota(80), accepted(addresses(20))])  # others have used the quota
    assert (posts(taken), keys(taken)) == ([addresses(50)[:20]], ["t2"])


def test_a_cancelled_run_leaves_a_lost_answer_to_a_later_one() -> None:
    submission = new_submission(addresses(5))
    client: Any = submission.client
    client.is_stopped = True
    with pytest.raises(asyncio.CancelledError):
        drive(submission, [quota(10), RESET])
    assert kinds(client.taken).count("GET") == 1
    assert not any(isinstance(step, Deferred) for step in client.taken)


def test_a_new_day_after_a_loss_leaves_it_uncertain() -> None:
    taken = drive(new_submission(addresses(5)), [quota(10), RESET, quota(0)])
    assert taken[-2].why == "uncertain"


@each_row(("midnight_after", "is_uncertain"), [(GRACE, True), (61.0, True), (66.0, False)])
def test_a_loss_at_midnight_is_uncertain_although_the_new_day_has_the_same_number(
    midnight_after: float, *, is_uncertain: bool
) -> None:
    begin = NOON // 86_400 * 86_400 + 86_400 - midnight_after
    times = iter([begin, *[begin + GRACE] * 9])
    taken = drive(new_submission(addresses(5), lambda: next(times)), [quota(5), RESET, quota(5)])
    assert (
        any(isinstance(step, Deferred) and step.why == "uncertain" for step in taken)
        is is_uncertain
    )


def test_a_quota_that_cannot_be_read_after_a_loss_leaves_it_uncertain_and_ends_the_submitting() -> (
    None
):
    submission = new_submission(addresses(200))
    taken = drive(submission, [quota(0), RESET, NOT_SENT])
    assert taken[-2] == Deferred(tuple(addresses(100)), "uncertain", token="t1")
    assert submission.error is NOT_SENT.error


def test_two_losses_in_a_row_end_the_submitting_before_the_quota_is_gone() -> None:
    submission = new_submission(addresses(300))
    drive(submission, [quota(0, 1000), RESET, quota(100, 1000)])
    drive(submission, [quota(100, 1000), RESET, quota(200, 1000)])
    assert submission.error is RESET.error
    assert len(submission.left) == 100


def test_an_acceptance_in_between_makes_the_next_loss_the_first_again() -> None:
    submission = new_submission(addresses(300))
    drive(submission, [quota(0, 1000), RESET, quota(100, 1000)])
    drive(submission, [quota(100, 1000), accepted(addresses(200)[100:])])
    drive(submission, [quota(200, 1000), RESET, quota(300, 1000)])
    assert submission.error is None


def test_rejected_lines_are_settled_and_have_no_job() -> None:
    emails = ["a@b.org", "malformed", "c@d.org"]
    results = queued(emails)
    results[1] |= {"status": "error", "message": "Invalid email format"}
    taken = drive(new_submission(emails), [quota(0), SuccessEnvelope({"results": results}, {})])
    jobs = next(step for step in taken if isinstance(step, Submitted)).jobs
    assert [job.email for job in jobs] == ["a@b.org", "c@d.org"]
    settled = next(step for step in taken if isinstance(step, Settled)).rows.to_pylist()
    assert [(row["email"], row["result"]) for row in settled] == [("malformed", "invalid")]


def test_a_job_without_a_usable_id_is_uncertain_and_the_others_are_kept() -> None:
    emails = ["a@b.org", "c@d.org", "e@f.org"]
    results = queued(emails)
    results[1]["job_id"] = ".."
    taken = drive(new_submission(emails), [quota(0), SuccessEnvelope({"results": results}, {})])
    assert kinds(taken)[-3:] == ["Submitted", "Deferred", "Noticed"]
    assert taken[-2] == Deferred(("c@d.org",), "uncertain", token="t1")
    assert isinstance(taken[-1], Noticed)


def test_entries_are_matched_by_address_in_any_order_and_number() -> None:
    emails = ["a@b.org", "c@d.org", "e@f.org"]
    shuffled = match_entries({"results": [*reversed(queued(emails))]}, emails)
    assert [entry and entry.job_id for entry in shuffled] == [f"job of {email}" for email in emails]
    short = match_entries({"results": queued(emails)[:1]}, emails)
    assert [bool(entry) for entry in short] == [True, False, False]


def test_entries_that_spell_the_address_another_way_are_matched_by_their_place() -> None:
    entries = match_entries({"results": queued(["A@B.org", "c@d.org"])}, ["a@b.org", "c@d.org"])
    assert [entry and entry.job_id for entry in entries] == ["job of A@B.org", "job of c@d.org"]


def test_one_id_for_two_addresses_is_usable_for_neither() -> None:
    results = queued(["a@b.org", "c@d.org"])
    results[1]["job_id"] = results[0]["job_id"]
    assert match_entries({"results": results}, ["a@b.org", "c@d.org"]) == [None, None]


def test_a_status_that_no_table_knows_counts_as_paid() -> None:
    results = queued(["a@b.org"])
    results[0]["status"] = "accepted"
    taken = drive(
        new_submission(["a@b.org"]), [quota(0), SuccessEnvelope({"results": results}, {})]
    )
    assert [len(step.jobs) for step in taken if isinstance(step, Submitted)] == [1]


def test_the_quota_is_yielded_each_time_it_is_read() -> None:
    taken = drive(new_submission(["a@b.org"]), [quota(3), RESET, quota(4)])
    assert [step.quota.used for step in taken if isinstance(step, QuotaSeen)] == [3, 4]


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["results", "email", "status", "job_id", "message"]), inner, max_size=5
        )
    ),
    max_leaves=15,
)


@given(ANY)
def test_matching_never_raises_and_gives_one_entry_per_address(data: Any) -> None:
    assert len(match_entries(data, ["a@b.org", "c@d.org"])) == 2
    assert len(match_entries({"results": data}, ["a@b.org", "c@d.org"])) == 2


RECORD = {"daily_limit": 100, "used": 40, "remaining": 60}


def test_requesting_the_quota_returns_it() -> None:
    client: Any = ScriptedClient()
    client.answers = [SuccessEnvelope(RECORD, {})]
    assert asyncio.run(request_quota(client)) == Quota(100, 40, 60)
    assert client.taken == [QUOTA_REQUEST]


def test_requesting_the_quota_raises_the_error_of_the_service() -> None:
    client: Any = ScriptedClient()
    client.answers = [ErrorEnvelope("INTERNAL_ERROR", "down", 500, {})]
    with pytest.raises(ServiceError, match="down"):
        asyncio.run(request_quota(client))


def test_the_record_is_read_bare_and_in_an_envelope() -> None:
    assert read_quota(RECORD) == read_quota({"data": RECORD}) == Quota(100, 40, 60)


@each_row(
    "body",
    [
        None,
        [],
        {},
        {"data": {}},
        {**RECORD, "used": None},
        {**RECORD, "used": "40"},
        {**RECORD, "used": True},
        {**RECORD, "remaining": -1},
        {**RECORD, "daily_limit": 10**30},
    ],
)
def test_a_body_that_is_not_a_quota_record_is_refused(body: Any) -> None:
    with pytest.raises(ContractError):
        read_quota(body)


@each_row(
    ("left", "remaining", "max_batch", "size", "why"),
    [
        (250, 10_000, 100, 100, "the contract's limit"),
        (30, 10_000, 100, 30, "no more is left"),
        (250, 7, 100, 7, "a batch beyond the quota is refused as a whole"),
        (250, 0, 100, 0, "nothing is left to spend"),
        (250, 500, 25, 25, "this service takes less at once"),
        (250, -5, 100, 0, "an overdrawn quota is an empty one"),
    ],
)
def test_a_batch_is_no_larger_than_what_is_left_and_allowed(
    left: int, remaining: int, max_batch: int, size: int, why: str
) -> None:
    assert batch_size(left, remaining, max_batch) == size, why


@each_row(
    ("after", "counted", "why"),
    [
        (Quota(100, 40, 60), False, "nothing changed"),
        (Quota(100, 90, 10), True, "it rose by the batch"),
        (Quota(100, 41, 59), True, "it rose by something: it may have been others, and may not"),
        (Quota(100, 0, 100), True, "a new day began: nothing can be told"),
        (Quota(200, 40, 160), True, "another limit: not the same record"),
    ],
)
def test_whether_a_lost_submission_may_have_been_counted(
    after: Quota, counted: bool, why: str
) -> None:
    assert was_counted(Quota(100, 40, 60), after) is counted, why


def test_an_entry_that_comes_twice_is_one_job() -> None:
    entries = [
        {"email": f"{n}@x.org", "status": "queued", "message": "", "job_id": str(n)}
        for n in range(3)
    ]
    found = match_entries({"results": [*entries, entries[0]]}, ["0@x.org", "1@x.org", "2@x.org"])
    assert [entry and entry.job_id for entry in found] == ["0", "1", "2"]
