"""DNS: the resolver and its cache, retries, sockets, the wire format, names and answers."""
