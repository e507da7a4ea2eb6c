"""The commands besides verify and clean: what they print, where, and how they leave."""

import html
import inspect
import json
import re
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import date
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import mailverdict as mv
from mailverdict.cli import tables
from mailverdict.cli.maintenance import render_entry
from mailverdict.cli.status import StatusLog
from mailverdict.cli.terminal import GROUPS, OPTION_GROUPS, app
from mailverdict.runs.journal.recall import JournalSummary
from mailverdict.sandbox import World
from mailverdict.table.options import DEFAULTS
from tests.doubles.other_system import needs_posix
from tests.doubles.tables import each_row
from tests.doubles.workbooks import cells_of

EMAILS = "email,name\nada@gmail.com,Ada\nbob@gmial.com,Bob\nbad,\n,Nobody\n"


@pytest.fixture(scope="module")
def world():
    with World(daily_limit=50) as opened:
        yield opened


@pytest.fixture
def contacts(tmp_path):
    path = tmp_path / "contacts.csv"
    path.write_text(EMAILS, encoding="utf-8")
    return path


def test_every_command_is_in_one_group_of_the_help(run):
    names = [
        command.name or command.callback.__name__.replace("_", "-")
        for command in app.registered_commands
    ]
    names += [group.name for group in app.registered_groups]
    assert sorted(names) == sorted(name for group in GROUPS.values() for name in group)
    shown = run("--help")[1]
    assert [title for title in GROUPS if f"\n{title}:\n" in shown] == list(GROUPS)
    assert [name for name in names if f"\n  {name} " not in shown] == []


def test_help_is_shown_where_the_command_is_missing(run):
    for group in ((), ("keys",)):
        assert run(*group) == (2, "", run(*group, "--help")[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verfy"], "No such command 'verfy'. Did you mean 'verify'?; see mailverdict --help"),
        (["verify", "a.csv", "--colum", "b"], "No such option"),
        (
            ["check", "a@example.org", "-t", "dns"],
            "Invalid value for '--type' / '-t': 'dns' is not one of 'regex', 'mx'",
        ),
    ],
)
def test_a_usage_error_is_one_line_with_its_cause_first(run, arguments, message):
    status, out, err = run(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"mailverdict: {message}")


def test_labels_have_a_colour_on_a_terminal_only(monkeypatch):
    assert StatusLog().line("no such file", "error") == "mailverdict: no such file"
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: True))
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert StatusLog().line("no such file", "error") == "\x1b[31mmailverdict:\x1b[0m no such file"
    monkeypatch.setenv("NO_COLOR", "1")
    assert StatusLog().line("no such file", "error") == "mailverdict: no such file"


def test_version_is_printed(run):
    assert run("--version") == (0, f"mailverdict {mv.__version__}\n", "")


@pytest.mark.parametrize(
    "command", [[], ["verify"], ["audit-host"], ["lists"], ["lists", "update"]]
)
def test_h_is_help(run, command):
    status, out, err = run(*command, "-h")
    assert (status, err) == (0, "")
    assert (status, out, err) == run(*command, "--help")
    assert "Usage: " in out


@each_row("command", [tables.verify, tables.plan])
def test_defaults_are_those_of_the_library(command):
    parameters = inspect.signature(command).parameters
    shared = (parameters.keys() & DEFAULTS.keys()) - {"clean"}  # on by default for files
    given = {name: parameters[name].default for name in shared}
    assert {**given, "refresh": tuple(given["refresh"])} == {
        name: DEFAULTS[name] for name in shared
    }


@pytest.mark.slow
def test_plan_prints_a_table_and_json(run, contacts, world):
    status, out, _ = run(
        "plan", contacts, "-c", "email", "--backend", world.url, "--journal", "none"
    )
    assert (status, "to submit" in out) == (0, True)
    status, out, _ = run("plan", contacts, "--backend", world.url, "--journal", "none", "--json")
    found = json.loads(out)
    assert (status, found["to_submit"]) == (0, 2)
    assert date.fromisoformat(found["done_on"])


def test_every_command_that_asks_a_network_has_a_sandbox(run, contacts, monkeypatch):
    told = "Using the sandbox"
    assert run("quota", "--sandbox")[:2] == (0, "100 of 100 addresses left today\n")
    status, out, err = run("plan", contacts, "-c", "email", "--sandbox")
    assert (status, out.splitlines()[0].split(), told in err) == (0, ["rows", "4"], True)
    status, out, err = run("audit-host", "--sandbox")
    assert (status in (0, 1), "127." in out, told in err) == (True, True, True)
    assert run("quota", "--sandbox", "--backend", "http://127.0.0.1:1")[0] == 2


