"""The notebooks: the form in which they are stored, and that the cells of the first run and give what is stored.

They run in a shell of IPython in this process. `make notebooks` runs all, as users do, in kernels.
"""

from __future__ import annotations

import ast
import ipaddress
import re
from contextlib import contextmanager
from urllib.parse import urlsplit

import pandas as pd
import pytest

from tests import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = (
    "01_quick_start",
    "02_bulk_under_a_quota",
    "03_interactive_audit",
    "04_pipelines",
    "05_crm_audit",
    "06_why_this_verdict",
    "07_was_it_right",
    "08_from_list_to_mailing",
)
QUICK = ("01_quick_start",)
# What would ask the real world without a backend.
ASKING = {
    "verify",
    "averify",
    "start",
    "check",
    "explain",
}
MACHINE = re.compile(
    r"(?<![\w.])/(?:work|home|root|tmp|usr|opt|var|Users|mnt|private)/|[A-Z]:\\\\|file://"
)
REGISTRY = re.compile(
    r"pypi\.org|pythonhosted|conda\.anaconda|index-url|artifactory|nexus|devpi", re.IGNORECASE
)
ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
RESERVED = re.compile(r"(?:^|\.)example(?:\.(?:com|net|org))?$")  # RFC 2606
PORT = re.compile(r"(?<=127\.0\.0\.1:)\d{4,5}")  # the sandbox takes any free port
# Cells may change these.
SHOWN_IN_NOTEBOOKS = (
    "display.max_columns",
    20,
    "display.max_colwidth",
    50,
)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    import nbformat  # here, since it takes seconds in each process that collects tests

    return nbformat.read(request.param, as_version=4)


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def checked_of(notebook):
    """The cells whose output has to be the same in each run."""
    return [
        cell for cell in code_of(notebook) if "nbval-check-output" in cell.metadata.get("tags", ())
    ]


def texts_in(value):
    """Every text inside, pictures left aside."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            if key != "image/png":
                yield from texts_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part)


@contextmanager
def shell_of_a_notebook(folder):
    """A shell whose pictures and frames come out as in a kernel; options that cells set end with it."""
    import matplotlib.pyplot as plt
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config(
        HistoryManager={"enabled": False}, InteractiveShell={"ipython_dir": str(folder)}
    )
    shell = InteractiveShell.instance(config=config)
    backend = plt.get_backend()
    plt.switch_backend("module://matplotlib_inline.backend_inline")
    try:
        with pd.option_context(*SHOWN_IN_NOTEBOOKS), plt.rc_context():
            yield shell
    finally:
        plt.close("all")
        plt.switch_backend(backend)
        shell.reset()
        InteractiveShell.clear_instance()


def run_cell(shell, source):
    """What a cell printed, and the texts of what it showed."""
    from IPython.core.displayhook import CapturingDisplayHook
    from IPython.utils.capture import capture_output

    results = []
    shell.display_trap.hook = CapturingDisplayHook(shell, results)
    with capture_output() as captured:
        shell.run_cell(source).raise_error()
    return stable(
        captured.stdout,
        [output.data for output in captured.outputs] + [each["data"] for each in results],
    )


def stable(printed, shown):
    """An output without pictures, whatever port the sandbox has."""
    texts = [
        {
            kind: PORT.sub("2525", text)
            for kind, text in data.items()
            if kind in ("text/plain", "text/html")
        }
        for data in shown
    ]
    return PORT.sub("2525", printed), texts


@pytest.mark.parametrize(
    "notebook", [ROOT / "notebooks" / f"{name}.ipynb" for name in QUICK], indirect=True, ids=QUICK
)
@pytest.mark.filterwarnings("ignore")  # for a user a warning is text below the cell
def test_the_cells_of_a_notebook_run_and_give_what_is_stored(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT / "notebooks")
    checked = checked_of(notebook)
    with shell_of_a_notebook(tmp_path) as shell:
        for cell in code_of(notebook):
            found = run_cell(shell, cell.source)
            printed = "".join(
                output.text for output in cell.outputs if output.get("name") == "stdout"
            )
            shown = [output.data for output in cell.outputs if "data" in output]
            assert cell not in checked or found == stable(printed, shown), cell.source


def test_they_are_all_there():
    assert tuple(path.stem for path in NOTEBOOKS) == NAMES


def test_it_is_valid_and_in_the_form_in_which_it_is_stored(notebook):
    import nbformat

    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert [cell.id for cell in notebook.cells] == [
        f"cell-{n:02}" for n in range(1, len(notebook.cells) + 1)
    ]
    assert {key for cell in notebook.cells for key in cell.metadata} <= {"tags"}
    assert {tag for cell in notebook.cells for tag in cell.metadata.get("tags", ())} == {
        "nbval-check-output"
    }


def test_it_is_stored_executed_from_top_to_bottom(notebook):
    cells = code_of(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


def test_no_cell_failed(notebook):
    assert [
        cell.source
        for cell in code_of(notebook)
        if any(o.output_type == "error" for o in cell.outputs)
    ] == []


def test_cells_whose_output_is_checked_have_one(notebook):
    checked = checked_of(notebook)
    assert len(checked) >= 3
    assert [cell.source for cell in checked if not cell.outputs] == []


def test_no_output_that_is_checked_depends_on_the_day(notebook):
    outputs = [cell.outputs for cell in checked_of(notebook)]
    assert [text for text in texts_in(outputs) if DATE.search(text)] == []


def test_it_shows_a_picture(notebook):
    kinds = [
        kind
        for cell in code_of(notebook)
        for output in cell.outputs
        for kind in output.get("data", {})
    ]
    assert "image/png" in kinds


def test_it_tells_nothing_about_the_machine_it_ran_on(notebook):
    whole = list(texts_in(notebook.cells))
    assert [found[0] for text in whole for found in MACHINE.finditer(text)] == []
    assert [found[0] for text in whole for found in REGISTRY.finditer(text)] == []


def test_it_names_nobody_beyond_this_machine(notebook):
    for text in texts_in(notebook.cells):
        for url in re.findall(r"https?://[^\s\"'<>)`]+", text):
            host = urlsplit(url).hostname or ""
            assert host in ("127.0.0.1", "www.w3.org") or RESERVED.search(host), url
        for address in ADDRESS.findall(text):
            assert ipaddress.ip_address(address).is_loopback, address


def test_it_asks_the_sandbox_only(notebook):
    for cell in code_of(notebook):
        for call in ast.walk(ast.parse(cell.source, mode="exec")):
            if isinstance(call, ast.Call) and asks(call):
                assert has_backend(call), ast.unparse(call)


def asks(call):
    """Whether a call, or the function that it pipes to, could ask the real world."""
    target = call.func
    if isinstance(target, ast.Attribute) and target.attr == "pipe" and call.args:
        target = call.args[0]
    return (
        isinstance(target, ast.Attribute)
        and target.attr in ASKING
        and ast.unparse(target.value).startswith("m")
    )


def has_backend(call):
    """A backend is given, by name or among the options that are handed on."""
    return any(keyword.arg in ("backend", None) for keyword in call.keywords)


def test_cells_are_short_and_begin_with_words(notebook):
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    assert [cell.source for cell in code_of(notebook) if len(cell.source.splitlines()) > 17] == []
    assert [
        line for cell in code_of(notebook) for line in cell.source.splitlines() if len(line) > 110
    ] == []


def test_links_lead_to_files_that_are_there(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\(([^)#]+)", cell.source):
                assert (ROOT / "notebooks" / target.replace("\n", "")).exists(), target
