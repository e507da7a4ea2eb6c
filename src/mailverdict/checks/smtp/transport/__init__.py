"""Sockets for the SMTP dialogue: which addresses may be dialled, and the driver of a session."""
