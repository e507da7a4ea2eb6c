"""What really happened to mails: `read_bounces` reads mailboxes and exports into one frame.

    read.py       `read_bounces`: which reader a path or frame needs; reports become rows
    mailboxes.py  the mails in a path; each is read by `checks/bounces`
    events.py     the events in JSON of a service
    exports.py    a row of a service or an event: what it says, and what that means
    services.py   the names and words of known services (`data/bounce_services.toml`)
    general.py    an export of no known service, by the names of its columns and by its cells
    words.py      what a word means in every export

Where a change goes: a service, a word or a name, the table `bounce_services.toml` (`words` for a
whole word, `parts` for one that is a part of others, as in "email.expired"); what counts when
word and reply contradict each other, `exports.conclude`; another kind of file,
`mailboxes.kind_of_file`.
"""
