"""Asking a server the plain way, with the standard library: what does it really say?"""

from __future__ import annotations

import smtplib
from typing import NamedTuple

HELO_NAME = "probe.example"
TIMEOUT = 15.0


class Said(NamedTuple):
    """A reply, and what it was given to."""

    phase: str
    code: int
    text: str


def ask(host: str, mail_from: str, address: str) -> Said:
    """Give the first refusal on the way to a mailbox, or the reply to RCPT; with HELO where EHLO is refused."""
    client = smtplib.SMTP(timeout=TIMEOUT)
    client.command_encoding = "utf-8"
    said = said_of("banner", client.connect(host, 25))
    try:
        if said.code < 400:
            said = ask_open(client, mail_from, address)
        client.docmd("QUIT")
    except smtplib.SMTPServerDisconnected:
        pass  # the server closed the connection; its replies are complete
    finally:
        client.close()
    return said


def ask_open(client: smtplib.SMTP, mail_from: str, address: str) -> Said:
    """Do the dialogue after the greeting."""
    greeted = said_of("ehlo", client.ehlo(HELO_NAME))
    if greeted.code >= 400:
        return greeted
    option = "" if address.isascii() else " SMTPUTF8"
    began = said_of("mail", client.docmd(f"MAIL FROM:<{mail_from}>{option}"))
    return began if began.code >= 400 else said_of("rcpt", client.docmd(f"RCPT TO:<{address}>"))


def said_of(phase: str, reply: tuple[int, bytes]) -> Said:
    """A reply on one line."""
    return Said(phase, reply[0], reply[1].decode(errors="replace").replace("\n", " "))
