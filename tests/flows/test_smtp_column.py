"""A column through `smtp`, against the sandbox's exchanges: real sockets on loopback, counted at the servers."""

import asyncio
import ipaddress
from collections import Counter
from contextlib import aclosing
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.backend import Batch, Noticed, Settled
from mailverdict.local.smtp.exchange import DOUBTED_AFTER
from mailverdict.loop import run_sync
from mailverdict.model.table import table_to_rows
from mailverdict.model.words import Reason
from mailverdict.sandbox import World
from mailverdict.sandbox.dns_table import DomainRecords
from mailverdict.sandbox.examples import ADDRESSES
from mailverdict.sandbox.smtp_script import Exchange, SmtpFault

pytestmark = pytest.mark.usefixtures("skipped_waits")

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
# Our own queue and limiter; no exchange gives them.
FROM_A_SERVICE = {
    Reason.THROTTLED,
    Reason.RATE_LIMITED,
}


def mx(*exchanges):
    return DomainRecords({"MX": exchanges})


def at(address):
    return DomainRecords({"A": (address,)})


async def events_of(backend, emails, kind="smtp"):
    async with aclosing(backend.verify(Batch(pa.array(emails), kind))) as events:
        async for event in events:
            yield event


async def rows_of(backend, emails, kind="smtp"):
    """Every row, in the order of the batch; each position exactly once."""
    rows = {}
    async for event in events_of(backend, emails, kind):
        if isinstance(event, Settled):
            for position, row in zip(
                event.positions.tolist(), table_to_rows(event.rows), strict=True
            ):
                assert position not in rows
                rows[position] = row
    await backend.aclose()
    assert sorted(rows) == list(range(len(emails)))
    return [rows[i] for i in range(len(emails))]


def play(emails, *, zones=None, exchanges=(), **settings):
    """Verify a column in a world of its own; give its rows and the closed world, for its counts."""

    async def run():
        async with World(zones, exchanges=exchanges, **settings) as world:
            return await rows_of(world.make_backend(clock=lambda: NOW), emails), world

    return asyncio.run(run())


def people(count, domain):
    return [f"ada{i}@{domain}" for i in range(count)]


def reasons(rows):
    return [";".join(row.reasons) for row in rows]


# --- what comes out ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def examples():
    rows, world = play([each.address for each in ADDRESSES])
    return dict(zip((each.address for each in ADDRESSES), rows, strict=True)), world


def test_every_example_becomes_what_the_world_says(examples):
    rows, _ = examples
    wrong = {
        each.address: (rows[each.address].result, rows[each.address].reasons, each.why)
        for each in ADDRESSES
        if (rows[each.address].result, ";".join(rows[each.address].reasons))
        != (each.verdict, each.reasons)
    }
    assert wrong == {}


def test_every_reason_is_reached(examples):
    rows, _ = examples
    assert {reason for row in rows.values() for reason in row.reasons} == set(
        Reason
    ) - FROM_A_SERVICE


def test_no_message_is_ever_begun_and_no_session_is_one_too_many(examples):
    _, world = examples
    stats = {host: world.smtp.stats(host) for host in world.smtp.exchanges}
    assert {host for host, each in stats.items() if each.datas} == set()
    assert {host: each.most_open for host, each in stats.items() if each.most_open > 2} == {}


SOUND = (
    "plain catch-all in-step few-recipients one-recipient short-session one-domain punishing cutting starttls tls-only "
    "smtputf8 ascii old mute relay blocklist blocklist-late no-sender no-helo null-mx disk-full"
)


def test_every_session_that_can_says_quit(examples):
    for name in SOUND.split():
        stats = examples[1].smtp.stats(f"mx.{name}.example")
        assert 0 < stats.sessions == stats.quits, name


LIMITING = "few-recipients one-recipient short-session one-domain tls-only disk-full"  # these say: in another transaction
GREYLISTED = {"later@plain.example"}


def test_no_address_is_asked_twice_where_nothing_broke(examples):
    _, world = examples
    for name in set(SOUND.split()) - set(LIMITING.split()):
        asked = world.smtp.stats(f"mx.{name}.example").rcpts
        assert {address for address, times in asked.items() if times > 1} <= GREYLISTED, name


