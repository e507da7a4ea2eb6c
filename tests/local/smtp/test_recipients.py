"""What each answer leads to: scripted mail servers in virtual time."""

import pytest

from mailverdict.checks.smtp.replies import Reply
from mailverdict.local.smtp.exchange import DOUBTED_AFTER, SUSPICIOUS
from mailverdict.model.words import Reason
from tests.doubles.clock import run_virtual
from tests.doubles.mail_servers import OK, UNKNOWN, ScriptedWorld, Server
from tests.doubles.tables import each_row

FULL = Reply(452, "4.2.2", "Mailbox full")
GREY = Reply(451, "4.7.1", "Greylisted, try again in 60 seconds")
BLOCKED = Reply(554, "5.7.1", "Client host blocked using dnsbl.example")
SENDER = Reply(550, "5.7.1", "Sender rejected")
TROUBLE = Reply(451, "4.3.0", "Temporary lookup failure")
NULL_MX = Reply(556, "5.1.10", "Recipient address has null MX")
BARE = Reply(550, None, "Rejected")


def replies(**by_local):
    """A script: replies to local parts, in the order of the questions; the last one stays."""

    def script(address, times):
        given = by_local.get(address.partition("@")[0])
        return None if given is None else (*given, *given[-1:] * times)[times - 1]

    return script


def play(emails, *servers, domain="x.example", **how):
    """Ask the servers of a domain, the preferred one first; the reasons, the evidence, and the world."""
    world = ScriptedWorld({f"mx{n}.{domain}": server for n, server in enumerate(servers)})
    world.exchanges = {domain: [(10 * n, host) for n, host in enumerate(world.servers)]}

    async def run(loop):
        greylisted = how.pop("retry_greylisted", 0.0)
        seen = await world.verify(
            world.pool(**how), [f"{e}@{domain}" for e in emails], retry_greylisted=greylisted
        )
        return seen, loop.time()

    seen, world.seconds = run_virtual(run)
    found = {email.partition("@")[0]: evidence for email, evidence in seen.items()}
    return {name: evidence.reason for name, evidence in found.items()}, found, world


def asked(server):
    return [each.partition("@")[0] for each in server.asked]


# --- what the mailbox says, and what the domain does ------------------------------------------------------


@each_row(("reply", "reason"), [(UNKNOWN, Reason.MAILBOX_NOT_FOUND), (FULL, Reason.MAILBOX_FULL)])
def test_what_the_mailbox_says_is_final(reply, reason):
    first, second = Server(script=replies(ada=[reply])), Server()
    assert play(["ada"], first, second)[0] == {"ada": reason}
    assert second.asked == []


def test_an_accepted_address_waits_for_its_domain():
    for accepts_all in (True, False):
        server = Server(accepts_all=accepts_all)
        _, seen, _ = play(["user1", "user2"], server)
        assert {each.catch_all for each in seen.values()} == {accepts_all}
        assert len(server.asked) == 3  # one random address


def test_without_probes_an_accepted_address_is_settled_at_once():
    server = Server()
    _, seen, _ = play(["user1"], server, catch_all_probe=False)
    assert (seen["user1"].catch_all, len(server.asked)) == (None, 1)


def test_an_ambiguous_refusal_of_every_address_is_about_the_client():
    def script(address, times):
        return None if address.startswith("user") else BARE

    reasons, seen, _ = play(["user1", "ada"], Server(script=script))
    assert reasons == {"user1": None, "ada": Reason.SENDER_BLOCKED}
    assert seen["ada"].classification.rule.endswith("+same_for_anyone")


def test_what_one_exchange_showed_of_a_domain_says_nothing_about_the_next():
    first, backup = Server(script=replies(user2=[TROUBLE])), Server(accepts_all=True)
    _, seen, _ = play(["user1", "user2"], first, backup)
    assert (seen["user1"].catch_all, seen["user2"].catch_all) == (False, True)


# --- from exchange to exchange ------------------------------------------------------------------------------

NO_ANSWERS = [
    (BLOCKED, "the first refuses us"),
    (SENDER, "or our sender"),
    (TROUBLE, "or has trouble"),
    (NULL_MX, "or takes no mail for the domain"),
]


