"""Sessions of one run: scripted exchanges on loopback, a resolver that is a dict, a clock that is a number."""

import asyncio
import ipaddress
import random
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from mailverdict.backend import Batch, Noticed, Settled, Waiting
from mailverdict.checks.dns.answers import AddressAnswer, AnswerOutcome
from mailverdict.checks.lists.flags import load_lists
from mailverdict.local.batch import observe_batch
from mailverdict.local.smtp.engine import FULL_NAME, SmtpEngine, find_helo_name
from mailverdict.local.smtp.results import ResultBuffer
from mailverdict.local.smtp.tracker import RecipientState
from mailverdict.model.evidence import DnsOutcome, DomainEvidence, MailExchange
from mailverdict.model.settings import Lists, LocalSettings
from mailverdict.model.words import Reason
from mailverdict.sandbox import World
from mailverdict.sandbox.smtp import SmtpServer
from mailverdict.sandbox.smtp_script import Exchange as Played
from mailverdict.sandbox.smtp_script import SmtpFault
from tests.doubles.clock import Clock

pytestmark = pytest.mark.usefixtures("skipped_waits")

OPEN = Played("mx.open.example", "takes all", mailboxes=None)
LATER = Played("mx.later.example", "greylists for long", rcpt="451 4.7.1 Greylisted, try again in 300 seconds")
BUSY = Played("mx.busy.example", "too many connections", greeting="421 4.7.0 {host} too many connections")
MUTE = Played("mx.mute.example", "never greets", faults=(SmtpFault("connect", "silence"),))


class Book:
    """A resolver that knows the exchanges of a server, and counts who asks."""

    def __init__(self, server, more=None):
        self.known = {host: [address] for host, address in server.addresses.items()} | (more or {})
        self.asked = []

    async def addresses(self, host):
        self.asked.append(host)
        found = tuple(ipaddress.ip_address(each) for each in self.known.get(host, ()))
        outcome = AnswerOutcome.DATA if found else AnswerOutcome.UNDETERMINED
        return AddressAnswer(host, found, outcome, "" if found else "A look-up: SERVFAIL")


@asynccontextmanager
async def running(domains, *played, more=None, clock=None, **settings):
    """An engine with some domains, two addresses each."""
    async with SmtpServer(played) as server:
        batch = observe_batch(
            pa.array([f"ada{n}@{d}" for d in domains for n in range(2)], pa.string()), load_lists(Lists())
        )
        quick = {"connect_timeout": 0.3, "command_timeout": 0.3, "backoff_min": 0.01, "allow_networks": ["127.0.0.0/8"]}
        config = LocalSettings(smtp_port=server.port or 9, **{**quick, **settings})
        book = Book(server, more)
        engine = SmtpEngine(
            config, book, ResultBuffer(batch), helo_name="client.example", clock=clock, rng=random.Random(1)
        )
        for code, (domain, hosts) in enumerate(domains.items()):
            exchanges = tuple(MailExchange(10 * mx_index, host) for mx_index, host in enumerate(hosts))
            seen = DomainEvidence(domain, DnsOutcome.MX if hosts else DnsOutcome.NULL_MX, exchanges)
            engine.add_domain(code, seen, np.array([2 * code, 2 * code + 1]))
        try:
            yield engine, server, book
        finally:
            await engine.aclose()


async def finish(engine):
    while not engine.is_done():
        await engine.run_until_change(0.2)
    assert set(engine.tracker.states) <= {RecipientState.ANSWERED, RecipientState.ABANDONED}
    return [seen.reason for _, seen in sorted(engine.results.items)]


def test_domains_with_the_same_exchanges_share_a_set_and_a_session():
    async def run():
        domains = {f"d{n}.example": [OPEN.host] for n in range(20)}
        async with running(domains, OPEN) as (engine, server, book):
            assert await finish(engine) == [None] * 40
            return len(engine.sets), server.stats(OPEN.host).sessions, book.asked

    assert asyncio.run(run()) == (1, 1, [OPEN.host])


def test_a_host_is_looked_up_once_for_all_its_sets():
    async def run():
        domains = {"a.example": [OPEN.host], "b.example": [OPEN.host, MUTE.host], "c.example": [MUTE.host, OPEN.host]}
        async with running(domains, OPEN, MUTE) as (engine, _, book):
            reasons = await finish(engine)
            return reasons, sorted(book.asked)

    reasons, asked = asyncio.run(run())
    assert reasons == [None] * 6
    assert asked == sorted([OPEN.host, MUTE.host])


