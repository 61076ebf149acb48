"""The names of resources in messages: kubectl's KIND/NAME.

Decides their spelling. Must not know what is said about them.
"""

from __future__ import annotations


def endpoint(name: str) -> str:
    """``endpoint/pictures``."""
    return f"endpoint/{name}"


def deployment(endpoint: str, name: str) -> str:
    """``deployment/pictures/blue``."""
    return f"deployment/{endpoint}/{name}"
