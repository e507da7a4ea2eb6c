"""The SMTP dialogue without I/O and without a clock: commands, windows, the session."""
