"""One session for every address, as the libraries are used.

That is smtplib and py3-validate-email in threads, and aiosmtplib in tasks. All keep to two sessions
at an exchange, begin with the exchanges that have most to do, and get the address of every
exchange, so that they need no DNS.
"""

from __future__ import annotations

import asyncio
import os
import smtplib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

import aiosmtplib

from .smtp_stub import SESSIONS_PER_EXCHANGE, host_of

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

    def ask(host: str, address: str) -> int:
        with smtplib.SMTP(host, port, HELO_NAME) as client:
            client.ehlo()
            client.mail("")
            return client.rcpt(address)[0]

    return ask_in_threads(ask, queues)


def ask_py3_validate_email(port: int, queues: Queues) -> Codes:
    """Ask with the SMTP check of py3-validate-email in 64 threads; it gives the answer, not the code."""
    os.environ["PY3VE_IGNORE_UPDATER"] = "1"  # or it downloads a list when it is imported
    from validate_email.email_address import EmailAddress
    from validate_email.exceptions import AddressNotDeliverableError, SMTPTemporaryError
    from validate_email.smtp_check import _SMTPChecker, smtp_check

    _SMTPChecker.default_port = port
    sender = EmailAddress("bench@bench.example")

    def ask(host: str, address: str) -> int:
        try:
            smtp_check(
                EmailAddress(address),
                [host],
                helo_host=HELO_NAME,
                from_address=sender,
                skip_tls=True,
            )
        except AddressNotDeliverableError:
            return 550
        except SMTPTemporaryError:
            return 450
        return 250

    return ask_in_threads(ask, queues)


def ask_in_threads(ask: Callable[[str, str], int], queues: Queues) -> Codes:
    """Ask about every address in 64 threads."""
    codes: Codes = {}

    def work(queue: HostQueue) -> None:
        host, addresses = queue
        while addresses:
            try:
                address = addresses.popleft()
            except IndexError:
                return  # the other session of this host took the last one
            codes[address] = ask(host, address)

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
    client = aiosmtplib.SMTP(
        hostname=host, port=port, local_hostname=HELO_NAME, use_tls=False, start_tls=False
    )
    await client.connect()
    await client.ehlo()
    await client.mail("")
    try:
        code = (await client.rcpt(address)).code
    except aiosmtplib.SMTPRecipientRefused as refusal:
        code = refusal.code
    await client.quit()
    return code
