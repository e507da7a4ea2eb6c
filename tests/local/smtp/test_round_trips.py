"""How many round trips a long queue at one exchange needs, and what the exchange sees: a model in virtual time."""

import random

import pytest

from mailverdict.model.words import Reason
from tests.doubles.clock import run_virtual
from tests.doubles.mail_servers import DELAY, ScriptedWorld, Server


class Model:
    """One exchange and the queue of one domain, with two sessions at once."""

    def __init__(self, count, unknown, *, punishes=False, accepts_all=False, seed=0):
        missing = set(random.Random(seed).sample(range(count), round(count * unknown)))
        self.emails = [f"{'no' if n in missing else 'user'}{n}@x.example" for n in range(count)]
        self.server = Server(punishes=punishes, accepts_all=accepts_all)
        self.seen = {}

    def run(self):
        """Ask about all addresses; return the round trips that this takes."""

        async def ask(loop):
            self.world = world = ScriptedWorld({"mx.x.example": self.server})
            self.seen = await world.verify(world.pool(), self.emails)
            return round(loop.time() / DELAY)

        return run_virtual(ask)


def mean_of(seeds, *args, **how):
    return sum(Model(*args, seed=seed, **how).run() for seed in range(seeds)) / seeds


ROUND_TRIPS = [
    # addresses, share of unknown ones, how the exchange behaves, mean of round trips at most
    (600, 0.2, {}, 66),
    (600, 0.01, {}, 26),
    (600, 0.2, {"punishes": True}, 66),
    (20, 0.2, {}, 6),
    (1, 0.0, {}, 4),
]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "unknown", "how", "most"), ROUND_TRIPS)
@pytest.mark.parametrize("seeds", [4, 20])
def test_a_queue_needs_few_round_trips(seeds, count, unknown, how, most):
    assert mean_of(seeds, count, unknown, **how) <= most


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [6, 30])
def test_refusals_are_almost_never_punished(seeds):
    assert max(Model(600, 0.2, punishes=True, seed=seed).run() for seed in range(seeds)) <= 80


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 9))]
)
@pytest.mark.parametrize("punishes", [False, True])
def test_an_exchange_has_two_sessions_at_once_and_few_refusals_in_each(punishes, seed):
    model = Model(600, 0.2, punishes=punishes, seed=seed)
    model.run()
    assert model.world.most == 2
    assert len(set(model.server.asked)) == 601  # one of them is the probe of the domain
    # Sometimes one that was accepted before, after several missing ones; or these again, where QUIT went with them.
    assert len(model.server.asked) <= 607
    assert max(model.server.refusals) < 20


def test_all_accepted_ones_are_catch_all_where_everybody_is_accepted():
    model = Model(600, 0.0, accepts_all=True)
    model.run()
    assert {(seen.reason, seen.catch_all) for seen in model.seen.values()} == {(None, True)}


def test_all_unknown_ones_are_found():
    model = Model(600, 0.2)
    model.run()
    reasons = {
        email[:2]: {seen.reason for e, seen in model.seen.items() if e[:2] == email[:2]}
        for email in model.seen
    }
    assert reasons == {"us": {None}, "no": {Reason.MAILBOX_NOT_FOUND}}
