"""Delivery reports: what a mail says about the delivery of another one. Mails are untrusted.

    message.py  a mail becomes reports, problems, or "another mail"
    origin.py   whether it is a bounce, and of one of our mails
    parts.py    its parts as texts, its addresses, the copy of the mail that came back
    notices.py  bounces in plain text, by the forms of mail systems; page_text.py: HTML as lines
    outcome.py  what a status or reply means: hard, soft, blocked
    dates.py    a date, read as a whole or not at all

Where a change goes: another mail system's plain text, a pattern in `notices.py`; words for a
missing domain, `outcome.OWN_STATEMENTS`; another subject of bounces, `origin.BOUNCE_SUBJECT`.
"""
