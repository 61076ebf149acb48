"""``ml compute``: one function for each verb.

Decides the options and the output. Must not know YAML (``compute_documents``) or Kubernetes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.session import near_names
from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal import options
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import compute_id

if TYPE_CHECKING:
    from amphitrite.cli.documents.document_input import Submission
    from amphitrite.cli.terminal.tables import Table

app = group("compute", "Kubernetes clusters on which instances run.")

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the compute.", show_default=False)]


def _table(session: Session, value: Any, **options: Any) -> Table:
    from amphitrite.cli.resources import resource_tables

    return resource_tables.computes(session, value)


def _nodes_table(session: Session, value: Any, **options: Any) -> Table:
    from amphitrite.cli.resources import resource_tables

    return resource_tables.nodes(session, value)


@verb(app, "attach", table=_table)
def attach(
    session: Session,
    file: options.File = None,
    type_: Annotated[str | None, typer.Option("--type", "-t", help="Type: kubernetes. Overrides the file.")] = None,
    name: Annotated[str | None, typer.Option("--name", "-n", help="Name. Overrides the file.")] = None,
    kubeconfig: Annotated[
        str | None,
        typer.Option(
            "--kubeconfig", metavar="FILE", help="Kubeconfig with the address and credentials of the cluster."
        ),
    ] = None,
    in_cluster: Annotated[
        bool,
        typer.Option("--in-cluster", help="Attach the cluster in which the control plane runs. Needs no kubeconfig."),
    ] = False,
    namespace: Annotated[
        str | None, typer.Option("--namespace", help="Namespace of the instances. It must exist.")
    ] = None,
    set_: options.Set = None,
    no_wait: options.NoWait = False,
) -> dict[str, Any]:
    """Attach a namespace of a Kubernetes cluster.

    The control plane checks its access before it stores the compute.
    """
    from amphitrite.cli.resources import compute_documents
    from amphitrite.schemas import wire

    overrides = options.set_options(type=type_, name=name, kubeconfig=kubeconfig, namespace=namespace)
    submission = compute_documents.read_compute(
        file, overrides | ({"in_cluster": True} if in_cluster else {}), set_ or ()
    )
    with session.progress(f"compute/{submission.document['name']}") as progress, submission.with_locations():
        resource = compute_documents.create(session.client, submission.document)
        progress.done("attached")
    return wire.show_compute(resource)


@verb(app, "show", table=_table)
def show(session: Session, name: Name) -> dict[str, Any]:
    """Show a compute: its instance types, its nodes and its free GPUs."""
    from amphitrite.schemas import wire

    client = session.client
    address = compute_id(client.workspace, name)
    with near_names.suggested(client, (name, f"{client.workspace}/computes")):
        resource, nodes = client.get(address), None
    if resource["properties"]["computeType"] == "Kubernetes":
        try:
            nodes = client.send("POST", f"{address}/listNodes").json()
        except Error as error:
            if error.code != "KubernetesUnaccessible":
                raise
            session.note(f"note: {error.message}: {error.hint}")
    return wire.show_compute(resource, nodes)


@verb(app, "list", table=_table)
def list_(
    session: Session,
    type_: Annotated[
        str | None, typer.Option("--type", "-t", help="Only computes of this type: local or kubernetes.")
    ] = None,
    max_results: Annotated[
        int | None, typer.Option("--max-results", "-r", min=1, help="Maximum number of results.")
    ] = None,
) -> list[dict[str, Any]]:
    """List the computes of the workspace."""
    from amphitrite.schemas import wire

    client = session.client
    computes = [wire.show_compute(resource) for resource in client.list_all(f"{client.workspace}/computes")]
    return [compute for compute in computes if type_ is None or compute["type"] == type_.lower()][:max_results]


@verb(app, "update", table=_table)
def update(
    session: Session, name: Name, file: options.File = None, set_: options.Set = None, no_wait: options.NoWait = False
) -> dict[str, Any]:
    """Change a compute. The file holds the document of a compute, or instance types.

    A document with instance_types replaces all instance types of the compute. Azure's InstanceType
    and InstanceTypeList add instance types, or replace those of the same name.
    """
    from amphitrite.cli.resources import compute_documents
    from amphitrite.schemas import wire

    if file is None and not set_:
        raise Error("UsageError", "no change is specified", hint="add --file or --set")

    def edit(resource: Any) -> Submission:
        return compute_documents.read_update(name, wire.compute_from_wire(name, resource), file, set_ or ())

    return wire.show_compute(compute_documents.update(session.client, name, edit))


@verb(app, "detach")
def detach(
    session: Session,
    name: Name,
    yes: options.Yes = False,
    no_wait: options.NoWait = False,
    ignore_not_found: options.IgnoreNotFound = False,
) -> None:
    """Detach a compute that no endpoint uses. The cluster does not change."""
    client = session.client
    address = compute_id(client.workspace, name)
    if near_names.exists(session, address, (name, f"{client.workspace}/computes"), ignore_not_found=ignore_not_found):
        session.confirm(f"Detach compute {name}?", yes)
        client.send("DELETE", address, params={"underlyingResourceAction": "Detach"})


@verb(app, "list-nodes", table=_nodes_table)
def list_nodes(session: Session, name: Name) -> list[dict[str, Any]]:
    """List the nodes of a compute with their total and free resources."""
    from amphitrite.schemas import wire

    client = session.client
    answer = client.send("POST", f"{compute_id(client.workspace, name)}/listNodes").json()
    return [wire.show_node(node) for node in answer["nodes"]]


@verb(app, "list-sizes", columns=("name", "v_cp_us", "memory_gb", "gpus", "gpu_class", "origin"))
def list_sizes(
    session: Session,
    name: Annotated[
        str | None,
        typer.Option("--name", "-n", help="Name of the compute. [default: the compute of managed endpoints]"),
    ] = None,
) -> list[dict[str, Any]]:
    """List the instance types of a compute and their resources."""
    from amphitrite.schemas import wire

    client = session.client
    if name is None:
        computes = client.list_all(f"{client.workspace}/computes")
        name = next(compute["name"] for compute in computes if not compute["properties"]["isAttachedCompute"])
    sizes = client.get(f"{compute_id(client.workspace, name)}/vmSizes")["value"]
    return [wire.show_size(size) for size in sizes]
