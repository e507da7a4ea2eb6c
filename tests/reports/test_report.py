"""The report: right numbers, self-contained, nothing executes, a workbook without formulas."""

import html
import re
import shlex
from datetime import UTC, date, datetime
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.cli import main
from mailverdict.errors import ColumnError, InputError, SettingsError
from mailverdict.frames.policy import find_policy, read_decided
from mailverdict.frames.results import Results
from mailverdict.model.section import Section
from mailverdict.model.words import MEANING, NO_ANSWER, REASON_LABELS, Reason
from mailverdict.reports.counts import Counts
from mailverdict.reports.facts import RETRY_WHEN, ReportFacts
from mailverdict.reports.page import digest, render
from mailverdict.reports.wording import capitalize
from mailverdict.reports.workbook import write_workbook
from mailverdict.runs.retry import ASK_AGAIN
from mailverdict.sandbox import World
from mailverdict.verdicts import PRECEDENCE
from tests.doubles.simulated_origins import simulated_list
from tests.doubles.tables import each_row
from tests.doubles.workbooks import MAIN, add_sheet, cells_of, parts_of, sheet_xml


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_counted(tmp_path):
    path = tmp_path / "report.html"
    path.touch(0o444)
    with pytest.raises(InputError, match=r"report\.html cannot be written: it is read-only"):
        mv.report(None, "email", path)
    with pytest.raises(InputError, match="cannot be written: there is no directory"):
        mv.report(None, "email", tmp_path / "nowhere" / "report.html")


def test_a_path_in_place_of_the_column_is_named():
    frame = mv.verify(pd.DataFrame({"email": ["ada@x.org"]}), "email", validation_type="regex")
    with pytest.raises(SettingsError, match=r"to save the report, give path='list\.html'"):
        mv.report(frame, "list.html")


HOSTILE = '<script>alert("x")</script>@"><img src=x onerror=alert(1)>.example'


def run_cli(*arguments):
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    return left.value.code or 0


def facts_of(out, policy):
    return mv.report(out, "email", policy=policy)._facts


@pytest.fixture(scope="module")
def out():
    cells = [
        "ada@gmail.com",
        "bob@gmial.com",
        "info@one.example",
        "x@gone.example",
        "=cmd|' /C calc'!A0",
        HOSTILE,
        None,
    ]
    with World() as world:
        return mv.verify(
            pd.DataFrame({"email": cells, "note": ["=1+1", "<b>", "-", "", "@x", "\t1", "+2"]}),
            "email",
            backend=world.backend,
            columns="all",
        )


