"""What to do with each row: policies, the decision by a policy, and the split of a frame by action."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Generic

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import SettingsError
from ..model.json_fields import shorten
from ..model.words import REASON_MEANING, STATE_MEANING, Reason, Status, Verdict, count_of
from .clean import advise
from .columns import ACTION_COLUMNS, ACTIONS
from .kinds import Frame, kind_of_data
from .overwrite import name_columns
from .remarks import text_beside
from .repair import MAX_CELL
from .text_column import read_values
from .verified import VerifiedColumn, to_series

FLAGS_BY_SEVERITY = ("spamtrap", "disposable", "role", "catch_all", "protected", "free")  # the most serious first
UNCHECKED = "unchecked"
LONGEST_REMARK = 60  # characters that are shown
DROPS_DUPLICATES = "drops_duplicates"  # a note on a frame: rows whose mailbox is in an earlier row are dropped
REMARK = "remark"  # the repair that takes away words which ask for no mail
# Beginnings of `action_why`, or the whole, where something besides the verdict decides.
FLAGGED, MISTYPED, REMARKED = "flagged ", "probably mistyped: ", "a remark in the cell: "
SUPPRESSED, REPEATED = "on your suppression list", "the same mailbox is in an earlier row"


@dataclass(frozen=True)
class Policy:
    """Which rows are sent mail, reviewed, verified again or dropped.

    Each field holds selectors: a verdict (``"unknown"``), a verdict with its dominant reason
    (``"unknown:greylisted"``) or a flag (``"flag:disposable"``, whatever the verdict, since flags
    change the verdict only for ``smtp``). A flag takes precedence over a reason, a reason over a
    verdict alone, and a row that is dropped for its verdict stays dropped. A row whose verdict no
    selector names is reviewed; a row without a verdict is unchecked. A malformed cell in which an
    address or several can be read, or that suggests one, is always reviewed and never dropped. A
    repaired cell whose words ask for no mail (``do not contact``), or say that the address is out of
    use, is never sent: it is reviewed unless it is dropped.

    Parameters
    ----------
    name : str
        For reports.
    send, review, retry, drop : iterable of str
        Selectors of each action.
    review_suggestions : bool
        Whether a well-formed address with a suggestion is reviewed, so that a typing error is corrected and not
        dropped. A malformed cell with a suggestion is always reviewed.

    Raises
    ------
    SettingsError
        If a selector is not known, or is given for two actions.

    Examples
    --------
    >>> import mailverdict as mv
    >>> mine = mv.Policy("mine", send=["valid", "risky:role"], retry=["unknown"], drop=["invalid", "risky"])
    >>> mine.action_of("risky", "role"), mine.action_of("risky", "catch_all")
    ('send', 'drop')
    """

    name: str
    send: tuple[str, ...] = ("valid",)
    review: tuple[str, ...] = ()
    retry: tuple[str, ...] = ("unknown",)
    drop: tuple[str, ...] = ("invalid",)
    review_suggestions: bool = True

    def __post_init__(self) -> None:
        """Check the selectors."""
        for action in ("send", "review", "retry", "drop"):
            object.__setattr__(self, action, freeze_selectors(getattr(self, action), action))
        _ = self._actions

    @cached_property
    def _actions(self) -> dict[str, str]:
        """Action by selector; an error if a selector has two."""
        actions: dict[str, str] = {}
        for action in ("send", "review", "retry", "drop"):
            for selector in getattr(self, action):
                if actions.setdefault(selector, action) != action:
                    raise SettingsError(
                        f"{selector!r} is given for {actions[selector]!r} and {action!r} of policy {self.name!r}"
                    )
        return actions

    def action_of(self, verdict: str, reason: str | None = None) -> str:
        """Give the action for a verdict and its dominant reason, without regard to flags.

        Parameters
        ----------
        verdict : str
            One of the four.
        reason : str, optional
            The dominant one.

        Returns
        -------
        str
            ``send``, ``review``, ``retry`` or ``drop``.
        """
        return self._actions.get(f"{verdict}:{reason}") or self._actions.get(verdict, "review")

    def _flag_actions(self) -> Iterator[tuple[str, str]]:
        """The flags that have an action of their own, the most serious first."""
        for flag in FLAGS_BY_SEVERITY:
            if (action := self._actions.get(f"flag:{flag}")) is not None:
                yield flag, action


def freeze_selectors(selectors: Iterable[str], action: str) -> tuple[str, ...]:
    """Check each selector; a single text is a list of one."""
    frozen = (selectors,) if isinstance(selectors, str) else tuple(selectors)
    for selector in frozen:
        if not isinstance(selector, str) or not is_selector(selector):
            raise SettingsError(
                f"{action}: {selector!r} is not a selector; give a verdict, 'verdict:reason', "
                f"or 'flag:name' with one of {', '.join(FLAGS_BY_SEVERITY)}"
            )
    return frozen


def is_selector(selector: str) -> bool:
    head, colon, tail = selector.partition(":")
    return tail in FLAGS_BY_SEVERITY if head == "flag" else head in tuple(Verdict) and (bool(tail) or not colon)


# From careful to permissive. Addresses for which this machine was refused (protected, sender_blocked) get no better
# answer from the same machine later, so balanced has a person review them.
POLICIES = {
    "strict": Policy(
        "strict",
        send=("valid",),
        review=("flag:role", "risky:role"),
        retry=("unknown",),
        drop=("invalid", "risky", "flag:spamtrap", "flag:disposable"),
    ),
    "balanced": Policy(
        "balanced",
        send=("valid",),
        review=("risky:role", "risky:catch_all", "unknown:mailbox_full", "unknown:protected", "unknown:sender_blocked"),
        retry=("unknown",),
        drop=("invalid", "risky:disposable", "risky:spamtrap", "flag:disposable", "flag:spamtrap"),
    ),
    "lenient": Policy(
        "lenient",
        send=("valid", "risky:role", "risky:catch_all", "unknown:protected", "unknown:sender_blocked"),
        review=("risky:disposable", "flag:disposable"),
        retry=("unknown",),
        drop=("invalid", "risky:spamtrap", "flag:spamtrap"),
        review_suggestions=False,
    ),
}


def find_policy(policy: Policy | str) -> Policy:
    """A policy itself, or one of the built-in ones by name."""
    if isinstance(policy, Policy):
        return policy
    if policy not in POLICIES:
        raise SettingsError(f"policy={policy!r}: give one of {', '.join(POLICIES)}, or a Policy")
    return POLICIES[policy]


def decide(out: Frame, column: Hashable, *, policy: Policy | str = "balanced", prefix: str | None = None) -> Frame:
    """Add what to do with each row, and why.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    column : hashable
        The column that was verified.
    policy : Policy or {"strict", "balanced", "lenient"}
        What is done with which verdict.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        The same kind, with `{prefix}action` (category: send, review, retry, drop, unchecked) and
        `{prefix}action_why` (string); the frame given is left untouched. Rows that `suppress`
        marked are dropped, whatever their verdict and the policy.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    SettingsError
        If there is no such policy, or a new column would overwrite one that mailverdict did not write.
    InputError
        If a result column holds what `verify` never writes.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> df = pd.DataFrame({"email": ["ada@example.org", "bob@gmial.com", "nobody", None]})
    >>> out = mv.decide(mv.verify(df, "email", validation_type="regex"), "email")
    >>> out["email_action"].tolist()
    ['send', 'review', 'drop', 'unchecked']
    """
    chosen = find_policy(policy)
    rows = read_decided(out, column, prefix)
    names = name_columns(rows.data, prefix, ACTION_COLUMNS)
    action, why = decide_rows(rows, chosen)
    table = pa.table(
        {
            "action": pa.array(action.to_numpy(), pa.string()).dictionary_encode(),
            "action_why": pa.array(why.to_numpy(), pa.string()),
        }
    )
    marked: Frame = rows.data.attach(table, names, ACTION_COLUMNS, {"policy": chosen.name})
    return marked


def read_decided(out: Any, column: Hashable, prefix: str | None) -> VerifiedColumn:
    """A verified column with all that decides about an action."""
    return VerifiedColumn(out, column, prefix, ("verdict", "details", "status", "suggestion", *FLAGS_BY_SEVERITY))


def decide_rows(rows: VerifiedColumn, policy: Policy) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """Action and reason of each row, by position; each step below takes precedence over those before it."""
    status, verdict, details = rows.status, rows["verdict"].astype(object), rows["details"].astype(object)
    is_done = status == Status.DONE
    codes, distinct = factorize_pairs(verdict.where(is_done, status), details)
    actions = (
        pd.Series([row_action(policy, *pair) for pair in distinct], dtype=object).take(codes).reset_index(drop=True)
    )
    why = pd.Series([row_reason(*pair) for pair in distinct], dtype=object).take(codes).reset_index(drop=True)
    for flag, action in reversed(list(policy._flag_actions())):
        hit = rows[flag].fillna(value=False).astype(bool) & is_done & (actions != "drop")
        actions, why = actions.mask(hit, action), why.mask(hit, FLAGGED + flag.replace("_", "-"))
    if policy.review_suggestions:
        hit = rows["suggestion"].notna() & is_done
        actions = actions.mask(hit, "review")
        why = why.mask(hit, f"{MISTYPED}did you mean " + rows["suggestion"].astype(object) + "?")
    is_repeated = pd.Series(False, index=actions.index)
    if rows.data.notes().get(DROPS_DUPLICATES) and "duplicate_of" in rows:
        is_repeated = rows["duplicate_of"].notna().reset_index(drop=True)
    remarks = remark_rows(rows, (is_done & (actions != "drop")) | is_repeated)
    actions, why = actions.mask(remarks.notna(), "review"), why.mask(remarks.notna(), remarks)
    advice = advise_rows(rows, is_done & (verdict == Verdict.INVALID))
    actions, why = actions.mask(advice.notna(), "review"), why.mask(advice.notna(), advice)
    hit = is_repeated & remarks.isna()  # a remark is also about the row that stays
    actions, why = actions.mask(hit, "drop"), why.mask(hit, REPEATED)
    if "suppressed" in rows:
        hit = rows["suppressed"].astype("string").str.lower().eq("true").fillna(value=False)  # also as read from a CSV
        actions, why = actions.mask(hit, "drop"), why.mask(hit, SUPPRESSED)
    return actions, why


def cause_of(why: str) -> str:
    """What decided about an action besides the verdict: a flag, a typo, or a list; empty for the verdict alone.

    >>> cause_of("flagged catch-all"), cause_of("probably mistyped: did you mean a@b.org?"), cause_of("risky: full")
    ('catch_all', 'typo', '')
    """
    if why.startswith(FLAGGED):
        return why.removeprefix(FLAGGED).replace("-", "_")
    if why.startswith(REMARKED):
        return REMARK
    return "typo" if why.startswith(MISTYPED) else {SUPPRESSED: "suppressed", REPEATED: "duplicate"}.get(why, "")


def factorize_pairs(one: pd.Series[Any], other: pd.Series[Any]) -> tuple[Any, list[tuple[Any, Any]]]:
    """For each row the position of its pair of values in the list of distinct pairs; missing values are None."""
    (first, firsts), (second, seconds) = pd.factorize(one), pd.factorize(other)
    width = len(seconds) + 1
    pairs, codes = np.unique((first + 1) * width + second + 1, return_inverse=True)
    values = [None, *firsts], [None, *seconds]
    return codes, [(values[0][pair // width], values[1][pair % width]) for pair in pairs]


def advise_rows(rows: VerifiedColumn, is_invalid: pd.Series[bool]) -> pd.Series[Any]:
    """What to do with each malformed cell that holds or suggests an address; not for a verdict on a cleaned address."""
    advice = pd.Series([None] * len(is_invalid), dtype=object)
    if "clean" in rows and "error_message" in rows:
        is_of_cleaned = (rows["clean"].notna() & rows["error_message"].notna()).to_numpy(bool)
        is_invalid = is_invalid & (~is_of_cleaned | rows.is_refused_as_written)
    positions = np.flatnonzero(is_invalid.to_numpy(dtype=bool))
    cells = read_values(rows.texts.iloc[positions], for_repair=True, longest=MAX_CELL)
    distinct = cells.texts.dictionary_encode()
    found = advise(distinct.dictionary).take(distinct.indices).to_numpy(zero_copy_only=False)
    advice.iloc[positions if cells.rows is None else positions[cells.rows]] = found
    nontext = np.flatnonzero((is_invalid & rows.texts.isna()).to_numpy(dtype=bool))
    values = to_series(rows.data.values()).iloc[nontext] if len(nontext) else ()
    held = [row for row, cell in zip(nontext.tolist(), values, strict=True) if "@" in str(cell)]
    advice.iloc[held] = "is not text and may hold an address: correct it by hand"
    return advice


def remark_rows(rows: VerifiedColumn, is_kept: pd.Series[bool]) -> pd.Series[Any]:
    """The words beside each cleaned address that ask for no mail, or say that it is out of use."""
    found = pd.Series([None] * len(is_kept), dtype=object)
    if "change" in rows:
        change = rows["change"].astype("string").fillna("")
        positions = np.flatnonzero((change.str.contains(REMARK, regex=False) & is_kept).to_numpy(bool))
        cells = rows.texts.iloc[positions].fillna("")
        found.iloc[positions] = [REMARKED + shorten(text_beside(str(cell)), LONGEST_REMARK) for cell in cells]
    return found


def row_action(policy: Policy, bucket: str, details: Any) -> str:
    return policy.action_of(bucket, details if isinstance(details, str) else None) if bucket in VERDICTS else UNCHECKED


def row_reason(bucket: str, details: Any) -> str:
    """The reason in words; one that only the service knows is shown as it is."""
    if isinstance(details, str):
        known = details in tuple(Reason)
        return f"{bucket}: {REASON_MEANING[Reason(details)] if known else details}"
    return STATE_MEANING.get(bucket, bucket)


VERDICTS = tuple(map(str, Verdict))
# What each action means for the rows, for people.
ACTION_MEANING = {
    "send": "Can be mailed now.",
    "review": "A person should look at them: likely typos, shared mailboxes, domains that accept every address.",
    "retry": "No clear answer yet. Verify them again later.",
    "drop": "Take them off the list.",
    "unchecked": "No address, not verified yet, or a technical error.",
}


@dataclass(frozen=True)
class Split(Generic[Frame]):
    """A verified frame split by action: every row in exactly one part, index and order kept.

    Attributes
    ----------
    send, review, retry, drop, unchecked : DataFrame
        Every row of the frame is in exactly one of them; of the kind that was given.

    Examples
    --------
    >>> import mailverdict as mv
    >>> import pandas as pd
    >>> out = mv.verify(pd.DataFrame({"email": ["ada@example.org", "nobody"]}), "email", validation_type="regex")
    >>> mv.split(out, "email").send["email"].tolist()
    ['ada@example.org']
    """

    send: Frame
    review: Frame
    retry: Frame
    drop: Frame
    unchecked: Frame

    def counts(self) -> pd.Series[int]:
        """Count the rows of each part.

        Returns
        -------
        Series
            Index: the actions, always all five; int64.
        """
        return pd.Series(
            {each.name: len(getattr(self, each.name)) for each in fields(self)}, dtype="int64", name="rows"
        )

    def __repr__(self) -> str:
        """One line of counts."""
        return f"Split({', '.join(f'{name}={count:,}' for name, count in self.counts().items())})"

    def _repr_html_(self) -> str:
        """A bar and the counts, for a notebook."""
        from ..theme import badge, bar, notebook  # noqa: PLC0415 - only notebooks need it

        counts = {str(name): int(count) for name, count in self.counts().items()}
        lines = (
            f'<tr><td>{badge(name)}</td><td class="mv-number">{count_of(count, "row")}</td>'
            f"<td><code>.{name}</code></td></tr>"
            for name, count in counts.items()
        )
        return notebook(f"{bar(counts)}<table>{''.join(lines)}</table>")


def split(
    out: Frame, column: Hashable, *, policy: Policy | str = "balanced", prefix: str | None = None
) -> Split[Frame]:
    """Split a verified frame by what to do with each row.

    Parameters
    ----------
    out, column, policy, prefix
        As in `decide`.

    Returns
    -------
    Split
        `.send`, `.review`, `.retry`, `.drop`, `.unchecked`: an exact partition with the action
        columns of `decide`.

    Raises
    ------
    ColumnError, SettingsError, InputError
        As `decide`.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> out = mv.verify(pd.DataFrame({"email": ["ada@example.org", "nobody"]}), "email", validation_type="regex")
    >>> mv.split(out, "email")
    Split(send=1, review=0, retry=0, drop=1, unchecked=0)
    """
    decided: Any = decide(out, column, policy=policy, prefix=prefix)
    kind = kind_of_data(decided, column)
    action = VerifiedColumn(decided, column, prefix, ("action",))["action"].to_numpy()
    return Split(**{name: kind.take(np.flatnonzero(action == name)) for name in ACTIONS})
