"""Spark frames: verify columns of any size on the executors.

Each domain and each mail server is asked by one task.
"""

from .distributed.spark import plan, verify

__all__ = ["plan", "verify"]
