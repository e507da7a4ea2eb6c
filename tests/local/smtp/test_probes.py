"""Probes: random addresses, and the answers that wait for them."""

import random

import pytest

from mailverdict.checks.smtp.classify.classifier import classify_reply
from mailverdict.checks.smtp.replies import Reply
from mailverdict.local.smtp.probes import HostProbes, PendingAnswer, Probe, is_same_refusal, random_address
from mailverdict.local.smtp.tracker import reply_evidence
from mailverdict.model.words import Reason

OK = Reply(250, "2.1.5", "Ok")
BARE = Reply(550, None, "Rejected")


def pending(reply, position=1, address="ada@x.example"):
    return PendingAnswer(
        position, address, reply_evidence("mx.x.example", classify_reply(reply, phase="rcpt"), reply), reply
    )


def probed(probes, reply, code=0):
    return probes.on_reply(code, classify_reply(reply, phase="rcpt"), reply)


ANSWERS = [
    (OK, True, "a random address is accepted"),
    (Reply(550, "5.1.1", "User unknown"), False, "a random address is refused as unknown"),
    (Reply(451, "4.7.1", "Greylisted, try again later"), None, "greylisted, and not asked again"),
    (Reply(554, "5.7.1", "Client host blocked using dnsbl.example"), None, "we are refused"),
    (Reply(452, "4.5.3", "Too many recipients"), None, "a limit"),
]


@pytest.mark.parametrize(("reply", "expected", "why"), ANSWERS)
def test_the_reply_to_a_random_address_sets_catch_all_and_nothing_else(reply, expected, why):
    probes = HostProbes()
    assert probes.add(0, pending(OK)) is None
    ((position, evidence),) = probed(probes, reply)
    assert (position, evidence.reason, evidence.catch_all) == (1, None, expected), why
    assert probes.add(0, pending(OK, 2)).catch_all is expected


def test_each_domain_wants_one_probe():
    probes = HostProbes()
    assert [probes.wants_probe(code) for code in (0, 0, 1)] == [True, False, True]
    probes.set_known(2, accepts_all=True)
    assert not probes.wants_probe(2)


def test_what_is_known_without_a_probe_is_not_overruled():
    probes = HostProbes()
    probes.set_known(0, accepts_all=True)
    probes.set_known(0, accepts_all=None)
    assert probes.known[0] is True


SAME = [
    (BARE, BARE, "sender_blocked", "the same words for anyone"),
    (BARE, Reply(550, None, "Mail for this user is refused"), "inconclusive", "other words"),
    (BARE, OK, "inconclusive", "a random address is accepted"),
    (Reply(550, None, "Rejected ada@x.example"), Reply(550, None, "Rejected {probe}"), "sender_blocked", "but for the address"),
    (Reply(550, None, "Rejected id=8f3a9c21"), Reply(550, None, "Rejected id=77b0e1d4"), "sender_blocked", "but for a number"),
    (BARE, Reply(551, None, "Rejected"), "inconclusive", "another code"),
    (Reply(550, "5.0.0", "Rejected"), BARE, "inconclusive", "another enhanced code"),
]  # fmt: skip


@pytest.mark.parametrize(("own", "other", "expected", "why"), SAME)
@pytest.mark.parametrize("comes_first", [True, False])
def test_an_ambiguous_refusal_of_every_address_is_about_the_client(own, other, expected, why, comes_first):
    probes = HostProbes()
    probe = probes.address_of(0, "x.example", random.Random(1))
    other = Reply(other.code, other.enhanced_code, other.text.replace("{probe}", probe))
    if comes_first:
        assert probes.add(0, pending(own)) is None
        ((_, evidence),) = probed(probes, other)
    else:
        probed(probes, other)
        evidence = probes.add(0, pending(own))
    assert str(evidence.reason) == expected, why


def test_an_accepted_address_is_never_a_refusal():
    assert not is_same_refusal(pending(OK), OK, "zq7k@x.example")


def test_a_domain_whose_probe_gets_lost_is_left_undetermined():
    probes = HostProbes()
    probes.add(0, pending(OK))
    probes.add(0, pending(BARE, 2))
    probe = Probe("mx", 0)
    assert [probes.count_loss(probe), probes.count_loss(probe)] == [False, True]
    settled = dict(probes.give_up(0))
    assert {p: (e.reason, e.catch_all) for p, e in settled.items()} == {1: (None, None), 2: (Reason.INCONCLUSIVE, None)}


def test_probes_are_plain_random_and_stay_the_same():
    probes, rng = HostProbes(), random.Random(3)
    first = probes.address_of(0, "x.example", rng)
    assert probes.address_of(0, "x.example", rng) == first
    local, _, domain = first.partition("@")
    assert (len(local), local.isalnum(), local.isascii(), domain) == (16, True, True, "x.example")
    assert len({random_address("x.example", rng) for _ in range(1000)}) == 1000
