"""What to do with each row: policies, the decision by a policy, and the split of a frame by action."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import SettingsError
from ..model.arrow import Rows, one_array, replace_texts
from ..model.json_fields import shorten
from ..model.words import ACTIONS, FLAGS, MEANING, SEVERAL_ADDRESSES, Status, Verdict, count_of
from ..repair.remarks import text_beside
from ..repair.words import NO_NAMES
from ..table.columns import ACTION_COLUMNS
from ..table.overwrite import name_columns
from ..table.table import Frame
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
DROPS_DUPLICATES = "drops_duplicates"  # a note on a frame: whether rows whose mailbox is in an earlier row are dropped
REMARK = "remark"  # the repair that takes away words which ask for no mail
REMARKED = "a remark in the cell: "
REPEATED = "the same mailbox "  # how `action_why` begins where another row of the mailbox is sent
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
        # To verify several addresses in a cell again would not help.
        otherwise = (
            "review" if reason == SEVERAL_ADDRESSES else self._actions.get(verdict, "review")
        )
        return self._actions.get(f"{verdict}:{reason}", otherwise)


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
    return (
        tail in FLAGS_BY_SEVERITY
        if head == "flag"
        else head in tuple(Verdict) and (bool(tail) or not colon)
    )


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
    names = name_columns(rows.data, rows.prefix, ACTION_COLUMNS)
    marked: Frame = rows.data.attach(
        decide_rows(rows, chosen), names, ACTION_COLUMNS, {"policy": chosen.name}
    )
    return marked


def read_decided(out: Any, column: Hashable | None, prefix: str | None) -> Results:
    """A verified column with what decides about an action, but for flags."""
    return Results(out, column, prefix, (*JUDGED, "suggestion"))


class Alike(NamedTuple):
    """What rows that are treated and counted alike have in common; None where the frame does not say."""

    bucket: str  # verdict, or status where there is none
    why: str | None = None
    role: bool | None = None
    disposable: bool | None = None
    disposable_suspected: bool | None = None  # the list and the mail server contradict each other
    free: bool | None = None
    spamtrap: bool | None = None
    catch_all: bool | None = None
    protected: bool | None = None
    is_suggested: bool = False
    has_remark: bool | None = False  # words in the cell ask for no mail
    suppressed: bool | None = None
    is_repeated: bool | None = False  # the mailbox is in an earlier row, and such rows are dropped
    decision: str | None = (
        None  # of a person: send, remove, suggestion; or waiting, if that is not verified yet
    )
    is_placeholder: bool = False  # the address stands for a missing one; only with a policy
    advice: str | None = None  # about a malformed cell: clean, explode, typo or unclear
    # Only in counts:
    source: str | None = None
    change: str | None = (
        None  # names of the repairs, joined by ";", where the verdict is that of a repaired address
    )
    is_rescued: bool = (
        False  # the verdict is that of a repaired address, and the cell was malformed
    )
    # Only with a policy:
    action: str | None = None
    cause: str | None = (
        None  # what decides about the action besides the verdict, or the advice about a malformed cell
    )
    action_why: str = ""  # to `DID_YOU_MEAN` and `REMARKED` a text of the row is added; empty: the advice about it

    @property
    def line(self) -> str:
        """The line of a summary: the bucket, but for cells with several addresses, which nobody could verify."""
        return SEVERAL_ADDRESSES if self.why == SEVERAL_ADDRESSES else self.bucket

    @property
    def reason(self) -> str | None:
        """Why the verdict is not valid."""
        return (
            self.why if self.bucket in (Verdict.RISKY, Verdict.INVALID, Verdict.UNKNOWN) else None
        )


def row_facts(
    rows: Results, policy: Policy | None = None, *, has_advice: bool = True
) -> dict[str, pa.Array]:
    """The facts of each row, by the fields of `Alike`; with a policy also advice, and its flags must be there.

    Without the advice about malformed cells, which takes long, it is known what is sent, but not what is reviewed.
    """
    change = rows.change.dictionary_encode()
    remarks = pa.array(
        [REMARK in each.split(";") for each in change.dictionary.to_pylist()], pa.bool_()
    )
    facts = {
        "bucket": rows.buckets,
        "why": rows.why,
        **{flag: rows[flag] for flag in FLAGS},
        "disposable_suspected": rows["disposable_suspected"],
        "is_suggested": rows["suggestion"].is_valid(),
        "has_remark": remarks.take(change.indices),
        "suppressed": rows["suppressed"],
        "decision": rows.decision,
    }
    drops_duplicates = rows.data.notes().get(DROPS_DUPLICATES)
    if drops_duplicates:
        facts["is_repeated"] = rows["duplicate_of"].is_valid()
    elif drops_duplicates is None and "action_why" in rows:  # a file has no notes, but words
        facts["is_repeated"] = pc.starts_with(rows["action_why"], REPEATED).fill_null(False)
    if policy is not None:
        # The short set has no spamtraps; `verify` warns of those that it finds.
        named = (flag for flag in reversed(FLAGS_BY_SEVERITY) if f"flag:{flag}" in policy._actions)
        rows.require(flag for flag in named if not (rows.is_short and flag == "spamtrap"))
        facts["is_placeholder"] = pc.match_substring_regex(
            rows.addresses, PLACEHOLDER_ADDRESS
        ).fill_null(False)
        if has_advice:
            facts["advice"] = one_array(rows.advice["kind"])
    return facts


def group_alike(
    facts: Mapping[str, pa.Array], policy: Policy | None = None
) -> tuple[npt.NDArray[np.intp], list[Alike]]:
    """For each row the number of its kind, whose rows have the same facts; and these, with what the policy decides."""
    groups, number = np.zeros(len(facts["bucket"]), np.int64), 1
    for values in facts.values():
        if values.null_count == len(values):
            continue
        coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        width = len(coded.dictionary) + 1
        if number * width > np.iinfo(np.int64).max:
            groups, distinct = pd.factorize(groups)
            number = len(distinct)
        groups, number = (
            groups * width + coded.indices.fill_null(width - 1).to_numpy(),
            number * width,
        )
    groups, distinct = pd.factorize(groups)
    first = np.empty(len(distinct), np.int64)
    first[groups[::-1]] = np.arange(len(groups))[::-1]
    alike = [Alike(**each) for each in pa.table(dict(facts)).take(pa.array(first)).to_pylist()]
    return groups, alike if policy is None else apply_policy(alike, policy)


def apply_policy(kinds: Iterable[Alike], policy: Policy) -> list[Alike]:
    """The same kinds of rows with what the policy decides about each."""
    decided = ((each, *decide_row(each, policy)) for each in kinds)
    return [
        each._replace(action=action, cause=cause, action_why=why)
        for each, action, cause, why in decided
    ]


def describe_repeats(rows: npt.NDArray[np.int64]) -> pa.StringArray:
    """The words about rows whose mailbox is sent in another row, by its number; null for 0.

    >>> describe_repeats(np.array([0, 12])).to_pylist()
    [None, 'the same mailbox as row 12']
    """
    words = [f"{REPEATED}as row {number}" if number else None for number in rows.tolist()]
    return pa.array(words, pa.string())


def decide_rows(rows: Results, policy: Policy) -> pa.Table:
    """The columns `action`, `cause` and `action_why`; rows with the same facts are decided once."""
    groups, alike = group_alike(row_facts(rows, policy), policy)
    action, cause, why = (
        pa.array([getattr(each, name) for each in alike], pa.string())
        for name in ("action", "cause", "action_why")
    )
    action, cause, why = (
        action.dictionary_encode(),
        cause.take(pa.array(groups)),
        why.take(pa.array(groups)),
    )

    def rows_of(word: str) -> Rows:
        return np.flatnonzero(
            np.array([each.action_why == word for each in alike], np.bool_)[groups]
        )

    at = rows_of(DID_YOU_MEAN)
    meant = rows["suggestion"].take(pa.array(at))
    why = replace_texts(why, at, pc.binary_join_element_wise(DID_YOU_MEAN, meant, "?", ""))
    at = rows_of(REMARKED)
    beside = [text_beside(cell or "") for cell in rows.texts.take(pa.array(at)).to_pylist()]
    why = replace_texts(
        why,
        at,
        pa.array([REMARKED + shorten(each, LONGEST_REMARK) for each in beside], pa.string()),
    )
    if "action_why" in rows:  # which names the row that is sent
        at = rows_of(MEANING["duplicate"])
        named = rows["action_why"].take(pa.array(at))
        is_named = pc.starts_with(named, REPEATED).fill_null(False)
        why = replace_texts(why, at, pc.if_else(is_named, named, MEANING["duplicate"]))
    at = rows_of("")
    why = replace_texts(why, at, one_array(rows.advice["text"]).take(pa.array(at)))
    action = pa.DictionaryArray.from_arrays(
        action.indices.take(pa.array(groups)), action.dictionary
    )
    return pa.table({"action": action, "cause": cause, "action_why": why})


def decide_row(row: Alike, policy: Policy) -> tuple[str, str | None, str]:
    """The action, its cause and its reason in words, as in `Alike`."""
    if (first := decide_first(row)) is not None:
        return first
    if row.advice is not None:
        return "review", row.advice, ""
    action, cause, why = (
        policy.action_of(row.bucket, row.why),
        None,
        MEANING.get(row.bucket, row.bucket),
    )
    if row.why:  # one that only the service knows is shown as it is
        why = f"{row.bucket}: {MEANING.get(row.why, row.why)}"
    flags = (
        each
        for each in FLAGS_BY_SEVERITY
        if getattr(row, each) and f"flag:{each}" in policy._actions
    )
    if action != "drop" and (flag := next(flags, None)):
        action, cause, why = (
            policy._actions[f"flag:{flag}"],
            flag,
            f"flagged {flag.replace('_', '-')}",
        )
    is_disposable = "disposable" in (cause, row.why) and row.bucket != Verdict.INVALID
    if action == "drop" and is_disposable and row.disposable_suspected is None:
        why += ONLY_LISTED
    if action == "drop" and is_disposable and row.disposable_suspected:
        action, cause, why = "review", "disposable", LISTED_COMPANY
    if row.is_suggested and policy.review_suggestions:
        action, cause, why = "review", "typo", DID_YOU_MEAN
    if row.is_placeholder and action != "drop":
        action, cause, why = "review", "placeholder", "the address stands for a missing one"
    if row.has_remark and action != "drop":
        action, cause, why = "review", REMARK, REMARKED
    return action, cause, why


def decide_first(row: Alike) -> tuple[str, str | None, str] | None:
    """What comes before any policy: the suppression list, decisions, duplicates, and rows without a verdict."""
    if row.suppressed:
        return "drop", "suppressed", MEANING["suppressed"]
    if row.decision == "remove":
        return "drop", "decided", MEANING["decided"]
    if row.decision == WAITING:
        return UNCHECKED, WAITING, MEANING[WAITING]
    if row.is_repeated:  # a remark is also about the row that stays
        is_reviewed = row.has_remark and row.decision != "send"
        return (
            ("review", REMARK, REMARKED)
            if is_reviewed
            else ("drop", "duplicate", MEANING["duplicate"])
        )
    if row.decision == "send" and row.bucket != Status.MISSING:
        return "send", "decided", MEANING["decided"]
    if row.bucket not in tuple(Verdict):
        return UNCHECKED, None, MEANING.get(row.bucket, str(Status.DONE))
    return None


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
            {each.name: len(getattr(self, each.name)) for each in fields(self)},
            dtype="int64",
            name="rows",
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
    >>> out = mv.verify(pd.DataFrame({"email": ["ada@example.org", "nobody"]}), "email", validation_type="regex")
    >>> mv.split(out, "email")
    Split(send=1, review=0, retry=0, drop=1, unchecked=0)
    """
    rows = Results(decide(out, column, policy=policy, prefix=prefix), column, prefix)
    return Split(
        **{name: rows.data.take(np.flatnonzero(pc.equal(rows["action"], name))) for name in ACTIONS}
    )
