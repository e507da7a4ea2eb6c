"""SMTP: what the exchanges of a domain say of a mailbox.

`reply` parses, `classify` says what a reply amounts to, `session` is the dialogue without I/O, `wire`
drives it over sockets, `providers` knows the habits of large providers.
"""