REACHED = {"syntax": True, "dns": True}
TALKED = {**REACHED, "smtp_port": True, "smtp_connection": True}
PAYLOADS = {
    # address: checks, (catch_all, protected), error codes, what metadata holds
    "ada@plain.example": (
        {**TALKED, "smtp_rcptto": True, "smtp": True},
        (False, False),
        None,
        {"smtp_host": "mx.plain.example", "mx_records": ["mx.plain.example"], "rule": "accepted"},
    ),
    "nobody@plain.example": (
        {**TALKED, "smtp_rcptto": False, "smtp": False},
        (False, False),
        ["SMTP"],
        {"smtp_error": "550 5.1.1 <nobody@plain.example>: Recipient address rejected: User unknown in virtual mailbox table"},
    ),
    "full@plain.example": (
        {**TALKED, "smtp_rcptto": False, "smtp": False},
        (None, False),
        ["SMTP"],
        {"smtp_error": "452 4.2.2 <full@plain.example>: Mailbox full"},
    ),
    "zq7k2v9x@catch-all.example": ({**TALKED, "smtp_rcptto": True, "smtp": True}, (True, False), None, {}),
    "ada@blocklist.example": (
        {**REACHED, "smtp_port": True, "smtp_connection": False, "smtp": False},
        (None, True),
        ["SMTP"],
        {"smtp_host": "mx.blocklist.example"},
    ),
    "ada@blocklist-late.example": ({**TALKED, "smtp_rcptto": False, "smtp": False}, (None, True), ["SMTP"], {}),
    "ada@closed.example": ({**REACHED, "smtp_port": False, "smtp": False}, (None, None), ["SMTP"], {"rule": "connection_refused"}),
    "ada@private.example": ({**REACHED, "smtp_port": False, "smtp": False}, (None, None), ["SMTP"], {"rule": "not_dialled"}),
    "ada@tarpit.example": (
        {**REACHED, "smtp_port": True, "smtp_connection": False, "smtp": False},
        (None, None),
        ["SMTP"],
        {"rule": "banner_timeout"},
    ),
    "ada@drop-rcpt.example": ({**TALKED, "smtp": False}, (None, None), ["SMTP"], {"rule": "dropped"}),
    "ada@null.example": ({"syntax": True, "dns": False}, (None, None), ["DNS"], {}),
    "ada@": ({"syntax": False}, (None, None), ["REGEX"], {}),
}  # fmt: skip


@pytest.mark.parametrize("address", PAYLOADS)
def test_payload_says_what_was_reached(examples, address):
    checks, flags, errors, metadata = PAYLOADS[address]
    payload = examples[0][address].to_dict()
    assert payload["checks"] == checks
    assert (payload["catch_all"], payload["protected"]) == flags
    found = payload["errors"]
    assert (found if found is None else [each["code"] for each in found][:1]) == errors
    assert {key: payload["metadata"][key] for key in metadata} == metadata
    assert payload["reason"] == (errors[0] if errors else None)


def test_an_address_that_was_not_decided_by_a_reply_is_not_rcpt_checked(examples):
    rows, _ = examples
    for address in ("ada@tarpit.example", "ada@reset-ehlo.example", "ada@closed.example"):
        assert "smtp_rcptto" not in rows[address].checks


ALIKE = (
    "ada@plain.example nobody@plain.example full@plain.example odd@plain.example zq7k2v9x@catch-all.example ada@mute.example "
    "info@fernhollow-studio.com ada@mailinator.com ada@blocklist.example ada@no-sender.example ada@closed.example "
    "ada@null.example ada@servfail.example broken ada@trap.example zoë@ascii.example ada@old.example ada@yahoo.com"
)


