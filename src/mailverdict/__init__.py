"""mailverdict: a verdict, its reasons and flags for every row of an e-mail column."""

from .model.settings import Blacklist, Lists, Zone
from .model.verification import Verification
from .backend import Quota
