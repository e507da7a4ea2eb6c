"""When queries are sent: resolvers of many speeds, queues, losses and delays in virtual time, and two on sockets."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from typing import Any

import dns.message
import dns.rcode
import pytest

from mailverdict.checks.dns.congestion import Query, QueryScheduler, Repeat, ServerWindow
from mailverdict.checks.dns.resolver import Resolver
from mailverdict.checks.dns.wire import make_question
from mailverdict.model.settings import LocalSettings
from mailverdict.sandbox.dns import DnsServer, DomainRecords
from tests.doubles.simulated_resolvers import LIMIT, SimulatedResolver, SimulatedRun, simulate
from tests.doubles.tables import crossed, each_row

QUESTION = make_question("ada.example", "MX")


def describe(resolver: SimulatedResolver, run: SimulatedRun, questions: int) -> str:
    ideal = resolver.ideal_seconds(questions)
    return f"{run.seconds:.1f} s, ideal {ideal:.1f} s; {run.queries / questions:.3f} queries a question; {run}"


@pytest.mark.parametrize(
    ("rate", "queue", "loss", "delay"),
    [
        *crossed([50, 1000], [20, 500], [0.0, 0.05], [0.001, 0.2]),
        *(
            pytest.param(5000, *rest, marks=pytest.mark.slow)
            for rest in ((20, 0.05, 0.02), (50, 0.05, 0.2))
        ),
        (100, 50, 0.0, 0.01),
    ],
)
def test_few_queries_and_little_time_more_than_ideal(
    rate: int, queue: int, loss: float, delay: float
) -> None:
    resolver = SimulatedResolver(rate, queue, loss, delay)
    questions = 2000 if rate <= 1000 else 10_000
    run = simulate([resolver], questions)
    assert run.answered + run.unknown == questions
    assert run.unknown <= questions / 100, describe(resolver, run, questions)
    assert run.seconds <= 2 * resolver.ideal_seconds(questions), describe(resolver, run, questions)
    assert run.queries <= 1.3 * questions, describe(resolver, run, questions)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "delay"),
    [(50, 0.05), (1000, 0.2), (200, 0.001), (1000, 0.001)],
)
def test_one_query_in_five_lost_at_random(rate: int, delay: float) -> None:
    """With this loss 1.25 queries a question are the least that is possible."""
    resolver = SimulatedResolver(rate, 50, 0.2, delay)
    run = simulate([resolver], 4000)
    assert run.unknown <= 40
    assert run.seconds <= 2 * resolver.ideal_seconds(4000), describe(resolver, run, 4000)
    assert run.queries <= 1.4 * 4000, describe(resolver, run, 4000)


@pytest.mark.slow
@each_row("most", [50, 150])
def test_resolver_that_refuses_beyond_a_number_in_flight(most: int) -> None:
    resolver = SimulatedResolver(rate=2000, queue=1000, delay=0.1, most_in_flight=most)
    run = simulate([resolver], 4000)
    assert run.unknown == 0
    assert run.queries <= 1.3 * 4000
    assert run.seconds <= 2 * 4000 / (most / 0.1)


@pytest.mark.slow
def test_dead_first_resolver_costs_a_second() -> None:
    dead, alive = SimulatedResolver(dead_from=0.0), SimulatedResolver(rate=500, queue=50)
    run = simulate([dead, alive], 4000)
    assert run.unknown == 0
    assert run.queries <= 1.3 * 4000
    assert run.seconds <= 4000 / 500 * 1.5 + 2


@pytest.mark.slow
def test_lossy_resolver_beside_a_dead_one() -> None:
    dead, alive = SimulatedResolver(dead_from=0.0), SimulatedResolver(rate=500, queue=50, loss=0.1)
    run = simulate([alive, dead], 4000)
    assert run.unknown <= 40
    assert dead.queries <= 200
    assert run.queries <= 1.3 * 4000


@pytest.mark.slow
@each_row("questions", [10, 5000])
def test_dead_resolver_ends_in_bounded_time_however_many_questions_there_are(
    questions: int,
) -> None:
    dead = SimulatedResolver(dead_from=0.0)
    run = simulate([dead], questions)
    assert run.unknown == questions
    assert run.seconds <= 120
    assert dead.queries <= 3000


@pytest.mark.slow
def test_outage_of_some_seconds_loses_nothing() -> None:
    resolver = SimulatedResolver(rate=500, queue=100, dead_from=3.0, dead_until=18.0)
    run = simulate([resolver], 5000)
    assert run.unknown == 0
    assert run.queries <= 1.3 * 5000
    assert run.seconds <= 2 * (5000 / 500 + 15)


@pytest.mark.slow
def test_domains_that_are_never_answered_do_not_slow_down_the_others() -> None:
    resolver = SimulatedResolver(rate=4000, queue=2000, delay=0.02, silent_every=25)
    run = simulate([resolver], 8000)
    assert run.unknown == 8000 / 25
    assert run.seconds <= 2 * 8000 / 4000 + 9


@pytest.mark.slow
def test_fast_resolver_gets_the_full_window() -> None:
    resolver = SimulatedResolver(rate=50_000, queue=2000, delay=0.02)
    run = simulate([resolver], 10_000)
    assert run.largest_window == LIMIT
    assert run.queries == 10_000
    assert run.seconds <= 0.4  # a round trip more than ideal, for the usual loss


class TestWindow:
    def window(self, **given: float) -> ServerWindow:
        return ServerWindow(int(given.get("limit", 1000)), given.get("timeout", 3.0))

    def send(self, window: ServerWindow, now: float) -> object:
        query = Query(QUESTION, sent=1)
        return window.send(query, 0, now)

    def test_is_not_larger_than_allowed_nor_smaller_than_needed(self) -> None:
        window = self.window(limit=1)
        for number in range(50):
            sent = self.send(window, float(number))
            assert window.in_flight == 1
            if number % 2:
                window.on_answer(sent, number + 0.5)
            else:
                window.on_loss(sent, number + 0.5)
            assert window.size == 1


class TestScheduler:
    def scheduler(self, servers: int = 1, **given: float) -> QueryScheduler:
        return QueryScheduler(
            servers, limit=int(given.get("limit", 1000)), timeout=given.get("timeout", 3.0)
        )

    def ask(self, scheduler: QueryScheduler, **given: float) -> Query:
        query = Query(
            QUESTION, attempts=int(given.get("attempts", 3)), lifetime=given.get("lifetime", 9.0)
        )
        scheduler.add(query)
        return query

    def test_late_answer_to_an_earlier_query_counts(self) -> None:
        scheduler = self.scheduler()
        query = self.ask(scheduler)
        [first] = scheduler.sends(0.0)
        scheduler.expire(1.0)
        [second] = scheduler.sends(1.5)
        scheduler.on_answer(first, 1.6)
        assert (query.is_done, scheduler.windows[0].in_flight, second.is_open) == (True, 0, False)
        assert scheduler.expire(100.0) == []

    def test_unanswered_question_is_asked_again_later_each_time_and_ends_after_its_lifetime(
        self,
    ) -> None:
        scheduler, now, times = self.scheduler(), 0.0, []
        query = self.ask(scheduler)
        ended: list[Query] = []
        while not ended:
            times += [now for _ in scheduler.sends(now)]
            now = scheduler.wake_at(now)
            ended = scheduler.expire(now)
        assert ended == [query]
        assert len(times) == 3
        assert 1.0 <= times[1] <= 1.25
        assert 1.5 <= times[2] - times[1] <= 2.0
        assert now == 9.0
        assert scheduler.wake_at(now) == math.inf

    def test_answer_without_a_result_is_asked_for_elsewhere_at_once(self) -> None:
        scheduler = self.scheduler(servers=2)
        query = self.ask(scheduler)
        [first] = scheduler.sends(0.0)
        scheduler.on_answer(first, 0.1, is_refusal=True)
        assert scheduler.repeat(query, Repeat.ELSEWHERE)
        [second] = scheduler.sends(0.1)
        assert (first.server, second.server) == (0, 1)
        scheduler.on_answer(second, 0.2, is_refusal=True)
        assert not scheduler.repeat(query, Repeat.ELSEWHERE)

    def test_late_refusal_ends_a_question_that_waits_to_be_asked_again(self) -> None:
        """No server is left then, so the question must not be looked at any more."""
        scheduler = self.scheduler()
        query = self.ask(scheduler)
        [first] = scheduler.sends(0.0)
        scheduler.expire(1.0)
        scheduler.on_answer(first, 1.0, is_refusal=True)
        assert not scheduler.repeat(query, Repeat.ELSEWHERE)
        assert scheduler.wake_at(1.0) == math.inf

    def test_refusal_is_for_the_load_only_where_others_were_answered_and_many_were_in_flight(
        self,
    ) -> None:
        scheduler = self.scheduler()
        for _ in range(20):
            self.ask(scheduler)
        sent = list(scheduler.sends(0.0))
        assert not scheduler.is_refusal_for_load(sent[-1])
        scheduler.on_answer(sent[0], 0.1)
        assert scheduler.is_refusal_for_load(sent[-1])
        assert not scheduler.is_refusal_for_load(sent[3])

    def test_question_refused_for_the_load_is_asked_again_when_its_answer_would_be_overdue(
        self,
    ) -> None:
        scheduler = self.scheduler(limit=1)
        query, other = self.ask(scheduler), self.ask(scheduler)
        [refused] = scheduler.sends(0.0)
        scheduler.on_overload(refused, 0.1)
        [sent] = scheduler.sends(0.1)  # its place is free at once
        assert sent.query is other
        assert set(scheduler.in_progress()) == {query, other}
        scheduler.on_answer(sent, 0.2)
        scheduler.expire(1.0)
        assert [sent.query for sent in scheduler.sends(1.0)] == [query]

    def test_question_that_is_not_needed_any_more_frees_its_place(self) -> None:
        scheduler = self.scheduler(limit=1)
        first, second = self.ask(scheduler), self.ask(scheduler)
        assert [sent.query for sent in scheduler.sends(0.0)] == [first]
        scheduler.close(first)
        assert [sent.query for sent in scheduler.sends(0.1)] == [second]


class SlowServer(asyncio.DatagramProtocol):
    """Answers `rate` queries a second with NXDOMAIN; those that do not fit into the queue are dropped."""

    def __init__(self, rate: float, queue: int) -> None:
        self.rate, self.queue = rate, queue
        self.free_at = 0.0
        self.queries = 0
        self.loop = asyncio.get_running_loop()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self.queries += 1
        begins = max(self.free_at, self.loop.time())
        if (begins - self.loop.time()) * self.rate < self.queue:
            self.free_at = begins + 1 / self.rate
            self.loop.call_at(self.free_at, self.answer, data, addr)

    def answer(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = dns.message.make_response(dns.message.from_wire(data), recursion_available=True)
        answer.set_rcode(dns.rcode.NXDOMAIN)
        if not self.transport.is_closing():
            self.transport.sendto(answer.to_wire(), addr)


async def count_outcomes(endpoint: str, domains: list[str]) -> Counter[str]:
    resolver = Resolver(LocalSettings(resolver=endpoint))
    outcomes = Counter([seen.outcome.value async for _, seen in resolver.observe_domains(domains)])
    await resolver.aclose()
    return outcomes


@pytest.mark.usefixtures("skipped_waits")
class TestOnSockets:
    @pytest.mark.slow
    def test_slow_resolver_with_a_short_queue_answers_every_domain(self) -> None:
        domains = [f"d{number}.example" for number in range(400)]

        async def main() -> tuple[Counter[str], int, float]:
            loop = asyncio.get_running_loop()
            transport, server = await loop.create_datagram_endpoint(
                lambda: SlowServer(rate=100, queue=50), local_addr=("127.0.0.1", 0)
            )
            begun = loop.time()
            outcomes = await count_outcomes(
                f"127.0.0.1:{transport.get_extra_info('sockname')[1]}", domains
            )
            transport.close()
            return outcomes, server.queries, loop.time() - begun

        outcomes, queries, seconds = asyncio.run(main())
        questions = 2 * 400  # MX and, since the name does not exist, A
        assert outcomes == {"nxdomain": 400}
        assert queries <= 1.3 * questions
        assert seconds <= 2 * questions / 100  # of the loop, which skips its waits

    @pytest.mark.slow  # the test before it has hundreds
    def test_resolver_of_the_sandbox_answers_thousands_of_domains(self) -> None:
        domains = [f"d{number}.example" for number in range(2000)]

        async def main() -> tuple[Counter[str], int]:
            async with DnsServer(
                dict.fromkeys(domains, DomainRecords({"MX": ("10 mx.ada.example",)}))
            ) as server:
                return await count_outcomes(server.endpoint, domains), server.count()

        outcomes, queries = asyncio.run(main())
        assert outcomes == {"mx": 2000}
        assert queries <= 1.3 * 2000
