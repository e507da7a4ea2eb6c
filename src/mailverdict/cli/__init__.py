"""The command line: each command is a few lines over the library.

Exit status: 0 done, 2 usage, 3 stopped by quota (partial file written), 4 service error,
130 interrupted (partial file written).
"""

from . import asking, serving, tables
from .terminal import app, main

__all__ = ["app", "asking", "main", "serving", "tables"]