class Outside(HTMLParser):
    """Collects what would be fetched or executed."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.found += [tag] if tag in ("script", "iframe", "object", "link", "img") else []
        self.found += [
            f"{tag} {name}"
            for name in values
            if name.startswith("on") or name in ("src", "href", "style")
        ]


def outside(page):
    seen = Outside()
    seen.feed(page)
    return seen.found


def test_the_page_fetches_nothing_and_executes_its_own_script_alone(out):
    page = mv.report(out, "email", name=HOSTILE).to_html()
    assert outside(page) == ["script"]
    assert "http" not in re.sub(r'http-equiv="[^"]*"', "", page)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        content = re.search(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)[1]
        assert f"{kind}-src '{digest(content)}'" in policy


@each_row("most", [None, 1])
def test_every_text_of_a_section_is_escaped(most):
    kinds = ("text", "words", "data", "code")
    columns = [*((HOSTILE, kind) for kind in kinds), (HOSTILE, "bars")]
    rows = [(*[HOSTILE] * len(kinds), {"valid": 1, "risky": 2})] * 2
    section = Section(HOSTILE, columns, rows, said=HOSTILE, notes=[HOSTILE], command=HOSTILE)
    line = Section(HOSTILE, [(HOSTILE, "text"), ("Rows", "number")], [(HOSTILE, 1)], is_line=True)
    page = render(section, most) + render(line, most)
    assert outside(page) == []
    # Title and name, heads, cells, ...
    assert page.count(html.escape(HOSTILE)) == 2 + 5 + (most or 2) * 4 + 3 + 2


def test_a_text_that_turns_the_direction_is_shown_as_such_and_a_column_stands_for_itself(tmp_path):
    turned = "ada@\u202emoc.liamg.example"
    frame = pd.DataFrame({"\u05d0\u05d1": [turned, "bo@firm.example"]})
    out = mv.verify(frame, "\u05d0\u05d1", validation_type="regex")
    made = mv.report(out, path=tmp_path / "r.xlsx", name="spring\u202efdp.csv")
    for page in (made.to_html(), made._repr_html_()):
        assert "\u202e" not in page
        assert "E-mail audit of spring⟨U+202E⟩fdp.csv</h1>" in page
        assert "column <bdi>\u05d0\u05d1</bdi> ·" in page
    summary = cells_of(tmp_path / "r.xlsx")["Summary"]
    assert summary[0][0] == "E-mail audit of spring⟨U+202E⟩fdp.csv"
    assert "\u202e" not in str(summary)


def test_inside_a_notebook_nothing_executes(out):
    assert outside(mv.report(out, "email", name=HOSTILE)._repr_html_()) == []


def test_its_numbers_are_those_of_summary_and_split(out):
    facts = facts_of(out, "strict")
    assert facts.counts.buckets == mv.summary(out, "email")["rows"].to_dict()
    assert facts.counts.actions == mv.split(out, "email", policy="strict").counts().to_dict()
    assert facts.counts.mailable == facts.counts.actions["send"] / 7
    assert facts.typos == [("gmial.com", "gmail.com", 1)]
    assert (
        "Domain can receive mail: valid means that the domain can receive mail, not that the mailbox exists."
        in (mv.report(out, "email").to_html())
    )


def test_an_error_outside_the_domain_is_shown_with_the_whole_address():
    cells = ["i.pinewick@@firm.example", "ada@firm,example", "ada@gmial.com", "bob@gmial.com"]
    checked = mv.verify(pd.DataFrame({"email": cells}), "email", validation_type="regex")
    facts = facts_of(checked, "balanced")
    assert sorted(facts.typos) == [
        ("firm,example", "firm.example", 1),
        ("gmial.com", "gmail.com", 2),
        ("i.pinewick@@firm.example", "i.pinewick@firm.example", 1),
    ]


MESSY = [
    "Ada <ada@firm.example>",
    "bo@firm.example",
    "cy@firm.example; di@firm.example",
    "bo@FIRM.example",
    "nobody",
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
def test_it_says_what_cleaning_would_save_and_counts_cleaned_addresses():
    frame = pd.DataFrame({"email": MESSY})
    as_they_stand = mv.verify(frame, "email", validation_type="regex", clean=False)
    page = mv.report(as_they_stand, "email").to_html()
    assert "Clean the list first" in page
    facts = facts_of(as_they_stand, "balanced")
    assert (facts.counts.causes["clean"], facts.counts.causes["explode"]) == (1, 1)
    cleaned = mv.verify(frame, "email", validation_type="regex")
    facts = facts_of(cleaned, "balanced")
    assert (
        facts.counts.causes["clean"],
        facts.counts.causes["explode"],
        facts.counts.actions["send"],
    ) == (0, 1, 3)
    assert facts.cleaning.rows == 2
    assert "2 cells were cleaned first" in mv.report(cleaned, "email").to_html()
    assert mv.summary(cleaned, "email").loc["valid", ["rows", "addresses"]].tolist() == [3, 2]
    assert mv.breakdown(cleaned, "domain").loc["firm.example", "rows"] == 4


@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
def test_unknown_in_the_picture_is_the_number_of_the_summary():
    cells = ["ada@firm.example", "bo@firm.example; cy@firm.example"]
    out = mv.verify(pd.DataFrame({"email": cells}), "email", validation_type="regex")
    rows = mv.summary(out)["rows"]
    assert rows[["unknown", "several_addresses"]].tolist() == [0, 1]
    page = mv.report(out).to_html()
    assert "Unknown <b>0</b>" in page
    assert "Not checked <b>1</b>" in page
    assert "several addresses, no check has reached it" in page


@pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
def test_before_and_after_cleaning_counts_what_would_have_been_lost():
    frame = pd.DataFrame({"email": [*MESSY, " ed@firm.example", "E-Mail: flo@firm.example;", None]})
    facts = facts_of(mv.verify(frame, "email", validation_type="regex"), "balanced")
    found = facts.cleaning
    # Blanks and case are not faults.
    assert (found.rows, found.rescued, found.sendable) == (
        4,
        2,
        2,
    )
    assert {name: count for name, _, count in found.repairs} == {
        "unwrapped": 1,
        "case": 1,
        "blanks": 1,
        "label": 1,
    }
    assert facts.counts.actions["send"] == 5
    unchanged = mv.verify(
        pd.DataFrame({"email": ["ada@firm.example"]}), "email", validation_type="regex"
    )
    assert facts_of(unchanged, "balanced").cleaning is None


def audit(cells, kind=None, **options):
    made = mv.verify(pd.DataFrame({"email": cells}), "email", validation_type="regex", **options)
    return made if kind is None else kind(made)


OLD, NEW = (
    ["a@x.example", "b@x.example", "c@x.example", "c@x.example"],
    ["a@x.example", "b@x.example", "d@x.example", "e"],
)


class TestTrend:
    def older(self):
        old = audit(OLD, columns="all")
        old.loc[0, "email_verdict"] = "unknown"
        old["email_checked_at"] = pd.Timestamp("2026-10-03 12:00", tz="UTC")
        return old

    def test_it_compares_rows_by_verdict_and_addresses_by_what_changed(self):
        trend = mv.report(audit(NEW), "email", earlier=self.older())._facts.trend
        assert (trend.added, trend.removed, trend.changed) == (2, 1, 1)
        assert trend.moves == [("unknown", "valid", 1)]
        assert trend.counts.buckets == mv.summary(self.older(), "email")["rows"].to_dict()
        assert trend.counts.mailable == 0.75
        assert trend.counts.checked == (date(2026, 10, 3), date(2026, 10, 3))

    @pytest.mark.slow
    @pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
    def test_the_earlier_audit_may_be_a_file(self, tmp_path, ending):
        old, path = self.older(), tmp_path / f"old.{ending}"
        if ending == "xlsx":
            old["email_checked_at"] = old["email_checked_at"].dt.tz_localize(None)
        write = {"csv": old.to_csv, "parquet": old.to_parquet, "xlsx": old.to_excel}[ending]
        write(path, index=False)
        page = mv.report(audit(NEW), "email", earlier=path).to_html()
        assert "2 addresses are new, 1 left the list, and 1 address has another verdict." in page
        assert "That is as many as in the earlier audit of 2026-10-03 (75.0%)." in page

    def test_the_earlier_audit_is_not_a_report_of_which_one_sheet_would_be_read(self, tmp_path):
        path = tmp_path / "old.xlsx"
        mv.report(self.older(), "email", path)
        with pytest.raises(
            mv.InputError, match=r"old\.xlsx is a report, whose rows are on several"
        ):
            mv.report(audit(NEW), "email", earlier=path)

    @pytest.mark.slow
    @each_row(
        ("moment", "said"),
        [
            ("2026-10-03 12:00:00Z", "(2026-10-03)"),
            (pd.Timestamp("2026-10-03 12:00"), "(2026-10-03)"),
            (1791028800000, "(day not recorded)"),
            ("last spring", "(day not recorded)"),
            (3, "(day not recorded)"),
            (None, "(day not recorded)"),
        ],
    )
    def test_times_that_another_tool_read_are_days_and_a_column_of_the_user_is_not(
        self, moment, said
    ):
        old = self.older().drop(columns="email_checked_at")
        old["email_checked_at"] = [moment] * len(old)
        assert (
            f"Since the earlier audit {said}"
            in mv.report(audit(NEW), "email", earlier=old).to_html()
        )

    def test_it_may_be_another_kind_of_frame(self):
        old = pa.Table.from_pandas(self.older(), preserve_index=False)
        assert "2 addresses are new" in mv.report(audit(NEW), "email", earlier=old).to_html()

    @pytest.mark.parametrize(
        ("earlier", "error", "message"),
        [
            (pd.DataFrame({"email": OLD}), mv.ColumnError, "earlier: no column 'email_verdict'"),
            (pd.DataFrame({"mail": OLD}), mv.ColumnError, "earlier: no column 'email'"),
            ("absent.csv", mv.InputError, "earlier: absent.csv: no such file"),
            (pd.Series(OLD), mv.errors.MailVerdictError, "earlier: "),
            (3, mv.errors.MailVerdictError, "earlier: "),
        ],
    )
    def test_what_is_not_an_audit_is_refused_before_a_report_is_made(
        self, earlier, error, message, tmp_path
    ):
        with pytest.raises(error, match=message):
            mv.report(audit(NEW), "email", tmp_path / "r.html", earlier=earlier)
        assert not list(tmp_path.iterdir())


def test_it_names_the_list_the_check_and_the_day(out):
    page = mv.report(out, "email", name="spring <list>.csv").to_html()
    assert "<h1>E-mail audit of spring &lt;list&gt;.csv</h1>" in page
    known = "column <bdi>email</bdi> · 7 rows · 4 distinct addresses · check: Domain can receive mail, by the sandbox"
    assert f'{known} (made-up servers) · <span class="mv-day">checked 20' in page
    assert "The answers come from the sandbox (made-up servers)." in page
    assert "<title>E-mail audit of email</title>" in mv.report(out, "email").to_html()


def test_flags_have_the_words_of_the_page_and_no_meaning_repeats_its_label():
    made = audit(["info@firm.example", "ada@gmail.com", "bob@gmail.com", "nobody"])
    assert (
        "whatever their verdict. Shared mailbox such as info@: 1; Free mail provider: 2."
        in mv.report(made, "email").to_html()
    )
    for reason, label in REASON_LABELS.items():
        assert capitalize(MEANING[reason]) != label, reason


def test_who_answered_is_said_in_plain_words():
    made = audit(["a@x.example", "b@x.example", "c@x.example", "d@x.example"], columns="all")
    made["email_source"] = ["local", "journal", "local", "remote"]
    said = "2 checked by this computer, 1 known from an earlier run, 1 checked by the service."
    assert f"Rows by the source of their answer: {said}" in mv.report(made, "email").to_html()
    assert "known from an earlier run" in repr(mv.plan(["a@x.example"], validation_type="regex"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "source", "how", "command"),
    [
        (
            "smtp",
            "local",
            "Clear answers are kept, by default for 30 days",
            "validation_type='smtp', refresh={'unknown'})",
        ),
        (
            "mx",
            "remote",
            "Clear answers are kept",
            "validation_type='mx', backend=backend, refresh={'unknown'})",
        ),
        (
            "mx",
            "local",
            "The answers of this check are not kept",
            "mailverdict.verify(df, 'email', validation_type='mx')",
        ),
    ],
)
def test_it_says_how_rows_without_a_clear_answer_are_verified_again(
    kind, source, how, command, tmp_path
):
    made = audit(["a@x.example", "b@x.example"], columns="all")
    made["email_validation_type"], made["email_source"] = kind, source
    assert "Verify again" not in mv.report(made, "email").to_html()
    made.loc[0, "email_verdict"] = "unknown"
    page = mv.report(made, "email", tmp_path / "r.xlsx").to_html()
    assert how in page
    assert "the 1 row without a clear answer" in page
    assert command in html.unescape(page)
    cells = cells_of(tmp_path / "r.xlsx")["Summary"]
    assert any(command in str(first) and str(second).startswith(how) for first, second, *_ in cells)


@pytest.mark.slow
def test_the_command_to_verify_again_has_the_whole_label_for_a_shell(tmp_path):
    label = "E-Mail  (please don't share) " + "x" * 200
    frame = pd.DataFrame({label: ["a@x.example", "b@x.example"]})
    out = mv.verify(frame, label, validation_type="regex", columns="all")
    out[f"{label}_verdict"] = "unknown"
    out.to_csv(tmp_path / "my list.csv", index=False)
    assert run_cli("report", str(tmp_path / "my list.csv"), "-o", str(tmp_path / "r.html")) == 0
    page = (tmp_path / "r.html").read_text()
    command = html.unescape(re.search(r'class="mv-command">(.*?)</code>', page)[1])
    words = shlex.split(command)
    assert words[:3] == ["mailverdict", "verify", str(tmp_path / "my list.csv")]
    assert words[words.index("--column") + 1] == label


class TestManager:
    """One page: what can be mailed, a picture, what to do and the main reasons."""

    TITLES = ("What to do", "Why not the others", "How this was checked")

    def titles(self, page):
        return re.findall(r"<h2>(.*?)</h2>", page)

    def test_it_has_the_figures_of_the_whole_and_fewer_sections(self, out):
        whole, short = mv.report(out, "email"), mv.report(out, "email", audience="manager")
        assert tuple(self.titles(short.to_html())) == self.TITLES
        assert set(self.titles(short.to_html())) < set(self.titles(whole.to_html()))
        for page in (short.to_html(), short._repr_html_()):
            assert "28.6% can be mailed" in page
            assert 'class="mv-picture"' in page

    def test_beyond_the_main_reasons_it_counts_the_rows(self):
        made = audit([f"a{at}@x.example" for at in range(12)], columns="all")
        for at, reason in enumerate(
            ["catch_all", "role", "timeout", "protected", "greylisted", "mailbox_full"]
        ):
            made.loc[[2 * at, 2 * at + 1], ["email_verdict", "email_why"]] = ["unknown", reason]
        page = mv.report(made, "email", audience="manager").to_html()
        table = re.search(r"<h2>Why not the others</h2>.*?</section>", page, re.DOTALL)[0]
        assert (table.count("<tr>"), "2 more rows have other reasons." in table) == (6, True)

    def test_it_compares_with_an_earlier_audit_in_a_table(self):
        page = mv.report(audit(NEW), "email", audience="manager", earlier=audit(OLD)).to_html()
        assert "Since the earlier audit (day not recorded)" in self.titles(page)

    def test_its_workbook_has_the_rows(self, out, tmp_path):
        mv.report(out, "email", tmp_path / "r.xlsx", audience="manager")
        book = cells_of(tmp_path / "r.xlsx")
        assert [*book] == [
            "Summary",
            "Send list",
            "To review",
            "Ask again",
            "Remove",
            "Not checked",
            "Everything",
        ]
        assert "Largest domains" not in [row[0] for row in book["Summary"]]

    def test_another_audience_is_refused_before_anything_is_read(self, out, tmp_path):
        with pytest.raises(SettingsError, match="audience='boss': give one of analyst, manager"):
            mv.report(None, "email", audience="boss")
        assert (
            run_cli("report", "absent.csv", "-o", str(tmp_path / "r.html"), "--audience", "boss")
            == 2
        )

    @pytest.mark.slow
    def test_the_command_line_makes_the_same_page(self, tmp_path):
        audit([*OLD, "nobody"], columns="all").to_csv(tmp_path / "list.csv", index=False)
        for command in ("report", "verify"):
            to = tmp_path / f"{command}.html"
            where = (
                ["-o", str(to)]
                if command == "report"
                else ["-t", "regex", "--report", str(to), "-o", str(to) + ".csv"]
            )
            assert (
                run_cli(
                    command,
                    str(tmp_path / "list.csv"),
                    *where,
                    "-c",
                    "email",
                    "--audience",
                    "manager",
                )
                == 0
            )
            assert tuple(self.titles(to.read_text())) == self.TITLES
        assert (
            run_cli("verify", str(tmp_path / "list.csv"), "-t", "regex", "--audience", "manager")
            == 2
        )


def test_a_notebook_shows_the_first_domains_and_the_page_more():
    many = audit([f"a@d{at}.example" for at in range(120)])
    made = mv.report(many, "email")
    shown = [
        len(re.findall(r">d\d+\.example<", text)) for text in (made._repr_html_(), made.to_html())
    ]
    assert shown == [12, 100]


def test_a_column_of_the_user_that_is_named_like_ours_is_not_read_as_cleaned_addresses():
    frame = pd.DataFrame(
        {
            "email": ["a@firm.example", "b@firm.example"],
            "email_clean": [True, False],
            "email_change": 1,
        }
    )
    out = mv.verify(frame, "email", validation_type="regex", clean=False)
    assert mv.summary(out, "email").loc["valid", "addresses"] == 2


def test_it_shows_in_a_notebook_and_says_so_in_one_line(out):
    made = mv.report(out, "email")
    assert made._repr_html_().startswith("<style>")
    assert repr(made) == "<mailverdict.Report of 'email': 28.6% of 7 rows can be mailed>"


def test_saving_writes_whole_files_of_two_kinds(out, tmp_path):
    from python_calamine import CalamineWorkbook

    made = mv.report(out, "email", tmp_path / "r.html")
    made.save(tmp_path / "r.xlsx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.xlsx"]
    book = CalamineWorkbook.from_path(str(tmp_path / "r.xlsx"))
    assert book.sheet_names == [
        "Summary",
        "Send list",
        "To review",
        "Ask again",
        "Remove",
        "Not checked",
        "Everything",
    ]
    cells = [
        cell
        for name in book.sheet_names
        for row in book.get_sheet_by_name(name).to_python()
        for cell in row
    ]
    assert "=1+1" in cells  # as text: the writer makes no formulas
    with pytest.raises(mv.InputError, match=r"\.html or \.xlsx"):
        made.save(tmp_path / "r.pdf")
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.slow
def test_a_workbook_of_ours_is_replaced_and_one_with_another_sheet_is_not(out, tmp_path):
    for _ in range(2):
        mv.report(out, "email", tmp_path / "r.xlsx")
    add_sheet(tmp_path / "r.xlsx")
    before = (tmp_path / "r.xlsx").read_bytes()
    with pytest.raises(
        InputError, match="did not write, and is not replaced: give another name, or remove it"
    ):
        mv.report(out, "email", tmp_path / "r.xlsx")
    with pytest.raises(InputError, match="did not write, and is not replaced"):
        mv.report(out, "email").save(tmp_path / "r.xlsx")
    assert (tmp_path / "r.xlsx").read_bytes() == before


def test_a_workbook_goes_on_in_another_sheet_and_has_the_figures(out, tmp_path):
    facts = facts_of(out, "balanced")
    table = pa.table({"email": [f"a{at}@x.example" for at in range(5)], "formula": ["=1+1"] * 5})
    decided = mv.decide(mv.verify(table, "email", validation_type="regex"), "email")
    write_workbook(tmp_path / "r.xlsx", facts, Results(decided, "email", None), table, sheet_rows=2)
    book = cells_of(tmp_path / "r.xlsx")
    sent = ["Send list", "Send list 2", "Send list 3"]
    whole = ["Everything", "Everything 2", "Everything 3"]
    empty = ["To review", "Ask again", "Remove", "Not checked"]
    assert [*book] == ["Summary", *sent, *empty, *whole]
    rows = [cells for name in whole for cells in book[name][1:]]
    assert rows == [(mail, "=1+1") for mail in table["email"].to_pylist()]
    assert [len(book[name]) for name in sent] == [3, 3, 2]
    number = [*book].index("Everything") + 1
    assert not list(sheet_xml(tmp_path / "r.xlsx", number).iter(f"{MAIN}f"))  # no formula
    rows = {row[0]: row[1] for row in book["Summary"]}
    assert (rows["Rows"], rows["Send list"], rows["Share of rows that can be mailed"]) == (
        7,
        2,
        pytest.approx(2 / 7),
    )
    assert [name for name in parts_of(tmp_path / "r.xlsx") if name.startswith("xl/charts/")] == [
        "xl/charts/chart1.xml"
    ]


def test_every_unknown_reason_says_when_to_verify_again():
    assert set(RETRY_WHEN) == {
        NO_ANSWER,
        *(reason for reason, verdict in PRECEDENCE.items() if verdict == "unknown"),
    }


def test_a_report_by_mx_says_when_to_ask_the_dns_again():
    with World() as world:
        out = mv.verify(
            pd.DataFrame({"email": ["kai@silent.example"]}), "email", backend=world.backend
        )
    assert out["email_why"].tolist() == ["no_answer"]
    page = re.sub("<[^>]+>", " ", mv.report(out, "email").to_html())
    assert re.search(r"No answer to the check\s+after an hour\s+1", page)


def test_a_frame_without_rows_still_makes_a_report():
    empty = mv.verify(
        pd.DataFrame({"email": pd.Series([], dtype=object)}), "email", validation_type="regex"
    )
    assert "0% can be mailed" in mv.report(empty, "email").to_html()


@pytest.mark.parametrize(("columns", "is_recorded"), [("core", False), ("all", True)])
def test_a_table_that_does_not_say_which_check_was_made_is_reported_as_such(
    columns, is_recorded, tmp_path
):
    out = mv.verify(["ada@firm.example", "nobody"], validation_type="regex", columns=columns)
    table = pa.table(
        {"email": ["ada@firm.example", "nobody"]} | {f"email_{name}": out[name] for name in out}
    )
    page = mv.report(table, "email", tmp_path / "report.xlsx").to_html()
    assert ("check: not recorded" in page) is not is_recorded
    assert ("does not record which check was made" in page) is not is_recorded
    check = {row[0]: row[1] for row in cells_of(tmp_path / "report.xlsx")["Summary"]}["Check"]
    assert check == ("Format only" if is_recorded else "not recorded")


def test_the_words_of_a_workbook_are_those_of_the_page(tmp_path):
    mails = ["info@firm.example", "ada@firm.example", None]
    mv.report(
        mv.verify(pd.DataFrame({"email": mails}), "email", validation_type="regex"),
        "email",
        tmp_path / "r.xlsx",
    )
    rows = cells_of(tmp_path / "r.xlsx")["Summary"]
    (heads,) = (row for row in rows if row[0] == "Domain")
    assert heads[-3:] == ("Technical error", "Not checked yet", "Empty cell")
    assert ("Shared mailbox such as info@", 1) in [row[:2] for row in rows]


def test_a_frame_that_was_not_verified_is_refused():
    with pytest.raises(mv.ColumnError, match="verify 'email' first"):
        mv.report(pd.DataFrame({"email": ["a@b.example"]}), "email")


def test_a_greylisted_address_is_verified_again_when_a_run_would():
    assert RETRY_WHEN[Reason.GREYLISTED] == f"after {ASK_AGAIN[Reason.GREYLISTED] / 60:.0f} min"


class TestPieces:
    """The facts of a column are the same however it is cut into pieces."""

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:.*several addresses:UserWarning")
    @each_row("size", [1, 7, 40])
    def test_facts_of_pieces_are_those_of_the_whole(self, size):
        cells = [
            "ada@gmail.com",
            "ben@gmial.com",
            "n/a",
            "<cy@web.de>",
            None,
            "info@firm.example",
            "a@x.org; b@x.org",
        ]
        df = pd.DataFrame({"email": [*cells * 2, "dan@gmail.com", "ADA@GMAIL.COM"]})
        out = mv.verify(df, "email", validation_type="regex", columns="all")
        now, policy = datetime.now(UTC), find_policy("balanced")
        pieces, counted = Counts(policy), Counts(policy)
        for start in range(0, len(out), size):
            pieces.add(read_decided(out[start : start + size], "email", None))
        counted.add(read_decided(out, "email", None))
        made, whole = (ReportFacts(each, policy, "email", now) for each in (pieces, counted))
        pd.testing.assert_frame_equal(made.domains, whole.domains)
        for name in ("alike", "addresses", "typos", "checked", "validation_types", "answered_by"):
            assert getattr(pieces, name) == getattr(counted, name), name
        assert (made.reasons, made.typos, made.cleaning) == (
            whole.reasons,
            whole.typos,
            whole.cleaning,
        )
        assert (whole.counts.addresses, whole.cleaning.rows) == (6, 3)

    def test_no_piece_is_a_report_of_no_rows(self):
        policy = find_policy("balanced")
        made = ReportFacts(Counts(policy), policy, "email", datetime.now(UTC))
        assert (made.counts.rows, made.counts.mailable, len(made.domains)) == (0, 0.0, 0)


def test_each_row_that_is_kept_back_has_a_reason_in_the_report():
    mails = [
        "ada@example.org",
        "bob@example.org",
        "cy@mailinator.com",
        "di@gmial.com",
        "eve@example.org",
        "nobody",
    ]
    out = mv.verify(pd.DataFrame({"mail": mails}), "mail", validation_type="regex", columns="all")
    out["mail_suppressed"] = [False, True, False, False, True, False]
    out["mail_status"] = ["done"] * 4 + ["pending", "done"]
    out.loc[4, "mail_verdict"] = None
    reasons = [
        (bucket, reason, rows) for bucket, reason, _, rows in mv.report(out, "mail")._facts.reasons
    ]
    assert sorted(reasons) == [
        ("invalid", "syntax_error", 1),
        ("pending", "suppressed", 1),
        ("valid", "disposable", 1),
        ("valid", "suppressed", 1),
        ("valid", "typo", 1),
    ]


class TestOrigins:
    """Where invalid addresses come from."""

    def test_the_columns_that_differ_are_shown_with_a_picture(self):
        out = simulated_list(2, has_effect=True)
        page = mv.report(out).to_html()
        section = re.search(r"<h2>Where they come from</h2>.*?</section>", page, re.DOTALL)[0]
        assert '<td class="mv-data">Fair</td>' in section
        assert 'class="mv-interval"' in section
        assert "Say nothing: " in section
        assert "<h2>By source</h2>" in page

    def test_a_column_that_was_asked_for_is_shown_whatever_it_says(self, tmp_path):
        out = simulated_list(2)
        page = mv.report(out, by="amount", audience="manager").to_html()
        assert "<h2>By amount</h2>" in page
        assert "<h2>Where they come from</h2>" not in page
        mv.report(out, path=tmp_path / "r.xlsx", by="amount")
        rows = cells_of(tmp_path / "r.xlsx")["Summary"]
        assert any("By amount" in map(str, row) for row in rows)

    def test_a_manager_sees_at_most_three_columns(self):
        out = simulated_list(2, has_effect=True)
        for at in range(6):
            rng = np.random.default_rng(at)
            words = rng.choice(["x", "y", "z"], len(out))
            out[f"again {at}"] = np.where(out["email_verdict"] == "invalid", "x", words)
        page = mv.report(out, audience="manager").to_html()
        section = re.search(r"<h2>Where they come from</h2>.*?</section>", page, re.DOTALL)[0]
        assert section.count("<tr>") == 1 + 3

    def test_text_of_others_is_escaped(self):
        out = simulated_list(2, has_effect=True)
        out["<i>source"] = out.pop("source").replace("Fair", "<script>alert(1)</script>")
        page = mv.report(out, by="<i>source").to_html()
        assert "<script>alert" not in page
        assert "<i>source" not in page

    def test_a_wrong_column_is_an_error(self):
        with pytest.raises(ColumnError, match="no column 'nothing'"):
            mv.report(simulated_list(2), by="nothing")


def test_what_was_decided_by_hand_is_shown_as_it_was_typed():
    out = mv.verify(pd.DataFrame({"mail": ["bob@gmial.com"]}), "mail", validation_type="regex")
    out["mail_decision"] = pd.Series(["suggestion"], dtype="string")
    out["mail_decided_address"] = out["mail_clean"] = out["mail_suggestion"]
    page = mv.report(out, "mail").to_html()
    section = re.search(r"<h2>Decided by hand</h2>.*?</section>", page, re.DOTALL)[0]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", section)
    assert cells == ["bob@gmial.com", "Use the suggestion", "bob@gmail.com"]


@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        ("regex", "domains and mailboxes were not asked: many can bounce."),
        ("mx", "the mailboxes were not asked: some will bounce."),
        ("smtp", None),
    ],
)
def test_what_the_check_leaves_open_is_beside_the_headline(kind, limit):
    out = mv.verify(pd.DataFrame({"mail": ["ada@x.org"]}), "mail", validation_type="regex")
    out["mail_validation_type"] = kind
    out.attrs = {}
    page = mv.report(out, "mail").to_html()
    hero = page[page.index('class="mv-hero"') : page.index("<h2>")]
    assert ("will bounce" in hero or "can bounce" in hero) == (limit is not None)
    assert limit is None or limit in hero
