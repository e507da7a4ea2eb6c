"""Groups of options: a command shows the options of a group in its place and gets what the group makes of them."""

from __future__ import annotations

import inspect

import typer
from typer.testing import CliRunner

from mailverdict.cli.options import add_options
from tests.doubles.tables import each_row


def pair_options(first: int = 1, second: int = 2) -> tuple[int, int]:
    return first, second


@add_options(pair_options, "pair")
def outer_options(
    *, before: str = "b", pair: tuple[int, int], after: str = "a"
) -> tuple[str, tuple[int, int], str]:
    return before, pair, after


@add_options(outer_options, "outer")
def command(
    name: str,
    *,
    loud: bool = False,
    outer: tuple[str, tuple[int, int], str],
    last: int = 9,
) -> None:
    """Say what was given."""
    print(name, loud, outer, last)


def test_options_of_groups_are_in_the_place_of_the_group():
    assert list(inspect.signature(command).parameters) == [
        "name", "loud", "before", "first", "second", "after", "last"
    ]  # fmt: skip


@each_row(
    ("arguments", "said"),
    [
        (["x"], "x False ('b', (1, 2), 'a') 9\n"),
        (["--second", "7", "x", "--after", "z", "--loud"], "x True ('b', (1, 7), 'z') 9\n"),
    ],
)
def test_a_command_gets_what_its_groups_return(arguments, said):
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.output) == (0, said)
