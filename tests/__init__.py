"""Where tests find their tables and the project."""

from pathlib import Path

TESTS = Path(__file__).parent
CASES = TESTS / "cases"
ROOT = TESTS.parent
