"""The status of a resource, and the state that a plan starts from.

Decides the vocabulary of outcomes. Must not know how they are stored or shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from amphitrite.controlplane.core.desired.resources import Deployment, Endpoint
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.schemas.errors import Error

State = Literal["Creating", "Updating", "Scaling", "Succeeded", "Failed", "Deleting"]


@dataclass(frozen=True, slots=True)
class Ref:
    """A reference to an endpoint (``deployment`` is None) or to a deployment; lower-case names."""

    endpoint: str
    deployment: str | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a resource as the reconciler last recorded it.

    ``observed_generation`` equals the resource's generation once the outcome of that generation is
    known. ``phase``: one word of progress (``Starting``, ``Loading``, ``Routing``, ``Draining``,
    ...). ``message``: a sentence; if something went wrong, on a line after its cause. ``facts``:
    JSON values that ``show`` adds (engine, ready instances, notes; of an endpoint whose traffic has
    not taken effect, the shares that are in force).
    """

    state: State
    observed_generation: int
    phase: str = ""
    message: str = ""
    error: Error | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class World:
    """All desired state, and the last published routing table."""

    endpoints: tuple[Endpoint, ...]
    deployments: tuple[Deployment, ...]
    table: RoutingTable