@each_row(("reply", "why"), NO_ANSWERS)
def test_an_address_without_an_answer_is_asked_of_the_next_exchange(reply, why):
    reasons, _, _ = play(["ada"], Server(script=replies(ada=[reply])), Server())
    assert reasons == {"ada": Reason.MAILBOX_NOT_FOUND}, why


def test_the_last_reply_counts_where_no_exchange_gives_an_answer():
    servers = Server(script=replies(ada=[BLOCKED])), Server(script=replies(ada=[SENDER]))
    assert play(["ada"], *servers)[0] == {"ada": Reason.SENDER_BLOCKED}


def test_no_more_exchanges_are_asked_than_the_setting_says():
    servers = [Server(script=replies(ada=[TROUBLE])) for _ in range(3)]
    play(["ada"], *servers, max_exchange_attempts=2)
    assert [len(each.asked) for each in servers] == [1, 1, 0]


def test_an_address_that_has_had_its_time_does_not_move_on():
    first = Server(delay=6.0, script=replies(ada=[BLOCKED]))
    assert play(["ada"], first, Server(), deadline=5)[0] == {"ada": Reason.PROTECTED}


def test_addresses_of_a_closed_exchange_that_nothing_else_answers_have_its_reason():
    server = Server(script=lambda address, times: BLOCKED)
    reasons, seen, _ = play([f"ada{n}" for n in range(40)], server, protected_after=2)
    assert set(reasons.values()) == {Reason.PROTECTED}
    assert (sum(each.inferred for each in seen.values()), len(server.asked)) == (31, 9)


# --- greylisting ---------------------------------------------------------------------------------------------


def test_greylisted_addresses_are_asked_again_once_and_their_probe_with_them():
    server = Server(script=lambda address, times: GREY if times == 1 else None)
    reasons, _, world = play(["user1", "user2", "nobody"], server, retry_greylisted=300)
    assert reasons == {"user1": None, "user2": None, "nobody": Reason.MAILBOX_NOT_FOUND}
    assert sorted(map(server.asked.count, set(server.asked))) == [2] * 4
    assert 60 <= world.seconds <= 63  # the server's wait, and not ours


def test_an_address_that_stays_greylisted_is_asked_of_the_next_exchange():
    first, second = (Server(script=lambda address, times: GREY) for _ in range(2))
    assert play(["user1"], first, second, retry_greylisted=300)[0] == {"user1": Reason.GREYLISTED}
    assert (asked(first).count("user1"), asked(second).count("user1")) == (2, 1)


WAITS = [
    (300.0, "Greylisted", 300.0, "our own wait where there is no hint"),
    (300.0, "Greylisted, try again in 30 seconds", 30.0, "the server's where there is"),
    (300.0, "Greylisted, try again in 900 seconds", 900.0, "up to a quarter of an hour"),
    (300.0, "Greylisted, try again in 901 seconds", None, "what takes longer is for another run"),
    (0.0, "Greylisted, try again in 30 seconds", None, "nobody waits where it is not wanted"),
    (3600.0, "Greylisted", None, "our own wait may be too long, too"),
]


@pytest.mark.slow
@each_row(("wait", "text", "expected", "why"), WAITS)
def test_a_second_attempt_comes_after(wait, text, expected, why):
    server = Server(script=lambda address, times: Reply(451, "4.7.1", text))
    _, _, world = play(["user1"], server, retry_greylisted=wait)
    assert asked(server).count("user1") == (1 if expected is None else 2), why
    assert (expected or 0.0) <= world.seconds <= (expected or 0.0) + 2.0, why


# --- servers that refuse everybody ------------------------------------------------------------------------------


@each_row("missing", [1, DOUBTED_AFTER - 1])
def test_a_few_missing_mailboxes_need_no_witness(missing):
    server = Server()
    names = ["user1", *(f"no{n}" for n in range(missing))]
    reasons, _, _ = play(names, server, catch_all_probe=False)
    assert list(reasons.values()) == [None, *[Reason.MAILBOX_NOT_FOUND] * missing]
    assert asked(server) == names


def test_after_missing_mailboxes_in_a_row_an_accepted_address_is_asked_again_in_the_same_session():
    server = Server()
    names = ["user1", *(f"no{n}" for n in range(DOUBTED_AFTER))]
    reasons, _, _ = play(names, server, catch_all_probe=False)
    assert list(reasons.values()) == [None, *[Reason.MAILBOX_NOT_FOUND] * DOUBTED_AFTER]
    assert (asked(server), len(server.refusals)) == ([*names, "user1"], 1)


