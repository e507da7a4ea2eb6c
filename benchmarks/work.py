"""The work of four hot paths, counted instead of timed, so that the figure does not depend on how busy the machine is.

Counted are the bytecode instructions that the interpreter executes in this package, the calls from there to functions
of other packages and of C, and the octets that Arrow allocates: a pass over a whole column is one call. Paths: a column
by ``regex``; a look-up, from the question to the evidence; a reply to RCPT, from its octets to the row; a single check
by the service, from the request to its reply. The figures depend on the Python version: `work.toml` has them for each.

``python -m benchmarks.work`` prints the figures beside the stored ones, and fails if one is more than 15 % higher;
``--write`` stores them. `tests/test_work.py` does the same comparison.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import threading
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa

import mailverdict as mv
from mailverdict.checks.dns.congestion import Query, QueryScheduler
from mailverdict.checks.dns.resolver import mx_evidence
from mailverdict.checks.dns.wire import make_question, parse_answer
from mailverdict.checks.lists.flags import load_lists
from mailverdict.checks.smtp.protocol.session import Session
from mailverdict.checks.smtp.protocol.steps import SessionPlan
from mailverdict.checks.smtp.transport.driver import LoopPauses, SessionHandler, SessionProtocol, SessionTimeouts
from mailverdict.local.batch import observe_batch
from mailverdict.local.smtp.politeness import ExchangeState
from mailverdict.local.smtp.queues import ExchangeSet
from mailverdict.local.smtp.results import ResultBuffer
from mailverdict.local.smtp.scheduler import Assignment
from mailverdict.local.smtp.tracker import ActiveSession, RecipientTracker
from mailverdict.loop import run_sync
from mailverdict.model.evidence import DnsOutcome, DomainEvidence, MailExchange
from mailverdict.model.settings import Lists, LocalSettings
from mailverdict.service import ServiceSettings, create_app
from mailverdict.service.http.bodies import BODY_COMPLETE

from .addresses import make_addresses
from .lookups import answer_to

PACKAGE = str(Path(mv.__file__).parent)
STORED = Path(__file__).with_name("work.toml")
TOLERANCE = 0.15
CHECKS = 500
ROWS, DOMAINS, REPLIES = 20_000, 500, 500  # of fewer rows, the malformed ones are read one by one
NOW = datetime(2027, 1, 15, tzinfo=UTC)


@dataclass
class Work:
    """What was counted."""

    instructions: int = 0
    calls: int = 0
    octets: int = 0  # allocated by Arrow


class WorkCounter:
    """Counts while it is open, in every thread but those of pools that were started before."""

    def __init__(self) -> None:
        self.work = Work()
        self.ours: dict[CodeType, bool] = {}

    def __enter__(self) -> Work:
        threading.setprofile(self.on_profile)
        threading.settrace(self.on_call)
        run_sync(trace_thread(self.on_call, self.on_profile))
        sys.setprofile(self.on_profile)
        sys.settrace(self.on_call)
        self.work.octets = -pa.default_memory_pool().total_bytes_allocated()
        return self.work

    def __exit__(self, *_: object) -> None:
        self.work.octets += pa.default_memory_pool().total_bytes_allocated()
        sys.settrace(None)
        sys.setprofile(None)
        run_sync(trace_thread(None, None))
        threading.settrace(None)  # type: ignore[arg-type]
        threading.setprofile(None)  # type: ignore[arg-type]

    def is_ours(self, code: CodeType) -> bool:
        known = self.ours.get(code)
        if known is None:
            known = self.ours[code] = code.co_filename.startswith(PACKAGE)
        return known

    def on_call(self, frame: FrameType, event: str, value: Any) -> Callable[..., Any] | None:
        """Trace the instructions of our frames; count the calls from them to others."""
        if self.is_ours(frame.f_code):
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return self.on_instruction
        if frame.f_back is not None and self.is_ours(frame.f_back.f_code):
            self.work.calls += 1
        return None

    def on_instruction(self, frame: FrameType, event: str, value: Any) -> Callable[..., Any]:
        if event == "opcode":
            self.work.instructions += 1
        return self.on_instruction

    def on_profile(self, frame: FrameType, event: str, value: Any) -> None:
        """Count a call of a function in C."""
        if event == "c_call" and self.is_ours(frame.f_code):
            self.work.calls += 1


async def trace_thread(on_call: Any, on_profile: Any) -> None:
    """Set the functions for the thread of the package's event loop."""
    sys.setprofile(on_profile)
    sys.settrace(on_call)


