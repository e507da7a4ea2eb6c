"""One count: page, report, workbook, command line and frame give the same figures on ten lists."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from python_calamine import CalamineWorkbook

import mailverdict as mv
from mailverdict.cli.terminal import main
from mailverdict.model.verification import Verification
from mailverdict.model.words import SEVERAL_ADDRESSES, count_of, reason_label
from mailverdict.theme import LABELS
from mailverdict.widgets.choices import Choices, decide
from mailverdict.widgets.state import AuditState
from tests.doubles.answering_backend import AnsweringBackend, valid
from tests.widgets.conftest import finished, ready, result_of, shown

PEOPLE = ["ada@example.org", "bob@example.org", "cy@firm.example", "di@firm.example"]
SUPPRESSED = "bob@example.org\nfirm.example\n"


def decide_some(audit: AuditState) -> None:
    """A typo is sent, a person is removed, a suggestion is chosen and not verified yet."""
    listing = audit.result.listing
    choices = Choices()
    for row, what in ((4, "send"), (0, "remove"), (5, "suggestion")):
        choices = decide(listing, [row], what, choices)
    listing.set_decided(choices)


# Name of a list: its cells, the switches of the step "Tidy" that are pressed, and what is decided by hand.
LISTS: dict[str, tuple[list[str | None], tuple[str, ...], Callable[[AuditState], None] | None]] = {
    "plain": (PEOPLE, (), None),
    "repeats": ([*PEOPLE, "ADA@example.org", "Ada@Example.ORG", "Bob <bob@example.org>"], (), None),
    "repeats taken out": (
        [*PEOPLE, "ADA@example.org", "<bob@example.org>", "bob@example.org (opted out)"],
        ("merge",),
        None,
    ),
    "one mailbox": (
        ["a.da@gmail.com", "ada+shop@googlemail.com", "ada@gmail.com", "eve@gmail.com"],
        (),
        None,
    ),
    "suppressed": ([*PEOPLE, "nobody", "BOB@example.org"], ("suppress",), None),
    "several addresses": ([*PEOPLE, "x@a.com; y@b.com", "x@a.com, z@c.com", "x@@y, z"], (), None),
    "not split": (
        [*PEOPLE, "x@a.com; y@b.com", "x@a.com, ada@example.org", "x@@y, z"],
        ("split",),
        None,
    ),
    "malformed": (
        [
            *PEOPLE,
            "e@@firm.example",
            "f@gmail,com",
            "g@x..y",
            "h.firm.example",
            "@",
            "i@",
            None,
            "N/A",
        ],
        (),
        None,
    ),
    "flags": (
        [
            *PEOPLE,
            "info@firm.example",
            "noreply@firm.example",
            "x@mailinator.com",
            "noemail@gmail.com",
        ],
        (),
        None,
    ),
    "decided": (
        [*PEOPLE, "eve@gmial.com", "fay@gmial.com", "gus@mailinator.com", "Eve@gmial.com"],
        (),
        decide_some,
    ),
}


class TableRows(HTMLParser):
    """The cells of all table rows of a page, as texts, and its whole text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def audited(name: str, **options: Any) -> AuditState:
    cells, switches, act = LISTS[name]
    audit = ready(pd.DataFrame({"mail": cells}), column="mail", validation_type="regex", **options)
    for switch in switches:
        if switch == "suppress":
            audit.suppress_pasted(SUPPRESSED)
        else:
            # The only one of them that is on before.
            audit.set_repair(switch, is_on=switch != "split")
        audit.work.wait(30)
    finished(audit)
    if act is not None:
        act(audit)
    return audit


def saved(audit: AuditState, which: str, kind: str) -> Path:
    files: list[Path] = []
    audit.on_file = lambda name, path, by: files.append(path)
    audit.download(which, kind)
    audit.work.wait(60)
    return files[0]


