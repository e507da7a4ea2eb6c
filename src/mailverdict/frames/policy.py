"""What to do with each row: policies, the decision by a policy, and the split of a frame by action."""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..checks.syntax.address import describe_refusal
from ..errors import SettingsError
from ..model.words import REASON_MEANING, Reason, Status, Verdict
from .clean import advise
from .columns import result_labels
from .kinds import add_columns, with_note
from .repair import MAX_CELL
from .text_column import read_values

__all__ = [
    "ACTIONS",
    "ACTION_DTYPE",
    "POLICIES",
    "Policy",
    "Split",
    "decide",
    "decision_labels",
    "find_policy",
    "split",
]

ACTIONS = ("send", "review", "retry", "drop", "unchecked")
ACTION_DTYPE = pd.CategoricalDtype(list(ACTIONS))
FLAGS = ("spamtrap", "disposable", "role", "catch_all", "protected", "free")  # the most serious first
UNCHECKED = "unchecked"


@dataclass(frozen=True)
class Policy:
    """Which rows are sent mail, reviewed, verified again or dropped.

    Each field holds selectors: a verdict (``"unknown"``), a verdict with its dominant reason
    (``"unknown:greylisted"``) or a flag (``"flag:disposable"``, whatever the verdict, since flags
    change the verdict only for ``smtp``). A flag takes precedence over a reason, a reason over a
    verdict alone, and a row that is dropped for its verdict stays dropped. A row whose verdict no
    selector names is reviewed; a row without a verdict is unchecked. A malformed cell in which an
    address or several can be read, or that suggests one, is always reviewed and never dropped.

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
        for flag in FLAGS:
            if (action := self._actions.get(f"flag:{flag}")) is not None:
                yield flag, action


def freeze_selectors(selectors: Iterable[str], action: str) -> tuple[str, ...]:
    """Check each selector; a single text is a list of one."""
    frozen = (selectors,) if isinstance(selectors, str) else tuple(selectors)
    for selector in frozen:
        if not isinstance(selector, str) or not is_selector(selector):
            raise SettingsError(
                f"{action}: {selector!r} is not a selector; give a verdict, 'verdict:reason', "
                f"or 'flag:name' with one of {', '.join(FLAGS)}"
            )
    return frozen


def is_selector(selector: str) -> bool:
    head, colon, tail = selector.partition(":")
    return tail in FLAGS if head == "flag" else head in tuple(Verdict) and (bool(tail) or not colon)


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
        raise SettingsError(f"policy={policy!r}: give a Policy, or one of {', '.join(POLICIES)}")
    return POLICIES[policy]


def decide(
    out: pd.DataFrame, column: Hashable, *, policy: Policy | str = "balanced", prefix: str | None = None
) -> pd.DataFrame:
    """Add what to do with each row, and why.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned.
    column : hashable
        The column that was verified.
    policy : Policy or {"strict", "balanced", "lenient"}
        What is done with which verdict.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        With `{prefix}action` (category: send, review, retry, drop, unchecked) and
        `{prefix}action_why` (string); the frame given is left untouched. Rows that `suppress`
        marked are dropped, whatever their verdict and the policy.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    SettingsError
        If there is no such policy.

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
    labels = decision_labels(out, column, prefix)
    action, why = decide_rows(out, labels, chosen)
    made = result_labels(out, column, prefix, ("action", "action_why"), must_exist=False)
    texts = pd.array(why.to_numpy(), dtype=pd.StringDtype("pyarrow"))
    decided = add_columns(out, {made["action"]: pd.Categorical(action, dtype=ACTION_DTYPE), made["action_why"]: texts})
    decided.attrs = with_note(out.attrs, column, list(made.values()), {"policy": chosen.name})
    return decided


def decision_labels(out: pd.DataFrame, column: Hashable, prefix: str | None) -> dict[str, Any]:
    """Labels of the columns that decide, by name: of the cells, of the result, and of what else is there."""
    labels = result_labels(out, column, prefix, ("verdict", "details", "status", "suggestion", *FLAGS))
    added = result_labels(out, column, prefix, ("clean", "error_message", "suppressed"), must_exist=False)
    return {"cell": column, **labels} | {name: label for name, label in added.items() if label in out.columns}


