"""Requests about autoscale settings.

Decides their paths, how a setting is changed while others may change it too, and that a result is
flat as that of ``az``. Must not know what a profile means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from amphitrite.cli.resources import conditional_updates
from amphitrite.schemas.names import PROVIDER, deployment_id, endpoint_id

if TYPE_CHECKING:
    import httpx

    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.session.session import Session

API = {"api-version": "2022-10-01"}
#: The fields that a write sends.
_SENT = ("location", "tags", "properties")
_PROPERTIES = (
    *("enabled", "notifications", "predictiveAutoscalePolicy", "profiles"),
    *("targetResourceLocation", "targetResourceUri"),
)

Setting = dict[str, Any]


def show(client: Client, name: str) -> Setting:
    return flat(client.get(_path(client, name), **API))


def list_all(client: Client) -> list[Setting]:
    return [flat(one) for one in client.list_all(_path(client), **API)]


def put(session: Session, name: str, body: Setting) -> Setting:
    """Creates or replaces a setting."""
    return _written(session, session.client.send("PUT", _path(session.client, name), params=API, json=body))


def change(session: Session, name: str, edit: Callable[[Setting], None]) -> Setting:
    """Reads a setting, lets ``edit`` change it in place and writes it back, again if somebody else
    was faster."""
    client = session.client
    path = _path(client, name)

    def write(answer: httpx.Response, headers: dict[str, str]) -> Setting:
        body = {field: value for field, value in answer.json().items() if field in _SENT}
        edit(body)
        return _written(session, client.send("PUT", path, params=API, json=body, headers=headers))

    return conditional_updates.update(client, path, [], write)


def delete(client: Client, name: str) -> bool:
    """Whether there was one."""
    return client.send("DELETE", _path(client, name), params=API).status_code != 204


def flat(body: Mapping[str, Any]) -> Setting:
    """A setting as ``az`` shows it: properties beside the rest, in the order of their names. Here
    ``status`` says what it comes to now."""
    properties = {name: body["properties"].get(name) for name in _PROPERTIES}
    group = str(body["id"]).split("/")[4]
    shown = {name: value for name, value in body.items() if name not in ("properties", "systemData", "warnings")}
    return dict(sorted({**shown, **properties, "resourceGroup": group}.items()))


def resource_id(client: Client, given: str, namespace: str | None, parent: str | None, kind: str | None) -> str:
    """The ARM id of ``--resource``: an id, or a name with its type, or ``ENDPOINT/DEPLOYMENT`` or
    ``ENDPOINT`` of this workspace."""
    if given.startswith("/"):
        return given
    if kind is None:
        endpoint, slash, deployment = given.partition("/")
        workspace = client.workspace
        return deployment_id(workspace, endpoint, deployment) if slash else endpoint_id(workspace, endpoint)
    provider, slash, rest = kind.partition("/")
    # The type may contain its provider, as Microsoft.MachineLearningServices/workspaces/….
    namespace, kind = (provider, rest) if slash and "." in provider else (namespace or PROVIDER, kind)
    words = kind.split("/")
    group = client.workspace.partition("/providers/")[0]
    above = f"{parent.strip('/')}/" if parent else ""
    return f"{group}/providers/{namespace}/{above}{words[-1]}/{given}"


def _path(client: Client, name: str | None = None) -> str:
    group = client.workspace.partition("/providers/")[0]
    below = "" if name is None else f"/{quote(name, safe='')}"
    return f"{group}/providers/microsoft.insights/autoscaleSettings{below}"


def _written(session: Session, answer: httpx.Response) -> Setting:
    body = answer.json()
    for warning in body.get("warnings", ()):
        session.note(f"warning: {warning}")
    return flat(body)
