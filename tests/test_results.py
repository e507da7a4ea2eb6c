"""Measured figures: every page and picture shows those of `results.json`, and the functions behind them."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys

import pytest
from benchmarks import figures, goals, pictures, results
from benchmarks.__main__ import NAMES
from benchmarks.figures import OURS, Figure, Results, Section, load_results, record, slope, store_section

from tests import ROOT

PROSE = [path for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")] if "notebooks" not in path.parts]
GENERATED = re.compile(r"<!-- measured: \w+ -->.*?<!-- end of measured -->|```.*?```", re.DOTALL)
RESULT = re.compile(
    r"\d[\d.,]* (?:times (?:as (?:fast|long)|faster|fewer|slower)|[KMG]i?B\b"
    r"|(?:rows|requests|look-ups|checks|jobs|recipients) a second|seconds (?:per|for)\b)"
)
CONDITIONS = {
    "2 GiB": "the limit of a worker in the benchmark",
    "3.6 GB": "reckoned",
    "0.3 GB": "reckoned",
    "1 GiB": "reckoned",
}


def section(name: str, *made: Figure, date: str = "2027-01-15", **versions: str) -> Section:
    return Section(name, f"make bench ARGS={name}", date, 0.2, 61.5, {"Python": "3.11.7", **versions}, made)


# --- what is in the repository ---------------------------------------------------------------------------------------


def test_page_shows_the_results():
    assert results.PAGE.read_text(encoding="utf-8") == results.results_markdown(load_results())


@pytest.mark.parametrize("path", results.DOCUMENTS, ids=lambda path: path.name)
def test_documents_show_the_results(path):
    text = path.read_text(encoding="utf-8")
    blocks = results.BLOCK.findall(text)

    assert blocks
    assert all(results.BLOCKS[name](load_results()) for _, name, _ in blocks)  # all of them are measured
    assert text == results.fill_blocks(text, load_results())


def test_pictures_show_the_results():
    expected = pictures.pictures_of(load_results())

    assert {path.name for path in results.PICTURES.glob("*.svg")} == set(expected)
    for name, text in expected.items():
        drawn = (results.PICTURES / name).read_text(encoding="utf-8")
        assert f"<dc:description>{html.escape(text, quote=False)}</dc:description>" in drawn, name


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_prose_has_no_figure_of_its_own(path):
    """A measured figure is in a block that `results.json` fills, or it gets old unseen."""
    prose = GENERATED.sub("", path.read_text(encoding="utf-8"))

    assert [found[0] for found in RESULT.finditer(prose) if found[0] not in CONDITIONS] == []


def test_goals_are_measured_by_their_benchmark():
    """A goal whose task has another name in its benchmark would never be compared."""
    made = load_results()
    recorded = {each.name for each in made.sections if each.seconds is not None}

    assert {goal.section for goal in goals.GOALS} <= set(NAMES)
    assert [goal.words for goal in goals.GOALS if goal.section in recorded and goal.measured(made) is None] == []


@pytest.mark.slow
def test_a_benchmark_runs_and_is_recorded_apart(tmp_path):
    """In small, with the cheapest one; the results of the repository stay as they are."""
    before = results.PAGE.read_bytes(), figures.RESULTS.read_bytes()
    command = [sys.executable, "-m", "benchmarks", "--quick", "--folder", str(tmp_path), "imports"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert [each.command for each in load_results(tmp_path / "results.json").sections] == [
        "make bench ARGS='--quick imports'"
    ]
    assert (results.PAGE.read_bytes(), figures.RESULTS.read_bytes()) == before


# --- the functions ---------------------------------------------------------------------------------------------------


def test_a_changed_figure_changes_page_block_and_picture():
    """What the tests above compare depends on each value."""
    made = load_results()
    first, *others = made.sections
    figure = next(each for each in first.figures if (each.task, each.subject) == ("a column by regex", OURS))
    twice = Figure(figure.task, figure.subject, figure.unit, tuple(2 * each for each in figure.values), figure.size)
    changed = [twice if each is figure else each for each in first.figures]
    other = Results(made.machine, (section("column", *changed), *others))

    assert results.results_markdown(other) != results.results_markdown(made)
    assert pictures.pictures_of(other)["column-dark.svg"] != pictures.pictures_of(made)["column-dark.svg"]
    assert pictures.pictures_of(other)["smtp-dark.svg"] == pictures.pictures_of(made)["smtp-dark.svg"]


def test_times_are_against_ours_in_the_same_task():
    made = (
        Figure("look-ups", OURS, "look-ups/s", (100.0, 300.0, 200.0), 1_000),
        Figure("look-ups", "other", "look-ups/s", (50.0, 40.0, 60.0), 1_000),
        Figure("seconds", OURS, "s", (2.0,)),
        Figure("seconds", "other", "s", (1.0,)),
    )
    page = results.results_markdown(Results({"processor": "a"}, (section("lookups", *made),)))

    assert "| 1,000 | mailverdict | 200 look-ups/s | 300 to 100 | |" in page
    assert "| 1,000 | other | 50 look-ups/s | 60 to 40 | 4 |" in page
    assert "| | other | 1 s | once | 0.5 |" in page
    assert "| `make bench ARGS=lookups` | 2027-01-15 | 0.2 | 62 s | |" in page


def test_page_names_the_versions_that_differ():
    older = section("column", Figure("a", OURS, "s", (1.0,)), date="2027-01-14", pandas="3.0.0")
    newer = section("smtp", Figure("b", OURS, "s", (1.0,)), pandas="3.1.0")
    page = results.results_markdown(Results({"processor": "a"}, (older, newer)))

    assert "| Python | 3.11.7 |" in page
    assert "| `make bench ARGS=column` | 2027-01-14 | 0.2 | 62 s | pandas 3.0.0 |" in page
    assert "| `make bench ARGS=smtp` | 2027-01-15 | 0.2 | 62 s | pandas 3.1.0 |" in page


def test_slope_is_that_of_time_against_size():
    seconds = [Figure("a", OURS, "s", (time,), size) for size, time in ((10, 1.0), (100, 10.0))]
    rates = [Figure("b", OURS, "rows/s", (rate,), size) for size, rate in ((100, 10.0), (10_000, 100.0))]

    assert slope(*seconds) == pytest.approx(1.0)
    assert slope(*rates) == pytest.approx(0.5)  # a hundred times the rows in ten times the time


def test_block_without_measurement_stays():
    text = "a\n<!-- measured: pace -->\nold\n<!-- end of measured -->\nb"

    assert results.fill_blocks(text, Results({}, ())) == text
    with pytest.raises(KeyError):
        results.fill_blocks(text.replace("pace", "unknown"), Results({}, ()))


def test_bounds_of_resolvers_are_those_of_the_same_case():
    """Two of three cases break one bound each, so that one is within all."""
    values = {
        "domains without an answer": (0, 2, 0),
        "queries a domain": (1, 1, 1.4),
        "time compared with the ideal": (1, 1, 1),
    }
    made = [Figure(f"simulated resolvers, {name}", "slow", "", each) for name, each in values.items()]

    assert results.congestion_block(Results({"processor": "a"}, (section("congestion", *made),)))[-1].endswith(
        "| 1 of 3 |"
    )


def test_goal_is_compared_with_the_median_of_its_size():
    made = (
        Figure("a column by regex", OURS, "s", (1.0, 9.0, 2.0), 1_000_000),
        Figure("a column by regex", "email-validator, loop", "s", (100.0,), 1_000_000),
        Figure("a column by regex", OURS, "s", (50.0,), 5_000_000),
    )
    goal = goals.GOALS[0]
    value = goal.measured(Results({}, (section("column", *made),)))

    assert value == 50.0
    assert (goal.demanded, goal.show(value)) == ("at least 80", "50, **missed**")
    assert goal.show(80.0) == "80, reached"


def test_section_is_replaced_and_kept_in_order(tmp_path):
    path, order = tmp_path / "results.json", ("column", "smtp")
    for each in (section("smtp", Figure("a", OURS, "s", (1.0,))), section("column", Figure("b", OURS, "s", (1.0,)))):
        store_section(path, each, order)
    store_section(path, section("smtp", Figure("a", OURS, "s", (2.0,))), order)

    stored = load_results(path).sections
    assert [(each.name, each.figures[0].values) for each in stored] == [("column", (1.0,)), ("smtp", (2.0,))]
    assert (stored[0].command, stored[0].seconds, stored[0].versions) == (
        "make bench ARGS=column",
        61.5,
        {"Python": "3.11.7"},
    )


def test_figures_of_another_machine_are_dropped(tmp_path):
    path, order = tmp_path / "results.json", ("column", "smtp")
    store_section(path, section("column", Figure("b", OURS, "s", (1.0,))), order)
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "machine": {"processor": "another"}}))
    store_section(path, section("smtp", Figure("a", OURS, "s", (1.0,))), order)

    assert [each.name for each in load_results(path).sections] == ["smtp"]


def test_record_prints_and_writes_only_where_a_file_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(figures.VARIABLE, raising=False)
    record("a", OURS, [1.0])
    monkeypatch.setenv(figures.VARIABLE, str(tmp_path / "figures.jsonl"))
    record("a", OURS, [1.0, 2.0], "MB", 3)

    assert figures.read_figures(tmp_path / "figures.jsonl") == (Figure("a", OURS, "MB", (1.0, 2.0), 3),)
    assert capsys.readouterr().out == "a: mailverdict: 1 s (once)\na, 3: mailverdict: 1.5 MB (1 to 2)\n"


def test_pictures_are_made_for_both_schemes_and_stay_the_same(tmp_path):
    lines = [
        Figure("a column by regex", name, "s", (size / 1e6 * n,), size)
        for n, name in ((1, OURS), (2, "other & more"))
        for size in (10, 100)
    ]
    bars = [Figure("CSV to CSV by regex", name, "s", (1.0,)) for name in (OURS, "other")]
    made = Results({}, (section("column", *lines), section("files", *bars)))
    pictures.draw_pictures(made, tmp_path)
    first = {path.name: path.read_text() for path in tmp_path.iterdir()}
    pictures.draw_pictures(made, tmp_path)

    assert sorted(first) == ["column-dark.svg", "column-light.svg", "files-dark.svg", "files-light.svg"]
    assert (tmp_path / "column-light.svg").read_text() == first["column-light.svg"]
    assert "mailverdict, slope 1.00" in first["column-light.svg"]
    assert "other &amp; more, 100: 0.0002 s" in first["column-light.svg"]
    assert "<image" not in first["column-light.svg"]