@pytest.mark.slow
def test_the_single_check_and_the_explanation_are_the_same_as_the_column():
    emails = ALIKE.split()
    with World() as world:
        make = lambda: world.make_backend(clock=lambda: NOW)  # noqa: E731
        column = dict(zip(emails, run_sync(rows_of(make(), emails)), strict=True))
        for email in emails:
            single = mv.check(email, validation_type="smtp", backend=make()).to_dict()
            explained = mv.explain(email, validation_type="smtp", backend=make())
            assert single == column[email].to_dict() == explained.verification.to_dict(), email


def test_the_explanation_shows_the_dialogue():
    with World() as world:
        text = str(
            mv.explain("nobody@plain.example", validation_type="smtp", backend=world.backend)
        )
    for line in (
        "220 mx.plain.example",
        "RCPT TO:<nobody@plain.example>",
        "550 5.1.1",
        "QUIT",
        "mailbox_not_found",
    ):
        assert line in text


# --- what is asked, and how often ----------------------------------------------------------------------------


def test_a_domain_is_probed_once_however_many_addresses_it_has():
    rows, world = play([*people(60, "gmx.de"), "ada@web.de"])
    assert set(reasons(rows)) <= {"", "mailbox_not_found"}
    asked = (
        world.smtp.stats("mx1.regionalmail.example").rcpts
        + world.smtp.stats("mx2.regionalmail.example").rcpts
    )
    probes = [a for a in asked if a not in {row.email for row in rows}]
    assert sorted(a.partition("@")[2] for a in probes) == ["gmx.de", "web.de"]
    assert set(asked.values()) == {1}


TWINS = [
    "ada@xn--mller-bau-q9a.example",
    "ada@müller-bau.example",
    "ada@MÜLLER-BAU.example",
    "ada@mu\u0308ller-bau.example",
]


def test_spellings_of_one_address_share_one_question():
    emails = [
        *TWINS,
        "Ada@xn--mller-bau-q9a.example",
        "zoe\u0308@smtputf8.example",
        "zo\u00eb@smtputf8.example",
    ]
    rows, world = play(emails)
    asked = world.smtp.stats("mx1.cases.example").commands["RCPT"]
    assert asked == 3  # ada, Ada, and one probe: what is left of the @ keeps its case
    assert world.smtp.stats("mx.smtputf8.example").rcpts["zo\u00eb@smtputf8.example"] == 1
    assert [row.email for row in rows] == emails
    assert set(reasons(rows)) == {""}


def test_a_provider_known_to_accept_all_is_not_probed():
    zones = {"old.example": mx("10 mta5.am0.yahoodns.net")}
    exchange = Exchange("mta5.am0.yahoodns.net", "Yahoo's habits by its name", mailboxes=None)
    rows, world = play(["ada@old.example", "grace@old.example"], zones=zones, exchanges=[exchange])
    assert reasons(rows) == ["catch_all", "catch_all"]
    assert world.smtp.stats(exchange.host).commands["RCPT"] == 2


def test_a_provider_known_to_take_one_recipient_gets_one():
    host = "mx1.olc.protection.outlook.com"
    exchange = Exchange(host, "one RCPT a transaction", max_recipients=1, mailboxes=None)
    rows, world = play(
        people(5, "one.example"), zones={"one.example": mx(f"10 {host}")}, exchanges=[exchange]
    )
    assert reasons(rows) == [""] * 5
    assert world.smtp.stats(host).commands["RCPT"] == 5  # none was refused, so none was repeated


def test_greylisted_addresses_are_asked_once_more_and_their_probe_with_them():
    exchange = Exchange("mx.grey.example", "greylists everyone", mailboxes=None, greylist=1.0)
    rows, world = play(["ada@grey.example", "grace@grey.example"], exchanges=[exchange])
    assert reasons(rows) == ["catch_all", "catch_all"]
    assert set(world.smtp.stats(exchange.host).rcpts.values()) == {2}
    assert len(world.smtp.stats(exchange.host).rcpts) == 3


def test_a_single_greylisted_address_is_reported_at_once():
    rows, world = play(["ada@greylisting.example"])
    assert reasons(rows) == ["greylisted"]
    assert world.smtp.stats("mx.greylisting.example").rcpts["ada@greylisting.example"] == 1


