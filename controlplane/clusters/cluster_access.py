"""Objects that need the Kubernetes client, constructed on first use.

Decides when the client library is imported: only if a cluster is used. Must not know what the
objects do.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from amphitrite.controlplane.agents.agent_registry import TableFeed
from amphitrite.controlplane.auth.fetch_grants import Delivery
from amphitrite.controlplane.core.desired.compute_clusters import Compute, PodShape
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.store.assets.model_store import ModelStore

if TYPE_CHECKING:
    from amphitrite.controlplane.clusters.runtime_factory import ClusterRuntimes
    from amphitrite.controlplane.clusters.seed_secret import TableSecret
    from amphitrite.controlplane.runtimes.kubernetes.kubernetes_runtime import KubernetesRuntime


class ClusterAccess:
    """Constructs what needs the Kubernetes client.

    Every method raises Error("RuntimeUnavailable") if the library is not installed, and the errors
    of what it constructs.
    """

    def __init__(self, settings: Settings, models: ModelStore, delivery: Delivery, fetch_ca: str | None) -> None:
        self._settings, self._models, self._delivery, self._fetch_ca = settings, models, delivery, fetch_ca

    @cached_property
    def _runtimes(self) -> ClusterRuntimes:
        from amphitrite.controlplane.clusters.runtime_factory import ClusterRuntimes

        return ClusterRuntimes(self._settings, self._models, self._delivery, self._fetch_ca)

    def runtime(self, compute: Compute, shape: Callable[[str], PodShape]) -> KubernetesRuntime:
        """The runtime of ``compute``. ``shape``: an instance type by its name."""
        return self._runtimes.make(compute, shape)

    def check(self, compute: Compute) -> None:
        """Raises Error unless ``compute`` can be attached."""
        runtimes = self._runtimes
        from amphitrite.controlplane.clusters import attach_check

        cluster = runtimes.connect(compute)
        try:
            attach_check.check(compute, cluster)
        finally:
            cluster.close()

    def table_secret(self, feed: TableFeed, name: str, stack: ExitStack) -> TableSecret:
        """Keeps the newest table in the Secret ``name``. ``stack`` closes its connection."""
        from amphitrite.controlplane.clusters.own_cluster import connect
        from amphitrite.controlplane.clusters.seed_secret import TableSecret

        cluster = connect(self._settings.cluster)
        stack.callback(cluster.close)
        return TableSecret(cluster, self._settings.cluster.own_namespace, name, feed.wait)
