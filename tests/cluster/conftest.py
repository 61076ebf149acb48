"""The cluster and the images that every test here uses, and a namespace of one's own.

Tests are skipped, with how to get one, where there is no cluster: see ``node.py`` and
``docs/kubernetes.md``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import TRITON_IMAGE

from .images import Images, provide
from .namespaces import gone
from .node import Cluster, running


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A real cluster, shared by all processes of this run (and of others beside it)."""
    with running() as cluster:
        yield cluster
        gone(cluster)


@pytest.fixture(scope="session")
def images(cluster: Cluster) -> Images:
    """The product's images and the one of Triton, built from this checkout and on the cluster's
    nodes."""
    built = provide(cluster)
    return Images(built["controlplane"], built["dataplane"], built["fetcher"], TRITON_IMAGE)


@pytest.fixture(scope="module", autouse=True)
def turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """A module that is marked ``alone`` has the cluster to itself, as far as these tests go; the
    others share it."""
    tests = [item for item in request.session.items if item.getparent(pytest.Module) is request.node]
    if not any("cluster" in getattr(item, "fixturenames", ()) for item in tests):
        yield
        return
    cluster: Cluster = request.getfixturevalue("cluster")
    with cluster.turn(alone=request.node.get_closest_marker("alone") is not None):
        yield


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A new namespace under ``restricted``; what is left in it goes with it."""
    with cluster.namespace(empty=False) as name:
        yield name
