"""The SMTP engine of the local backend: which sessions are open, and what became of each recipient."""