def test_the_same_refusal_for_anyone_is_about_us():
    rows, _ = play(["ada@mute.example", "odd@plain.example"])
    assert reasons(rows) == ["sender_blocked", "inconclusive"]
    assert rows[0].metadata["rule"].endswith("+same_for_anyone")


@pytest.mark.parametrize("deny_after", [1, 7, 25, 60])
def test_a_server_that_begins_to_refuse_everybody_is_not_believed(deny_after):
    """As protection against dictionary attacks does; only mailboxes refused in a row of two can be wrong."""
    known, unknown = people(400, "turning.example"), [f"no{n}@turning.example" for n in range(100)]
    emails = [each for n in range(100) for each in (*known[4 * n : 4 * n + 4], unknown[n])]
    boxes = frozenset(each.partition("@")[0] for each in known)
    exchange = Exchange(
        "mx.turning.example", "refuses everybody", mailboxes=boxes, deny_after=deny_after
    )
    rows, _ = play(emails, exchanges=[exchange])
    verdicts = Counter((row.result, row.email in known) for row in rows)
    assert verdicts["invalid", True] < DOUBTED_AFTER
    assert verdicts["unknown", True] > 0
    assert verdicts["invalid", False] >= deny_after // 2


@pytest.mark.parametrize("count", [12, 200])
def test_a_server_that_refuses_everybody_from_the_beginning_is_not_believed_and_named_in_a_warning(
    count,
):
    world = World(
        exchanges=[Exchange("mx.denying.example", "refuses everybody", mailboxes=frozenset())]
    )
    emails = people(count, "denying.example")
    with (
        world,
        pytest.warns(UserWarning, match=rf"refused all as unknown: mx.denying.example \({count}\)"),
    ):
        out = mv.verify(emails, validation_type="smtp", backend=world.backend, progress=False)
    assert list(out["verdict"]) == ["unknown"] * count
    assert (
        out["error_message"]
        .str.endswith("(the server accepted no address, not even postmaster)")
        .all()
    )


@pytest.mark.parametrize(
    ("boxes", "why"),
    [({"postmaster"}, "postmaster is accepted"), ({"known"}, "an address is accepted at last")],
)
def test_many_missing_mailboxes_at_a_server_that_accepts_somebody_are_invalid(boxes, why):
    exchange = Exchange("mx.strict.example", "knows one mailbox", mailboxes=frozenset(boxes))
    rows, _ = play([*people(40, "strict.example"), "known@strict.example"], exchanges=[exchange])
    assert [row.result for row in rows[:40]] == ["invalid"] * 40, why


def test_a_backup_that_accepts_everything_does_not_make_addresses_valid():
    first = Exchange("mx1.pair.example", "refuses the random address, and defers others",
                     special=dict.fromkeys(("ada1", "ada2"), "451 4.3.0 Temporary lookup failure"),
                     mailboxes=frozenset({"ada0", "ada1", "ada2"}))  # fmt: skip
    backup = Exchange("mx2.pair.example", "accepts everything", mailboxes=None)
    rows, _ = play(
        people(3, "pair.example"),
        zones={"pair.example": mx(f"10 {first.host}", f"20 {backup.host}")},
        exchanges=[first, backup],
    )
    assert [row.result for row in rows] == ["valid", "risky", "risky"]
    assert reasons(rows) == ["", "catch_all", "catch_all"]


CONTROLS = ["ada@plain.example\r\nRCPT TO:<eve@plain.example>", "ada\r\n@plain.example", "a\x00da@plain.example", "a\x1bda@plain.example"]  # fmt: skip


def test_controls_never_reach_a_socket():
    rows, world = play([*CONTROLS, "ada@plain.example"])
    assert [row.result for row in rows] == ["invalid"] * len(CONTROLS) + ["valid"]
    assert set(reasons(rows[:-1])) == {"syntax_error"}
    stats = world.smtp.stats("mx.plain.example")
    assert len(stats.rcpts) == 2  # ada and one probe
    assert set(stats.commands) <= {"EHLO", "MAIL", "RCPT", "RSET", "QUIT"}


# --- politeness, counted at the server -------------------------------------------------------------------------


