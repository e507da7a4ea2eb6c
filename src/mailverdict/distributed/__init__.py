"""Verification of frames on Dask and Spark.

Users import `mailverdict.dask` and `mailverdict.spark`.

    scratch.py  the folder in which tasks leave answers, and what they give each other
    stages.py   pure functions: what a partition asks, what evidence means, answers beside rows
    asking.py   the tasks that ask: read the folder, ask the rest, write what settles
    call.py     the calling process: arguments, which task asks whom, progress, warnings
    dask.py, spark.py   how an engine runs tasks, and how its frame gets the answers

Where a change goes: what is judged or shown, `stages.py`; how mail servers are divided among tasks,
`call.decide_routing`; an argument that one engine needs, its own file.
"""
