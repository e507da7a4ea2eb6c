"""The time from the start of a process to the first verdict: imports and one check, each in a new process.

Compared with the imports of pandas and email-validator alone, in turns. Run it as ``python -m benchmarks imports``.
"""

from __future__ import annotations

import subprocess
import sys
import time

from .figures import read_options, record

PROGRAMS = {
    "nothing": "pass",
    "import pandas": "import pandas",
    "import email_validator": "import email_validator",
    "import mailverdict": "import mailverdict",
    "one check by regex": "import mailverdict as mv; mv.check('ada@example.org', validation_type='regex')",
    "a frame by regex": "import pandas as pd, mailverdict as mv; "
    "mv.verify(pd.DataFrame({'email': ['ada@example.org']}), 'email', validation_type='regex')",
}


def main() -> None:
    given = read_options(__doc__, rounds=(7, 1))
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(given.rounds):
        for name, program in PROGRAMS.items():
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            times[name].append(time.perf_counter() - begin)
    for name, taken in times.items():
        record("a new process", name, taken)


if __name__ == "__main__":
    main()
