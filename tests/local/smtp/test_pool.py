"""Sessions of a pool: scripted exchanges on loopback, and a resolver that is a dict."""

import asyncio
import random
from contextlib import asynccontextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailverdict.checks.dns.answers import AnswerOutcome, DnsAnswer
from mailverdict.checks.lists.flags import load_lists
from mailverdict.local.batch import observe_batch
from mailverdict.local.smtp.pool import SmtpPool
from mailverdict.local.smtp.recipients import Recipients, ResultBuffer
from mailverdict.model.evidence import DnsOutcome, DomainEvidence, MailExchange
from mailverdict.model.settings import Lists, LocalSettings
from mailverdict.model.words import Reason
from mailverdict.sandbox.smtp import SmtpServer
from mailverdict.sandbox.smtp_script import Exchange as Played
from mailverdict.sandbox.smtp_script import SmtpFault
from tests.doubles.clock import run_virtual
from tests.doubles.mail_servers import ScriptedWorld, Server
from tests.doubles.tables import each_row

pytestmark = pytest.mark.usefixtures("skipped_waits")

OPEN = Played("mx.open.example", "takes all", mailboxes=None)
BUSY = Played(
    "mx.busy.example", "too many connections", greeting="421 4.7.0 {host} too many connections"
)
MUTE = Played("mx.mute.example", "never greets", faults=(SmtpFault("connect", "silence"),))


class Book:
    """A resolver that knows the exchanges of a server, and counts who asks."""

    def __init__(self, server, more=None):
        self.known = {host: [address] for host, address in server.addresses.items()} | (more or {})
        self.asked = []

    async def addresses(self, host):
        self.asked.append(host)
        found = tuple(self.known.get(host, ()))
        outcome = AnswerOutcome.DATA if found else AnswerOutcome.UNDETERMINED
        return DnsAnswer(outcome, texts=found, message="" if found else "A look-up: SERVFAIL")


@asynccontextmanager
async def running(domains, *played, more=None, **settings):
    """A run with some domains, two addresses each."""
    async with SmtpServer(played) as server:
        batch = observe_batch(
            pa.array([f"ada{n}@{d}" for d in domains for n in range(2)], pa.string()),
            load_lists(Lists()),
        )
        quick = {
            "connect_timeout": 0.3,
            "command_timeout": 0.3,
            "backoff_min": 0.01,
            "allow_networks": ["127.0.0.0/8"],
        }
        config = LocalSettings(smtp_port=server.port or 9, **{**quick, **settings})
        book = Book(server, more)
        pool = SmtpPool(config, book, helo_name="client.example", rng=random.Random(1))
        run = Recipients(pool, ResultBuffer(batch), retry_greylisted=config.retry_greylisted)
        for code, (domain, hosts) in enumerate(domains.items()):
            exchanges = tuple(
                MailExchange(10 * mx_index, host) for mx_index, host in enumerate(hosts)
            )
            seen = DomainEvidence(domain, DnsOutcome.MX if hosts else DnsOutcome.NULL_MX, exchanges)
            run.add(code, seen, np.array([2 * code, 2 * code + 1]))
        try:
            yield run, server, book
        finally:
            await run.aclose()


async def finish(run):
    while not run.is_done():
        await run.wait(0.2)
    results = run.results
    by_position = sorted(zip(results.positions, results.indices, strict=True))
    found = [results.evidence[index].mailbox for _, index in by_position]
    return [seen and seen.reason for seen in found]


def test_domains_with_the_same_exchanges_share_a_session():
    async def main():
        domains = {f"d{n}.example": [OPEN.host] for n in range(20)}
        async with running(domains, OPEN) as (run, server, book):
            assert await finish(run) == [None] * 40
            return len(run.routes), server.stats(OPEN.host).sessions, book.asked

    assert asyncio.run(main()) == (1, 1, [OPEN.host])


def test_a_host_is_looked_up_once():
    async def main():
        domains = {
            "a.example": [OPEN.host],
            "b.example": [OPEN.host, MUTE.host],
            "c.example": [MUTE.host, OPEN.host],
        }
        async with running(domains, OPEN, MUTE) as (run, _, book):
            return await finish(run), sorted(book.asked)

    assert asyncio.run(main()) == ([None] * 6, sorted([OPEN.host, MUTE.host]))


NO_ADDRESS = [
    ({}, Reason.INCONCLUSIVE, "the look-up failed: nothing is known of the port"),
    ({"mx.x.example": ["10.0.0.1"]}, Reason.PORT_CLOSED, "a private address, not allowed"),
    ({"mx.x.example": ["127.0.0.1"]}, Reason.PORT_CLOSED, "our own, where nobody listens"),
]


@each_row(("more", "reason", "why"), NO_ADDRESS)
def test_an_exchange_without_an_address_to_dial(more, reason, why):
    async def main():
        async with running({"x.example": ["mx.x.example"]}, more=more) as (run, _, _):
            return await finish(run)

    assert asyncio.run(main()) == [reason, reason], why


def test_a_domain_without_exchanges_is_settled_at_once():
    async def main():
        async with running({"x.example": []}) as (run, _, _):
            return run.is_done(), await finish(run)

    assert asyncio.run(main()) == (True, [None, None])


