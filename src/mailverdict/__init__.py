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

from . import errors as errors
from .frames import accessor as _accessor  # registers df.mailverdict and s.mailverdict
from .version import __version__ as __version__

# Public names by their modules, which are imported when a name is first used: `import mailverdict`
# stays light. Type checkers read the imports further down instead.
_OFFERED = {
    "bounces.read": ("read_bounces",),
    "frames.clean": ("clean",),
    "frames.domains": ("lookup_domains",),
    "frames.duplicates": ("duplicates",),
    "frames.explode": ("explode",),
    "frames.planning": ("plan", "quota"),
    "frames.policy": ("Policy", "decide", "split"),
    "frames.send_list": ("send_list",),
    "frames.suppress": ("suppress",),
    "frames.verifiers": ("read_verdicts",),
    "frames.verify": ("averify", "start", "verify"),
    "local.backend": ("LocalBackend",),
    "mailings.estimate": ("estimate",),
    "mailings.experience": ("Experience",),
    "mailings.learn": ("learn",),
    "mailings.risk": ("risk",),
    "mailings.waves": ("mailing",),
    "model.settings": ("Blacklist", "Lists", "Zone"),
    "model.verification": ("Verification",),
    "remote.backend": ("RemoteBackend",),
    "repair.repair": ("REPAIRS",),
    "reports.breakdown": ("breakdown",),
    "reports.compare": ("compare",),
    "reports.explain": ("explain",),
    "reports.host_audit": ("audit_host",),
    "reports.outcomes": ("contradicted", "outcomes"),
    "reports.plot": ("plot",),
    "reports.report": ("report",),
    "reports.summary": ("diff", "summary"),
    "runs.single": ("check",),
    "table.schema": ("schema",),
}
# What functions raise, return or take as text: importable, but not offered by completion.
_NOT_OFFERED = {
    "backend": ("Quota",),
    "errors": (
        "BackendError",
        "ColumnError",
        "ContractError",
        "InputError",
        "JournalError",
        "MailVerdictError",
        "MissingExtraError",
        "QuotaExceeded",
        "RateLimited",
        "ResolverError",
        "ServiceError",
        "SettingsError",
        "TransportError",
    ),
    "frames.policy": ("Split",),
    "frames.send_list": ("SendList",),
    "mailings.estimate": ("Estimate",),
    "mailings.experience": ("Calibration",),
    "mailings.waves": ("Mailing",),
    "model.verification": ("Fault",),
    "model.words": ("Reason", "Status", "ValidationType", "Verdict"),
    "remote.events": ("PollSchedule",),
    "reports.compare": ("Comparison",),
    "reports.explain": ("Explanation",),
    "reports.host_audit": ("HostAudit",),
    "reports.report": ("Report",),
    "runs.plan": ("Plan",),
    "runs.progress": ("Progress",),
    "runs.run": ("Run",),
}
# Names that will go: their module, and what to use instead.
_DEPRECATED = {
    "LocalSettings": ("model.settings", "mailverdict.LocalBackend(...).settings"),
    "STATUS_DTYPE": ("table.columns", "mailverdict.schema('pandas')['status']"),
    "VERDICT_DTYPE": ("table.columns", "mailverdict.schema('pandas')['verdict']"),
    "by_domain": ("reports.deprecated", "mailverdict.breakdown(out, 'domain')"),
    "by_operator": ("reports.deprecated", "mailverdict.breakdown(out, 'operator')"),
    "domains": ("frames.domains", "mailverdict.lookup_domains"),
}
_SUBMODULES = ("dask", "sandbox", "service", "spark", "widgets")  # imported when first used
_MODULES = {
    name: module
    for modules in (_OFFERED, _NOT_OFFERED)
    for module, names in modules.items()
    for name in names
}

