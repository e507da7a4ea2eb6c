"""Parquet files and folders, and Arrow files: read in pieces, written whole."""

import functools

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest

from mailverdict.errors import InputError
from mailverdict.files import arrow_messages, columnar
from mailverdict.files.readers import open_table
from mailverdict.files.table_file import MAX_COLUMNS
from mailverdict.files.writers import create_table

TABLE = pa.table(
    {
        "id": [1, 2, 3],
        "mail": pa.array(["ada@x.example", None, "bob@x.example"]),
        "at": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
        "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
    }
)


def whole(path, only=None):
    with open_table(path) as table:
        return pa.concat_tables(table.pieces(only), promote_options="permissive")


class TestArrow:
    def write(self, path, kind):
        if kind == "stream":
            with pa.ipc.new_stream(str(path), TABLE.schema) as writer:
                writer.write_table(TABLE)
        else:
            pyarrow.feather.write_feather(TABLE, str(path), compression=kind)

    @pytest.mark.parametrize("kind", ["stream", "lz4", "zstd", "uncompressed"])
    @pytest.mark.parametrize("ending", ["feather", "arrow", "ipc"])
    def test_files_and_streams_are_read(self, tmp_path, kind, ending, monkeypatch):
        monkeypatch.setattr(columnar, "PIECE_ROWS", 2)
        path = tmp_path / f"in.{ending}"
        self.write(path, kind)
        with open_table(path) as table:
            assert [len(piece) for piece in table.pieces()] == [2, 1]
        assert whole(path).equals(TABLE)

    def test_columns_that_are_not_needed_are_null(self, tmp_path):
        path = tmp_path / "in.feather"
        self.write(path, "lz4")
        found = whole(path, ["mail"])
        assert found.column_names == TABLE.column_names
        assert found["mail"].equals(TABLE["mail"])
        assert pa.types.is_null(found["id"].type)

    def test_what_is_written_is_read_by_pandas(self, tmp_path):
        path = tmp_path / "out.feather"
        with create_table(path) as writer:
            for piece in (
                TABLE,
                TABLE.set_column(3, "kind", pa.array(["c", "d", None]).dictionary_encode()),
            ):
                writer.write(piece)
        found = pd.read_feather(path)
        assert found["kind"].astype(object).where(found["kind"].notna(), None).tolist() == [
            "a",
            "b",
            "a",
            "c",
            "d",
            None,
        ]
        assert found["at"].dtype == pd.DatetimeTZDtype("us", "UTC")

    def test_an_empty_table_keeps_its_columns(self, tmp_path):
        path = tmp_path / "in.arrow"
        pyarrow.feather.write_feather(TABLE.slice(0, 0), str(path))
        assert whole(path).schema.names == TABLE.column_names

    @pytest.mark.parametrize(
        ("content", "message"),
        [(b"FEA1\0\0\0\0", "Feather version 1"), (b"id,mail\n", "in.feather: ")],
    )
    def test_another_kind_of_file_is_refused(self, tmp_path, content, message):
        path = tmp_path / "in.feather"
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            open_table(path)

    def test_a_truncated_file_is_refused(self, tmp_path):
        path = tmp_path / "in.arrow"
        self.write(path, "stream")
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(InputError, match=r"in\.arrow"):
            whole(path)


