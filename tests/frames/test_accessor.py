"""`df.mailverdict` and `s.mailverdict`: the same functions from the other side."""

import pandas as pd

import mailverdict as mv

CELLS = ["Ada@Example.org", "nobody", None]
FRAME = pd.DataFrame({"email": CELLS}, index=[2, 2, 0])
SERIES = FRAME["email"]


def test_a_frame_verifies_cleans_and_sums_up():
    out = FRAME.mailverdict.verify("email", validation_type="regex")
    pd.testing.assert_frame_equal(out, mv.verify(FRAME, "email", validation_type="regex"))
    pd.testing.assert_frame_equal(FRAME.mailverdict.clean("email"), mv.clean(FRAME, "email"))
    pd.testing.assert_frame_equal(FRAME.mailverdict.duplicates("email"), mv.duplicates(FRAME, "email"))
    on_list = mv.suppress(FRAME, "email", ["example.org"])
    pd.testing.assert_frame_equal(FRAME.mailverdict.suppress("email", ["example.org"]), on_list)
    pd.testing.assert_frame_equal(out.mailverdict.summary("email"), mv.summary(out, "email"))
    pd.testing.assert_frame_equal(out.mailverdict.by_domain("email", top=1), mv.by_domain(out, "email", top=1))
    run = FRAME.mailverdict.start("email", validation_type="regex")
    pd.testing.assert_frame_equal(run.result(), out)
    assert out.attrs["mailverdict"]["email"]["validation_type"] == "regex"


def test_a_series_verifies_cleans_and_comes_apart():
    pd.testing.assert_frame_equal(
        SERIES.mailverdict.verify(validation_type="regex"), mv.verify(SERIES, validation_type="regex")
    )
    pd.testing.assert_frame_equal(SERIES.mailverdict.clean(), mv.clean(SERIES))
    pd.testing.assert_frame_equal(SERIES.mailverdict.duplicates(), mv.duplicates(SERIES))
    on_list = mv.suppress(SERIES, against=["example.org"])
    pd.testing.assert_frame_equal(SERIES.mailverdict.suppress(["example.org"]), on_list)
    assert SERIES.mailverdict.domain.fillna("-").to_dict() == {2: "-", 0: "-"}
    assert SERIES.mailverdict.domain.tolist() == ["example.org", pd.NA, pd.NA]
    assert SERIES.mailverdict.local.tolist() == ["Ada", pd.NA, pd.NA]
    assert SERIES.mailverdict.is_well_formed.tolist() == [True, False, pd.NA]


def test_the_functions_pipe():
    assert len(FRAME.pipe(mv.verify, "email", validation_type="regex").pipe(mv.summary, "email")) == 7
