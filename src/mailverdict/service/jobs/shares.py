"""Whose jobs and whose mail servers come next: equal shares for all clients, as far as their pace allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import NamedTuple

KEPT = 10  # one in so many places is kept for clients that have nothing under way


class WaitingOwner(NamedTuple):
    """Mail servers that may be asked, and a client whose jobs wait for them."""

    name: str
    client: str
    is_check: bool  # the client waits for a single check


def shares(counts: Mapping[str, int], room: int) -> dict[str, int]:
    """How many jobs of which client to start: equal shares of `room`, as far as each has jobs.

    >>> shares({"192.0.2.1": 500, "192.0.2.2": 10}, 100)
    {'192.0.2.2': 10, '192.0.2.1': 90}
    >>> shares({"192.0.2.1": 500, "192.0.2.2": 500, "192.0.2.3": 500}, 2)
    {'192.0.2.1': 1, '192.0.2.2': 1}
    """
    chosen = sorted(list(counts.items())[: max(room, 0)], key=itemgetter(1))
    given = {}
    for i, (client, count) in enumerate(chosen):
        given[client] = min(count, room // (len(chosen) - i))
        room -= given[client]
    return given


def choose_owners(
    waiting: Iterable[WaitingOwner], asked: Counter[str], free: int, places: int
) -> list[str]:
    """The owners that get one of the `free` of all `places`: those with single checks, then the clients in turn.

    `asked` counts the owners that are asked for each client. The last places are kept for clients that have none.

    >>> slow = [WaitingOwner(f"slow{n}", "many", is_check=False) for n in range(5)]
    >>> other = WaitingOwner("other", "few", is_check=False)
    >>> choose_owners([*slow, other], Counter(), 3, 10)
    ['slow0', 'other']
    >>> choose_owners([*slow, other], Counter(many=9), 1, 10)
    ['other']
    """
    clients: dict[str, list[str]] = {}  # by owner
    owners: dict[str, list[str]] = {}  # by client, the last one first
    chosen: dict[str, None] = {}
    for each in waiting:
        clients.setdefault(each.name, []).append(each.client)
        owners.setdefault(each.client, []).insert(0, each.name)
        if each.is_check and len(chosen) < free:
            chosen[each.name] = None
    kept = places // KEPT
    if free > kept:
        free -= kept
    else:
        owners = {client: names for client, names in owners.items() if not asked[client]}
    turns = asked + Counter(client for name in chosen for client in clients[name])
    while owners and len(chosen) < free:
        client = min(owners, key=turns.__getitem__)
        name = owners[client].pop()
        if not owners[client]:
            del owners[client]
        if name not in chosen:
            chosen[name] = None
            turns.update(clients[name])
    return list(chosen)
