"""The objects that routes work with, constructed once for each control plane.

Decides which objects routes need, and when the control plane is ready. Must not know how they are
constructed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from anyio import CapacityLimiter

from amphitrite.controlplane.agents.agent_registry import Agents, TableFeed
from amphitrite.controlplane.auth.credentials import Credentials
from amphitrite.controlplane.auth.fetch_grants import Delivery
from amphitrite.controlplane.auth.scoring_tokens import ScoringTokens
from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.core.desired.resources import LOCAL
from amphitrite.controlplane.runtimes.runtime import Runtime
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.store.assets.code_store import CodeStore
from amphitrite.controlplane.store.assets.environment_store import EnvironmentStore
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.blob_store import BlobStore
from amphitrite.controlplane.store.reports.demand_samples import StoredSamples
from amphitrite.controlplane.store.reports.key_uses import KeyUses
from amphitrite.controlplane.store.reports.metric_minutes import StoredMetrics
from amphitrite.controlplane.store.state.store import Store
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import workspace_id

#: The reconciler makes a pass every few seconds. Without one for this long, it is stuck.
STALLED_AFTER_S = 60.0
AGENTS_WAITING_MAX = 256


def _no_clusters(compute: Compute) -> None:
    raise Error("RuntimeUnavailable", f"cannot attach {compute.name}: this server has no access to clusters")


@dataclass(frozen=True, slots=True)
class Services:
    """The objects that routes work with.

    ``clock``: seconds since the epoch. ``last_pass``: when the reconciler last finished a pass;
    None before the first. ``wake``: starts a pass. ``wake_autoscaler``: asks the scalers alone.
    ``built_in``: the cluster of
    ``--runtime kubernetes``; None on one machine. ``attach_check``: raises Error unless the cluster
    answers, the namespace exists and the permissions suffice.
    """

    settings: Settings
    credentials: Credentials
    delivery: Delivery
    store: Store
    models: ModelStore
    environments: EnvironmentStore
    codes: CodeStore
    blobs: BlobStore
    runtime: Runtime
    agents: Agents
    metrics: StoredMetrics
    key_uses: KeyUses
    samples: StoredSamples
    feed: TableFeed
    wake: Callable[[], None]
    clock: Callable[[], float]
    last_pass: Callable[[], float | None]
    built_in: Compute | None = None
    attach_check: Callable[[Compute], None] = _no_clusters
    wake_autoscaler: Callable[[], None] = lambda: None
    #: The time since which this control plane leads. None while another one leads.
    leads_since: Callable[[], float | None] = lambda: 0.0
    #: Set when shutdown begins. Requests in flight are finished. New ones belong to other replicas.
    ending: threading.Event = field(default_factory=threading.Event)
    #: Threads in which agents wait for a table. They are separate, so users' requests never wait
    #: for one.
    waiting: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(AGENTS_WAITING_MAX))

    @property
    def workspace(self) -> str:
        """The ARM id of the one workspace."""
        return workspace_id(self.settings.subscription, self.settings.resource_group, self.settings.workspace)

    @property
    def tokens(self) -> ScoringTokens:
        """The issuer of scoring tokens, for endpoints with the auth mode ``aml_token``."""
        return ScoringTokens(self.store.signing_keys, self.settings.tokens, self.workspace, self.clock)

    @property
    def default_compute(self) -> str:
        """The name of the compute for endpoints that name none."""
        return LOCAL if self.built_in is None else self.built_in.name

    def ready(self) -> None:
        """Raises Error("RuntimeUnavailable"), or what the store raises, if this control plane is
        not ready.

        The leader is ready if it has finished a pass in the last STALLED_AFTER_S seconds. A
        follower is ready if the store answers and it has a routing table for its proxies.
        """
        if self.ending.is_set():
            raise Error("RuntimeUnavailable", "this control plane is shutting down")
        self.store.list_endpoints(limit=1)
        since, last = self.leads_since(), self.last_pass()
        if last is None and not self.feed.has_table():
            raise Error("RuntimeUnavailable", "the reconciler has not finished its first pass")
        if since is None:
            return
        age = self.clock() - max(since, last or 0.0)
        if age > STALLED_AFTER_S:
            raise Error("RuntimeUnavailable", f"the reconciler finished its last pass {age:.0f} s ago")
