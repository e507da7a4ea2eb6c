"""A token bucket for `ScriptedService`: what it does not grant ends as `rate_limited`, and is charged all the same."""

from collections import Counter
from typing import Any

from mailverdict.service.limiter import RateLimiter
from tests.doubles.scripted_service import ScriptedService, payload


def limit(
    service: ScriptedService, rate: float, burst: int, *, by_batch: bool = False
) -> Counter[str]:
    """Limit the addresses a second; gives how often each address was granted."""
    limiter = RateLimiter(rate, burst, clock=service.clock)
    granted: Counter[str] = Counter()
    is_refused: dict[str, bool] = {}
    answer_bulk, verdict = service.answer_bulk, service.verdict

    def submit(path: str, body: bytes) -> tuple[int, Any]:
        before = len(service.batches)
        answer = answer_bulk(path, body)
        for emails in service.batches[before:]:
            is_whole = by_batch and not limiter.try_acquire("client", len(emails))
            for email in emails:
                is_refused[email] = is_whole or (
                    not by_batch and not limiter.try_acquire("client", 1)
                )
                granted[email] += not is_refused[email]
        return answer

    def judge(email: str, validation_type: str) -> Any:
        if is_refused[email]:
            return payload(email, validation_type, "unknown", reasons=["rate_limited"], checks={})
        return verdict(email, validation_type)

    service.answer_bulk, service.verdict = submit, judge  # type: ignore[method-assign]
    return granted
