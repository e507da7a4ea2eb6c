"""Execute the notebooks and store them with their outputs: ``python -m tools.run_notebooks [NAME ...]``.

What differs from run to run is removed or replaced, so that the same code gives the same file:
times, kernel versions, progress bars and other widgets, addresses of objects, ports and paths.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
TIMEOUT = 120  # seconds for one cell
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
STABLE = (
    # The sandbox takes any free port.
    (
        re.compile(r"(?<=127\.0\.0\.1:)\d{4,5}|(?<=, port )\d{4,5}"),
        "2525",
    ),
    (re.compile(r"(?<=\d\.)\d{3}(?= [CS*] )"), "001"),  # milliseconds in a dialogue
    # The random local part of catch-all probes.
    (
        re.compile(r"(?<=[<;])[a-z0-9]{16}(?=@)"),
        "x7k2v9q4m1z8r5t0",
    ),
    # When a report was made.
    (
        re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"),
        "2026-03-01 09:00 UTC",
    ),
    # When its rows were checked.
    (
        re.compile(r"(?<=checked )\d{4}-\d\d-\d\d(?: to \d{4}-\d\d-\d\d)?"),
        "2026-03-01",
    ),
    (re.compile(r"\S*/ipykernel_\d+/\d+\.py:\d+: "), ""),  # where a warning came from
    (re.compile(r" at 0x[0-9a-f]{8,}"), ""),  # the address of an object
)
METADATA: dict[str, Any] = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def main(names: Iterable[str]) -> None:
    """Execute the given notebooks, or all."""
    wanted = sorted(NOTEBOOKS.glob("*.ipynb"))
    for path in [p for p in wanted if p.stem in set(names)] if names else wanted:
        print(path.relative_to(ROOT))
        store(path, execute(nbformat.read(path, as_version=4)))


def execute(notebook: Any) -> Any:
    """Run the cells in the notebook's folder; the first error stops it."""
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(NOTEBOOKS)}},
    )
    return client.execute()


def store(path: Path, notebook: Any) -> None:
    """Write a notebook without what differs from run to run."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells, 1):
        cell.id = f"cell-{number:02}"
        tags = cell.metadata.get("tags")
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type == "code":
            cell.outputs = [tidy(output) for output in cell.outputs if not is_view(output)]
    nbformat.write(notebook, path)


def is_view(output: Any) -> bool:
    """Whether an output is a view of a widget, which shows nothing without a kernel."""
    return WIDGET_VIEW in output.get("data", {})


def tidy(output: Any) -> Any:
    """One output without what differs from run to run; pictures also without their background."""
    output.get("metadata", {}).pop("image/png", None)
    return nbformat.from_dict(in_texts(output, stable))


def in_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Apply `change` to every text inside, except to pictures."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {
            key: part if str(key).startswith("image/png") else in_texts(part, change)
            for key, part in value.items()
        }
    return [in_texts(part, change) for part in value] if isinstance(value, list) else value


def stable(text: str) -> str:
    for pattern, replacement in STABLE:
        text = pattern.sub(replacement, text)
    return text


if __name__ == "__main__":
    main(sys.argv[1:])
