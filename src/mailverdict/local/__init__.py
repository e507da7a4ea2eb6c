"""The local backend: this machine observes, `verdicts` judges, and rows come out by column.

    batch.py    syntax and lists for all addresses of a batch at once, and its rows
    domains.py  the DNS and the blacklists: each distinct domain once
    smtp/       the mail servers: sessions, and the state of each recipient
    screen.py   what is settled here before a service with a quota is asked
    backend.py  `LocalBackend`: settings, one address or a batch

Where a change goes: a flag that a list decides, `batch.FLAGS` and `batch.observe_domains`; what a
look-up means, `checks/dns`, and when it is repeated, `checks/dns/congestion.py`; when a recipient
is asked again, `smtp/recipients.py`.
"""
