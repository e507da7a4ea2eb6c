"""Syntax of a column: the answers of `observe_syntax` for a million addresses in a tenth of a second.

One pass over each piece of the column, on as many threads as there are processors:

1. `cut`: every address is cut at its first @ without copying: two offsets per row into the text's own buffer.
2. `domains`: each distinct one once. A pattern decides on plain host names; whatever involves IDNA, ``--`` or
   more than 63 octets is decided by email-validator itself, once in a call.
3. `local_parts`: the octets of the piece are compared all at once; only rows with anything but letters, digits
   and ``- . / _ +`` are matched by a pattern, and only the non-ASCII ones among these one by one.
4. `observe`: an address is accepted when both its sides are. Its normal form is its own octets with the domain
   in lower case; the few rows that change otherwise are rewritten one by one. Pieces are joined.

`messages` tells why rows were refused, and looks at no others.
"""

from .local_parts import match_locals
from .messages import fault_messages
from .observe import SyntaxColumn, observe_column

__all__ = ["SyntaxColumn", "fault_messages", "match_locals", "observe_column"]
