"""The answers of APIs as JSON: each in the form that its service documents, alone and in bulk."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.frames.verifier_files import find_results, row_of
from tests.doubles.tables import each_row

ADA, BO = "ada@firm.example", "bo@firm.example"


def read(folder, document, **options):
    path = folder / "answer.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return mv.read_verdicts(path, **options)


def said(found):
    """The address, verdict and reason of each row; None where there is nothing."""
    rows = found[["email", "email_verdict", "email_why"]].astype(object)
    return list(rows.where(rows.notna(), None).itertuples(index=False, name=None))


ZEROBOUNCE = {
    "address": ADA,
    "status": "invalid",
    "sub_status": "mailbox_not_found",
    "free_email": False,
    "did_you_mean": None,
    "smtp_provider": "",
    "processed_at": "2026-03-03 09:15:00.592",
}
SENDGRID = {
    "email": ADA,
    "verdict": "Valid",
    "score": 0.85,
    "local": "ada",
    "host": "firm.example",
    "suggestion": "firm.test",
    "checks": {
        "domain": {"has_valid_address_syntax": True, "has_mx_or_a_record": True},
        "local_part": {"is_suspected_role_address": False},
        "additional": {"has_known_bounces": False, "has_suspected_bounces": False},
    },
}
MAILGUN = {
    "address": ADA,
    "is_disposable_address": False,
    "is_role_address": False,
    "reason": [],
    "result": "deliverable",
    "risk": "low",
}
NEVERBOUNCE = {
    "data": {"email": ADA, "id": "1"},
    "verification": {
        "result": "invalid",
        "flags": ["has_dns", "bad_syntax"],
        "suggested_correction": "",
        "address_info": {"original_email": ADA, "normalized_email": ADA},
    },
}
CLEAROUT = {
    "email_address": ADA,
    "status": "invalid",
    "verified_on": "2025-09-01T04:31:20.042Z",
    "sub_status": {"code": 406, "desc": "Mailbox was not found"},
    "safe_to_send": "no",
    "disposable": "no",
    "free": "no",
    "role": "no",
    "suggested_email_address": "",
}
ABSTRACT = {
    "email_address": ADA,
    "email_deliverability": {
        "status": "undeliverable",
        "status_detail": "full_mailbox",
        "is_format_valid": True,
        "is_smtp_valid": False,
        "is_mx_valid": True,
        "mx_records": ["mx.firm.example"],
    },
    "email_quality": {"score": 0.1, "is_disposable": False, "is_role": False},
    "email_breaches": {"breached_domains": [{"domain": "shop.example"}]},
}
VERIFALIA = {"inputData": ADA, "classification": "Deliverable", "status": "Success"}
TRUEMAIL = {
    "date": "2026-03-03 09:15:00 +0000",
    "email": ADA,
    "validation_type": "smtp",
    "success": False,
    "errors": {"smtp": "smtp error"},
    "smtp_debug": [{"mail_host": "192.0.2.1"}],
}
EXPERIAN = {"email": ADA, "confidence": "unknown", "verbose_output": "timeout", "did_you_mean": []}
HUNTER = {
    "status": "valid",
    "email": ADA,
    "regexp": True,
    "gibberish": False,
    "sources": [{"domain": "firm.example", "uri": "https://firm.example/team"}],
}
REOON = {"email": ADA, "status": "safe", "overall_score": 98, "is_safe_to_send": True}
DEBOUNCE = {"email": ADA, "code": "6", "reason": "Bounce", "send_transactional": "0"}
LOQATE = {"ResponseCode": "Valid_CatchAll", "EmailAddress": ADA, "IsDisposableOrTemporary": False}


@each_row(
    ("answer", "service", "verdict", "why"),
    [
        (ZEROBOUNCE, "ZeroBounce", "invalid", "mailbox_not_found"),
        ({"email_batch": [ZEROBOUNCE], "errors": []}, "ZeroBounce", "invalid", "mailbox_not_found"),
        ({"status": "success", "results": [NEVERBOUNCE]}, "NeverBounce", "invalid", "syntax_error"),
        ({"status": "success", "data": CLEAROUT}, "Clearout", "invalid", "mailbox_not_found"),
        (MAILGUN, "Mailgun", "valid", None),
        ({"items": [MAILGUN | {"reason": ["no_mx"], "result": "undeliverable"}]}, "Mailgun", "invalid", "no_mx_record"),
        ({"result": SENDGRID}, "SendGrid", "valid", None),
        (ABSTRACT, "Abstract", "unknown", "mailbox_full"),
        ({"overview": {"status": "Completed"}, "entries": {"data": [VERIFALIA]}}, "Verifalia", "valid", None),
        (TRUEMAIL, "Truemail", "unknown", "inconclusive"),
        ({"result": EXPERIAN, "metadata": {}}, "Experian", "unknown", "timeout"),
        ({"data": HUNTER, "meta": {"params": {"email": ADA}}}, "Hunter", "valid", None),
        ({"status": "completed", "results": {ADA: REOON}}, "Reoon", "valid", None),
        ({"debounce": DEBOUNCE, "success": "1"}, "DeBounce", "invalid", "bounce"),
        ({"Items": [LOQATE]}, "Loqate", "risky", "catch_all"),
    ],
)  # fmt: skip
def test_an_answer_is_read_in_the_form_of_its_service(
    tmp_path_factory, answer, service, verdict, why
):
    found = read(tmp_path_factory.mktemp("answer"), answer)
    assert said(found) == [(ADA, verdict, why)]
    assert found["email_source"].tolist() == [service]


def test_the_code_of_a_cause_decides_where_its_text_is_another(tmp_path):
    def answer(code):
        return {"data": CLEAROUT | {"sub_status": {"code": code, "desc": "another text"}}}

    found = read(tmp_path, "\n".join(json.dumps(answer(code)) for code in (413, 999, 602)))
    assert [row[1:] for row in said(found)] == [
        ("unknown", "mailbox_full"),
        ("invalid", "another_text"),
        (None, None),
    ]


def test_a_list_of_texts_is_one_cell_and_one_address_is_one_row(tmp_path):
    answers = [
        MAILGUN | {"reason": ["immature_domain", "catch_all"]},
        MAILGUN | {"address": BO, "reason": []},
    ]
    assert said(read(tmp_path, answers)) == [(ADA, "risky", "catch_all"), (BO, "valid", None)]


def test_the_address_may_be_in_another_member_of_each_answer(tmp_path):
    verification = {"result": "valid", "flags": []}
    without_info = {"data": {"email": BO}, "verification": verification}
    found = read(tmp_path, {"results": [NEVERBOUNCE, without_info]})
    assert said(found) == [(ADA, "invalid", "syntax_error"), (BO, "valid", None)]


def test_the_time_and_the_suggestion_of_an_answer_are_kept(tmp_path):
    found = read(tmp_path, [ZEROBOUNCE])
    assert str(found["email_checked_at"][0]) == "2026-03-03 09:15:00.592000+00:00"
    assert read(tmp_path, {"result": SENDGRID})["email_suggestion"].tolist() == ["ada@firm.test"]
    several = EXPERIAN | {"did_you_mean": [BO, "cy@firm.example"]}
    assert read(tmp_path, {"result": several})["email_suggestion"].tolist() == [BO]


def test_an_answer_that_names_no_address_is_refused(tmp_path):
    answer = {"status": "success", "result": "valid", "flags": [], "suggested_correction": ""}
    with pytest.raises(mv.ColumnError, match="no column looks like e-mail addresses"):
        read(tmp_path, answer)


def test_a_member_around_a_list_is_not_of_its_addresses(tmp_path):
    document = {
        "email": "owner@shop.example",
        "items": [{key: MAILGUN[key] for key in MAILGUN if key != "address"}],
    }
    with pytest.raises(mv.ColumnError, match="no column looks like e-mail addresses"):
        read(tmp_path, document)


def test_columns_name_members_at_any_depth(tmp_path):
    row = {"contact": {"mail": ADA}, "outcome": {"code": "A1"}}
    columns = {"email": "contact.mail", "status": "outcome.code"}
    for document in (row, [row], {"page": 1, "rows": [row]}, {"rows": {"1": row}}):
        found = read(tmp_path, document, columns=columns, outcomes={"A1": "valid"})
        assert said(found) == [(ADA, "valid", None)]


def test_json_of_nobody_names_its_members(tmp_path):
    document = {"rows": [{"contact": {"mail": ADA}, "outcome": {"status": "A1"}}]}
    with pytest.raises(
        mv.ColumnError, match=r"\{'email': 'contact.mail', 'status': 'outcome.status'\}"
    ):
        read(tmp_path, document)


def test_json_of_another_verifier_is_read_by_names_that_mean_it(tmp_path):
    row = {"email": ADA, "result": "deliverable", "reason": "accepted_email", "accept_all": False}
    with pytest.warns(UserWarning, match="as the export of another verifier"):
        found = read(tmp_path, {"results": [row]})
    assert said(found) == [(ADA, "valid", None)]


@each_row("text", ['{"a": ', "[1, 2]", '{"a": 1}', "[" * 5_000])
def test_other_json_is_an_error_that_names_the_file(tmp_path_factory, text):
    with pytest.raises((mv.InputError, mv.ColumnError), match=r"answer\.json"):
        read(tmp_path_factory.mktemp("answer"), text)


def test_results_of_several_services_or_forms_are_refused(tmp_path):
    with pytest.raises(mv.InputError, match=r"of Mailgun \('result'\) and Hunter \('status'\)"):
        read(tmp_path, [MAILGUN, HUNTER])
    single = {"result": "valid", "flags": [], "suggested_correction": "", "email": BO}
    with pytest.raises(mv.InputError, match=r"of NeverBounce \(.*\) and NeverBounce \('result'\)"):
        read(tmp_path, [NEVERBOUNCE, single])


def test_deep_and_wide_objects_are_bounded():
    deep = {"a": {}}
    at = deep["a"]
    for _ in range(300):
        at["a"] = {"b": 1}
        at = at["a"]
    assert max(name.count(".") for name in row_of(deep)) < 20
    assert len(row_of({str(number): number for number in range(5_000)})) < 1_000


def test_items_without_results_are_counted(tmp_path):
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"items": [MAILGUN, {"error": "no credits"}]}))
    finder = find_results(path, lambda names: "Mailgun" if "risk" in names else "")
    [remark] = finder.remarks(path)
    assert remark.endswith("1 object of 2 without results of a known form")
    assert [row["address"] for row in finder.results] == [ADA]


def test_of_several_sheets_the_one_that_is_read_is_named_with_the_others(tmp_path):
    path = tmp_path / "export.xlsx"
    columns = {"address": ["ada@firm.example"], "result": ["valid"], "free": ["false"]}
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"note": ["of May"]}).to_excel(book, sheet_name="Notes", index=False)
        for name in ("May", "June"):
            pd.DataFrame(columns).to_excel(book, sheet_name=name, index=False)
    given = {"columns": {"email": "address", "status": "result"}}
    with pytest.warns(UserWarning, match="only sheet") as caught:
        found = mv.read_verdicts(path, **given)
    assert len(found) == 1
    assert [str(each.message).removeprefix(f"{path}: ") for each in caught] == [
        "only sheet 'May' (the first with a column of addresses) is read, and not 'Notes', "
        "'June'; another is given as sheet= of read_verdicts, or saved as a file of its own"
    ]
    assert len(mv.read_verdicts(path, **given, sheet="June")) == 1


@pytest.mark.parametrize("line", ['{"x": oops}', '{"address": ', '"' + "x" * 1000])
def test_a_line_that_is_not_json_costs_itself_only(tmp_path, line):
    lines = [json.dumps(ZEROBOUNCE), line, json.dumps({**ZEROBOUNCE, "address": BO})]
    with pytest.warns(UserWarning, match="1 line could not be read: line 2: not valid JSON"):
        found = read(tmp_path, "\n".join(lines))
    assert [address for address, *_ in said(found)] == [ADA, BO]


def test_a_first_line_that_is_not_json_is_an_error(tmp_path):
    with pytest.raises(mv.InputError, match="line 1: not valid JSON"):
        read(tmp_path, '{"address": oops}\n' + json.dumps(ZEROBOUNCE))


@pytest.mark.filterwarnings("ignore:.*is read as the export of another verifier")
@pytest.mark.parametrize("is_list", [True, False])
def test_objects_without_an_address_are_counted(tmp_path, is_list):
    rows = [{"address": address, "status": "valid", "sub_status": ""} for address in (ADA, BO)]
    rows += [{"address": 5, "status": "valid", "sub_status": ""}, None]
    document = rows if is_list else "\n".join(map(json.dumps, rows))
    with pytest.warns(UserWarning, match="2 objects without an address left out"):
        found = read(tmp_path, document)
    assert [address for address, *_ in said(found)] == [ADA, BO]
