"""Creates an endpoint or a deployment, or goes on with a creation that the same document began.

Decides what an existing resource of the same name means: with the same document the command follows
it (it may have been interrupted), with another one it is refused. The control plane compares the
documents (``?dryRun=true``). Must not know options or files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amphitrite.schemas.errors import Error

if TYPE_CHECKING:
    import httpx

    from amphitrite.cli.session.session import Session

_SHARES = ("traffic", "mirrorTraffic")


def create(session: Session, path: str, body: dict[str, Any], command: str) -> httpx.Response:
    """Send the PUT of a new resource. ``command``: its group, such as ``ml online-endpoint``.

    Raises Error Conflict if the resource exists with another document, or is being deleted.
    """
    try:
        return session.client.send("PUT", path, json=body, headers={"If-None-Match": "*"})
    except Error as error:
        if error.code != "PreconditionFailed":
            raise
        return _go_on(session, path, body, command, error)


def _go_on(session: Session, path: str, body: dict[str, Any], command: str, refusal: Error) -> httpx.Response:
    client, name = session.client, f"{command.rpartition('-')[2]} {path.rpartition('/')[2]}"
    try:
        answer = client.send("GET", path)
    except Error as error:
        if error.code != "ResourceNotFound":
            raise
        # Its deletion has ended since.
        return client.send("PUT", path, json=body, headers={"If-None-Match": "*"})
    resource = answer.json()
    state = resource["properties"]["provisioningState"]
    if state == "Deleting":
        names = f"-n {path.split('/')[-1]}" + (f" -e {path.split('/')[-3]}" if "/deployments/" in path else "")
        hint = f"wait until it is gone with `{command} wait {names} --deleted`, then repeat the command"
        raise Error("Conflict", f"{name} is being deleted", target=path, hint=hint) from refusal
    # Traffic that the document does not set is not part of it: other commands move it later.
    now = {field: resource["properties"].get(field) or {} for field in _SHARES if field in body["properties"]}
    unset = {field: shares for field, shares in now.items() if not body["properties"][field]}
    body = {**body, "properties": {**body["properties"], **unset}}
    # A control plane that knew no dryRun would refuse this instead of replacing the resource.
    headers = {"If-None-Match": "*"}
    answered = client.send("PUT", path, params={"dryRun": "true"}, json=body, headers=headers).json()
    change = answered.get("change")
    if change not in ("none", "retry"):
        hint = f"run `{command} update` to change it"
        raise Error("Conflict", f"{name} already exists with another document", target=path, hint=hint) from refusal
    if change == "retry":
        session.note(f"note: {name} exists with this document, and has failed; it is tried again")
    elif state != "Succeeded":
        session.note(f"note: {name} is already {state.lower()} with this document; the command follows it")
    else:
        session.note(f"note: {name} exists already with this document")
    return client.send("PUT", path, json=body, headers={"If-Match": answer.headers["ETag"]})
