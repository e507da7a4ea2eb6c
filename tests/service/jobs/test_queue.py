"""Whose jobs and whose mail servers come next."""

from collections import Counter

import pytest

from mailverdict.service.jobs.queue import WaitingOwner, choose_owners, shares


@pytest.mark.parametrize(
    ("jobs", "room", "expected"),
    [
        ({"a": 3}, 10, {"a": 3}),
        ({"a": 30}, 10, {"a": 10}),
        ({"a": 30, "b": 2}, 10, {"b": 2, "a": 8}),
        ({"a": 30, "b": 30, "c": 30}, 10, {"a": 3, "b": 3, "c": 4}),
        ({"a": 5, "b": 5, "c": 5}, 2, {"a": 1, "b": 1}),
        ({"a": 5}, 0, {}),
        ({}, 10, {}),
    ],
)
def test_room_is_shared_equally_as_far_as_there_are_jobs(
    jobs: dict, room: int, expected: dict
) -> None:
    assert shares(jobs, room) == expected


def owners(client: str, count: int, *, is_check: bool = False) -> list[WaitingOwner]:
    return [WaitingOwner(f"{client}{n}", client, is_check) for n in range(count)]


def test_clients_get_places_in_turn_and_the_last_tenth_is_for_others() -> None:
    many, few = owners("many", 300), owners("few", 10)
    first = choose_owners(many, Counter(), 100, 100)
    assert len(first) == 90
    assert choose_owners(many[90:], Counter(many=90), 10, 100) == []
    assert choose_owners([*many[90:], *few], Counter(many=90), 10, 100) == [
        each.name for each in few
    ]
    assert Counter(
        name[:3] for name in choose_owners([*many, *owners("few", 100)], Counter(), 100, 100)
    ) == {
        "man": 45,
        "few": 45,
    }


def test_owners_with_single_checks_come_first_and_use_all_places() -> None:
    checks = owners("check", 3, is_check=True)
    assert choose_owners([*owners("many", 30), *checks], Counter(many=18, check=1), 2, 20) == [
        "check0",
        "check1",
    ]


def test_owner_of_several_clients_is_chosen_once() -> None:
    shared = [WaitingOwner("shared", client, False) for client in ("a", "b", "c")]
    assert choose_owners([*shared, WaitingOwner("own", "c", False)], Counter(), 20, 20) == [
        "shared",
        "own",
    ]


def test_a_worker_with_one_place_uses_it() -> None:
    assert choose_owners(owners("a", 2), Counter(), 1, 1) == ["a0"]
    assert choose_owners(owners("a", 2), Counter(a=1), 0, 1) == []