class TestParquet:
    def test_only_the_needed_columns_are_read(self, tmp_path):
        path = tmp_path / "in.parquet"
        pyarrow.parquet.write_table(TABLE, path)
        assert pa.types.is_null(whole(path, ["mail"])["at"].type)
        assert whole(path).equals(TABLE)

    def folder(self, tmp_path, **parts):
        for name, table in parts.items():
            path = tmp_path / "data" / name.replace("__", "/").replace("_is_", "=")
            path.parent.mkdir(parents=True, exist_ok=True)
            pyarrow.parquet.write_table(table, path.with_suffix(".parquet"))
        return tmp_path / "data"

    def test_a_folder_is_one_table_in_the_order_of_the_names(self, tmp_path):
        folder = self.folder(tmp_path, b=TABLE.slice(2), a=TABLE.slice(0, 2))
        (folder / "_SUCCESS").write_text("")
        (folder / "notes.txt").write_text("x")
        with open_table(folder) as table:
            assert table.remarks == [
                "2 Parquet files",
                "1 other file in the folder is not read: 'notes.txt'",
            ]
        assert whole(folder)["id"].to_pylist() == [1, 2, 3]
        assert whole(folder, ["mail"])["mail"].to_pylist() == TABLE["mail"].to_pylist()

    def test_many_rows_stay_in_order(self, tmp_path, monkeypatch):
        monkeypatch.setattr(columnar, "PIECE_ROWS", 1_000)
        parts = {
            f"p{n}": pa.table({"n": np.arange(n * 5_000, n * 5_000 + 5_000)}) for n in range(4)
        }
        folder = self.folder(tmp_path, **parts)
        assert whole(folder)["n"].to_pylist() == list(range(20_000))

    def test_names_of_folders_are_a_column(self, tmp_path):
        folder = self.folder(
            tmp_path, country_is_de__a=TABLE.slice(0, 1), country_is_fr__a=TABLE.slice(1)
        )
        found = whole(folder)
        assert found["country"].to_pylist() == ["de", "fr", "fr"]
        assert found["id"].to_pylist() == [1, 2, 3]

    def test_a_column_that_only_a_later_file_has_is_kept(self, tmp_path):
        folder = self.folder(tmp_path, a=TABLE.select(["id"]), b=TABLE.select(["id", "mail"]))
        assert whole(folder)["mail"].to_pylist() == [None] * 3 + TABLE["mail"].to_pylist()
        with open_table(folder) as table:
            assert table.remarks[1:] == [
                "not every file has 'mail': in the rows of the others it is empty"
            ]

    def test_types_that_contradict_each_other_are_refused(self, tmp_path):
        folder = self.folder(tmp_path, a=pa.table({"id": [1]}), b=pa.table({"id": ["x"]}))
        with pytest.raises(InputError, match=r"different types for a column.*id"):
            open_table(folder)

    def test_a_damaged_file_in_a_folder_is_refused(self, tmp_path):
        folder = self.folder(tmp_path, a=TABLE)
        (folder / "b.parquet").write_bytes(b"PAR1 nothing")
        with pytest.raises(InputError, match=r"data: b\.parquet: "):
            open_table(folder)

    @pytest.mark.parametrize(
        ("log", "kind"),
        [
            ("_delta_log/0.json", "a Delta table"),
            (".hoodie/x", "a Hudi table"),
            ("metadata/v1.metadata.json", "an Iceberg table"),
        ],
    )
    def test_a_folder_with_rows_that_were_deleted_is_refused(self, tmp_path, log, kind):
        folder = self.folder(tmp_path, a=TABLE)
        (folder / log).parent.mkdir()
        (folder / log).touch()
        with pytest.raises(
            InputError,
            match=f"data is {kind}, whose folder also has the files of deleted rows: read",
        ):
            open_table(folder)

    def test_a_folder_without_tables_is_refused(self, tmp_path):
        with pytest.raises(InputError, match="is a directory without Parquet files"):
            open_table(tmp_path)


@functools.cache
def wide_table():
    return pa.table({f"c{n}": pa.array([1], pa.int8()) for n in range(MAX_COLUMNS + 1)})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["in.arrow", "in.parquet", "in"])
def test_more_columns_than_a_spreadsheet_has_are_refused(tmp_path, name):
    path = tmp_path / name
    table = wide_table()
    for columns, is_read in ((MAX_COLUMNS, True), (MAX_COLUMNS + 1, False)):
        part = table.select(range(columns))
        if name == "in.arrow":
            pyarrow.feather.write_feather(part, str(path))
        else:
            path.mkdir(exist_ok=True) if name == "in" else None
            pyarrow.parquet.write_table(part, path / "a.parquet" if name == "in" else path)
        if is_read:
            assert whole(path, ["c0"]).num_columns == columns
        else:
            with pytest.raises(
                InputError,
                match=f"{name}: 16,385 columns or more; 16,384 are read at most: leave out",
            ):
                open_table(path)


