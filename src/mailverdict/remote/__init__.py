"""The backend that asks a verification service: submit under a quota, poll on a schedule, pay once.

`steps` is the vocabulary, `quota`, `bulk` and `polling` decide without doing, `client` does one
request, `flow` drives the decisions, `backend` is what users hold.
"""
