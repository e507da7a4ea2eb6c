"""Many addresses, safely: what is known already, what to ask, what came back.

    options.py    the arguments of `verify` and its siblings, checked
    execution.py  one run: journal, screening, backend, and the events in between
    journal/      what is known, sent or paid for, on disk
    progress.py, endings.py, retry.py, plan.py    what is told of a run: pure functions
    run.py        `Run`, the handle on a run in the background
    single.py     `check`: one address

Where a change goes: another event of a backend, `Execution.apply` (and the journal, if it is to be
kept); which answers are asked again, `retry.py`; a new argument, `Options.check`.
"""
