"""``ml online-endpoint``: one function for each verb.

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
from amphitrite.cli.verbs import azure_only, waits
from amphitrite.cli.verbs.delivery import endpoint_rollout, endpoint_traffic
from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    from amphitrite.cli.terminal.tables import Table

app = group("online-endpoint", "Scoring addresses, their traffic and their keys.")

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the endpoint.", show_default=False)]


def _table(session: Session, value: Any, **options: Any) -> Table:
    from amphitrite.cli.resources import resource_tables

    return resource_tables.endpoints(session, value)


def _metrics_table(session: Session, value: Any, name: str, **options: Any) -> Table:
    from amphitrite.cli.resources import resource_tables

    return resource_tables.metrics(session, value, name)


@verb(app, "create", table=_table)
def create(
    session: Session,
    file: options.File = None,
    name: Annotated[str | None, typer.Option("--name", "-n", help="Name. Overrides the file.")] = None,
    auth_mode: Annotated[
        str | None, typer.Option("--auth-mode", help="key, aml_token or aad_token. Overrides the file. [default: key]")
    ] = None,
    set_: options.Set = None,
    no_wait: options.NoWait = False,
    locally: local_deployments.Local = False,
    web: azure_only.Web = False,
) -> dict[str, Any] | None:
    """Create an endpoint, with the deployments and the traffic in its document."""
    azure_only.refuse(web=web)
    from amphitrite.cli.documents import document_input, edits
    from amphitrite.cli.resources import lookups, resource_changes

    submission, inline = document_input.read_endpoint(
        file, options.set_options(name=name, auth_mode=auth_mode), edits.parse_edits(set_)
    )
    if locally:
        local_deployments.require_document(session.client, submission.document)
    if inline:
        if no_wait:
            raise Error(
                "UsageError", "--no-wait is not possible: the deployments in the document need the endpoint first"
            )
        resource_changes.create_with_deployments(session, submission, inline)
    elif not resource_changes.put_endpoint(session, submission, create=True, no_wait=no_wait):
        return None
    return lookups.endpoint(session.client, submission.document["name"])


@verb(app, "show", table=_table)
def show(
    session: Session, name: Name, locally: local_deployments.Local = False, web: azure_only.Web = False
) -> dict[str, Any]:
    """Show an endpoint."""
    azure_only.refuse(web=web)
    from amphitrite.cli.resources import lookups

    if locally:
        local_deployments.require_endpoint(session.client, name)
    return lookups.endpoint(session.client, name) | ({"location": local_deployments.LOCATION} if locally else {})


@verb(app, "list", table=_table)
def list_(session: Session, locally: local_deployments.Local = False) -> list[dict[str, Any]]:
    """List all endpoints of the workspace."""
    from amphitrite.schemas.wire.display import show_endpoint

    client = session.client
    if locally:
        local_deployments.require(client)
    resources = client.list_all(f"{client.workspace}/onlineEndpoints")
    return [show_endpoint(resource) for resource in resources if not locally or local_deployments.is_local(resource)]


@verb(app, "update", table=_table)
def update(
    session: Session,
    name: Annotated[str | None, typer.Option("--name", "-n", help="Name. Overrides the file.")] = None,
    file: options.File = None,
    traffic: Annotated[
        list[str] | None,
        typer.Option("--traffic", "-r", help='Traffic in percent of each deployment: "blue=90 green=10".'),
    ] = None,
    mirror_traffic: Annotated[
        list[str] | None, typer.Option("--mirror-traffic", help='Mirrored traffic in percent: "green=10".')
    ] = None,
    set_: options.Set = None,
    add: options.Add = None,
    remove: options.Remove = None,
    force_string: options.ForceString = False,
    reason: options.Reason = None,
    no_wait: options.NoWait = False,
    locally: local_deployments.Local = False,
    web: azure_only.Web = False,
) -> dict[str, Any] | None:
    """Change an endpoint. A file without traffic does not change the traffic."""
    azure_only.refuse(web=web)
    from amphitrite.cli.documents import document_input, document_kinds, edits
    from amphitrite.cli.resources import lookups, resource_changes, rollouts

    session.reason = reason or ""
    shares = options.set_options(
        traffic=document_input.parse_shares("--traffic", traffic),
        mirror_traffic=document_input.parse_shares("--mirror-traffic", mirror_traffic),
    )
    document = document_input.read_source(file, options.set_options(name=name)) if file is not None else None
    if document is not None:
        document_kinds.require(document, "endpoint")
    if name is None:
        name = document_input.endpoint_name(document)
    if locally:
        local_deployments.require_endpoint(session.client, name)
    field_edits = edits.parse_edits(set_, add, remove, force_string=force_string)
    if document is None and not shares and not field_edits:
        session.note("note: no option says what to change: ml online-endpoint update --help")
    is_complete = resource_changes.update_endpoint(session, document, name, shares, field_edits, no_wait)
    if not is_complete:
        return None
    shown = lookups.endpoint(session.client, name)
    if shown.get("rollout"):
        rollouts.note_active(session, name)
    return shown


@verb(app, "delete")
def delete(
    session: Session,
    name: Name,
    yes: options.Yes = False,
    no_wait: options.NoWait = False,
    ignore_not_found: options.IgnoreNotFound = False,
    locally: local_deployments.Local = False,
) -> None:
    """Delete an endpoint and all its deployments. One that does not exist is an error."""
    from amphitrite.cli.resources import deletions

    if deletions.has_endpoint(session, name, ignore_not_found=ignore_not_found):
        if locally:
            local_deployments.require_endpoint(session.client, name)
        session.confirm(f"Delete endpoint {name} and its deployments?", yes)
        deletions.delete_endpoint(session, name, no_wait=no_wait)


@verb(app, "wait")
def wait(
    session: Session,
    name: Name,
    created: waits.Created = False,
    updated: waits.Updated = False,
    deleted: waits.Deleted = False,
    exists: waits.Exists = False,
    custom: waits.Custom = None,
    interval: waits.Interval = waits.INTERVAL_S,
    timeout: waits.Timeout = waits.TIMEOUT_S,
) -> None:
    """Wait for an endpoint; without a condition, until its last change has succeeded or failed.

    Exit code 1: the change failed (its cause is printed), or the time is over.
    """
    from amphitrite.cli.resources import lookups, subjects, waiting

    condition = waits.condition(created=created, updated=updated, deleted=deleted, exists=exists, custom=custom)
    client = session.client
    waiting.until(
        session,
        subjects.endpoint(name),
        lambda: lookups.endpoint(client, name),
        condition,
        interval_s=interval,
        timeout_s=timeout,
    )


@verb(app, "get-credentials")
def get_credentials(session: Session, name: Name) -> dict[str, Any]:
    """Print the keys or the token for scoring requests."""
    from amphitrite.cli.resources import lookups

    return lookups.credentials(session.client, name)


@verb(app, "regenerate-keys")
def regenerate_keys(
    session: Session,
    name: Name,
    key_type: Annotated[str, typer.Option("--key-type", help="Key to replace: primary or secondary.")] = "primary",
    no_wait: options.NoWait = False,
) -> None:
    """Replace one key by a new one. The other key stays valid.

    For an endpoint with auth_mode aml_token: revoke all tokens given out so far.
    """
    from amphitrite.cli.resources import lookups, subjects
    from amphitrite.cli.session import operation_polling

    if key_type.lower() not in ("primary", "secondary"):
        raise Error("UsageError", "Key type must be 'primary' or 'secondary'.")
    client = session.client
    tokens = lookups.endpoint(client, name)["auth_mode"] == "aml_token"
    address, body = lookups.endpoint_path(client, name), {"keyType": key_type.capitalize()}
    operation_polling.run_operation(
        session,
        subjects.endpoint(name),
        lambda: client.send("POST", f"{address}/regenerateKeys", json=body),
        outcome="tokens revoked" if tokens else f"{key_type.lower()} key regenerated",
        no_wait=no_wait,
    )


@verb(app, "invoke")
def invoke(
    session: Session,
    name: Name,
    request_file: Annotated[
        str | None, typer.Option("--request-file", "-r", help="File with the JSON body of the request; - for stdin.")
    ] = None,
    deployment_name: Annotated[
        str | None,
        typer.Option(
            "--deployment-name",
            "--deployment",
            "-d",
            help="Send the request to this deployment, regardless of the traffic.",
        ),
    ] = None,
    locally: local_deployments.Local = False,
) -> str:
    """Send a request to an endpoint.

    Prints the response body as a JSON string, or as plain text with -o tsv.
    """
    from amphitrite.cli.resources import scoring

    if locally:
        local_deployments.require_endpoint(session.client, name)
    answer = scoring.invoke(session.client, name, request_file, deployment_name)
    if request_file is None:
        session.note("note: the request had no body: --request-file sends one")
    return answer


@verb(app, "metrics", table=_metrics_table)
def metrics(
    session: Session,
    name: Name,
    names: Annotated[
        list[str] | None,
        typer.Option("--metrics", "-m", help='Show these metrics over time: "RequestsPerMinute RequestLatency_P95".'),
    ] = None,
    deployment_name: Annotated[
        str | None, typer.Option("--deployment-name", "--deployment", "-d", help="Only this deployment.")
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="With --metrics, one row for each value of a dimension: deployment, statusCode, ..."),
    ] = None,
    timespan: Annotated[
        str, typer.Option("--timespan", help="Time up to now, such as 10m or PT10M, or START/END.")
    ] = "PT1H",
    interval: Annotated[
        str | None,
        typer.Option("--interval", help="With --metrics, the time of one row: 1m, 5m, ..., FULL. [default: 1m]"),
    ] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Show when each key was last used.")] = False,
) -> list[dict[str, Any]]:
    """Show requests, errors and latencies of each deployment; with --metrics, metrics over time."""
    from amphitrite.cli.resources import endpoint_metrics, lookups
    from amphitrite.cli.session import near_names
    from amphitrite.cli.terminal import ages

    client = session.client
    timespan = ages.iso_duration(timespan)
    if keys:
        if names or by or interval or deployment_name:
            raise Error(
                "UsageError", "--keys cannot be combined with other options: a key belongs to the whole endpoint"
            )
    elif not names and (by or interval):
        raise Error("UsageError", "--by and --interval need --metrics")
    with near_names.suggested(client, *lookups.endpoint_places(client, name)):
        if keys:
            return endpoint_metrics.key_usage(client, name)
        if names:
            period = ages.iso_duration(interval or "1m")
            rows = endpoint_metrics.time_series(client, name, names, deployment_name, by or [], timespan, period)
        else:
            rows = endpoint_metrics.totals(client, name, deployment_name, timespan)
    if deployment_name and not endpoint_metrics.has_numbers(rows):
        # Refuses a misspelt name. A deleted deployment may have numbers.
        lookups.deployment(client, name, deployment_name)
    return rows


endpoint_traffic.register(app)
endpoint_rollout.register(app)
