"""Policies as tables: what is done with which row, and that no row is lost or done twice."""

import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.frames.policy import POLICIES
from mailverdict.model.words import ACTIONS, REASON_MEANING, Reason
from mailverdict.verdicts import PRECEDENCE
from tests.doubles.tables import crossed, each_row

FLAGS = ("role", "spamtrap", "disposable", "free", "catch_all", "protected")


def verified(rows, index=None):
    """A frame as `verify` makes it, out of (verdict or status, details, flags, suggestion)."""
    base = mv.verify(
        pd.DataFrame({"email": ["ada@example.org"] * len(rows)}, index=index),
        "email",
        validation_type="regex",
    )
    for i, (bucket, details, flags, suggestion) in enumerate(rows):
        has_verdict = bucket in ("valid", "risky", "invalid", "unknown")
        base.iloc[i, base.columns.get_loc("email_verdict")] = bucket if has_verdict else None
        base.iloc[i, base.columns.get_loc("email_status")] = "done" if has_verdict else bucket
        base.iloc[i, base.columns.get_loc("email_details")] = details
        base.iloc[i, base.columns.get_loc("email_suggestion")] = suggestion
        for flag in FLAGS:
            base.iloc[i, base.columns.get_loc(f"email_{flag}")] = flag in flags or None
    return base


# bucket, details, flags, suggestion -> strict, balanced, lenient
TABLE = [
    (("valid", None, (), None), ("send", "send", "send"), "no problem found"),
    (
        ("valid", None, ("free",), None),
        ("send", "send", "send"),
        "free is a commercial signal only",
    ),
    (
        ("valid", None, ("role",), None),
        ("review", "send", "send"),
        "mx does not weigh the role; strict looks at it",
    ),
    (
        ("valid", None, ("disposable",), None),
        ("drop", "drop", "review"),
        "mx does not weigh flags, a policy does",
    ),
    (
        ("valid", None, ("spamtrap", "role"), None),
        ("drop", "drop", "drop"),
        "the most serious flag decides",
    ),
    (
        ("valid", None, (), "ada@gmail.com"),
        ("review", "review", "send"),
        "a probable slip is looked at",
    ),
    (
        ("invalid", None, (), "ada@gmail.com"),
        ("review", "review", "review"),
        "a slip can be mended, so it is not dropped",
    ),
    (("invalid", "mailbox_not_found", (), None), ("drop", "drop", "drop"), "established"),
    (("risky", "role", ("role",), None), ("review", "review", "send"), "a person may read it"),
    (("risky", "catch_all", ("catch_all",), None), ("drop", "review", "send"), "nobody knows"),
    (
        ("risky", "disposable", ("disposable",), None),
        ("drop", "drop", "review"),
        "thrown away tomorrow",
    ),
    (("unknown", "greylisted", (), None), ("retry", "retry", "retry"), "later settles it"),
    (("unknown", "mailbox_full", (), None), ("retry", "review", "retry"), "exists, is full"),
    (
        ("unknown", "protected", ("protected",), None),
        ("retry", "review", "send"),
        "asking again from this host gives the same answer",
    ),
    (
        ("unknown", "made_up_by_a_service", (), None),
        ("retry", "retry", "retry"),
        "an open vocabulary",
    ),
    (("pending", None, (), None), ("unchecked",) * 3, "no check has reached the row yet"),
    (("error", None, (), None), ("unchecked",) * 3, "a technical failure is not a verdict"),
    (("missing", None, (), None), ("unchecked",) * 3, "no address"),
]


@each_row("at", range(3), ids=list(POLICIES))
def test_each_policy_does_what_the_table_says(at):
    out = mv.decide(verified([row for row, _, _ in TABLE]), "email", policy=list(POLICIES)[at])
    got = dict(zip((why for _, _, why in TABLE), out["email_action"], strict=True))
    assert got == {why: actions[at] for _, actions, why in TABLE}


@each_row("name", list(POLICIES))
def test_every_reason_has_an_action_and_invalid_is_never_sent(name):
    rows = [(str(PRECEDENCE[reason]), str(reason), (), None) for reason in Reason]
    out = mv.decide(verified(rows), "email", policy=name)
    for reason, action, why in zip(
        Reason, out["email_action"], out["email_action_why"], strict=True
    ):
        assert action in ("send", "review", "retry", "drop"), reason
        assert not (PRECEDENCE[reason] == "invalid" and action == "send"), reason
        assert REASON_MEANING[reason] in why, reason