@pytest.mark.slow
def test_backing_off_waits():
    async def main():
        async with running({"x.example": [BUSY.host]}, BUSY, backoff_min=10, backoff_max=60) as (
            run,
            server,
            _,
        ):
            began, seen = run.pool.clock(), []
            while not run.is_done():
                sessions = server.stats(BUSY.host).sessions
                await run.wait(0.2)
                if server.stats(BUSY.host).sessions > sessions:
                    seen.append(run.pool.clock() - began)
            return seen, await finish(run)

    seen, reasons = asyncio.run(main())
    assert [least <= at for at, least in zip(seen, (0, 5, 15, 35, 65), strict=True)] == [True] * 5
    assert reasons == [Reason.INCONCLUSIVE] * 2


def test_an_exception_in_a_task_is_raised():
    class Broken(Book):
        async def addresses(self, host):
            raise ZeroDivisionError

    async def main():
        async with running({"x.example": [OPEN.host]}, OPEN) as (run, server, _):
            run.pool.resolver = Broken(server)
            await finish(run)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())


def test_closing_ends_every_session():
    async def main():
        slow = Played("mx.slow.example", "takes its time", mailboxes=None, delay=5.0)
        patience = {"command_timeout": 9, "connect_timeout": 9}
        async with running({"x.example": [slow.host]}, slow, **patience) as (run, server, _):
            while not server.stats(slow.host).open_now:
                await run.wait(0.05)
            await run.aclose()
            while server.stats(slow.host).open_now:
                await asyncio.sleep(0.01)
            return len(run.pool.tasks), run.pool.active

    assert asyncio.run(main()) == (0, 0)


def test_equal_preferences_are_put_in_an_order_of_their_own():
    async def main():
        async with running({}) as (run, _, _):
            names = ([MailExchange(10, f"{name}{n}") for name in "abc"] for n in range(40))
            routes = [run.route(DomainEvidence("x", DnsOutcome.MX, tuple(each))) for each in names]
            return {route.exchanges[0].name[0] for route in routes}

    assert asyncio.run(main()) == {"a", "b", "c"}


def test_a_host_given_twice_is_one():
    async def main():
        async with running({}) as (run, _, _):
            twice = (MailExchange(10, "a"), MailExchange(20, "a"), MailExchange(30, "b"))
            return [
                each.name for each in run.route(DomainEvidence("x", DnsOutcome.MX, twice)).exchanges
            ]

    assert asyncio.run(main()) == ["a", "b"]


@pytest.mark.slow
@each_row("hosts", [500])
def test_hosts_that_wait_for_one_machine_cost_nothing_while_they_wait(hosts):
    """However many wait for one address, an event looks at a few of them."""

    async def main():
        more = {f"mx.d{n}.example": ["127.0.61.1"] for n in range(hosts)}
        farm = Played(
            "mx.farm.example", "one machine of many names", mailboxes=None, address="127.0.61.1"
        )
        domains = {f"d{n}.example": [f"mx.d{n}.example"] for n in range(hosts)}
        # Hundreds of sessions, and a busy machine.
        patience = {
            "connect_timeout": 60,
            "command_timeout": 60,
        }
        async with running(domains, farm, more=more, catch_all_probe=False, **patience) as (
            run,
            server,
            _,
        ):
            looks = count_calls(run.pool, "open_session")
            reasons = await finish(run)
            return set(reasons), server.stats(farm.host).most_open, looks

    reasons, most_open, looks = asyncio.run(main())
    assert (reasons, most_open) == ({None}, 2)
    assert len(looks) < 8 * hosts


def count_calls(owner, name):
    """Count the calls of a method, from outside."""
    calls, method = [], getattr(owner, name)

    def counting(*args):
        calls.append(args)
        return method(*args)

    setattr(owner, name, counting)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2])
@given(seed=st.integers(0, 10_000))
# A cancelled run had the last questions of a session with missing mailboxes of another.
@example(seed=93)
def test_nobody_starves_and_no_limit_is_broken(limit, seed):
    """Runs of several clients at servers that share machines, and turn some sessions away; one run is cancelled."""
    rng = random.Random(seed)
    servers = {
        f"mx{n}.example": Server(delay=rng.choice([0.02, 0.5]), capacity=rng.choice([1, 99]))
        for n in range(8)
    }
    world = ScriptedWorld(servers, machines=5)
    for n in range(12):
        hosts = rng.sample(sorted(servers), rng.randint(1, 3))
        world.exchanges[f"d{n}.example"] = [(rng.choice([10, 20]), host) for host in hosts]

    async def verify(pool, number):
        count, domains = rng.randint(1, 60), rng.sample(sorted(world.exchanges), 3)
        emails = [
            f"{rng.choice(['user', 'no'])}{number}x{n}@{rng.choice(domains)}" for n in range(count)
        ]
        seen = await world.verify(pool, emails, f"client {number % 3}")
        found = {(email[:2], seen[email].reason) for email in emails}
        assert found <= {
            ("us", None),
            ("no", Reason.MAILBOX_NOT_FOUND),
            ("us", Reason.INCONCLUSIVE),
            ("no", Reason.INCONCLUSIVE),
        }

    async def main(loop):
        pool = world.pool(max_sessions_per_exchange=limit, max_sessions=6)
        tasks = [asyncio.create_task(verify(pool, number)) for number in range(8)]
        await asyncio.sleep(rng.random())
        tasks.pop(rng.randrange(8)).cancel()
        async with asyncio.timeout(3600):
            await asyncio.gather(*tasks)
        await asyncio.sleep(1)
        return (
            pool.active,
            pool.by_address,
            pool.by_client,
            pool.lines,
            sum(each.size for each in pool.exchanges.values()),
        )

    assert run_virtual(main) == (0, {}, {}, {}, 0)
    assert max(world.most_at.values()) <= limit
    assert world.most <= 6
