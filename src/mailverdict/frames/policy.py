"""What to do with each row: policies, the decision by a policy, and the split of a frame by action.

A `Policy` says what to do by verdict, reason and flag. `decide_rows` looks at each kind of row once
(see alike.py):

1. `decide_first`: what comes before any policy (suppression, a person's decision, repeats, no
   verdict).
2. The advice about a malformed cell: any other such row is reviewed.
3. `decide_by_selector`: the policy itself.
4. What only a person can settle: a likely typo or a listed company's domain, also where the policy
   drops the row; a remark or a placeholder, where it does not.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SettingsError
from ..model.arrow import Rows, one_array, replace_texts, to_bools
from ..model.json_fields import shorten
from ..model.words import ACTIONS, MEANING, SEVERAL_ADDRESSES, Status, Verdict, count_of
from ..repair.remarks import text_beside
from ..repair.words import NO_NAMES
from ..table.columns import ACTION_COLUMNS
from ..table.overwrite import name_columns
from ..table.table import Frame
from .alike import REMARK, REPEATED, Alike, group_alike, row_facts
from .clean import DID_YOU_MEAN
from .results import JUDGED, WAITING, Results

# The most serious first.
FLAGS_BY_SEVERITY = (
    "spamtrap",
    "disposable",
    "role",
    "catch_all",
    "protected",
    "free",
)
UNCHECKED = "unchecked"
LONGEST_REMARK = 60  # characters that are shown
REMARKED = "a remark in the cell: "
LISTED_COMPANY = (
    "on the list of disposable providers, but its mail server is one that companies use: "
    "the list may be wrong"
)
ONLY_LISTED = " (on the list; who runs its mail server was not looked at)"
PLACEHOLDER_ADDRESS = rf"(?i)^(?:{'|'.join(sorted(map(re.escape, NO_NAMES)))})[0-9]*@"


@dataclass(frozen=True)
class Policy:
    """Which rows are sent mail, reviewed, verified again or dropped.

    Each field holds selectors: a verdict (``"unknown"``), a verdict with the word of `why`
    (``"unknown:greylisted"``) or a flag (``"flag:disposable"``, whatever the verdict, since flags
    change the verdict only for ``smtp``). Of several flags the most serious one counts; a flag
    takes precedence over a reason, a reason over a verdict alone, and a row that is dropped for its
    verdict stays dropped. A row whose verdict no selector names is reviewed; a row without a
    verdict is unchecked. A malformed cell in which an address or several can be read, or that
    suggests one, is always reviewed and never dropped. A repaired cell whose words ask for no mail
    (``do not contact``), or say that the address is out of use, is never sent: it is reviewed
    unless it is dropped. So is an address that stands for a missing one (``noemail@gmail.com``).
    A row that would be dropped as disposable is reviewed where `disposable_suspected` says that an
    operator for companies runs the mail server: the list of disposable providers may be wrong.
    The column is in ``columns="all"``; without it such a row is dropped, and `action_why` says that
    only the list was asked.

    Parameters
    ----------
    name : str
        For reports.
    send, review, retry, drop : iterable of str
        Selectors of each action.
    review_suggestions : bool
        Whether a well-formed address with a suggestion is reviewed, so that a typing error is
        corrected. One that would be dropped is always reviewed, and so is a malformed cell with a
        suggestion.

    Raises
    ------
    SettingsError
        If a selector is not known, or is given for two actions.

    Examples
    --------
    >>> import mailverdict as mv
    >>> mine = mv.Policy(
    ...     "mine", send=["valid", "risky:role"], retry=["unknown"], drop=["invalid", "risky"]
    ... )
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
                        f"{selector!r} is given for {actions[selector]!r} and {action!r}"
                        f" of policy {self.name!r}"
                    )
        return actions

    def _names_flag(self, flag: str) -> bool:
        """Whether a selector of the policy is about this flag."""
        return f"flag:{flag}" in self._actions

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
        action = self._actions.get(f"{verdict}:{reason}")
        if action is not None:
            return action
        if reason == SEVERAL_ADDRESSES:  # to verify them again would not help
            return "review"
        return self._actions.get(verdict, "review")