ADVICE = [
    ("Ada <ada@firm.com>", "review", "would be ada@firm.com after cleaning"),
    ("ada@firm.com; bob@firm.com", "review", "holds 2 addresses: give each a row of its own"),
    ("ada@firm.com; bob lovelace@firm.com", "review", "not with certainty"),
    ("ada@gmail,com", "review", "did you mean ada@gmail.com?"),
    ('o"brien@firm.com', "review", "not with certainty"),
    ('"ada lovelace"@firm.com', "review", "not with certainty"),
    (["ada@firm.com"], "review", "would be ada@firm.com after cleaning"),
    (["ada@firm.com", 7], "review", "would be ada@firm.com after cleaning"),
    ({"email": "ada@firm.com"}, "review", "would be ada@firm.com after cleaning"),
    (b"\xe4@firm.com", "review", "not with certainty"),
    ("\ud800@firm.com", "review", "not with certainty"),
    ([7], "drop", "not a well-formed address"),
    ("ada@firm.com", "send", "no problem"),
    ("nobody", "drop", "not a well-formed address"),
    ("a@b@c", "drop", "not a well-formed address"),
    (7, "drop", "not a well-formed address"),
    (None, "unchecked", "no address"),
]


@each_row("name", list(POLICIES))
def test_a_malformed_cell_that_holds_an_address_is_never_dropped(name):
    frame = pd.DataFrame({"email": [cell for cell, *_ in ADVICE]}, index=[1] * len(ADVICE))
    out = mv.verify(frame, "email", validation_type="regex", clean=False)
    assert out["email_verdict"].isin(["invalid", "valid"]).sum() == len(ADVICE) - 1
    decided = mv.decide(out, "email", policy=name)
    for (cell, action, reason), got, why in zip(
        ADVICE, decided["email_action"], decided["email_action_why"], strict=True
    ):
        assert (cell, got) == (cell, action)
        assert reason in why
    review = sum(action == "review" for _, action, _ in ADVICE)
    assert len(mv.split(out, "email", policy=name).review) == review
    assert mv.report(out, "email", policy=name)._facts.counts.actions["review"] == review


def test_a_verdict_on_the_cleaned_address_is_not_reviewed_for_the_cell():
    out = mv.verify(
        pd.DataFrame({"email": ["<ada@firm.com>"]}), "email", validation_type="regex", clean=False
    )
    out["email_clean"] = "ada@firm.com"
    assert mv.decide(out, "email")["email_action"].tolist() == ["review"]
    out["email_why"], out["email_error_message"] = (
        "no_mx_record",
        "The domain firm.com does not exist.",
    )
    assert mv.decide(out, "email")["email_action"].tolist() == ["drop"]


def test_a_split_is_an_exact_partition_with_index_and_order_kept():
    out = verified([row for row, _, _ in TABLE], index=[7, 7, *range(len(TABLE) - 2)])
    parts = mv.split(out, "email")
    sizes = parts.counts()
    assert list(sizes.index) == list(ACTIONS)
    assert sizes.sum() == len(out)
    back = pd.concat([getattr(parts, name) for name in ACTIONS])
    assert sorted(back.index) == sorted(out.index)
    assert all(set(getattr(parts, name)["email_action"]) <= {name} for name in ACTIONS)
    assert "<td>" in parts._repr_html_()


def test_deciding_leaves_the_frame_given_alone_and_its_note_is_json():
    out = verified([TABLE[0][0]])
    before = out.copy(deep=True)
    decided = mv.decide(out, "email", policy="strict")
    pd.testing.assert_frame_equal(out, before)
    assert json.loads(json.dumps(decided.attrs))["mailverdict"]["email"]["policy"] == "strict"
    assert decided["email_action"].dtype == "category"
    again = mv.decide(decided, "email", policy="lenient")
    assert list(again.columns) == list(decided.columns)


def test_an_empty_frame_splits_into_empty_parts():
    out = mv.verify(pd.DataFrame({"email": []}), "email", validation_type="regex")
    assert mv.split(out, "email").counts().sum() == 0


@each_row(
    ("arguments", "message"),
    [
        ({"send": ["maybe"]}, "'maybe' is not a selector"),
        ({"drop": ["flag:bad"]}, "'flag:bad' is not a selector"),
        ({"send": ["valid"], "drop": ["valid"]}, "'valid' is given for"),
        ({"send": [3]}, "3 is not a selector"),
    ],
)
def test_a_policy_that_means_nothing_is_refused(arguments, message):
    with pytest.raises(mv.SettingsError, match=message):
        mv.Policy("mine", **arguments)


def test_an_unknown_policy_or_an_unverified_frame_is_refused():
    out = verified([TABLE[0][0]])
    with pytest.raises(mv.SettingsError, match="strict, balanced, lenient"):
        mv.decide(out, "email", policy="bold")
    with pytest.raises(mv.ColumnError, match="verify 'email' first"):
        mv.decide(pd.DataFrame({"email": ["a@b.example"]}), "email")


