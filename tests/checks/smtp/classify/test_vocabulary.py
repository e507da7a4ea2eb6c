"""The text of a reply is folded, and what it quotes is masked."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mailverdict.checks.smtp.classify.classifier import MAX_TEXT, mask_recipient, normalize_text
from mailverdict.checks.smtp.classify.vocabulary import phrases

MASKED = [
    ("<x@example.org>: Recipient OK", "xaddrx: recipient ok", "an address in brackets"),
    ('<"no such user"@example.org> ok', "xaddrx ok", "a quoted local part"),
    ("see HTTPS://example.org/?p=NoSuchUser now", "see xurlx now", "a link"),
    ("client [192.0.2.7] refused", "client xipx refused", "an IPv4 address"),
    ("banned sender[192.0.2.7]", "banned sender xipx ", "one without a blank before it"),
    ("from [IPv6:2001:db8::25] refused", "from xipx refused", "an IPv6 address"),
    ("wait 00:05:00", "wait 00:05:00", "a time is not a IPv6 address"),
    ("mx1.relay.example.net busy", "xhostx busy", "a host name may hold any word"),
    ("does not exist.Please check", "does not exist.please check", "a sentence end is not a host name"),
    ("RESOLVER.ADR.RecipNotFound; not found", "resolver.adr.recipnotfound; not found", "nor are Exchange's words"),
    ("Boîte du destinataire", "boite du destinataire", "accents"),
    ("n’existe pas", "n'existe pas", "a curly apostrophe"),
    ("521< 192.0.2.7 >_is_blocked", "521< xipx > is blocked", "underscores"),
    ("The recipient account is blocked", "the recipient account is disabled", "blocked is the account"),
    ("your account is blocked", "your account is blocked", "but not when it is ours"),
]


@pytest.mark.parametrize(("text", "expected", "why"), MASKED)
def test_normalize_text_masks_what_is_quoted(text: str, expected: str, why: str) -> None:
    assert normalize_text(text).masked == expected, why


def test_normalize_text_keeps_links_for_the_names_of_lists() -> None:
    reply_text = normalize_text("<x@zen.spamhaus.org> see https://www.spamhaus.org/query/ip/192.0.2.7")

    assert reply_text.unmasked == "xaddrx see https://www.spamhaus.org/query/ip/192.0.2.7"


def test_phrases_are_separated_by_two_blanks() -> None:
    pattern = phrases("\n  no such user  unknown\n  not found  \\bfull\\b\n")

    assert pattern == r"(?:(?:n(?:o such user|ot found)|u(?:nknown))|\b(?:f(?:ull\b)))"


def test_a_quantified_initial_is_kept() -> None:
    assert [bool(re.search(phrases("x?a  bc"), text)) for text in ("a", "xa", "bc", "x")] == [True, True, True, False]


ADVICE_ROWS = [
    ("User unknown. Please check your settings", "user unknown.", "a sentence"),
    ("User unknown; see our policy.", "user unknown;", "a clause"),
    ("User unknown (contact the sender)", "user unknown", "brackets"),
    ("User unknown. Your host is blocked", "user unknown. your host is blocked", "not advice"),
    ("User unknown. Please see why your IP is blocked", "user unknown. please see why your ip is blocked", "a refusal"),
    ("User unknown. Please turn on authentication", "user unknown. please turn on authentication", "a demand"),
]


@pytest.mark.parametrize(("text", "expected", "why"), ADVICE_ROWS)
def test_statement_has_no_advice(text: str, expected: str, why: str) -> None:
    assert normalize_text(text).statement == expected, why


@settings(deadline=None)
@given(st.text(max_size=4000))
def test_normalize_text_accepts_any_text(text: str) -> None:
    reply_text = normalize_text(text)

    assert not any(character in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for character in reply_text.unmasked + reply_text.masked)


# --- the recipient ------------------------------------------------------------------------------------

RECIPIENT = "ada.lovelace+x@mail.example.org"
PIECES = [
    f"<{RECIPIENT}>", RECIPIENT, RECIPIENT.upper(), "<", ">", '"', "@", "ada", "user unknown", " ", "\n", ":", "=", ".",
    "https://example.org/?to=", "HTTP://", "www.", "WWW.example.org/", "192.0.2.7", "ipv6:2001:db8::1", "[", "]", "(",
    "\u0338", "\u0130", "\uff20", "boîte", "relay=", "x" * 60, "x" * 1000,
]  # fmt: skip


@settings(deadline=None, max_examples=500)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_a_masked_recipient_changes_nothing_in_the_normalized_text(text: str) -> None:
    assert normalize_text(mask_recipient(text, RECIPIENT)) == normalize_text(text)


KEPT = [
    (f"https://example.org/?to=<{RECIPIENT}> unknown", RECIPIENT, "rules search links"),
    (f'"<{RECIPIENT}>"@example.org unknown', RECIPIENT, "part of another address"),
    (f"{RECIPIENT} unknown", RECIPIENT, "no brackets: characters beside it may belong to it"),
    (f"<{RECIPIENT}>" + "x" * MAX_TEXT, RECIPIENT, "the end of a long text is cut"),
    ("<ada> unknown", "ada", "not an address"),
]


@pytest.mark.parametrize(("text", "recipient", "why"), KEPT)
def test_a_recipient_is_kept_where_masking_might_change_the_rest(text: str, recipient: str, why: str) -> None:
    assert mask_recipient(text, recipient) == text, why
