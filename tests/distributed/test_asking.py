"""The tasks that ask.

What the scratch folder has is not asked again, and a report has no address.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pandas as pd
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.distributed.asking import (
    DOMAINS,
    MAILBOXES,
    ROWS,
    ask_domains,
    ask_mailboxes,
    backend_of,
    merge_reports,
    observe_part,
    read_answers,
    read_part_answers,
    route_addresses,
    write_answers,
)
from mailverdict.distributed.scratch import Scratch
from mailverdict.distributed.stages import Routing, StageJob, attach, evidence_table
from mailverdict.model.evidence import DnsOutcome, DomainEvidence
from mailverdict.model.settings import LocalSettings
from mailverdict.model.words import ValidationType
from mailverdict.sandbox.dns_table import DnsFault, DomainRecords
from mailverdict.table.columns import COLUMNS, REPAIR_COLUMNS
from mailverdict.table.options import check_options

LATER = datetime(2100, 1, 1, tzinfo=UTC)
EMAILS = [
    "ada@gmail.com",
    "ada@one.example",
    "bo@gone.example",
    "no",
    None,
    "ada@gmail.com",
    "nobody@one.example",
]
PART = pd.DataFrame({"email": EMAILS})


@pytest.fixture
def world():
    with mv.sandbox.World() as world:
        yield world


@pytest.fixture
def job(world, tmp_path):
    """A call that has observed its partition."""
    made = StageJob(
        "email",
        check_options("verify", {}),
        ValidationType.MX,
        key_kind="domain",
        backend=pickle.dumps(world.make_backend()),
        scratch=Scratch.open(tmp_path),
        began_at=datetime.now(UTC),
        max_age=3600.0,
        parts=[0],
    )
    observe_part([PART], 0, made)
    return made


def questions(world, *names):
    return [world.dns.count(name, "MX") for name in names]


def shown(frame):
    return frame.drop(columns="email_checked_at", errors="ignore")


class TestDomains:
    def test_answers_are_those_of_a_column(self, job, world):
        report = json.loads(ask_domains(0, job))
        assert (report["keys"], report["asked"]) == (3, 3)
        expected = mv.verify(PART, "email", backend=world.backend, progress=False)
        pd.testing.assert_frame_equal(attach(PART, job, read_answers(0, job)), expected)

    def test_a_task_that_runs_again_asks_nothing(self, job, world):
        ask_domains(0, job)
        first = questions(world, "one.example", "gone.example")
        report = json.loads(ask_domains(0, job))
        assert (report["keys"], report["asked"]) == (3, 0)
        assert questions(world, "one.example", "gone.example") == first == [1, 1]

    def test_a_task_that_was_lost_asks_for_the_rest(self, job, world):
        known = DomainEvidence("one.example", DnsOutcome.NXDOMAIN, message="known")
        job.scratch.write(DOMAINS, 0, evidence_table([("one.example", known, None)], job.began_at))
        report = json.loads(ask_domains(0, job))
        assert report["asked"] == 2
        assert questions(world, "one.example") == [0]
        assert dict(
            zip(*read_answers(0, job).select(["key", "result"]).to_pydict().values(), strict=True)
        ) == {
            "one.example": "invalid",
            "gmail.com": "valid",
            "gone.example": "invalid",
        }

    @pytest.mark.parametrize(
        ("outcome", "age", "asked"),
        [
            (DnsOutcome.NXDOMAIN, 600, 2),
            (DnsOutcome.NXDOMAIN, 7200, 3),
            (DnsOutcome.UNDETERMINED, 600, 3),
            (DnsOutcome.UNDETERMINED, -1, 2),
        ],
        ids=[
            "established",
            "too old",
            "not established by an earlier call",
            "not established by this call",
        ],
    )
    def test_what_an_earlier_call_wrote_is_used_if_it_still_holds(self, job, outcome, age, asked):
        known = DomainEvidence("one.example", outcome, message="known")
        at = job.began_at - timedelta(seconds=age)
        job.scratch.write(DOMAINS, 0, evidence_table([("one.example", known, None)], at))
        assert json.loads(ask_domains(0, job))["asked"] == asked

    @pytest.mark.parametrize(
        ("refresh", "asked"), [({"invalid"}, 3), ({"valid"}, 2), ({"unknown"}, 2)]
    )
    def test_verdicts_to_refresh_are_asked_again(self, job, refresh, asked):
        known = DomainEvidence("one.example", DnsOutcome.NXDOMAIN, message="known")
        job.scratch.write(
            DOMAINS,
            0,
            evidence_table([("one.example", known, None)], job.began_at - timedelta(seconds=60)),
        )
        report = ask_domains(0, replace(job, refresh=frozenset(refresh)))
        assert json.loads(report)["asked"] == asked

    def test_a_resolver_that_cannot_be_used_is_in_the_report(self, job):
        settings = LocalSettings(resolver="127.0.0.1:9", dns_timeout=0.1)
        silent = replace(job, backend=pickle.dumps(mv.LocalBackend.from_settings(settings)))
        report = json.loads(ask_domains(0, silent))
        name, message = report["error"]
        assert name == "ResolverError"
        assert "127.0.0.1:9" in message

    def test_causes_count_rows(self, world, job):
        world.dns.add("one.example", DomainRecords(faults={"*": DnsFault.SERVFAIL}))
        report = json.loads(ask_domains(0, job))
        assert report["causes"] == {"other": 2, "DNS": 2, "undeliverable": 1}

    def test_limits_are_divided_among_the_tasks_that_run_at_once(self, job):
        given = pickle.loads(job.backend).settings
        backend = backend_of(replace(job, slots=4))
        assert backend.settings.dns_concurrency == given.dns_concurrency // 4
        assert backend.settings.max_sessions == given.max_sessions // 4
        assert backend.settings.max_sessions_per_exchange == given.max_sessions_per_exchange
        assert backend_of(replace(job, slots=4)) is backend


class TestMailboxes:
    @pytest.fixture
    def job(self, job):
        """A call that has asked about the domains."""
        job = replace(job, key_kind="address", validation_type=ValidationType.SMTP)
        observe_part([PART], 0, job)
        ask_domains(0, job)
        route_addresses(0, job)
        return job

    def test_answers_are_those_of_a_column(self, job, world):
        report = json.loads(ask_mailboxes(0, job))
        assert (report["keys"], report["asked"]) == (4, 4)
        expected = mv.verify(
            PART, "email", validation_type="smtp", backend=world.make_backend(), progress=False
        )
        pd.testing.assert_frame_equal(attach(PART, job, read_answers(0, job)), expected)

    def test_domains_are_not_looked_up_again(self, job, world):
        before = questions(world, "one.example", "gone.example")
        ask_mailboxes(0, job)
        assert questions(world, "one.example", "gone.example") == before == [1, 1]

    def test_a_task_that_runs_again_opens_no_session(self, job, world):
        ask_mailboxes(0, job)
        sessions = {host: world.smtp.stats(host).sessions for host in world.smtp.exchanges}
        assert sum(sessions.values()) >= 2
        assert json.loads(ask_mailboxes(0, job))["asked"] == 0
        assert {host: world.smtp.stats(host).sessions for host in world.smtp.exchanges} == sessions

    def test_organisations_that_share_a_domain_are_in_the_report(self, job, world):
        shared = DomainRecords({"MX": ("10 mx.one.example", "20 mx.two.test")})
        world.dns.add("shared.example", shared)
        world.dns.add("own.example", DomainRecords({"MX": ("10 mx2.one.example",)}))
        part = pd.DataFrame({"email": ["a@shared.example", "b@shared.example", "c@own.example"]})
        observe_part([part], 0, job)
        report = json.loads(ask_domains(0, job))
        assert report["shared"] == [["one.example", "two.test"]]
        assert report["owners"] == {"one.example": 3}

    def test_temporary_rows_of_an_earlier_call_are_asked_again(self, job, tmp_path):
        ask_mailboxes(0, job)
        rows = job.scratch.read(MAILBOXES, 0, ROWS)
        changed = {"result": "unknown", "reasons": "greylisted"}
        for name, word in changed.items():
            values = pa.array([word] * len(rows)).cast(ROWS.field(name).type)
            rows = rows.set_column(rows.schema.get_field_index(name), ROWS.field(name), values)
        for piece in job.scratch.names(MAILBOXES, 0):
            (tmp_path / MAILBOXES / "0" / piece).unlink()
        job.scratch.write(MAILBOXES, 0, rows)
        assert json.loads(ask_mailboxes(0, job))["asked"] == 0
        assert (
            json.loads(ask_mailboxes(0, replace(job, began_at=LATER, max_age=1e12)))["asked"] == 4
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [ValidationType.MX, ValidationType.SMTP])
def test_each_partition_gets_the_answers_for_its_rows_whatever_tasks_asked(job, world, kind):
    routing = Routing(3, others=range(3))
    job = replace(job, shards=2, parts=[5, 7], routing=routing, validation_type=kind)
    job = job if kind is ValidationType.MX else replace(job, key_kind="address")
    job = replace(job, columns=[each for each in COLUMNS if each not in REPAIR_COLUMNS])
    parts = {5: PART[:4], 7: PART[4:]}
    for number, part in parts.items():
        observe_part([part[:2], part[2:]], number, job)
    asking = (
        [(ask_domains, 2)]
        if kind is ValidationType.MX
        else [(ask_domains, 2), (route_addresses, 2), (ask_mailboxes, 3)]
    )
    for task, count in [*asking, (write_answers, job.answering)]:
        for number in range(count):
            task(number, job)
    out = pd.concat(
        [attach(part, job, read_part_answers(number, job)) for number, part in parts.items()]
    )
    expected = mv.verify(
        PART, "email", validation_type=kind, backend=world.make_backend(), progress=False
    )
    pd.testing.assert_frame_equal(out, expected)


def test_a_partition_in_pieces_has_the_counts_of_all(job):
    report = json.loads(observe_part([PART[:4], PART[4:]], 3, job))
    assert report | {"notices": []} == {
        "part": 3,
        "rows": 7,
        "missing": 1,
        "malformed": 1,
        "texts": 6,
        "several": 0,
        "notices": [],
    }


def test_reports_of_all_tasks_are_added_up():
    merged = merge_reports(
        [
            json.dumps(
                {"keys": 2, "asked": 1, "causes": {"DNS": 1}, "notices": ["a"], "owners": {"x": 1}}
            ),
            json.dumps(
                {
                    "keys": 3,
                    "asked": 3,
                    "causes": {"DNS": 2},
                    "notices": ["a", "b"],
                    "shared": [["x", "y"]],
                }
            ),
        ]
    )
    assert (merged.keys, merged.asked, merged.causes["DNS"]) == (5, 4, 3)
    assert (merged.notices, merged.shared, merged.shards) == (["a", "b"], [["x", "y"]], 2)
