"""Build the packaged lists and their manifest out of registry packages and the hand-written files.

Run by hand for a new edition, never by tests; the same inputs give the same bytes. From the top of
the project, in an environment of its own, since the Public Suffix List is needed only here::

    python -m venv build/lists && build/lists/bin/pip install -e . publicsuffixlist==1.1.2.20261023
    cd build/lists
    bin/pip download --no-deps disposable-email-domains==0.0.293
    npm pack freemail@1.7.0
    cd ../.. && build/lists/bin/python tools/build_lists.py build/lists

The inputs are pinned by sha256 below. What is left out is printed with the cause; read it, and
correct the hand-written files (`known_domains.txt` for a real name that the rules take for a typing
error, `no_provider.txt` here for a name that is not a mail provider) before committing. After a
change of a hand-written list, raise its version and date below and run this again.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from publicsuffixlist import PublicSuffixList

from mailverdict.checks.lists.files import MANIFEST, split_entries
from mailverdict.checks.lists.flags import below_any
from mailverdict.checks.lists.suggestions import (
    KNOWN_LISTS,
    SuggestionIndex,
    build_index,
    parse_pairs,
)
from mailverdict.checks.lists.update import PROTECTED_LISTS, clean_domains

DATA = Path(__file__).parents[1] / "src" / "mailverdict" / "data"
BY_HAND = "written by hand for mailverdict"


@dataclass(frozen=True)
class Package:
    """A registry package: its file and the sha256 it must have."""

    file: str
    sha256: str

    def read(self, folder: Path) -> bytes:
        """Read the file; exit if it is not the pinned one."""
        data = (folder / self.file).read_bytes()
        if hashlib.sha256(data).hexdigest() != self.sha256:
            sys.exit(f"{self.file} is not the file that this edition is built from")
        return data


DISPOSABLE = Package(
    "disposable_email_domains-0.0.293-py3-none-any.whl",
    "b03e29f3a810a012c200b944ce9ef52ce975da2ea63bcf50d08767bf9e225f8e",
)
FREEMAIL = Package(
    "freemail-1.7.0.tgz", "9566335daaa2d0492f91f9efb4f94d09866b3fda691c3d55af308f63530b6fd1"
)

# name: source, licence, version, date; the order is that of the manifest.
LISTS: Mapping[str, tuple[str, str, str, str]] = {
    "disposable": ("PyPI disposable-email-domains 0.0.293", "CC0-1.0", "0.0.293", "2026-11-09"),
    "relays": (BY_HAND, "MIT", "1", "2026-11-20"),
    "not_disposable": (BY_HAND, "MIT", "1", "2026-11-26"),
    "free": ("npm freemail 1.7.0", "ISC", "1.7.0", "2020-07"),
    "free_more": (BY_HAND, "MIT", "3", "2026-11-29"),
    "role_core": (BY_HAND, "MIT", "2", "2026-11-26"),
    "role_languages": (BY_HAND, "MIT", "1", "2026-11-26"),
    "role_extended": (BY_HAND, "MIT", "2", "2026-11-26"),
    "typo_domains": (BY_HAND, "MIT", "2", "2026-11-26"),
    "suggestion_targets": (BY_HAND, "MIT", "2", "2026-11-26"),
    "known_domains": (BY_HAND, "MIT", "2", "2026-11-26"),
    "suffixes": (BY_HAND, "MIT", "1", "2026-11-20"),
    "operators": ("collected for mailverdict; each row names who saw it", "MIT", "2", "2026-11-29"),
    "resolver_test": (BY_HAND, "MIT", "1", "2026-11-22"),
    "special_networks": (
        "IANA IPv4 and IPv6 Special-Purpose Address Registries",
        "CC0-1.0",
        "2026-07-18",
        "2026-07-18",
    ),
    "special_networks_more": (BY_HAND, "MIT", "1", "2026-11-26"),
    "root_zone": (
        "the last labels of the ICANN section of the Public Suffix List, "
        "PyPI publicsuffixlist 1.1.2.20261023",
        "MPL-2.0",
        "2026-10-22",
        "2026-10-22",
    ),
}

DISPOSABLE_HEAD = """\
# Domains of throw-away mailboxes. From the PyPI package disposable-email-domains 0.0.293, whose
# list is in the public domain (CC0-1.0):
# https://github.com/disposable-email-domains/disposable-email-domains Without known typos of
# providers, public suffixes and names listed by mistake. Built by tools/build_lists.py.
"""
FREE_HEAD = """\
# Consumer mail providers. From the npm package freemail 1.7.0 (ISC, copyright 2015 Will White).
# Without disposable, mistyped, malformed and non-registrable names, and without companies. Built by
# tools/build_lists.py.
"""


def main(folder: Path) -> None:
    suffixes = PublicSuffixList()
    disposable = build_disposable(blocklist_of(DISPOSABLE.read(folder)), suffixes)
    write("disposable", DISPOSABLE_HEAD, disposable)
    with tarfile.open(folder / FREEMAIL.file) as package:
        FREEMAIL.read(folder)
        free, throwaway = (
            member_lines(package, f"package/data/{name}.txt") for name in ("free", "disposable")
        )
    write("free", FREE_HEAD, build_free(free, {*disposable, *throwaway}, suffixes))
    (DATA / MANIFEST).write_text("\n".join(map(table_of, LISTS)), encoding="utf-8")


def blocklist_of(data: bytes) -> set[str]:
    """The set that the wheel's module assigns to ``blocklist``; the module is not run."""
    with zipfile.ZipFile(io.BytesIO(data)) as wheel:
        tree = ast.parse(wheel.read("disposable_email_domains/__init__.py"))
    found = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "blocklist"
    )
    names: set[str] = ast.literal_eval(next(found))
    return names


