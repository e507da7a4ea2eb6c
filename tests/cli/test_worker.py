"""``mailverdict worker``: what a host cannot do is refused before it connects to the store."""

import pytest

from mailverdict.sandbox import World

pytest.importorskip("starlette", reason="the extra service is not installed")
STORE = "postgresql://nobody@127.0.0.1:9/none"


def test_worker_whose_port_25_is_closed_refuses_smtp_and_names_what_it_can_do(run):
    with World() as world:
        local = world.backend.settings
        options = ("--resolver", str(local.resolver), "--allow-network", "127.0.0.0/8")
        status, out, err = run("worker", "--store", STORE, *options)
    assert (status, out) == (2, "")
    assert "this host cannot verify by smtp" in err
    assert "Start it with --types regex,mx,mx_blacklist" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--types", "mx,dns"), "give some of"),
        (("--types", ""), "give some of"),
        (("--types", "mx", "--store", "sqlite:///jobs.db"), "a worker needs PostgreSQL"),
        (("--types", "mx", "--store", STORE.replace(":9/", ":9x/")), "--store "),
    ],
)
def test_worker_that_cannot_work_says_why(run, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, err = run("worker", *(() if "--store" in options else ("--store", STORE)), *options)
    assert status == 2
    assert message in err