NO_ADDRESS = [
    ({}, Reason.INCONCLUSIVE, "the look-up failed: nothing is known of the port"),
    ({"mx.x.example": ["10.0.0.1"]}, Reason.PORT_CLOSED, "a private address, not allowed"),
    ({"mx.x.example": ["127.0.0.1"]}, Reason.PORT_CLOSED, "our own, where nobody listens"),
]


@pytest.mark.parametrize(("more", "reason", "why"), NO_ADDRESS)
def test_an_exchange_without_an_address_to_dial(more, reason, why):
    async def run():
        async with running({"x.example": ["mx.x.example"]}, more=more) as (engine, _, _):
            return await finish(engine)

    assert asyncio.run(run()) == [reason, reason], why


def test_greylisted_addresses_are_asked_again_when_the_clock_says_so():
    async def run():
        clock = Clock()
        async with running({"x.example": [LATER.host]}, LATER, clock=clock) as (engine, server, _):
            while engine.waiting_for() is None:
                await engine.run_until_change(0.05)
            seconds, why = engine.waiting_for()
            asked = server.stats(LATER.host).commands["RCPT"]
            clock.now += 299
            await engine.run_until_change(0.01)
            still = server.stats(LATER.host).commands["RCPT"]
            clock.now += 3
            return seconds, why, asked, still, await finish(engine), server.stats(LATER.host).rcpts

    seconds, why, asked, still, reasons, rcpts = asyncio.run(run())
    assert 300 <= seconds <= 302
    assert why.startswith("2 greylisted")
    assert asked == still == 3  # two addresses and a probe
    assert reasons == [Reason.GREYLISTED] * 2
    assert set(rcpts.values()) == {2}


def test_backing_off_waits_by_the_clock():
    async def run():
        clock = Clock()
        async with running({"x.example": [BUSY.host]}, BUSY, clock=clock, backoff_min=10, backoff_max=60) as (
            engine,
            server,
            _,
        ):
            sessions = []
            for _ in range(4):
                await engine.run_until_change(0.01)
                while engine.tasks or not engine.scheduler.backing_off:
                    await engine.run_until_change(0.01)
                sessions.append(server.stats(BUSY.host).sessions)
                clock.now = engine.scheduler.next_time()
            return sessions, await drain(engine, clock)

    async def drain(engine, clock):
        while not engine.is_done():
            clock.now += 1
            await engine.run_until_change(0.001)
        return [seen.reason for _, seen in engine.results.items]

    sessions, reasons = asyncio.run(run())
    assert sessions == [1, 2, 3, 4]
    assert reasons == [Reason.INCONCLUSIVE] * 2


def test_an_exception_in_a_task_is_raised():
    class Broken(Book):
        async def addresses(self, host):
            raise ZeroDivisionError

    async def run():
        async with running({"x.example": [OPEN.host]}, OPEN) as (engine, server, _):
            engine.resolver = Broken(server)
            await finish(engine)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(run())


def test_closing_ends_every_session():
    async def run():
        slow = Played("mx.slow.example", "takes its time", mailboxes=None, delay=5.0)
        async with running({"x.example": [slow.host]}, slow, command_timeout=9, connect_timeout=9) as (
            engine,
            server,
            _,
        ):
            while not server.stats(slow.host).open_now:
                await engine.run_until_change(0.05)
            await engine.aclose()
            while server.stats(slow.host).open_now:
                await asyncio.sleep(0.01)
            return len(engine.tasks)

    assert asyncio.run(run()) == 0


def test_a_domain_without_exchanges_is_settled_at_once():
    async def run():
        async with running({"x.example": []}) as (engine, _, _):
            engine.results.clear()
            engine.results.aliases = {0: [1]}
            engine.add_domain(0, DomainEvidence("x.example", DnsOutcome.NULL_MX), np.array([0]))
            return engine.is_done(), engine.results.items

    assert asyncio.run(run()) == (True, [(0, None), (1, None)])


def test_equal_preferences_are_put_in_an_order_of_their_own():
    async def run():
        async with running({}) as (engine, _, _):
            firsts = set()
            for n in range(40):
                hosts = tuple(MailExchange(10, f"{name}{n}") for name in "abc")
                firsts.add(engine.exchange_set(DomainEvidence("x", DnsOutcome.MX, hosts)).hosts[0].name[0])
            return firsts

    assert asyncio.run(run()) == {"a", "b", "c"}


def test_a_host_given_twice_is_one():
    async def run():
        async with running({}) as (engine, _, _):
            twice = (MailExchange(10, "a"), MailExchange(20, "a"), MailExchange(30, "b"))
            return [h.name for h in engine.exchange_set(DomainEvidence("x", DnsOutcome.MX, twice)).hosts]

    assert asyncio.run(run()) == ["a", "b"]