def count_column() -> Work:
    """A frame by ``regex``, through the public function."""
    frame = pd.DataFrame({"email": make_addresses(ROWS)})
    warnings.simplefilter("ignore", UserWarning)  # some rows are malformed
    mv.verify(frame[:10], "email", validation_type="regex")  # loads what is loaded once
    with WorkCounter() as work:
        out = mv.verify(frame, "email", validation_type="regex")
    assert out["email_verdict"].notna().all()
    return work


def count_look_ups() -> Work:
    """Questions through the scheduler, and their answers to evidence, without sockets."""
    names = [f"{'company' if number % 10 else 'gone'}-{number}.example.com" for number in range(DOMAINS)]
    look_up(names[:10])
    with WorkCounter() as work:
        found = look_up(names)
    assert [seen.outcome for seen in found] == [
        DnsOutcome.MX if name.startswith("company") else DnsOutcome.NXDOMAIN for name in names
    ]
    return work


def look_up(names: list[str]) -> list[DomainEvidence]:
    """Ask a resolver that answers at once."""
    scheduler = QueryScheduler(1, limit=len(names), timeout=3.0, randomness=random.Random(1))
    for name in names:
        scheduler.add(Query(make_question(name, "MX"), name))
    now, found = 0.0, []
    while len(found) < len(names):
        for sent in scheduler.sends(now):
            packet = answer_to(sent.query.question.packet(7, edns=sent.query.edns))
            assert sent.query.question.is_answered_by(packet)
            scheduler.on_answer(sent, now + 0.001, is_refusal=False)
            found.append(mx_evidence(sent.query.owner, parse_answer(packet, sent.query.question)))
        now += 0.01
    return found


def count_replies() -> Work:
    """Replies to RCPT from their octets to rows, half of them refusals, without sockets."""
    asyncio.run(ask(10))
    return asyncio.run(ask(REPLIES))


async def ask(recipients: int) -> Work:
    """Sessions, one after the other, with an exchange in this process that accepts every even user."""
    settings = LocalSettings()
    emails = [f"user{number}@firm.example" for number in range(recipients)]
    results = ResultBuffer(observe_batch(pa.array(emails), load_lists(Lists())))
    results.domains[0] = DomainEvidence("firm.example", DnsOutcome.MX, (MailExchange(10, "mx"),))
    tracker = RecipientTracker(settings, results, lambda: 0.0, random.Random(1))
    host = ExchangeState("mx", settings, SessionPlan("client.example"), addresses=("192.0.2.1",))
    exchanges = ExchangeSet([host], 1)
    with WorkCounter() as work:
        tracker.add(exchanges, np.arange(recipients))
        while tracker.unsettled:
            await run_session(tracker, ActiveSession(Assignment(exchanges, 0, host, host.addresses[0]), 0.0))
        _, rows = results.take(NOW)
    verdicts = rows["result"].to_pylist()
    assert (verdicts.count("valid"), verdicts.count("invalid")) == (recipients // 2, recipients // 2)
    return work


async def run_session(tracker: RecipientTracker, active: ActiveSession) -> None:
    """Run one session as the engine does, with a connection in memory."""
    handler = SessionHandler(
        partial(tracker.next_window, active), partial(tracker.on_reply, active), active.assignment.host.observe_limit
    )
    protocol = SessionProtocol(Session(active.assignment.host.plan), handler, SessionTimeouts(), None, LoopPauses())
    exchange = Exchange(protocol)
    protocol.connection_made(cast("asyncio.BaseTransport", exchange))
    end = asyncio.get_running_loop().create_task(protocol.run())
    await asyncio.sleep(0)
    exchange.answer_all()
    ended = await end
    active.assignment.host.on_session_end(ended, active.budget, active.assignment.address, 0.0)
    tracker.on_session_end(active, ended)
    protocol.close()


class Exchange:
    """A transport whose other end is a mail exchange that offers PIPELINING."""

    def __init__(self, protocol: SessionProtocol) -> None:
        self.protocol = protocol
        self.received = b""

    def write(self, data: bytes) -> None:
        self.received += data

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def abort(self) -> None:
        """Do nothing: there is no connection."""

    def get_write_buffer_size(self) -> int:
        return 0

    def answer_all(self) -> None:
        """Greet, then answer what was sent, flight by flight, until the session is over."""
        self.protocol.data_received(b"220 mx.example ESMTP\r\n")
        while self.received:
            lines, self.received = self.received.splitlines(), b""
            self.protocol.data_received(b"".join(map(reply_to, lines)))


def reply_to(command: bytes) -> bytes:
    """The reply of an exchange that has every even user."""
    verb = command[:4]
    if verb == b"RCPT":
        number = re.search(rb"user(\d+)@", command)
        is_known = number is not None and int(number[1]) % 2 == 0
        return b"250 2.1.5 Ok\r\n" if is_known else b"550 5.1.1 User unknown\r\n"
    replies = {b"EHLO": b"250-mx.example\r\n250 PIPELINING\r\n", b"QUIT": b"221 Bye\r\n"}
    return replies.get(verb, b"250 Ok\r\n")


def count_single_checks() -> Work:
    """Requests to the service by ``regex``, one after the other, without HTTP; its writer's thread is not counted."""
    with tempfile.TemporaryDirectory(prefix="mailverdict-bench-") as folder:
        app = create_app(ServiceSettings(store=f"sqlite:///{folder}/checks.db", daily_limit=2 * CHECKS))
        return asyncio.run(request_checks(app))


async def request_checks(app: Any) -> Work:
    """Send requests as a server does that has received each whole body."""
    scope = {"type": "http", "method": "POST", "path": "/api/check-email", "query_string": b"", "client": ("::1", 1)}
    headers = [(b"host", b"x"), (b"content-type", b"application/json")]
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def check(number: int) -> None:
        body = json.dumps({"email": f"ada{number}@example{number}.org", "validation_type": "regex"}).encode()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body}

        extensions: dict[str, Any] = {BODY_COMPLETE: {}}
        await app({**scope, "headers": headers, "extensions": extensions}, receive, send)

    try:
        for number in range(10):  # loads what is loaded once, and starts the writer's thread
            await check(number)
        with WorkCounter() as work:
            for number in range(CHECKS):
                await check(number)
    finally:
        await app.state.service.close()
    assert [each["status"] for each in sent if "status" in each] == [200] * (CHECKS + 10)
    return work


