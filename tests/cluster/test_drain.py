"""The node is drained under load: what the disruption budgets let go is missed by nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..system.models import REQUEST
from .images import Images
from .node import Cluster
from .test_kills import CONTROL_PLANE, INSTANCE, PROXY, all_ready, serving, unnoticed
from .test_product import INFER

#: It is everybody's node.
pytestmark = [pytest.mark.cluster, pytest.mark.alone]


def test_a_drained_node(cluster: Cluster, images: Images, tmp_path: Path) -> None:
    """One of each goes; the others are held back while nothing can start elsewhere."""
    node = cluster.kubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}")
    parts = "--pod-selector=app.kubernetes.io/part-of=amphitrite"
    with serving(cluster, images, tmp_path) as release, release.load(INFER, REQUEST) as result:
        try:
            drain = ("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=20s", parts)
            cluster.kubectl(*drain, check=False)
            for selector in (CONTROL_PLANE, PROXY, INSTANCE):
                assert release.ready(selector), f"one of {selector} is left"
        finally:
            cluster.kubectl("uncordon", node)
        all_ready(release)
    unnoticed(result)