def test_cleaned_rows_that_are_all_valid_can_be_decided():
    out = mv.verify(["ada@firm.example", "Bo <bo@firm.example>"], validation_type="regex")
    frame = pd.concat(
        [pd.Series(["ada@firm.example", "Bo <bo@firm.example>"], name="email"), out], axis=1
    )
    assert mv.decide(frame, "email", prefix="")["action"].tolist() == ["send", "send"]


class TestFlagsThatCameBackAsNumbers:
    @pytest.fixture
    def out(self):
        return mv.verify(
            pd.DataFrame({"email": ["ada@gmail.com", "x@mailinator.com", None]}),
            "email",
            validation_type="regex",
        )

    @pytest.mark.parametrize("dtype", ["float64", "Int64", "Float64"])
    def test_zero_and_one_decide_as_false_and_true(self, out, dtype):
        flags = [name for name in out if out[name].dtype == "boolean"]
        back = out.astype(dict.fromkeys(flags, "Float64")).astype(dict.fromkeys(flags, dtype))
        assert mv.decide(back, "email")["email_action"].tolist() == ["send", "drop", "unchecked"]

    def test_other_numbers_are_refused(self, out):
        with pytest.raises(
            mv.errors.InputError,
            match="column 'email_disposable' holds '2', which verify never writes",
        ):
            mv.decide(out.assign(email_disposable=[0.0, 2.0, None]), "email")


@pytest.mark.slow
@each_row("policy", ["strict", "balanced", "lenient"])
def test_a_cell_whose_words_ask_for_no_mail_is_reviewed_with_these_words(policy):
    cells = [
        "ada@one.example - do not contact",
        "Ada <ada@one.example> (verstorben)",
        "(OLD) ada@one.example",
        "Ada <ada@one.example>",
    ]
    out = mv.verify(pd.DataFrame({"email": cells}), "email", validation_type="regex")
    decided = mv.decide(out, "email", policy=policy)
    assert decided["email_action"].tolist() == ["review"] * 3 + ["send"]
    assert decided["email_action_why"].tolist()[:3] == [
        "a remark in the cell: do not contact",
        "a remark in the cell: Ada (verstorben)",
        "a remark in the cell: OLD",
    ]
    assert mv.report(out, "email", policy=policy)._facts.counts.causes["remark"] == 3


def test_a_remark_does_not_keep_what_is_dropped():
    frame = pd.DataFrame({"email": ["ada@one.example - do not contact", "bo@two.example (old)"]})
    out = mv.verify(frame, "email", validation_type="regex")
    out["email_verdict"] = out["email_verdict"].mask(out.index == 1, "invalid")
    out["email_error_message"] = out["email_error_message"].mask(
        out.index == 1, "the domain does not exist"
    )
    out = mv.suppress(out, "email", ["ada@one.example"])
    assert mv.decide(out, "email")["email_action"].tolist() == ["drop", "drop"]


def test_of_several_flags_the_most_serious_one_counts():
    policy = mv.Policy("mine", review=["flag:spamtrap"], drop=["flag:role"])
    out = mv.decide(verified([("valid", None, ("role", "spamtrap"), None)]), "email", policy=policy)
    assert out[["email_action", "email_action_why"]].iloc[0].tolist() == [
        "review",
        "flagged spamtrap",
    ]


