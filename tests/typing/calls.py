"""What type checkers tell a user: the kind of frame that a call returns, and which calls are wrong.

Nothing here runs: `make types` reads it. A result of another type fails at its `assert_type`, and a wrong call that
is accepted fails as an unused `type: ignore`.
"""

from typing import assert_type

import numpy as np
import pandas as pd
import polars as pl

import mailverdict as mv

df = pd.DataFrame({"email": ["ada@example.org"]})
polars = pl.DataFrame({"email": ["ada@example.org"]})
series = pd.Series(["ada@example.org"])
many = ["ada@example.org"]
day: str = "30D"


async def awaited() -> None:
    assert_type(await mv.averify(df, "email"), pd.DataFrame)
    assert_type(await mv.averify(polars, "email"), pl.DataFrame)
    assert_type(await mv.averify(many), pd.DataFrame)


assert_type(mv.verify(df, "email"), pd.DataFrame)
assert_type(mv.verify(df, ("work", "email"), columns=["verdict"]), pd.DataFrame)
assert_type(mv.verify(polars, "email", validation_type="mx"), pl.DataFrame)
assert_type(mv.verify(series, on_quota="wait", refresh={"unknown"}), pd.DataFrame)
assert_type(mv.verify(many, max_age=day, screen="mx"), pd.DataFrame)
assert_type(mv.verify(np.array(many), screen=mv.LocalBackend()), pd.DataFrame)
assert_type(mv.start(df, "email").result(), pd.DataFrame)
assert_type(mv.start(polars, "email").partial(), pl.DataFrame)
assert_type(mv.start(many, progress=print).result(), pd.DataFrame)
assert_type(mv.clean(df, "email"), pd.DataFrame)
assert_type(mv.clean(polars, "email"), pl.DataFrame)
assert_type(mv.clean(many), pd.DataFrame)
assert_type(mv.explode(polars, "email"), pl.DataFrame)
assert_type(mv.suppress(polars, "email", many), pl.DataFrame)
assert_type(mv.decide(polars, "email"), pl.DataFrame)
assert_type(mv.summary(polars, "email"), pl.DataFrame)
assert_type(mv.diff(df, df, "email"), pd.DataFrame)
assert_type(mv.diff(df, polars, "email"), pl.DataFrame)
assert_type(mv.outcomes(df, "email", df), pd.DataFrame)
assert_type(mv.outcomes(polars, "email", df), pl.DataFrame)
assert_type(mv.contradicted(df, "email", df), pd.DataFrame)
assert_type(mv.read_bounces("bounces.mbox"), pd.DataFrame)
assert_type(mv.read_bounces(df), pd.DataFrame)
assert_type(mv.read_bounces(polars), pl.DataFrame)
assert_type(mv.split(polars, "email").review, pl.DataFrame)
assert_type(mv.decide(df, "email", policy="strict"), pd.DataFrame)
assert_type(mv.summary(df, "email"), pd.DataFrame)
assert_type(mv.split(df, "email").send, pd.DataFrame)
assert_type(mv.plan(df, "email", limit=10).days, int | None)
assert_type(mv.check("ada@example.org").result, str)
assert_type(df.pipe(mv.verify, "email", validation_type="regex"), pd.DataFrame)

# Each of these calls is an error.
mv.verify(df, "email", validation_type="dns")  # type: ignore
mv.verify(df, "email", validationtype="mx")  # type: ignore
mv.verify(df, "email", on_quota="later")  # type: ignore
mv.verify(df, "email", screen="smtp")  # type: ignore
mv.verify(df, "email", progress="always")  # type: ignore
mv.verify(1)  # type: ignore
mv.start(df, "email", limit="many")  # type: ignore
mv.plan(df, "email", validation_type="dns")  # type: ignore
mv.averify(df, "email", offline="yes")  # type: ignore
mv.check("ada@example.org", validation_type="dns")  # type: ignore
mv.verfy(df, "email")  # type: ignore
