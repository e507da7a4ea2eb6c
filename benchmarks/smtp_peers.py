"""One session for every address, as the libraries are used: smtplib in threads, aiosmtplib in tasks.

Both keep to two sessions at an exchange, begin with the exchanges that have most to do, and are told the
address of every exchange, so that they need no DNS.
"""

from __future__ import annotations

import asyncio
import smtplib
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import aiosmtplib

from .smtp_stub import SESSIONS_PER_EXCHANGE, host_of

__all__ = ["Codes", "Queues", "ask_aiosmtplib", "ask_smtplib"]

THREADS = 64
TASKS = 200
HELO_NAME = "bench.example"
Codes = dict[str, int]
Queues = Mapping[int, Iterable[str]]  # addresses by exchange
HostQueue = tuple[str, deque[str]]


def host_queues(queues: Queues) -> list[HostQueue]:
    """One entry per session: host and its remaining addresses, which sessions of one host share; the longest first."""
    shared = [(host_of(exchange), deque(addresses)) for exchange, addresses in queues.items()]
    shared.sort(key=lambda queue: -len(queue[1]))
    return [queue for queue in shared for _ in range(SESSIONS_PER_EXCHANGE)]


def ask_smtplib(port: int, queues: Queues) -> Codes:
    """Ask with smtplib in 64 threads."""
    codes: Codes = {}

    def work(queue: HostQueue) -> None:
        host, addresses = queue
        while addresses:
            try:
                address = addresses.popleft()
            except IndexError:
                return  # the other session of this host took the last one
            with smtplib.SMTP(host, port, HELO_NAME) as client:
                client.ehlo()
                client.mail("")
                codes[address] = client.rcpt(address)[0]

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, host_queues(queues)))
    return codes


def ask_aiosmtplib(port: int, queues: Queues) -> Codes:
    """Ask with aiosmtplib in 200 tasks."""
    return asyncio.run(ask_in_tasks(port, queues))


async def ask_in_tasks(port: int, queues: Queues) -> Codes:
    """Do it."""
    codes: Codes = {}
    todo = deque(host_queues(queues))

    async def work() -> None:
        while todo:
            host, addresses = todo.popleft()
            while addresses:
                address = addresses.popleft()
                codes[address] = await ask_one(host, port, address)

    await asyncio.gather(*(work() for _ in range(TASKS)))
    return codes


async def ask_one(host: str, port: int, address: str) -> int:
    """Give the code of the reply to RCPT, in a session of its own."""
    client = aiosmtplib.SMTP(hostname=host, port=port, local_hostname=HELO_NAME, use_tls=False, start_tls=False)
    await client.connect()
    await client.ehlo()
    await client.mail("")
    try:
        code = (await client.rcpt(address)).code
    except aiosmtplib.SMTPRecipientRefused as refusal:
        code = refusal.code
    await client.quit()
    return code
