"""Stand-ins that tests of several folders share: clocks and event loops, backends, services."""
