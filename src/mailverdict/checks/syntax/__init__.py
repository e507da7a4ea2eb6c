"""Syntax of one address, of a whole column, and what is wrong with an address."""
