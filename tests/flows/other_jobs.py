"""What a process on another system does with frames; the tests of `test_other_systems.py` start it."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pandas as pd

import mailverdict as mv

CELLS = ["Ada <ada@plain.example>", "E-Mail: Bo Li <bo@one.example>", "grace@gmial.com"]


def use_frames() -> None:
    """Clean, verify twice with a journal, report; print what a test can compare."""
    frame = pd.DataFrame({"name": ["Ada", "Bo", "Grâce"], "email": CELLS})
    cleaned = mv.clean(frame, "email")
    print("cleaned:", ", ".join(sorted(cleaned["email_clean"])))
    with mv.sandbox.World(daily_limit=2) as world:
        options = {"validation_type": "smtp", "journal": "~/journal.db"}
        out = mv.verify(frame, "email", backend=world.backend, columns="all", **options)
        print("verdicts:", ", ".join(out["email_verdict"]))
        asked = world.dns.count()
        mv.verify(frame, "email", backend=world.make_backend(), **options)
        print("asked again:", world.dns.count() - asked)
        options = {"validation_type": "mx", "journal": "service.db"}
        paid = mv.verify(frame, "email", backend=world.url, **options)
        print("by the service:", ", ".join(paid["email_status"]))
    mv.report(out, "email", "report.html")
    mv.split(out, "email")
    out.to_parquet("out.parquet")
    journal = Path("~/journal.db").expanduser()
    is_private = sys.platform == "win32" or stat.S_IMODE(journal.stat().st_mode) == 0o600
    print("kept for the user alone:", journal.name if is_private else "nothing")
