"""Routes of computes: attached clusters and built-in computes.

Decides the HTTP form of requests and answers, and which names are reserved. Must not know
Kubernetes, which the services hide.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import compute_bodies
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.paging import Page
from amphitrite.controlplane.api.http.request_bodies import Body, Conditions, IfMatch
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.core.desired import compute_clusters, instance_types
from amphitrite.controlplane.core.desired.compute_clusters import BUILT_IN, Compute
from amphitrite.controlplane.core.desired.resources import LOCAL
from amphitrite.controlplane.core.rules import preconditions
from amphitrite.controlplane.services import compute_changes, references, wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

router = APIRouter(prefix=f"{WORKSPACE}/computes", dependencies=IN_WORKSPACE)

Action = Annotated[str, Query(alias="underlyingResourceAction")]


@router.get("")
def list_(services: Here, pager: Page) -> dict[str, Any]:
    clusters: list[tuple[str, Compute | None]] = [(one.name, one) for one in references.clusters(services)]
    return pager.page(
        [*_this_machine(services), *clusters], lambda one: compute_bodies.compute(one[0], one[1], services)
    )


@router.get("/{name}")
def get(name: str, services: Here) -> Response:
    cluster = _find(services, name)
    if cluster is None:
        body = compute_bodies.compute(LOCAL, None, services)
        return JSONResponse(body, headers={"ETag": compute_clusters.BUILT_IN_ETAG})
    return _answer(cluster, services, 200)


@router.put("/{name}")
def put(name: str, body: Body, conditions: IfMatch, services: Here) -> Response:
    """Attaches a cluster, or changes an attached one. Checks access to the cluster before it stores
    anything."""
    document = wire_documents.compute(name, body)
    _refuse_built_in(services, name)
    former = compute_clusters.find_compute(name, services.store.list_computes())
    _require(former, name, conditions)
    wanted = compute_changes.prepare(services, name, document, former)
    with services.store.exclusive():
        # The cluster was asked in between, which takes a while.
        _require(compute_clusters.find_compute(name, services.store.list_computes()), name, conditions)
        if former is not None:
            compute_changes.refuse_lost_types(services, former, wanted)
        services.store.put_compute(wanted, now=services.clock())
    services.wake()
    return _answer(wanted, services, 201 if former is None else 200)


@router.delete("/{name}")
def delete(name: str, conditions: IfMatch, services: Here, action: Action = "Detach") -> Response:
    """Detaches a cluster, and leaves it unchanged. Raises Error("Conflict") if it is in use."""
    if key(action) != "detach":
        message = f"underlyingResourceAction is {action!r}; allowed: Detach"
        raise Error("Unsupported", message, target=name, hint="detach it: ml compute detach")
    _refuse_built_in(services, name)
    with services.store.exclusive():
        found = compute_clusters.find_compute(name, services.store.list_computes())
        if found is not None:
            _require(found, name, conditions)
        gone = services.store.delete_compute(name)
    services.wake()
    return Response(status_code=200 if gone else 204)


@router.post("/{name}/listNodes")
def list_nodes(name: str, services: Here) -> dict[str, Any]:
    """The nodes of a cluster, with their resources, and the GPUs of all nodes together."""
    cluster = _find(services, name)
    if cluster is None:
        raise Error("Unsupported", "compute local is this machine, which has no nodes", target=name)
    nodes = services.runtime.capacity(cluster.name)
    if nodes is None:
        message = f"cannot list the nodes of compute {cluster.name}"
        hint = "check that the cluster answers and that a ClusterRole lets this server list nodes"
        raise Error("KubernetesUnaccessible", message, target=name, hint=hint)
    return {"nodes": [compute_bodies.node(node) for node in nodes], "gpus": compute_bodies.gpus(nodes)}


@router.get("/{name}/vmSizes")
def list_sizes(name: str, services: Here) -> dict[str, Any]:
    """The instance types of the compute, in the form of Azure's virtual machine sizes."""
    cluster = _find(services, name)
    if cluster is None:
        return {"value": [compute_bodies.size_here(one) for one in instance_types.INSTANCE_TYPES.values()]}
    own = {key(one.name) for one in cluster.instance_types}
    return {"value": [compute_bodies.size(one, own=key(one.name) in own) for one in instance_types.shapes(cluster)]}


def _answer(cluster: Compute, services: Services, status: int) -> Response:
    body = compute_bodies.compute(cluster.name, cluster, services)
    return JSONResponse(body, status, {"ETag": compute_clusters.etag(cluster)})


def _require(found: Compute | None, name: str, conditions: Conditions) -> None:
    etag = None if found is None else compute_clusters.etag(found)
    preconditions.require(etag, name, conditions.if_match, if_none_match=conditions.if_none_match)


def _this_machine(services: Services) -> list[tuple[str, Compute | None]]:
    return [(LOCAL, None)] if services.default_compute == LOCAL else []


def _find(services: Services, name: str) -> Compute | None:
    """The cluster, or None for this machine. Raises Error("ResourceNotFound")."""
    return None if key(name) == LOCAL and services.default_compute == LOCAL else references.compute(services, name)


def _refuse_built_in(services: Services, name: str) -> None:
    """Raises Error("Conflict") for the name of a built-in compute."""
    if key(name) not in (LOCAL, BUILT_IN, key(services.default_compute)):
        return
    message = f"compute {key(name)} is built in; it cannot be attached, changed or detached"
    hint = "set its instance types in the file ML_INSTANCE_TYPES (the value instanceTypes of the chart)"
    raise Error("Conflict", message, target=name, hint=hint if key(name) != LOCAL else "choose another name")
