"""Checks: each observes one thing and judges nothing."""
