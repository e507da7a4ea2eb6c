"""The files in `deploy/`: their commands with their environment, as programs on this host instead of in containers."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import create_engine, text

from mailverdict.cli import main
from tests.doubles.ports import free_port
from tests.doubles.waiting import wait_until
from tests.service.postgres import Cluster, binaries
from tests.service.shared.hosts import ROOT, Host, make_world

pytestmark = pytest.mark.servers

DEPLOY = ROOT / "deploy"
UNITS = ("mailverdict.service", "mailverdict-worker.service")
GIVEN = {"POSTGRES_PASSWORD": "aPassword7"}
VARIABLE = re.compile(r"\$\{(\w+):([?-])([^}]*)\}")


def interpolate(value: Any) -> str:
    """Replace ``${NAME:-default}`` and ``${NAME:?message}``, as the compose specification says."""

    def replace(found: re.Match[str]) -> str:
        name, how, other = found.groups()
        if given := GIVEN.get(name):
            return given
        assert how == "-", other
        return other

    return VARIABLE.sub(replace, str(value))


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


@pytest.fixture
def database(services: dict[str, Any]) -> Iterator[Cluster]:
    """What the image `postgres` makes of the environment of the service `database`."""
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    given = {
        name: interpolate(value) for name, value in services["database"]["environment"].items()
    }
    folder = Path("/tmp") / f"mailverdict-compose-{os.getpid()}"
    cluster = Cluster(folder, programs, port=free_port())
    cluster.start()
    try:
        engine = create_engine(cluster.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            user, password = given["POSTGRES_USER"], given["POSTGRES_PASSWORD"]
            connection.execute(text(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'"))
            connection.execute(text(f"CREATE DATABASE {given['POSTGRES_DB']} OWNER {user}"))
        engine.dispose()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder)


def program(command: list[str], environ: Mapping[str, str], log: Path) -> Host:
    """A command of a container, on loopback and a port of its own."""
    assert command[0] == "mailverdict"
    assert command[command.index("--host") + 1] == "0.0.0.0"
    port = free_port()
    changed = [*command]
    changed[changed.index("--host") + 1] = "127.0.0.1"
    changed[changed.index("--port") + 1] = str(port)
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith("MAILVERDICT_")
    }
    host = Host([sys.executable, "-m", *changed], port, {**plain, **environ}, log)
    host.start()
    return host


def is_healthy(host: Host) -> bool:
    """The image's HEALTHCHECK, with the port of the program."""
    containerfile = (DEPLOY / "Containerfile").read_text()
    check = re.search(r"HEALTHCHECK .*\n\s+CMD (\[.*\])", containerfile)[1]
    command = [each.replace(":8000", f":{host.port}") for each in json.loads(check)]
    assert command[0] == "python"
    return (
        subprocess.run(
            [sys.executable, *command[1:]], check=False, stderr=subprocess.DEVNULL
        ).returncode
        == 0
    )


def test_services_of_the_compose_file_verify_jobs_and_single_checks(
    services: dict[str, Any], database: Cluster, tmp_path: Path
) -> None:
    assert "pg_isready -U mailverdict -d mailverdict" in services["database"]["healthcheck"]["test"]
    with make_world(1, 1, 0.0) as world:
        local = world.backend.settings
        of_the_sandbox = {
            "MAILVERDICT_RESOLVER": str(local.resolver),
            "MAILVERDICT_SMTP_PORT": str(local.smtp_port),
            "MAILVERDICT_ALLOW_NETWORKS": ",".join(map(str, local.allow_networks)),
            "MAILVERDICT_RESOLVER_CHECK": "false",
        }
        hosts = {}
        for role in ("api", "worker"):
            given = {
                name: interpolate(value) for name, value in services[role]["environment"].items()
            }
            given["MAILVERDICT_STORE"] = given["MAILVERDICT_STORE"].replace(
                "@database/", f"@127.0.0.1:{database.port}/"
            )
            hosts[role] = program(
                services[role]["command"], {**given, **of_the_sandbox}, tmp_path / f"{role}.log"
            )
        try:
            for host in hosts.values():
                host.wait()
                assert is_healthy(host)
            with httpx.Client(base_url=hosts["api"].url) as client:
                check = client.post(
                    "/api/check-email", json={"email": "ada@d0.example", "validation_type": "smtp"}
                )
                assert check.json()["data"]["reasons"] == ["catch_all"]
                body = {"emails": ["bob@d0.example"], "validation_type": "smtp"}
                [entry] = client.post("/api/bulk-check-email", json=body).json()["data"]["results"]

                def is_done() -> bool:
                    found = client.get(f"/api/verification-result/{entry['job_id']}").json()[
                        "data"
                    ]["result"]
                    return bool(found["status"] == "done")

                assert wait_until(is_done, 30)
            for host in hosts.values():
                assert host.stop() in (0, -15)
                assert not is_healthy(host)
        finally:
            for host in hosts.values():
                if host.process.poll() is None:
                    host.kill()


def test_image_serves_with_its_own_command_and_environment(tmp_path: Path) -> None:
    containerfile = (DEPLOY / "Containerfile").read_text()
    command = json.loads(re.search(r"^CMD (\[.*\])", containerfile, re.MULTILINE)[1])
    store = re.search(r"MAILVERDICT_STORE=(\S+)", containerfile)[1].replace(
        "/var/lib/mailverdict", str(tmp_path)
    )
    host = program(command, {"MAILVERDICT_STORE": store}, tmp_path / "log")
    try:
        host.wait()
        assert is_healthy(host)
        assert (tmp_path / "jobs.db").exists()
    finally:
        host.kill()


def test_image_copies_what_the_build_needs() -> None:
    copied = re.search(r"^COPY (.*) \./$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)[
        1
    ].split()
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    for name in (*copied, "src"):
        assert (ROOT / name).exists()
        assert f"!{name}" in allowed


@pytest.mark.parametrize("unit", UNITS)
def test_unit_is_one_that_systemd_accepts(tmp_path: Path, unit: str) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    lines = (DEPLOY / unit).read_text().replace("/opt/mailverdict/bin/mailverdict", "/bin/true")
    (tmp_path / unit).write_text(lines)
    checked = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("unit", UNITS)
def test_unit_starts_a_command_that_exists(capsys: pytest.CaptureFixture[str], unit: str) -> None:
    command = shlex.split(
        re.search(r"^ExecStart=(.*)$", (DEPLOY / unit).read_text(), re.MULTILINE)[1]
    )
    with pytest.raises(SystemExit) as left:
        main([*command[1:], "--help"])
    assert left.value.code in (0, None)
    assert command[1] in capsys.readouterr().out
