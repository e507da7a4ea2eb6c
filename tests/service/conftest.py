"""Fixtures of the service's tests."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.service import CHANGED
from tests.service.postgres import Cluster, binaries

# Files about the contract: their tests run on both stores, but for those about the worker in the service's process.
CONTRACT = (
    "check_email",
    "bulk",
    "quota",
    "rules",
    "bad_input",
    "earlier",
    "specification",
    "idempotency",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let each test of the contract run on both stores."""
    is_contract = metafunc.module.__name__.rpartition(".test_")[2] in CONTRACT
    if (
        is_contract
        and "tmp_path" in metafunc.fixturenames
        and not metafunc.definition.get_closest_marker("embedded")
    ):
        metafunc.fixturenames.append("store_kind")
        kinds = ["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)]
        metafunc.parametrize("store_kind", kinds, indirect=True)


@pytest.fixture
def store_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let services of the test use a store of this kind."""
    if request.param == "postgresql":
        running: Cluster = request.getfixturevalue("cluster")
        monkeypatch.setitem(CHANGED, "store", running.prepared_database())
    return request.param


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """PostgreSQL, or a visible skip where it is not installed."""
    pytest.importorskip("psycopg", reason="psycopg, of the extra postgres, is not installed")
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
