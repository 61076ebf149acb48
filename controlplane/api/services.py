"""What the routes work with, handed in once by whoever makes the app.

Decides what the HTTP side needs from the rest, and when the control plane as a whole is ready. Must not know how any
of it is built.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, cast

from anyio import CapacityLimiter
from fastapi import Depends, Request

from amphitrite.controlplane.agents import AgentRegistry, TableFeed
from amphitrite.controlplane.credentials import Credentials
from amphitrite.controlplane.runtimes import Runtime
from amphitrite.controlplane.settings import Settings
from amphitrite.controlplane.store.blobs import BlobStore
from amphitrite.controlplane.store.models import ModelStore
from amphitrite.controlplane.store.protocol import Store
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import workspace_id

#: The reconciler looks around every few seconds; silent for this long, it hangs or is dead.
STALLED_AFTER_S = 60.0
AGENTS_WAITING_MAX = 256


@dataclass(frozen=True, slots=True)
class Services:
    """``clock``: seconds since the epoch. ``last_pass``: when the reconciler last finished a pass, None before the
    first. ``wake``: there is something to reconcile. ``writing`` makes checking a change against other resources and
    storing it one step: a control plane has one process."""

    settings: Settings
    credentials: Credentials
    store: Store
    models: ModelStore
    blobs: BlobStore
    runtime: Runtime
    agents: AgentRegistry
    feed: TableFeed
    wake: Callable[[], None]
    clock: Callable[[], float]
    last_pass: Callable[[], float | None]
    writing: threading.Lock = field(default_factory=threading.Lock)
    #: Threads in which agents wait for a table. Their own: however many wait, users' requests find theirs.
    waiting: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(AGENTS_WAITING_MAX))

    @property
    def workspace(self) -> str:
        """The ARM id of the one workspace."""
        return workspace_id(self.settings.subscription, self.settings.resource_group, self.settings.workspace)

    def ready(self) -> None:
        """Raises Error("RuntimeUnavailable"), or what the store raises, while changes would lead to nothing."""
        self.store.list_endpoints()
        last = self.last_pass()
        if last is None:
            raise Error("RuntimeUnavailable", "the reconciler has not finished its first pass")
        age = self.clock() - last
        if age > STALLED_AFTER_S:
            raise Error("RuntimeUnavailable", f"the reconciler finished its last pass {age:.0f} s ago")


def _services(request: Request) -> Services:
    return cast(Services, request.app.state.services)


#: The parameter type by which a route asks for the services.
Here = Annotated[Services, Depends(_services)]
