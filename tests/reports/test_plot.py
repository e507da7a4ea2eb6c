"""`plot`: the picture of a verified column."""

from __future__ import annotations

import io
import sys

import pandas as pd
import pytest

import mailverdict as mv
from mailverdict.theme import COLOURS
from tests.doubles.tables import each_row

pytest.importorskip("matplotlib")

MARKUP = "$\\frac{1}$ <b>\x1b"


def verified(**changes: list[object]) -> pd.DataFrame:
    """A verified frame of three rows, of which some columns are changed."""
    out = mv.verify(
        pd.DataFrame({"email": ["ada@example.org", "info@example.org", None]}),
        "email",
        validation_type="regex",
    )
    return out.assign(**{f"email_{name}": values for name, values in changes.items()})


def texts(picture) -> list[str]:
    picture.savefig(io.BytesIO())  # drawing it raises no error
    legends = [
        text.get_text()
        for axes in picture.get_axes()
        for text in (axes.get_legend().texts if axes.get_legend() else ())
    ]
    ticks = [label.get_text() for axes in picture.get_axes() for label in axes.get_yticklabels()]
    return [*(axes.get_title(loc="left") for axes in picture.get_axes()), *legends, *ticks]


@pytest.mark.slow
@each_row("dark", [False, True])
def test_verdicts_are_named_with_their_numbers_in_the_colours_of_the_theme(dark):
    picture = mv.plot(verified(), "email", dark=dark)
    assert texts(picture)[:3] == [
        "3 rows of email by verdict",
        "✓ Valid 2 (66.7%)",
        "○ Empty cell 1 (33.3%)",
    ]
    bars = [bar.get_facecolor() for bar in picture.get_axes()[0].patches]
    valid = COLOURS["valid"].dark if dark else COLOURS["valid"].light
    assert bars[0][:3] == pytest.approx([int(valid[at : at + 2], 16) / 255 for at in (1, 3, 5)])


@pytest.mark.slow
def test_reasons_are_in_words_the_most_frequent_first():
    out = verified(
        verdict=["risky", "invalid", "invalid"],
        status="done",
        details=["role", *["mailbox_not_found"] * 2],
    )
    shown = texts(mv.plot(out, "email"))
    assert "Why 3 rows are not valid" in shown
    assert shown[-2:] == ["Mailbox does not exist", "Shared mailbox such as info@"]


def test_texts_of_others_are_shown_as_they_are():
    out = verified(verdict="unknown", status="done", details=MARKUP).rename(
        columns=lambda name: name.replace("email", "$x_y$")
    )
    assert any(text.startswith("$\\frac{1}$ <b>") for text in texts(mv.plot(out, "$x_y$")))


def test_an_empty_column_has_a_picture():
    out = mv.verify(
        pd.DataFrame({"email": pd.Series([], dtype=object)}), "email", validation_type="regex"
    )
    assert texts(mv.plot(out, "email")) == ["0 rows of email by verdict"]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(mv.MissingExtraError, match=r"pip install 'mailverdict\[widgets\]'"):
        mv.plot(verified(), "email")


def test_unknown_is_the_number_of_the_summary():
    cells = ["full@plain.example", "full@plain.example", "a@plain.example; b@plain.example"]
    with mv.sandbox.World() as world, pytest.warns(UserWarning, match="several addresses"):
        out = mv.verify(
            pd.DataFrame({"email": cells}), "email", validation_type="smtp", backend=world.backend
        )
    assert mv.summary(out).loc["unknown", "rows"] == 2
    legend = mv.plot(out).get_axes()[0].get_legend().get_texts()
    assert [text.get_text() for text in legend] == [
        "? Unknown 2 (66.7%)",
        "○ Several addresses in a cell 1 (33.3%)",
    ]
