"""A mail world in a box: real servers on loopback, made-up domains. For demos, tutorials and your own tests."""

from .world import World

__all__ = ["World"]
