"""A complete mail world on loopback, with made-up domains: for demos, tutorials and users' own tests."""

from .world import World

__all__ = ["World"]
