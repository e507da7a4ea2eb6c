"""What a checkout needs and an installation does not: the demo, the sample files, the lists."""
