"""Postfix: one `smtpd` for each address, with its own options (master(5))."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tests.servers.install import FOLDER
from tests.servers.world import CLOSED, DNS, KNOWN, PROGRAMS, Listener, await_listening

LIST = "bl.servers.example"  # a DNS list that holds us
CALLOUT = "callout.exim.example"  # what the Exim that looks here is a gateway for
POSTGREY = ("127.0.50.250", 10023)
DAEMONS = FOLDER / "usr/lib/postfix/sbin"
LIBRARIES = FOLDER / "usr/lib/postfix"
ENVIRONMENT = {"PATH": os.defpath + ":/usr/sbin:/sbin", "LD_LIBRARY_PATH": str(LIBRARIES)}


def inline(entries: dict[str, str]) -> str:
    """The entries of an inline table (DATABASE_README)."""
    return ", ".join(f"{{ {key} = {value} }}" for key, value in entries.items())


ADDRESSES = {
    "fritz@full.postfix.example": "552 5.2.2 Mailbox is full",
    "nearly@full.postfix.example": "452 4.2.2 Mailbox is over quota",
    "gone@full.postfix.example": "REJECT",
    "later@full.postfix.example": "450 4.2.0 try again later",
}
FOOTER = (
    r"\c. For assistance, call 555-0101. Please provide: time ($localtime), client ($client_address)"
    r" and server ($server_name).\nSee https://www.example.org/unknown-user for the user policy."
)
DEEP_TESTS = {
    f"postscreen_{test}_enable": "yes"
    for test in ("pipelining", "bare_newline", "non_smtp_command")
}

FACES: dict[str, dict[str, str]] = {
    "plain": {},
    "everyone": {"virtual_mailbox_maps": "static:all"},
    "full": {
        "smtpd_recipient_restrictions": f"check_recipient_access inline:{{ {inline(ADDRESSES)} }}"
    },
    "client": {"smtpd_client_restrictions": "check_client_access static:REJECT"},
    "client-at-once": {
        "smtpd_client_restrictions": "check_client_access static:REJECT",
        "smtpd_delay_reject": "no",
    },
    "listed": {"smtpd_recipient_restrictions": f"reject_rbl_client {LIST}"},
    "nameless": {"smtpd_client_restrictions": "reject_unknown_client_hostname"},
    "helo": {"smtpd_helo_restrictions": "check_helo_access static:REJECT"},
    "helo-unresolved": {"smtpd_helo_restrictions": "reject_unknown_helo_hostname"},
    "sender": {"smtpd_sender_restrictions": "check_sender_access static:REJECT"},
    "sender-unresolved": {"smtpd_sender_restrictions": "reject_unknown_sender_domain"},
    "grey": {
        "smtpd_recipient_restrictions": f"check_policy_service inet:{POSTGREY[0]}:{POSTGREY[1]}"
    },
    "few": {"smtpd_recipient_limit": "3"},
    "strict": {"smtpd_soft_error_limit": "3", "smtpd_hard_error_limit": "6"},
    "crowded": {"smtpd_client_connection_count_limit": "1"},
    "secret": {"smtpd_tls_security_level": "encrypt"},
    "offering": {"smtpd_tls_security_level": "may"},
    "unicode": {},
    "ascii": {"smtputf8_enable": "no"},
    "stepwise": {"smtpd_discard_ehlo_keywords": "pipelining, enhancedstatuscodes"},
    "oldtimer": {"smtpd_command_filter": "regexp:{config}/no-ehlo"},
    "footer": {"smtpd_reject_footer": FOOTER},
    "soft": {"soft_bounce": "yes"},
    "broken": {"virtual_mailbox_maps": "fail:temporary"},
    "hosted": {"smtpd_relay_restrictions": "reject_unauth_destination"},
    "gateway": {
        "smtpd_recipient_restrictions": "reject_unverified_recipient",
        "unverified_recipient_reject_code": "550",
        "relay_recipient_maps": "",
    },
    "gateway-soft": {
        "smtpd_recipient_restrictions": "reject_unverified_recipient",
        "relay_recipient_maps": "",
    },
    "behind": {},  # where the gateways look, this one's and Exim's
    "screened": {"postscreen_greet_wait": "2s", "postscreen_access_list": "", **DEEP_TESTS},
}
# Relay domains; the verdict is that of the server behind.
RELAYED = (
    "gateway",
    "gateway-soft",
    "relayed",
)
# Domains without a face of their own, by what Postfix takes them for (its address classes), all at `plain`.
CLASSES = ("local", "alias", "relayed", "foreign")


def domain_of(name: str) -> str:
    """Give the domain of a face."""
    return f"{name}.postfix.example"


LISTENERS = {
    name: Listener(name, f"127.0.50.{number}", domain_of(name), options)
    for number, (name, options) in enumerate(FACES.items(), start=1)
}
HOSTS = {**{name: each.host for name, each in LISTENERS.items()}, "closed": CLOSED}
# Domains that have other exchanges than a face named after them, the preferred one first.
DOMAINS: dict[str, tuple[str, ...]] = {
    **{domain_of(name): ("plain",) for name in CLASSES},
    domain_of("foreign-firm"): ("hosted",),
    domain_of("closed"): ("closed",),
    domain_of("second"): ("closed", "plain"),
    domain_of("second-opinion"): ("client", "plain"),
}

MAIN = """
compatibility_level = 3.6
queue_directory = {run}/queue
data_directory = {run}/data
daemon_directory = {daemons}
command_directory = {programs}
shlib_directory = {libraries}
meta_directory = {meta}
maillog_file = {run}/log/mail.log
maillog_file_prefixes = {run}/log
import_environment = MAIL_CONFIG LD_LIBRARY_PATH={libraries}
mail_owner = postfix
setgid_group = postdrop
myhostname = relay.postfix.example
inet_protocols = ipv4
mynetworks = 127.0.60.1
smtpd_client_event_limit_exceptions =
alias_maps =
relocated_maps = inline:{{ {{ moved@plain.postfix.example = ada@another.example }} }}
mydestination = local.postfix.example
local_recipient_maps = {mailboxes}
virtual_alias_domains = alias.postfix.example
virtual_alias_maps = inline:{{ {{ ada@alias.postfix.example = ada@plain.postfix.example }} }}
relay_domains = {relay_domains}
relay_recipient_maps = {mailboxes}
virtual_mailbox_domains = {mailbox_domains}
virtual_mailbox_maps = {mailboxes}
transport_maps = inline:{{ {transports} }}
address_verify_poll_delay = 1s
smtpd_tls_cert_file = {run}/tls/cert.pem
smtpd_tls_key_file = {run}/tls/key.pem
"""
# The network's side runs in its chroot, as Debian has it: that is how it asks our DNS and not the machine's.
MASTER = """
smtpd pass - - y - - smtpd
tlsproxy unix - - n - 0 tlsproxy
dnsblog unix - - y - 0 dnsblog
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
anvil unix - - n - 1 anvil
proxymap unix - - n - - proxymap
postlog unix-dgram n - n - 1 postlogd
"""
CHROOT_FILES = {
    "resolv.conf": f"nameserver {DNS}\n",
    "nsswitch.conf": "hosts: files dns\nservices: files\n",
    "hosts": "",  # 127.0.0.1 has no name there
    "services": "smtp 25/tcp mail\n",
}


def render_main(run: Path) -> str:
    """The text of main.cf."""
    mailbox_domains = {each.domain for each in LISTENERS.values()} | {
        domain_of("second"),
        domain_of("second-opinion"),
    }
    return MAIN.format(
        run=run,
        daemons=DAEMONS,
        programs=PROGRAMS,
        libraries=LIBRARIES,
        meta=FOLDER / "etc/postfix",
        mailboxes=f"regexp:{run}/config/mailboxes",
        relay_domains=" ".join([*map(domain_of, RELAYED), CALLOUT]),
        mailbox_domains=" ".join(sorted(mailbox_domains - set(map(domain_of, RELAYED)))),
        transports=inline(
            {domain_of(name): f"smtp:[{LISTENERS['behind'].host}]" for name in RELAYED}
        ),
    )


def render_service(listener: Listener, run: Path) -> str:
    """A line of master.cf: the program that listens on one address, and its options."""
    options = {
        "syslog_name": listener.name,
        "myhostname": f"mx.{listener.domain}",
        **listener.options,
    }
    program = "- n - 1 postscreen" if listener.name == "screened" else "- y - - smtpd"
    texts = (
        f"-o {{ {name} = {value.replace('{config}', str(run / 'config'))} }}"
        for name, value in options.items()
    )
    return f"{listener.host}:25 inet n {program} {' '.join(texts)}"


def write_configuration(run: Path) -> None:
    """Lay out the directories and the configuration of an instance."""
    for name in ("config", "data", "log", "tls", "queue/etc"):
        (run / name).mkdir(parents=True)
    shutil.chown(run / "data", "postfix")
    services = (render_service(each, run) for each in LISTENERS.values())
    texts = {
        "config/main.cf": render_main(run),
        "config/master.cf": "\n".join([*services, MASTER]),
        "config/mailboxes": f"/^({KNOWN})@/ there\n",
        "config/no-ehlo": "/^EHLO/ BOGUS\n",
        **{f"queue/etc/{name}": text for name, text in CHROOT_FILES.items()},
    }
    for name, text in texts.items():
        (run / name).write_text(text, encoding="utf-8")
    make_certificate(run / "tls")


def make_certificate(folder: Path) -> None:
    """Make a certificate that nobody has signed, like those of most exchanges."""
    files = "-keyout key.pem -out cert.pem"
    command = (
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=mx.postfix.example {files}"
    )
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)


class Postfix:
    """A Postfix instance in a directory of its own."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.log = run / "log/mail.log"

    def start(self) -> None:
        """Configure it and start it; return once it listens."""
        write_configuration(self.run)
        self.control("start")
        await_listening(LISTENERS["plain"].host, 25)

    def stop(self) -> None:
        """Stop it."""
        self.control("stop")

    def control(self, verb: str) -> None:
        """Have postfix(1) do something."""
        command = [str(PROGRAMS / "postfix"), "-c", str(self.run / "config"), verb]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
        if done.returncode:
            log = self.log.read_text() if self.log.exists() else ""
            raise RuntimeError(f"postfix {verb}: {done.stdout}{done.stderr}{log}")
