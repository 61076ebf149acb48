"""``ml online-deployment``: one function for each verb.

Decides the options and the output. Must not know YAML (``document_input``) or HTTP
(``resource_changes``, ``lookups``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from amphitrite.cli.resources import local_deployments
from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal import options
from amphitrite.cli.verbs import azure_only, deployment_logs, waits
from amphitrite.cli.verbs.delivery import deployment_history, deployment_pauses
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from amphitrite.cli.terminal.tables import Table

app = group("online-deployment", "Models served behind an endpoint.")


_ENDPOINT = ("--endpoint-name", "--endpoint", "-e")
Name = Annotated[str, typer.Option("--name", "-n", help="Name of the deployment.", show_default=False)]
Endpoint = Annotated[str, typer.Option(*_ENDPOINT, help="Name of the endpoint.", show_default=False)]
OptionalName = Annotated[str | None, typer.Option("--name", "-n", help="Name. Overrides the file.")]
OptionalEndpoint = Annotated[str | None, typer.Option(*_ENDPOINT, help="Name of the endpoint. Overrides the file.")]
#: Azure ML's clients check a scoring script before they send it. Scoring scripts are not supported
#: here.
SkipScript = Annotated[
    bool,
    typer.Option("--skip-script-validation", help="Accepted without effect: there is no scoring script to validate."),
]


def _table(session: Session, value: Any, endpoint_name: str | None = None, **options: Any) -> Table:
    from amphitrite.cli.resources import resource_tables

    return resource_tables.deployments(session, value, endpoint_name or value["endpoint_name"])


@verb(app, "create", table=_table)
def create(
    session: Session,
    file: options.RequiredFile,
    name: OptionalName = None,
    endpoint_name: OptionalEndpoint = None,
    all_traffic: Annotated[
        bool,
        typer.Option(
            "--all-traffic", help="Send all traffic of the endpoint to the deployment as soon as it is ready."
        ),
    ] = False,
    set_: options.Set = None,
    no_wait: options.NoWait = False,
    skip_script_validation: SkipScript = False,
    locally: local_deployments.Local = False,
    local_enable_gpu: azure_only.LocalEnableGpu = False,
    vscode_debug: azure_only.VscodeDebug = False,
    package_model: azure_only.PackageModel = False,
    web: azure_only.Web = False,
) -> dict[str, Any] | None:
    """Create a deployment behind an endpoint."""
    azure_only.refuse(
        local_enable_gpu=local_enable_gpu, vscode_debug=vscode_debug, package_model=package_model, web=web
    )
    from amphitrite.cli.documents import document_input, edits
    from amphitrite.cli.resources import lookups, resource_changes

    if all_traffic and no_wait:
        raise Error("UsageError", "--all-traffic cannot be combined with --no-wait: the deployment must be ready first")
    submission = document_input.read_deployment(
        file, options.set_options(name=name, endpoint_name=endpoint_name), edits.parse_edits(set_)
    )
    endpoint, name = submission.document["endpoint_name"], submission.document["name"]
    if locally:
        local_deployments.require_endpoint(session.client, endpoint)
    is_complete = resource_changes.put_deployment(session, submission, create=True, no_wait=no_wait)
    if all_traffic or (locally and is_complete and not local_deployments.has_traffic(session.client, endpoint)):
        resource_changes.update_endpoint(session, None, endpoint, {"traffic": {name: 100}}, (), no_wait=False)
    return lookups.deployment(session.client, endpoint, name) if is_complete else None


@verb(app, "show", table=_table)
def show(
    session: Session,
    name: Name,
    endpoint_name: Endpoint,
    locally: local_deployments.Local = False,
    web: azure_only.Web = False,
) -> dict[str, Any]:
    """Show a deployment."""
    azure_only.refuse(web=web)
    from amphitrite.cli.resources import lookups

    if locally:
        local_deployments.require_endpoint(session.client, endpoint_name)
    return lookups.deployment(session.client, endpoint_name, name)


@verb(app, "list", table=_table)
def list_(session: Session, endpoint_name: Endpoint, locally: local_deployments.Local = False) -> list[dict[str, Any]]:
    """List the deployments of an endpoint."""
    from amphitrite.cli.resources import lookups
    from amphitrite.cli.session import near_names
    from amphitrite.schemas.wire.display import show_deployment

    client = session.client
    if locally:
        local_deployments.require_endpoint(client, endpoint_name)
    with near_names.suggested(client, *lookups.endpoint_places(client, endpoint_name)):
        found = list(client.list_all(f"{lookups.endpoint_path(client, endpoint_name)}/deployments"))
    return [show_deployment(r) for r in found]


@verb(app, "update", table=_table)
def update(
    session: Session,
    name: OptionalName = None,
    endpoint_name: OptionalEndpoint = None,
    file: options.File = None,
    set_: options.Set = None,
    add: options.Add = None,
    remove: options.Remove = None,
    force_string: options.ForceString = False,
    reason: options.Reason = None,
    no_wait: options.NoWait = False,
    skip_script_validation: SkipScript = False,
    locally: local_deployments.Local = False,
    vscode_debug: azure_only.VscodeDebug = False,
    package_model: azure_only.PackageModel = False,
    web: azure_only.Web = False,
) -> dict[str, Any] | None:
    """Replace a deployment by the file, or change fields with --set, --add and --remove."""
    azure_only.refuse(vscode_debug=vscode_debug, package_model=package_model, web=web)
    from amphitrite.cli.documents import document_input, edits
    from amphitrite.cli.resources import lookups, resource_changes

    session.reason = reason or ""
    field_edits = edits.parse_edits(set_, add, remove, force_string=force_string)
    if file is not None:
        submission = document_input.read_deployment(
            file, options.set_options(name=name, endpoint_name=endpoint_name), field_edits
        )
        name, endpoint_name = submission.document["name"], submission.document["endpoint_name"]
        if locally:
            local_deployments.require_endpoint(session.client, submission.document["endpoint_name"])
        is_complete = resource_changes.put_deployment(session, submission, create=False, no_wait=no_wait)
    elif name is None or endpoint_name is None:
        raise Error(
            "UsageError",
            "the name of the deployment or endpoint is missing",
            hint="add --name and --endpoint-name, or --file",
        )
    else:
        if locally:
            local_deployments.require_endpoint(session.client, endpoint_name)
        if not field_edits and reason is None:
            session.note("note: no option says what to change: ml online-deployment update --help")
        is_complete = resource_changes.update_deployment(session, endpoint_name, name, field_edits, no_wait)
    return lookups.deployment(session.client, endpoint_name, name) if is_complete else None


@verb(app, "delete")
def delete(
    session: Session,
    name: Name,
    endpoint_name: Endpoint,
    yes: options.Yes = False,
    no_wait: options.NoWait = False,
    ignore_not_found: options.IgnoreNotFound = False,
    locally: local_deployments.Local = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Delete a deployment that has traffic. The others take over its share, in proportion to theirs.",
        ),
    ] = False,
) -> None:
    """Delete a deployment. With traffic it needs --force. One that does not exist is an error."""
    from amphitrite.cli.resources import deletions

    if deletions.has_deployment(session, endpoint_name, name, ignore_not_found=ignore_not_found):
        if locally:
            local_deployments.require_endpoint(session.client, endpoint_name)
        session.confirm(f"Delete deployment {name} of endpoint {endpoint_name}?", yes)
        deletions.delete_deployment(session, endpoint_name, name, force=force, no_wait=no_wait)


@verb(app, "wait")
def wait(
    session: Session,
    name: Name,
    endpoint_name: Endpoint,
    created: waits.Created = False,
    updated: waits.Updated = False,
    deleted: waits.Deleted = False,
    exists: waits.Exists = False,
    custom: waits.Custom = None,
    interval: waits.Interval = waits.INTERVAL_S,
    timeout: waits.Timeout = waits.TIMEOUT_S,
) -> None:
    """Wait for a deployment; without a condition, until its last change has succeeded or failed.

    Exit code 1: the change failed (its cause is printed), or the time is over.
    """
    from amphitrite.cli.resources import lookups, subjects, waiting

    condition = waits.condition(created=created, updated=updated, deleted=deleted, exists=exists, custom=custom)
    client = session.client
    waiting.until(
        session,
        subjects.deployment(endpoint_name, name),
        lambda: lookups.deployment(client, endpoint_name, name),
        condition,
        interval_s=interval,
        timeout_s=timeout,
    )


deployment_history.register(app)
deployment_pauses.register(app)
deployment_logs.register(app)
