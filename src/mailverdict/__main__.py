"""``mailverdict`` and ``python -m mailverdict``: the command line, or one line on how to get it."""

import sys
from typing import NoReturn

from .errors import MissingExtraError

__all__ = ["run"]


def run() -> NoReturn:
    """Run the command line."""
    try:
        from .cli import main  # noqa: PLC0415 - an extra: a traceback would not say so
    except ModuleNotFoundError as exc:
        if exc.name != "typer":
            raise
        print(f"mailverdict: {MissingExtraError('the command line', 'cli')}", file=sys.stderr)
        sys.exit(2)
    main()


if __name__ == "__main__":
    run()
