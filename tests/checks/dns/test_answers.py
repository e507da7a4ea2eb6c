"""The cache by itself: what is shared, what is kept, and for how long."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable

from mailverdict.checks.dns.answers import AnswerCache
from tests.doubles.tables import each_row


class Source:
    """Counts how often it is asked; answers once the event is set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.open = asyncio.Event()

    def about(self, key: str) -> Callable[[], Awaitable[str]]:
        async def ask() -> str:
            self.asked.append(key)
            await self.open.wait()
            return f"{key}{len(self.asked)}"

        return ask


def test_answers_live_as_long_as_they_say():
    times = iter((0.0, 9.9, 10.0, 10.0, 19.9, 20.1, 20.1))  # looked at when asked, and when kept

    async def main() -> list[str]:
        cache: AnswerCache[str, str] = AnswerCache(
            lambda _: 10.0, size=5, clock=lambda: next(times)
        )
        source = Source()
        source.open.set()
        return [await cache.get("a", source.about("a")) for _ in range(5)]

    assert asyncio.run(main()) == ["a1", "a1", "a2", "a2", "a3"]


def test_an_answer_without_life_is_shared_by_those_who_wait_all_the_same():
    async def main() -> tuple[list[str], list[str]]:
        cache: AnswerCache[str, str] = AnswerCache(lambda _: 0.0, size=5)
        source = Source()
        waiting = [asyncio.create_task(cache.get("a", source.about("a"))) for _ in range(3)]
        await asyncio.sleep(0)
        source.open.set()
        return await asyncio.gather(*waiting), source.asked

    assert asyncio.run(main()) == (["a1"] * 3, ["a"])


@each_row("cancelled", [0, 1])
def test_the_others_get_their_answer_when_one_is_cancelled(cancelled):
    async def main() -> list[object]:
        cache: AnswerCache[str, str] = AnswerCache(lambda _: math.inf, size=5)
        source = Source()
        waiting = [asyncio.create_task(cache.get("a", source.about("a"))) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[cancelled].cancel()
        await asyncio.sleep(0)
        source.open.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    seen = asyncio.run(main())
    assert isinstance(seen[cancelled], asyncio.CancelledError)
    assert len({str(each) for each in seen[:cancelled] + seen[cancelled + 1 :]}) == 1


def test_failure_is_raised_to_its_caller_and_not_cached():
    async def fail() -> str:
        await asyncio.sleep(0)
        raise LookupError("broken")

    async def answer() -> str:
        return "well"

    async def main() -> list[object]:
        cache: AnswerCache[str, str] = AnswerCache(lambda _: math.inf, size=5)
        return await asyncio.gather(
            cache.get("a", fail), cache.get("a", answer), return_exceptions=True
        )

    broken, well = asyncio.run(main())
    assert isinstance(broken, LookupError)
    assert well == "well"


def test_the_least_recently_used_goes_first():
    async def main() -> tuple[int, list[str]]:
        cache: AnswerCache[str, str] = AnswerCache(lambda _: math.inf, size=2)
        source = Source()
        source.open.set()
        for key in "abacab":
            await cache.get(key, source.about(key))
        return len(cache), source.asked

    assert asyncio.run(main()) == (2, ["a", "b", "c", "b"])


def test_a_question_left_open_by_a_closed_loop_is_asked_again():
    cache: AnswerCache[str, str] = AnswerCache(lambda _: math.inf, size=2)

    async def answer() -> str:
        return "well"

    first = asyncio.new_event_loop()
    waiting = first.create_task(cache.get("a", first.create_future))
    first.call_soon(first.stop)
    first.run_forever()
    assert asyncio.run(cache.get("a", answer)) == "well"
    waiting.cancel()
    first.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    first.close()
