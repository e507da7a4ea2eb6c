"""The time from the start of a process to the first verdict: imports and one check, each in a new process.

Compared with the imports of pandas and email-validator alone, in turns. Run it as ``python -m benchmarks.imports``;
``--rounds`` may be given.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from .figures import record

ROUNDS = 7
PROGRAMS = {
    "nothing": "pass",
    "import pandas": "import pandas",
    "import email_validator": "import email_validator",
    "import mailverdict": "import mailverdict",
    "one check by regex": "import mailverdict as mv; mv.check('ada@example.org', validation_type='regex')",
    "a frame by regex": "import pandas as pd, mailverdict as mv; "
    "mv.verify(pd.DataFrame({'email': ['ada@example.org']}), 'email', validation_type='regex')",
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args(argv).rounds
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name, program in PROGRAMS.items():
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            times[name].append(time.perf_counter() - begin)
    for name, taken in times.items():
        record("a new process", name, taken)
        print(f"{name:24} {statistics.median(taken):6.3f} s ({min(taken):.3f} to {max(taken):.3f})")


if __name__ == "__main__":
    main()
