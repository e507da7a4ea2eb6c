"""What a person decided in an audit. It never changes, so that undo is the value before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .decisions import NO_WAVES, NOTHING, ByPerson, Pair


@dataclass(frozen=True)
class Choices:
    """All that a person decided about a list."""

    column: int | None = None  # position of the column that holds the addresses
    off: frozenset[str] = frozenset()  # repairs that are not applied
    split: bool = True  # each of several addresses in a cell gets a row of its own
    merge: bool = True  # of the rows of one mailbox the first that may be sent is kept
    refused: frozenset[int] = frozenset()  # columns that say no, whose rows are taken off
    suppress: bool = True  # rows on the suppression list are removed
    suppression: str = ""  # the id of the suppression list; empty: none
    accepted: frozenset[Pair] = frozenset()  # suggestions by (written, meant)
    depth: str = "mx"
    policy: str = "balanced"
    decided: ByPerson = NOTHING  # who is sent or removed by hand
    waved: ByPerson = NO_WAVES  # who was mailed, and in which wave

    def for_tidy(self) -> Choices:
        """What the list as it is verified depends on."""
        return replace(self, depth="", policy="", decided=NOTHING, waved=NO_WAVES)

    def for_check(self) -> Choices:
        """What a result depends on: other choices do not make it an earlier one."""
        is_used = self.suppress and bool(self.suppression)
        return replace(
            self,
            policy="",
            decided=NOTHING,
            waved=NO_WAVES,
            suppress=is_used,
            suppression=self.suppression if is_used else "",
        )

    def to_json(self) -> dict[str, Any]:
        """Values that JSON can hold, but for those by person."""
        kept = {
            name: value for name, value in self.__dict__.items() if not isinstance(value, ByPerson)
        }
        return {
            **kept,
            "off": sorted(self.off),
            "refused": sorted(self.refused),
            "accepted": sorted(self.accepted),
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Choices:
        """The choices that were kept; an error for anything else."""
        return cls(
            column=None if kept["column"] is None else int(kept["column"]),
            off=frozenset(map(str, kept["off"])),
            split=bool(kept["split"]),
            merge=bool(kept["merge"]),
            refused=frozenset(map(int, kept.get("refused", ()))),
            suppress=bool(kept["suppress"]),
            suppression=str(kept["suppression"]),
            accepted=frozenset((str(written), str(meant)) for written, meant in kept["accepted"]),
            depth=str(kept["depth"]),
            policy=str(kept["policy"]),
        )
