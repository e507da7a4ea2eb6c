"""Classified replies: every row of the tables, and no refusal of the client or sender as a missing mailbox."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailverdict.checks.smtp.classify.classification import Action, Classification
from mailverdict.checks.smtp.classify.classifier import (
    MAX_TEXT,
    PHASES,
    catch_all_of,
    classify,
    classify_reply,
    find_wait,
    mask_recipient,
    normalize_text,
)
from mailverdict.checks.smtp.classify.languages import (
    Language,
    find_words,
    is_spaced,
    load_languages,
)
from mailverdict.checks.smtp.classify.patterns import compile_pattern
from mailverdict.checks.smtp.classify.rules import RULES
from mailverdict.checks.smtp.replies import Reply
from mailverdict.model.words import Reason
from tests import CASES
from tests.checks.smtp.parsing import parse_reply
from tests.doubles.tables import assert_none_differ, each_row


def read_rows(name: str) -> Iterator[dict[str, str]]:
    """Rows with a reply; those of transport failures have no code."""
    with (CASES / name).open(encoding="utf-8", newline="") as file:
        yield from (row for row in csv.DictReader(file) if row["code"])


def reply_of(row: dict[str, str]) -> Reply:
    return Reply(int(row["code"]), row["enhanced"] or None, row["text"])


REPLY_TABLES = [
    path.name
    for path in sorted(CASES.glob("smtp_replies*.csv"))
    if path.stem != "smtp_replies_traps"
]
ROWS = [row for name in REPLY_TABLES for row in read_rows(name)]
TRAPS = [*read_rows("smtp_replies_traps.csv")]
RCPT_ROWS = [row for row in ROWS if PHASES[row["phase"]] == "rcpt"]
LANGUAGES = [*load_languages().values()]
# Of a table with thousands of rows every tenth one; `make test-rest` takes each.
STEPS = pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.slow)])
WHOLE_WORDS = {reason.value: reason for reason in Reason} | {"none": None}


@each_row("name", REPLY_TABLES)
def test_reply_gets_the_reason_in_the_table(name: str) -> None:
    rows = [row for row in read_rows(name) if row["phase"] != "rcpt_random"]
    found = [(classify_reply(reply_of(row), phase=row["phase"]), row) for row in rows]

    assert_none_differ(
        (row["code"], row["enhanced"], row["text"], row["expected_reason"], seen.reason, seen.rule)
        for seen, row in found
        if seen.reason != WHOLE_WORDS[row["expected_reason"]]
    )
    assert rows


@STEPS
def test_the_recipient_does_not_change_a_classification(step: int) -> None:
    recipient = "ada@mail.example.org"
    for row, form in zip(
        RCPT_ROWS[::step], itertools.cycle([f"<{recipient}>: {{}}", f"{{}} <{recipient}>", "{}"])
    ):
        named = replace(reply_of(row), text=form.format(row["text"]))
        expected = classify_reply(named, phase="rcpt")
        assert classify_reply(named, phase="rcpt", recipient=recipient) == expected, named.text


def test_random_recipient_shows_catch_all_only_when_accepted() -> None:
    rows = [row for row in ROWS if row["phase"] == "rcpt_random"]
    found = [
        (catch_all_of(classify_reply(reply_of(row), phase="rcpt_random")), row) for row in rows
    ]

    assert_none_differ(
        (row["text"], row["expected_reason"], seen)
        for seen, row in found
        if (seen is True) is not (row["expected_reason"] == "catch_all")
    )
    assert rows


@each_row(
    ("classification", "expected"),
    [
        (Classification(None, "accepted"), True),
        (Classification(Reason.MAILBOX_NOT_FOUND, "mailbox_unknown"), False),
        (
            Classification(
                Reason.INCONCLUSIVE, "too_many_recipients", action=Action.FEWER_RECIPIENTS
            ),
            None,
        ),
        (Classification(Reason.GREYLISTED, "greylist"), None),
        (Classification(Reason.MAILBOX_FULL, "over_quota"), None),
        (Classification(Reason.PROTECTED, "dns_list"), None),
    ],
)
def test_catch_all_follows_from_two_answers_only(
    classification: Classification, expected: bool | None
) -> None:
    assert catch_all_of(classification) is expected


@STEPS
@pytest.mark.parametrize("phase", ["banner", "ehlo", "mail"])
def test_no_other_phase_says_anything_about_a_mailbox(phase: str, step: int) -> None:
    about_a_mailbox = (Reason.MAILBOX_NOT_FOUND, Reason.MAILBOX_FULL)

    assert [
        row["text"]
        for row in RCPT_ROWS[::step]
        if classify(reply_of(row), phase=phase) in about_a_mailbox
    ] == []


@STEPS
def test_transient_reply_never_establishes_that_a_mailbox_is_missing(step: int) -> None:
    for row in ROWS[::step]:
        classification = classify_reply(Reply(450, None, row["text"]), phase="rcpt")
        missing = classification.reason is Reason.MAILBOX_NOT_FOUND
        assert not missing or classification.rule == "nested_unknown", row["text"]


def lose_letters(text: str) -> str:
    """What a server sends that replaces every letter beyond ASCII by a question mark."""
    return text.encode("ascii", "replace").decode()


def read_as_latin_1(text: str) -> str:
    return text.encode().decode("latin-1")


@STEPS
@pytest.mark.parametrize(
    "change", [str.upper, lose_letters, read_as_latin_1], ids=lambda change: change.__name__
)
def test_changed_letters_make_no_other_reply_a_missing_mailbox(
    change: Callable[[str], str], step: int
) -> None:
    for row in RCPT_ROWS[::step]:
        if row["expected_reason"] != "mailbox_not_found" and row["phase"] == "rcpt":
            changed = replace(reply_of(row), text=change(row["text"]))
            assert classify(changed, phase="rcpt") is not Reason.MAILBOX_NOT_FOUND, changed.text


def test_a_missing_mailbox_is_found_without_the_letters_beyond_ascii() -> None:
    texts = [
        "Nieznany użytkownik",
        "Boîte supprimée",
        "Usuário não existe",
        "Uživatel neexistuje",
        "Kullanıcı yok",
    ]

    assert {classify(Reply(550, None, lose_letters(text)), phase="rcpt") for text in texts} == {
        Reason.MAILBOX_NOT_FOUND
    }


def test_reply_about_something_else_is_not_a_missing_mailbox() -> None:
    found = [(classify_reply(reply_of(row), phase="rcpt"), row) for row in TRAPS]

    assert_none_differ(
        (row["code"], row["enhanced"], row["text"], seen.rule)
        for seen, row in found
        if seen.reason is Reason.MAILBOX_NOT_FOUND
    )
    assert len(TRAPS) > 1_000


# --- one of two causes ------------------------------------------------------------------------------


def join_samples(language: Language, milder: str) -> Iterator[str]:
    """Replies of one language that leave open whether a mailbox is unknown or something milder."""
    blank = " " if is_spaced(language) else ""
    for either in language["either"]:
        for first, second in itertools.permutations((language["samples"][0], milder)):
            yield f"{first}{blank}{either}{blank}{second}"
            yield f"<x@example.org>: {first.lower()}{blank}{either}{blank}{second.lower()}"


REFUSED_SAMPLES = (
    "mailbox blocked by policy",
    "not allowed to receive external mail",
    "SPF check failed",
)


def test_each_sample_of_a_language_has_its_reading() -> None:
    for name, language in load_languages().items():
        reasons = [
            classify(Reply(550, None, sample), phase="rcpt") for sample in language["samples"]
        ]

        assert reasons == [
            Reason.MAILBOX_NOT_FOUND,
            Reason.MAILBOX_NOT_FOUND,
            Reason.MAILBOX_FULL,
        ], name


@each_row("enhanced", [None, "5.1.1", "5.2.1", "5.7.1"])
def test_unknown_or_full_is_a_full_mailbox(enhanced: str | None) -> None:
    texts = [
        text for language in LANGUAGES for text in join_samples(language, language["samples"][2])
    ]
    found = [(text, classify(Reply(550, enhanced, text), phase="rcpt")) for text in texts]
    assert_none_differ(each for each in found if each[1] is not Reason.MAILBOX_FULL)


@each_row("enhanced", [None, "5.1.1", "5.2.1", "5.7.1"])
def test_unknown_or_closed_is_not_established(enhanced: str | None) -> None:
    texts = [
        text for language in LANGUAGES for text in join_samples(language, language["samples"][1])
    ]
    found = [(text, classify(Reply(550, enhanced, text), phase="rcpt")) for text in texts]
    assert_none_differ(each for each in found if each[1] is not Reason.INCONCLUSIVE)


@each_row("refused", REFUSED_SAMPLES)
def test_unknown_or_refused_is_not_a_missing_mailbox(refused: str) -> None:
    texts = [text for language in LANGUAGES for text in join_samples(language, refused)]
    found = [(text, classify(Reply(550, "5.1.1", text), phase="rcpt")) for text in texts]
    assert_none_differ(each for each in found if each[1] is Reason.MAILBOX_NOT_FOUND)


def plain_words(words: list[str]) -> list[str]:
    """The words of a tag that are not patterns."""
    return [word for word in words if re.fullmatch(r"[\w' -]+", word)]


@given(
    st.sampled_from(LANGUAGES),
    st.sampled_from(["closed", "full"]),
    st.sampled_from([None, "5.1.1"]),
    st.data(),
)
def test_unknown_or_any_milder_word_is_not_a_missing_mailbox(
    language: Language, milder: str, enhanced: str | None, data: st.DataObject
) -> None:
    noun, unknown, other = (
        data.draw(st.sampled_from(plain_words(words) or [fallback]))
        for words, fallback in (
            (language["nouns"], "mailbox"),
            (language["unknown"], language["samples"][0]),
            (language[milder], language["samples"][1 if milder == "closed" else 2]),
        )
    )
    either = language["either"][0]
    blank = " " if is_spaced(language) else ""

    for text in (
        (noun, unknown, either, other),
        (noun, other, either, unknown),
        (noun, unknown, either, noun, other),
    ):
        reply = Reply(550, enhanced, blank.join(text))
        assert classify(reply, phase="rcpt") is not Reason.MAILBOX_NOT_FOUND, reply.text


# --- another subject --------------------------------------------------------------------------------

OTHER_SUBJECTS = (
    *(
        "sender",
        "sender's account",
        "domain of the user",
        "DNS record of the recipient",
        "server for this mailbox",
    ),
    *(
        "user agent",
        "address family",
        "mailbox store",
        "mail route for the user",
        "your account",
        "file of aliases",
    ),
    *(
        "el dominio del destinatario",
        "la cuenta del remitente",
        "il dominio del destinatario",
        "l'indirizzo del mittente",
    ),
    *(
        "le domaine du destinataire",
        "l'adresse de l'expéditeur",
        "o domínio do destinatário",
        "a conta do remetente",
    ),
    *("die Domain des Empfängers", "das Konto des Absenders", "Ihr Konto", "votre compte"),
)


@STEPS
def test_a_word_for_unknown_about_another_subject_is_not_a_missing_mailbox(step: int) -> None:
    words = {*plain_words(find_words("unknown", "closed", spaced=True))}
    for subject, word in [
        *itertools.product(OTHER_SUBJECTS, sorted(words - {"now disabled with"}))
    ][::step]:
        text = f"{subject} {word}"
        assert classify(Reply(550, None, text), phase="rcpt") is not Reason.MAILBOX_NOT_FOUND, text


THINGS_OF_ANOTHER_KIND = (
    *(
        "Ticket not found",
        "Project does not exist",
        "Subscription expired",
        "Lizenz abgelaufen",
        "queue is closed",
    ),
    *(
        "Die Mailingliste wurde geschlossen",
        "Certificat introuvable",
        "Servicio suspendido",
        "Список рассылки закрыт",
    ),
    *("メーリングリストは閉鎖されました", "邮件被策略拒绝", "Benutzerdatenbank nicht erreichbar"),
    *(
        "The token of the user does not exist",
        "User attribute not found",
        "Filter not found for recipient",
    ),
    *(
        "User has disabled notifications",
        "User closed the ticket",
        "The account's signature is not valid",
    ),
)


def test_a_mailbox_code_beside_another_subject_is_not_a_missing_mailbox() -> None:
    beginnings = (
        "",
        "<x@example.org>: ",
        "<x@example.org>... ",
        "<x@example.org>: Recipient address rejected: ",
    )
    for text, before in itertools.product(THINGS_OF_ANOTHER_KIND, beginnings):
        for enhanced in (None, "5.1.0", "5.1.1", "5.2.1"):
            reply = Reply(550, enhanced, before + text)
            assert classify(reply, phase="rcpt") is not Reason.MAILBOX_NOT_FOUND, reply


@each_row(
    "text", ["", "Rejected", "<x@example.org>", "Sorry, not here (4XyZ12AbC)", "Recipient refused"]
)
def test_a_mailbox_code_beside_a_mere_refusal_is_a_missing_mailbox(text: str) -> None:
    assert classify(Reply(550, "5.1.1", text), phase="rcpt") is Reason.MAILBOX_NOT_FOUND


ADVICE = (
    "Please contact your administrator.",
    "For help, visit http://example.org/bounce",
    "Verifique la dirección.",
)


def test_what_surrounds_a_statement_does_not_change_its_reading() -> None:
    texts = [text for language in LANGUAGES for text in surround(language["samples"][0])]
    found = [(text, classify(Reply(550, None, text), phase="rcpt")) for text in texts]
    assert_none_differ(each for each in found if each[1] is not Reason.MAILBOX_NOT_FOUND)


def surround(unknown: str) -> list[str]:
    """A statement as servers write it."""
    return [
        *(
            f"<x@example.org>: Recipient address rejected: {unknown}",
            f"Sorry, {unknown.lower()}",
            f"mx.example.org: {unknown}",
        ),
        *(
            f"{unknown} {tail}"
            for tail in (
                "(4XyZ12AbC)",
                "at example.org",
                "- gsmtp",
                "[192.0.2.7]",
                "https://example.org/?c=1",
            )
        ),
        *(f"{unknown}. {advice}" for advice in ADVICE),
        unknown.upper(),
        unknown.encode().decode("latin-1"),
    ]


# --- the table itself ------------------------------------------------------------------------------


def test_rule_decides_its_own_sample() -> None:
    for rule in RULES:
        phase, reply = rule.sample.split(" ", 1)
        classification = classify_reply(parse_reply([reply]), phase=phase)

        assert (classification.rule, classification.reason) == (rule.name, rule.reason)


@STEPS
def test_patterns_without_the_words_for_other_letters_find_the_same_in_ascii_texts(
    step: int,
) -> None:
    texts = {normalize_text(row["text"]).masked for row in (*ROWS, *TRAPS)[:: 4 * step]}
    for pattern in {pattern for rule in RULES for pattern in (*rule.text, *rule.unless)}:
        in_ascii, in_any = compile_pattern(pattern, "ascii"), compile_pattern(pattern, "any")
        for text in filter(str.isascii, texts):
            assert bool(in_ascii.search(text)) == bool(in_any.search(text)), (pattern, text)


def test_rules_have_unique_names_and_a_source() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.seen for rule in RULES)


def test_phases_of_rules_exist() -> None:
    assert all(set(rule.phases.split()) <= {"banner", "ehlo", "mail", "rcpt"} for rule in RULES)


GIVEN_BY_REPLIES = {
    None,
    Reason.NO_MX_RECORD,
    Reason.MAILBOX_NOT_FOUND,
    Reason.GREYLISTED,
    Reason.SENDER_BLOCKED,
    Reason.CONNECTION_DROPPED,
    Reason.MAILBOX_FULL,
    Reason.INCONCLUSIVE,
    Reason.PROTECTED,
}


def test_rules_give_every_reason_that_a_reply_can_give_and_no_other() -> None:
    assert {rule.reason for rule in RULES} == GIVEN_BY_REPLIES
    assert {
        WHOLE_WORDS[row["expected_reason"]] for row in ROWS if row["expected_reason"] != "catch_all"
    } == (GIVEN_BY_REPLIES)


@given(
    st.integers(200, 599),
    st.sampled_from(sorted(PHASES)),
    st.text(max_size=300),
    st.none() | st.text(max_size=8),
)
def test_any_reply_gets_a_classification(
    code: int, phase: str, text: str, enhanced: str | None
) -> None:
    classification = classify_reply(Reply(code, enhanced or None, text), phase=phase)

    assert classification.reason in GIVEN_BY_REPLIES


def test_phase_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="vrfy"):
        classify(Reply(250, None, ""), phase="vrfy")


# --- details ---------------------------------------------------------------------------------------

DETAILS = [
    (550, "5.2.1", "The account is disabled", "error_code", "MAILBOX_DISABLED"),
    (550, "5.1.1", "User unknown", "error_code", "SMTP"),
    (530, "5.7.0", "Must issue a STARTTLS command first", "action", Action.USE_TLS),
    (530, "5.7.0", "Must issue a STARTTLS command first", "error_code", "TLS_REQUIRED"),
    (553, "5.6.7", "SMTPUTF8 required", "action", Action.USE_SMTPUTF8),
    (452, "4.5.3", "Too many recipients", "action", Action.FEWER_RECIPIENTS),
    (
        452,
        "4.5.3",
        "Recipients belong to multiple regions ATTR38",
        "action",
        Action.FEWER_RECIPIENTS,
    ),
    (552, None, "Too many recipients", "action", Action.FEWER_RECIPIENTS),
    (
        451,
        "4.3.0",
        "Multiple destination domains per transaction is unsupported.",
        "action",
        Action.ONE_DOMAIN,
    ),
    (421, "4.7.0", "Too many connections", "action", Action.BACK_OFF),
    (450, None, "server is busy", "action", Action.BACK_OFF),
    (550, "5.1.1", "User unknown", "action", Action.NONE),
    (450, "4.1.1", "Address verification in progress", "retry_after", 20.0),
    (450, "4.3.2", "Service currently unavailable", "retry_after", 1.0),
    (451, None, "Greylisted, try again in 300 seconds", "retry_after", 300.0),
    (451, None, "Greylisted", "retry_after", None),
    (550, None, "Rejected, try again in 300 seconds", "retry_after", None),
]


@each_row(("code", "enhanced", "text", "attribute", "expected"), DETAILS)
def test_classification_carries_code_action_and_wait(
    code: int, enhanced: str | None, text: str, attribute: str, expected: object
) -> None:
    assert getattr(classify_reply(Reply(code, enhanced, text), phase="rcpt"), attribute) == expected


WAITS = [
    ("try again in 300 seconds", 300.0),
    ("greylisted for 60 seconds", 60.0),
    ("please retry after 5 minutes", 300.0),
    ("wait at least 1 hour", 3600.0),
    ("come back in 00:05:00", 300.0),
    ("reessayez dans 5 minutes", 300.0),
    ("intentelo en 10 minutos", 600.0),
    ("riprova tra 5 minuti", 300.0),
    ("in 2 stunden", 7200.0),
    ("try again in 99999 hours", 86400.0),
    ("try again later", None),
    ("id 300 seconds", None),
    ("in 5 msgs", None),
]


@each_row(("text", "seconds"), WAITS)
def test_find_wait_reads_the_servers_own_hint(text: str, seconds: float | None) -> None:
    assert find_wait(text) == seconds


def test_enhanced_code_within_the_text_counts_when_none_was_parsed() -> None:
    assert classify(Reply(451, None, "4.7.500 Server busy"), phase="rcpt") is Reason.PROTECTED


def test_enhanced_code_of_another_class_is_dropped() -> None:
    assert classify(Reply(450, "5.7.606", "Mailbox unavailable"), phase="rcpt") is Reason.GREYLISTED


# --- never a wrong mailbox_not_found ---------------------------------------------------------------

CLIENT_OR_SENDER_NOUNS = """your host|your hostname|sender mailbox|sender's address|the sender account|client name|reverse name
|the HELO name|return path address|originating address|MAIL FROM address|server name|your server|your IP address
|remote host|gateway address|sending account|the sending user|submitting user|your account|your e-mail address
|your domain|PTR record|reverse DNS|your mail server|envelope sender|bounce address|the address you are sending from
|the user you claim to be|the return address|the SPF record of your address|the client [192.0.2.7]|host 192.0.2.7
|the poster|a command argument|the address record of your domain|l'adresse de l'expéditeur|votre adresse|l'adresse IP
|la dirección del remitente|su dirección IP|l'indirizzo del mittente|il tuo account|die Absenderadresse|Ihre Adresse
|die IP-Adresse|o endereço do remetente|seu endereço""".replace("\n", "").split("|")
PREDICATES = """unknown|is unknown|not found|does not exist|is invalid|is not valid|is disabled|is suspended|is inactive
|was not recognized|could not be found|is not registered|has expired|is not allowed|rejected|blocked|inconnue
|n'existe pas|invalide|no existe|desconocida|non esiste|sconosciuto|unbekannt|existiert nicht|ungültig|não existe
""".replace("\n", "").split("|")
CLIENT_OR_SENDER_REFUSALS = """Client host rejected|blocked using zen.spamhaus.org|Helo command rejected|Sender address rejected
|Relay access denied|SPF check failed|rejected by our policy|Authentication required|sender verify failed
|Your IP is blacklisted|poor reputation|no PTR record for 192.0.2.7|too many invalid recipients from your host
|relaying to this user is not permitted|mailbox policy violation|unauthenticated mail is not accepted
|the recipient does not accept mail from your network|spam source|access denied to unknown clients
""".replace("\n", "").split("|")
MAILBOX_WORDS = """User unknown|No such user here|mailbox unavailable|Invalid recipient|Recipient address rejected
|Unknown local part|Utilisateur inconnu|Empfänger unbekannt|El usuario no existe|this account is disabled
""".replace("\n", "").split("|")
NOISE = st.sampled_from(
    [
        "<no-such-user@example.org>",
        "user.unknown@invalid-recipient.example",
        "http://example.org/?p=NoSuchUser&mailbox=unknown",
        "[192.0.2.7]",
        "(S2017062302)",
        "mx-unknown-user.example.net",
        "r18-20020a05600c",
        "- gsmtp",
        "(in reply to RCPT TO command)",
    ]
)
CODES = st.sampled_from([500, 501, 550, 551, 553, 554, 571])
DETAIL_CODES = st.sampled_from(
    [None, "5.0.0", "5.1.0", "5.1.1", "5.1.2", "5.1.3", "5.1.10", "5.2.1", "5.5.0", "5.7.1"]
)


@given(
    CODES,
    DETAIL_CODES,
    st.sampled_from(CLIENT_OR_SENDER_NOUNS),
    st.sampled_from(PREDICATES),
    NOISE,
    st.booleans(),
)
def test_predicate_of_client_or_sender_is_not_a_missing_mailbox(
    code: int, enhanced: str | None, noun: str, predicate: str, noise: str, noun_first: bool
) -> None:
    words = f"{noun} {predicate}" if noun_first else f"{predicate}: {noun}"

    for text in (f"{words} {noise}", f"{noise} {words}", f"Recipient address rejected: {words}"):
        assert (
            classify(Reply(code, enhanced, text), phase="rcpt") is not Reason.MAILBOX_NOT_FOUND
        ), text


@given(
    CODES,
    DETAIL_CODES,
    st.sampled_from(CLIENT_OR_SENDER_REFUSALS),
    st.lists(NOISE, max_size=3),
    st.randoms(),
)
def test_refusal_of_client_or_sender_with_noise_is_not_a_missing_mailbox(
    code: int, enhanced: str | None, refusal: str, noise: list[str], randomness: object
) -> None:
    parts = [refusal, *noise]
    randomness.shuffle(parts)  # type: ignore[attr-defined]

    assert (
        classify(Reply(code, enhanced, " ".join(parts)), phase="rcpt")
        is not Reason.MAILBOX_NOT_FOUND
    )


@given(
    CODES,
    DETAIL_CODES,
    st.sampled_from(CLIENT_OR_SENDER_REFUSALS),
    st.sampled_from(MAILBOX_WORDS),
    st.sampled_from(["; ", ". ", ", ", " - ", ": ", " and "]),
    st.booleans(),
)
def test_refusal_of_client_or_sender_beside_mailbox_words_is_not_a_missing_mailbox(
    code: int, enhanced: str | None, refusal: str, mailbox: str, joint: str, client_first: bool
) -> None:
    text = joint.join((refusal, mailbox) if client_first else (mailbox, refusal))

    assert classify(Reply(code, enhanced, text), phase="rcpt") is not Reason.MAILBOX_NOT_FOUND, text


@given(st.sampled_from([550, 554]), NOISE, NOISE)
def test_quoted_addresses_hosts_and_links_do_not_count(code: int, first: str, second: str) -> None:
    text = f"Rejected {first} {second}"

    assert classify(Reply(code, None, text), phase="rcpt") is not Reason.MAILBOX_NOT_FOUND, text


# --- the text ----------------------------------------------------------------------------------------

MASKED = [
    ("<x@example.org>: Recipient OK", "xaddrx: recipient ok", "an address in brackets"),
    ('<"no such user"@example.org> ok', "xaddrx ok", "a quoted local part"),
    ("see HTTPS://example.org/?p=NoSuchUser now", "see xurlx now", "a link"),
    ("client [192.0.2.7] refused", "client xipx refused", "an IPv4 address"),
    ("banned sender[192.0.2.7]", "banned sender xipx ", "one without a blank before it"),
    ("from [IPv6:2001:db8::25] refused", "from xipx refused", "an IPv6 address"),
    ("wait 00:05:00", "wait 00:05:00", "a time is not a IPv6 address"),
    ("mx1.relay.example.net busy", "xhostx busy", "a host name may hold any word"),
    (
        "does not exist.Please check",
        "does not exist.please check",
        "a sentence end is not a host name",
    ),
    (
        "RESOLVER.ADR.RecipNotFound; not found",
        "resolver.adr.recipnotfound; not found",
        "nor are Exchange's words",
    ),
    ("Boîte du destinataire", "boite du destinataire", "accents"),
    ("n’existe pas", "n'existe pas", "a curly apostrophe"),
    ("521< 192.0.2.7 >_is_blocked", "521< xipx > is blocked", "underscores"),
    (
        "The recipient account is blocked",
        "the recipient account is disabled",
        "blocked is the account",
    ),
    ("your account is blocked", "your account is blocked", "but not when it is ours"),
]


@each_row(("text", "expected", "why"), MASKED)
def test_normalize_text_masks_what_is_quoted(text: str, expected: str, why: str) -> None:
    assert normalize_text(text).masked == expected, why


def test_normalize_text_keeps_links_for_the_names_of_lists() -> None:
    reply_text = normalize_text(
        "<x@zen.spamhaus.org> see https://www.spamhaus.org/query/ip/192.0.2.7"
    )

    assert reply_text.unmasked == "xaddrx see https://www.spamhaus.org/query/ip/192.0.2.7"


@given(st.text(max_size=4000))
def test_normalize_text_accepts_any_text(text: str) -> None:
    reply_text = normalize_text(text)

    assert not any(
        character in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
        for character in reply_text.unmasked + reply_text.masked
    )


# --- the recipient ------------------------------------------------------------------------------------

RECIPIENT = "ada.lovelace+x@mail.example.org"
PIECES = [
    f"<{RECIPIENT}>", RECIPIENT, RECIPIENT.upper(), "<", ">", '"', "@", "ada", "user unknown", " ", "\n", ":", "=", ".",
    "https://example.org/?to=", "HTTP://", "www.", "WWW.example.org/", "192.0.2.7", "ipv6:2001:db8::1", "[", "]", "(",
    "\u0338", "\u0130", "\uff20", "boîte", "relay=", "x" * 60, "x" * 1000,
]  # fmt: skip


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


@each_row(("text", "recipient", "why"), KEPT)
def test_a_recipient_is_kept_where_masking_might_change_the_rest(
    text: str, recipient: str, why: str
) -> None:
    assert mask_recipient(text, recipient) == text, why


# --- the sender ---------------------------------------------------------------------------------------

SENDER = "probe@client.example"
REFUSALS_OF_ONE_ADDRESS = [
    ("<{}>: User unknown", "at the beginning"),
    ("{} does not exist", "no brackets"),
    ("No such user <{}>", "at the end"),
    (
        "<{}>: Recipient address rejected: User unknown",
        "the server takes the sender for the recipient",
    ),
    ("invalid mailbox: {}", "after a colon"),
]


@each_row(("text", "why"), REFUSALS_OF_ONE_ADDRESS)
@each_row(
    ("named", "reason"),
    [
        (SENDER, Reason.SENDER_BLOCKED),
        (SENDER.upper(), Reason.SENDER_BLOCKED),
        (RECIPIENT, Reason.MAILBOX_NOT_FOUND),
        (f"{RECIPIENT} {SENDER}", Reason.MAILBOX_NOT_FOUND),
        (f"other-{SENDER}.org", Reason.MAILBOX_NOT_FOUND),
    ],
)
def test_a_missing_mailbox_is_not_the_sender_s(
    text: str, why: str, named: str, reason: Reason
) -> None:
    reply = Reply(550, "5.1.1", text.format(named))

    assert (
        classify_reply(reply, phase="rcpt", recipient=RECIPIENT, sender=SENDER).reason is reason
    ), why


def test_a_sender_who_is_the_recipient_may_be_missing() -> None:
    reply = Reply(550, "5.1.1", f"<{SENDER}>: User unknown")

    assert (
        classify_reply(reply, phase="rcpt", recipient=SENDER, sender=SENDER).reason
        is Reason.MAILBOX_NOT_FOUND
    )
