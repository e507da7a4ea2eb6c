"""What a checkout needs and an installation does not: the demo, the documentation, the lists, the pictures."""
