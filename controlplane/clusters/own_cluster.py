"""The connection to the cluster of the settings.

Decides the credentials: the pod's service account, or those of the kubeconfig. Must not know what
is requested.
"""

from __future__ import annotations

from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster, from_file, in_cluster
from amphitrite.controlplane.settings.cluster_settings import ClusterSettings


def connect(cluster: ClusterSettings) -> Cluster:
    """A client of the cluster.

    Raises Error: KubernetesUnaccessible, RuntimeUnavailable (the client library is not installed).
    """
    return Cluster(in_cluster() if cluster.kubeconfig is None else from_file(cluster.kubeconfig))
