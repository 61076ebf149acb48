"""The way to the cluster that the settings name.

Decides who we are there: the pod's service account, or what the kubeconfig says. Must not know what is asked for.
"""

from __future__ import annotations

from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster, from_file, in_cluster
from amphitrite.controlplane.settings.cluster_settings import ClusterSettings


def connect(cluster: ClusterSettings) -> Cluster:
    """Raises Error("KubernetesUnaccessible"), RuntimeUnavailable (the client library is not installed)."""
    return Cluster(in_cluster() if cluster.kubeconfig is None else from_file(cluster.kubeconfig))
