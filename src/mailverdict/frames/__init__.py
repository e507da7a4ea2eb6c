"""DataFrame in, DataFrame out.

    verify.py, file_run.py     a column to verdicts; a table of any size, piece by piece
    reading.py, clean.py       the cells of a column as one table; their repair
    results.py, alike.py       verified columns read back; rows of which the same is said
    policy.py, send_list.py    what to do with each row; the files for a sending service
    planning.py                what a run would cost
    verifiers.py, verifier_words.py, verifier_files.py    what other verifiers said
    explode.py, duplicates.py, suppress.py, domains.py    one function each
    seen_addresses.py          addresses of earlier pieces
    accessor.py                `df.mailverdict`

Where a change goes: what is said about the rows of a call, `verify.prepare`, for a file
`FileRun`; a column that each row gets, `table/columns.py` and `reading.py`; which rows need a
person, `policy.decide_kind`.
"""