def figures_of(audit: AuditState) -> dict[str, Any]:
    """The figures that the page shows."""
    decide = shown(audit, "decide")
    facets = {
        each["id"]: {value["id"]: int(value["count"].replace(",", "")) for value in each["values"]}
        for each in decide["facets"]
    }
    return {
        "people": int(decide["headline"]),
        "text": f"{decide['headline_text']} {decide['headline_rows']}",
        "actions": {each["id"]: int(each["count"].partition(" ")[0]) for each in decide["actions"]},
        "verdicts": {each["id"]: int(each["count"]) for each in decide["picture"]},
        "reasons": facets.get("reason", {}),
        "domains": facets.get("domain", {}),
    }


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if at % 7 else ()) for at, name in enumerate(LISTS)],
)
def test_page_report_workbook_command_line_and_frame_have_the_same_figures(name, tmp_path, capsys):
    audit = audited(name)
    page, frame = figures_of(audit), result_of(audit)
    check_frame(page, frame)
    check_page(page, saved(audit, "report", "html").read_text(encoding="utf-8"))
    check_workbook(page, saved(audit, "report", "xlsx"))
    everything = saved(audit, "everything", "csv")
    run("report", everything, "--output", tmp_path / "again.xlsx", "--quiet")
    check_workbook(page, tmp_path / "again.xlsx")
    if LISTS[name][2] is None and "merge" not in LISTS[name][1]:
        check_command(page, name, tmp_path, capsys)


def run(*arguments: object) -> None:
    """Run a command that must succeed."""
    with pytest.raises(SystemExit) as left:
        main([str(each) for each in arguments])
    assert not left.value.code


def check_frame(page: dict[str, Any], frame: pd.DataFrame) -> None:
    decided = mv.decide(frame, "mail")
    assert decided["mail_action"].value_counts().to_dict() == page["actions"]
    sent = decided[decided["mail_action"] == "send"]
    identities = mv.duplicates(sent[["mail_clean"]], "mail_clean")["mail_clean_identity"]
    assert identities.nunique() == page["people"]
    rows = mv.summary(frame, "mail")["rows"].to_dict()
    assert {bucket: count for bucket, count in rows.items() if count} == page["verdicts"]
    domains = mv.breakdown(frame, "domain", column="mail")["rows"].drop(
        "(missing)", errors="ignore"
    )
    assert domains.to_dict() == page["domains"]
    assert "" not in page["domains"]


def check_page(page: dict[str, Any], text: str) -> None:
    read = TableRows(text)
    sent, rows = page["actions"]["send"], sum(page["actions"].values())
    who = "1 person" if page["people"] == 1 else f"{page['people']} people"
    assert f"{who} in {sent} of {rows} rows" in read.text
    assert f"be mailed in {sent} of {rows} rows" in page["text"]

    def has(label: str, count: int) -> bool:
        return any(row[0].startswith(label) and str(count) in row[1:] for row in read.rows if row)

    assert all(has(LABELS[action], count) for action, count in page["actions"].items())
    assert all(has(reason_label(reason), count) for reason, count in page["reasons"].items())
    assert all(has(domain, count) for domain, count in page["domains"].items())


def check_workbook(page: dict[str, Any], path: Path) -> None:
    book = CalamineWorkbook.from_path(str(path))
    rows = book.get_sheet_by_name("Summary").to_python()

    def has(*cells: object) -> bool:
        return any(tuple(row[: len(cells)]) == cells for row in rows)

    assert has("People who can be mailed", page["people"])
    assert has("Rows that can be mailed", page["actions"]["send"])
    assert all(has(LABELS[action], count) for action, count in page["actions"].items())
    assert all(has(domain, count) for domain, count in page["domains"].items())
    found: dict[str, int] = {}
    for row in (
        rows[1 + [row[0] for row in rows].index("Why not the others") :] if page["reasons"] else ()
    ):
        if not row[0]:
            break
        if isinstance(row[2], float):
            found[row[0]] = found.get(row[0], 0) + int(row[2])
    assert found == {reason_label(reason): count for reason, count in page["reasons"].items()}
    for action, count in page["actions"].items():
        assert len(book.get_sheet_by_name(LABELS[action]).to_python()) in (
            {1 + count} if count else {0, 1}
        )


