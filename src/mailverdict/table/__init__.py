"""The table that the caller passes, of any kind: its columns as texts, and the columns that are added to it."""