def test_a_session_is_given_what_is_left_of_the_deadline():
    async def run():
        clock = Clock()
        async with running({"x.example": [OPEN.host]}, OPEN, clock=clock, deadline=30, session_deadline=20) as (
            engine,
            _,
            _,
        ):
            (exchanges,) = engine.sets.values()
            exchanges.hosts[0].addresses = ("127.0.0.1",)
            (assignment,) = engine.scheduler.assignments(clock())
            full = engine.timeouts(assignment).session
            exchanges.silent_for = 25.0
            tight = engine.timeouts(assignment).session
            exchanges.silent_for = 0.0
            exchanges.queues[0].append(0)
            engine.tracker.began[0] = clock() - 18
            aged = engine.timeouts(assignment).session
            engine.tracker.unsettled = 0
            return full, tight, aged

    assert asyncio.run(run()) == (20, 5, 12)


@pytest.mark.parametrize("sets", [500])
def test_sets_that_wait_for_one_machine_cost_nothing_while_they_wait(sets):
    """However many sets wait for one address, an event looks at a few of them."""

    async def run():
        more = {f"mx.d{n}.example": ["127.0.61.1"] for n in range(sets)}
        farm = Played("mx.farm.example", "one machine of many names", mailboxes=None, address="127.0.61.1")
        domains = {f"d{n}.example": [f"mx.d{n}.example"] for n in range(sets)}
        patience = {"connect_timeout": 60, "command_timeout": 60}  # hundreds of sessions, and a busy machine
        async with running(domains, farm, more=more, catch_all_probe=False, **patience) as (engine, server, _):
            looks = count_calls(engine.scheduler, "assign")
            reasons = await finish(engine)
            return set(reasons), server.stats(farm.host).most_open, looks

    reasons, most_open, looks = asyncio.run(run())
    assert (reasons, most_open) == ({None}, 2)
    assert len(looks) < 8 * sets


def count_calls(owner, name):
    """Count the calls of a method, from outside."""
    calls, method = [], getattr(owner, name)

    def counting(*args):
        calls.append(args)
        return method(*args)

    setattr(owner, name, counting)
    return calls


NAMES = [
    ("mail.example.org", True),
    ("a-b.example", True),
    ("localhost", False),
    ("my_host.example", False),
    ("192.0.2.1", False),
    ("-a.example", False),
    ("a-.example", False),
    ("mail.example.org\r\nRSET", False),
    ("bücher.example", False),
    ("", False),
]


@pytest.mark.parametrize(("name", "is_full"), NAMES)
def test_only_full_host_names_are_said(name, is_full):
    assert bool(FULL_NAME.fullmatch(name)) is is_full


def test_the_setting_comes_first():
    assert asyncio.run(find_helo_name(LocalSettings(helo_name="[192.0.2.1]"))) == "[192.0.2.1]"


def test_without_it_something_sendable_is_found():
    name = asyncio.run(find_helo_name(LocalSettings()))
    assert name == "localhost" or FULL_NAME.fullmatch(name)


NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def events_of(emails, **settings):
    async def run():
        async with World(**settings) as world:
            return [event async for event in world.backend.verify(Batch(pa.array(emails), "smtp"))]

    return asyncio.run(run())


def settled(events):
    return [at for event in events if isinstance(event, Settled) for at in event.positions.tolist()]


def test_every_address_is_settled_exactly_once():
    emails = [
        "ada@plain.example",
        "broken",
        "ada@null.example",
        "ada@xn--mller-bau-q9a.example",
        "ada@müller-bau.example",
    ]
    events = events_of(emails)
    assert sorted(settled(events)) == [0, 1, 2, 3, 4]
    assert not any(isinstance(event, Noticed) for event in events)


def test_a_column_of_nothing_to_ask_ends_at_once():
    assert settled(events_of(["broken", "ada@"])) == [0, 1]
    assert settled(events_of(["ada@null.example"])) == [0]


def test_rows_are_handed_on_together():
    events = events_of([f"ada{n}@yahoo.com" for n in range(500)])
    assert len([event for event in events if isinstance(event, Settled)]) < 10


def test_waiting_is_reported_while_no_session_is_under_way():
    events = events_of(["ada@greylisting.example", "grace@greylisting.example"])
    waits = [event for event in events if isinstance(event, Waiting)]
    assert waits
    assert waits[0].why.startswith("2 greylisted")
    assert waits[0].seconds <= 3


def test_nothing_is_noticed_where_nothing_was_dialled():
    events = events_of(["ada@private.example", "ada@gone-exchange.example"])
    assert not any(isinstance(event, Noticed) for event in events)
