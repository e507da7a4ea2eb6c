"""Values to JSON and back, as the service's contract has them; for both ends."""
