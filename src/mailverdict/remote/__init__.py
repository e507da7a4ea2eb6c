"""The backend that asks a verification service over HTTP, under its daily quota.

    api.py      requests, answers, the errors and rows they mean: values, no I/O
    pace.py     how fast addresses are submitted, and when the next request may be sent: no I/O
    client.py   one HTTP request; whatever happens becomes an `ApiAnswer`
    bulk.py     submitting in batches that the quota covers, never paid twice
    events.py   one run: submissions and polls become events
    backend.py  `RemoteBackend`: the settings, and the calls of a user

Where a change goes: another error code of a service, `api.error_of` or `bulk.apply_refusal`; when a
job is given up, `events.follow_job`; what a proxy sends instead of JSON, `client.parse_unexpected`.
"""
