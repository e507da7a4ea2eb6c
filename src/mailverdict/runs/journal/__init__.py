"""The journal: a SQLite file of settled answers and paid-for jobs."""
