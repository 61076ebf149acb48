"""The history of pods that the API server reports only briefly: when they were ready, earlier
exits, the end of their logs.

Decides how much is kept. It only improves explanations of failures: a control plane that has just
started has less of it. Must not know where objects come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Exits kept for each container of a pod: the one in its status, and the one before.
KEPT_ENDED = 2


@dataclass(frozen=True, slots=True)
class PodHistory:
    """``ready_at``: seconds since the epoch, by container id. ``ended``: ``terminated`` states,
    oldest first, by pod uid and container. ``logs``: the last lines of exited containers, by
    container id. ``departed_at``: when a pod last went, which may have freed capacity."""

    ready_at: Mapping[str, float] = field(default_factory=dict)
    ended: Mapping[tuple[str, str], tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)
    departed_at: float = 0.0
