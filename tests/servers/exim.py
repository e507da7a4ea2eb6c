"""Exim: one access control list for each address it listens on."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.servers import postfix
from tests.servers.world import KNOWN, PROGRAMS, Listener, await_listening, start, stop

STAGES = ("connect", "helo", "mail", "rcpt")
VERIFIED = "require verify = recipient\n  accept"
USER = "Debian-exim"
FAILURES = 3  # of one session, after which `impatient` closes the connection

FACES: dict[str, dict[str, str]] = {
    "plain": {},
    "everyone": {"rcpt": "accept"},
    "worded": {},
    "connect": {"connect": "drop message = Your address is not welcome here"},
    "helo": {"helo": "deny message = HELO rejected: you are not me"},
    "mail": {"mail": "deny message = Sender rejected"},
    "verified-sender": {"rcpt": f"require verify = sender\n  {VERIFIED}"},
    "grey": {
        "rcpt": "require verify = recipient\n  defer message = Greylisted, please try again in 1 second"
    },
    "full": {"rcpt": "defer local_parts = bob\n  message = 452 4.2.2 Mailbox full\n  " + VERIFIED},
    "prohibited": {"rcpt": "deny"},
    "dropping": {"rcpt": "drop message = Go away"},
    "relay": {"rcpt": "deny message = relay not permitted"},
    "slow": {"rcpt": "accept verify = recipient\n  deny message = Unknown user\n  delay = 2s"},
    "impatient": {
        "rcpt": f"drop condition = ${{if >={{$rcpt_fail_count}}{{{FAILURES}}}}}\n"
        f"  message = Too many failed recipients - count = $rcpt_fail_count\n  {VERIFIED}"
    },
    "callout": {"rcpt": "require verify = recipient/callout=5s\n  accept"},
}
# Options of a whole server; each of these is a server of its own.
ALONE: dict[str, str] = {"few": "recipients_max = 3", "crowded": "smtp_accept_max_per_host = 1"}

LISTENERS = {
    name: Listener(name, f"127.0.51.{number}", f"{name}.exim.example", FACES.get(name, {}))
    for number, name in enumerate([*FACES, *ALONE], start=1)
}

CONFIGURATION = r"""
primary_hostname = mx.exim.example
local_interfaces = <; {interfaces}
daemon_smtp_ports = 25
spool_directory = {run}/spool
log_file_path = {run}/%slog
pid_file_path = {run}/pid
exim_path = {program}
smtp_accept_max = 100
tls_advertise_hosts =
keep_environment =
acl_smtp_connect = connect_${{tr{{$received_ip_address}}{{.}}{{_}}}}
acl_smtp_helo = helo_${{tr{{$received_ip_address}}{{.}}{{_}}}}
acl_smtp_mail = mail_${{tr{{$received_ip_address}}{{.}}{{_}}}}
acl_smtp_rcpt = rcpt_${{tr{{$received_ip_address}}{{.}}{{_}}}}
{options}

begin acl
{lists}

begin routers
behind:
  driver = manualroute
  domains = {callout}
  transport = remote
  route_list = * {behind} byname
  self = send
closed:
  driver = redirect
  local_parts = closed
  data = :fail: This account has been closed
  allow_fail
known:
  driver = redirect
  local_parts = ^({known})\$
  data = :blackhole:
worded:
  driver = redirect
  domains = worded.exim.example
  data = :fail: No such user here
  allow_fail

begin transports
remote:
  driver = smtp
"""


def render_lists(listener: Listener) -> str:
    """The access control lists of one face; what it does not say is accepted, and recipients are verified."""
    defaults = {"connect": "accept", "helo": "accept", "mail": "accept", "rcpt": VERIFIED}
    texts = {**defaults, **listener.options}
    suffix = listener.host.replace(".", "_")
    return "\n".join(f"{stage}_{suffix}:\n  {texts[stage]}" for stage in STAGES)


def render_configuration(listeners: list[Listener], options: str, run: Path, program: Path) -> str:
    """The text of a configuration file."""
    return CONFIGURATION.format(
        interfaces=" ; ".join(each.host for each in listeners),
        run=run,
        program=program,
        options=options,
        lists="\n".join(map(render_lists, listeners)),
        callout=postfix.CALLOUT,
        behind=postfix.LISTENERS["behind"].host,
        known=re.sub("[^|a-z0-9+\\[\\]-]", ".", KNOWN),
    )


class Exim:
    """Exim daemons, each in a directory of its own."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Configure and start them; return once they listen."""
        self.run.mkdir()
        self.start_one("faces", [LISTENERS[name] for name in FACES], "")
        for name, options in ALONE.items():
            self.start_one(name, [LISTENERS[name]], options)

    def start_one(self, name: str, listeners: list[Listener], options: str) -> None:
        """Start one daemon."""
        run, program = self.run / name, PROGRAMS / "exim4"
        run.mkdir()
        shutil.chown(run, USER, USER)
        configuration = run / "configuration"
        configuration.write_text(
            render_configuration(listeners, options, run, program), encoding="utf-8"
        )
        process = start([str(program), "-C", str(configuration), "-bdf"], run / "output")
        self.processes.append(process)
        for each in listeners:
            await_listening(each.host, 25, process)

    def stop(self) -> None:
        """Stop them."""
        for process in self.processes:
            stop(process)
