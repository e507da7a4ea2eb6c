"""Repair of one cell: find the address in it, or suggest one. Neither pandas nor Arrow is used here."""
