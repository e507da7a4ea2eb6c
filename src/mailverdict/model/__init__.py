"""Values: plain, frozen, with no I/O. Everything above is written in terms of these."""
