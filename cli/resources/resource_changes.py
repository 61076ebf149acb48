"""Creates, replaces and updates endpoints and deployments.

Decides that a creation never overwrites a resource, that an update never overwrites a concurrent
one, and when inline models are registered. Must not know options or files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amphitrite.cli.assets import environment_registration, model_registration
from amphitrite.cli.documents import document_files, document_input, edits
from amphitrite.cli.documents.document_files import Document
from amphitrite.cli.documents.document_input import Draft
from amphitrite.cli.documents.edits import Edit
from amphitrite.cli.resources import lookups
from amphitrite.cli.session import operation_polling
from amphitrite.schemas import wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import compute_id

if TYPE_CHECKING:
    import httpx

    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.session.session import Session

#: The location of the only workspace, which every resource carries.
LOCATION = "local"
#: Attempts of an update that conflicts with concurrent ones.
_ATTEMPTS = 5
_TRAFFIC = ("traffic", "mirror_traffic")


def put_endpoint(session: Session, draft: Draft, *, create: bool, no_wait: bool = False) -> bool:
    """Create or replace an endpoint.

    Returns whether the outcome is known: not with ``no_wait``. Raises Error.
    """
    name = draft.document["name"]
    path = lookups.endpoint_path(session.client, name)
    body = endpoint_body(session.client, draft)
    update = "ml online-endpoint update" if create else None
    return _carry_out(session, f"endpoint {name}", draft, lambda: _put(session.client, path, body, update), no_wait)


def update_endpoint(
    session: Session,
    file: Document | None,
    name: str,
    options: Mapping[str, Any],
    wanted: Sequence[Edit],
    no_wait: bool,
) -> bool:
    """Update an endpoint.

    Traffic that ``file`` does not set stays as it is. Returns and raises as put_endpoint.
    """
    edits.refuse_fixed(wanted, "managed_online_endpoint", {"name": name})

    def edited(resource: Any) -> Draft:
        current = wire.endpoint_from_wire(resource["name"], resource)
        document = file or Document(f"endpoint {name}", current, Path())
        for field in _TRAFFIC:
            if file is not None and field in current and field not in file.value:
                document = document_files.with_value(document, (field,), current[field], f"endpoint {name}")
        return document_input.judged_endpoint(edits.apply(document_input.with_options(document, options), wanted))

    path = lookups.endpoint_path(session.client, name)
    return _update(
        session, f"endpoint {name}", path, edited, lambda draft: endpoint_body(session.client, draft), no_wait
    )


def put_deployment(session: Session, draft: Draft, *, create: bool, no_wait: bool = False) -> bool:
    """Create or replace a deployment, after its inline model.

    Returns and raises as put_endpoint.
    """
    client, document = session.client, draft.document
    endpoint, name = document["endpoint_name"], document["name"]
    path = lookups.deployment_path(client, endpoint, name)
    client.get(lookups.endpoint_path(client, endpoint))  # before anything is uploaded
    body = _deployment_body(session, draft)
    update = "ml online-deployment update" if create else None
    return _carry_out(session, name, draft, lambda: _put(client, path, body, update), no_wait)


def update_deployment(session: Session, endpoint: str, name: str, wanted: Sequence[Edit], no_wait: bool) -> bool:
    """Update fields of a deployment. Returns and raises as put_endpoint."""
    edits.refuse_fixed(wanted, "managed_online_deployment", {"name": name, "endpoint_name": endpoint})

    def edited(resource: Any) -> Draft:
        current = wire.deployment_from_wire(endpoint, resource["name"], resource)
        return document_input.judged_deployment(edits.apply(Document(f"deployment {name}", current, Path()), wanted))

    path = lookups.deployment_path(session.client, endpoint, name)
    return _update(session, name, path, edited, lambda draft: _deployment_body(session, draft), no_wait)


def create_with_deployments(session: Session, endpoint: Draft, inline: Sequence[Draft]) -> None:
    """Create an endpoint, then its deployments, then its traffic, which needs both.

    Raises Error.
    """
    bare = {field: value for field, value in endpoint.document.items() if field not in _TRAFFIC}
    put_endpoint(session, Draft(bare, endpoint.source), create=True)
    for deployment in inline:
        put_deployment(session, deployment, create=True)
    if any(endpoint.document.get(field) for field in _TRAFFIC):
        put_endpoint(session, endpoint, create=False)


def _update(
    session: Session,
    what: str,
    path: str,
    edited: Callable[[Any], Draft],
    body: Callable[[Draft], dict[str, Any]],
    no_wait: bool,
) -> bool:
    """Read, edit and write back a resource; retry if it changed meanwhile (If-Match)."""
    client = session.client
    for attempt in range(_ATTEMPTS):
        answer = client.send("GET", path)
        draft = edited(answer.json())
        headers = {"If-Match": answer.headers["ETag"]}
        put = partial(client.send, "PUT", path, json=body(draft), headers=headers)
        try:
            return _carry_out(session, what, draft, put, no_wait)
        except Error as error:
            if error.code != "PreconditionFailed" or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _carry_out(session: Session, what: str, draft: Draft, send: Callable[[], httpx.Response], no_wait: bool) -> bool:
    with draft.located():
        return operation_polling.carry_out(session, what, send, no_wait=no_wait)


def _put(client: Client, path: str, body: dict[str, Any], update: str | None) -> httpx.Response:
    """Send the PUT.

    ``update``: the command for an existing resource, in the hint; None: replace the resource.
    """
    if update is None:
        return client.send("PUT", path, json=body)
    try:
        return client.send("PUT", path, json=body, headers={"If-None-Match": "*"})
    except Error as error:
        if error.code != "PreconditionFailed":
            raise
        name = path.rpartition("/")[2]
        raise Error("Conflict", f"{name} already exists", target=path, hint=f"run `{update}` to change it") from error


def endpoint_body(client: Client, draft: Draft) -> dict[str, Any]:
    """The wire body, without shares of 0: ``show`` adds them for deployments without traffic."""
    shares = {field: draft.document[field] for field in _TRAFFIC if field in draft.document}
    kept = {field: {name: share for name, share in share_of.items() if share} for field, share_of in shares.items()}
    document = {**draft.document, **kept}
    if "compute" in document:
        document["compute"] = compute_id(client.workspace, document["compute"])
    return wire.endpoint_to_wire(document, LOCATION)


def _deployment_body(session: Session, draft: Draft) -> dict[str, Any]:
    """The wire body. Raises Error for unsupported fields before anything is uploaded."""
    document = draft.document
    if unserved := environment_registration.unserved(document):
        with draft.located():
            raise environment_registration.refused(unserved)
    environment = document.get("environment")
    inline = document.get("model")
    if isinstance(inline, Mapping):
        with session.progress(f"model of {document['name']}") as progress:
            document = {**document, "model": model_registration.register_inline(session.client, inline, progress)}
    if isinstance(environment, Mapping):
        with draft.located():
            document = {
                **document,
                "environment": environment_registration.register_inline(session.client, environment),
            }
    return wire.deployment_to_wire(
        document, LOCATION, lambda kind, text: model_registration.resolve(session.client, kind, text)
    )