def check_command(page: dict[str, Any], name: str, folder: Path, capsys: Any) -> None:
    cells, switches, _ = LISTS[name]
    pd.DataFrame({"mail": cells}).to_csv(folder / "list.csv", index=False)
    (folder / "suppressed.txt").write_text(SUPPRESSED)
    options = [] if "split" in switches else ["--explode"]
    options += ["--suppress", folder / "suppressed.txt"] if "suppress" in switches else []
    command = [
        "verify",
        folder / "list.csv",
        "--column",
        "mail",
        "--type",
        "regex",
        "--json",
        "--quiet",
    ]
    capsys.readouterr()
    run(*command, *options, "--output", folder / "out.csv", "--report", folder / "report.xlsx")
    found = json.loads(capsys.readouterr().out)
    assert (found["people"], found["actions"]) == (page["people"], page["actions"])
    verdicts = Counter(page["verdicts"])
    # The record for programs counts by verdict alone.
    verdicts["unknown"] += verdicts.pop(SEVERAL_ADDRESSES, 0)
    assert {bucket: found[bucket] for bucket in verdicts} == verdicts
    check_workbook(page, folder / "report.xlsx")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    LISTS,
)
def test_each_policy_does_what_it_says_before_it_is_chosen(name):
    mine = mv.Policy("mine", send=["valid", "invalid"], drop=[])
    audit = audited(name, policy=mine)
    said = {each["id"]: each["text"] for each in shown(audit, "decide")["policies"]}
    assert list(said) == ["strict", "balanced", "lenient", "mine"]
    for policy, text in said.items():
        audit.set_policy(policy)
        page = figures_of(audit)
        send, *others = page["actions"]
        people = f"{count_of(page['people'], 'person', 'people')} ({count_of(page['actions'][send], 'row')})"
        counts = [
            f"{LABELS[each]}: {page['actions'][each]}" for each in others if page["actions"][each]
        ]
        assert text.startswith(" · ".join([f"{LABELS[send]}: {people}", *counts]) + ".")


def test_the_words_of_a_policy_and_an_action_follow_the_check_and_the_result():
    mails = [
        "ada@example.org",
        "info@firm.example",
        "noreply@firm.example",
        "bob@gmial.com",
        "cy@mailinator.com",
    ]
    audit = finished(ready(pd.DataFrame({"mail": mails}), validation_type="regex"))
    decide = shown(audit, "decide")
    means = {each["id"]: each["means"] for each in decide["actions"]}
    assert means["send"].endswith("Of these, 2 rows are shared mailboxes such as info@."), (
        "no check told them apart"
    )
    assert means["review"].endswith("Likely typo: 1.")
    texts = {each["id"]: (each["label"], each["text"]) for each in decide["policies"]}
    assert texts["balanced"][1] == "Send list: 3 people (3 rows) · To review: 1 · Remove: 1."
    assert texts["strict"] == (
        "Strict: review shared mailboxes, too",
        "Send list: 1 person (1 row) · To review: 3 · Remove: 1. "
        "Moves 2 rows from “Send list” to “To review” (Shared mailbox such as info@).",
    )
    assert texts["lenient"][0] == "Lenient: do not review likely typos"
    assert "1 row from “To review” to “Send list” (Likely typo)" in texts["lenient"][1]

    def role(email: str, validation_type: str) -> Verification:
        return replace(valid(email, validation_type), result="risky", reasons=("role",), role=True)

    backend = AnsweringBackend({"info": role})
    checked = finished(
        ready(pd.DataFrame({"mail": mails}), backend, validation_type="smtp", journal=None)
    )
    policies = {each["id"]: each for each in shown(checked, "decide")["policies"]}
    assert policies["lenient"]["label"] == "Lenient: send shared mailboxes, too"
    assert (
        "1 row from “To review” to “Send list” (Shared mailbox such as info@)"
        in policies["lenient"]["text"]
    )
