"""One address: accepted exactly where email-validator accepts it, and never an exception."""

import json

from email_validator import EmailNotValidError, validate_email
from hypothesis import example, given
from hypothesis import strategies as st

from mailverdict.checks.syntax.address import (
    accept,
    describe_refusal,
    is_well_formed,
    normalize_domain,
    normalize_local,
    observe_fully,
    observe_syntax,
)
from mailverdict.checks.syntax.faults import MAX_OCTETS, TOO_LONG
from mailverdict.model.evidence import SyntaxEvidence
from tests import CASES
from tests.doubles.tables import each_row, rows_of_csv

VECTORS = CASES / "syntax_vectors.csv"


def read_vectors() -> dict[str, dict[str, str]]:
    """Every distinct address of the table with its first row; as a column has it, without surrounding blanks."""
    return {json.loads(row["address_json"]): row for row in reversed(rows_of_csv(VECTORS))}


def reference(text: str) -> tuple[bool, str, str, str]:
    """What email-validator itself says."""
    try:
        found = validate_email(text, check_deliverability=False)
    except EmailNotValidError:
        return False, "", "", ""
    return True, found.normalized, found.local_part, found.ascii_domain


def answer(text: str) -> tuple[bool, str, str, str]:
    seen = observe_syntax(text)
    return seen.ok, seen.normalized, seen.local, seen.ascii_domain


def test_vectors_are_all_there():
    assert len(read_vectors()) == 434


def test_acceptance_is_the_recorded_one_for_every_vector():
    differing = [
        (text, row["email_validator_default"])
        for text, row in read_vectors().items()
        if observe_syntax(text).ok != (row["email_validator_default"] != "invalid")
    ]
    assert differing == []


def test_answers_are_those_of_the_installed_email_validator_for_every_vector():
    texts = [text.strip() for text in read_vectors()]
    assert [answer(text) for text in texts] == [reference(text) for text in texts]


@each_row(
    ("form", "text", "accepted"),
    [
        ("quoted local part", '"ada b"@web.de', False),
        ("needlessly quoted local part", '"ada"@web.de', False),
        ("address literal", "ada@[192.0.2.7]", False),
        ("IPv6 literal", "ada@[IPv6:2001:db8::1]", False),
        ("comment", "ada(work)@web.de", False),
        ("display name", "Ada <ada@web.de>", False),
        ("no dot", "ada@localhost", False),
        ("reserved name", "ada@web.test", False),
        ("one-letter top level", "ada@b.c", True),
        ("domain in U-labels", "ada@bücher.example", True),
        ("domain in A-labels", "ada@xn--bcher-kva.example", True),
        ("local part in another script", "石井@web.de", True),
        ("local part over 64 octets", "a" * 65 + "@web.de", True),
    ],
)
def test_policy_for_each_form(form, text, accepted):
    assert observe_syntax(text).ok is accepted, form


@each_row(
    ("text", "expected"),
    [
        (
            "Ada@WEB.de",
            SyntaxEvidence(ok=True, normalized="Ada@web.de", local="Ada", ascii_domain="web.de"),
        ),
        (
            "INFO@web.de",
            SyntaxEvidence(ok=True, normalized="info@web.de", local="info", ascii_domain="web.de"),
        ),
        (
            "e\u0301@xn--bcher-kva.DE",
            SyntaxEvidence(
                ok=True, normalized="\xe9@bücher.de", local="\xe9", ascii_domain="xn--bcher-kva.de"
            ),
        ),
        ("ada@web", SyntaxEvidence(ok=False, message="There is no dot in the domain.")),
    ],
)
def test_evidence_has_the_normal_form_or_the_fault(text, expected):
    assert observe_syntax(text) == expected


@given(
    st.text(max_size=40)
    | st.text("a.@-_+\"'()<>[]\\ \x00\r\n\u0301\u200b\u202eäßد１。＠K\ud800", max_size=25)
)
@example("a@" + "b." * 120 + "de")
@example("\ud800@web.de")
@example("ada@web.de\r\nRCPT TO:<x@y.de>")
@example("a@" + "x." * 1000 + "de")
@example("\u202eada@web.de")
@example("ada\u200b@web.de")
@example("@")
def test_never_raises_and_agrees_with_email_validator_on_any_text(text):
    seen = observe_syntax(text)
    assert answer(text) == reference(text)
    assert bool(seen.message) is not seen.ok
    assert seen.message.isprintable() or "\n" not in seen.message


@given(
    st.sampled_from(
        ["{}@web.de", "a@{}.de", '"{}"@web.de', "a@[{}]", "Ada <{}@web.de>", "{} <a@web.de>", "{}"]
    ),
    st.text("ab.é石 ", min_size=MAX_OCTETS),
)
def test_email_validator_accepts_nothing_longer_than_the_bound(shape, filling):
    assert reference(shape.format(filling)) == (False, "", "", "")


@each_row("local", ["a" * 63, "é" * 31 + "a"])
def test_the_bound_counts_octets_of_the_whole_address(local):
    domain = ".".join(["d" * 62] * 2 + ["e" * 61, "de"])
    room = MAX_OCTETS - len(f"{local}@".encode())
    assert answer(f"{local}@{domain[-room:]}") == reference(f"{local}@{domain[-room:]}")
    assert observe_syntax(f"{local}@{domain[-room:]}").ok
    assert observe_syntax(f"{local}a@{domain[-room:]}").message == TOO_LONG


class Untouchable(str):
    """A text whose length may be asked for, and nothing else."""

    __slots__ = ()

    def refuse(self, *args: object) -> None:
        raise AssertionError("a text that is too long was looked at")

    __iter__ = __getitem__ = __contains__ = __eq__ = encode = find = partition = refuse
    __hash__ = None


