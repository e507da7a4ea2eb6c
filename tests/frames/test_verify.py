"""`verify` and its siblings: what users type, and everything they can type wrong."""

from __future__ import annotations

import asyncio
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import mailverdict as mv
from mailverdict.backend import Deferred, Noticed, Settled
from mailverdict.errors import BackendError, ColumnError, QuotaExceeded, SettingsError
from mailverdict.model.table import complete_table
from mailverdict.repair.words import MISSING, SIGNS_AROUND
from mailverdict.runs.execution import FREE_BATCH
from tests.doubles.scripted_backend import ScriptedBackend, rows_of
from tests.doubles.tables import each_row

CELLS = [
    "ada@example.org",
    "Ada@EXAMPLE.org",
    "ADA@example.org",
    " ada@example.org ",
    None,
    "nobody",
    7,
]

# An address that is none, or is one, and what is said of it.
BAD_TEXT = [
    ("ada\x00@example.org", "control character in it: U+0000"),
    ("ada\r\n@example.org", "control character in it: U+000D"),
    ("ada@example.org\nBcc: x@y.org", "more than one address"),
    ("ada@exa\u200bmple.org", "U+200B (ZERO WIDTH SPACE)"),
    ("\u202eada@example.org", "U+202E (RIGHT-TO-LEFT OVERRIDE)"),
    ("ada@example.org\u2069", "U+2069"),
    ("a@" + "a." * 1_000 + "org", "longer than 254"),
    ("a@" + "a." * 120 + "org", None),
    ("x" * 10_000_000 + "@example.org", "longer than 254"),
    ("\ud800@example.org", "U+005C"),
    ("مثال@example.org", None),
    ("@", "nothing before the @"),
    ("=cmd|' /C calc'!A0", "no @"),
]


def verify(data, *column, **options):
    return mv.verify(data, *column, validation_type="regex", **options)


@each_row(("cell", "told"), BAD_TEXT, ids=lambda v: repr(v)[:40])
def test_hostile_text_is_a_row_with_a_reason(cell, told):
    out = verify(
        [cell, "ada@example.org", cell], columns=["verdict", "status", "error_message"], clean=False
    )
    assert out["status"].tolist() == ["done"] * 3
    wanted = "valid" if told is None else "invalid"
    assert out["verdict"].tolist() == [wanted, "valid", wanted]
    if told is not None:
        assert told in out["error_message"][0]
        assert "\n" not in out["error_message"][0]


@given(
    st.lists(
        st.one_of(st.text(), st.from_regex(r"[^@]{0,9}@[^@]{0,12}\.[a-z]{2}", fullmatch=True)),
        max_size=5,
    )
)
@example(["\ud800", "\x1f@\x1f.org", "\x85", "a@b.c\u2028", ")"])
def test_any_text_gives_a_row_each(cells):
    out = verify(cells, columns=["verdict", "status"])
    blank = [cell.strip().lower().strip(SIGNS_AROUND) in MISSING for cell in cells]
    assert [status == "missing" for status in out["status"]] == blank
    assert out["verdict"].isna().tolist() == blank


def test_what_is_one_address_is_asked_once():
    backend = ScriptedBackend()
    out = mv.verify(CELLS, validation_type="mx", backend=backend, journal=None)
    assert backend.asked == [["ada@example.org", "Ada@example.org", "ADA@example.org"]]
    assert out["verdict"].astype("string").fillna("-").tolist() == ["valid"] * 4 + [
        "-",
        "invalid",
        "invalid",
    ]


def test_malformed_and_odd_cells_are_never_sent():
    backend = ScriptedBackend()
    mv.verify(
        ["nobody", 7, None, "", "a b@example.org"],
        validation_type="smtp",
        backend=backend,
        journal=None,
    )
    assert backend.asked == []


