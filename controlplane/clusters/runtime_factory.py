"""Construction of the runtime of one cluster, from the settings and the model store.

Decides how pods reach the control plane: the URL for models, the grant, and the certificate
authority to trust. Must not know which clusters exist.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from amphitrite.controlplane.auth.fetch_grants import Delivery
from amphitrite.controlplane.clusters import own_cluster
from amphitrite.controlplane.core.desired.compute_clusters import BUILT_IN, Compute, PodShape
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster, from_text, in_cluster
from amphitrite.controlplane.runtimes.kubernetes.kubernetes_runtime import KubernetesRuntime
from amphitrite.controlplane.runtimes.kubernetes.workloads.model_facts import ModelFacts, model_facts
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import (
    FETCHER_IMAGE,
    TRITON_IMAGE,
    KubernetesSettings,
    model_cache,
)
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.schemas.errors import Error


class ClusterRuntimes:
    """Constructs runtimes. ``fetch_ca``: our certificate authority in PEM; None for a public
    one."""

    def __init__(self, settings: Settings, models: ModelStore, delivery: Delivery, fetch_ca: str | None) -> None:
        self._settings, self._models, self._delivery, self._fetch_ca = settings, models, delivery, fetch_ca
        self._facts: dict[str, ModelFacts] = {}
        self._lock = threading.Lock()

    def make(self, compute: Compute, shape: Callable[[str], PodShape]) -> KubernetesRuntime:
        """The runtime of ``compute``. ``shape``: an instance type by its name.

        Raises Error: KubernetesUnaccessible, BadArgument (an unusable kubeconfig).
        """
        cluster, limits = self._settings.cluster, self._settings.limits
        settings = KubernetesSettings(
            namespace=compute.namespace,
            shape=shape,
            grant=lambda workload: f"Bearer {self._delivery.grant(workload.name, workload.model.digest)}",
            facts=self.facts,
            fetch_url=self._settings.fetch_url,
            fetch_ca=self._fetch_ca,
            triton_image=cluster.triton_image or TRITON_IMAGE,
            fetcher_image=cluster.fetcher_image or FETCHER_IMAGE,
            image_pull_policy=cluster.image_pull_policy,
            image_pull_secrets=cluster.image_pull_secrets,
            cache=replace(model_cache(cluster.model_cache), limit=cluster.model_cache_bytes),
            proxy_selector=tuple(sorted(cluster.proxy_selector.items())) or None,
            # The proxies of another cluster are in none of its namespaces.
            proxy_namespace=cluster.own_namespace if compute.name == BUILT_IN and cluster.kubeconfig is None else None,
            metrics_from=cluster.metrics_from,
            scratch_bytes=cluster.scratch_bytes,
            storage_requests=cluster.storage_requests,
            release=cluster.release,
            max_input_bytes=limits.scoring_body_bytes,
        )
        return KubernetesRuntime(compute.name, self.connect(compute), settings)

    def connect(self, compute: Compute) -> Cluster:
        """A client of the cluster of ``compute``. Raises as ``make``."""
        if compute.name == BUILT_IN:
            return own_cluster.connect(self._settings.cluster)
        return Cluster(in_cluster() if compute.kubeconfig is None else from_text(compute.kubeconfig.reveal()))

    def facts(self, digest: str) -> ModelFacts | None:
        """Facts from the files of a model version. None if the version is deleted."""
        with self._lock:
            known = self._facts.get(digest)
        if known is not None:
            return known
        try:
            layout = self._models.layout(digest)
        except Error as error:
            if error.code == "ResourceNotFound":
                return None
            raise
        files = {file.path: file for file in layout.files}

        def read(path: str) -> str:
            file = files[path]
            return b"".join(self._models.blobs.content.read(file.digest, 0, file.size)).decode("utf-8", "replace")

        facts = model_facts([(file.path, file.size) for file in layout.files], read)
        with self._lock:
            self._facts[digest] = facts
        return facts