def freeze_selectors(selectors: Iterable[str], action: str) -> tuple[str, ...]:
    """Check each selector; a single text is a list of one."""
    if isinstance(selectors, str):
        selectors = [selectors]
    frozen = tuple(selectors)
    for selector in frozen:
        if not isinstance(selector, str) or not is_selector(selector):
            raise SettingsError(
                f"{action}: {selector!r} is not a selector; give a verdict, 'verdict:reason', "
                f"or 'flag:name' with one of {', '.join(FLAGS_BY_SEVERITY)}"
            )
    return frozen


def is_selector(selector: str) -> bool:
    head, colon, tail = selector.partition(":")
    if head == "flag":
        return tail in FLAGS_BY_SEVERITY
    if head not in tuple(Verdict):
        return False
    return not colon or bool(tail)


# From careful to permissive. Addresses for which this machine was refused (protected,
# sender_blocked) get no better answer from the same machine later, so balanced has a person review
# them.
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
        review=(
            "risky:role",
            "risky:catch_all",
            "unknown:mailbox_full",
            "unknown:protected",
            "unknown:sender_blocked",
        ),
        retry=("unknown",),
        drop=("invalid", "risky:disposable", "risky:spamtrap", "flag:disposable", "flag:spamtrap"),
    ),
    "lenient": Policy(
        "lenient",
        send=(
            "valid",
            "risky:role",
            "risky:catch_all",
            "unknown:protected",
            "unknown:sender_blocked",
        ),
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


def decide(
    out: Frame,
    column: Hashable | None = None,
    *,
    policy: Policy | str = "balanced",
    prefix: str | None = None,
) -> Frame:
    """Add what to do with each row, and why.

    Parameters
    ----------
    out : DataFrame
        What `verify` returned: a pandas, Polars or Arrow frame.
    column : hashable, optional
        The column that was verified; by default the only one.
    policy : Policy or {"strict", "balanced", "lenient"}
        What is done with which verdict.
    prefix : str, optional
        The prefix it was verified with, if not the default.

    Returns
    -------
    DataFrame
        The same kind, with `{prefix}action` (category: send, review, retry, drop, unchecked) and
        `{prefix}action_why` (string); the frame given is left untouched. Rows that `suppress`
        marked are dropped, whatever their verdict and the policy; otherwise what a person decided
        on the audit page (`{prefix}decision`) counts.

    Raises
    ------
    ColumnError
        If the frame has no such column, or it has not been verified.
    SettingsError
        If there is no such policy, or a new column would overwrite one that mailverdict did not
        write.
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
    names = name_columns(rows.data, rows.prefix, ACTION_COLUMNS)
    actions = decide_rows(rows, chosen)
    marked: Frame = rows.data.attach(actions, names, ACTION_COLUMNS, {"policy": chosen.name})
    return marked


def read_decided(out: Any, column: Hashable | None, prefix: str | None) -> Results:
    """A verified column with what decides about an action, but for flags."""
    return Results(out, column, prefix, (*JUDGED, "suggestion"))


def policy_facts(rows: Results, policy: Policy, *, has_advice: bool = True) -> dict[str, pa.Array]:
    """The facts of each row that decide about its action.

    The flags that the policy names must be there.

    Without the advice about malformed cells, which takes long, it is known what is sent, but not
    what is reviewed.
    """
    facts = row_facts(rows)
    for flag in reversed(FLAGS_BY_SEVERITY):
        # The short set has no spamtraps; `verify` warns of those that it finds.
        is_left_out = rows.is_short and flag == "spamtrap"
        if policy._names_flag(flag) and not is_left_out:
            rows.require([flag])
    is_placeholder = pc.match_substring_regex(rows.addresses, PLACEHOLDER_ADDRESS)
    facts["is_placeholder"] = is_placeholder.fill_null(False)
    if has_advice:
        facts["advice"] = one_array(rows.advice["kind"])
    return facts


def apply_policy(kinds: Iterable[Alike], policy: Policy) -> list[Alike]:
    """The same kinds of rows with what the policy decides about each."""
    decided = []
    for kind in kinds:
        action, cause, why = decide_kind(kind, policy)
        decided.append(kind._replace(action=action, cause=cause, action_why=why))
    return decided


def decide_rows(rows: Results, policy: Policy) -> pa.Table:
    """The columns `action`, `cause` and `action_why`; rows with the same facts are decided once."""
    number, undecided = group_alike(policy_facts(rows, policy))
    kinds = apply_policy(undecided, policy)
    action = pa.array([kind.action for kind in kinds], pa.string())
    cause = pa.array([kind.cause for kind in kinds], pa.string())
    why = pa.array([kind.action_why for kind in kinds], pa.string())
    columns = {
        "action": action.dictionary_encode().take(number),
        "cause": cause.take(number),
        "action_why": complete_words(rows, why.take(number)),
    }
    return pa.table(columns)


def complete_words(rows: Results, why: pa.StringArray) -> pa.StringArray:
    """The reasons in words, with what each row itself adds."""
    mistyped = rows_of(why, DID_YOU_MEAN)
    remarked = rows_of(why, REMARKED)
    malformed = rows_of(why, "")
    repeated = rows_of(why, MEANING["duplicate"])

    meant = rows["suggestion"].take(mistyped)
    questions = pc.binary_join_element_wise(DID_YOU_MEAN, meant, "?", "")
    why = replace_texts(why, mistyped, questions)

    cells = rows.texts.take(remarked)
    remarks = []
    for cell in cells.to_pylist():
        remark = text_beside(cell or "")
        remarks.append(REMARKED + shorten(remark, LONGEST_REMARK))
    why = replace_texts(why, remarked, pa.array(remarks, pa.string()))

    if len(malformed):
        advice = rows.advice["text"].take(malformed)
        why = replace_texts(why, malformed, one_array(advice))
    if "action_why" in rows:  # which names the row that is sent
        before = rows["action_why"].take(repeated)
        is_named = pc.starts_with(before, REPEATED).fill_null(False)
        named = pc.if_else(is_named, before, MEANING["duplicate"])
        why = replace_texts(why, repeated, named)
    return why


def rows_of(why: pa.StringArray, words: str) -> Rows:
    """The rows whose reason is in these words alone."""
    return np.flatnonzero(to_bools(pc.equal(why, words)))


def describe_repeats(rows: npt.NDArray[np.int64]) -> pa.StringArray:
    """The words about rows whose mailbox is sent in another row, by its number; null for 0.

    >>> describe_repeats(np.array([0, 12])).to_pylist()
    [None, 'the same mailbox as row 12']
    """
    words = []
    for number in rows.tolist():
        text = None
        if number:
            text = f"{REPEATED}as row {number}"
        words.append(text)
    return pa.array(words, pa.string())


class Decided(NamedTuple):
    """What is decided about a kind of row; see `Alike`."""

    action: str
    cause: str | None
    why: str


def decide_kind(kind: Alike, policy: Policy) -> Decided:
    """The action, its cause and its reason in words."""
    decided = decide_first(kind)
    if decided is not None:
        return decided
    if kind.advice is not None:
        return Decided("review", kind.advice, "")
    decided = decide_by_selector(kind, policy)
    is_dropped = decided.action == "drop"
    is_disposable = "disposable" in (decided.cause, kind.why)
    if is_dropped and is_disposable and kind.bucket != Verdict.INVALID:
        if kind.disposable_suspected:
            decided = Decided("review", "disposable", LISTED_COMPANY)
        elif kind.disposable_suspected is None:
            decided = decided._replace(why=decided.why + ONLY_LISTED)
    # Nobody is removed for a letter: that address was never theirs.
    if kind.is_suggested and (policy.review_suggestions or decided.action == "drop"):
        decided = Decided("review", "typo", DID_YOU_MEAN)
    if decided.action == "drop":
        return decided
    if kind.has_remark:
        return Decided("review", REMARK, REMARKED)
    if kind.is_placeholder:
        return Decided("review", "placeholder", "the address stands for a missing one")
    return decided


def decide_first(kind: Alike) -> Decided | None:
    """What precedes any policy: suppression, decisions, duplicates, and rows without a verdict."""
    if kind.suppressed:
        return Decided("drop", "suppressed", MEANING["suppressed"])
    if kind.decision == "remove":
        return Decided("drop", "decided", MEANING["decided"])
    if kind.decision == WAITING:
        return Decided(UNCHECKED, WAITING, MEANING[WAITING])
    if kind.is_repeated:
        if kind.has_remark and kind.decision != "send":  # it is also about the row that stays
            return Decided("review", REMARK, REMARKED)
        return Decided("drop", "duplicate", MEANING["duplicate"])
    if kind.decision == "send" and kind.bucket != Status.MISSING:
        return Decided("send", "decided", MEANING["decided"])
    if kind.bucket not in tuple(Verdict):
        why = MEANING.get(kind.bucket, str(Status.DONE))
        return Decided(UNCHECKED, None, why)
    return None


def decide_by_selector(kind: Alike, policy: Policy) -> Decided:
    """What the selectors of the policy say about verdict, reason and flags."""
    action = policy.action_of(kind.bucket, kind.why)
    if action != "drop":
        for flag in FLAGS_BY_SEVERITY:
            if getattr(kind, flag) and policy._names_flag(flag):
                action = policy._actions[f"flag:{flag}"]
                word = flag.replace("_", "-")
                return Decided(action, flag, f"flagged {word}")
    why = MEANING.get(kind.bucket, kind.bucket)
    if kind.why:  # one that only the service knows is shown as it is
        why = f"{kind.bucket}: {MEANING.get(kind.why, kind.why)}"
    return Decided(action, None, why)


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
    >>> df = pd.DataFrame({"email": ["ada@example.org", "nobody"]})
    >>> out = mv.verify(df, "email", validation_type="regex")
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
        sizes = {part.name: len(getattr(self, part.name)) for part in fields(self)}
        return pd.Series(sizes, dtype="int64", name="rows")

    def __repr__(self) -> str:
        """One line of counts."""
        parts = [f"{name}={count:,}" for name, count in self.counts().items()]
        return f"Split({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """A bar and the counts, for a notebook."""
        from ..theme import badge, bar, notebook  # noqa: PLC0415 - only notebooks need it

        counts = {name: len(getattr(self, name)) for name in ACTIONS}
        lines = []
        for name, count in counts.items():
            number = f'<td class="mv-number">{count_of(count, "row")}</td>'
            lines.append(f"<tr><td>{badge(name)}</td>{number}<td><code>.{name}</code></td></tr>")
        return notebook(f"{bar(counts)}<table>{''.join(lines)}</table>")


def split(
    out: Frame,
    column: Hashable | None = None,
    *,
    policy: Policy | str = "balanced",
    prefix: str | None = None,
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
    >>> df = pd.DataFrame({"email": ["ada@example.org", "nobody"]})
    >>> out = mv.verify(df, "email", validation_type="regex")
    >>> mv.split(out, "email")
    Split(send=1, review=0, retry=0, drop=1, unchecked=0)
    """
    decided = decide(out, column, policy=policy, prefix=prefix)
    rows = Results(decided, column, prefix)
    parts = {}
    for name in ACTIONS:
        is_part = pc.equal(rows["action"], name)
        parts[name] = rows.data.take(np.flatnonzero(is_part))
    return Split(**parts)
