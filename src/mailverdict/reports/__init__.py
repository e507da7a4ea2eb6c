"""A plain summary first, then everything that shows it."""