PATHS: dict[str, tuple[Callable[[], Work], int]] = {
    "column": (count_column, ROWS),
    "look-up": (count_look_ups, DOMAINS),
    "reply": (count_replies, REPLIES),
    "single check": (count_single_checks, CHECKS),
}


def count_all() -> dict[str, float]:
    """Figures by name: instructions, calls and octets for each row, domain, reply or check."""
    figures = {}
    for name, (count, size) in PATHS.items():
        work = count()
        figures[f"{name} instructions"] = round(work.instructions / size, 2)
        figures[f"{name} calls"] = round(work.calls / size, 2)
        if work.octets:
            figures[f"{name} octets"] = round(work.octets / size, 2)
    return figures


def version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def stored_figures() -> dict[str, float] | None:
    """The figures of this Python version; None: not measured yet."""
    return tomllib.loads(STORED.read_text(encoding="utf-8")).get(version())


def excesses(measured: dict[str, float], stored: dict[str, float]) -> list[str]:
    """Describe the figures that are more than the tolerance above the stored ones."""
    return [
        f"{name}: {value:g}, stored {stored[name]:g} (+{value / stored[name] - 1:.0%})"
        for name, value in measured.items()
        if value > stored[name] * (1 + TOLERANCE)
    ]


def store(measured: dict[str, float]) -> None:
    """Replace the figures of this Python version in the file."""
    kept = tomllib.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    kept[version()] = measured
    lines = ["# Work for each row, domain, reply or check, by Python version: python -m benchmarks.work --write"]
    for name, figures in sorted(kept.items()):
        lines += ["", f'["{name}"]', *(f'"{key}" = {value}' for key, value in figures.items())]
    STORED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the figures")
    is_writing = parser.parse_args().write
    measured = count_all()
    stored = None if is_writing or not STORED.exists() else stored_figures()
    for name, value in measured.items():
        print(f"{name:24} {value:10,.2f}" + (f"   stored {stored[name]:,.2f}" if stored else ""))
    if is_writing:
        store(measured)
    elif stored is None:
        print(f"no figures for Python {version()} are stored: --write stores them")
    elif found := excesses(measured, stored):
        sys.exit("\n".join(["more work than stored:", *found]))


if __name__ == "__main__":
    main()