def test_a_huge_text_is_refused_without_being_looked_at():
    assert observe_syntax(Untouchable("a" * 10_000_000)) == SyntaxEvidence(
        ok=False, message=TOO_LONG
    )


@each_row(
    ("text", "message"),
    [
        ("é" * 127 + "@", TOO_LONG),
        (
            "ada\u200b@web.de",
            "There is a character that addresses may not have: U+200B (ZERO WIDTH SPACE).",
        ),
        (
            "ada@web\u00a0.de",
            "There is a character that addresses may not have: U+00A0 (NO-BREAK SPACE).",
        ),
        (
            "\u0301ada@web.de",
            "There is a character that addresses may not have: U+0301 (COMBINING ACUTE ACCENT).",
        ),
        ("\ud800@web.de", "There is a character that addresses may not have: U+D800."),
        (
            "a\u037eb@web.de",
            "The part before the @ is not accepted after Unicode normalization (NFC).",
        ),
        ("ada@xn--a.de", "The domain is not a valid internationalized domain name (IDNA 2008)."),
        (
            "ad\u0301a@xn--a.de",
            "The domain is not a valid internationalized domain name (IDNA 2008).",
        ),
        ("ada@☃.de", "The domain is not a valid internationalized domain name (IDNA 2008)."),
        ("\u0958" * 60 + "@web.de", "The address is longer than 254 octets once it is normalized."),
        (
            "ü" * 60 + "@" + "ü.aa." * 20 + "de",
            "The address is longer than 254 octets once it is normalized.",
        ),
    ],
)
def test_non_ascii_faults_are_described(text, message):
    assert observe_syntax(text).message == message
    assert describe_refusal(text) == message


@given(st.text("abA.é石K\u0301-_+ ", max_size=12), st.text("abA.-é。xn石1 ", max_size=15))
def test_an_address_is_accepted_when_both_its_sides_are(local, domain):
    sides = normalize_local(local), normalize_domain(domain)
    seen = observe_syntax(f"{local}@{domain}")
    assert seen.ok is (None not in sides)
    if seen.ok:
        assert (seen.local, seen.ascii_domain) == (sides[0], sides[1].ascii)
        assert seen.normalized == f"{sides[0]}@{sides[1].display}"


# --- the fast path gives the same answers as the full check --------------------------------------

LETTERS = st.text("abz09-._+A@", max_size=12)
NEARLY = st.builds(
    "{}@{}.{}".format,
    LETTERS,
    LETTERS,
    st.sampled_from(["org", "test", "arpa", "local", "c-m", "1", "xn--p1ai"]),
)


@each_row(
    "text", ["ada@example.org", "ada.l+news@mail.example.co.uk", "a@b.cd", "0-0@x-y.org", "_@a.bc"]
)
def test_plain_address_has_the_answer_of_the_full_check(text: str) -> None:
    assert observe_syntax(text) == observe_fully(text)


NOT_PLAIN = [
    ("Ada@example.org", "capitals may have another normal form"),
    ("ada@example.test", "a reserved name"),
    ("ada@onion.onion", "another one"),
    ("ada@xn--bcher-kva.example", "IDNA has to look"),
    ("ada@a--b.org", "two hyphens"),
    ("ada@" + "a" * 64 + ".org", "a long label"),
    ("a" * 250 + "@b.org", "a long address"),
    ("ada@web", "no dot"),
    ("ada@example.org\n", "a line break"),
    ("", "nothing"),
]


@each_row(("text", "why"), NOT_PLAIN, ids=[why for _, why in NOT_PLAIN])
def test_address_that_looks_plain_has_the_answer_of_the_full_check(text: str, why: str) -> None:
    assert observe_syntax(text) == observe_fully(text), why


def test_both_agree_on_every_known_case() -> None:
    texts = [value for row in rows_of_csv(VECTORS) for value in row.values() if value]
    assert len(texts) > 100
    for text in texts:
        assert observe_syntax(text) == observe_fully(text), text


@example("a" * 64 + "@" + "b" * 63 + ".org")
@given(st.one_of(NEARLY, st.text(max_size=40), st.emails()))
def test_both_agree_on_anything(text: str) -> None:
    assert observe_syntax(text) == observe_fully(text)


LETTERS = st.sampled_from("abz09-.") | st.characters(
    min_codepoint=0x80, max_codepoint=0xFFFF, categories=["Ll", "Lo"]
)


NON_ASCII_LOCAL = st.text("abA.é石K\u0301-_+ １İ", max_size=12) | st.sampled_from(
    ["é" * 100, "a" * 200, "İnfo", "INFO"]
)
DOMAIN = st.builds(
    "{}{}".format,
    st.text(LETTERS, max_size=70),
    st.sampled_from(["", ".de", ".рф", ".local", ".xn--p1ai", ".1"]),
)


@given(NON_ASCII_LOCAL | LETTERS, DOMAIN | st.text("abA.-é。xn石1 ", max_size=15))
@example("é" * 100, "b" * 50 + ".de")
@example("é" * 100, "b" * 51 + ".de")
@example("é" * 95, "é" * 31 + ".de")
@example("a" * 180, "é" * 35 + ".de")
@example("é", "web.local")
@example("é", "xn--bcher-kva.de")
@example("é", "xn--a.de")
@example("ada", "xn--a.de")
@example("ada", "\ud800.de")
def test_well_formed_is_what_email_validator_accepts(local, domain):
    address = f"{local}@{domain}"
    assert is_well_formed(address) is (accept(address) is not None)
