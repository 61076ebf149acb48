"""What the other tests of clusters lean on: namespaces that are checked, and volumes that pods
share."""

from __future__ import annotations

import pytest
from kubernetes import utils

from .images import Images
from .node import Cluster
from .pods import create, ended, restricted_pod

pytestmark = pytest.mark.cluster


def test_a_namespace_is_restricted_and_tells_what_is_left_in_it(cluster: Cluster) -> None:
    with cluster.namespace() as name:
        assert cluster.leftovers(name) == set()
        refused = restricted_pod("root", "test.local/pause:1", user=0)
        with pytest.raises(utils.FailToCreateError, match="violates PodSecurity"):
            create(cluster, name, refused)
        cluster.kubectl("create", "configmap", "forgotten", "-n", name)
        assert cluster.leftovers(name) == {"configmap/forgotten"}
        cluster.kubectl("delete", "configmap", "forgotten", "-n", name)
    phase = cluster.kubectl("get", "namespace", name, "-o", "jsonpath={.status.phase}", "--ignore-not-found")
    assert phase in ("Terminating", "")


def test_pods_share_a_volume(cluster: Cluster, images: Images) -> None:
    with cluster.namespace() as namespace, cluster.shared_volume(namespace) as claim:
        for name, command in (("writes", "echo it >/shared/file"), ("reads", "cat /shared/file")):
            pod = restricted_pod(name, images.dataplane, command=["sh", "-c", command], claims={claim: "/shared"})
            create(cluster, namespace, pod)
            end = ended(cluster, namespace, name)
            assert end.exit_code == 0, end
            cluster.kubectl("delete", "pod", name, "-n", namespace)
        assert end.log == "it\n"
