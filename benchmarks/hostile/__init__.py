"""What hostile input and hostile peers cost: time and memory of this package, measured on loopback."""
