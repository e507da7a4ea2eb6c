"""Debian's own mail servers on loopback addresses, and what is said about their mailboxes.

Run by ``make test-rest``, which installs them; see `install`.
"""
