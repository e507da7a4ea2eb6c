"""`read_bounces`: every kind of mailbox, what cannot be read, delays and finals, and the frame."""

from __future__ import annotations

import mailbox
import warnings

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import mailverdict as mv
from mailverdict.bounces.read import OUTCOME_DTYPE
from mailverdict.checks.bounces.outcome import Outcome
from tests.checks.bounces.shapes import ADA, SHAPES, dsn, mail, recipient
from tests.doubles.tables import each_row

REPORTS = [shape for shape in SHAPES if shape.outcome]
OTHERS = len(SHAPES) - len(REPORTS)
EXPECTED = [(shape.address, shape.outcome) for shape in REPORTS]
# Every shape about ada@firm.example, which would replace the delays, has its own address in a
# mailbox.
BOUNCE = dsn(recipient("5.1.1", "smtp; 550 5.1.1 User unknown"))


def rows_of(frame):
    return list(zip(frame["address"], frame["outcome"].astype(str), strict=True))


def final(rows):
    """The rows that are left when delays are replaced."""
    return [row for row in rows if row[1] != "soft"]


@pytest.fixture
def mbox(tmp_path):
    path = tmp_path / "bounces.mbox"
    box = mailbox.mbox(path)
    for shape in SHAPES:
        box.add(shape.data)
    box.close()
    return path


class TestMailboxes:
    def test_an_mbox_file_is_read(self, mbox):
        found = mv.read_bounces(mbox)
        assert final(rows_of(found)) == final(EXPECTED)
        note = found.attrs["bounces"]
        assert (note["mails"], note["other"], note["unread"]) == (len(SHAPES), OTHERS, 0)
        assert len(found) + note["replaced_delays"] == len(REPORTS)

    def test_a_maildir_with_its_subfolders(self, tmp_path):
        box = mailbox.Maildir(tmp_path / "Maildir", create=True)
        for shape in SHAPES[:20]:
            box.add(shape.data)
        box.add_folder("Bounces").add(SHAPES[20].data)
        found = mv.read_bounces(tmp_path / "Maildir")
        assert sorted(rows_of(found)) == sorted(EXPECTED[:21])

    def test_one_mail_and_a_list_of_mails(self, tmp_path):
        for name in ("a.eml", "b.eml"):
            (tmp_path / name).write_bytes(BOUNCE)
        assert rows_of(mv.read_bounces(tmp_path / "a.eml")) == [(ADA, "hard")]
        assert len(mv.read_bounces([tmp_path / "a.eml", str(tmp_path / "b.eml")])) == 2

    def test_a_folder_of_all_kinds(self, tmp_path, mbox):
        (tmp_path / "more").mkdir()
        (tmp_path / "more" / "one.eml").write_bytes(BOUNCE)
        (tmp_path / "more" / "without an ending").write_bytes(BOUNCE)
        (tmp_path / "export.csv").write_text(
            "email,created,status,reason\nbo@firm.example,1772529300,5.1.1,550 5.1.1 No\n"
        )
        (tmp_path / "picture.png").write_bytes(b"\x89PNG")
        (tmp_path / ".hidden.eml").write_bytes(BOUNCE)
        with pytest.warns(
            UserWarning,
            match=r"1 of \d+ mails and rows could not be read: picture\.png: not a mailbox",
        ):
            found = mv.read_bounces(tmp_path)
        assert final(rows_of(found)) == [
            *final(EXPECTED),
            ("bo@firm.example", "hard"),
            *[(ADA, "hard")] * 2,
        ]

    def test_nothing_is_written_to_the_mailbox(self, mbox):
        mbox.chmod(0o400)
        before = mbox.read_bytes(), mbox.stat().st_mtime_ns
        mv.read_bounces(mbox)
        assert (mbox.read_bytes(), mbox.stat().st_mtime_ns) == before

    def test_what_cannot_be_read_is_named_with_its_place(self, tmp_path):
        path = tmp_path / "box"
        parts = [BOUNCE, mail("Something went wrong.\n"), BOUNCE, b"\n", BOUNCE]
        path.write_bytes(
            b"".join(b"From x Tue Mar  3 10:15:00 2026\n" + part + b"\n" for part in parts)
        )
        with pytest.warns(
            UserWarning,
            match=r"2 of 5 mails and rows could not be read: box, mail 2: a bounce without",
        ):
            found = mv.read_bounces(path)
        assert len(found) == 3
        assert [place for place, _ in found.attrs["bounces"]["problems"]] == [
            "box, mail 2",
            "box, mail 4",
        ]

    @pytest.mark.parametrize(
        ("name", "data", "message"),
        [
            ("a.bin", b"\0\1\2", "not a mailbox"),
            ("a.msg", b"\xd0\xcf\x11\xe0", "save it as .eml"),
            ("a.mbox.gz", b"\x1f\x8b", "unpack it"),
            ("a.csv", b"x,y\n1,2\n", "not an export that is known"),
        ],
    )
    def test_another_file_is_an_error(self, tmp_path, name, data, message):
        (tmp_path / name).write_bytes(data)
        with pytest.raises((mv.InputError, mv.ColumnError), match=message):
            mv.read_bounces(tmp_path / name)

    def test_no_file_and_no_frame(self, tmp_path):
        with pytest.raises(mv.InputError, match="no such file"):
            mv.read_bounces(tmp_path / "none")
        with pytest.raises(mv.InputError, match="has no files"):
            mv.read_bounces(tmp_path)
        with pytest.raises(mv.SettingsError, match="of type int"):
            mv.read_bounces(7)