def test_the_same_twice_gives_the_same():
    first, second = (verify(CELLS, columns="all").drop(columns="checked_at") for _ in range(2))
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.slow
def test_more_rows_than_a_batch_keep_their_order():
    cells = np.tile(
        np.array(["ada@example.org", "nobody", "info@gmial.com"], dtype=object), FREE_BATCH // 3 + 2
    )
    # Texts alone: a number would have each cell read by itself.
    cells[[0, FREE_BATCH, -1]] = (
        None,
        "7",
        None,
    )
    out = verify(
        pd.Series(cells, dtype=object), columns=["verdict", "role", "suggestion", "error_message"]
    )
    assert len(out) == len(cells) > FREE_BATCH
    wanted = np.tile(np.array(["valid", "invalid", "valid"], dtype=object), FREE_BATCH // 3 + 2)
    wanted[[0, FREE_BATCH, -1]] = None, "invalid", None
    assert (out["verdict"].astype(object).fillna("-") == pd.Series(wanted).fillna("-")).all()
    assert out["error_message"][FREE_BATCH] == "There is no @."
    assert out["suggestion"].count() == (cells == "info@gmial.com").sum()
    assert out["role"].sum() == (cells == "info@gmial.com").sum()


@pytest.mark.slow
def test_many_threads_at_once_each_get_their_own():
    frames = [
        pd.DataFrame({"email": [f"ada{n}@example.org", "nobody", None] * n}) for n in range(1, 9)
    ]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda frame: verify(frame, "email"), frames))
    for frame, out in zip(frames, together, strict=True):
        pd.testing.assert_frame_equal(out, verify(frame, "email"))


def test_a_limit_leaves_the_rest_pending_also_where_nothing_is_asked():
    out = verify(["a@example.org", "b@example.org", "c@example.org"], limit=2)
    assert out["status"].tolist() == ["done", "done", "pending"]
    assert out["verdict"].isna().tolist() == [False, False, True]


def test_offline_tells_the_malformed_and_leaves_the_rest_pending():
    out = mv.verify(["ada@example.org", "nobody", None, 7], validation_type="mx", offline=True)
    assert out["status"].tolist() == ["pending", "done", "missing", "done"]


WRONG = [
    (
        {"validation_type": "mxx"},
        "validation_type='mxx': give one of regex, mx, mx_blacklist, smtp",
    ),
    ({"validation_type": None}, "validation_type=None"),
    ({"backend": 7}, "backend=7: give None, the URL"),
    ({"backend": mv.LocalBackend}, "backend=.*LocalBackend.*: give None"),
    ({"journal": 7}, "journal=7: give 'auto'"),
    ({"max_age": "soon"}, "max_age='soon' is not a duration"),
    ({"max_age": -1}, "max_age=-1"),
    ({"refresh": "unknwon"}, "refresh: 'unknwon' is not one of valid, risky"),
    ({"refresh": None}, "refresh=None: give verdicts"),
    ({"refresh": [1]}, "refresh: '1' is not one of"),
    ({"limit": -1}, "limit=-1: give a whole number"),
    ({"limit": 1.5}, "limit=1.5"),
    ({"limit": True}, "limit=True"),
    ({"on_quota": "wat"}, "on_quota='wat': give one of stop, raise, wait"),
    ({"screen": "smtp"}, "screen='smtp': give None, 'mx', or a LocalBackend"),
    ({"columns": "cor"}, "columns='cor'"),
    ({"progress": "always"}, "progress='always': give 'auto', True, False or a function"),
]


@each_row(("wrong", "told"), WRONG, ids=lambda v: str(v)[:40])
@each_row("function", [mv.verify, mv.start, lambda *a, **k: asyncio.run(mv.averify(*a, **k))])
def test_an_argument_that_cannot_work_is_refused_before_any_work(function, wrong, told):
    backend = ScriptedBackend()
    with pytest.raises(SettingsError, match=told):
        function(
            ["ada@example.org"],
            **{"validation_type": "mx", "backend": backend, "journal": None, **wrong},
        )
    assert backend.asked == []


