"""Dask frames: verify columns of any size on the workers.

Each domain and each mail server is asked by one task.
"""

from .distributed.dask import plan, verify

__all__ = ["plan", "verify"]
