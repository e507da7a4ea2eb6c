"""Texts of one letter or of a pair of delimiters, 100,000 characters long, in every reader of what others wrote.

A pattern that goes back over such a text takes minutes or years: the time limit of a test is what shows it. What a
reader makes of the text does not matter here, as long as it is an answer or an error of ours. `make test` takes each
delimiter alone and beside the next one; `make test-all` takes all pairs.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import xlsxwriter

import mailverdict as mv
from mailverdict.checks.bounces.dates import date_of
from mailverdict.checks.bounces.message import read_message
from mailverdict.checks.smtp.classify.classifier import PHASES, classify_reply
from mailverdict.checks.smtp.classify.encodings import find_encoding
from mailverdict.checks.smtp.protocol.commands import parse_extensions
from mailverdict.checks.smtp.replies import ReplyParser, make_reply
from mailverdict.checks.syntax.address import observe_syntax
from mailverdict.errors import InputError, MailVerdictError
from mailverdict.files.readers import open_table
from mailverdict.frames.suppress import read_entry
from mailverdict.remote.api import QUOTA_REQUEST
from mailverdict.remote.bulk import read_entry as read_bulk_entry
from mailverdict.remote.client import HttpResponse, parse_response, parse_retry_after
from mailverdict.repair.repair import repair_cell
from mailverdict.table.column_names import phrases_of, rank_name

SIZE = 100_000
Reader = Callable[[Path, str], object]


def texts_of(delimiters: Sequence[str], *, all_pairs: bool) -> Iterator[str]:
    """A text of one letter, and texts of pairs."""
    pairs = {(first, first) for first in delimiters} | set(itertools.pairwise(delimiters))
    if all_pairs:
        pairs = set(itertools.product(delimiters, repeat=2))
    for piece in ["a", *sorted(first + second for first, second in pairs)]:
        yield (piece * (SIZE // len(piece) + 1))[:SIZE]


# --- files -----------------------------------------------------------------------------------------------------------


def read_table(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    with open_table(path) as table:
        for _ in table.pieces():
            pass


def read_csv(folder: Path, text: str) -> None:
    read_table(folder, "in.csv", f"email,note\nada@example.org,{text}\n")


def read_header(folder: Path, text: str) -> None:
    read_table(folder, "in.csv", f"{text}\nada@example.org\n")


def read_lines(folder: Path, text: str) -> None:
    read_table(folder, "in.txt", text)


def read_json_line(folder: Path, text: str) -> None:
    read_table(folder, "in.jsonl", json.dumps({"email": "ada@example.org", "note": text}) + "\n")


def read_open_json(folder: Path, text: str) -> None:
    read_table(folder, "in.json", '[{"email": ' + text)


def read_card(folder: Path, text: str) -> None:
    read_table(folder, "in.vcf", f"BEGIN:VCARD\r\nNOTE;X={text}\r\nEND:VCARD\r\n")


def read_workbook(folder: Path, text: str) -> None:
    path = folder / "in.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, ["email", "note"])
        sheet.write_string(1, 0, "ada@example.org")
        sheet.write_string(1, 1, text[:32_000])
        sheet.write_formula(2, 0, f'=HYPERLINK("mailto:{text[:8_000]}")')
    with open_table(path) as table:
        for _ in table.pieces():
            pass


# --- mails -----------------------------------------------------------------------------------------------------------

BOUNCE = "From: MAILER-DAEMON@x.example\nSubject: Undelivered Mail Returned to Sender\n"
REPORT = 'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\n\n--b\n\n'
STATUS = "Reporting-MTA: dns; x\n\nFinal-Recipient: rfc822; ada@b.example\nAction: failed\n"


def read_mail(text: str) -> object:
    return read_message(text.encode())


def read_head(folder: Path, text: str) -> object:
    return read_mail(f"{BOUNCE}To: {text}\nDate: {text}\n\nada@b.example\n")


def read_body(folder: Path, text: str) -> object:
    return read_mail(f"{BOUNCE}\nada@b.example:\n{text}\n")


def read_page(folder: Path, text: str) -> object:
    return read_mail(f"{BOUNCE}Content-Type: text/html\n\n<p>ada@b.example {text}")


def read_status(folder: Path, text: str) -> object:
    report = (
        f"--b\nContent-Type: message/delivery-status\n\n{STATUS}Diagnostic-Code: smtp; {text}\n"
    )
    return read_mail(f"{BOUNCE}{REPORT}{report}\n--b--\n")


def read_mailbox(folder: Path, text: str) -> object:
    path = folder / "in.mbox"
    path.write_text(f"From {text}\n{BOUNCE}\n{text}\n", encoding="utf-8")
    return mv.read_bounces(path)


# --- cells, replies and events ---------------------------------------------------------------------------------------


def repair(folder: Path, text: str) -> object:
    return repair_cell(text), repair_cell(f"ada@example.org {text}")


def check_syntax(folder: Path, text: str) -> object:
    return observe_syntax(text), observe_syntax(f"ada@{text}.org"), observe_syntax(f"{text}@b.org")


def read_reply(folder: Path, text: str) -> object:
    octets = text.encode()
    ReplyParser(find_encoding).feed(b"550-5.1.1 " + octets + b"\r\n550 5.1.1 " + octets + b"\r\n")
    reply = make_reply(550, [text, f"user unknown {text}"])
    parse_extensions(make_reply(250, ["x", text]))
    return [
        classify_reply(reply, phase=phase, recipient="ada@b.example", sender="bob@x.example")
        for phase in PHASES
    ]


def read_event(folder: Path, text: str) -> object:
    known = {"event": "bounce", "email": "ada@b.example", "reason": text, "timestamp": text}
    other = {"recipient": "ada@b.example", "result": "bounced", "reply": text}
    for event in (known, other):
        (folder / "events.json").write_text(json.dumps(event), encoding="utf-8")
        mv.read_bounces(folder / "events.json")
    return None


def read_export(folder: Path, text: str) -> object:
    cells = {"recipient": ["ada@b.example"], "outcome": ["bounced"], "diagnostic": [text]}
    return mv.read_bounces(pd.DataFrame({**cells, "at": [text], "status": [text]}))


def read_verdict(folder: Path, text: str) -> object:
    words = {"ZB Status": ["valid", text], "ZB Sub Status": [text, ""], "ZB Account": [text, text]}
    known = pd.DataFrame({"email": ["ada@b.example", text], **words})
    other = pd.DataFrame({"email": ["ada@b.example", text], "status": ["valid", text]})
    outcomes = {text: "unknown"}
    columns = {"email": "email", "status": "status"}
    return [
        mv.read_verdicts(known, outcomes=outcomes),
        mv.read_verdicts(other, columns=columns, outcomes=outcomes),
    ]


def suppress(folder: Path, text: str) -> object:
    (folder / "list.txt").write_text(f"ada@b.example\n{text}\n", encoding="utf-8")
    return read_entry(text[:2_000]), mv.suppress(
        ["ada@b.example", text], against=folder / "list.txt"
    )


def read_column_name(folder: Path, text: str) -> object:
    return phrases_of(text), rank_name(text)


def read_experience(folder: Path, text: str) -> object:
    counts = [["valid", text, text, text, 1, 1, 0, 0]]
    mailing = {"name": "a", "wave": 1, "complete": True, "list": "", "counts": counts}
    content = {"format": "mailverdict experience", "version": 1, "mailings": [mailing]}
    (folder / "experience.json").write_text(json.dumps(content), encoding="utf-8")
    return mv.Experience.load(folder / "experience.json")


def read_answer(folder: Path, text: str) -> object:
    bodies: list[Any] = [
        text.encode(),
        json.dumps({"daily_limit": text, "used": 0, "remaining": 0}).encode(),
        json.dumps({"error": {"code": text, "message": text}}).encode(),
    ]
    for body in bodies:
        parse_response(QUOTA_REQUEST, HttpResponse("x", 200, body, text, text, None))
    entry = {"email": text, "status": "queued", "message": text, "job_id": text}
    return read_bulk_entry(entry, 0), parse_retry_after(text, 0.0)


# Reader and the signs between which its patterns look.
READERS: dict[str, tuple[Reader, Sequence[str]]] = {
    "cells of CSV": (read_csv, ['"', ",", ";"]),
    "a header of CSV": (read_header, ['"', ";", "@"]),
    "lines of text": (read_lines, [" ", "@", '"', "\n"]),
    "members of JSON": (read_json_line, ['"', "\\", "{", "@"]),
    "JSON without end": (read_open_json, ['"', "{", "[", ":", "\\"]),
    "vCards": (read_card, ['"', ";", ":", "=", "\n "]),
    "cells of workbooks": (read_workbook, [":", "@"]),
    "heads of mails": (read_head, ['"', "<", "(", "=?", "\n "]),
    "bodies of mails": (read_body, ["<", "(", "a@b.cc", "\n", "550 ", "  "]),
    "pages in mails": (read_page, ["<", "&", "<!--", "=", '"']),
    "delivery reports": (read_status, ["<", "(", "5.1.1 ", "\n ", ";", "@"]),
    "mailboxes": (read_mailbox, [" ", "\nFrom ", ">", ":"]),
    "dates": (lambda _, text: date_of(text[:200]), ["(", ":", "-", "1", " "]),
    "addresses": (check_syntax, [".", "-", '"', "@", "("]),
    "replies": (read_reply, ["<", "(", "5.1.1 ", "550 ", "@", "http://", "."]),
    "events": (read_event, ["<", "(", ":", "5.1.1 ", '"']),
    "exports of services": (read_export, ["<", "(", ":", "5.1.1 ", ";"]),
    "files of verifiers": (read_verdict, [",", ";", "_", " "]),
    "suppression lists": (suppress, [";", "@", ".", "*", " "]),
    "names of columns": (read_column_name, ["_", "1", "A", "é", " "]),
    "experiences": (read_experience, ["@", ".", "|"]),
    "answers of a service": (read_answer, ['"', "{", "<", "\\", ","]),
    "cells to repair": (repair, ["a@b.cc", "(", "=3"]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("all_pairs", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", READERS)
def test_long_texts_take_no_longer_than_others(tmp_path: Path, name: str, all_pairs: bool) -> None:
    read, delimiters = READERS[name]
    for text in texts_of(delimiters, all_pairs=all_pairs):
        message = ""
        try:
            read(tmp_path, text)
        except MailVerdictError as exc:
            message = str(exc)
        assert len(message) < 5_000, "a message repeats the text"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", READERS)
def test_readers_read_a_short_text(tmp_path: Path, name: str) -> None:
    """Or the long ones would be refused before any pattern sees them."""
    read, _ = READERS[name]
    if name == "JSON without end":
        with pytest.raises(InputError, match="not valid JSON"):
            read(tmp_path, "x")
    else:
        read(tmp_path, "x")
