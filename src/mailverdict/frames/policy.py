"""What to do with each row: policies, the decision by a policy, and the split of a frame by action."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, Generic

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..checks.syntax.column import observe_column
from ..checks.syntax.kernels import to_bools
from ..errors import SettingsError
from ..model.json_fields import shorten
from ..model.words import ACTIONS, SEVERAL_ADDRESSES, STATE_MEANING, WHY_MEANING, Status, Verdict, count_of
from ..repair.remarks import text_beside
from ..table.columns import ACTION_COLUMNS
from ..table.kinds import Frame
from ..table.overwrite import name_columns
from .clean import advise
from .verified import VerifiedColumn

FLAGS_BY_SEVERITY = ("spamtrap", "disposable", "role", "catch_all", "protected", "free")  # the most serious first
UNCHECKED = "unchecked"
SHORT = 320  # characters of a cell
LONGEST_REMARK = 60  # characters that are shown
DROPS_DUPLICATES = "drops_duplicates"  # a note on a frame: rows whose mailbox is in an earlier row are dropped
REMARK = "remark"  # the repair that takes away words which ask for no mail
# Beginnings of `action_why`, or the whole, where something besides the verdict decides.
FLAGGED, MISTYPED, REMARKED = "flagged ", "probably mistyped: ", "a remark in the cell: "
SUPPRESSED, REPEATED = "on your suppression list", "the same mailbox is in an earlier row"
ADVISED = "advice"  # stands for what `advise_rows` says about the row


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
    unless it is dropped.

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
        otherwise = "review" if reason == SEVERAL_ADDRESSES else self._actions.get(verdict, "review")
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


def decide(
    out: Frame, column: Hashable | None = None, *, policy: Policy | str = "balanced", prefix: str | None = None
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
    names = name_columns(rows.data, rows.prefix, ACTION_COLUMNS)
    action, why = decide_rows(rows, chosen)
    table = pa.table(
        {
            "action": pa.array(action.to_numpy(), pa.string()).dictionary_encode(),
            "action_why": pa.array(why.to_numpy(), pa.string()),
        }
    )
    marked: Frame = rows.data.attach(table, names, ACTION_COLUMNS, {"policy": chosen.name})
    return marked


def read_decided(out: Any, column: Hashable | None, prefix: str | None) -> VerifiedColumn:
    """A verified column with what decides about an action, but for flags."""
    return VerifiedColumn(out, column, prefix, ("verdict", "why", "status", "suggestion"))


def decide_rows(rows: VerifiedColumn, policy: Policy) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """Action and reason of each row, by position; rows with the same facts are decided once."""
    is_malformed = (rows["verdict"] == Verdict.INVALID) | (rows.why == SEVERAL_ADDRESSES).fillna(value=False)
    advice = advise_rows(rows, (rows.status == Status.DONE) & is_malformed)
    flag = np.full(len(advice), None, dtype=object)  # the most serious one with an action of its own
    flags = [name for name in reversed(FLAGS_BY_SEVERITY) if f"flag:{name}" in policy._actions]
    if rows.is_short:  # it has no spamtraps; `verify` warns of those that it finds
        flags = [name for name in flags if name != "spamtrap" or name in rows]
    rows.require(flags)
    for name in flags:
        flag[rows[name].fillna(value=False).to_numpy(bool)] = name
    facts = {
        "status": rows.status,
        "verdict": rows["verdict"],
        "reason": rows.why,
        "flag": flag,
        "has_suggestion": rows["suggestion"].notna(),
        "change": rows.change,
        "has_advice": advice.notna(),
        "is_repeated": False,
        # Also as read from a CSV.
        "is_suppressed": rows["suppressed"].astype("string").str.lower() == "true" if "suppressed" in rows else False,
    }
    if rows.data.notes().get(DROPS_DUPLICATES) and "duplicate_of" in rows:
        facts["is_repeated"] = rows["duplicate_of"].notna()
    kinds, examples = group_rows(pd.DataFrame(facts))
    decided = [decide_row(each, policy) for each in examples]
    action = pd.Series(np.array([action for action, _ in decided], dtype=object)[kinds])
    why = pd.Series(np.array([words for _, words in decided], dtype=object)[kinds])
    at = np.flatnonzero(why == MISTYPED)
    why.iloc[at] = [f"{MISTYPED}did you mean {address}?" for address in rows["suggestion"].iloc[at]]
    at = np.flatnonzero(why == REMARKED)
    beside = [text_beside(str(cell)) for cell in rows.texts.iloc[at].fillna("")]
    why.iloc[at] = [REMARKED + shorten(words, LONGEST_REMARK) for words in beside]
    return action, why.mask(why == ADVISED, advice)


def group_rows(facts: pd.DataFrame) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """For each row the number of its kind, and a row of each kind, in which None is a missing value."""
    codes = np.zeros(len(facts), np.int64)
    for name in facts:
        own, distinct = pd.factorize(facts[name])
        codes = codes * (len(distinct) + 1) + own + 1  # a missing value has the code -1
    examples = facts[~pd.Series(codes).duplicated()].astype(object)
    return pd.factorize(codes)[0], list(examples.where(examples.notna(), None).itertuples())


def decide_row(row: Any, policy: Policy) -> tuple[str, str]:
    """Action and reason by the facts of `decide_rows`; to some reasons a text of the row is added."""
    if row.is_suppressed:
        return "drop", SUPPRESSED
    has_remark = REMARK in str(row.change)
    if row.is_repeated and has_remark:  # it is also about the row that stays
        return "review", REMARKED
    if row.is_repeated:
        return "drop", REPEATED
    if row.status != Status.DONE or row.verdict is None:
        return UNCHECKED, STATE_MEANING.get(row.status, row.status)
    if row.has_advice:
        return "review", ADVISED
    action = policy.action_of(row.verdict, row.reason)
    why = STATE_MEANING.get(row.verdict, row.verdict)
    if row.reason:  # one that only the service knows is shown as it is
        why = f"{row.verdict}: {WHY_MEANING.get(row.reason, row.reason)}"
    if row.flag and action != "drop":
        action, why = policy._actions[f"flag:{row.flag}"], FLAGGED + row.flag.replace("_", "-")
    if row.has_suggestion and policy.review_suggestions:
        action, why = "review", MISTYPED
    if has_remark and action != "drop":
        action, why = "review", REMARKED
    return action, why


def advise_rows(rows: VerifiedColumn, is_malformed: pd.Series[bool]) -> pd.Series[Any]:
    """What to do with each malformed cell that holds or suggests an address; not for a verdict on a cleaned address."""
    if "clean" in rows and "error_message" in rows:
        is_of_cleaned = (rows["clean"].notna() & rows["error_message"].notna()).to_numpy(bool)
        is_malformed = is_malformed & (~is_of_cleaned | rows.is_refused_as_written)
    at = np.flatnonzero(is_malformed.to_numpy(bool))
    stripped = pc.utf8_trim_whitespace(pa.array(rows.texts.iloc[at].fillna("")))
    at = at[~to_bools(observe_column(stripped).ok)]
    cells = rows.texts.iloc[at]
    advice = pd.Series([None] * len(is_malformed), dtype=object)
    advice.iloc[at] = cells.map({text: advise_kept(text) for text in cells.dropna().unique()})
    return advice


def advise_kept(text: str) -> str | None:
    """As `advise`; kept for texts of usual length, since the same cells come again in other pieces of a file."""
    return advise_short(text) if len(text) <= SHORT else advise(text)


advise_short = lru_cache(1 << 15)(advise)


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
    out: Frame, column: Hashable | None = None, *, policy: Policy | str = "balanced", prefix: str | None = None
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
    rows = VerifiedColumn(decided, column, prefix, ("action",))
    action = rows["action"].to_numpy()
    return Split(**{name: rows.data.take(np.flatnonzero(action == name)) for name in ACTIONS})
