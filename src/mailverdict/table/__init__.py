"""The table that the caller passes, of any kind.

Its columns are read as texts, and other columns are added to it.
"""
