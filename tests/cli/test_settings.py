"""Options from the environment and a settings file: their order, and what is refused."""

import pytest
import typer

from mailverdict.cli.settings import read_options, service_environment, variable, walk
from mailverdict.cli.terminal import app
from mailverdict.errors import SettingsError

GROUP = typer.main.get_command(app)


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """Run a command line in a folder of its own, with a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("email,n\nada@example.org,1\nnobody,2\n,3\n")
    return run


def options_of(tmp_path, environ, text=""):
    path = tmp_path / "own.toml"
    path.write_text(text, encoding="utf-8")
    return read_options(GROUP, str(path), environ).values


class TestOrder:
    FILE = 'type = "mx"\nlimit = 7\n[verify]\ntype = "smtp"\n'

    @pytest.mark.parametrize(
        ("environ", "text", "found"),
        [
            ({}, 'type = "mx"', "mx"),
            ({}, FILE, "smtp"),  # the command's table before the lines above it
            ({"MAILVERDICT_TYPE": "regex"}, FILE, "regex"),
            (
                {"MAILVERDICT_TYPE": "regex", "MAILVERDICT_VERIFY_TYPE": "mx_blacklist"},
                FILE,
                "mx_blacklist",
            ),
            ({"MAILVERDICT_TYPE": ""}, FILE, "smtp"),  # an empty variable is not set
        ],
    )
    def test_the_nearest_source_counts(self, tmp_path, environ, text, found):
        assert options_of(tmp_path, environ, text)["verify"]["validation_type"] == found

    def test_the_command_line_is_before_all_of_them(self, run, tmp_path, monkeypatch):
        (tmp_path / "mailverdict.toml").write_text('type = "smtp"\ncolumn = "n"')
        monkeypatch.setenv("MAILVERDICT_TYPE", "mx")
        status, _, err = run("verify", "in.csv", "-t", "regex", "-c", "email")
        assert (status, "with a verdict by regex" in err) == (0, True)
        assert err.startswith("note: options are read from mailverdict.toml\n")
        monkeypatch.setenv("MAILVERDICT_TYPE", "regex")
        assert (
            "3 rows, 2 with a verdict by regex"
            in run("verify", "in.csv", "-c", "email", "--config", "none")[2]
        )

    def test_a_general_option_reaches_every_command_that_has_it(self, tmp_path):
        found = options_of(tmp_path, {}, 'column = "mail"')
        having = {path for path, options in walk((), GROUP) if "column" in options}
        assert {(name,) for name in found} == having
        assert {values["column"] for values in found.values()} == {"mail"}

    def test_what_the_service_reads_itself_is_not_set_a_second_time(self, tmp_path):
        environ = {
            "MAILVERDICT_DAILY_LIMIT": "5",
            "MAILVERDICT_SERVE_PORT": "9",
            "MAILVERDICT_CONFIG": "",
            "HOME": "/",
        }
        assert options_of(tmp_path, environ) == {"serve": {"port": "9"}}
        assert service_environment(environ) == {"MAILVERDICT_DAILY_LIMIT": "5", "HOME": "/"}


class TestValues:
    def test_each_kind_of_option(self, tmp_path):
        text = '[verify]\nclean = false\nlimit = 5\nsheet = 2026\nfail_above = ["unknown=5%", "error=0"]\n[lists.update]\ndry-run = true'
        found = options_of(tmp_path, {"MAILVERDICT_HEADER": "no", "MAILVERDICT_EXPLODE": "1"}, text)
        assert found["lists"] == {"update": {"dry_run": "True"}}
        with GROUP.commands["verify"].make_context(
            "verify", ["a.csv"], default_map=found["verify"]
        ) as context:
            read = {**context.params, "fail_above": list(context.params["fail_above"])}
        assert {name: read[name] for name in ("clean", "limit", "sheet", "header", "explode", "fail_above")} == {
            "clean": False, "limit": 5, "sheet": "2026", "header": False, "explode": True,
            "fail_above": ["unknown=5%", "error=0"],
        }  # fmt: skip
        several = options_of(tmp_path, {"MAILVERDICT_FAIL_ABOVE": "unknown=5%, error=0"})
        assert several["verify"]["fail_above"] == ["unknown=5%", "error=0"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("tipe = 1", "'tipe' is not an option of any command; did you mean type?"),
            ("[verfy]\ntype = 1", "[verfy] is not a command; did you mean verify?"),
            (
                "[verify]\ncolumm = 1",
                "'columm' in [verify] is not an option of it; did you mean column or columns?",
            ),
            (
                "[verify]\nlimit = [1, 2]",
                "verify --limit is [1, 2]; give one text, number, true or false",
            ),
            ("type = ", "cannot be read as TOML"),
        ],
    )
    def test_what_is_wrong_in_the_file_is_named(self, tmp_path, text, message):
        with pytest.raises(SettingsError) as raised:
            options_of(tmp_path, {}, text)
        assert message in str(raised.value)
        assert "own.toml" in str(raised.value)

    @pytest.mark.parametrize(
        ("name", "value"), [("LIMIT", "2.5"), ("LIMIT", "true"), ("CLEAN", "maybe")]
    )
    def test_a_wrong_value_is_named_and_where_it_may_be_from(self, run, monkeypatch, name, value):
        monkeypatch.setenv(f"MAILVERDICT_{name}", value)
        status, _, err = run("verify", "in.csv")
        assert status == 2
        assert f"Invalid value for '--{name.lower()}'" in err
        assert (
            f"'{value}' is from the environment or the settings file; see mailverdict verify --help"
            in err
        )

    def test_a_wrong_value_of_the_file_is_named(self, run, tmp_path):
        (tmp_path / "mailverdict.toml").write_text("limit = true")
        status, _, err = run("verify", "in.csv")
        assert (status, "'True' is from the environment or the settings file" in err) == (2, True)

    @pytest.mark.parametrize(
        ("given", "message"), [("no.toml", "no such file"), (".", "it is not a file")]
    )
    def test_a_file_that_cannot_be_read_is_an_error(self, run, given, message):
        status, _, err = run("verify", "in.csv", "--config", given)
        assert (status, message in err) == (2, True)


def test_every_option_has_its_variable():
    commands = dict(walk((), GROUP))
    names = [variable(*path, name) for path, options in commands.items() for name in options]
    assert len(set(names)) == len(names)
    assert "MAILVERDICT_VERIFY_RESOLVER_CHECK" in names
