"""The state of an audit and the actions on it, without a browser: list, tidy, check, decide.

An action changes what a person decided, how the result is looked at (`result`), or starts work. One
thread does three things: what was asked for, steps whose inputs have changed, and following the
run. After each change the listener is called, which asks `view` for what a page shows.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import ColumnError, InputError, MailVerdictError, SettingsError, TransportError
from ..frames.planning import resolver_notices
from ..frames.policy import POLICIES, Policy, find_policy
from ..model.paths import user_path
from ..model.words import REPAIR_LABELS, count_of
from ..runs.journal.recall import RecordedRun
from ..runs.options import parse_validation_type
from ..runs.plan import Plan
from ..table.columns import check_column
from ..table.importers import find_importer
from ..table.options import check_options
from .actions import LOOKS, PAGE_ACTIONS, PURPOSES, read_arguments
from .background import NO_MESSAGE, Background, Inputs, Step, Task
from .check import QUOTA_RESET, Check, is_short
from .choices import Choices, decide, read_decisions, read_waves, rows_of_domain
from .exports import save_for_service
from .listing import Listing, Rows
from .mailing import SAMPLE, check_sample, plan_wave, read_outcomes
from .result import Result, depth_of_run, file_name, list_runs, open_run, place_of_run
from .session import (
    AuditSession,
    Given,
    KeptAudit,
    Sessions,
    Written,
    id_of,
    keep,
    open_session,
    to_keep,
)
from .source import Source, readable
from .steps import (
    SAFE,
    Planned,
    Prepared,
    ResultInfo,
    Suppression,
    plan_check,
    prepare,
    read_suppression,
)
from .wording import (
    DECISION_LABELS,
    DEPTHS,
    SWITCH_LABELS,
    duration_words,
    mailed_words,
    plain_notice,
    policy_name,
)

SECTIONS = ("list", "tidy", "check", "decide", "page")
NOTHING_LOADED = "load a table and choose its column first"
# Of a service that does not answer when it is asked for the quota.
WHEN_AWAY = (
    "The cost is not known until the service answers. Check its address and your connection, then "
    "try again."
)
OF_EARLIER = (
    "Words beside an address, other columns and the suppression list are in your file,"
    " and not in a run."
)
NO_RUNS = "No earlier runs are recorded. Checks of mailboxes, and checks by a service, are."
# Where no column was chosen or found: whether several may be meant.
WHICH_COLUMN = {
    True: "Two columns may hold the addresses of these people: which one is meant?",
    False: "No column looks like e-mail addresses: choose the one that holds them.",
}
MAX_PAST = 50  # choices that can be undone; each may hold a decision about every row


class AuditState:
    """Everything that an audit page shows, and what can be done on it."""

    def __init__(
        self,
        settings: dict[str, Any],
        validation_type: str = "mx",
        policy: Policy | str = "balanced",
        *,
        folder: str | Path | None = None,
        allow_paths: bool = True,
        sessions: Sessions | None = None,
        wanted: Mapping[str, Any] = MappingProxyType({}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_options("Audit", {"validation_type": validation_type, **settings})
        first = find_policy(policy)
        depth = parse_validation_type(validation_type)
        self.policies = {**POLICIES, first.name: first}
        self.choices = Choices(depth=str(depth), policy=first.name)
        self.allow_paths = allow_paths
        self.parent = folder
        self.sessions = sessions
        self.wanted = wanted  # choices that also hold for an audit that was kept with others
        self.on_file: Callable[[str, Path, str], None] = lambda name, path, by: None
        self.work = Background(SECTIONS, self.next_task)
        self.steps = self.make_steps()
        self.lock = self.work.lock
        self.check = Check(settings, self.work, self.journal_folder, clock)
        self.given: Given | None = None  # what the list was read from, and how
        self.sheets: tuple[str, ...] = ()  # of the workbook that was read last
        # All that were given, since a choice of one can be undone.
        self.suppressions: dict[str, Suppression] = {}
        self.runs: list[RecordedRun] = []
        self.kept: list[KeptAudit] = [] if sessions is None else sessions.all()
        self.session: AuditSession | None = None
        self.written = Written()
        self.is_sampling = False
        self.asked_by = ""  # the page whose action was the last one
        self.forget()

    def forget(self) -> None:
        """Forget the list, and what was found in it.

        How deep to check, the policy and the suppression list stay.
        """
        self.release_session()
        self.source: Source | None = None
        self.guess = ""
        kept = self.choices
        self.choices = Choices(depth=kept.depth, policy=kept.policy, suppression=kept.suppression)
        # The choices before each one that can be undone or done again, and what that one is called.
        self.past: list[tuple[Choices, str]] = []
        self.future: list[tuple[Choices, str]] = []
        self.is_read_again = False  # the list was read in another way just now
        for step in self.steps.values():
            step.forget()
        # Whether earlier answers can be used, unless the next run asks again.
        self.has_known = False
        self.check.forget()
        # What to expect of a check with these choices.
        self.sample: tuple[Choices, dict[str, Any]] | None = None
        self.result: Result | None = None
        self.work.messages["decide"] = NO_MESSAGE

    # --- from the page ----------------------------------------------------------------------------

    def act(self, action: str, /, tab: str = "", **arguments: Any) -> None:
        """Do what a page asks for; an error is shown in the section that the action belongs to."""
        section, types = PAGE_ACTIONS[action]
        with self.work.guarded(section):
            checked = read_arguments(arguments, types)
            self.asked_by = tab
            if action in LOOKS:
                self.look(action, **checked)
            else:
                getattr(self, action)(**checked)

    def use_file(self, path: Path, name: str, purpose: str) -> None:
        """Use a file that was uploaded, for the purpose that the browser gave with it."""
        section, use = PURPOSES.get(purpose, ("list", "refuse_file"))
        with self.work.guarded(section):
            getattr(self, use)(path, name)

    def refuse_file(self, path: Path, name: str) -> None:
        """Remove a file without a known purpose: it must not replace the list."""
        path.unlink(missing_ok=True)
        raise SettingsError(f"{name} came without a known purpose; choose it again")

    def require_idle(self) -> None:
        """Raise an error during a run: what it verifies must not be replaced."""
        if self.check.is_running:
            raise SettingsError("a check is running; pause it first")
        if self.is_sampling:
            raise SettingsError("a sample is being checked; wait until it is done")

    def close(self) -> None:
        """Stop the run, keep the audit, and remove temporary files."""
        if self.check.run is not None:
            self.check.run.cancel()
        with self.work.guarded("page"):
            keep(self)
        self.release_session()
        if "folder" in self.__dict__:
            shutil.rmtree(self.__dict__.pop("folder"), ignore_errors=True)

    @cached_property
    def folder(self) -> Path:
        """A private folder for files on their way, which is removed at the end."""
        folder = Path(tempfile.mkdtemp(prefix="mailverdict-", dir=self.parent))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    def journal_folder(self) -> Path:
        """Where the journal of this audit is."""
        if self.session is not None:
            return self.session.folder
        return self.folder

    # --- the steps --------------------------------------------------------------------------------

    def tidy_inputs(self) -> Inputs | None:
        """What the list as it is verified is made from."""
        if self.source is None or self.choices.column is None:
            return None
        return self.source, self.choices.for_tidy()

    def check_inputs(self) -> Inputs | None:
        """What the cost of the check is made from."""
        prepared = self.prepared
        if prepared is None:
            return None
        return self.tidy_inputs(), self.choices.for_check(), self.check.is_refreshing

    def result_inputs(self) -> Inputs | None:
        """What the origins of invalid addresses are found in."""
        if self.result is None:
            return None
        return (self.result,)

    def keep_inputs(self) -> Inputs | None:
        """What is kept."""
        if self.session is None or self.source is None:
            return None
        return to_keep(self)

    def make_steps(self) -> dict[str, Step]:
        """What follows from the choices, each after those that it needs."""
        return {
            "tidy": Step(self.tidy_inputs, self.tidy),
            "check": Step(self.check_inputs, lambda *inputs: self.find_cost()),
            "notices": Step(self.check_inputs, lambda *inputs: self.find_notices()),
            "origins": Step(self.result_inputs, Result.find_origins),
            "keep": Step(self.keep_inputs, lambda *inputs: keep(self)),
        }

    def next_task(self) -> Task | None:
        """What is to be done besides what was asked for.

        It is a step with other inputs, or following the run.
        """
        for name, step in self.steps.items():
            inputs = step.due()
            if inputs is not None:
                return partial(self.make, name, inputs)
        return self.follow_check if self.check.is_running else None

    def make(self, name: str, inputs: Inputs) -> None:
        """Make a step.

        An error becomes a message, and it is not tried again with the same inputs.
        """
        if name in BUSY:
            self.work.busy[name] = BUSY[name]
            self.work.changed()
        is_shown = name != "keep"
        try:
            self.steps[name].run(inputs)
        except Exception as exc:  # noqa: BLE001 - shown on the page
            section = SECTION_OF.get(name, name)
            what_to_do = ""
            if isinstance(exc, ColumnError):
                section = "list"
            elif isinstance(exc, TransportError):
                what_to_do = WHEN_AWAY
            self.work.say_error(section, exc, what_to_do)
            is_shown = True
        if name in BUSY:
            self.work.busy[name] = ""
        if is_shown:
            self.work.changed()

    def tidy(self, source: Source, choices: Choices) -> Prepared:
        """The list as it is verified."""
        return prepare(source, choices, self.suppressions.get(choices.suppression), self.prepared)

    @property
    def prepared(self) -> Prepared | None:
        """The list as it is verified; None for another column.

        The choices are those of now, or of a moment ago.
        """
        inputs, value = self.steps["tidy"].made
        if inputs is None:
            return None
        source, choices = inputs
        if source is not self.source or choices.column != self.choices.column:
            return None
        prepared: Prepared | None = value
        return prepared

    def prepare_now(self) -> Prepared:
        """The list as it is verified, with the choices as they are."""
        inputs = self.tidy_inputs()
        if inputs is None:
            raise SettingsError(NOTHING_LOADED)
        step = self.steps["tidy"]
        if step.due() is not None or self.prepared is None:
            step.run(inputs)
        prepared = self.prepared
        assert prepared is not None
        return prepared

    def find_cost(self) -> Planned:
        """What the check costs."""
        prepared = self.prepared
        assert prepared is not None
        planned = plan_check(prepared, self.check.options(self.choices.depth))
        self.has_known = planned.plan.known > 0 or self.check.is_refreshing
        return planned

    def find_notices(self) -> list[str]:
        """What is to be known about this machine's resolver before the check."""
        options = self.check.options(self.choices.depth)
        plan = self.plan
        if plan is None or plan.unique <= plan.known or options.backend.source != "local":
            return []
        return [plain_notice(notice) for notice in resolver_notices(options)]

    def notices(self) -> list[str]:
        """What is to be known before the check."""
        return self.steps["notices"].value or []

    @property
    def planned(self) -> Planned | None:
        """What the check costs, with the choices as they are; None while that is not known."""
        planned: Planned | None = self.steps["check"].current
        return planned

    @property
    def plan(self) -> Plan | None:
        """The estimate of the check, with the choices as they are; None while that is not known."""
        planned = self.planned
        if planned is None:
            return None
        return planned.plan

    # --- choices ----------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        return self.policies[self.choices.policy]

    @property
    def suppression(self) -> Suppression | None:
        """The suppression list that was chosen."""
        return self.suppressions.get(self.choices.suppression)

    def choose(self, what: str, **changed: Any) -> None:
        """Decide something; it can be undone, and `what` is how it is called then."""
        with self.lock:
            before = self.choices
            new = replace(before, **changed)
            if new != before:
                self.use_choices(new)
                self.past = [*self.past[-MAX_PAST:], (before, what)]
                self.future = []
        self.work.wake()

    def undo(self) -> None:
        """Take the last choice back."""
        self.step_to(self.past, self.future, "Undone")

    def undo_several(self, count: int) -> None:
        """Take some choices back, the last one first."""
        for _ in range(min(count, len(self.past))):
            self.undo()

    def redo(self) -> None:
        """Choose again what was taken back."""
        self.step_to(self.future, self.past, "Done again")

    def step_to(
        self, source: list[tuple[Choices, str]], target: list[tuple[Choices, str]], said: str
    ) -> None:
        """Use the last choices of a list; those before go to another one."""
        with self.lock:
            if source:
                before = self.choices
                choices, what = source[-1]
                self.use_choices(choices)
                target.append((before, what))
                source.pop()
                self.work.spoken = f"{said}: {what}."
        self.work.wake()

    def use_choices(self, new: Choices) -> None:
        """Use other choices; those that a check depends on not during a run."""
        before = self.choices
        if new.for_check() != before.for_check():
            self.require_idle()
            self.check.asked_since = None
            self.work.say("check", "")
        if new.column != before.column:
            self.guess, self.check.is_refreshing = "", False
            self.work.say("list", "")
        self.choices = new
        result = self.result
        if result is None:
            return
        is_decided = (new.decided, new.accepted) != (before.decided, before.accepted)
        has_policy = new.policy != before.policy
        if is_decided:
            result.listing.set_decided(new)
        if new.waved != before.waved:
            result.listing.set_waves(new.waved)
        if has_policy:
            result.listing.set_policy(self.policy)
        if is_decided or has_policy:
            result.find(result.window[0])

    # --- 1 list -----------------------------------------------------------------------------------

    def load(self, data: Any, column: Hashable | None = None) -> None:
        """Load a frame, or a file by its path."""
        given = Given(data=data)
        if isinstance(data, str | Path):
            given = Given(path=Path(data))
        try:
            self.set_source(self.read(given), given, column)
        finally:
            self.work.wake()

    def read(self, given: Given) -> Source:
        """Read a list; where that fails, the list before it stays."""
        self.require_idle()
        try:
            return given.read()
        except MailVerdictError as exc:
            if self.source is None:  # it can be read in another way
                self.given = given
                raise
            raise InputError(f"{exc}. {self.source.name} stays loaded") from exc

    def load_file(
        self, path: str | Path, name: str | None = None, column: Hashable | None = None
    ) -> None:
        """Load a file in the background; `name` is what a browser calls it."""
        given = Given(path=user_path(path), name=name)
        shown = readable((name or str(path)).rpartition("/")[2])
        self.load_given(given, column, f"Reading {shown}…")

    def load_path(self, path: str) -> None:
        """Load a file of the kernel's machine, if that is allowed."""
        if not self.allow_paths:
            raise SettingsError(
                "files cannot be opened by their path here; drop the file on the page"
            )
        if path.strip():
            self.load_file(path.strip())

    def load_pasted(self, text: str) -> None:
        self.load_given(Given(text=text), None, "Reading the pasted list…")

    def read_again(self, encoding: str, has_header: str, sheet: str) -> None:
        """Read the same file with another encoding, header line or sheet."""
        self.require_idle()
        if self.given is None:
            return
        given = replace(self.given, encoding=encoding, has_header=has_header, sheet=sheet)

        def work() -> None:
            source = self.read(given)
            with self.lock:
                session, self.session = self.session, None  # it stays that of the file
                try:
                    self.set_source(source, given)
                    self.is_read_again = True
                finally:
                    self.session = session

        self.work.say("list", "")
        self.work.add("list", work, "Reading the file again…")

    def load_given(self, given: Given, column: Hashable | None, busy: str) -> None:
        """Load a list in the background; one that was given before comes back as it was left."""
        self.require_idle()
        self.work.say("list", "")

        def work() -> None:
            if self.sessions is None:
                self.set_source(self.read(given), given, column)
                return
            session = self.sessions.session(given.id())
            if session.exists() and open_session(self, session, column):
                return
            self.set_source(self.read(given), given, column)
            session.claim()
            temporary = self.__dict__.get("folder")
            self.given = given.move(session.folder, temporary)
            self.session = session

        self.work.add("list", work, busy)

    def set_source(
        self, source: Source, given: Given | None, column: Hashable | None = None
    ) -> None:
        """Use a list, with its column chosen or guessed; `given` is what it was read from."""
        names: list[Any] = list(source.frame.columns)
        if column is not None:
            check_column(column, names)
        self.require_idle()
        with self.lock:
            self.forget()
            self.source = source
            self.given = given
            self.sheets = source.sheets
            at = None
            if column is not None:
                at = names.index(column)
            elif source.choice.chosen is not None:
                at = source.position(source.choice.name())
                self.guess = source.choice.describe()
            self.work.say("list", "")
            if at is None:
                self.work.say("list", WHICH_COLUMN[source.choice.is_ambiguous], "warned")
                return
            # A file that was downloaded here before has what was decided.
            decided, accepted = read_decisions(source.frame, at)
            waved = read_waves(source.frame, at)
            self.choices = replace(
                self.choices, column=at, decided=decided, accepted=accepted, waved=waved
            )
            rows = count_of(len(source.frame), "row")
            self.work.spoken = f"{source.name} is loaded: {rows}, column {source.labels[at]}."

    def choose_column(self, at: int) -> None:
        """Choose the column that holds the addresses, by its position."""
        self.require_idle()
        if self.source is None or not 0 <= at < len(self.source.labels):
            raise SettingsError(NOTHING_LOADED)
        if at != self.choices.column:
            self.choose(
                f"column {self.source.labels[at]}",
                column=at,
                off=frozenset(),
                split=True,
                merge=True,
                refused=frozenset(),
                suppress=True,
                accepted=frozenset(),
            )

    def list_runs(self) -> None:
        """Look for runs that the journal remembers."""
        journal = self.check.journal_path()

        def work() -> None:
            self.runs = []
            if journal is not None:
                self.runs = list_runs(journal)
            if not self.runs:
                self.work.say("list", NO_RUNS)

        self.work.add("list", work, "Looking for earlier runs…")

    def open_earlier(self, number: int) -> None:
        """Show the result of an earlier run; nothing is asked."""
        self.require_idle()
        journal = self.check.journal_path()
        if journal is None or not 0 <= number < len(self.runs):
            raise SettingsError("this run is not listed; list the runs again")
        recorded = self.runs[number]

        def work() -> None:
            rows = open_run(journal, recorded)
            self.set_source(Source("earlier run", rows.frame, (OF_EARLIER,)), None, "email")
            with self.lock:
                self.choices = replace(self.choices, depth=depth_of_run(recorded))
                info = ResultInfo(
                    name="Earlier run",
                    column="email",
                    depth=self.choices.depth,
                    backend=place_of_run(recorded),
                    when=datetime.fromtimestamp(recorded.last, UTC),
                    made_from=self.choices.for_check(),
                    is_complete=True,
                )
                self.result = Result(Listing(rows, self.policy, self.choices), info)

        self.work.add("list", work, "Opening the run…")

    # --- audits that are kept ---------------------------------------------------------------------

    def open_kept(self, id: str) -> None:  # noqa: A002 - as the page calls it
        self.require_idle()
        session = self.require_sessions().session(id)

        def work() -> None:
            if not open_session(self, session):
                raise InputError("this audit cannot be opened any more; give its list again")

        self.work.add("list", work, "Opening the audit…")

    def delete_kept(self, id: str) -> None:  # noqa: A002 - as the page calls it
        sessions = self.require_sessions()
        if self.session is not None and self.session.id == id:
            self.require_idle()
            with self.lock:
                self.session = self.given = None
                self.forget()
        sessions.remove(id)
        self.kept = sessions.all()
        self.work.changed()

    def require_sessions(self) -> Sessions:
        if self.sessions is None:
            raise SettingsError("nothing is kept here")
        return self.sessions

    def release_session(self) -> None:
        """Let the audit go, so that another process can open it."""
        if self.session is not None:
            self.session.release()
        self.session = None
        self.written = Written()
        if self.sessions is not None:
            self.kept = self.sessions.all()

    # --- 2 tidy -----------------------------------------------------------------------------------

    def set_repair(self, name: str, is_on: bool) -> None:  # noqa: FBT001 - a switch of the page
        """Turn a repair on or off; also `split`, `merge` and `suppress`.

        ``refused 3`` is a column that says no, by its position.
        """
        self.require_idle()
        word = "on" if is_on else "off"
        if name in SWITCH_LABELS:
            self.choose(f"{SWITCH_LABELS[name]} {word}", **{name: is_on})
            return
        if name in SAFE:
            off = self.choices.off - {name}
            if not is_on:
                off |= {name}
            self.choose(f"{REPAIR_LABELS[name]} {word}", off=off)
            return
        refusals = {} if self.source is None else self.source.refusals
        for at, refusal in refusals.items():
            if refused_name(at) != name:
                continue
            refused = self.choices.refused - {at}
            what = "not taken off"
            if is_on:
                refused |= {at}
                what = "taken off"
            self.choose(f"{refusal.label} {what}", refused=refused)
            return
        names = ", ".join((*SAFE, *SWITCH_LABELS))
        raise SettingsError(f"{name!r} is not a repair; there are {names}")

    def accept_typo(self, number: int) -> None:
        """Accept the likely typos of a group on the page.

        Or no longer, if all of them are accepted.
        """
        self.require_idle()
        typos = self.require_prepared().tidy.typos
        if not 0 <= number < len(typos):
            raise SettingsError("this typo is not listed any more; choose one that is shown")
        typo = typos[number]
        accepted = self.choices.accepted
        if typo.pairs <= accepted:
            self.work.spoken = f"{typo.typed} is as it was written."
            self.choose(f"{typo.typed} as it was written", accepted=accepted - typo.pairs)
            return
        self.work.spoken = f"{count_of(typo.rows, 'row')} corrected."
        self.choose(f"{typo.meant} for {typo.typed}", accepted=accepted | typo.pairs)

    def accept_all(self) -> None:
        """Accept all likely typos."""
        self.require_idle()
        accepted = self.choices.accepted
        rows = 0
        for typo in self.require_prepared().tidy.typos:
            accepted |= typo.pairs
            rows += typo.rows
        self.work.spoken = f"{count_of(rows, 'row')} corrected."
        self.choose("all likely typos corrected", accepted=accepted)

    def require_prepared(self) -> Prepared:
        prepared = self.prepared
        if prepared is None:
            raise SettingsError(NOTHING_LOADED)
        return prepared

    def suppress_pasted(self, text: str) -> None:
        if not text.strip():
            raise InputError("nothing was pasted; paste addresses or domains, one per line")
        path = Path(self.folder, f"pasted-{id_of(text.encode())}.txt")
        path.touch(0o600)
        path.write_text(text, encoding="utf-8")
        self.suppress_file(path, "pasted suppression list")

    def suppress_file(self, path: Path, name: str) -> None:
        """Use a suppression list."""
        self.require_idle()
        shown = readable(name)

        def work() -> None:
            suppression = read_suppression(path, shown)
            identity = id_of(path)[:16]
            self.suppressions[identity] = suppression
            self.work.say("tidy", "")
            self.choose(f"suppression list {shown}", suppression=identity, suppress=True)

        self.work.add("tidy", work, f"Reading {shown}…")

    def drop_suppression(self) -> None:
        self.choose("no suppression list", suppression="")

    # --- 3 check ----------------------------------------------------------------------------------

    def set_depth(self, depth: str) -> None:
        self.require_idle()
        if depth not in DEPTHS:
            raise SettingsError(f"{depth!r} is not a check; there are {', '.join(DEPTHS)}")
        self.choose(f"check {DEPTHS[depth][0]}", depth=depth)

    def set_refresh(self, is_on: bool) -> None:  # noqa: FBT001 - a switch of the page
        """Ask again about addresses without a clear answer in the next run."""
        self.require_idle()
        self.check.refresh(is_on=is_on)
        self.work.wake()

    def make_plan_again(self) -> None:
        """Work out the cost again: the quota may be another, the service may be back."""
        self.work.say("check", "")
        self.forget_plan()
        self.work.wake()

    def forget_plan(self) -> None:
        """Have the cost worked out again, and this machine's resolver looked at."""
        for name in ("check", "notices"):
            self.steps[name].forget()

    def can_resume(self) -> bool:
        """Whether the next run can go on where this one stopped."""
        return self.check.can_resume(self.choices.depth)

    def is_out_of_quota(self) -> bool:
        """Whether nothing can be checked today."""
        return self.plan is not None and is_short(self.plan)

    def is_result_current(self) -> bool:
        """Whether the result is that of the choices as they are now.

        It names suggestions that are to be checked.
        """
        if self.result is None:
            return False
        return self.result.info.accepted_by(self.choices, self.check.label())

    def check_sample(self) -> None:
        """Check some addresses first, and say what to expect of the whole list."""
        self.require_idle()
        prepared = self.prepare_now()
        choices = self.choices.for_check()
        self.work.say("check", "")

        def work() -> None:
            try:
                sample = check_sample(prepared, self.check.options(choices.depth))
                self.sample = (choices, sample)
                self.work.spoken = sample["text"]
            finally:
                self.is_sampling = False
                self.forget_plan()  # what is known now costs nothing

        self.is_sampling = True
        self.work.add("check", work, f"Checking {SAMPLE} addresses…")

    def verify(self) -> None:
        """Start the check, or go on where the last one stopped."""
        with self.lock:
            if not self.check.is_running:
                self.require_idle()
                self.check.is_unseen = False
                self.start_check()
        self.work.wake()

    check_decided = verify  # the journal answers for all that is known

    def start_check(self, limit: int | None = None) -> None:
        """Start a run, which submits at most `limit` addresses."""
        self.is_read_again = False
        prepared, choices = self.prepare_now(), self.choices
        assert self.source is not None
        assert choices.column is not None
        info = ResultInfo(
            name=self.source.name,
            column=self.source.labels[choices.column],
            depth=choices.depth,
            backend=self.check.label(),
            when=datetime.now(UTC),
            made_from=choices.for_check(),
            is_complete=False,
        )
        self.check.start(prepared, info, limit)

    def pause(self) -> None:
        """Stop the check; what is checked so far is kept."""
        self.check.pause()

    def ask_again(self) -> None:
        """Check the rows of the result without a clear answer again.

        The journal answers for the others.
        """
        self.require_idle()
        listing = self.require_result().listing
        if not listing.count_unclear() or not self.can_resume():
            raise SettingsError("there is nothing to ask again; verify the list again")
        self.check.refresh(is_on=True)
        self.work.say("decide", "")

        def work() -> None:
            self.prepare_now()
            inputs = self.check_inputs()
            if inputs is not None:
                self.make("check", inputs)
            if self.plan is not None and not self.is_out_of_quota():
                self.verify()
                return
            text, kind = self.work.messages["check"]
            if self.plan is not None:
                text = f"Today's quota is used up. Press Ask again {QUOTA_RESET}."
                kind = "warned"
            self.work.say("decide", text, kind)
            self.check.refresh(is_on=False)

        self.work.add("decide", work, "Asking again…")

    def follow_check(self) -> None:
        """Show how far the check is; at its end, put the result together, and say how it ended."""
        check = self.check
        if not check.follow():
            return
        self.work.busy["decide"] = "Putting the result together…"
        self.work.changed()
        with self.work.guarded("check"):
            listing = Listing(check.take_rows(), self.policy, self.choices)
            self.show_result(listing)
            with self.lock:
                check.say_end()
                if self.result is not None and self.result.info.is_complete:
                    people = count_of(listing.counts.people, "person", "people")
                    words = mailed_words(self.result.info.depth)
                    text, _ = self.work.messages["check"]
                    self.work.spoken = f"Done. {people} {words}. {text}"
        with self.lock:
            check.end()
            self.work.busy["decide"] = ""
            if check.state != "failed":  # the next run costs something else
                self.forget_plan()
            is_paused = check.is_unseen and check.state == "cancelled"
            if is_paused and check.progress is not None and check.progress.submitted:
                with self.work.guarded("check"):
                    self.start_check(limit=0)  # collects the answers to what was sent
        self.work.changed()

    # --- 4 decide ---------------------------------------------------------------------------------

    def show_result(self, listing: Listing) -> None:
        """Show the result of the check.

        As the one before it was looked at, if that is of the same column.
        """
        before = self.result
        info = self.check.info
        run = self.check.run
        assert info is not None
        assert run is not None
        state = run.progress.state
        if state == "failed" and not listing.counts.people:
            return  # nobody was found yet: zeros would look like a result
        looks = None
        if before is not None and before.info.made_from.column == info.made_from.column:
            looks = before.looks()
        info = replace(info, when=datetime.now(UTC), is_complete=state == "done")
        self.result = Result(listing, info, looks)

    def require_result(self) -> Result:
        if self.result is None:
            raise SettingsError("there is no result yet; verify the list first")
        return self.result

    def look(self, action: str, **arguments: Any) -> None:
        """Look at the result in another way."""
        with self.lock:
            said = getattr(self.require_result(), action)(**arguments)
            if said:
                self.work.spoken = said
        self.work.wake("decide")

    def set_policy(self, name: str) -> None:
        if name not in self.policies:
            raise SettingsError(f"{name!r} is not a policy; there are {', '.join(self.policies)}")
        self.choose(f"policy {policy_name(name)}", policy=name)

    def decide(self, rows: Sequence[int] | Rows, what: str, about: str = "") -> None:
        """Decide about the people of some rows, by their positions.

        `about` is what they are called.
        """
        listing = self.require_result().listing
        choices = decide(listing, rows, what, self.choices)
        self.work.spoken = "Decided."
        if not about and len(rows) == 1:
            about = listing.address_of(int(rows[0]))
        if not about:
            about = count_of(len(rows), "row")
        words = DECISION_LABELS.get(what, "As the policy says")
        self.choose(f"{words}, {about}", decided=choices.decided, accepted=choices.accepted)

    def decide_shown(self, what: str) -> None:
        self.decide(self.require_result().found, what)

    def decide_domain(self, domain: str, what: str) -> None:
        """Decide about the people at a domain."""
        rows = rows_of_domain(self.require_result().listing, domain)
        self.decide(rows, what, readable(domain))

    def download(self, which: str, kind: str) -> None:
        """Write rows, or a report, to a file for the browser; see `Result.rows_of`."""
        result = self.require_result()
        tab = self.asked_by
        rows = result.rows_of(which, kind)
        name = file_name(self.stem(), which, kind)

        def work() -> None:
            service = self.check.service()
            kept = kept_words(self)
            self.write(name, lambda path: result.save(which, rows, path, service, kept), tab)

        self.work.add("decide", work, f"Writing {name}…")

    def download_for(self, service: str, which: str) -> None:
        """Write the send list for a service's importer, or whom to take off there (``drop``)."""
        listing = self.require_result().listing
        tab = self.asked_by
        importer = find_importer(service)
        if which not in ("send", "drop"):
            raise SettingsError(f"{which!r} is not a file for {importer.label}")
        ending = importer.name if which == "send" else f"{importer.name}-remove"
        name = file_name(self.stem(), ending, "csv")

        def work() -> None:
            save = partial(save_for_service, listing, service, which)
            self.write(name, save, tab, "done")

        self.work.add("decide", work, f"Writing {name}…")

    def stem(self) -> str:
        """The beginning of the names of files."""
        if self.source is None:
            return "emails"
        return self.source.stem()

    def write(
        self, name: str, save: Callable[[Path], list[str]], tab: str, kind: str = "warned"
    ) -> None:
        """Write a file for the page that asked for it.

        What to know about it is a message of a kind.
        """
        path = Path(tempfile.mkdtemp(dir=self.folder), name)
        remarks = save(path)
        if not remarks:
            kind = "plain"
        self.work.say("decide", " ".join(remarks), kind)
        path.chmod(0o600)
        self.on_file(name, path, tab)
        self.work.spoken = f"{name} is being downloaded."

    def compare(self, path: Path, name: str) -> None:
        """Compare the result with that of an earlier audit, from a file."""
        result = self.require_result()

        def work() -> None:
            said = result.compare(path, name)
            self.work.say("decide", "")
            self.work.spoken = said

        self.work.add("decide", work, f"Comparing with {readable(name)}…")

    def read_bounces(self, path: Path, name: str) -> None:
        """Compare the result with what became of the mails, from the export of a sender."""
        result = self.require_result()

        def work() -> None:
            bounced = read_outcomes(path, name, result.listing, result.bounced)
            result.bounced = bounced
            self.work.say("decide", "")
            self.work.spoken = bounced.table["text"]

        self.work.add("decide", work, f"Reading {readable(name)}…")

    def remove_bounced(self) -> None:
        """Take people who do not exist off the list."""
        bounced = self.require_result().bounced
        if bounced is not None:
            self.decide(bounced.gone, "remove", "mailboxes that do not exist")

    def set_complete(self, *, is_on: bool) -> None:
        """Say whether all bounces have come."""
        result = self.require_result()
        if result.bounced is not None:
            result.bounced = replace(result.bounced, is_complete=is_on)
        self.work.changed("decide")

    def forget_bounces(self) -> None:
        """Take back the exports that were given."""
        self.require_result().bounced = None
        self.work.changed("decide")

    def make_pilot(self, kind: str) -> None:
        """Make a wave of a few rows that teach the most."""
        self.make_wave(kind, pilot=True)

    def resume_waves(self, kind: str) -> None:
        """Make a wave although the last one was blocked or complained about."""
        self.make_wave(kind, resume=True)

    def make_wave(self, kind: str, *, pilot: bool = False, resume: bool = False) -> None:
        """Choose the rows to mail now, and write them to a file.

        It is noted that their people are mailed.
        """
        self.require_idle()
        result = self.require_result()
        tab = self.asked_by
        before = self.choices.waved
        result.rows_of("send", kind)

        def work() -> None:
            wave = plan_wave(result.listing, result.bounced, pilot=pilot, resume=resume)
            result.wave = wave
            self.work.spoken = wave.text
            if not len(wave.rows):
                return
            keys = result.listing.keys_of(wave.rows)
            waved = before.put(keys, wave.number, {wave.number: wave.planned_at})
            self.choose(f"wave {wave.number}", waved=waved)
            self.set_complete(is_on=False)  # its own bounces are still to come
            name = file_name(self.stem(), f"wave-{wave.number}", kind)
            self.write(name, lambda path: result.save("send", wave.rows, path, ""), tab)

        self.work.add("decide", work, "Choosing the rows of the next wave…")


def kept_words(state: AuditState) -> str:
    """How long clear answers are kept; empty if they are not."""
    options = state.check.options(state.choices.depth)
    if options.journal is None:
        return ""
    if state.session is None and state.folder in Path(options.journal).parents:
        return "until this kernel ends"
    return f"for {duration_words(options.settings.max_age)}"


def refused_name(at: int) -> str:
    """What the page calls the switch of a column that says no, by its position."""
    return f"refused {at}"


# What is shown while a step is made.
BUSY = {
    "tidy": "Looking through the list…",
    "check": "Working out the cost…",
}
# Where an error of a step is shown, if not in its own section.
SECTION_OF = {
    "notices": "check",
    "origins": "decide",
    "keep": "list",
}
