"""mailverdict: a verdict, its reasons and flags for every row of an e-mail column.

Begin with `verify`. The layers from top to bottom; each imports only from those below it::

    cli                     the command line
    sandbox                 DNS, mail servers and a service on loopback, for demos and tests
    widgets, service        the notebook widget, the HTTP service
    dask, spark             frames on clusters; the stages are in distributed
    mailings                what became of mails is learnt, and rows are mailed in waves
    reports                 summaries, reports, explanations
    frames                  pandas, Polars and Arrow frames in and out
    runs                    verification of many addresses: journal, progress, resuming
    local, remote           the two backends
    checks, contract        observations of one address or domain; the JSON of the service
    verdicts                evidence to verdict: the only place where a verdict is made
    backend                 the protocol between runs and backends
    model, loop             values; the bridge from sync to async
    errors, theme           every exception; the look of all pages
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import errors
from .frames import accessor as _accessor  # registers df.mailverdict and s.mailverdict
from .version import __version__

if TYPE_CHECKING:
    from . import dask as dask
    from . import sandbox as sandbox
    from . import service as service
    from . import spark as spark
    from . import widgets as widgets
    from .backend import Quota
    from .bounces.read import read_bounces
    from .errors import (
        BackendError,
        ColumnError,
        ContractError,
        InputError,
        JournalError,
        MailVerdictError,
        MissingExtraError,
        QuotaExceeded,
        RateLimited,
        ResolverError,
        ServiceError,
        SettingsError,
        TransportError,
    )
    from .frames.clean import clean
    from .frames.domains import domains, lookup_domains
    from .frames.duplicates import duplicates
    from .frames.explode import explode
    from .frames.planning import plan, quota
    from .frames.policy import Policy, Split, decide, split
    from .frames.send_list import SendList, send_list
    from .frames.suppress import suppress
    from .frames.verifiers import read_verdicts
    from .frames.verify import averify, start, verify
    from .local.backend import LocalBackend
    from .mailings.estimate import Estimate, estimate
    from .mailings.experience import Calibration, Experience
    from .mailings.learn import learn
    from .mailings.risk import risk
    from .mailings.waves import Mailing, mailing
    from .model.settings import Blacklist, Lists, LocalSettings, Zone
    from .model.verification import Fault, Verification
    from .model.words import Reason, Status, ValidationType, Verdict
    from .remote.backend import RemoteBackend
    from .remote.events import PollSchedule
    from .repair.repair import REPAIRS
    from .reports.breakdown import breakdown
    from .reports.by_operator import by_operator
    from .reports.compare import Comparison, compare
    from .reports.explain import Explanation, explain
    from .reports.host_audit import HostAudit, audit_host
    from .reports.outcomes import contradicted, outcomes
    from .reports.plot import plot
    from .reports.report import Report, report
    from .reports.summary import by_domain, diff, summary
    from .runs.plan import Plan
    from .runs.progress import Progress
    from .runs.run import Run
    from .runs.single import check
    from .table.columns import STATUS_DTYPE, VERDICT_DTYPE
    from .table.schema import schema

# The module of each public name; imported when first used, so that `import mailverdict` stays light.
_MODULES = {
    "BackendError": "errors",
    "Blacklist": "model.settings",
    "Calibration": "mailings.experience",
    "ColumnError": "errors",
    "Comparison": "reports.compare",
    "ContractError": "errors",
    "Estimate": "mailings.estimate",
    "Experience": "mailings.experience",
    "Explanation": "reports.explain",
    "Fault": "model.verification",
    "HostAudit": "reports.host_audit",
    "InputError": "errors",
    "JournalError": "errors",
    "Lists": "model.settings",
    "LocalBackend": "local.backend",
    "LocalSettings": "model.settings",
    "MailVerdictError": "errors",
    "Mailing": "mailings.waves",
    "MissingExtraError": "errors",
    "Plan": "runs.plan",
    "Policy": "frames.policy",
    "PollSchedule": "remote.events",
    "Progress": "runs.progress",
    "Quota": "backend",
    "QuotaExceeded": "errors",
    "REPAIRS": "repair.repair",
    "RateLimited": "errors",
    "ResolverError": "errors",
    "Reason": "model.words",
    "RemoteBackend": "remote.backend",
    "Report": "reports.report",
    "Run": "runs.run",
    "STATUS_DTYPE": "table.columns",
    "SendList": "frames.send_list",
    "ServiceError": "errors",
    "SettingsError": "errors",
    "Split": "frames.policy",
    "Status": "model.words",
    "TransportError": "errors",
    "VERDICT_DTYPE": "table.columns",
    "ValidationType": "model.words",
    "Verdict": "model.words",
    "Verification": "model.verification",
    "Zone": "model.settings",
    "audit_host": "reports.host_audit",
    "averify": "frames.verify",
    "breakdown": "reports.breakdown",
    "by_domain": "reports.summary",
    "by_operator": "reports.by_operator",
    "check": "runs.single",
    "clean": "frames.clean",
    "compare": "reports.compare",
    "contradicted": "reports.outcomes",
    "decide": "frames.policy",
    "diff": "reports.summary",
    "domains": "frames.domains",
    "duplicates": "frames.duplicates",
    "estimate": "mailings.estimate",
    "explain": "reports.explain",
    "explode": "frames.explode",
    "learn": "mailings.learn",
    "lookup_domains": "frames.domains",
    "mailing": "mailings.waves",
    "outcomes": "reports.outcomes",
    "plan": "frames.planning",
    "plot": "reports.plot",
    "quota": "frames.planning",
    "read_bounces": "bounces.read",
    "read_verdicts": "frames.verifiers",
    "report": "reports.report",
    "risk": "mailings.risk",
    "schema": "table.schema",
    "send_list": "frames.send_list",
    "split": "frames.policy",
    "start": "frames.verify",
    "summary": "reports.summary",
    "suppress": "frames.suppress",
    "verify": "frames.verify",
}
# What functions raise, return or take as text, and other names of old: importable, but not offered by completion.
_NOT_LISTED = {
    *(name for name, module in _MODULES.items() if module == "errors"),
    *(
        "Calibration",
        "Comparison",
        "Estimate",
        "Explanation",
        "Fault",
        "HostAudit",
        "LocalSettings",
        "Mailing",
        "Plan",
        "PollSchedule",
        "Progress",
        "Quota",
        "Report",
    ),
    *(
        "Reason",
        "Run",
        "STATUS_DTYPE",
        "SendList",
        "Split",
        "Status",
        "VERDICT_DTYPE",
        "ValidationType",
        "Verdict",
        "by_domain",
        "by_operator",
        "domains",
    ),
}
# Imported when first used as an attribute.
_SUBMODULES = (
    "dask",
    "sandbox",
    "service",
    "spark",
    "widgets",
)

__all__ = [
    "BackendError",
    "Blacklist",
    "Calibration",
    "ColumnError",
    "Comparison",
    "ContractError",
    "Estimate",
    "Experience",
    "Explanation",
    "Fault",
    "HostAudit",
    "InputError",
    "JournalError",
    "Lists",
    "LocalBackend",
    "LocalSettings",
    "MailVerdictError",
    "Mailing",
    "MissingExtraError",
    "Plan",
    "Policy",
    "PollSchedule",
    "Progress",
    "Quota",
    "QuotaExceeded",
    "REPAIRS",
    "RateLimited",
    "ResolverError",
    "Reason",
    "RemoteBackend",
    "Report",
    "Run",
    "STATUS_DTYPE",
    "SendList",
    "ServiceError",
    "SettingsError",
    "Split",
    "Status",
    "TransportError",
    "VERDICT_DTYPE",
    "ValidationType",
    "Verdict",
    "Verification",
    "Zone",
    "__version__",
    "audit_host",
    "averify",
    "breakdown",
    "by_domain",
    "by_operator",
    "check",
    "clean",
    "compare",
    "contradicted",
    "decide",
    "diff",
    "domains",
    "duplicates",
    "errors",
    "estimate",
    "explain",
    "explode",
    "learn",
    "lookup_domains",
    "mailing",
    "outcomes",
    "plan",
    "plot",
    "quota",
    "read_bounces",
    "read_verdicts",
    "report",
    "risk",
    "schema",
    "send_list",
    "split",
    "start",
    "summary",
    "suppress",
    "verify",
]


if not TYPE_CHECKING:  # else type checkers would accept any name

    def __getattr__(name: str) -> Any:
        """Import a public name from its module when it is first used."""
        if name in _SUBMODULES:
            return importlib.import_module(f".{name}", __name__)
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """What users call or make, whether imported yet or not; this is what completion offers."""
    return [name for name in __all__ if name not in _NOT_LISTED]
