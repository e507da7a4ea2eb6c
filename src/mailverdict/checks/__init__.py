"""The checks: each observes one thing; verdicts.py decides."""