MIXED = {
    "email": [
        *(
            "ada@gmail.com",
            "<bo@one.example>",
            "do not contact: cy@one.example",
            "x@@y",
            None,
            "info@gmial.com",
        ),
        *("eve@mailinator.com", "kai@silent.example", "a@one.example; b@one.example"),
    ]
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
@pytest.mark.parametrize(
    ("validation_type", "clean", "make"),
    crossed(["regex", "mx", "smtp"], [True, False], [pd.DataFrame, pl.DataFrame, pa.table]),
)
def test_what_follows_from_the_short_set_is_what_follows_from_all_columns(
    validation_type, clean, make
):
    options = {
        "validation_type": validation_type,
        "clean": clean,
        "journal": None,
        "progress": False,
    }
    with mv.sandbox.World(dns_timeout=0.2) as world:
        short, core = (
            mv.verify(make(MIXED), "email", columns=columns, backend=world.backend, **options)
            for columns in ("short", "core")
        )
    for function in (mv.decide, mv.summary):
        found, wanted = (as_pandas(function(out, "email")) for out in (short, core))
        pd.testing.assert_frame_equal(found, wanted[list(found)])
    facts, wanted = (mv.report(out, "email")._facts for out in (short, core))
    assert (facts.counts.actions, facts.cleaning) == (wanted.counts.actions, wanted.cleaning)


def as_pandas(frame):
    return frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()


def test_spamtraps_that_the_short_set_does_not_show_are_warned_of():
    with mv.sandbox.World(dns_timeout=0.2) as world:
        with pytest.warns(
            UserWarning, match="1 address is of domains on a list of spamtraps: .* columns='core'"
        ):
            mv.verify(["a@trap.example", "a@gmail.com"], columns="short", backend=world.backend)
        mv.verify(["a@gmail.com"], columns="short", backend=world.backend)
        mv.verify(["a@trap.example"], backend=world.backend)


def test_a_flag_that_the_policy_names_has_to_be_there():
    out = mv.verify(
        pd.DataFrame({"email": ["ada@gmail.com"]}),
        "email",
        validation_type="regex",
        columns="short",
    )
    mine = mv.Policy("mine", drop=["invalid", "flag:catch_all"])
    with pytest.raises(mv.ColumnError, match="no column 'email_catch_all'"):
        mv.decide(out, "email", policy=mine)


@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
def test_a_policy_may_name_the_words_of_any_validation_type():
    with mv.sandbox.World(dns_timeout=0.2) as world:
        out = mv.verify(pd.DataFrame(MIXED), "email", backend=world.backend)
    mine = mv.Policy(
        "mine", review=["invalid:no_mx_record", "unknown:no_answer"], review_suggestions=False
    )
    decided = mv.decide(out, "email", policy=mine)
    assert set(decided["email_why"][decided["email_action"] == "review"].dropna()) >= {
        "no_mx_record",
        "no_answer",
    }
    assert "unknown: the DNS or another server that was asked gave no answer" in set(
        decided["email_action_why"]
    )


def test_an_address_that_stands_for_a_missing_one_is_for_review():
    cells = [
        "none@firm.com",
        "NoEmail@gmail.com",
        "xxx1@firm.com",
        "nina@none.com",
        "xavier@firm.com",
        "none@none",
    ]
    out = mv.verify(pd.DataFrame({"email": cells}), "email", validation_type="regex")
    for policy in ("balanced", "strict", "lenient"):
        decided = mv.decide(out, policy=policy)
        assert decided["email_action"].tolist()[:3] == ["review"] * 3
        assert (
            decided["email_action_why"].tolist()[:3] == ["the address stands for a missing one"] * 3
        )
        assert decided["email_action"].tolist()[3:5] == ["send", "send"]


# bucket, details, flags, what disposable_suspected says -> strict, balanced, lenient
SUSPECTED = [
    ("valid", None, ("disposable",), True, ("review", "review", "review")),
    ("valid", None, ("disposable",), False, ("drop", "drop", "review")),
    ("valid", None, ("disposable",), None, ("drop", "drop", "review")),
    ("risky", "disposable", ("disposable",), True, ("review", "review", "review")),
    ("risky", "disposable", ("disposable",), False, ("drop", "drop", "review")),
    # Other causes stand, and a suspicion alone decides nothing.
    ("invalid", "mailbox_not_found", ("disposable",), True, ("drop", "drop", "drop")),
    ("risky", "spamtrap", ("spamtrap", "disposable"), True, ("drop", "drop", "drop")),
    ("valid", None, ("spamtrap", "disposable"), True, ("drop", "drop", "drop")),
    ("valid", None, (), True, ("send", "send", "send")),
]


@pytest.mark.parametrize("place", range(3), ids=("strict", "balanced", "lenient"))
def test_a_listed_domain_whose_mail_server_contradicts_is_reviewed(place):
    policy = ("strict", "balanced", "lenient")[place]
    rows = [(bucket, details, flags, None) for bucket, details, flags, _, _ in SUSPECTED]
    suspected = pd.array([row[3] for row in SUSPECTED], dtype="boolean")
    out = verified(rows).assign(email_disposable_suspected=suspected)
    decided = mv.decide(out, "email", policy=policy)
    assert decided["email_action"].tolist() == [row[4][place] for row in SUSPECTED]


def test_a_policy_says_that_only_the_list_was_asked():
    rows = [("valid", None, ("disposable",), None)] * 2
    whys = mv.decide(verified(rows), "email")["email_action_why"]
    assert whys[0] == "flagged disposable (on the list; who runs its mail server was not looked at)"
    known = verified(rows).assign(email_disposable_suspected=pd.array([True, False], "boolean"))
    whys = mv.decide(known, "email")["email_action_why"]
    assert "the list may be wrong" in whys[0]
    assert whys[1] == "flagged disposable"