def test_a_prefix_that_would_overwrite_is_refused_before_any_work():
    backend = ScriptedBackend()
    frame = pd.DataFrame({"email": CELLS, "verdict": 1})
    with pytest.raises(
        SettingsError, match="'verdict' that mailverdict did not write; give another prefix"
    ):
        mv.verify(frame, "email", prefix="", backend=backend, journal=None)
    assert backend.asked == []


@each_row("name", ["start", "averify", "plan"])
def test_the_siblings_refuse_an_argument_that_verify_does_not_have(name):
    def call():
        outcome = getattr(mv, name)(["ada@example.org"], type="regex")
        return asyncio.run(outcome)

    told = rf"^{name} has no argument 'type' \(did you mean 'validation_type'\?\)$"
    with pytest.raises(SettingsError, match=told):
        call()


class TestCheck:
    def test_one_address_gives_the_payload(self):
        payload = mv.check(" Ada@Example.ORG ", validation_type="regex").to_dict()
        assert payload["email"] == "Ada@Example.ORG"
        assert (payload["result"], payload["checks"], payload["role"]) == (
            "valid",
            {"syntax": True},
            False,
        )

    @each_row(("cell", "told"), BAD_TEXT, ids=lambda v: repr(v)[:40])
    def test_hostile_text_is_a_verdict(self, cell, told):
        # The text of a cell shows the code of what is not a character.
        told = told and told.replace("U+005C", "U+D800")
        found = mv.check(cell, validation_type="regex")
        assert found.result == ("valid" if told is None else "invalid")
        assert len(found.email) <= 1_000
        found.email.encode()
        if told is not None:
            assert told in found.errors[0].message

    @each_row("email", ["", "  ", None, 7, b"ada@example.org", ["ada@example.org"]])
    def test_nothing_to_check_is_refused(self, email):
        with pytest.raises(SettingsError, match="give one address as text"):
            mv.check(email, validation_type="regex")

    def test_a_technical_failure_is_an_error_that_says_why(self):
        failed = complete_table(
            {"email": pa.array(["ada@example.org"]), "status": pa.array(["error"])}, 1
        )
        backend = ScriptedBackend([Settled(failed)])
        with pytest.raises(
            BackendError, match="the backend could not verify the address: no cause is known"
        ):
            mv.check("ada@example.org", validation_type="mx", backend=backend)

    def test_what_the_backend_defers_is_an_error(self):
        backend = ScriptedBackend([Deferred(("ada@example.org",), "quota")])
        with pytest.raises(QuotaExceeded, match="today's quota is used up"):
            mv.check("ada@example.org", validation_type="mx", backend=backend)
        backend = ScriptedBackend([Deferred(("ada@example.org",), "gave_up")])
        with pytest.raises(
            BackendError, match="the backend has not verified the address yet: gave_up"
        ):
            mv.check("ada@example.org", validation_type="mx", backend=backend)


class TestNotices:
    def test_a_notice_is_a_warning_at_the_callers_line_once(self):
        backend = ScriptedBackend(
            [Noticed("half the list is asleep"), Noticed("half the list is asleep")]
        )
        with pytest.warns(UserWarning, match="half the list") as told:
            mv.verify(["ada@example.org"], validation_type="mx", backend=backend, journal=None)
        assert [each.filename for each in told] == [__file__]

    def test_averify_warns_of_it_too(self):
        backend = ScriptedBackend([Noticed("half the list is asleep")])

        async def main():
            return await mv.averify(
                ["ada@example.org"], validation_type="mx", backend=backend, journal=None
            )

        with pytest.warns(UserWarning, match="half the list") as told:
            asyncio.run(main())
        assert [each.filename for each in told] == [__file__]

    def test_it_names_the_line_of_the_caller_of_an_accessor_or_of_pipe(self):
        frame = pd.DataFrame({"email": [7]})
        columns = {"address": "email", "diagnostic": "email"}
        calls = [
            lambda: frame.mailverdict.verify("email", validation_type="regex"),
            lambda: frame.pipe(mv.verify, "email", validation_type="regex"),
            lambda: frame.pipe(mv.clean, "email"),
            lambda: frame.mailverdict.explode("email"),
            lambda: frame.pipe(mv.duplicates, "email"),
            lambda: frame.pipe(mv.suppress, "email", ["x.example"]),
            lambda: pd.Series(["x@x.example"]).pipe(mv.suppress, None, ["7"]),
            lambda: frame.pipe(mv.read_bounces, columns=columns),
        ]
        for call in calls:
            with pytest.warns(
                UserWarning, match=r"no cell of column|suppress nothing|could not be read"
            ) as told:
                call()
            assert [(each.filename, each.lineno) for each in told] == [
                (__file__, call.__code__.co_firstlineno)
            ]


