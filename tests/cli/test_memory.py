"""A file passes through the command line in pieces."""

import os
import sys

import pytest


def peak_of(folder, rows, target):
    """Highest resident octets of one call over so many rows, as the system saw it."""
    source = folder / f"{rows}.csv"
    with source.open("w") as file:
        file.write("id,email,note\n")
        file.writelines(f'{n},ada.lovelace{n}@d{n % 5_000}.example.org,"row {n}, checked"\n' for n in range(rows))
    command = [
        "-m",
        "mailverdict",
        "verify",
        str(source),
        "-c",
        "email",
        "-t",
        "regex",
        "-q",
        "-o",
        str(folder / target),
    ]
    child = os.posix_spawn(sys.executable, [sys.executable, *command], os.environ)
    _, status, usage = os.wait4(child, 0)
    assert status == 0
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="this system does not tell")
def test_a_file_is_never_held_whole(tmp_path):
    """Read whole by pandas, verified and written, these rows take about 1,250 MiB; in pieces 600 to 720, as the reader is ahead."""
    assert peak_of(tmp_path, 3_600_000, "out.csv") < 900 << 20
