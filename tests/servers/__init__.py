"""Debian's own mail servers on loopback addresses, and what is said about their mailboxes.

Run by ``make test-servers``, which installs them; see `install`.
"""