@pytest.mark.slow
def test_many_names_of_one_machine_share_its_sessions():
    exchange = Exchange(
        "mx.farm.example", "many names lead here", mailboxes=None, delay=0.002, address="127.0.60.1"
    )
    hosts = {f"mx.customer{i}.example": at("127.0.60.1") for i in range(40)}
    zones = {f"customer{i}.example": mx(f"10 mx.customer{i}.example") for i in range(40)} | hosts
    emails = [f"ada{j}@customer{i}.example" for i in range(40) for j in range(3)]
    rows, world = play(emails, zones=zones, exchanges=[exchange])
    assert set(reasons(rows)) == {"catch_all"}
    assert world.smtp.stats(exchange.host).most_open == 2


def test_sets_that_share_a_host_share_its_sessions():
    shared = Exchange("mx.shared.example", "in two sets", mailboxes=None, delay=0.002)
    second = Exchange("mx.second.example", "behind it in one", mailboxes=None)
    zones = {
        "one-set.example": mx("10 mx.shared.example"),
        "other-set.example": mx("10 mx.shared.example", "20 mx.second.example"),
    }
    emails = people(150, "one-set.example") + people(150, "other-set.example")
    rows, world = play(emails, zones=zones, exchanges=[shared, second])
    assert set(reasons(rows)) == {"catch_all"}
    assert world.smtp.stats(shared.host).most_open == 2
    assert world.smtp.stats(second.host).sessions == 0


def test_the_configured_number_of_sessions_is_kept_to():
    exchange = Exchange("mx.busy.example", "much to do", mailboxes=None, delay=0.002)
    for limit in (1, 3):
        _, world = play(
            people(300, "busy.example"), exchanges=[exchange], max_sessions_per_exchange=limit
        )
        assert world.smtp.stats(exchange.host).most_open == limit


def test_after_three_refusals_of_us_the_exchange_is_left_alone():
    emails = people(40, "blocklist.example")
    rows, world = play(emails)
    assert reasons(rows) == ["protected"] * 40
    assert [row.protected for row in rows] == [True] * 40
    assert sum("inferred" in row.metadata for row in rows) == 37
    assert world.smtp.stats("mx.blocklist.example").sessions == 3


def test_refusals_of_us_at_rcpt_end_with_the_window_they_came_in():
    rows, world = play(people(40, "blocklist-late.example"))
    assert reasons(rows) == ["protected"] * 40
    stats = world.smtp.stats("mx.blocklist-late.example")
    assert (stats.sessions, stats.commands["RCPT"]) == (1, 9)
    assert sum(row.metadata.get("inferred") is True for row in rows) == 31


def test_capacity_is_waited_out_and_then_given_up():
    rows, world = play(people(20, "crowded.example"))
    assert reasons(rows) == ["inconclusive"] * 20
    # The first and capacity_attempts more.
    assert world.smtp.stats("mx.crowded.example").sessions == 5


def test_the_refusal_budget_of_a_server_that_closes_early_is_kept():
    emails = [f"{'ada' if i % 3 else 'nobody'}{i}@strict.example" for i in range(120)]
    known = frozenset(email.partition("@")[0] for email in emails if email.startswith("ada"))
    exchange = Exchange("mx.strict.example", "cuts at ten refusals", mailboxes=known, cut_after=10)
    rows, world = play(emails, exchanges=[exchange])
    assert [row.result for row in rows] == [
        "valid" if e.startswith("ada") else "invalid" for e in emails
    ]
    stats = world.smtp.stats(exchange.host)
    assert set(stats.rcpts.values()) == {1}
    assert stats.sessions == stats.quits


# --- from exchange to exchange -----------------------------------------------------------------------------------

