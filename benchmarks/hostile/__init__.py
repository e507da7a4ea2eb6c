"""Attacks from outside, and what they cost."""
