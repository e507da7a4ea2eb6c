"""What a list means for a mailing: a sample first, by operator, bounces that a sender exports, and what comes next."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.model.verification import Verification
from mailverdict.reports.deprecated import by_operator
from mailverdict.widgets.state import AuditState
from tests.doubles.answering_backend import AnsweringBackend, valid
from tests.widgets.conftest import QUICK, finished, message, ready, result_of, shown
from tests.widgets.paced import paced_service, paid

NOW = int(time.time())  # reports of a wave are not older than it
MAILS = [
    "ada@gmail.com",
    "nobody@gmail.com",
    "ada@yahoo.com",
    "bob@gmail.com",
    "not an address",
    "ADA@gmail.com",
]


@pytest.fixture
def audit() -> Iterator[AuditState]:
    """A checked list."""
    with mv.sandbox.World() as world:
        frame = pd.DataFrame({"mail": MAILS})
        yield finished(
            ready(frame, world.backend, validation_type="smtp", column="mail", journal=None)
        )


def export(path, *rows: str):
    path.write_text("\n".join(["email,created,status,reason", *rows]) + "\n")
    return path


def test_operators_are_counted_as_by_operator_does(audit):
    table = shown(audit, "decide")["operators"]
    expected = by_operator(result_of(audit), "mail")
    assert [row[0] for row in table["rows"]] == expected.index.tolist()
    assert [row[1] for row in table["rows"]] == [str(count) for count in expected["addresses"]]
    assert [row[2].partition(" ")[0] for row in table["rows"]] == [
        str(count) for count in expected["clear"]
    ]
    assert [row[3] or None for row in table["rows"]] == expected["note"].tolist()
    assert all(len(row) == len(table["heads"]) for row in table["rows"])


def test_nothing_is_known_about_operators_where_no_domain_was_looked_up():
    found = finished(ready(pd.DataFrame({"mail": MAILS}), validation_type="regex"))
    assert shown(found, "decide")["operators"] is None


def test_bounces_say_which_verdicts_were_right_and_who_comes_off_the_list(audit, tmp_path):
    state = audit
    before = state.result.listing.counts.actions["send"]
    path = export(
        tmp_path / "bounces.csv",
        f"bob@gmail.com,{NOW},5.1.1,550 5.1.1 User unknown",
        f"ada@yahoo.com,{NOW},5.7.1,554 5.7.1 blocked using zen.spamhaus.org",
        f"zoe@elsewhere.example,{NOW},5.1.1,550 5.1.1 User unknown",
    )
    state.use_file(path, "bounces.csv", "bounces")
    audit.work.wait(30)
    found = shown(audit, "decide")["bounces"]
    assert (
        found["text"]
        == "bounces.csv has 2 addresses of this list, and 1 other. 1 mailbox does not exist any more."
    )
    rows = {row[0]: dict(zip(found["heads"], row, strict=True)) for row in found["rows"]}
    expected = mv.outcomes(result_of(audit), "mail", bounces=path).loc["verdict"]
    assert sum(int(row["Does not exist"]) for row in rows.values()) == expected["hard"].sum() == 1
    assert sum(int(row["Refused the sender"]) for row in rows.values()) == 1
    assert found["can_remove"]
    state.act("remove_bounced")
    assert state.result.listing.counts.actions["send"] == before - 1
    assert not shown(audit, "decide")["bounces"]["can_remove"]
    assert result_of(audit)["mail_decision"].dropna().tolist() == ["remove"]
    state.act("undo")
    assert state.result.listing.counts.actions["send"] == before


def test_exports_add_up_and_can_be_taken_back(audit, tmp_path):
    state = audit
    for name, address in (("first.csv", "bob@gmail.com"), ("second.csv", "ada@yahoo.com")):
        path = export(tmp_path / name, f"{address},{NOW},5.1.1,550 5.1.1 User unknown")
        state.use_file(path, name, "bounces")
        audit.work.wait(30)
    text = "second.csv with the exports before has 2 addresses of this list. 2 mailboxes do not exist any more."
    assert shown(audit, "decide")["bounces"]["text"] == text
    path = export(
        tmp_path / "other.csv", f"zoe@elsewhere.example,{NOW},5.1.1,550 5.1.1 User unknown"
    )
    state.use_file(path, "other.csv", "bounces")
    audit.work.wait(30)
    assert "none of its 1 address is in this list" in message(audit, "decide")
    assert shown(audit, "decide")["bounces"]["text"] == text
    state.act("forget_bounces")
    assert shown(audit, "decide")["bounces"] is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            [f"zoe@elsewhere.example,{NOW},5.1.1,550 5.1.1 User unknown"],
            "none of its 1 address is in this list",
        ),
        ([], "bounces.csv"),
    ],
)
def test_a_file_that_is_about_another_list_or_no_export_is_refused(audit, tmp_path, content, said):
    audit.use_file(export(tmp_path / "bounces.csv", *content), "bounces.csv", "bounces")
    audit.work.wait(30)
    assert said in message(audit, "decide")
    assert shown(audit, "decide")["bounces"] is None


def test_a_list_is_mailed_in_waves_and_nobody_twice(tmp_path):
    def role(email: str, kind: str) -> Verification:
        return replace(valid(email, kind), result="risky", reasons=("role",), role=True)

    people = [f"user{n}@firm{n % 40}.example" for n in range(2_000)]
    frame = pd.DataFrame(
        {
            "mail": [
                *people,
                *(f"info@firm{n}.example" for n in range(40)),
                "ME <user1@firm1.example>",
            ]
        }
    )
    backend = AnsweringBackend({"info": role})
    audit = finished(ready(frame, backend, validation_type="smtp", column="mail", journal=None))
    state, saved = audit, []
    state.on_file = lambda name, path, by: saved.append(path)

    def make_wave() -> list[str]:
        state.act("make_wave", kind="csv")
        audit.work.wait(60)
        return pd.read_csv(saved[-1])["mail"].tolist()

    nothing = {"next": 1, "text": "", "can_pilot": False, "can_resume": False}
    assert shown(audit, "decide")["wave"] == nothing
    first = make_wave()
    assert saved[-1].name == "emails-wave-1.csv"
    assert 0 < len(first) < 1_000
    assert shown(audit, "decide")["wave"]["text"].startswith(f"Wave 1 of 6: {len(first)} rows. ")
    rows = [f"{first[0]},{NOW},5.1.1,550 5.1.1 User unknown"]
    state.use_file(export(tmp_path / "bounces.csv", *rows), "bounces.csv", "bounces")
    audit.work.wait(30)
    mailed = {row[0]: row[1:3] for row in shown(audit, "decide")["bounces"]["rows"]}
    assert sum(int(count.replace(",", "")) for count, _ in mailed.values()) == len(first)
    second = make_wave()
    assert not set(first) & set(second)
    state.act("undo")
    state.act("set_complete", is_on=True)
    assert shown(audit, "decide")["bounces"]["is_complete"]
    assert make_wave() == second
    assert not shown(audit, "decide")["bounces"]["is_complete"], (
        "those of the new wave are still to come"
    )
    assert shown(audit, "decide")["wave"]["next"] == 3
    assert "Nothing has been learnt" not in shown(audit, "decide")["wave"]["text"]
    out = result_of(audit)
    assert {1: {*first}, 2: {*second}} == {
        n: {*part["mail_clean"]} for n, part in out.groupby("mail_wave")
    }
    finished(audit)
    assert set(make_wave()).isdisjoint({*first, *second}), "another check forgets nobody"
    state.act("download", which="everything", kind="csv")
    audit.work.wait(30)
    again = finished(
        ready(saved[-1], AnsweringBackend({"info": role}), validation_type="smtp", column="mail")
    )
    assert again.choices.waved.to_dict() == state.choices.waved.to_dict(), (
        "also in another audit, by the file of everything"
    )
    for _ in range(3):
        state.act("undo")
    assert shown(audit, "decide")["wave"]["next"] == 1
    assert "mail_wave" not in result_of(audit)


def test_waves_of_a_file_without_repairs_are_known():
    given = pd.DataFrame(
        {"mail": ["ada@firm.example", "Bo <bo@firm.example>"], "mail_wave": [pd.NA, 1]}
    )
    audit = ready(given, AnsweringBackend(), validation_type="smtp", column="mail")
    assert audit.choices.waved.to_dict() == {"bo@firm.example": 1}


@pytest.mark.slow
def test_of_two_spellings_of_somebody_the_one_that_was_mailed_has_the_wave():
    def gone(email: str, kind: str) -> Verification:
        return replace(valid(email, kind), result="invalid", reasons=("mailbox_not_found",))

    people = [f"user{n}@firm.example" for n in range(100)]
    backend = AnsweringBackend({"a.b": gone})
    frame = pd.DataFrame({"mail": [*people, "a.b@gmail.com", "ab@gmail.com"]})
    audit = ready(frame, backend, validation_type="smtp", column="mail", journal=None)
    audit.set_repair("merge", is_on=False)
    finished(audit)
    for _ in range(6):
        audit.act("make_wave", kind="csv")
        audit.work.wait(60)
    assert result_of(audit)["mail_wave"].isna().to_numpy().nonzero()[0].tolist() == [100]


@pytest.mark.slow
def test_a_wave_without_bounces_counts_once_they_have_all_come(tmp_path):
    people = [f"user{n}@firm{n % 4}.example" for n in range(600)]
    audit = finished(
        ready(
            pd.DataFrame({"mail": people}), AnsweringBackend(), validation_type="smtp", journal=None
        )
    )
    state, saved = audit, []
    state.on_file = lambda name, path, by: saved.append(pd.read_csv(path)["mail"].tolist())
    for wave in (1, 2):
        state.act("make_wave", kind="csv")
        audit.work.wait(60)
        assert len(saved) == wave
    rows = [f"{saved[0][0]},{NOW},5.1.1,550 5.1.1 User unknown"]
    state.use_file(export(tmp_path / "bounces.csv", *rows), "bounces.csv", "bounces")
    audit.work.wait(30)
    left = next(person for person in people if person not in {*saved[0], *saved[1]})
    rows = [f"{left},{NOW},5.1.1,550 5.1.1 User unknown"]
    state.use_file(export(tmp_path / "wrong.csv", *rows), "wrong.csv", "bounces")
    audit.work.wait(30)
    assert "wrong.csv: none of its 1 address was mailed in a wave of this list" in message(
        audit, "decide"
    )
    for is_on in (False, True):
        state.act("set_complete", is_on=is_on)
        state.act("make_wave", kind="csv")
        audit.work.wait(60)
        text = shown(audit, "decide")["wave"]["text"]
        assert (
            "No report is about wave 2, so that nothing is learnt from it. If all" in text
        ) is not is_on
        state.act("undo")


class TestWavesThatWait:
    """A pilot, and a wave that is withheld: the page offers what the library has an argument for."""

    def waves(self, backend, people, depth="smtp"):
        frame = pd.DataFrame({"mail": people})
        audit = finished(ready(frame, backend, validation_type=depth, column="mail", journal=None))
        saved = []
        audit.on_file = lambda name, path, by: saved.append(pd.read_csv(path)["mail"])
        return audit, saved

    def make(self, audit, action="make_wave"):
        audit.act(action, kind="csv")
        audit.work.wait(60)
        return shown(audit, "decide")["wave"]

    def test_a_list_without_sure_rows_has_a_pilot(self):
        people = [f"user{n}@firm{n % 40}.example" for n in range(600)]
        audit, saved = self.waves(AnsweringBackend(), people, depth="mx")
        wave = self.make(audit)
        assert (wave["next"], wave["can_pilot"], saved) == (1, True, [])
        assert "=" not in wave["text"]
        wave = self.make(audit, "make_pilot")
        assert (wave["next"], wave["can_pilot"], len(saved[0])) == (2, False, 200)
        assert "expected to be above the budget of 2.0%" in wave["text"]

    def test_a_wave_that_was_made_twice_is_told_and_can_be_undone(self):
        people = [f"user{n}@firm{n % 40}.example" for n in range(1_000)]
        audit, saved = self.waves(AnsweringBackend(), people)
        self.make(audit)
        wave = self.make(audit)
        assert "No report is about wave 1, so that nothing is learnt from it" in wave["text"]
        assert "Give its bounces first; if it was not mailed, undo it" in wave["text"]
        audit.act("undo")
        assert shown(audit, "decide")["wave"]["next"] == 2
        self.make(audit)
        assert saved[2].tolist() == saved[1].tolist()

    def test_of_an_operator_that_blocks_the_rows_are_withheld(self, tmp_path):
        def at(host):
            def answer(email: str, kind: str) -> Verification:
                return replace(valid(email, kind), metadata={"mx_records": [host]})

            return answer

        names = {"google": "aspmx.l.google.com", "yahoo": "mta5.am0.yahoodns.net"}
        backend = AnsweringBackend({name: at(host) for name, host in names.items()})
        people = [f"{name}@firm{n}.example" for n in range(500) for name in names]
        audit, saved = self.waves(backend, people)
        self.make(audit)
        path = tmp_path / "bounces.csv"
        lines = [f"{address},blocked" for address in saved[0] if address.startswith("google")]
        path.write_text("\n".join(["email,event", *lines]) + "\n")
        audit.use_file(path, "bounces.csv", "bounces")
        audit.work.wait(30)
        wave = self.make(audit)
        assert wave["can_resume"]
        assert "google blocked" in wave["text"]
        assert saved[1].str.startswith("yahoo").all()

    def test_bounces_that_are_older_than_a_wave_do_not_count(self, tmp_path):
        people = [f"user{n}@firm{n % 40}.example" for n in range(1_000)]
        audit, saved = self.waves(AnsweringBackend(), people)
        self.make(audit)
        month_ago = NOW - 30 * 86_400
        old = [f"{address},{month_ago},5.1.1,550 5.1.1 User unknown" for address in saved[0][1:9]]
        new = f"{saved[0][0]},{NOW},5.1.1,550 5.1.1 User unknown"

        audit.use_file(export(tmp_path / "old.csv", *old), "old.csv", "bounces")
        audit.work.wait(30)
        told = "8 reports are more than 2 days older than the wave: they are of an earlier mailing"
        assert f"old.csv: {told}" in message(audit, "decide")
        assert shown(audit, "decide")["bounces"] is None
        audit.use_file(export(tmp_path / "all.csv", *old, new), "all.csv", "bounces")
        audit.work.wait(30)
        bounces = shown(audit, "decide")["bounces"]
        assert told in bounces["text"]
        assert bounces["text"].endswith(", so that they do not count.")
        assert sum(int(row[2]) for row in bounces["rows"]) == 1
        assert " mails, 1 hard bounce and" in self.make(audit)["text"]

    def test_the_time_of_a_wave_comes_back_with_the_file_of_everything(self, tmp_path):
        people = [f"user{n}@firm{n % 40}.example" for n in range(1_000)]
        audit, _ = self.waves(AnsweringBackend(), people)
        self.make(audit)
        paths = []
        audit.on_file = lambda name, path, by: paths.append(path)
        audit.act("download", which="everything", kind="csv")
        audit.work.wait(30)
        given = pd.read_csv(paths[0])
        planned_at = pd.to_datetime(given["mail_wave_at"]).dropna().unique()
        assert len(planned_at) == 1
        assert abs(planned_at[0] - datetime.now(UTC)) < timedelta(hours=1)
        again = ready(paths[0], AnsweringBackend(), validation_type="smtp", column="mail")
        assert again.choices.waved.times == {1: planned_at[0]}

    def test_a_wave_is_withheld_after_complaints_until_a_person_resumes(self, tmp_path):
        people = [f"user{n}@firm{n % 40}.example" for n in range(1_000)]
        audit, saved = self.waves(AnsweringBackend(), people)
        self.make(audit)
        path = tmp_path / "bounces.csv"
        lines = [f"{address},complaint" for address in saved[0][:5]]
        path.write_text("\n".join(["email,event", *lines]) + "\n")
        audit.use_file(path, "bounces.csv", "bounces")
        audit.work.wait(30)
        wave = self.make(audit)
        assert (wave["next"], wave["can_resume"], len(saved)) == (2, True, 1)
        assert "The wave is withheld: 5 people of" in wave["text"]
        assert "=" not in wave["text"]
        wave = self.make(audit, "resume_waves")
        assert (wave["next"], len(saved)) == (3, 2)


def sampled(service, count: int, **options) -> AuditState:
    frame = pd.DataFrame(
        {
            "mail": [
                f"{'gone' if n % 4 == 0 else 'ada'}{n}@firm{n % 9}.example" for n in range(count)
            ]
        }
    )
    backend = mv.RemoteBackend(service.url, poll=QUICK)
    return ready(frame, backend, validation_type="smtp", column="mail", **options)


@pytest.mark.slow
def test_a_sample_says_what_to_expect_and_is_not_paid_again(tmp_path):
    with paced_service(0, daily_limit=10_000) as service:
        audit = sampled(service, 1_000, journal=tmp_path / "j.db")
        assert shown(audit, "check")["sample"] == {
            "label": "Check 400 first",
            "running": False,
            "table": None,
        }
        audit.act("check_sample")
        assert not shown(audit, "check")["button"]["enabled"]
        audit.act("verify")
        assert message(audit) == "A sample is being checked; wait until it is done."
        audit.work.wait(60)
        assert paid(service) == 400
        sample = shown(audit, "check")["sample"]
        table = {row[0]: row[1:] for row in sample["table"]["rows"]}
        low, high = (float(each.rstrip("%")) for each in table["Invalid"][1].split(" to "))
        assert low <= 25 <= high
        assert sample["table"]["text"].startswith(
            "What to expect of the whole list, from a sample of 400 of 1,000 addresses. To check it whole: 600 addresses left, "
        )
        assert (sample["label"], audit.plan.to_submit) == ("", 600)
        finished(audit)
        assert paid(service) == 1_000
        audit.set_repair("case", is_on=False)
        audit.work.wait(30)
        assert shown(audit, "check")["sample"]["table"] is None, "it was about other choices"


@pytest.mark.parametrize("options", [{"journal": None}, {"limit": 100}])
def test_a_sample_is_not_offered_where_it_would_be_paid_twice_or_saves_nothing(options):
    with paced_service(0, daily_limit=10_000) as service:
        assert shown(sampled(service, 1_000, **options), "check")["sample"]["label"] == ""
    free = ready(
        pd.DataFrame({"mail": [f"ada{n}@firm.example" for n in range(1_000)]}),
        validation_type="regex",
    )
    assert shown(free, "check")["sample"]["label"] == ""