FAILOVER = [
    (("10 mx.closed.example", "20 mx.plain.example"), "nobody listens at the first"),
    (("10 mx.tarpit.example", "20 mx.plain.example"), "the first never greets"),
    (("10 mx.blocklist.example", "20 mx.plain.example"), "the first refuses us"),
    (("10 mx.blocklist-late.example", "20 mx.plain.example"), "the first refuses us at RCPT"),
    (("10 mx.no-sender.example", "20 mx.plain.example"), "the first refuses our sender"),
    (("10 mx.disk-full.example", "20 mx.plain.example"), "the first has trouble of its own"),
    (("10 mx.drop-rcpt.example", "20 mx.plain.example"), "the first hangs up"),
    (("10 mx.plain.example", "10 mx.closed.example"), "equal preferences, one of them closed"),
    (
        ("10 mx.closed.example", "10 mx.reset.example", "10 mx.plain.example"),
        "equal preferences, two of them no use",
    ),
    (
        ("10 intranet.cases.example", "20 nowhere.cases.example", "30 mx.plain.example"),
        "two cannot be dialled at all",
    ),
    (("10 mx.crowded.example", "20 mx.plain.example"), "the first stays busy"),
]


@pytest.mark.parametrize(("records", "why"), FAILOVER)
def test_the_next_exchange_is_asked_when(records, why):
    rows, _ = play(["ada@way.example", "nobody@way.example"], zones={"way.example": mx(*records)})
    assert [row.result for row in rows] == ["valid", "invalid"], why
    assert {row.metadata["smtp_host"] for row in rows} == {"mx.plain.example"}


def test_the_best_exchange_alone_is_asked_when_it_answers():
    _, world = play(
        ["ada@way.example", "nobody@way.example"],
        zones={"way.example": mx("20 mx.old.example", "10 mx.plain.example")},
    )
    assert world.smtp.stats("mx.old.example").sessions == 0


def test_no_more_exchanges_are_tried_than_the_setting_says():
    zones = {
        "way.example": mx("10 mx.reset.example", "20 mx.hang-up.example", "30 mx.plain.example")
    }
    rows, world = play(["ada@way.example"], zones=zones, max_exchange_attempts=2)
    assert reasons(rows) == ["no_smtp_data"]
    assert world.smtp.stats("mx.plain.example").sessions == 0


def test_that_a_domain_takes_no_mail_must_be_said_by_every_exchange():
    one, both = mx("10 mx.no-mail.example", "20 mx.tarpit.example"), mx("10 mx.no-mail.example")
    rows, _ = play(
        ["ada@one.example", "ada@both.example"], zones={"one.example": one, "both.example": both}
    )
    assert reasons(rows) == ["timeout", "no_mx_record"]


# --- hostile and forbidden -----------------------------------------------------------------------------------------


def test_hostile_exchanges_do_not_delay_others():
    async def run():
        order = []
        emails = [
            "ada@tarpit-rcpt.example",
            "ada@endless.example",
            "ada@trickle.example",
            *people(30, "yahoo.com"),
        ]
        async with World(command_timeout=1.0) as world:
            async for event in events_of(world.backend, emails):
                if isinstance(event, Settled):
                    order += event.positions.tolist()
        return order

    order = asyncio.run(run())
    assert set(order[:30]) == set(range(3, 33))
    assert order[-1] == 0


def test_loopback_and_private_exchanges_are_not_dialled_unless_allowed():
    emails = ["ada@plain.example", "ada@private.example", "ada@loopback.example"]
    rows, world = play(emails, allow_networks=())
    assert reasons(rows) == ["port_closed"] * 3
    assert {row.metadata["rule"] for row in rows} == {"not_dialled"}
    assert "not a public address" in rows[0].errors[0].message
    assert world.smtp.stats("mx.plain.example").sessions == 0


SPECIAL = [
    "192.0.0.8",
    "168.63.129.16",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a9fe:a9fe",
    "::7f00:1",
    "fec0::1",
    "::ffff:0:7f00:1",
    "3fff::1",
    "5f00::1",
    "4000::1",
    "2002:7f00:1::1",
    "2001:0:808:808::80ff:fffe",
    "2001:4860::5efe:7f00:1",
]


