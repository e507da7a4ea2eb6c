"""Asking mail servers whether mailboxes exist: the sessions, and the state of each recipient.

Each file knows only those above it here:

    exchange.py    one mail server: what waits for it, its limits, whether its refusals are believed
    pool.py        all mail servers of a backend: which session is opened next
    recipients.py  the addresses of one run: what each answer leads to, as evidence and as rows
    stage.py       the run itself: look-ups and sessions until every address is settled

The dialogue of a session is `checks/smtp/protocol`, the meaning of a reply `checks/smtp/classify`.
Where a change goes: how long a server is left alone after a 421, `SmtpExchange.back_off`; another
meaning for a kind of answer, as to try it at the next server, `Recipients.on_answer`; a limit over
all servers, `SmtpPool.may_open`; sessions at one server, `max_sessions_per_exchange` and
`SmtpExchange.wants_session`; the order of exchanges, `Recipients.route`.
"""
