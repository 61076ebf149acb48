"""What a control plane has seen of pods that the API server does not tell for long: when they were ready, how they
ended before, the end of their logs.

Decides how much of it is kept. Nothing depends on it but how well a failure is explained: a control plane that has just
started knows less. Must not know where objects come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Ended containers of one pod: the one that its status tells, and the one before.
KEPT_ENDED = 2


@dataclass(frozen=True, slots=True)
class Seen:
    """``ready_at``: seconds since the epoch, by container id. ``ended``: ``terminated`` states, oldest first, by pod
    uid and container. ``logs``: the last lines of ended containers, by container id. ``departed_at``: when one of the
    pods last went, so that there may be room.
    """

    ready_at: Mapping[str, float] = field(default_factory=dict)
    ended: Mapping[tuple[str, str], tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)
    departed_at: float = 0.0