def test_quota_tells_what_is_left(run, world):
    status, out, _ = run("quota", "--backend", world.url)
    assert (status, out) == (0, "50 of 50 addresses left today\n")
    assert run("quota")[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["html", "xlsx"])
def test_report_reads_what_verify_wrote(run, contacts, tmp_path, world, ending):
    verified, page = tmp_path / "verified.csv", tmp_path / f"report.{ending}"
    resolver = world.backend.settings.resolver
    assert (
        run("verify", contacts, "-c", "email", "--resolver", resolver, "-o", verified, "-q")[0] == 0
    )
    status, _, err = run("report", verified, "-c", "email", "-o", page, "--policy", "strict")
    assert (status, page.stat().st_size > 2000) == (0, True)
    assert str(page) in err


def test_verify_writes_report_and_actions_in_one_go(run, contacts, tmp_path, world):
    out, page = tmp_path / "out.csv", tmp_path / "page.html"
    resolver = world.backend.settings.resolver
    status, _, err = run(
        "verify",
        contacts,
        "-c",
        "email",
        "--resolver",
        resolver,
        "-o",
        out,
        "--report",
        page,
        "--policy",
        "balanced",
    )
    assert status == 0, err
    assert "email_action" in out.read_text().splitlines()[0]
    assert [line.rsplit(",", 2)[1] for line in out.read_text().splitlines()[1:3]] == [
        "send",
        "review",
    ]
    assert "E-mail audit of contacts.csv" in page.read_text()
    assert "can be mailed" in page.read_text()


@pytest.mark.slow
def test_a_report_has_the_command_that_verifies_unclear_rows_again(run, tmp_path, world):
    file, page, journal = tmp_path / "my list.csv", tmp_path / "report.html", tmp_path / "j.db"
    file.write_text("mail\nada@plain.example\nfull@plain.example\n")
    given = [
        "-t",
        "smtp",
        "--no-clean",
        "--backend",
        world.url,
        "--journal",
        journal,
        "--report",
        page,
        "--refresh",
        "risky",
    ]
    assert run("verify", file, *given)[0] == 0
    (command,) = re.findall(r'<code class="mv-command">(.*?)</code>', page.read_text())
    words = shlex.split(html.unescape(command))
    assert words == [
        *(
            "mailverdict",
            "verify",
            str(file),
            "--type",
            "smtp",
            "--backend",
            world.url,
            "--report",
            str(page),
        ),
        *("--no-clean", "--journal", str(journal), "--refresh", "unknown"),
    ]
    status, _, err = run(*words[1:], "-o", tmp_path / "verified.csv", "--columns", "all")
    assert status == 0, err
    assert run("report", tmp_path / "verified.csv", "-c", "mail", "-o", page)[0] == 0
    again = f"mailverdict verify {tmp_path / 'verified.csv'} --column mail --type smtp --backend URL --refresh unknown"
    assert f'<code class="mv-command">{again}</code>' in page.read_text()


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_a_report_of_a_parquet_file_says_which_check_was_noted_in_it(run, tmp_path, kind):
    table = pa.table({"email": ["ada@firm.example", "nobody"]})
    out = mv.verify(
        table.to_pandas() if kind == "pandas" else table, "email", validation_type="regex"
    )
    if kind == "pandas":
        out.to_parquet(tmp_path / "v.parquet")
    else:
        pq.write_table(out, tmp_path / "v.parquet")
    assert run("report", tmp_path / "v.parquet", "-c", "email", "-o", tmp_path / "r.html")[0] == 0
    assert "check: Format only" in (tmp_path / "r.html").read_text()


@pytest.mark.slow
def test_a_report_compares_with_an_earlier_file(run, contacts, tmp_path):
    old, new, page = tmp_path / "old.csv", tmp_path / "new.csv", tmp_path / "page.html"
    assert run("verify", contacts, "-c", "email", "-t", "regex", "-o", old)[0] == 0
    contacts.write_text(f"{EMAILS}cy@firm.example,Cy\n", encoding="utf-8")
    assert run("verify", contacts, "-c", "email", "-t", "regex", "-o", new)[0] == 0
    assert run("report", new, "-c", "email", "-o", page, "--earlier", old)[0] == 0
    assert "1 address is new, 0 left the list" in page.read_text()
    status, _, err = run("report", new, "-c", "email", "-o", page, "--earlier", contacts)
    assert (status, "earlier: " in err) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["html", "xlsx"])
