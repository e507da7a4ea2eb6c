"""The verification service: the contract over HTTP, with durable jobs and quota.

Begin with `app.py` and `service_state.py`, then `http/routes.py` (the endpoints),
`jobs/submission.py`, `jobs/queue.py` and `jobs/worker.py` (the life of a job).
"""

from ..errors import MissingExtraError

try:
    from .app import create_app
    from .server import run
    from .settings import ServiceSettings, from_environment
except ModuleNotFoundError as exc:
    if (exc.name or "").startswith("mailverdict"):
        raise
    raise MissingExtraError("the verification service", "service") from exc

__all__ = ["ServiceSettings", "create_app", "from_environment", "run"]