# --- octets of a piece ------------------------------------------------------------------

LONG = "x" * 20_000


def write_long(path, rows, **options):
    """A small file of much text: few values, each kept once."""
    notes = pa.array([LONG + str(n % 3) for n in range(3)]).take(pa.array(np.arange(rows) % 3))
    mails = pa.array([f"a{n}@x.example" for n in range(rows)])
    table = pa.table({"mail": mails, "note": notes})
    pyarrow.parquet.write_table(table, path, compression="zstd", **options)
    return table


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 700},
        {"use_dictionary": False},
        {"use_dictionary": False, "column_encoding": {"note": "DELTA_BYTE_ARRAY"}},
        {"store_schema": False},
    ],
)
def test_pieces_of_a_parquet_file_have_few_octets(tmp_path, options, monkeypatch):
    monkeypatch.setattr(columnar, "PIECE_OCTETS", 2**20)
    path = tmp_path / "long.parquet"
    written = write_long(path, 3_000, **options)
    sizes, rows = [], []
    with open_table(path) as table:
        for piece in table.pieces():
            sizes.append(piece.nbytes)
            rows.append(piece)
    assert pa.concat_tables(rows).cast(written.schema).equals(written)
    slack = 2**20 + columnar.SHORT_PIECE * len(LONG)
    assert max(sizes) <= slack
    assert len(sizes) > 10


def test_pieces_of_a_folder_have_few_octets_and_the_types_of_all_files(tmp_path, monkeypatch):
    monkeypatch.setattr(columnar, "PIECE_OCTETS", 2**20)
    folder = tmp_path / "table"
    for country in ("de", "fr"):
        (folder / f"country={country}").mkdir(parents=True)
    write_long(folder / "country=de" / "a.parquet", 300)
    other = pa.table({"mail": ["b@x.example"], "age": pa.array([1], pa.int32())})
    pyarrow.parquet.write_table(other, folder / "country=fr" / "b.parquet")
    with open_table(folder) as table:
        pieces = list(table.pieces())
    assert max(piece.nbytes for piece in pieces) <= 2**20 + 2 * len(LONG)
    read = pa.concat_tables(pieces)
    assert read["country"].cast(pa.string()).to_pylist() == ["de"] * 300 + ["fr"]
    assert read["age"].to_pylist() == [None] * 300 + [1]
    assert read["note"].null_count == 1


@pytest.mark.parametrize("only", [["mail"], ["note"], []])
def test_other_columns_are_not_counted(tmp_path, only):
    path = tmp_path / "long.parquet"
    written = write_long(path, 1_000)
    read = whole(path, only)
    assert len(read) == 1_000
    for name in only:
        assert read[name].equals(written[name])


def test_lists_and_dictionaries_of_the_user_are_read_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(columnar, "PIECE_OCTETS", 2**16)
    path = tmp_path / "nested.parquet"
    values = pa.array([["a", None, LONG], [], None] * 100)
    kinds = pa.array(["k", "l", None] * 100).dictionary_encode()
    table = pa.table({"mail": ["a@x.example"] * 300, "tags": values, "kind": kinds})
    pyarrow.parquet.write_table(table, path)
    read = whole(path)
    assert read["tags"].combine_chunks().equals(values)
    assert read["kind"].to_pylist() == kinds.to_pylist()


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_columns_of_one_name_get_different_ones(tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    piece = pa.table(
        [["ada@x.org"], ["a"], ["b"], ["c"]], names=["email", "note", "note", "note_2"]
    )
    with create_table(path) as table:
        table.write(piece)
        table.write(piece)
    assert table.remarks == ["another column note is called note_3 in the file"]
    frame = pd.read_parquet(path) if ending == "parquet" else pd.read_feather(path)
    assert frame.to_dict("list") == {
        "email": ["ada@x.org"] * 2,
        "note": ["a"] * 2,
        "note_3": ["b"] * 2,
        "note_2": ["c"] * 2,
    }


def one_text_for_many_rows(kind, rows):
    if kind == "a dictionary":
        return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int8()), pa.array([LONG]))
    if kind == "runs":
        return pa.RunEndEncodedArray.from_arrays(
            pa.array([rows - 1, rows], pa.int32()), pa.array([LONG, None])
        )
    views = np.zeros((rows, 4), np.int32)
    views[:, 0] = len(LONG)
    views[:, 1] = np.frombuffer(LONG[:4].encode(), np.int32)
    buffers = [None, pa.py_buffer(views.tobytes()), pa.py_buffer(LONG.encode())]
    try:
        return pa.Array.from_buffers(pa.string_view(), rows, buffers)
    except ValueError:
        pytest.skip("this release of pyarrow does not make views of buffers")