@each_row("denies_after", [1, 2, 3, 4, 5])
def test_no_mailbox_is_missing_at_a_server_that_refuses_everybody_later_in_each_session(
    denies_after,
):
    names = [f"{'no' if n % 4 == 1 else 'user'}{n}" for n in range(300)]
    reasons, _, _ = play(names, Server(denies_after=denies_after))
    assert {reasons[name] for name in names if name.startswith("user")} == {
        None,
        Reason.INCONCLUSIVE,
    }


WITNESSES = [
    # reply to the accepted address when it is asked again, rule, whether others are asked afterwards
    (UNKNOWN, "refuses_accepted_address", False, "the server refuses everybody by now"),
    (BLOCKED, "refusal_not_confirmed", True, "it refuses this client"),
    (TROUBLE, "refusal_not_confirmed", True, "it has trouble"),
]


@each_row(("reply", "rule", "goes_on", "why"), WITNESSES)
def test_missing_mailboxes_are_inconclusive_if_an_accepted_address_is_refused(
    reply, rule, goes_on, why
):
    server = Server(script=replies(user1=[OK, reply]))
    names = ["user1", *(f"no{n}" for n in range(20)), "user2"]
    reasons, seen, _ = play(names, server, catch_all_probe=False)
    assert {reasons[name] for name in names[1:9]} == {Reason.INCONCLUSIVE}, why
    assert {seen[name].classification.rule for name in names[1:9]} == {rule}
    assert {(seen[name].rcpt_accepted, seen[name].catch_all) for name in names[1:9]} == {
        (None, None)
    }
    assert ("user2" in asked(server)) is goes_on


def test_where_no_address_was_accepted_postmaster_is_asked():
    server = Server()
    reasons, _, _ = play([f"no{n}" for n in range(30)], server)
    assert set(reasons.values()) == {Reason.MAILBOX_NOT_FOUND}
    assert asked(server)[9] == "postmaster"


@each_row("reply", [UNKNOWN, BLOCKED, TROUBLE])
@each_row(
    ("count", "reason"),
    [(SUSPICIOUS - 1, Reason.MAILBOX_NOT_FOUND), (SUSPICIOUS, Reason.INCONCLUSIVE)],
)
def test_where_postmaster_is_refused_many_missing_mailboxes_are_inconclusive(reply, count, reason):
    server = Server(script=replies(postmaster=[reply]))
    reasons, seen, world = play([f"no{n}" for n in range(count)], server)
    assert list(reasons.values()) == [reason] * count
    is_told = "(the server accepted no address, not even postmaster)" in seen["no0"].reply
    assert (is_told, len(world.notices)) == (
        reason is Reason.INCONCLUSIVE,
        reason is Reason.INCONCLUSIVE,
    )
    assert asked(server).count("postmaster") == 1


@each_row(("reply", "reason"), [(OK, None), (FULL, Reason.MAILBOX_FULL)])
def test_what_was_held_is_missing_once_an_address_gets_another_reply(reply, reason):
    server = Server(script=replies(postmaster=[UNKNOWN], late=[reply]))
    names = [f"no{n}" for n in range(40)]
    reasons, _, world = play([*names, "late"], server)
    assert reasons == {**dict.fromkeys(names, Reason.MAILBOX_NOT_FOUND), "late": reason}
    assert world.notices == []


def test_a_server_that_defers_an_address_does_not_refuse_everybody():
    server = Server(script=replies(postmaster=[UNKNOWN], user1=[GREY]))
    reasons, _, _ = play([*(f"no{n}" for n in range(8)), "user1"], server)
    assert set(reasons.values()) == {Reason.MAILBOX_NOT_FOUND, Reason.GREYLISTED}
    assert "postmaster" not in asked(server)


def test_single_checks_at_a_server_that_refuses_everybody_are_counted_together():
    async def run(loop):
        world = ScriptedWorld({"mx.x.example": Server(script=lambda address, times: UNKNOWN)})
        pool, reasons = world.pool(), []
        for n in range(2 * SUSPICIOUS):
            reasons += [
                each.reason for each in (await world.verify(pool, [f"ada{n}@x.example"])).values()
            ]
        return reasons

    reasons = run_virtual(run)
    assert set(reasons[SUSPICIOUS:]) == {Reason.INCONCLUSIVE}
