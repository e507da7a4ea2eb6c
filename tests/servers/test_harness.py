"""What the harness reads, it reads right; this needs no server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.install import library_names
from tests.servers.mail_log import Account, read_session


@pytest.mark.parametrize(
    ("depends", "names"),
    [
        ("libc6 (>= 2.34), libnet-dns-perl, cron", ["libc6", "libnet-dns-perl"]),
        ("perl:any, debconf (>= 0.5) | debconf-2.0", []),
        ("libssl3 (>= 3.0.0) | libssl1.1, ssl-cert", ["libssl3"]),
    ],
)
def test_only_libraries_are_installed(depends: str, names: list[str]) -> None:
    assert library_names(depends) == names


def test_end_of_a_session_tells_its_commands() -> None:
    session = read_session("plain", " ehlo=1 mail=1 rcpt=1/3 quit=1 commands=4/6")

    assert (session.given["rcpt"], session.refused["rcpt"], session.refused["quit"]) == (3, 2, 0)


def test_sessions_at_one_time_are_counted_by_face(tmp_path: Path) -> None:
    log = tmp_path / "mail.log"
    log.write_text("Nov 20 20:34:24 mx plain/smtpd[1]: connect from unknown[127.0.0.1]\n")
    account = Account(log)
    lines = (
        "plain/smtpd[2]: connect from unknown[127.0.0.1]",
        "plain/smtpd[3]: connect from unknown[127.0.0.1]",
        "grey/smtpd[4]: connect from unknown[127.0.0.1]",
        "plain/smtpd[2]: disconnect from unknown[127.0.0.1] ehlo=1 quit=1 commands=2",
        "plain/smtpd[3]: disconnect from unknown[127.0.0.1] commands=0/0",
        "grey/smtpd[4]: disconnect from unknown[127.0.0.1] ehlo=1 quit=1 commands=2",
    )
    log.write_text(log.read_text() + "".join(f"Nov 20 20:34:25 mx {line}\n" for line in lines))

    assert account.most_at_once() == {"plain": 2, "grey": 1}
    quits = [(each.face, each.given.get("quit", 0)) for each in account.sessions()]
    assert quits == [("plain", 1), ("plain", 0), ("grey", 1)]
