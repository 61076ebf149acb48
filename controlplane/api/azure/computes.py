"""Routes of computes: attached clusters, and what this server brings along.

Decides HTTP and which names are taken. Must not know Kubernetes: the runtime and ``attach_check`` of the services do.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import JSONResponse, Response

from amphitrite.controlplane.api.azure import compute_bodies
from amphitrite.controlplane.api.http.dependencies import Here
from amphitrite.controlplane.api.http.paging import Page
from amphitrite.controlplane.api.http.request_bodies import Body, IfMatch
from amphitrite.controlplane.api.http.workspace_scope import IN_WORKSPACE, WORKSPACE
from amphitrite.controlplane.core.desired import compute_clusters, instance_types
from amphitrite.controlplane.core.desired.compute_clusters import BUILT_IN, Compute
from amphitrite.controlplane.core.desired.resources import LOCAL
from amphitrite.controlplane.services import compute_changes, references, wire_documents
from amphitrite.controlplane.services.services import Services
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key

router = APIRouter(prefix=f"{WORKSPACE}/computes", dependencies=IN_WORKSPACE)

Action = Annotated[str, Query(alias="underlyingResourceAction")]


@router.get("")
def list_(here: Here, pager: Page) -> dict[str, Any]:
    found: list[tuple[str, Compute | None]] = [(one.name, one) for one in references.clusters(here)]
    return pager.page([*_this_machine(here), *found], lambda one: compute_bodies.compute(one[0], one[1], here))


@router.get("/{name}")
def get(name: str, here: Here) -> dict[str, Any]:
    found = _find(here, name)
    return compute_bodies.compute(found.name if found else LOCAL, found, here)


@router.put("/{name}")
def put(name: str, body: Body, conditions: IfMatch, here: Here) -> Response:
    """Attach, or change what is attached. The cluster is asked before anything is stored."""
    document = wire_documents.compute(name, body)
    _refuse_built_in(here, name)
    former = compute_clusters.find_compute(name, here.store.list_computes())
    if former is not None and conditions.if_none_match:
        raise Error("PreconditionFailed", f"compute {former.name} exists already", target=name)
    wanted = compute_changes.prepare(here, name, document, former)
    with here.store.exclusive():
        if former is not None:
            compute_changes.refuse_lost_types(here, former, wanted)
        here.store.put_compute(wanted, now=here.clock())
    here.wake()
    return JSONResponse(compute_bodies.compute(wanted.name, wanted, here), 201 if former is None else 200)


@router.delete("/{name}")
def delete(name: str, here: Here, action: Action = "Detach") -> Response:
    """Detach: the cluster itself stays as it is. Raises Error Conflict for one that is used."""
    if key(action) != "detach":
        message = f"underlyingResourceAction is {action!r}; allowed: Detach"
        raise Error("Unsupported", message, target=name, hint="ml compute detach; clusters are not deleted from here")
    _refuse_built_in(here, name)
    gone = here.store.delete_compute(name)
    here.wake()
    return Response(status_code=200 if gone else 204)


@router.post("/{name}/listNodes")
def list_nodes(name: str, here: Here) -> dict[str, Any]:
    """The nodes of a cluster with what they have and what is asked for, in all and of each."""
    found = _find(here, name)
    if found is None:
        raise Error("Unsupported", "compute local is this machine; it has no nodes", target=name)
    nodes = here.runtime.capacity(found.name)
    if nodes is None:
        message = f"nothing is known of the nodes of compute {found.name}"
        hint = "the cluster does not answer, or this server may not list its nodes (a ClusterRole with nodes: list)"
        raise Error("KubernetesUnaccessible", message, target=name, hint=hint)
    return {"nodes": [compute_bodies.node(node) for node in nodes], "gpus": compute_bodies.gpus(nodes)}


@router.get("/{name}/vmSizes")
def list_sizes(name: str, here: Here) -> dict[str, Any]:
    """The instance types that deployments on the compute can name, in the words of Azure's virtual machine sizes."""
    found = _find(here, name)
    if found is None:
        return {"value": [compute_bodies.size_here(one) for one in instance_types.INSTANCE_TYPES.values()]}
    own = {key(one.name) for one in found.instance_types}
    return {"value": [compute_bodies.size(one, own=key(one.name) in own) for one in instance_types.shapes(found)]}


def _this_machine(here: Services) -> list[tuple[str, Compute | None]]:
    return [(LOCAL, None)] if here.default_compute == LOCAL else []


def _find(here: Services, name: str) -> Compute | None:
    """The cluster, or None for this machine. Raises Error("ResourceNotFound")."""
    return None if key(name) == LOCAL and here.default_compute == LOCAL else references.compute(here, name)


def _refuse_built_in(here: Services, name: str) -> None:
    """What the server brings along is set up with the server. Raises Error("Conflict")."""
    if key(name) not in (LOCAL, BUILT_IN, key(here.default_compute)):
        return
    message = f"compute {key(name)} is built in: it is neither attached, changed nor detached"
    hint = "its instance types are in the file ML_INSTANCE_TYPES (the chart's value instanceTypes)"
    raise Error("Conflict", message, target=name, hint=hint if key(name) != LOCAL else "choose another name")