if TYPE_CHECKING:  # `name as name` exports a name
    from . import dask as dask
    from . import sandbox as sandbox
    from . import service as service
    from . import spark as spark
    from . import widgets as widgets
    from .backend import Quota as Quota
    from .bounces.read import read_bounces as read_bounces
    from .errors import BackendError as BackendError
    from .errors import ColumnError as ColumnError
    from .errors import ContractError as ContractError
    from .errors import InputError as InputError
    from .errors import JournalError as JournalError
    from .errors import MailVerdictError as MailVerdictError
    from .errors import MissingExtraError as MissingExtraError
    from .errors import QuotaExceeded as QuotaExceeded
    from .errors import RateLimited as RateLimited
    from .errors import ResolverError as ResolverError
    from .errors import ServiceError as ServiceError
    from .errors import SettingsError as SettingsError
    from .errors import TransportError as TransportError
    from .frames.clean import clean as clean
    from .frames.domains import domains as domains
    from .frames.domains import lookup_domains as lookup_domains
    from .frames.duplicates import duplicates as duplicates
    from .frames.explode import explode as explode
    from .frames.planning import plan as plan
    from .frames.planning import quota as quota
    from .frames.policy import Policy as Policy
    from .frames.policy import Split as Split
    from .frames.policy import decide as decide
    from .frames.policy import split as split
    from .frames.send_list import SendList as SendList
    from .frames.send_list import send_list as send_list
    from .frames.suppress import suppress as suppress
    from .frames.verifiers import read_verdicts as read_verdicts
    from .frames.verify import averify as averify
    from .frames.verify import start as start
    from .frames.verify import verify as verify
    from .local.backend import LocalBackend as LocalBackend
    from .mailings.estimate import Estimate as Estimate
    from .mailings.estimate import estimate as estimate
    from .mailings.experience import Calibration as Calibration
    from .mailings.experience import Experience as Experience
    from .mailings.learn import learn as learn
    from .mailings.risk import risk as risk
    from .mailings.waves import Mailing as Mailing
    from .mailings.waves import mailing as mailing
    from .model.settings import Blacklist as Blacklist
    from .model.settings import Lists as Lists
    from .model.settings import LocalSettings as LocalSettings
    from .model.settings import Zone as Zone
    from .model.verification import Fault as Fault
    from .model.verification import Verification as Verification
    from .model.words import Reason as Reason
    from .model.words import Status as Status
    from .model.words import ValidationType as ValidationType
    from .model.words import Verdict as Verdict
    from .remote.backend import RemoteBackend as RemoteBackend
    from .remote.events import PollSchedule as PollSchedule
    from .repair.repair import REPAIRS as REPAIRS
    from .reports.breakdown import breakdown as breakdown
    from .reports.compare import Comparison as Comparison
    from .reports.compare import compare as compare
    from .reports.deprecated import by_domain as by_domain
    from .reports.deprecated import by_operator as by_operator
    from .reports.explain import Explanation as Explanation
    from .reports.explain import explain as explain
    from .reports.host_audit import HostAudit as HostAudit
    from .reports.host_audit import audit_host as audit_host
    from .reports.outcomes import contradicted as contradicted
    from .reports.outcomes import outcomes as outcomes
    from .reports.plot import plot as plot
    from .reports.report import Report as Report
    from .reports.report import report as report
    from .reports.summary import diff as diff
    from .reports.summary import summary as summary
    from .runs.plan import Plan as Plan
    from .runs.progress import Progress as Progress
    from .runs.run import Run as Run
    from .runs.single import check as check
    from .table.columns import STATUS_DTYPE as STATUS_DTYPE
    from .table.columns import VERDICT_DTYPE as VERDICT_DTYPE
    from .table.schema import schema as schema
else:  # a type checker would take `__getattr__` for every name
    __all__ = list(_MODULES)
    __all__ += ["__version__", "errors"]

    def __getattr__(name: str) -> Any:
        """Import a public name from its module when it is first used.

        A name that will go is warned about at each use.
        """
        if name in _SUBMODULES:
            return importlib.import_module(f".{name}", __name__)
        if name in _DEPRECATED:
            from .table.notices import warn_deprecated  # noqa: PLC0415 - seldom needed

            module, instead = _DEPRECATED[name]
            warn_deprecated(name, instead)
            return getattr(importlib.import_module(f".{module}", __name__), name)
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """What users call or make, whether imported yet or not; this is what completion offers."""
    offered = [name for names in _OFFERED.values() for name in names]
    return sorted([*offered, "__version__", "errors"])
