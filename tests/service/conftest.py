"""Fixtures of the service's tests."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.postgres import Cluster, binaries


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """PostgreSQL, or a visible skip where it is not installed."""
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    # Not below pytest's own directory: that one is closed to the account the server runs under.
    with tempfile.TemporaryDirectory(prefix="mailverdict-") as folder:
        Path(folder).chmod(0o755)
        running = Cluster(Path(folder) / "cluster", programs)
        running.start()
        yield running
        running.stop()
