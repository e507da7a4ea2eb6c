"""Count the files and functions of the package that one call enters: ``python -m tools.walks [--list]``.

A reader who wants to know what a call does has to follow it through these files. Three walks are counted:

- a frame of two addresses by `regex`;
- one address by `smtp`, against the sandbox;
- the refusal of one recipient, from the parsed reply to the verdict that it leads to; without the rest of the session,
  for whose end the verdict waits, and in which other things happen, too.

Code that runs while a module is imported is not counted, and neither is the sandbox, which plays the network.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pandas as pd

import mailverdict as mv
from mailverdict.loop import run_sync
from mailverdict.sandbox import World

PACKAGE = Path(mv.__file__).parent
NOBODY = "nobody@one.example"
WAIT_BEGINS, WAIT_ENDS = "RecipientTracker.on_reply", "RecipientTracker.on_session_end"  # of a refusal
LIMITS = {"frame by regex": 20, "address by smtp": 40, "refused RCPT reply to verdict": 12}


class Walk:
    """Records which functions of the package are called between `start` and `stop`, in every thread."""

    def __init__(self, *, begins_with_refusal: bool = False) -> None:
        self.begins_with_refusal = begins_with_refusal
        self.is_recording = not begins_with_refusal
        self.is_waiting = False
        self.entered: dict[tuple[str, str], None] = {}

    def __enter__(self) -> Walk:
        """Begin to record."""
        threading.setprofile(self.record)
        sys.setprofile(self.record)
        run_sync(set_profile(self.record))
        return self

    def __exit__(self, *_: object) -> None:
        """Stop recording."""
        run_sync(set_profile(None))
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]

    def record(self, frame: FrameType, event: str, value: Any) -> None:
        """Take in one event of the interpreter."""
        if self.begins_with_refusal and event == "return":
            if getattr(value, "code", None) == 550:
                self.is_recording = True
            elif self.is_recording and getattr(value, "result", None) == "invalid":
                self.is_recording = self.begins_with_refusal = False
            elif self.is_recording and frame.f_code.co_qualname == WAIT_BEGINS:
                self.is_recording, self.is_waiting = False, True
        elif self.is_waiting and frame.f_code.co_qualname == WAIT_ENDS:
            self.is_recording, self.is_waiting = True, False
        place = place_of(frame.f_code) if event == "call" and self.is_recording else None
        if place is not None and place not in self.entered and not is_import(frame):
            self.entered[place] = None

    def files(self) -> dict[str, list[str]]:
        """Functions entered, by file, in the order of their first call."""
        found: dict[str, list[str]] = {}
        for file, function in self.entered:
            found.setdefault(file, []).append(function)
        return found


async def set_profile(record: Callable[[FrameType, str, Any], None] | None) -> None:
    """Set the profile function of the thread that runs the event loop; it may have been started before."""
    sys.setprofile(record)


def place_of(code: CodeType) -> tuple[str, str] | None:
    """The file in the package and the function; None where the code is not part of a walk."""
    path = Path(code.co_filename)
    if code.co_name == "<module>" or not path.is_relative_to(PACKAGE):
        return None
    file = path.relative_to(PACKAGE).as_posix()
    is_class_body = not code.co_flags & 0x2  # CO_NEWLOCALS without CO_OPTIMIZED: the body of a class statement
    if file.startswith("sandbox/") or file == "__init__.py" or (is_class_body and code.co_name[0].isupper()):
        return None
    return file, code.co_qualname


def is_import(frame: FrameType | None) -> bool:
    """Whether a function runs because a module of the package is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
            return True
        frame = frame.f_back
    return False


def walk_frame() -> Walk:
    """One frame by `regex`."""
    frame = pd.DataFrame({"email": ["ada@example.org", "grace@gmial.com"]})
    with Walk() as walk:
        mv.verify(frame, "email", validation_type="regex", progress=False)
    return walk


def walk_address() -> Walk:
    """One address by `smtp`; every thread of the backend is started within the walk."""
    with World() as world, Walk() as walk:
        mv.check(NOBODY, validation_type="smtp", backend=world.backend)
    return walk


def walk_refusal() -> Walk:
    """From the reply that refuses a recipient to the verdict."""
    with World() as world, Walk(begins_with_refusal=True) as walk:
        found = mv.check(NOBODY, validation_type="smtp", backend=world.backend)
    if found.result != "invalid":
        raise SystemExit(f"{NOBODY} is {found.result}: the sandbox should refuse it")
    return walk


WALKS: dict[str, Callable[[], Walk]] = {
    "frame by regex": walk_frame,
    "address by smtp": walk_address,
    "refused RCPT reply to verdict": walk_refusal,
}


def files_of(name: str) -> dict[str, list[str]]:
    """Take a walk; give the files and functions that it enters."""
    return WALKS[name]().files()


def main() -> int:
    """Print the counts; exit status 1 where a walk is longer than its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name the files and functions as well")
    arguments = parser.parse_args()
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as processes:  # nothing is cached beforehand
        walks = processes.map(files_of, WALKS, chunksize=1)
    for name, files in zip(WALKS, walks, strict=True):
        print(f"{name}: {len(files)} files (at most {LIMITS[name]}), {sum(map(len, files.values()))} functions")
        if arguments.list:
            for file, names in files.items():
                print(f"    {file}: {', '.join(names)}")
    return int(any(len(files) > LIMITS[name] for name, files in zip(WALKS, walks, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
