"""What the tests of the command line share."""

import pytest

from mailverdict.cli import main


@pytest.fixture
def run(capfd):
    """Run a command line: exit status, standard output, standard error."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(a) for a in arguments])
        seen = capfd.readouterr()
        return left.value.code or 0, seen.out, seen.err

    return run
