"""The service on several hosts: one PostgreSQL database, any number of APIs and workers.

Distribution, exclusivity, wake-up and schedules are Procrastinate's. Begin with `tasks.py` (what is distributed)
and `worker.py` (what a worker does); `queue.py` is the API's side.
"""
