"""Tables that sending services export: which column means what, and what a service calls each outcome.

`LAYOUTS` is the table of known exports, each with the source of its column names. `WORDS` are what services call an
outcome. The word *hard* of a service counts unless the reply beside it says that the sender was refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ..checks.bounces.message import date_of
from ..checks.bounces.outcome import Judgement, Outcome, judge
from ..errors import ColumnError, SettingsError
from ..model.words import Reason
from ..table.columns import did_you_mean, listed

FIELDS = ("address", "at", "outcome", "status", "diagnostic", "reason")
JUDGE = "judge"  # the word does not say why: the reply decides
SKIP = "skip"  # not about the delivery


@dataclass(frozen=True)
class ExportLayout:
    """One export of a service: the column of each of our fields."""

    name: str
    columns: Mapping[str, str]  # ours -> theirs
    source: str  # where the names of the columns are documented
    words: Mapping[str, str] = field(default_factory=dict)  # what differs from `WORDS`
    without_word: str = JUDGE  # what every row means if there is no column for the outcome
    is_final: bool = False  # outcomes are ours already

    def fits(self, names: Sequence[str]) -> bool:
        """Whether a table has all columns, in any case of letters."""
        return {theirs.lower() for theirs in self.columns.values()} <= {name.lower() for name in names}


# The first layout that fits a table is used; those with more columns stand first.
LAYOUTS = (
    ExportLayout(
        "mailverdict",
        {name: name for name in FIELDS},
        "mailverdict.read_bounces, as written to a file",
        is_final=True,
    ),
    ExportLayout(
        "SendGrid events",
        {"address": "email", "at": "timestamp", "outcome": "event", "status": "status", "diagnostic": "reason"},
        "twilio.com/docs/sendgrid/for-developers/tracking-events/event, read 2026-11",
    ),
    ExportLayout(
        "SendGrid bounces or blocks",
        {"address": "email", "at": "created", "status": "status", "diagnostic": "reason"},
        "twilio.com/docs/sendgrid/api-reference/bounces-api, read 2026-11",
    ),
    ExportLayout(
        "Mailgun bounces",
        {"address": "address", "at": "created_at", "status": "code", "diagnostic": "error"},
        "documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/bounces, read 2026-11",
        without_word=Outcome.HARD,  # "permanent recipient mailbox errors"
    ),
    ExportLayout(
        "Postmark bounces",
        {"address": "Email", "at": "BouncedAt", "outcome": "Type", "diagnostic": "Details"},
        "the Bounce type of Postmark's client library postmark 4.0, read 2026-11",
    ),
    ExportLayout(
        "Amazon SES suppression list",
        {"address": "EmailAddress", "at": "LastUpdateTime", "outcome": "Reason"},
        "docs.aws.amazon.com/ses/latest/APIReference-V2/API_SuppressedDestinationSummary.html, read 2026-11",
        words={"bounce": Outcome.HARD},  # "results in a hard bounce"
    ),
    ExportLayout(
        "Salesforce Marketing Cloud bounces",
        {
            "address": "EmailAddress",
            "at": "EventDate",
            "outcome": "BounceCategory",
            "status": "SMTPCode",
            "diagnostic": "BounceReason",
        },
        "help.salesforce.com, mktg.mc_as_bounces, read 2026-11",
    ),
    ExportLayout(
        "Brevo events",
        {"address": "email", "at": "date", "outcome": "event", "diagnostic": "reason"},
        "developers.brevo.com/docs/bulk-fetch-all-your-transactional-activity, read 2026-11",
    ),
)

# Words as services write them, without blanks, hyphens and case.
WORDS: dict[str, str] = {
    **dict.fromkeys(("hard", "hardbounce", "hardbounces", "hardbounced", "permanent"), Outcome.HARD),
    **dict.fromkeys(("invalidemail", "bademailaddress"), Outcome.HARD),
    **dict.fromkeys(("soft", "softbounce", "softbounces", "softbounced", "transient", "temporary"), Outcome.SOFT),
    **dict.fromkeys(("deferred", "deferral", "delayed", "dnserror", "mailboxfull"), Outcome.SOFT),
    **dict.fromkeys(("block", "blocked", "blockbounce", "spamnotification"), Outcome.BLOCKED),
    **dict.fromkeys(("virusnotification", "dmarcpolicy"), Outcome.BLOCKED),
    **dict.fromkeys(("complaint", "complained", "spam", "spamreport", "spamcomplaint"), Outcome.COMPLAINT),
    **dict.fromkeys(("markedasspam", "abuse"), Outcome.COMPLAINT),
    **dict.fromkeys(("delivered", "delivery"), Outcome.DELIVERED),
    **dict.fromkeys(("bounce", "bounced", "bounces", "failed", "failure", "error", "undetermined"), JUDGE),
    **dict.fromkeys(("unknown", "unknownbounce", "technical", "technicalother", "technicalotherbounce"), JUDGE),
    **dict.fromkeys(("processed", "sent", "send", "request", "requests", "queued", "accepted", "dropped"), SKIP),
    **dict.fromkeys(("open", "opened", "firstopening", "uniqueopened", "proxyopen", "loadedbyproxy"), SKIP),
    **dict.fromkeys(("click", "clicked", "clicks", "unsubscribe", "unsubscribed", "subscribe"), SKIP),
    **dict.fromkeys(("groupunsubscribe", "groupresubscribe", "autoresponder", "addresschange"), SKIP),
    **dict.fromkeys(("challengeverification", "openrelaytest", "manuallydeactivated", "unconfirmed"), SKIP),
    **dict.fromkeys(("smtpapierror", "inbounderror", "templaterenderingfailed", "invalid"), SKIP),
    **dict.fromkeys(("contactdeleted", "contactupdated", "listaddition"), SKIP),
}


def choose_layout(names: Sequence[str], columns: Mapping[str, str] | None) -> ExportLayout:
    """The layout that the caller gives, or the first known one that fits the names of the columns."""
    if columns is not None:
        return given_layout(names, columns)
    for layout in LAYOUTS:
        if layout.fits(names):
            by_lower = {name.lower(): name for name in names}
            found = {ours: by_lower[theirs.lower()] for ours, theirs in layout.columns.items()}
            return ExportLayout(layout.name, found, layout.source, layout.words, layout.without_word, layout.is_final)
    known = ", ".join(layout.name for layout in LAYOUTS)
    raise ColumnError(
        f"not an export that is known ({known}); name the columns, as columns={{'address': ..., 'outcome': ...}} or "
        f"--bounce-columns address=...,outcome=..., of {listed(names)}"
    )


def given_layout(names: Sequence[str], columns: Mapping[str, str]) -> ExportLayout:
    allowed = FIELDS[:-1]
    if unknown := [name for name in columns if name not in allowed]:
        raise SettingsError(f"columns: {unknown[0]!r} is not one of {', '.join(allowed)}")
    if "address" not in columns or {"outcome", "status", "diagnostic"}.isdisjoint(columns):
        raise SettingsError("columns: give 'address' and at least one of 'outcome', 'status' and 'diagnostic'")
    if absent := [name for name in columns.values() if name not in names]:
        raise ColumnError(f"no column {absent[0]!r}{did_you_mean(absent[0], names)}; there are {listed(names)}")
    return ExportLayout("given columns", dict(columns), "the caller")


def word_meaning(text: str | None, layout: ExportLayout, given: Mapping[str, str]) -> str | None:
    """What a word of the export means: an outcome, `JUDGE`, `SKIP`, or None if it is not known."""
    if text is None:
        return layout.without_word if "outcome" not in layout.columns else JUDGE
    if text in given:
        return given[text]
    word = re.sub(r"[\W_]+", "", text.lower())
    return layout.words.get(word) or WORDS.get(word)


CERTAIN = frozenset(
    {Reason.MAILBOX_FULL, Reason.GREYLISTED, Reason.TIMEOUT, Reason.PORT_CLOSED, Reason.CONNECTION_DROPPED}
)


def conclude_row(meaning: str, status: str | None, diagnostic: str | None) -> Judgement:
    """The outcome of a row, from what the service says and the reply of the server; hard needs both to agree.

    >>> conclude_row("hard", None, "550 5.7.1 blocked using zen.spamhaus.org").outcome.value
    'blocked'
    >>> conclude_row("hard", None, None).outcome.value
    'hard'
    """
    if meaning in (Outcome.DELIVERED, Outcome.COMPLAINT):
        return Judgement(Outcome(meaning), None)
    text = diagnostic or ""
    code = status if status and re.fullmatch(r"[245]\.\d{1,3}\.\d{1,3}", status) else None
    if status and re.fullmatch(r"[45]\d\d", status) and not re.match(r"\s*[45]\d\d\b", text):
        text = f"{status} {text}"
    found = judge(code, text) if code or text else None
    if meaning == JUDGE:
        return found or Judgement(Outcome.SOFT, Reason.INCONCLUSIVE)
    if meaning == Outcome.HARD:
        is_transient = (code or text.strip()).startswith("4")
        if found is None:
            return Judgement(Outcome.HARD, None)
        if is_transient or found.reason in CERTAIN:
            return Judgement(Outcome.SOFT, found.reason)
        return Judgement(found.outcome if found.outcome is Outcome.BLOCKED else Outcome.HARD, found.reason)
    return Judgement(Outcome(meaning), found.reason if found else None)


SECONDS = (1e8, 1e11)  # a number in this range is seconds since 1970; a thousand times that, milliseconds


def parse_moment(value: object) -> datetime | None:
    """A time in UTC from ISO 8601, RFC 5322 or seconds since 1970; None for ambiguous forms such as 3/5/2026.

    >>> parse_moment("2026-03-05T10:00:00+01:00").isoformat(), parse_moment("3/5/2026")
    ('2026-03-05T09:00:00+00:00', None)
    """
    if isinstance(value, datetime):
        found: datetime | None = value
    else:
        text = str(value).strip()[:60]
        try:
            number = float(text)
        except ValueError:
            found = parse_date(text)
        else:
            number = number / 1000 if SECONDS[0] * 1000 <= number < SECONDS[1] * 1000 else number
            found = datetime.fromtimestamp(number, UTC) if SECONDS[0] <= number < SECONDS[1] else None
    if found is None or not 1980 <= found.year < 2200:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def parse_date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.removesuffix(" UTC"))
    except ValueError:
        return date_of(text)