def member_lines(package: tarfile.TarFile, name: str) -> list[str]:
    member = package.extractfile(name)
    if member is None:
        sys.exit(f"{name} is not in the package")
    return member.read().decode("utf-8").split("\n")


def entries_of(path: Path) -> list[str]:
    return [entry for _, entry in split_entries(path.read_text(encoding="utf-8"))]


def by_hand(*names: str) -> set[str]:
    return {entry for name in names for entry in entries_of(DATA / f"{name}.txt")}


def build_disposable(entries: Iterable[str], suffixes: PublicSuffixList) -> frozenset[str]:
    """All names except typing errors, public suffixes, and providers that must never be listed."""
    wanted = sorted({entry.strip().lower() for entry in entries})
    return clean(
        "disposable",
        wanted,
        {
            "a typo of a provider": dict(parse_pairs(by_hand("typo_domains"))),
            "a public suffix": {name for name in wanted if suffixes.publicsuffix(name) == name},
            "protected": below(wanted, by_hand(*PROTECTED_LISTS)),
            "listed by mistake": by_hand("not_disposable"),
        },
    )


def build_free(
    entries: Iterable[str], throwaway: Collection[str], suffixes: PublicSuffixList
) -> frozenset[str]:
    """Registrable names that are neither disposable, nor typing errors, nor in the hand-written list."""
    wanted = sorted({entry.strip().lower() for entry in entries if entry.strip()})
    index = typo_index()
    icann = PublicSuffixList(only_icann=True, accept_unknown=False)
    return clean(
        "free",
        wanted,
        {
            "not registrable": {
                name
                for name in wanted
                if icann.privatesuffix(name) != name or suffixes.privatesuffix(name) != name
            },
            "disposable": below(wanted, throwaway),
            "a typo of a provider": {name for name in wanted if index.suggest(name)},
            "no provider": no_providers(),
            "in the hand-written list": by_hand("free_more"),
        },
    )


def no_providers() -> list[str]:
    """The names of the table beside this file; when and by whom each was seen follows in its row."""
    rows = entries_of(Path(__file__).with_name("no_provider.txt"))
    return [row.split()[0] for row in rows]


def typo_index() -> SuggestionIndex:
    """The suggestion rules without the list that is being built."""
    return build_index(
        targets=by_hand("suggestion_targets"),
        typos=dict(parse_pairs(by_hand("typo_domains"))),
        known=by_hand(*(name for name in KNOWN_LISTS if name != "free")),
    )


def below(names: list[str], parents: Collection[str]) -> Iterator[str]:
    return (names[at] for at in below_any(names, frozenset(parents)))


def clean(title: str, wanted: list[str], unwanted: Mapping[str, Iterable[str]]) -> frozenset[str]:
    names, left_out = clean_domains(
        wanted, {cause: frozenset(those) for cause, those in unwanted.items()}
    )
    print(f"{title}: {len(names):,} of {len(wanted):,}")
    for cause, those in left_out.items():
        print(f"  {cause}: {len(those):,}: {' '.join(those)}")
    return names


def write(name: str, head: str, entries: Iterable[str]) -> None:
    (DATA / f"{name}.txt").write_text(
        head + "".join(f"{entry}\n" for entry in sorted(entries)), encoding="utf-8"
    )


def table_of(name: str) -> str:
    source, licence, version, date = LISTS[name]
    path = DATA / (f"{name}.csv" if name == "operators" else f"{name}.txt")
    digest, rows = hashlib.sha256(path.read_bytes()).hexdigest(), len(entries_of(path))
    values = {
        "file": path.name,
        "source": source,
        "licence": licence,
        "version": version,
        "date": date,
    }
    lines = (
        f"{key} = {json.dumps(value)}"
        for key, value in {**values, "sha256": digest, "rows": rows}.items()
    )
    return "\n".join([f"[{name}]", *lines, ""])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
