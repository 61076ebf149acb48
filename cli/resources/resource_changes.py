"""Creates, replaces and updates endpoints and deployments.

Decides that an update never overwrites a concurrent one, when inline models are registered, and
what is said after Ctrl-C. Must not know options or files; ``creations`` decides what an existing
resource means for a creation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amphitrite.cli.assets import environment_registration, model_registration
from amphitrite.cli.documents import document_files, document_input, edits
from amphitrite.cli.documents.document_files import Document
from amphitrite.cli.documents.document_input import Submission
from amphitrite.cli.documents.edits import Edit
from amphitrite.cli.resources import conditional_updates, creations, lookups, subjects, traffic_names
from amphitrite.cli.resources.traffic_names import SHARES
from amphitrite.cli.session import interruption, near_names, operation_polling
from amphitrite.cli.session.interruption import Change
from amphitrite.schemas import wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import compute_id
from amphitrite.schemas.wire.display import show_endpoint

if TYPE_CHECKING:
    import httpx

    from amphitrite.cli.session.near_names import Place
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.session.session import Session

#: The location of the only workspace, which every resource carries.
LOCATION = "local"
_ENDPOINT, _DEPLOYMENT = "ml online-endpoint", "ml online-deployment"


def put_endpoint(
    session: Session, submission: Submission, *, create: bool, no_wait: bool = False, tell: bool = True
) -> bool:
    """Create or replace an endpoint. ``tell``: print a line about the outcome.

    Returns whether the outcome is known: not with ``no_wait``. Raises Error.
    """
    name = submission.document["name"]
    path = lookups.endpoint_path(session.client, name)
    body = endpoint_body(session.client, submission)
    return _carry_out(
        session,
        subjects.endpoint(name),
        submission,
        lambda: _put(session, path, body, _ENDPOINT if create else None),
        _outcome(create, tell),
        no_wait,
        _endpoint_change(name, create=create),
    )


def update_endpoint(
    session: Session,
    file: Document | None,
    name: str,
    options: Mapping[str, Any],
    field_edits: Sequence[Edit],
    no_wait: bool,
    tell: bool = True,
) -> bool:
    """Update an endpoint.

    Traffic that ``file`` does not set stays as it is. ``tell``: print a line about the outcome, and
    about deployments that lose their traffic without being named. Returns and raises as
    put_endpoint.
    """
    edits.refuse_immutable_fields(field_edits, "managed_online_endpoint", {"name": name})
    lost: str | None = None

    def edit(resource: Any) -> Submission:
        nonlocal lost
        current = wire.endpoint_from_wire(resource["name"], resource)
        document = file or Document(f"endpoint {name}", current, Path())
        for field in SHARES:
            if file is not None and field in current and field not in file.value:
                document = document_files.with_value(document, (field,), current[field], f"endpoint {name}")
        submission = document_input.validate_endpoint(
            edits.apply(document_input.with_options(document, options), field_edits)
        )
        lost = traffic_names.lost_traffic(show_endpoint(resource), submission.document)
        return submission

    path = lookups.endpoint_path(session.client, name)
    is_complete = _update(
        session,
        subjects.endpoint(name),
        path,
        lookups.endpoint_places(session.client, name),
        edit,
        lambda submission: endpoint_body(session.client, submission),
        _outcome(False, tell),
        no_wait,
        _endpoint_change(name, create=False),
    )
    if lost and tell:
        session.note(lost)
    return is_complete


def put_deployment(
    session: Session, submission: Submission, *, create: bool, no_wait: bool = False, tell: bool = True
) -> bool:
    """Create or replace a deployment, after its inline model.

    ``tell``: as for put_endpoint. Returns and raises as put_endpoint.
    """
    client, document = session.client, submission.document
    endpoint, name = document["endpoint_name"], document["name"]
    path = lookups.deployment_path(client, endpoint, name)
    change = _deployment_change(endpoint, name, create=create)
    with interruption.explained(change):
        require_endpoint(client, submission)  # before anything is uploaded
        body = _deployment_body(session, submission)
    group = _DEPLOYMENT if create else None
    return _carry_out(
        session,
        subjects.deployment(endpoint, name),
        submission,
        lambda: _put(session, path, body, group),
        _outcome(create, tell),
        no_wait,
        change,
    )


def require_endpoint(client: Client, submission: Submission) -> None:
    """Raises Error ResourceNotFound, with the nearest name, if there is no endpoint for this
    deployment."""
    name = submission.document["endpoint_name"]
    with submission.naming("endpoint_name"), near_names.suggested(client, *lookups.endpoint_places(client, name)):
        client.get(lookups.endpoint_path(client, name))


def _refuse_scaled_count(current: Mapping[str, Any], edited: Mapping[str, Any]) -> None:
    """Raises Error BadArgument for another number of instances where the utilization sets it."""
    settings = edited.get("scale_settings") or {}
    scaled = str(settings.get("type")).lower() == "target_utilization" and settings.get("mode") != "recommend"
    if scaled and edited.get("instance_count") != current.get("instance_count"):
        message = "instance_count is set by scale_settings of type target_utilization"
        hint = "set scale_settings.min_instances or max_instances, or scale_settings.type=default"
        raise Error("BadArgument", message, target="instance_count", hint=hint)


def update_deployment(session: Session, endpoint: str, name: str, field_edits: Sequence[Edit], no_wait: bool) -> bool:
    """Update fields of a deployment. Returns and raises as put_endpoint."""
    edits.refuse_immutable_fields(field_edits, "managed_online_deployment", {"name": name, "endpoint_name": endpoint})

    def edit(resource: Any) -> Submission:
        current = wire.deployment_from_wire(endpoint, resource["name"], resource)
        edited = edits.apply(Document(f"deployment {name}", current, Path()), field_edits)
        _refuse_scaled_count(current, edited.value)
        return document_input.validate_deployment(edited)

    path = lookups.deployment_path(session.client, endpoint, name)
    return _update(
        session,
        subjects.deployment(endpoint, name),
        path,
        lookups.deployment_places(session.client, endpoint, name),
        edit,
        lambda submission: _deployment_body(session, submission),
        _outcome(False, True),
        no_wait,
        _deployment_change(endpoint, name, create=False),
    )


def create_with_deployments(session: Session, endpoint: Submission, inline: Sequence[Submission]) -> None:
    """Create an endpoint, then its deployments, then its traffic, which needs both.

    Raises Error.
    """
    with endpoint.with_locations():
        traffic_names.require_known(endpoint.document, [one.document["name"] for one in inline])
    bare = {field: value for field, value in endpoint.document.items() if field not in SHARES}
    put_endpoint(session, Submission(bare, endpoint.source), create=True)
    for deployment in inline:
        put_deployment(session, deployment, create=True)
    if any(endpoint.document.get(field) for field in SHARES):
        put_endpoint(session, endpoint, create=False)


def _update(
    session: Session,
    subject: str,
    path: str,
    places: list[Place],
    edit: Callable[[Any], Submission],
    body: Callable[[Submission], dict[str, Any]],
    outcome: str | None,
    no_wait: bool,
    change: Change,
) -> bool:
    """Read, edit and write back a resource; retry if it changed meanwhile (If-Match).

    ``places``: where to look for its name if nothing is at ``path``.
    """

    def write(answer: httpx.Response, headers: Mapping[str, str]) -> bool:
        submission = edit(answer.json())
        put = partial(session.client.send, "PUT", path, json=body(submission), headers=headers)
        return _carry_out(session, subject, submission, put, outcome, no_wait, change)

    return conditional_updates.update(session.client, path, places, write)


def _carry_out(
    session: Session,
    subject: str,
    submission: Submission,
    send: Callable[[], httpx.Response],
    outcome: str | None,
    no_wait: bool,
    change: Change,
) -> bool:
    notes: list[str] = []

    def noting() -> httpx.Response:
        answer = send()
        notes.extend((answer.json()["properties"].get("status") or {}).get("notes", ()))
        return answer

    with submission.with_locations(), interruption.explained(change):
        complete = operation_polling.run_operation(
            session, subject, change.sending(noting), outcome=outcome, no_wait=no_wait
        )
    for note in notes:
        session.note(f"note: {note}")
    return complete


def _outcome(create: bool, tell: bool) -> str | None:
    """kubectl's word for a success; None if the caller tells it."""
    return ("created" if create else "configured") if tell else None