@pytest.mark.parametrize("kind", ["a dictionary", "runs", "views"])
@pytest.mark.parametrize("only", [None, ["note"], ["mail"]])
def test_pieces_of_an_arrow_file_have_few_octets(tmp_path, kind, only, monkeypatch):
    monkeypatch.setattr(columnar, "PIECE_OCTETS", 2**20)
    path = tmp_path / "long.arrow"
    notes = one_text_for_many_rows(kind, 1_000)
    written = pa.table({"mail": [f"a{n}@x.example" for n in range(1_000)], "note": notes})
    pyarrow.feather.write_feather(written, str(path), compression="zstd")
    assert path.stat().st_size < 50_000
    with open_table(path) as table:
        pieces = list(table.pieces(only))
    texts = [text for piece in pieces for text in piece["note"].to_pylist()]
    if only == ["mail"]:
        assert (len(pieces), set(texts)) == (1, {None})
    else:
        assert max(map(len, pieces)) <= 2**20 // len(LONG) + 1
        assert texts == notes.to_pylist()


# --- batches that unpack to gigabytes ---------------------------------------------------


def zeros(rows):
    """A text without a sign in so many rows."""
    return pa.table({"mail": pa.array(["a@x.example"] * 3), "note": pa.array([LONG] * 3)}).take(
        pa.array(np.zeros(rows, np.int64))
    )


def write_arrow(path, table, kind, packed):
    options = pa.ipc.IpcWriteOptions(compression=packed)
    new = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with new(str(path), table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks())


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("packed", ["lz4", "zstd"])
@pytest.mark.parametrize("is_dictionary", [True, False])
def test_batch_that_unpacks_to_far_more_is_refused(
    tmp_path, kind, packed, is_dictionary, monkeypatch
):
    monkeypatch.setattr(arrow_messages, "ALWAYS_ALLOWED", 2**16)
    path = tmp_path / "in.arrow"
    table = zeros(100)
    if is_dictionary:
        values = pa.array([LONG + str(n % 10) * (n + 1) for n in range(100)])
        notes = pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), values)
        table = table.set_column(1, "note", notes)
    write_arrow(path, table, kind, packed)
    with pytest.raises(
        InputError, match=r"in\.arrow: one of its batches has .* unpacks to 2,"
    ) as got:
        open_table(path)
    assert "write it again without compression" in str(got.value)
    write_arrow(path, table, kind, None)
    assert whole(path).equals(table)


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_batches_that_unpack_to_little_are_read(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(arrow_messages, "ALWAYS_ALLOWED", 0)
    path = tmp_path / "in.arrow"
    table = pa.concat_tables([TABLE] * 50).combine_chunks()
    write_arrow(path, table, kind, "zstd")
    assert whole(path).equals(table)
    unpacked = [octets for _, octets in arrow_messages.batch_sizes(path)]
    assert 0.9 * table.nbytes < sum(unpacked) < 1.1 * table.nbytes


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_damaged_arrow_files_are_refused_or_read(tmp_path, kind):
    path = tmp_path / "in.arrow"
    write_arrow(path, TABLE, kind, "lz4")
    octets = path.read_bytes()
    for place in range(6, len(octets), 31):
        path.write_bytes(octets[:place] + bytes([octets[place] ^ 0x55]) + octets[place + 1 :])
        try:
            assert whole(path).num_columns
        except InputError:
            continue
