"""Rows as distinct outcomes, and back."""

import pyarrow as pa
import pytest

from mailverdict.model.table import SCHEMA, complete_table
from mailverdict.model.verification import Verification
from mailverdict.runs.journal.recall import PER_ROW, pack, unpack
from tests.doubles.tables import each_row, rows_to_table


def table(count: int) -> pa.Table:
    kinds = [("valid", ()), ("risky", ("role",)), ("unknown", ("timeout", "role"))]
    return rows_to_table(
        [
            Verification(f"u{i}@x.org", "smtp", kinds[i % 3][0], reasons=kinds[i % 3][1])
            for i in range(count)
        ],
        source="remote",
    )


def test_many_rows_are_few_outcomes() -> None:
    packed = pack(table(300))
    assert len(packed.bodies) == 3
    assert sorted(packed.labels) == ["risky", "unknown", "valid"]
    assert len(packed.codes) == 300


def test_the_columns_come_back_as_they_were() -> None:
    rows = table(10)
    packed = pack(rows)
    shared = unpack(packed.bodies).take(pa.array(packed.codes))
    for name in shared.column_names:
        assert shared[name].to_pylist() == rows[name].to_pylist(), name
    assert set(shared.column_names) == set(SCHEMA.names) - set(PER_ROW)


def test_tables_of_several_pieces_are_packed_as_one() -> None:
    rows = pa.concat_tables([table(4), table(5)])
    packed = pack(rows)
    assert len(packed.bodies) == 3
    assert (
        unpack(packed.bodies).take(pa.array(packed.codes))["result"].to_pylist()
        == rows["result"].to_pylist()
    )


def test_more_distinct_values_than_fit_in_one_number_stay_apart() -> None:
    """Seventeen columns of many values each would overflow a plain product of their sizes."""
    count = 2000
    columns = {
        field.name: pa.array([f"{field.name}{(i * 7919) % count}" for i in range(count)]).cast(
            field.type
        )
        for field in SCHEMA
        if pa.types.is_string(field.type) or pa.types.is_dictionary(field.type)
    }
    rows = complete_table(columns, count)
    packed = pack(rows)
    assert len(packed.bodies) == count
    assert (
        unpack(packed.bodies).take(pa.array(packed.codes))["extra"].to_pylist()
        == rows["extra"].to_pylist()
    )


def test_nothing_packs_to_nothing() -> None:
    packed = pack(SCHEMA.empty_table())
    assert (packed.bodies, len(packed.codes)) == ([], 0)
    assert len(unpack([])) == 0


def test_a_long_outcome_fits() -> None:
    body = '{"status":"done","metadata":"' + "x" * 20_000_000 + '"}'
    assert len(unpack([body])["metadata"][0].as_py()) == 20_000_000


@each_row("bodies", [["{"], ["{}", "nonsense"], ["[1]"], ['{"role": "text"}']])
def test_a_text_that_is_not_an_outcome_is_an_error(bodies: list[str]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - pyarrow's own message
        unpack(bodies)