class TestDelays:
    def mails(self, tmp_path, *parts):
        for number, part in enumerate(parts):
            (tmp_path / f"{number}.eml").write_bytes(part)
        return mv.read_bounces(tmp_path)

    def sent(self, number):
        return f"To: {ADA}\nMessage-ID: <m{number}@shop.example>\n\nHello\n"

    def delay(self, number=1):
        return dsn(recipient("4.4.1", action="delayed"), returned=self.sent(number))

    def test_a_final_report_replaces_a_delay(self, tmp_path):
        found = self.mails(tmp_path, self.delay(), dsn(recipient("5.1.1"), returned=self.sent(1)))
        assert rows_of(found) == [(ADA, "hard")]
        assert found.attrs["bounces"]["replaced_delays"] == 1

    def test_a_delivery_replaces_a_delay(self, tmp_path):
        found = self.mails(
            tmp_path,
            self.delay(),
            dsn(recipient("2.0.0", action="delivered"), returned=self.sent(1)),
        )
        assert rows_of(found) == [(ADA, "delivered")]

    def test_a_delay_of_another_mail_stays(self, tmp_path):
        found = self.mails(tmp_path, self.delay(2), dsn(recipient("5.1.1"), returned=self.sent(1)))
        assert rows_of(found) == [(ADA, "soft"), (ADA, "hard")]

    def test_a_repeated_delay_is_one_row(self, tmp_path):
        assert (
            rows_of(self.mails(tmp_path, self.delay(), self.delay(), self.delay(2)))
            == [(ADA, "soft")] * 2
        )


class TestFrame:
    def test_dtypes_are_those_documented_for_full_and_empty_input(self, tmp_path):
        (tmp_path / "a.eml").write_bytes(BOUNCE)
        (tmp_path / "b.eml").write_bytes(mail("Thank you.\n", sender=ADA, subject="Re: March"))
        for name, size in (("a.eml", 1), ("b.eml", 0)):
            found = mv.read_bounces(tmp_path / name)
            assert len(found) == size
            assert list(found.columns) == [
                "address",
                "at",
                "outcome",
                "status",
                "diagnostic",
                "reason",
            ]
            assert found["outcome"].dtype == OUTCOME_DTYPE
            assert str(found["at"].dtype) == "datetime64[us, UTC]"
            assert {
                str(found[each].dtype) for each in ("address", "status", "diagnostic", "reason")
            } == {"string"}

    def test_the_categories_are_all_outcomes(self):
        assert set(OUTCOME_DTYPE.categories) == set(map(str, Outcome))

    @each_row("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
    def test_the_kind_of_frame_is_kept(self, convert):
        export = pd.DataFrame(
            {"address": [ADA], "code": ["550"], "error": ["User unknown"], "created_at": ["x"]}
        )
        found = mv.read_bounces(convert(export))
        assert (
            type(found).__module__.partition(".")[0]
            == type(convert(export)).__module__.partition(".")[0]
        )
        assert pd.DataFrame(found.to_pandas() if hasattr(found, "to_pandas") else found)[
            "outcome"
        ].tolist() == ["hard"]

    @pytest.mark.slow
    def test_what_was_read_can_be_written_and_read_again(self, tmp_path, mbox):
        found = mv.read_bounces(mbox)
        for name, write in (("a.csv", found.to_csv), ("a.parquet", found.to_parquet)):
            write(tmp_path / name, index=False)
            again = mv.read_bounces(tmp_path / name)
            pd.testing.assert_frame_equal(again, found, check_flags=False)

    def test_no_warning_if_all_was_read(self, mbox):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mv.read_bounces(mbox)


class TestSuppression:
    def test_only_hard_bounces_and_complaints_are_suppressed(self, tmp_path):
        frame = pd.DataFrame(
            {
                "email": [f"{name}@x.example" for name in "abcde"],
                "Type": [*OUTCOME_DTYPE.categories],
            },
        )
        bounces = mv.read_bounces(frame, columns={"address": "email", "outcome": "Type"})
        bounces.to_csv(tmp_path / "b.csv", index=False)
        kinds = bounces, pl.from_pandas(bounces), pa.Table.from_pandas(bounces), tmp_path / "b.csv"
        for against in kinds:
            marked = mv.suppress(frame, "email", against)["email_suppressed"]
            assert dict(zip(frame["Type"], marked, strict=True)) == {
                "delivered": False, "hard": True, "soft": False, "blocked": False,
                "complaint": True,
            }  # fmt: skip