def _put(session: Session, path: str, body: dict[str, Any], create: str | None) -> httpx.Response:
    """Send the PUT. ``create``: the command group of a new resource; None: replace the resource."""
    if create is not None:
        return creations.create(session, path, body, create)
    return session.client.send("PUT", path, json=body)


def _endpoint_change(name: str, *, create: bool) -> Change:
    return _change(_ENDPOINT, f"endpoint {name}", f"-n {name}", create)


def _deployment_change(endpoint: str, name: str, *, create: bool) -> Change:
    return _change(_DEPLOYMENT, f"deployment {name}", f"-n {name} -e {endpoint}", create)


def _change(group: str, subject: str, names: str, create: bool) -> Change:
    undo = f"{group} delete {names} --yes" if create else f"{group} update {names} ..."
    return Change(
        f"{'creating' if create else 'updating'} {subject}",
        show=f"{group} show {names}",
        follow=f"{group} wait {names}",
        undo=undo,
    )


def endpoint_body(client: Client, submission: Submission) -> dict[str, Any]:
    """The wire body. It has shares of 0 too, so that the server checks their names."""
    document = dict(submission.document)
    if "compute" in document:
        document["compute"] = compute_id(client.workspace, document["compute"])
    return wire.endpoint_to_wire(document, LOCATION)


def _deployment_body(session: Session, submission: Submission) -> dict[str, Any]:
    """The wire body. Raises Error for unsupported fields before anything is uploaded."""
    document = submission.document
    if violations := environment_registration.unsupported_fields(document):
        with submission.with_locations():
            raise environment_registration.unsupported_error(violations)
    environment = document.get("environment")
    inline = document.get("model")
    if isinstance(inline, Mapping):
        subject = subjects.deployment(document["endpoint_name"], document["name"])
        with session.progress(f"model of {subject}") as progress:
            model = model_registration.register_inline(session.client, inline, progress)
        document = {**document, "model": str(model["id"])}
        for note in model_registration.notes(model):
            session.note(note)
    if isinstance(environment, Mapping):
        with submission.with_locations():
            document = {
                **document,
                "environment": environment_registration.register_inline(session.client, environment),
            }

    def resolve(kind: Any, text: str) -> str:
        with submission.naming(kind.removesuffix("s")):
            return model_registration.resolve_reference(session.client, kind, text)

    return wire.deployment_to_wire(document, LOCATION, resolve)
