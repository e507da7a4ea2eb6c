"""The SMTP engine of the local backend: which sessions are open, and the state of each recipient."""
