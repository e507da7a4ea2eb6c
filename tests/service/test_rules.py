"""What a verdict means: the contract's table of reasons, and what `valid` says for each type."""

from pathlib import Path

import pytest

from mailverdict.local.backend import LocalBackend
from mailverdict.model.settings import Blacklist, Lists
from mailverdict.model.words import Reason
from mailverdict.sandbox import World as Sandbox
from mailverdict.verdicts import order_reasons, verdict_of
from tests.doubles.service import asynchronous, serving

# As the contract has them: verdict by verdict.
REASONS = {
    "risky": ["spamtrap", "disposable", "catch_all", "role"],
    "invalid": ["syntax_error", "no_mx_record", "mailbox_not_found"],
    "unknown": [
        "greylisted",
        "sender_blocked",
        "timeout",
        "connection_dropped",
        "port_closed",
        "mailbox_full",
        "no_smtp_data",
        "inconclusive",
        "protected",
        "throttled",
        "rate_limited",
    ],
}
TYPES = ["smtp", "mx", "mx_blacklist", "regex"]
LISTS = Lists(spamtrap=["gmail.com"], disposable_deny=["outlook.com"])


def test_every_reason_yields_the_verdict_of_its_row() -> None:
    for verdict, reasons in REASONS.items():
        assert [verdict_of((Reason(reason),)) for reason in reasons] == [verdict] * len(reasons)
    assert verdict_of(()) == "valid"
    assert sorted(reason for reasons in REASONS.values() for reason in reasons) == sorted(
        map(str, Reason)
    )


@pytest.mark.parametrize("unknown", REASONS["unknown"])
def test_spamtrap_and_disposable_outrank_and_catch_all_and_role_do_not(unknown: str) -> None:
    for reason in ("spamtrap", "disposable"):
        assert order_reasons([Reason(unknown), Reason(reason)])[0] == reason
    for reason in ("catch_all", "role"):
        assert order_reasons([Reason(reason), Reason(unknown)])[0] == unknown


def test_reasons_are_all_kept() -> None:
    assert list(order_reasons([Reason.ROLE, Reason.TIMEOUT])) == ["timeout", "role"]


@pytest.mark.parametrize("validation_type", ["regex", "mx", "mx_blacklist"])
@asynchronous
async def test_flags_are_computed_for_every_type_and_decide_only_for_smtp(
    tmp_path: Path, validation_type: str
) -> None:
    async with Sandbox() as sandbox, serving(tmp_path, sandbox.make_backend(lists=LISTS)) as world:
        trap = (await world.check("info@gmail.com", validation_type)).json()["data"]
        assert (trap["spamtrap"], trap["role"], trap["free"]) == (True, True, True)
        throwaway = (await world.check("ada@outlook.com", validation_type)).json()["data"]
        assert throwaway["disposable"] is True
        for data in (trap, throwaway):
            assert (data["result"], data["details"], data["reasons"]) == ("valid", None, [])


@asynchronous
async def test_flag_that_no_list_can_tell_is_absent(tmp_path: Path) -> None:
    async with serving(tmp_path, LocalBackend()) as world:
        data = (await world.check("ada@example.org")).json()["data"]
        assert "spamtrap" not in data
        assert data["role"] is data["free"] is data["disposable"] is False


@asynchronous
async def test_regex_says_nothing_of_the_domain_and_asks_nobody(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, serving(tmp_path, sandbox.make_backend()) as world:
        data = (await world.check("ada@gone.example", "regex")).json()["data"]
        assert (data["result"], data["checks"]) == ("valid", {"syntax": True})
        assert sandbox.dns.count() == 0


@asynchronous
async def test_mx_says_whether_the_domain_can_receive_mail(tmp_path: Path) -> None:
    async with Sandbox() as sandbox, serving(tmp_path, sandbox.make_backend()) as world:
        gone = (await world.check("ada@gone.example", "mx")).json()["data"]
        assert (gone["result"], gone["reason"], gone["checks"]) == (
            "invalid",
            "DNS",
            {"syntax": True, "dns": False},
        )
        assert gone["reasons"] == []
        there = (await world.check("nobody.is.called.so@gmail.com", "mx")).json()["data"]
        assert there["result"] == "valid"
        assert isinstance(there["metadata"]["mx_records"], list)
        assert isinstance(there["metadata"]["validated_at"], str)


@asynchronous
async def test_mx_blacklist_says_whether_the_exchange_is_listed(tmp_path: Path) -> None:
    listed = Blacklist(hosts=["bigmail.example"])
    async with (
        Sandbox() as sandbox,
        serving(tmp_path, sandbox.make_backend(blacklist=listed)) as world,
    ):
        data = (await world.check("ada@gmail.com", "mx_blacklist")).json()["data"]
        assert (data["result"], data["reason"], data["reasons"]) == ("invalid", "BLACKLIST", [])
        assert data["checks"] == {"syntax": True, "dns": True, "blacklist": False}
        clean = (await world.check("nobody.is.called.so@outlook.com", "mx_blacklist")).json()[
            "data"
        ]
        assert (clean["result"], clean["checks"]["blacklist"]) == ("valid", True)