def test_verify_compares_its_report_with_an_earlier_file_that_it_replaces(
    run, contacts, tmp_path, ending
):
    out, page = tmp_path / "out.csv", tmp_path / f"page.{ending}"
    assert run("verify", contacts, "-c", "email", "-t", "regex", "-o", out)[0] == 0
    contacts.write_text(f"{EMAILS}cy@firm.example,Cy\n", encoding="utf-8")
    options = ("-c", "email", "-t", "regex", "-o", out, "--report", page, "--earlier", out)
    status, _, err = run("verify", contacts, *options)
    assert status == 0, err
    assert "cy@firm.example" in out.read_text()
    if ending == "html":
        assert "1 address is new, 0 left the list" in page.read_text()
        assert "E-mail audit of contacts.csv" in page.read_text()
        assert "Format only" in page.read_text()
    else:
        texts = [str(cell) for row in cells_of(page)["Summary"] for cell in row]
        assert any("earlier audit" in text.lower() for text in texts), texts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--earlier", "{csv}"], "--earlier is for the report: add --report"),
        (["--report", "page.html", "--earlier", "{csv}"], "earlier: "),
        (["--report", "page.html", "--earlier", "nowhere.csv"], "earlier: nowhere.csv"),
    ],
)
def test_an_earlier_file_that_cannot_be_compared_ends_verify_before_anything_is_asked(
    run, contacts, tmp_path, monkeypatch, options, message
):
    monkeypatch.chdir(tmp_path)
    given = [each.format(csv=contacts) for each in options]
    status, _, err = run("verify", contacts, "-c", "email", "-t", "regex", "-o", "out.csv", *given)
    assert (status, message in err) == (2, True), err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "sheets", "whole"),
    [([], 1, "verified"), (["--policy", "balanced"], 7, "Everything")],
)
def test_a_workbook_has_a_sheet_for_each_action_of_a_policy(
    run, contacts, tmp_path, policy, sheets, whole
):
    out = tmp_path / "out.xlsx"
    for _ in range(2):  # it replaces its own
        status, _, err = run("verify", contacts, "-c", "email", "-t", "regex", "-o", out, *policy)
        assert status == 0, err
    book = cells_of(out)
    assert len(book) == sheets
    assert [row[0] for row in book[whole]] == [
        "email",
        "ada@gmail.com",
        "bob@gmial.com",
        "bad",
        None,
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("report", "{csv}", "-c", "email", "-o", "x.html"), "verify 'email' first"),
        (("verify", "{csv}", "-c", "email", "--policy", "bold", "-o", "x.csv"), "strict, balanced, lenient"),
        (("plan", "{csv}", "-c", "mail"), "no column 'mail'"),
        (("serve", "--sandbox", "--smtp-port", "25"), "--sandbox has its own"),
        (("verify", "{csv}", "--sandbox", "--backend", "http://127.0.0.1:9"), "--sandbox has its own"),
        (("runs", "--journal", "nowhere.db"), "no such journal"),
        (("lists", "update", "--source", "nowhere.txt"), "nowhere.txt"),
        (("explain", " "), "give one address"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_status_2(
    run, contacts, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    status, _, err = run(*(a.format(csv=contacts) for a in arguments))
    assert status == 2
    lines = [line for line in err.splitlines() if line.startswith("mailverdict:")]
    assert len(lines) == 1
    assert message in lines[0]
    assert "Traceback" not in err
    assert not (tmp_path / "x.csv").exists()


def test_a_service_that_is_not_there_is_status_4(run, contacts):
    status, _, err = run(
        "verify", contacts, "-c", "email", "--backend", "http://127.0.0.1:9", "--journal", "none"
    )
    assert (status, "127.0.0.1:9" in err) == (4, True)


def test_json_lines_without_rows_go_through_every_command(run, tmp_path):
    """A night without new contacts: the exporter writes a file without a line."""
    path, out = tmp_path / "new.jsonl", tmp_path / "out.jsonl"
    path.touch()
    for command in ("clean", "explode", "duplicates", "verify"):
        assert run(command, path, "-c", "email", "-o", out)[0] == 0
        assert out.read_bytes() == b""
    assert "rows                                        0" in run("plan", path, "-c", "email")[1]
    assert run("report", out, "-c", "email", "-o", tmp_path / "report.html")[0] == 0
    (tmp_path / "list.csv").write_text("email\nada@example.org\n")
    assert "rows on the list: 0" in run("suppress", tmp_path / "list.csv", path, "-c", "email")[2]


def test_runs_lists_and_exports_a_journal(run, contacts, tmp_path, world):
    journal, export = tmp_path / "j.db", tmp_path / "all.parquet"
    assert (
        run("verify", contacts, "-c", "email", "--backend", world.url, "--journal", journal, "-q")[
            0
        ]
        == 0
    )
    status, out, _ = run("runs", "--journal", journal, "--export", export)
    assert (status, f"Domain can receive mail, by {world.url}: 3 addresses checked (" in out) == (
        0,
        True,
    )
    assert export.exists()
    assert json.loads(run("runs", "--journal", journal, "--json")[1])[0]["settled"] == 3


@each_row(
    ("key", "verdicts", "paid", "lost", "line"),
    [
        (
            "local:smtp#1f",
            {"valid": 1},
            0,
            0,
            "Mailbox exists, by this computer: 1 address checked (valid 1)",
        ),
        ("sandbox:mx", {}, 0, 0, "sandbox:mx: 0 addresses checked"),
        (
            *("smtp https://v.example.org", {"valid": 1200, "error": 3}, 12, 7),
            "Mailbox exists, by https://v.example.org: 1,203 addresses checked (valid 1,200, error 3); "
            "12 paid for, without an answer yet; 7 perhaps paid for: the reply to their submission was lost",
        ),
    ],
)
def test_a_line_of_runs_names_check_service_and_units(key, verdicts, paid, lost, line):
    assert (
        render_entry(JournalSummary(key, sum(verdicts.values()), verdicts, paid, lost, None, None))
        == line
    )


def test_lists_shows_each_list_with_its_licence(run):
    status, out, _ = run("lists")
    assert status == 0
    assert re.search(r"disposable +[\d,]+ rows +CC0", out)
    assert {row["list"] for row in json.loads(run("lists", "--json")[1])} >= {
        "disposable",
        "free",
        "relays",
    }


def test_updating_from_a_poisoned_file_is_refused(run, tmp_path):
    poisoned = tmp_path / "list.txt"
    poisoned.write_text("gmail.com\nexample.com\n")
    status, out, err = run("lists", "update", "--source", poisoned, "--dry-run")
    assert (status, "refused" in err) == (2, True)
    assert out


def test_check_and_explain_answer_in_a_sandbox(run):
    status, out, err = run("check", "info@gmail.com", "-t", "mx", "--sandbox", "--json")
    assert (status, json.loads(out)["result"], "sandbox" in err) == (0, "valid", True)
    status, out, _ = run("explain", "info@gmial.com", "-t", "mx", "--sandbox")
    assert (status, "gmial.com A: NXDOMAIN\n    the domain does not exist\n" in out) == (0, True)
    assert "did you mean info@gmail.com?" in out
    status, out, _ = run("check", "info@gmial.com", "-t", "mx", "--sandbox")
    assert (status, "did you mean info@gmail.com?" in out) == (0, True)


def test_audit_host_says_what_is_wrong_and_leaves_with_1(run, world):
    resolver = world.backend.settings.resolver
    status, out, _ = run(
        "audit-host", "--resolver", resolver, "--port", "9", "--helo-name", "client.example"
    )
    assert status == 1
    assert "mail servers are likely to refuse this host" in out


@contextmanager
def serving(*arguments):
    """A command that stays, in a process of its own; killed if it does not leave by itself."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mailverdict", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow  # a process; the next test stops one that serves
def test_the_sandbox_stays_until_ctrl_c():
    with serving("sandbox") as process:
        lines = [process.stdout.readline() for _ in range(4)]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert lines[0].startswith("resolver       127.0.0.1:")
    assert lines[3].startswith("service        http://127.0.0.1:")
    assert process.returncode == 0, err
    assert "stopped" in err.splitlines()


@pytest.mark.slow
def test_serve_answers_until_it_is_told_to_stop(tmp_path):
    with serving(
        "serve", "--port", "0", "--sandbox", "--store", f"sqlite:///{tmp_path}/jobs.db"
    ) as process:
        seen = []
        for line in process.stderr:
            seen.append(line)
            if found := re.search(r"http://127\.0\.0\.1:([1-9]\d*)", line):
                break
        assert mv.quota(f"http://127.0.0.1:{found[1]}").daily_limit == 100
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert "sandbox" in "".join(seen)


def test_keys_are_added_listed_and_revoked(run, tmp_path, monkeypatch):
    file = tmp_path / "keys.json"
    monkeypatch.setenv("MAILVERDICT_KEY_FILE", str(file))
    status, key, _ = run("keys", "add", "analytics")
    assert (status, key[:3]) == (0, "mv_")
    status, shown, _ = run("keys", "list")
    assert (status, shown.split()[0]) == (0, "analytics")
    assert key.strip() not in shown
    assert run("keys", "revoke", "analytics", "--file", file)[0] == 0
    assert "revoked" in run("keys", "list")[1]
    [listed] = json.loads(run("keys", "list", "--json")[1])
    assert set(listed) == {"name", "id", "created", "revoked"}
    assert run("keys", "revoke", "analytics")[0] == 2


@needs_posix
def test_keys_that_others_can_read_are_not_listed(run, tmp_path):
    file = tmp_path / "keys.json"
    run("keys", "add", "analytics", "--file", file)
    file.chmod(0o644)
    assert "others can read" in run("keys", "list", "--file", file)[2]


def test_key_of_the_environment_is_sent_to_the_service(run, tmp_path, monkeypatch):
    from mailverdict.service import ServiceSettings, create_app
    from tests.doubles.answering_backend import AnsweringBackend
    from tests.doubles.listening import listening

    file = tmp_path / "keys.json"
    key = run("keys", "add", "first", "--file", file)[1].strip()
    settings = ServiceSettings(store=f"sqlite:///{tmp_path}/jobs.db", key_file=str(file))
    with listening(create_app(settings, AnsweringBackend()), settings) as service:
        status, _, err = run("quota", "--backend", service.url)
        assert (status, "UNAUTHORIZED" in err) == (4, True)
        monkeypatch.setenv("MAILVERDICT_KEY", key)
        assert run("quota", "--backend", service.url)[1].startswith("100 of 100")
        status, out, _ = run("check", "ada@example.org", "-t", "regex", "--backend", service.url)
        assert (status, out.startswith("ada@example.org is valid (regex)\n")) == (0, True)


@pytest.mark.parametrize("kind", ["REGEX", "Regex", " regex "])
def test_a_type_is_read_in_any_case(run, kind):
    assert run("check", "ada@example.org", "--type", kind)[1].startswith(
        "ada@example.org is valid (regex)"
    )


def test_an_unknown_type_is_named_with_the_choices(run):
    status, _, said = run("check", "ada@example.org", "--type", "mail")
    assert (status, "'mail' is not one of 'regex', 'mx', 'mx_blacklist', 'smtp'" in said) == (
        2,
        True,
    )
    assert "Value error" not in said


@pytest.mark.parametrize("key", ["", "abc"])
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("verify.example", "--backend='verify.example': give a URL"),
        (
            "https://ada:secret@verify.example",
            "--backend holds credentials; set MAILVERDICT_KEY instead",
        ),
    ],
)
def test_a_wrong_url_is_explained_by_the_option(run, monkeypatch, key, url, said):
    monkeypatch.setenv("MAILVERDICT_KEY", key)
    status, _, err = run("quota", "--backend", url)
    assert (status, said in err, "base_url" in err, "secret" in err) == (2, True, False, False)


def test_the_help_of_verify_has_its_options_in_groups(run):
    status, out, _ = run("verify", "--help")
    assert status == 0
    assert "Options:" not in out
    # Each option is in a group; older releases of Typer add -h themselves.
    others = out.partition("\nOthers:\n")[2]
    assert [line for line in others.splitlines() if line.strip().startswith("-")] in (
        [],
        ["  -h, --help  Show this message and exit."],
    )
    for title in OPTION_GROUPS:
        assert f"\n{title}:\n" in out


@pytest.mark.parametrize("command", ["verify --help", "verify many.csv -t regex -q -o -"])
def test_a_closed_pipe_is_no_error(tmp_path, command):
    rows = "".join(f"p{at}@x.org,{'x' * 50}\n" for at in range(20_000))
    (tmp_path / "many.csv").write_text(f"email,note\n{rows}")
    with subprocess.Popen(
        [sys.executable, "-m", "mailverdict", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as child:
        assert child.stdout.readline()
        child.stdout.close()
        said = child.stderr.read()
        assert child.wait() == 0
    assert b"Error" not in said
    assert b"Exception" not in said


def test_a_run_in_the_sandbox_ends_with_made_up_servers(run, tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("email\nada@real-firm.com\n")
    status, _, said = run("verify", path, "-t", "mx", "--sandbox", "-o", tmp_path / "out.csv")
    assert status == 0
    assert "made-up servers" in said.splitlines()[-1]
