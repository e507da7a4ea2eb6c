"""The audit page: from a click to the painted answer.

Made-up lists of 2,000, 100,000 and 1,000,000 rows with five columns are audited by ``regex``. For each action are
measured the time from the click until the browser has painted the answer (in Chromium, on the page of ``mailverdict
audit``; a search waits 60 ms for more letters first), the longest frame while a wheel scrolls the rows, and the
processor time of the kernel's handler, in a process without a browser: that says more on a machine that is busy. Run it
as ``python -m benchmarks audit``; ``python -m benchmarks.audit --kernel 1`` leaves out the browser.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pandas as pd
from tests.widgets.browser import AuditPage, audit_page, chromium

from mailverdict.widgets.audit import PageWidget
from mailverdict.widgets.state import AuditState

from .addresses import make_addresses
from .figures import OURS, read_options, record

ROUNDS = 5
WORDS = ("anna", "lopez", "london", "7919", "gmail")  # that are searched
PATIENCE = 600_000  # milliseconds for a step that is not measured
SETTINGS: dict[str, Any] = {"backend": None, "journal": None, "screen": None, "limit": None}

# --- the list -------------------------------------------------------------------------------------------------------


def write_list(path: Path, rows: int) -> None:
    """A CSV with names around some addresses, empty cells, typos and duplicates."""
    made = list(islice(cycle(make_addresses(min(rows, 950_000))), rows))
    for at in range(0, rows, 50):
        made[at] = f"Ada Lovelace <{made[at]}>"
    made[1::200] = [""] * len(made[1::200])
    made[2::500] = [f"user{n}@gmial.com" for n in range(len(made[2::500]))]
    cities = islice(cycle(["London", "Paris", "Rome", "Berlin", "Madrid", "Vienna", "Oslo"]), rows)
    columns = {
        "id": range(rows),
        "name": [f"Person {n}" for n in range(rows)],
        "email": made,
        "city": list(cities),
    }
    pd.DataFrame({**columns, "amount": [n * 7919 % 100_000 / 100 for n in range(rows)]}).to_csv(
        path, index=False
    )


# --- the kernel, without a browser ----------------------------------------------------------------------------------


def new_state() -> AuditState:
    """The model of a page, whose snapshots are made as for a browser."""
    state = AuditState(SETTINGS, "regex")
    PageWidget(state)
    return state


# Before the check, and after it: what is measured, and how the model does it in a round.
TIDYING: dict[str, Callable[[AuditState, int], None]] = {
    "accept a likely typo": lambda state, number: state.accept_typo(0),
    "undo": lambda state, number: state.undo(),
    "switch a repair": lambda state, number: state.set_repair("unwrapped", number % 2 == 1),
}
DECIDING: dict[str, Callable[[AuditState, int], None]] = {
    "facet": lambda state, number: state.look("set_facet", facet="verdict", value="valid"),
    "facet of domains": lambda state, number: state.look(
        "set_facet", facet="domain", value="gmail.com"
    ),
    "search": lambda state, number: state.look("search", text=WORDS[number % len(WORDS)]),
    "search nothing": lambda state, number: state.look("search", text=""),
    "sort by text": lambda state, number: state.look("sort", key="column 2"),
    "sort by number": lambda state, number: state.look("sort", key="column 4"),
    "sort by verdict": lambda state, number: state.look("sort", key="verdict"),
    "page": lambda state, number: state.look("rows", first=5_000 + 50 * number, count=50),
    "policy": lambda state, number: state.set_policy(("strict", "balanced")[number % 2]),
    "decide a row": lambda state, number: state.decide([number], "remove"),
    "decide a domain": lambda state, number: state.decide_domain(
        "gmail.com", ("send", "remove")[number % 2]
    ),
    "decide all rows": lambda state, number: state.decide_shown(("send", "remove")[number % 2]),
    "undo a decision": lambda state, number: state.undo(),
}


def measure_kernel(path: Path) -> None:
    """Print the processor time of each action, as lines of JSON."""
    state = new_state()
    state.load_file(path)
    state.work.wait()
    measure_actions(state, TIDYING)
    state.accept_all()
    state.work.wait()
    state.set_repair("merge", True)
    state.work.wait()
    state.verify()
    state.work.wait()
    measure_actions(state, DECIDING)
    state.close()


def measure_actions(
    state: AuditState, actions: dict[str, Callable[[AuditState, int], None]]
) -> None:
    """One action after the other, each in several rounds; work that it starts in the background is not counted."""
    for name, act in actions.items():
        values = []
        for number in range(ROUNDS):
            begin = time.thread_time()
            act(state, number)
            values.append(time.thread_time() - begin)
            state.work.wait()
        print(json.dumps([name, values]), flush=True)


# --- the page -------------------------------------------------------------------------------------------------------

# The switch itself is shown at once; then the list is prepared and its cost worked out again.
COST_OF_SWITCH = "a switch of a repair until its cost is known"
# Before the check, and after it: what is measured; what is clicked, with `root` and the number of the round; and what
# changes on the page when the answer is there.
ROUND_TRIPS: tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]] = (
    {
        "accept a likely typo": (
            "root.querySelector('[aria-label=\"Likely typos\"] li button').click()",
            "root.querySelector('[aria-label=\"Likely typos\"] li button').getAttribute('aria-pressed')",
        ),
        "undo": (
            "[...root.querySelectorAll('button')].find((each) => each.textContent.startsWith('Undo')).click()",
            "root.querySelector('[aria-label=\"Likely typos\"] li button').getAttribute('aria-pressed')",
        ),
        "switch a repair, shown before the kernel answers": (
            "root.querySelector('input[role=switch]').click()",
            "root.querySelectorAll('.mv-off').length",
        ),
        COST_OF_SWITCH: (  # there is no cost while it is worked out
            "root.querySelector('input[role=switch]').click()",
            "(window.lastCost = root.querySelector('.mv-figures')?.textContent ?? window.lastCost)",
        ),
    },
    {
        "facet": (
            "root.querySelector('.mv-facet .mv-value').click()",
            "root.querySelector('.mv-facet .mv-value').getAttribute('aria-pressed')",
        ),
        "decide all that are shown": (  # those of the facet before: nearly all
            "root.querySelectorAll('.mv-decide-shown button')[number % 2].click()",
            "[...root.querySelectorAll('.mv-notice-act')].map((each) => each.textContent).join()",
        ),
        "undo a decision": (
            "[...root.querySelectorAll('.mv-table-head button')].find((each) => each.textContent.startsWith('Undo')).click()",
            "[...root.querySelectorAll('.mv-notice-act')].map((each) => each.textContent).join()",
        ),
        "scroll to the middle": (  # of what the facet leaves; rows that have not come yet have no number
            "const box = root.querySelector('.mv-scroll');box.scrollTop = box.scrollHeight * (0.5 + number / 50)",
            "(window.firstRow = root.querySelector('.mv-line .mv-more')?.textContent ?? window.firstRow)",
        ),
        "facet of domains": (
            "root.querySelector('[aria-label=Domain] .mv-value').click()",
            "root.querySelectorAll('[aria-label=Domain] .mv-value[aria-pressed=true]').length",
        ),
        "search": (
            "const box = root.querySelector('input[type=search]');"
            "box.value = ['anna', 'lopez', 'london', '7919', 'gmail'][number % 5];"
            "box.dispatchEvent(new Event('input', {bubbles: true}))",
            "root.querySelector('.mv-found').textContent",
        ),
        "sort by text": (
            "root.querySelectorAll('.mv-sort')[0].click()",
            "root.querySelectorAll('th[aria-sort]')[0].getAttribute('aria-sort')",
        ),
        "sort by number": (
            "[...root.querySelectorAll('.mv-sort')].at(-1).click()",
            "[...root.querySelectorAll('th[aria-sort]')].at(-1).getAttribute('aria-sort')",
        ),
        "sort by verdict": (
            "root.querySelectorAll('.mv-sort')[1].click()",
            "root.querySelectorAll('th[aria-sort]')[1].getAttribute('aria-sort')",
        ),
        "page": (
            "const box = root.querySelector('.mv-scroll');box.scrollTop = box.scrollHeight * ((number + 1) / 7)",
            "[...root.querySelectorAll('.mv-line .mv-more')].map((each) => each.textContent).join()",
        ),
        "policy": (
            "root.querySelectorAll('input[name$=policy]')[[0, 1][number % 2]].click()",
            "root.querySelector('.mv-downloads').textContent",
        ),
        "open the details of a row": (
            "root.querySelectorAll('.mv-more')[number].click()",
            "root.querySelector('.mv-details')?.textContent",
        ),
    },
)
# A frame is painted after the callbacks that were asked for before it: the second one runs after the answer is shown.
# Scripts are put in as text, since the policy of the page forbids to make functions of texts.
CLICK = """async (number) => {
  const root = document.querySelector('.mv-audit');
  const read = () => (SEEN);
  const frame = () => new Promise(requestAnimationFrame);
  const before = read();
  const begin = performance.now();
  ACT;
  while (read() === before) {
    if (performance.now() - begin > 60000) throw new Error("no answer");
    await frame();
  }
  await frame();
  return (performance.now() - begin) / 1000;
}"""


# How long each frame takes, from now on.
FRAMES = """() => {
  window.frames = [];
  let last = performance.now();
  const next = (now) => {
    window.frames.push(now - last);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""
TURNS = 60  # of a wheel, in a round


@contextmanager
def audit_address(path: Path) -> Iterator[str]:
    """Run the page of a list; gives its address."""
    command = [
        sys.executable,
        "-m",
        "mailverdict",
        "audit",
        str(path),
        "--type",
        "regex",
        "--no-browser",
    ]
    # No audit of an earlier round is opened again.
    own = {
        **os.environ,
        "XDG_DATA_HOME": str(path.parent / "data"),
    }
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=own
    )
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait(60)


def measure_page(path: Path) -> Iterator[tuple[str, list[float]]]:
    """The seconds of each action from the click until the answer is painted."""
    before, after = ROUND_TRIPS
    with audit_address(path) as url, chromium() as browser, audit_page(browser) as opened:
        opened.page.set_default_timeout(PATIENCE)
        opened.page.goto(url, timeout=PATIENCE)
        opened.figure("to check now")  # the estimate is there
        opened.open_step(2)
        yield from measure_clicks(opened, before)
        opened.button("Verify").click()
        opened.shown("people may be mailed")
        opened.audit.locator("table.mv-table tbody tr").first.wait_for()
        opened.page.evaluate(FRAMES)
        yield "the longest frame while a wheel scrolls", [scroll(opened) for _ in range(ROUNDS)]
        yield from measure_clicks(opened, after)


def scroll(opened: AuditPage) -> float:
    """The seconds of the longest frame while a wheel is turned over the rows."""
    opened.audit.locator(".mv-scroll").hover()
    opened.page.evaluate("window.frames.length = 0")
    for _ in range(TURNS):
        opened.page.mouse.wheel(0, 480)
    return float(opened.page.evaluate("Math.max(...window.frames)")) / 1000


def measure_clicks(
    opened: AuditPage, actions: dict[str, tuple[str, str]]
) -> Iterator[tuple[str, list[float]]]:
    """One action after the other, each in several rounds, with the kernel idle before each."""
    for name, (act, seen) in actions.items():
        values = []
        for number in range(ROUNDS):
            if actions is ROUND_TRIPS[0]:
                opened.figure("to check now")  # the estimate for the round before
            values.append(
                float(opened.page.evaluate(CLICK.replace("SEEN", seen).replace("ACT", act), number))
            )
        yield name if name == COST_OF_SWITCH else f"click to painted: {name}", values


# --- both -----------------------------------------------------------------------------------------------------------


FEWEST_ROWS = 2_000  # a shorter list has too few rows for some of the clicks


def main() -> None:
    given = read_options(__doc__, rows=(1_000_000, 50_000), kernel=(0, 0))
    with tempfile.TemporaryDirectory() as folder:
        for rows in (max(given.rows // 500, FEWEST_ROWS), given.rows // 10, given.rows):
            path = Path(folder, f"list-{rows}.csv")
            write_list(path, rows)
            record_kernel(path, rows)
            if not given.kernel:
                for name, values in measure_page(path):
                    record(f"audit page, {name}", OURS, values, size=rows)


def record_kernel(path: Path, rows: int) -> None:
    """Measure the model in a process of its own."""
    program = "import pathlib, sys; from benchmarks.audit import measure_kernel; measure_kernel(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    for name, seconds in map(json.loads, done.stdout.splitlines()):
        record(f"audit page, processor time of the handler: {name}", OURS, seconds, size=rows)


if __name__ == "__main__":
    main()
