"""The command line: each command is a few lines that call the library.

The commands are in `check`, `tables`, `rows`, `mailing`, `audit`, `serve`, `workers` and
`maintenance`; `terminal`, `options` and `files` have what they share. `settings` reads options from
environment and file, `status` prints messages, `outcome` ends a verification.

Exit status: 0 done, 2 usage, 3 stopped by quota (partial file written), 4 service error, 5 more
rows than allowed, 130 interrupted (partial file written).
"""

from . import tables  # its commands are the first ones of --help

# isort: split
from . import audit, check, mailing, maintenance, rows, serve, workers
from .terminal import app, main

__all__ = [
    "app",
    "audit",
    "check",
    "mailing",
    "main",
    "maintenance",
    "rows",
    "serve",
    "tables",
    "workers",
]
