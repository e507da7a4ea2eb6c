"""The page of measured figures, from figures that are given."""

from __future__ import annotations

import json

import pytest
from benchmarks import figures, results
from benchmarks.figures import OURS, Figure, Section, load_sections, record, store_section


@pytest.fixture
def results_file(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results.json")
    return tmp_path / "results.json"


def test_times_are_against_ours_in_the_same_task():
    made = (
        Figure("look-ups", OURS, "look-ups/s", (100.0, 300.0, 200.0), 1_000),
        Figure("look-ups", "other", "look-ups/s", (50.0, 40.0, 60.0), 1_000),
        Figure("seconds", OURS, "s", (2.0,)),
        Figure("seconds", "other", "s", (1.0,)),
    )
    page = results.results_markdown({"processor": "a"}, [Section("lookups", "2027-01-15", 0.2, made)])

    assert "| 1,000 | mailverdict | 200 look-ups/s | 300 to 100 |  |" in page
    assert "| 1,000 | other | 50 look-ups/s | 60 to 40 | 4 |" in page
    assert "|  | other | 1 s | once | 0.5 |" in page
    assert "`make bench ARGS=lookups`, 2027-01-15, load 0.2" in page


def test_section_is_replaced_and_kept_in_order(results_file):
    order = ("column", "smtp")
    store_section("smtp", 0.1, [Figure("a", OURS, "s", (1.0,))], order)
    store_section("column", 0.1, [Figure("b", OURS, "s", (1.0,))], order)
    store_section("smtp", 0.1, [Figure("a", OURS, "s", (2.0,))], order)

    _, sections = load_sections()
    assert [(each.name, each.figures[0].values) for each in sections] == [("column", (1.0,)), ("smtp", (2.0,))]


def test_figures_of_another_machine_are_dropped(results_file):
    store_section("column", 0.1, [Figure("b", OURS, "s", (1.0,))], ("column", "smtp"))
    stored = json.loads(results_file.read_text())
    results_file.write_text(json.dumps({**stored, "machine": {"processor": "another"}}))
    store_section("smtp", 0.1, [Figure("a", OURS, "s", (1.0,))], ("column", "smtp"))

    assert [each.name for each in load_sections()[1]] == ["smtp"]


def test_record_writes_only_where_a_file_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv(figures.VARIABLE, raising=False)
    record("a", OURS, [1.0])
    monkeypatch.setenv(figures.VARIABLE, str(tmp_path / "figures.jsonl"))
    record("a", OURS, [1.0, 2.0], "MB", 3)

    assert figures.read_figures(tmp_path / "figures.jsonl") == (Figure("a", OURS, "MB", (1.0, 2.0), 3),)


def test_pictures_are_made_for_both_schemes_and_stay_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "PICTURES", tmp_path)
    made = [
        Figure("a", name, "s", (size / 1e6 * n,), size) for n, name in ((1, OURS), (2, "other")) for size in (10, 100)
    ]
    results.draw("lines", "Seconds", made, results.draw_lines)
    results.draw("bars", "Seconds", made[:1], results.draw_bars)
    first = {path.name: path.read_text() for path in tmp_path.iterdir()}
    results.draw("lines", "Seconds", made, results.draw_lines)

    assert sorted(first) == ["bars-dark.svg", "bars-light.svg", "lines-dark.svg", "lines-light.svg"]
    assert (tmp_path / "lines-light.svg").read_text() == first["lines-light.svg"]
    assert "mailverdict" in first["lines-light.svg"]
    assert "<image" not in first["lines-light.svg"]
