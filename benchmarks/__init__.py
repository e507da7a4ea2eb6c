"""Side-by-side measurements: ours and a peer in one run, medians and ratios. Nothing here is asserted in tests."""
