"""Values to JSON and back, as the service's contract has them. Pure; shared by both ends of the wire."""
