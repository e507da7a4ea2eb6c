"""The backend that asks a verification service over HTTP.

`api` holds requests, answers and result rows as values. `bulk` submits under the quota. `polling`
says when to poll a job and reads the answer. `client` sends one HTTP request. `backend` runs them
and yields events.
"""
