"""What an instance has used of its resources, as its runtime measures it.

Decides the vocabulary. Must not know how it was measured.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstanceUsage:
    """``at``: seconds since the epoch. ``cpu_s``: processor seconds so far, which only grow.
    ``cores``, ``memory_total``: what it is meant to have. Memory in bytes. Names in lower case."""

    id: str
    endpoint: str
    deployment: str
    at: float
    cpu_s: float
    cores: float
    memory: int
    memory_total: int
