"""Insert what is made from the code: tables for ``<!-- table: columns -->`` and others, and the theme's style sheet.

mkdocs calls the functions named ``on_...`` for each page (see ``hooks`` in mkdocs.yml).
"""

from __future__ import annotations

import ast
import html
import importlib
import re
import sys
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import typer
from mkdocs.structure.files import File
from typer.testing import CliRunner

from mailverdict.checks.lists.mailboxes import load_mailbox_rules
from mailverdict.cli import app
from mailverdict.frames.policy import POLICIES
from mailverdict.model.settings import KNOWN_ZONES
from mailverdict.model.words import REASON_MEANING, WHY_MEANING
from mailverdict.repair.repair import REPAIRS
from mailverdict.table.columns import COLUMNS, SETS, Column
from mailverdict.theme import stylesheet
from mailverdict.verdicts import PRECEDENCE

MARK = re.compile(r"<!-- table: (.*?) -->")
IN_SCRIPT = "(?:(?!</script>).)*?"
PAGE_FIXES = (
    # What notebook pages would load for diagrams and formulas that they do not have.
    (re.compile(rf'<script type="module">{IN_SCRIPT}mermaid{IN_SCRIPT}</script>', re.DOTALL), ""),
    (re.compile(r'<script src=""></script>'), ""),
    # Defaults beside a parameter's type are guessed from a list of choices; the signature has the
    # true ones.
    (re.compile(r",\s*default:\s*<code>.*?</code>\s*\)", re.DOTALL), ")"),
    # Types are prose, and are read as expressions.
    (re.compile(r"(<span[^>]*>list</span>|list) - like"), "list-like"),
    (re.compile(r"(?<=<code>)``(.*?)``"), r"\1"),
    (re.compile(r"(?<=<code>\()``(.*?)``"), r"\1"),
)
# How much a hit counts in the search, by folder.
BOOSTS = {"explanation": 4.0, "how-to": 4.0, "notebooks": 0.05, "reference": 0.1}
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
DTYPE = {
    "verdict": "category",
    "status": "category",
    "text": "string",
    "bool": "boolean",
    "moment": "datetime, UTC",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the style sheet of the theme, which site.css uses."""
    files.append(File.generated(config, "theme.css", content=stylesheet()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each mark by its table; an unknown mark is an error, which ends the build."""
    return MARK.sub(lambda match: TABLES[match[1]](), markdown)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Let the search list guides and explanations before notebooks and signatures, which use the same words."""
    folder = page.file.src_uri.partition("/")[0]
    page.meta.setdefault("search", {"boost": BOOSTS.get(folder, 1.0)})
    return content


def on_post_page(output: str, **_: Any) -> str:
    """Fix what the page generators get wrong in notebooks and docstrings."""
    for pattern, replacement in PAGE_FIXES:
        output = pattern.sub(replacement, output)
    return output


def columns() -> str:
    rows = [(f"`{c.name}`", DTYPE[c.kind], smallest_set(c), c.meaning) for c in COLUMNS]
    return table(("column", "dtype", "set", "meaning"), rows)


def smallest_set(column: Column) -> str:
    return next(name for name, columns in SETS.items() if column in columns)


def words() -> str:
    rows = [(f"`{word}`", meaning) for word, meaning in WHY_MEANING.items()]
    return table(("word", "meaning"), rows)


def reasons() -> str:
    rows = [
        (str(rank), f"`{r}`", f"`{PRECEDENCE[r]}`", REASON_MEANING[r])
        for rank, r in enumerate(PRECEDENCE, 1)
    ]
    return table(("", "reason", "verdict", "meaning"), rows)


def policies() -> str:
    actions = ("send", "review", "retry", "drop")
    rows = [
        (
            f"**{name}**",
            *(
                ", ".join(f"`{selector}`" for selector in getattr(policy, action))
                for action in actions
            ),
        )
        for name, policy in POLICIES.items()
    ]
    return table(("policy", *actions), rows)


def zones() -> str:
    rows = [
        (f"`{z.name}`", ", ".join(z.codes), z.meaning, z.source, z.date)
        for z in KNOWN_ZONES.values()
    ]
    return table(("zone", "answers that mean listed", "contains", "source", "read on"), rows)


def repairs() -> str:
    rows = [
        (
            f"`{r.name}`",
            "safe" if r.is_safe else "ask",
            shown_text(r.before),
            shown_text(r.after),
            r.why,
        )
        for r in REPAIRS
    ]
    return table(("repair", "class", "before", "after", "why"), rows)


def shown_text(text: str) -> str:
    """A cell as code, with the characters that cannot be seen written as escapes."""
    visible = "".join(
        c if c.isprintable() and not unicodedata.combining(c) else f"\\u{ord(c):04x}" for c in text
    )
    return f"<code>{html.escape(visible).replace(' ', '&nbsp;')}</code>"


def inputs() -> str:
    found = load_inputs()
    return table(("input", *(f"`{name}`" for name in found.VERBS)), found.render()[0])


def input_errors() -> str:
    return table(("input", "functions", "error"), load_inputs().render()[1])


def load_inputs() -> ModuleType:
    """Load the table of inputs; mkdocs loads this file by its path, without the folder above in `sys.path`."""
    root = str(Path(__file__).parents[1])
    if root not in sys.path:
        sys.path.append(root)
    return importlib.import_module("tests.frames.kinds_of_input")


def lists() -> str:
    manifest = tomllib.loads(
        files("mailverdict.data").joinpath("MANIFEST.toml").read_text(encoding="utf-8")
    )
    rows = [
        (
            f"`{entry['file']}`",
            f"{entry['rows']:,}",
            str(entry["date"]),
            entry["licence"],
            entry["source"],
        )
        for entry in manifest.values()
    ]
    return table(("file", "entries", "date", "licence", "source"), rows)


def mailboxes() -> str:
    rows = [
        (
            rule.name,
            ", ".join(f"`{domain}`" for domain in rule.domains),
            "yes" if rule.one_mailbox else "no",
            " ".join(f"`{character}`" for character in rule.separators),
            " ".join(f"`{character}`" for character in rule.ignored),
            " ".join(f"`{character}`" for character in rule.same),
            "yes" if rule.subdomains else "no",
            f"{rule.source} ({rule.seen})",
        )
        for rule in dict.fromkeys(load_mailbox_rules().values())
    ]
    head = (
        "provider",
        "domains",
        "one mailbox at all of them",
        "a tag begins at",
        "ignored",
        "the same",
        "name as subdomain",
        "source",
    )
    return table(head, rows)


def benchmarks() -> str:
    """The first paragraph of each benchmark's docstring."""
    named = re.search(
        r"^NAMES = (\(.*?\))",
        (BENCHMARKS / "__main__.py").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert named is not None
    paths = {
        name: BENCHMARKS / f"{name.replace('.', '/')}.py" for name in ast.literal_eval(named[1])
    }
    docs = {
        name: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for name, path in paths.items()
    }
    return table(
        ("benchmark", "measures"),
        [(f"`{name}`", text.partition("\n\n")[0]) for name, text in docs.items()],
    )


def cli() -> str:
    """Every command with its help text."""
    paths = walk((), typer.main.get_command(app))
    pages = (
        (path, CliRunner().invoke(app, [*path, "--help"], terminal_width=100).output)
        for path in paths
    )
    return "\n\n".join(
        f"## mailverdict {' '.join(path)}\n\n```text\n{text.strip()}\n```" for path, text in pages
    )


def walk(path: tuple[str, ...], command: Any) -> Iterator[tuple[str, ...]]:
    """Names of all commands and subcommands."""
    if path:
        yield path
    for name, child in getattr(command, "commands", {}).items():
        yield from walk((*path, name), child)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(escape(cell) for cell in line) + " |" for line in lines)


def escape(cell: str) -> str:
    return " ".join(str(cell).split()).replace("|", "\\|")


TABLES: dict[str, Callable[[], str]] = {
    "columns": columns,
    "words": words,
    "reasons": reasons,
    "policies": policies,
    "repairs": repairs,
    "inputs": inputs,
    "input_errors": input_errors,
    "lists": lists,
    "zones": zones,
    "mailboxes": mailboxes,
    "benchmarks": benchmarks,
    "cli": cli,
}
