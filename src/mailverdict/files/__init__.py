"""Tables larger than memory: readers, writers, and what passes pieces from one to the other."""
