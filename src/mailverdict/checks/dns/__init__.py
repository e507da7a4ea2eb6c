"""The DNS: resolver, retries, sockets, wire format, names, answers, cache."""
