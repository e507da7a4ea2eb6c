"""DNS, mail servers and a service on loopback, with made-up domains.

They are for demos, tutorials and users' own tests.
"""

from .world import World

__all__ = ["World"]