def test_exchanges_at_special_addresses_are_not_dialled_and_the_message_names_the_setting():
    zones = {f"n{n}.example": mx(f"10 mx.n{n}.example") for n in range(len(SPECIAL))}
    hosts = [DomainRecords({"AAAA" if ":" in address else "A": (address,)}) for address in SPECIAL]
    zones |= {f"mx.n{n}.example": host for n, host in enumerate(hosts)}
    emails = [f"ada@n{n}.example" for n in range(len(SPECIAL))]

    async def run():
        async with World(zones) as world:  # the user allowed 127.0.0.0/8
            return [await rows_of(world.make_backend(), emails, kind) for kind in ("smtp", "mx")]

    rows, by_mx = asyncio.run(run())
    assert {(row.result, row.reasons) for row in rows} == {("unknown", ("port_closed",))}
    for address, row in zip(SPECIAL, rows, strict=True):
        ending = f"{ipaddress.ip_address(address)}: not a public address, and not in allow_networks"
        assert row.errors[0].message.endswith(ending)
    # The domain has a mail server, whose address is not looked up.
    assert {row.result for row in by_mx} == {"valid"}


def test_one_warning_is_given_when_no_exchange_can_be_connected_to():
    with World() as world:
        backend = world.make_backend(smtp_port=9)
        with pytest.warns(UserWarning, match="outgoing connections to port 25") as caught:
            out = mv.verify(people(20, "gmail.com"), validation_type="smtp", backend=backend)
        assert set(out["details"]) == {"port_closed"}
        assert sum("port 25" in str(each.message) for each in caught) == 1


def test_no_warning_is_given_when_some_exchange_answers():
    async def run():
        async with World() as world:
            emails = ["ada@closed.example", "ada@plain.example"]
            return [e async for e in events_of(world.backend, emails) if isinstance(e, Noticed)]

    assert asyncio.run(run()) == []


def test_cancelling_keeps_what_is_settled_and_ends_every_session():
    slow = Exchange("mx.slow-one.example", "takes its time", mailboxes=None, delay=0.5)

    async def run():
        emails = [*people(20, "yahoo.com"), *people(500, "slow-one.example")]
        async with World(exchanges=[slow]) as world:
            settled = 0
            async with aclosing(world.backend.verify(Batch(pa.array(emails), "smtp"))) as events:
                async for event in events:
                    settled += len(event.rows) if isinstance(event, Settled) else 0
                    if settled >= 20:
                        break
            await asyncio.sleep(0)  # the servers share this loop: let them read what was written
            stats = world.smtp.stats(slow.host)
            for _ in range(200):
                if not stats.open_now:
                    break
                await asyncio.sleep(0.01)
            return settled, stats

    settled, stats = asyncio.run(run())
    assert settled >= 20
    assert stats.sessions > 0
    assert (stats.open_now, stats.quits) == (0, stats.sessions)


def test_a_session_that_loses_replies_is_never_believed():
    exchange = Exchange(
        "mx.shifty.example",
        "loses the second reply to RCPT",
        {},
        faults=(SmtpFault("RCPT", "lose", after=1),),
    )
    emails = [f"{name}@shifty.example" for name in ("ada", "nobody", "grace", "nemo", "info")]
    rows, _ = play(emails, exchanges=[exchange], command_timeout=0.3)
    wrong = [
        row.email
        for row in rows
        if row.result == "invalid" and row.email[:3] in ("ada", "gra", "inf")
    ]
    assert wrong == []


LATE = {
    "reply to QUIT": (SmtpFault("QUIT", "say", text="250 2.0.0 Ok\r\n"),),
    "octets that are not a reply": (
        SmtpFault("RCPT", "say", after=2, text="550-5.1.1 User\r\n250 Ok\r\n"),
    ),
}


@pytest.mark.parametrize("faults", LATE.values(), ids=LATE)
def test_no_mailbox_is_missing_where_replies_may_belong_to_other_commands(faults):
    exchange = Exchange(
        "mx.shifted.example", "more replies than commands", faults=faults, extensions=()
    )
    rows, _ = play(["nobody@shifted.example", "ada@shifted.example"], exchanges=[exchange])
    assert (rows[0].result, rows[0].reasons) == ("unknown", ("inconclusive",))
    assert rows[1].result != "invalid"
