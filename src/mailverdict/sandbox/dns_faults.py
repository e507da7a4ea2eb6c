"""The earlier import path of `DnsFault`, kept for users' tests."""

from .dns_table import DnsFault as Fault

__all__ = ["Fault"]
