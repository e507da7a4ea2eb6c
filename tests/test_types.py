"""What type checkers tell a user: the kind of frame that a call returns, and which calls are wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import mailverdict as mv

HEAD = """
import asyncio
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import mailverdict as mv

df = pd.DataFrame({"email": ["ada@example.org"]})
polars = pl.DataFrame({"email": ["ada@example.org"]})
arrow = pa.Table()
series = pd.Series(["ada@example.org"])
many = ["ada@example.org"]
class Relation:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
relation = Relation()
day: str = "30D"
async def soon() -> None:
    reveal_type(await mv.averify(df, "email"))  # pandas.core.frame.DataFrame
    reveal_type(await mv.averify(polars, "email"))  # polars.dataframe.frame.DataFrame
    reveal_type(await mv.averify(many))  # pandas.core.frame.DataFrame
"""
# Expression, and its type.
TYPES = [
    ('mv.verify(df, "email")', "pandas.core.frame.DataFrame"),
    ('mv.verify(df, ("work", "email"), columns=["verdict"])', "pandas.core.frame.DataFrame"),
    ('mv.verify(polars, "email", validation_type="mx")', "polars.dataframe.frame.DataFrame"),
    ('mv.verify(arrow, "email", validation_type=mv.ValidationType.MX)', "pyarrow.Table"),
    ('mv.verify(series, on_quota="wait", refresh={"unknown"})', "pandas.core.frame.DataFrame"),
    ('mv.verify(many, max_age=day, screen="mx")', "pandas.core.frame.DataFrame"),
    ("mv.verify(np.array(many), screen=mv.LocalBackend())", "pandas.core.frame.DataFrame"),
    ('mv.start(df, "email").result()', "pandas.core.frame.DataFrame"),
    ('mv.start(polars, "email").partial()', "polars.dataframe.frame.DataFrame"),
    ('mv.start(arrow, "email").result()', "pyarrow.Table"),
    ("mv.start(many, progress=print).result()", "pandas.core.frame.DataFrame"),
    ('mv.clean(df, "email")', "pandas.core.frame.DataFrame"),
    ('mv.clean(polars, "email")', "polars.dataframe.frame.DataFrame"),
    ('mv.clean(arrow, "email")', "pyarrow.Table"),
    ("mv.clean(many)", "pandas.core.frame.DataFrame"),
    ('mv.clean(polars["email"])', "polars.dataframe.frame.DataFrame"),
    ('mv.verify(polars["email"])', "polars.dataframe.frame.DataFrame"),
    ('mv.verify(relation, "email")', "pyarrow.Table"),
    ('mv.explode(polars, "email")', "polars.dataframe.frame.DataFrame"),
    ('mv.suppress(polars, "email", many)', "polars.dataframe.frame.DataFrame"),
    ('mv.duplicates(relation, "email")', "pyarrow.Table"),
    ('mv.decide(polars, "email")', "polars.dataframe.frame.DataFrame"),
    ('mv.decide(relation, "email")', "pyarrow.Table"),
    ('mv.summary(polars, "email")', "polars.dataframe.frame.DataFrame"),
    ('mv.by_domain(arrow, "email")', "pyarrow.Table"),
    ('mv.diff(df, df, "email")', "pandas.core.frame.DataFrame"),
    ('mv.diff(df, polars, "email")', "polars.dataframe.frame.DataFrame"),
    ('mv.outcomes(df, "email", df)', "pandas.core.frame.DataFrame"),
    ('mv.outcomes(polars, "email", df)', "polars.dataframe.frame.DataFrame"),
    ('mv.outcomes(relation, "email", df)', "pyarrow.Table"),
    ('mv.contradicted(df, "email", df)', "pandas.core.frame.DataFrame"),
    ('mv.contradicted(relation, "email", df)', "pyarrow.Table"),
    ('mv.read_bounces("bounces.mbox")', "pandas.core.frame.DataFrame"),
    ("mv.read_bounces(df)", "pandas.core.frame.DataFrame"),
    ("mv.read_bounces(polars)", "polars.dataframe.frame.DataFrame"),
    ("mv.read_bounces(relation)", "pyarrow.Table"),
    ('mv.split(polars, "email").review', "polars.dataframe.frame.DataFrame"),
    ('mv.split(arrow, "email").drop', "pyarrow.Table"),
    ('mv.decide(df, "email", policy="strict")', "pandas.core.frame.DataFrame"),
    ('mv.summary(df, "email")', "pandas.core.frame.DataFrame"),
    ('mv.split(df, "email").send', "pandas.core.frame.DataFrame"),
    ('mv.plan(df, "email", limit=10).days', "int | None"),
    ('mv.check("ada@example.org").result', "str"),
    ('df.pipe(mv.verify, "email", validation_type="regex")', "pandas.core.frame.DataFrame"),
]
WRONG = [
    'mv.verify(df, "email", validation_type="dns")',
    'mv.verify(df, "email", validationtype="mx")',
    'mv.verify(df, "email", on_quota="later")',
    'mv.verify(df, "email", screen="smtp")',
    'mv.verify(df, "email", progress="always")',
    'mv.verify(many, "email")',
    'mv.decide(many, "email")',
    "mv.verify(1)",
    'mv.start(df, "email", limit="many")',
    'mv.plan(df, "email", validation_type="dns")',
    'mv.averify(df, "email", offline="yes")',
    'mv.check("ada@example.org", validation_type="dns")',
    'mv.verfy(df, "email")',
]


def test_results_have_their_kind_and_wrong_calls_are_errors(tmp_path):
    expected = {f"reveal_type({call})": kind for call, kind in TYPES} | dict.fromkeys(WRONG, "error")
    lines = [*HEAD.splitlines(), *expected]
    expected |= {line: line.partition("  # ")[2] for line in lines if "  # " in line}
    assert run_mypy(tmp_path, lines) == expected


def run_mypy(folder, lines):
    """For each line of a user's script the type that mypy reveals, or that it has an error."""
    write_stub(folder)
    (folder / "script.py").write_text("\n".join(lines), encoding="utf-8")
    source = Path(mv.__file__).parents[1]
    env = {**os.environ, "MYPYPATH": os.pathsep.join([str(source), str(folder)])}
    cache = source.parent / ".mypy_cache" / "user"  # a first run takes 20 s, the next ones 2
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", f"--cache-dir={cache}", "script.py"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    found = {}
    for number, kind, text in re.findall(r"^script\.py:(\d+): (error|note): (.*)$", done.stdout, re.MULTILINE):
        revealed = re.fullmatch(r'Revealed type is "(.*)"', text)
        if kind == "error" or revealed:
            found[lines[int(number) - 1]] = revealed[1] if revealed else kind
    return found


def write_stub(folder):
    """The one name of pyarrow that matters here: it comes without types."""
    (folder / "pyarrow").mkdir()
    rest = "from typing import Any\ndef __getattr__(name: str) -> Any: ...\n"
    (folder / "pyarrow" / "__init__.pyi").write_text(f"{rest}class Table: ...\n", encoding="utf-8")
    (folder / "pyarrow" / "compute.pyi").write_text(rest, encoding="utf-8")
