"""Sockets for the SMTP dialogue: which addresses may be contacted, and the driver of a session."""
