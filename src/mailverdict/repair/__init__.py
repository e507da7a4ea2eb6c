"""Repair of one cell: find the address in it, or suggest one. Without pandas and Arrow."""
