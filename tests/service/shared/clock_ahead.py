"""The command line on a host whose clock is ahead: ``python -m tests.service.shared.clock_ahead SECONDS serve ...``."""

from __future__ import annotations

import sys
import time

from mailverdict.cli import main

if __name__ == "__main__":
    ahead, arguments = float(sys.argv[1]), sys.argv[2:]
    if ahead:
        real = time.time
        time.time = lambda: real() + ahead
    main(arguments)
