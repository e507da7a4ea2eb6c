"""What a verified column says: counts, and everything that shows them.

Counts come first, as plain data that adds up over the pieces of a file. Then they are put into
words, and rendered:

    counts.py       verdicts, reasons and flags            > summary.py, by_operator.py, plot.py
    groups.py       people by the user's own columns       > differences.py > origins.py
                                                           > breakdown.py
    outcomes.py     what became of mails by verdict; compare.py: two verifications
    facts.py        what a report is about                 > sections.py: a list of tables
                                                           > page.py (HTML), workbook.py
    report.py       `report`; person_sheet.py: the sheets of a workbook with a row for each person
    explain.py      one check of one address; host_audit.py: whether this host may ask
    wording.py      the words that all of them use; tables.py: counts in a notebook

Where a change goes: one more part of the report, a function in `sections.py` and a line in
`sections_of`; a word that people read, `wording.py`; how columns are ranked, `origins.rank`.
"""
