"""SMTP: what the mail servers of a domain reply about a mailbox.

`replies` parses, `classify` gives a reply its meaning, `protocol` is the dialogue without I/O, and
`transport` runs it over sockets.
"""
