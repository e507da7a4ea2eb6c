"""The greylisting policy server that Debian's Postfix is used with."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.servers.postfix import POSTGREY
from tests.servers.world import PROGRAMS, await_listening, start, stop

DELAY = 2  # seconds that it wants; its default is 300


class Postgrey:
    """A postgrey with its own database."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; return once it listens."""
        memory = self.run / "memory"
        memory.mkdir(parents=True)
        shutil.chown(memory, "nobody", "nogroup")
        command = f"{PROGRAMS}/postgrey --inet={POSTGREY[0]}:{POSTGREY[1]} --delay={DELAY} --dbdir={memory}"
        lists = "--whitelist-clients=/dev/null --whitelist-recipients=/dev/null --user=nobody --group=nogroup"
        self.process = start([*command.split(), *lists.split()], self.run / "output")
        await_listening(*POSTGREY, self.process)

    def stop(self) -> None:
        """Stop it."""
        if self.process is not None:
            stop(self.process)