def decide_rows(out: pd.DataFrame, labels: dict[str, Any], policy: Policy) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """Action and reason of each row, by position; each step below takes precedence over those before it."""
    rows = {name: out[label].reset_index(drop=True) for name, label in labels.items()}
    status, verdict, details = (rows[name].astype(object) for name in ("status", "verdict", "details"))
    is_done = status == Status.DONE
    pairs = pd.MultiIndex.from_arrays([verdict.where(is_done, status), details.where(details.notna(), None)])
    codes, distinct = pd.factorize(pairs.to_flat_index().to_numpy())
    actions = (
        pd.Series([row_action(policy, *pair) for pair in distinct], dtype=object).take(codes).reset_index(drop=True)
    )
    why = pd.Series([row_reason(*pair) for pair in distinct], dtype=object).take(codes).reset_index(drop=True)
    for flag, action in reversed(list(policy._flag_actions())):
        hit = rows[flag].fillna(value=False).astype(bool) & is_done & (actions != "drop")
        actions, why = actions.mask(hit, action), why.mask(hit, f"flagged {flag.replace('_', '-')}")
    if policy.review_suggestions:
        hit = rows["suggestion"].notna() & is_done
        actions = actions.mask(hit, "review")
        why = why.mask(hit, "probably mistyped: did you mean " + rows["suggestion"].astype(object) + "?")
    advice = advise_rows(rows, is_done & (verdict == Verdict.INVALID))
    actions, why = actions.mask(advice.notna(), "review"), why.mask(advice.notna(), advice)
    if "suppressed" in rows:
        hit = rows["suppressed"].astype("string").str.lower().eq("true").fillna(value=False)  # also as read from a CSV
        actions, why = actions.mask(hit, "drop"), why.mask(hit, "on your suppression list")
    return actions, why


def advise_rows(rows: dict[str, pd.Series[Any]], is_invalid: pd.Series[bool]) -> pd.Series[Any]:
    """What to do with each malformed cell that holds or suggests an address; not for a verdict on a cleaned address."""
    advice = pd.Series([None] * len(is_invalid), dtype=object)
    if "clean" in rows and "error_message" in rows:
        is_invalid = is_invalid & ~is_of_cleaned(rows)
    positions = np.flatnonzero(is_invalid.to_numpy(dtype=bool))
    cells = read_values(rows["cell"].iloc[positions], keep_blanks=True, longest=MAX_CELL)
    distinct = cells.texts.dictionary_encode()
    found = advise(distinct.dictionary).take(distinct.indices).to_numpy(zero_copy_only=False)
    advice.iloc[positions if cells.rows is None else positions[cells.rows]] = found
    return advice


def is_of_cleaned(rows: dict[str, pd.Series[Any]]) -> pd.Series[bool]:
    """Whether the verdict is that of the cleaned address: its message is not the one for the cell as it stands."""
    known = (rows["clean"].notna() & rows["error_message"].notna()).to_numpy()
    pairs = zip(rows["cell"][known], rows["error_message"][known], strict=True)
    is_other = [not isinstance(cell, str) or describe_refusal(cell.strip()) not in message for cell, message in pairs]
    answer = known.copy()
    answer[known] = np.array(is_other, np.bool_)  # a Series does not accept an empty list
    return pd.Series(answer)


def row_action(policy: Policy, bucket: str, details: Any) -> str:
    return policy.action_of(bucket, details if isinstance(details, str) else None) if bucket in VERDICTS else UNCHECKED


def row_reason(bucket: str, details: Any) -> str:
    """The reason in words; one that only the service knows is shown as it is."""
    if isinstance(details, str):
        known = details in tuple(Reason)
        return f"{bucket}: {REASON_MEANING[Reason(details)] if known else details}"
    return BUCKET_MEANING.get(bucket, bucket)


VERDICTS = tuple(map(str, Verdict))
BUCKET_MEANING = {
    "valid": "no problem was found",
    "invalid": "cannot receive mail",
    "unknown": "the check gave no answer",
    "pending": "not verified yet",
    "error": "the verification failed for a technical reason",
    "missing": "there is no address",
}


@dataclass(frozen=True)
class Split:
    """A verified frame split by action: every row in exactly one part, index and order kept.

    Attributes
    ----------
    send, review, retry, drop, unchecked : DataFrame
        Every row of the frame is in exactly one of them.

    Examples
    --------
    >>> import mailverdict as mv
    >>> import pandas as pd
    >>> out = mv.verify(pd.DataFrame({"email": ["ada@example.org", "nobody"]}), "email", validation_type="regex")
    >>> mv.split(out, "email").send["email"].tolist()
    ['ada@example.org']
    """

    send: pd.DataFrame
    review: pd.DataFrame
    retry: pd.DataFrame
    drop: pd.DataFrame
    unchecked: pd.DataFrame

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
        """A small table of counts."""
        cells = "".join(f"<th>{html.escape(str(name))}</th>" for name in self.counts().index)
        counts = "".join(f"<td>{count:,}</td>" for count in self.counts())
        return f"<table><tr>{cells}</tr><tr>{counts}</tr></table>"


def split(
    out: pd.DataFrame, column: Hashable, *, policy: Policy | str = "balanced", prefix: str | None = None
) -> Split:
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
    ColumnError, SettingsError
        As `decide`.

    Examples
    --------
    >>> import pandas as pd
    >>> import mailverdict as mv
    >>> out = mv.verify(pd.DataFrame({"email": ["ada@example.org", "nobody"]}), "email", validation_type="regex")
    >>> mv.split(out, "email")
    Split(send=1, review=0, retry=0, drop=1, unchecked=0)
    """
    decided = decide(out, column, policy=policy, prefix=prefix)
    action = decided[result_labels(out, column, prefix, ("action",), must_exist=False)["action"]].to_numpy()
    return Split(**{name: decided[action == name] for name in ACTIONS})