class TestFailure:
    def test_what_was_settled_is_on_the_error_in_the_callers_form(self):
        frame = pd.DataFrame({"email": ["a@example.org", "b@example.org", None]}, index=[3, 3, 1])
        backend = ScriptedBackend(
            [Settled(rows_of(["b@example.org"])), BackendError("the line is dead")]
        )
        with pytest.raises(BackendError, match="the line is dead") as caught:
            mv.verify(frame, "email", validation_type="mx", backend=backend, journal=None)
        partial = caught.value.partial
        assert partial.index.tolist() == [3, 3, 1]
        assert partial["email_status"].tolist() == ["pending", "done", "missing"]

    def test_quota_with_raise_is_an_error_with_the_partial_frame(self):
        backend = ScriptedBackend(
            [Settled(rows_of(["a@example.org"])), Deferred(("b@example.org",), "quota")]
        )
        with pytest.raises(QuotaExceeded, match="1 address is left") as caught:
            mv.verify(
                ["a@example.org", "b@example.org"], backend=backend, journal=None, on_quota="raise"
            )
        assert caught.value.partial["status"].tolist() == ["done", "pending"]
        assert caught.value.requested == 1

    def test_an_answer_about_a_stranger_is_the_backends_error(self):
        backend = ScriptedBackend([Settled(rows_of(["eve@example.org"]))])
        with pytest.raises(
            BackendError, match=r"answered about 'eve@example\.org', which it was not asked about"
        ):
            mv.verify(["ada@example.org"], backend=backend, journal=None)


class TestAverify:
    def test_the_same_as_verify(self):
        out = asyncio.run(
            mv.averify(CELLS, validation_type="regex", columns=["verdict", "status"], prefix="x_")
        )
        pd.testing.assert_frame_equal(
            out, verify(CELLS, columns=["verdict", "status"], prefix="x_")
        )

    def test_the_awaiting_loop_stays_free(self):
        backend = ScriptedBackend(gate=(gate := threading.Event()))

        async def main():
            task = asyncio.ensure_future(
                mv.averify(["ada@example.org"], backend=backend, journal=None)
            )
            while not backend.asked:  # turns only while the loop is free
                await asyncio.sleep(0.001)
            gate.set()
            return await task

        assert asyncio.run(main())["verdict"].tolist() == ["valid"]

    def test_cancelling_the_await_stops_the_run(self):
        backend = ScriptedBackend(gate=threading.Event())

        async def main():
            task = asyncio.ensure_future(
                mv.averify(["ada@example.org"], backend=backend, journal=None)
            )
            while not backend.asked:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(backend.closed.wait)

        asyncio.run(main())

    def test_wrong_columns_are_reported_before_any_work(self):
        with pytest.raises(ColumnError, match="no column 'mail'"):
            asyncio.run(mv.averify(pd.DataFrame({"email": CELLS}), "mail"))


def test_no_warning_comes_from_an_ordinary_call():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verify(pd.DataFrame({"email": CELLS}), "email")
