"""Words that put off: trouble of the server's own, and "later". Patterns of the folded and masked text."""

from __future__ import annotations

from .wording import phrases

__all__ = ["LATER", "SERVER_TROUBLE"]

PART = phrases(r"""
    server  internal  local  system  look-?up  database  db  ldap  dns  directory  resolver  alias  disk  memory
    resource
    storage  configuration  backend  i/o  file ?system  queue  mail system  map  table  verification  validation
""")
FAILS = phrases(r"""
    errors?  problems?  fail\w*  trouble  issues?  unavailable  exhausted  insufficient  full  down  not available
    timed? ?out  corrupt\w*  crash\w*
""")
SERVER_TROUBLE = phrases(rf"""
    \b{PART}s?\b[^.;]{{0,24}}\b{FAILS}
    insufficient (?:system|disk|memory|resource|storage)\w*  (?:error|problem) in processing  timed? ?out  \bbusy\b
    out of memory  shutting down  maintenance  unable to (?:lookup|look up|verify|connect|contact)
    (?:could|can) ?not (?:be )?(?:connect|contact|complet|verif|load|open|access)\w*
""")
"""Something of theirs is broken."""

LATER = phrases(r"""
    \blater\b  try (?:it )?again  \bretry  come back  \bdeferr?ed  please wait  try (?:in|after)
    (?:temporar\w+|currently|momentarily) (?:unavailable|not available|unable|fail\w*|delayed)
    (?:temporar\w+|currently|momentarily) (?:deferred|reject\w*|refus\w*)
    plus tard  reessayer  mas tarde  intentelo  piu tardi  riprov  spae?ter  mais tarde
""")
"""They ask to come back."""
