"""The tile in JupyterLab's launcher."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest

import mailverdict
from mailverdict import widgets
from tests import ROOT
from tests.widgets.browser import CHROMIUM, audit_page, chromium
from tests.widgets.jupyter import jupyter_lab

EXTENSION = Path(widgets.__file__).with_name("labextension")


def test_the_extension_is_installed_where_jupyterlab_looks():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]
    ((source, target),) = build["shared-data"].items()
    assert ROOT / source == EXTENSION
    assert target == "share/jupyter/labextensions/mailverdict"
    package = json.loads((EXTENSION / "package.json").read_text())
    assert package["name"] == target.rpartition("/")[2]
    assert package["version"] == mailverdict.__version__
    assert (EXTENSION / package["jupyterlab"]["_build"]["load"]).is_file()


@pytest.mark.browser
@pytest.mark.timeout(120)
@pytest.mark.skipif(
    not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing: apt-get install chromium"
)
def test_the_tile_opens_an_audit(tmp_path: Path) -> None:
    shutil.copytree(EXTENSION, tmp_path / "data" / "labextensions" / "mailverdict")
    with jupyter_lab(tmp_path) as url, chromium() as browser, audit_page(browser) as opened:
        opened.page.goto(f"{url}/lab?reset")
        opened.page.locator(".jp-LauncherCard", has_text="Verify e-mails").click()
        opened.audit.wait_for()
        assert (
            "from mailverdict.widgets import Audit"
            in opened.page.locator(".jp-CodeCell").first.inner_text()
        )
        assert opened.errors == []
        assert opened.strangers == []
