"""Bounces and exports as servers and services write them: tests/cases/bounces.csv.

One test lists what differs. The mails and the names of fields follow the public documentation of
each program and service.
"""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path

import pytest

import mailverdict as mv
from mailverdict.bounces.events import MAX_DEPTH
from mailverdict.bounces.exports import known_layout
from mailverdict.bounces.services import layouts
from tests.doubles.tables import each_row

CASES = Path(__file__).parents[1] / "cases"


def read_cases():
    """The outcomes that are right by file and address; `skip` is not a row."""
    cases = {}
    with (CASES / "bounces.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            _, _, outcomes = cases.setdefault(row["file"], (row["columns"], row["why"], {}))
            if row["address"]:
                outcomes[row["address"]] = row["outcomes"].split()
    return cases


def outcomes_of(name, columns):
    """The outcome of each address in a file, and what could not be read."""
    given = dict(each.split("=") for each in columns.split()) or None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = mv.read_bounces(CASES / "bounces" / name, columns=given)
    except mv.MailVerdictError as exc:
        return {}, f"{type(exc).__name__}: {exc}"
    return dict(zip(found["address"], found["outcome"].astype(str), strict=True)), found.attrs[
        "bounces"
    ]["problems"]


def test_every_address_has_its_outcome():
    cases, differing = read_cases(), []
    for name, (columns, why, expected) in cases.items():
        found, problems = outcomes_of(name, columns)
        wrong = {
            a: found.get(a, "skip")
            for a in {*expected, *found}
            if found.get(a, "skip") not in expected.get(a, ["skip"])
        }
        if wrong:
            differing.append(f"{name} ({why}): {wrong} {problems}")
    assert not differing, "\n".join(differing)
    assert {path.name for path in (CASES / "bounces").iterdir()} == set(cases)
    assert len(cases) >= 50


@each_row("layout", layouts(), ids=lambda layout: layout.name)
def test_no_layout_hides_another(layout):
    needed = [name.partition("|")[0] for name in layout.needs]
    names = needed or [theirs[0] for theirs in layout.columns.values()]
    assert known_layout(tuple(names)).name == layout.name
    assert layout.source
    assert "address" in layout.columns


EVENT = (
    '{"email": "ada@firm.example", "event": "bounce", "timestamp": 1772529300, "sg_event_id": "e", '
    '"reason": "550 5.1.1 User unknown"}'
)


@pytest.mark.parametrize(
    ("text", "count", "other"),
    [
        (f"{EVENT}\n\n{EVENT}\n", 2, 0),
        (f"\ufeff{EVENT}", 1, 0),
        (f"{EVENT}{EVENT}", 2, 0),
        (f"[{EVENT},\n{EVENT}]", 2, 0),
        (f"[{EVENT}]\n[{EVENT}]\n", 2, 0),
        (f'[{EVENT}, {{"other": 1}}, 3, "text"]', 1, 3),
        (f'{{"page": {{"results": [{EVENT}, {{"other": [1]}}]}}}}', 1, 1),
        (
            f'{{"Message": {json.dumps(EVENT)}}}\n{{"Message": "You have chosen to subscribe"}}',
            1,
            1,
        ),
        (f'{{"Message": {json.dumps(EVENT)}}}\n{{"Message": "[Spring] a mail"}}', 1, 1),
    ],
)
def test_events_are_found_wherever_they_stand(tmp_path, text, count, other):
    (tmp_path / "events.json").write_text(text, "utf-8")
    found = mv.read_bounces(tmp_path / "events.json")
    assert found["outcome"].tolist() == ["hard"] * count
    assert found.attrs["bounces"]["other"] == other


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('{"a": ', mv.InputError, "line 1: not valid JSON"),
        ('{"a":' * 100_000, mv.InputError, "line 1: not valid JSON"),
        (
            '{"a":' * (MAX_DEPTH + 1) + EVENT + "}" * (MAX_DEPTH + 1),
            mv.ColumnError,
            "no events of a sending service",
        ),
        ('{"email": "ada@firm.example"}', mv.ColumnError, "no events of a sending service"),
    ],
)
def test_what_is_not_events_is_an_error(tmp_path, text, error, message):
    (tmp_path / "events.json").write_text(text, "utf-8", errors="surrogateescape")
    with pytest.raises(error, match=message):
        mv.read_bounces(tmp_path / "events.json")


def test_a_line_that_is_no_json_costs_itself_only(tmp_path):
    path = tmp_path / "events.json"
    path.write_text(f'{EVENT}\n{{"a": \n{EVENT}\n\udcff\n{EVENT}\n', "utf-8", "surrogateescape")
    with pytest.warns(UserWarning, match=r"2 of 5 .*events\.json: line 2: not valid JSON"):
        found = mv.read_bounces(path)
    assert len(found) == 3


@each_row(
    "unknown",
    [
        {"kind": "hard bounce", "person": "bo@firm.example"},
        {"bounce": {"who": "bo@firm.example", "why": "dead"}},
        {"name": "complaint", "data": [{"person": "bo@firm.example"}]},
        {f"m{i}": i for i in range(600)} | {"list": [json.loads(EVENT)]},
    ],
)
def test_an_unknown_event_beside_known_ones_is_named_with_its_members(tmp_path, unknown):
    path = tmp_path / "events.jsonl"
    path.write_text(f"{EVENT}\n{json.dumps(unknown)}\n")
    with pytest.warns(
        UserWarning, match=rf"an event that is not known, with '{next(iter(unknown))}'"
    ):
        found = mv.read_bounces(path)
    note = found.attrs["bounces"]
    assert (len(found), note["unread"], note["other"]) == (1, 1, 0)


def test_other_events_of_an_unknown_service_are_only_counted(tmp_path):
    path = tmp_path / "events.jsonl"
    other = {"type": "user.created", "email": "bo@firm.example"}
    path.write_text(f"{EVENT}\n{json.dumps(other)}\n")
    note = mv.read_bounces(path).attrs["bounces"]
    assert (note["other"], note["unread"]) == (1, 0)


def test_an_unknown_word_of_many_events_is_one_problem(tmp_path):
    path = tmp_path / "events.jsonl"
    event = {"event": "bounce_resolved", "email": "bo@firm.example"}
    path.write_text(f"{EVENT}\n" + f"{json.dumps(event)}\n" * 3)
    with pytest.warns(UserWarning, match=r"3 of 4 .*the outcome is not known \(3 rows\)"):
        assert len(mv.read_bounces(path)) == 1
