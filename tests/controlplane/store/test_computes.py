"""Attached computes: stored with their secret, listed, and kept while they are used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from amphitrite.controlplane.core.desired.compute_clusters import Compute, PodShape
from amphitrite.controlplane.core.observed.status import Ref
from amphitrite.controlplane.store.sql.tables import computes
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.dataplane.table.routing_table import Secret
from amphitrite.schemas.errors import Error

MODEL = {"name": "m", "version": "1", "digest": "d1", "model_names": ["a"]}
GPU = PodShape("big", (("nvidia.com/gpu", "1"),), (("nvidia.com/gpu", "1"),), {"nodeSelector": {"gpu": "a100"}})
CLUSTER = Compute("Cluster-1", "models", Secret("apiVersion: v1"), (GPU,), "big", "in the cellar", {"team": "vision"})
UNCONDITIONALLY: Any = {"if_match": None, "if_none_match": False, "now": 1.0}


def test_what_was_attached_is_there(store: SqlStore) -> None:
    inside = Compute("inside", "ns", None)
    store.put_compute(inside, now=1.0)
    store.put_compute(CLUSTER, now=2.0)
    assert store.list_computes() == [CLUSTER, inside]
    with store.database.read() as connection:
        assert "apiVersion" not in str(connection.execute(select(computes.c.document)).all())


def test_attaching_again_replaces_all_but_the_spelling(store: SqlStore) -> None:
    store.put_compute(CLUSTER, now=1.0)
    changed = replace(CLUSTER, name="CLUSTER-1", namespace="other", kubeconfig=None)
    store.put_compute(changed, now=2.0)
    assert store.list_computes() == [replace(changed, name="Cluster-1")]


def test_detaching(store: SqlStore) -> None:
    store.put_compute(CLUSTER, now=1.0)
    assert store.delete_compute("cluster-1") and not store.delete_compute("cluster-1")
    assert store.list_computes() == []


@pytest.mark.parametrize("reference", ["azureml:cluster-1", "/subscriptions/s/resourceGroups/r/providers/"
                         "Microsoft.MachineLearningServices/workspaces/w/computes/Cluster-1"])  # fmt: skip
def test_what_an_endpoint_names_stays(store: SqlStore, reference: str) -> None:
    store.put_compute(CLUSTER, now=1.0)
    store.put_endpoint({"name": "ep1", "compute": reference}, **UNCONDITIONALLY)
    with pytest.raises(Error, match="is used by ep1") as caught:
        store.delete_compute("Cluster-1")
    assert caught.value.code == "Conflict"


def test_what_a_deployment_runs_on_stays(store: SqlStore) -> None:
    store.put_compute(CLUSTER, now=1.0)
    store.put_endpoint({"name": "ep1"}, **UNCONDITIONALLY)
    store.put_deployment("ep1", {"name": "Blue", "instance_type": "big"}, MODEL, compute="Cluster-1", **UNCONDITIONALLY)
    with pytest.raises(Error, match="is used by ep1/Blue"):
        store.delete_compute("cluster-1")


def test_a_deployment_runs_where_it_was_put(store: SqlStore) -> None:
    store.put_endpoint({"name": "ep1"}, **UNCONDITIONALLY)
    document = {"name": "blue", "instance_type": "big"}
    local, _ = store.put_deployment("ep1", document, MODEL, **UNCONDITIONALLY)
    same, _ = store.put_deployment("ep1", document, MODEL, compute="local", **UNCONDITIONALLY)
    moved, _ = store.put_deployment("ep1", document, MODEL, compute="cluster-1", **UNCONDITIONALLY)
    assert [(r.compute, r.generation) for r in (local, same, moved)] == [("local", 1), ("local", 1), ("cluster-1", 2)]
    assert moved.status.state == "Updating"
    (deployment,) = store.load_world().deployments
    assert deployment.workload.compute == "cluster-1" and deployment.workload.pod is not None
    assert store.get_endpoint("ep1").compute is None and store.get_deployment("ep1", "blue") == moved
    assert store.delete(Ref("ep1"), if_match=None, now=2.0) is not None
