"""One distributed call in the calling process.

Who asks, where answers are kept, which task owns which exchange.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter

import pandas as pd
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.distributed.asking import StageReport, ask_domains, ask_mailboxes, route_addresses
from mailverdict.distributed.call import ask_workers, decide_routing, join_organisations, open_call
from mailverdict.distributed.scratch import Scratch
from mailverdict.errors import BackendError, ResolverError, SettingsError
from tests.doubles.scripted_backend import ScriptedBackend
from tests.doubles.tables import each_row

EMPTY = pd.DataFrame({"email": pd.Series([], dtype="str")})


def call(options=(), *, scratch=None, is_local=True, slots=2, **more):
    given = {**dict(options), **more}
    return open_call(
        "verify", EMPTY, "email", given, scratch=scratch, is_local=is_local, slots=slots
    )


class ReportingEngine:
    """Returns reports instead of running tasks."""

    def __init__(self, observed, domains, mailboxes=()):
        self.observed = json.dumps({"part": 0, **observed})
        self.reports = {ask_domains: domains, ask_mailboxes: mailboxes, route_addresses: ()}

    def observe(self, job):
        return [self.observed]

    def run(self, task, count, job):
        return [json.dumps(each) for each in self.reports[task]]

    def attach(self, job):
        return job


def counts(**changed):
    zero = dict.fromkeys(("rows", "missing", "malformed", "texts", "several"), 0)
    return {**zero, "texts": 1, "notices": [], **changed}


class TestWhoAsks:
    @pytest.mark.parametrize(
        ("options", "key"),
        [
            ({"validation_type": "regex"}, "row"),
            ({"validation_type": "regex", "limit": 5}, "text"),
            ({}, "domain"),
            ({"validation_type": "mx_blacklist"}, "domain"),
            ({"validation_type": "smtp"}, "address"),
            ({"validation_type": "smtp", "journal": None}, "address"),
            ({"offline": True}, "text"),
            ({"limit": 10}, "text"),
            ({"journal": "kept.db"}, "text"),
            ({"backend": ScriptedBackend()}, "text"),
            ({"backend": ScriptedBackend(), "validation_type": "smtp"}, "text"),
        ],
    )
    def test_it_follows_from_the_arguments(self, options, key, tmp_path):
        assert call(options, scratch=tmp_path).job.key_kind == key

    def test_a_closed_backend_is_refused_at_once(self, tmp_path):
        backend = mv.LocalBackend()
        backend.close()
        with pytest.raises(BackendError, match="closed"):
            call(backend=backend, scratch=tmp_path)


class TestScratchFolder:
    def test_it_is_required_where_workers_are_elsewhere(self):
        with pytest.raises(SettingsError, match=r"scratch=None.*s3://"):
            call(is_local=False)

    @each_row("options", [{"validation_type": "regex"}, {"backend": ScriptedBackend()}])
    def test_it_is_not_needed_where_no_worker_asks(self, options):
        assert call(options, is_local=False).job.scratch is None

    @each_row("scratch", [5, ["folder"]])
    def test_another_type_is_refused(self, scratch):
        with pytest.raises(SettingsError, match="scratch="):
            call(scratch=scratch)

    def test_equal_settings_share_a_folder_and_others_do_not(self, tmp_path):
        first = call(scratch=tmp_path, slots=2).job
        again = call(scratch=tmp_path, slots=8).job
        other = call(scratch=tmp_path, backend=mv.LocalBackend(resolver="127.0.0.1:5353")).job
        assert first.scratch == again.scratch != other.scratch
        assert first.shards == again.shards == 8
        assert again.slots == 8


class TestReports:
    def test_an_error_of_a_task_is_raised(self, tmp_path):
        failed = {"keys": 1, "asked": 1, "error": ["ResolverError", "no answer"]}
        seen = []
        with pytest.raises(ResolverError, match="no answer"):
            ask_workers(
                call(scratch=tmp_path, progress=seen.append), ReportingEngine(counts(), [failed])
            )
        assert (seen[-1].state, seen[-1].message) == ("failed", "no answer")

    def test_one_cause_for_most_rows_is_a_warning(self, tmp_path):
        report = {"keys": 2, "asked": 2, "causes": {"DNS": 9, "other": 1}}
        with pytest.warns(
            UserWarning, match="9 of 10 rows have no verdict, since the DNS gave no usable answer"
        ):
            ask_workers(
                call(scratch=tmp_path, progress=False),
                ReportingEngine(counts(malformed=5), [report]),
            )

    @pytest.mark.parametrize(("texts", "is_told"), [(0, True), (3, False)])
    def test_a_column_without_text_is_a_warning_if_no_partition_has_some(
        self, tmp_path, texts, is_told
    ):
        observed = counts(texts=texts, notices=["no cell of column 'email' holds an @"])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ask_workers(call(scratch=tmp_path, progress=False), ReportingEngine(observed, []))
        assert bool(told) is is_told

    def test_each_stage_shows_its_counts(self, tmp_path):
        domains = {"keys": 3, "asked": 2, "owners": {"one.example": 3}}
        mailboxes = {"keys": 4, "asked": 4, "notices": [], "causes": {}}
        seen = []
        ask_workers(
            call(scratch=tmp_path, progress=seen.append, validation_type="smtp"),
            ReportingEngine(counts(), [domains], [mailboxes]),
        )
        stages = [
            (each.unit, each.total, each.message) for each in seen if each.message.partition(":")[2]
        ]
        assert stages == [
            ("domains", 3, "stage domains: 3 domains by 1 tasks, 1 known before"),
            ("addresses", 4, "stage mailboxes: 4 addresses by 1 tasks, 0 known before"),
        ]
        assert seen[-1].state == "done"


def reported(owners, shared=()):
    return StageReport(1, owners=Counter(owners), shared=list(shared))


class TestOwners:
    def test_organisations_that_share_domains_are_one_owner(self):
        owners = join_organisations({}, [["a", "b"], ["c", "d"], ["d", "b"], ["e", "f"]])
        assert len({owners[name] for name in "abcd"}) == 1
        assert owners["e"] == owners["f"] != owners["a"]

    def test_each_task_gets_about_as_many_rows_as_the_others(self, tmp_path):
        job = call(scratch=tmp_path, validation_type="smtp", slots=3).job
        sizes = {
            "google.com": 500,
            "outlook.com": 300,
            "outlook.de": 100,
            **{f"s{at}.de": 1 for at in range(300)},
        }
        shared = [["outlook.com", "outlook.de"]]
        routing = decide_routing(job, reported(sizes, shared), 1200)
        shards = dict(zip(sizes, routing.shard_of(pa.array(sizes)).tolist(), strict=True))
        rows = Counter()
        for name, shard in shards.items():
            rows[shard] += sizes[name]
        assert rows == {0: 500, 1: 400, 2: 300}
        assert shards["outlook.com"] == shards["outlook.de"]
        assert set(routing.shard_of(pa.array([f"not-reported-{at}.de" for at in range(99)]))) == {
            1,
            2,
        }

    @pytest.mark.parametrize(("texts", "shards"), [(10, 3), (150_001, 4), (10**9, 4096)])
    def test_the_number_of_tasks_bounds_their_memory(self, tmp_path, texts, shards):
        job = call(scratch=tmp_path, validation_type="smtp", slots=3).job
        assert decide_routing(job, reported({"a.de": 5}), texts).shards == shards

    def test_a_later_call_on_the_folder_keeps_what_was_decided(self, tmp_path):
        job = call(scratch=tmp_path, validation_type="smtp").job
        first = decide_routing(job, reported({"a.de": 100}, [["a.de", "b.de"]]), 1)
        later = decide_routing(job, reported({"z.de": 900}, [["b.de", "c.de"]]), 10**6)
        names = pa.array(["a.de", "b.de", "c.de"])
        assert first.shard_of(names.slice(0, 2)).tolist() == [0, 0]
        assert later.shard_of(names).tolist() == [0, 0, 0]
        assert (later.shards, later.placed, later.others) == (
            first.shards,
            first.placed,
            first.others,
        )

    def test_the_folder_keeps_it_as_json(self, tmp_path):
        job = call(scratch=tmp_path, validation_type="smtp").job
        decide_routing(job, reported({}), 1)
        kept = Scratch(job.scratch.url).read_json("routing.json")
        assert kept == {"owners": {}, "placed": {}, "shards": 2, "others": [0, 1]}
