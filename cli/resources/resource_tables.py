"""The tables of resources: what ``-o table`` and ``-o wide`` show of each kind.

Decides the columns, and which further requests a table needs: the traffic of deployments, and the
instances behind endpoints. Takes what ``show`` and ``list`` print as JSON. Must not know how a
table looks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from amphitrite.cli.resources import lookups, traffic_names
from amphitrite.cli.terminal import durations
from amphitrite.cli.terminal.tables import Column, Table
from amphitrite.schemas.names import parse_asset, parse_compute
from amphitrite.schemas.wire.display import show_endpoint

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.session.session import Session

Item = Mapping[str, Any]
#: A column, and its cell for an item.
Field = tuple[Column, Callable[[Item], str]]

#: The name of a model without one, as Azure's SDK makes it: a digest.
_MADE_NAME = re.compile(r"^([0-9a-f]{12})[0-9a-f]{52}$")
#: Endpoints whose instances a table counts, with one request for each.
COUNTED_ENDPOINTS_MAX = 100


def endpoints(session: Session, value: Any) -> Table:
    """One endpoint, or a list. ``Ready`` counts the instances of all its deployments."""
    client, items = session.client, _items(value)
    counted = len(items) <= COUNTED_ENDPOINTS_MAX
    if not counted:
        session.note(f"the column Ready is left out: it needs a request for each of {len(items)} endpoints")
    return _table(
        items,
        f"no endpoints in workspace {client.scope.workspace}",
        _text("Name", "name"),
        _state(),
        (Column("Ready"), lambda item: _instances(client, item["name"]) if counted else ""),
        (Column("Traffic (%)"), lambda item: _shares(item, "traffic")),
        (Column("Mirror traffic (%)"), lambda item: _shares(item, "mirror_traffic")),
        _text("Auth", "auth_mode"),
        _age(client, "properties", "createdAt"),
        (Column("Compute", wide=True), lambda item: parse_compute(item.get("compute") or "") or ""),
        _text("Scoring URI", "scoring_uri", wide=True),
        *_descriptions(wide=True),
        (Column("Message"), _message),
    )


def deployments(session: Session, value: Any, endpoint: str) -> Table:
    """One deployment of ``endpoint``, or a list of them."""
    client, items = session.client, _items(value)
    resource = client.find(lookups.endpoint_path(client, endpoint)) if items else None
    parent = show_endpoint(resource) if resource is not None else {}
    return _table(
        items,
        f"no deployments in endpoint {endpoint}",
        _text("Name", "name"),
        _state(),
        (Column("Ready"), lambda item: f"{_ready(item)}/{item.get('instance_count', 0)}"),
        (Column("Traffic (%)"), lambda item: _share(parent, "traffic", item["name"])),
        (Column("Mirror traffic (%)"), lambda item: _share(parent, "mirror_traffic", item["name"])),
        (Column("Model"), lambda item: asset_name(item.get("model"))),
        _text("Instance type", "instance_type"),
        _age(client, "creation_context", "created_at"),
        _text("Endpoint", "endpoint_name", wide=True),
        _text("Timeout (ms)", "request_settings", "request_timeout_ms", wide=True),
        _text("Concurrency", "request_settings", "max_concurrent_requests_per_instance", wide=True),
        (Column("Environment", wide=True), lambda item: asset_name(item.get("environment"))),
        _text("Engine", "status", "engine", wide=True),
        *_descriptions(wide=True),
        (Column("Message"), _message),
    )


def assets(session: Session, value: Any, kind: str, name: str | None = None) -> Table:
    """Models or environments: versions, or their containers.

    ``kind``: ``models`` or ``environments``. ``name``: of the asset whose versions are listed.
    """
    client = session.client
    where = f"in workspace {client.scope.workspace}"
    return _table(
        _items(value),
        f"no versions of {name} {where}" if name is not None else f"no {kind} {where}",
        _text("Name", "name"),
        _text("Version", "version"),
        _text("Latest version", "latest_version"),
        # Azure gives every container of versions the type custom_model.
        (Column("Type"), lambda item: "" if "latest_version" in item or kind != "models" else item.get("type", "")),
        _text("Image", "image"),
        _text("Stage", "stage"),
        _age(client, "creation_context", "created_at"),
        *_descriptions(),
        _text("Path", "path", wide=True),
        _text("Created by", "creation_context", "created_by", wide=True),
    )


def computes(session: Session, value: Any) -> Table:
    """One compute, or a list. Only ``show`` knows the nodes and their GPUs."""
    client = session.client
    return _table(
        _items(value),
        f"no computes in workspace {client.scope.workspace}",
        _text("Name", "name"),
        _text("Type", "type"),
        _state(),
        _text("Namespace", "namespace"),
        _text("Default instance type", "default_instance_type"),
        (Column("Nodes"), lambda item: str(len(item["nodes"])) if "nodes" in item else ""),
        (Column("GPUs (free/total)"), lambda item: _free(item.get("gpus"))),
        (Column("Instance types", wide=True), lambda item: _names(item.get("instance_types"))),
        *_descriptions(wide=True),
        (Column("Message"), _message),
    )


def nodes(session: Session, value: Any) -> Table:
    """The nodes of a compute, and what is free on them."""
    return _table(
        _items(value),
        "no nodes in this compute",
        _text("Name", "node_id"),
        (Column("State", is_state=True), lambda item: _at(item, ("node_state",))),
        (Column("GPUs (free/total)"), lambda item: _free(item.get("gpus"))),
        (Column("CPUs (free/total)"), lambda item: _free((item.get("resources") or {}).get("cpu"))),
        (Column("Memory (free/total)"), lambda item: _free((item.get("resources") or {}).get("memory"))),
    )


#: The headings of a table of metrics whose values have a unit, or two words.
_METRICS = {
    **{f"p{share}_ms": f"P{share} (ms)" for share in (50, 95, 99)},
    **{f"RequestLatency{suffix}": f"RequestLatency{suffix} (ms)" for suffix in ("", "_P50", "_P90", "_P95", "_P99")},
    "NetworkBytes": "NetworkBytes (bytes/s)",
    "last_used": "Last used",
}


def metrics(session: Session, value: Any, endpoint: str) -> Table:
    """Rows of metrics: the keys of the rows are the columns."""
    items = _items(value)
    names = list(dict.fromkeys(name for item in items for name in item))
    fields = [_text(_METRICS.get(name, name[:1].upper() + name[1:]), name) for name in names]
    return _table(items, f"no requests to endpoint {endpoint} in this time", *fields)


def _table(items: Sequence[Item], empty: str, *fields: Field) -> Table:
    columns = tuple(column for column, _ in fields)
    return Table(columns, tuple(tuple(cell(item) for _, cell in fields) for item in items), empty)


def _items(value: Any) -> list[Item]:
    return value if isinstance(value, list) else [value]


def _text(heading: str, *path: str, wide: bool = False) -> Field:
    """The column of the value at ``path``; empty without one."""
    return Column(heading, wide), lambda item: _at(item, path)


def _at(item: Item, path: Sequence[str]) -> str:
    value: Any = item
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return "" if value is None else str(value)


def _state() -> Field:
    return Column("State", is_state=True), lambda item: _at(item, ("provisioning_state",))


def _descriptions(*, wide: bool = False) -> tuple[Field, Field]:
    tags = (Column("Tags", wide), lambda item: _pairs(item.get("tags")))
    return _text("Description", "description", wide=wide), tags


def _age(client: Client, *path: str) -> Field:
    """The age of a resource by the server's clock. ``path``: of the time of its creation."""

    def cell(item: Item) -> str:
        created = _at(item, path)
        return durations.age(client.server_time - durations.epoch(created)) if created else ""

    return Column("Age"), cell


def _instances(client: Client, endpoint: str) -> str:
    """``1/2``: ready and wanted instances of all deployments; empty without deployments."""
    found = client.list_all(f"{lookups.endpoint_path(client, endpoint)}/deployments")
    ready = sum((one["properties"].get("status") or {}).get("readyInstances", 0) for one in found)
    return f"{ready}/{sum((one.get('sku') or {}).get('capacity', 0) for one in found)}" if found else ""


def _ready(item: Item) -> int:
    return int((item.get("status") or {}).get("ready_instances") or 0)


def _pairs(shares: Mapping[str, Any] | None) -> str:
    return " ".join(f"{name}={value}" for name, value in (shares or {}).items())


def _shares(endpoint: Item, field: str) -> str:
    """The shares in force, and those that the endpoint asks for if they are others.

    ``field``: ``traffic`` or ``mirror_traffic``.
    """
    wanted, live = endpoint.get(field) or {}, traffic_names.in_force(endpoint, field)
    if traffic_names.is_same(wanted, live):
        return _pairs(wanted)
    return f"{_pairs(live) or 'none'} (not in force: {_pairs(wanted) or 'none'})"


def _share(endpoint: Item, field: str, name: str) -> str:
    """The share of a deployment; 0 if others have all, and for mirrored traffic empty if there is
    none at all. With another share that the endpoint asks for but that is not in force."""
    wanted, live = endpoint.get(field) or {}, traffic_names.in_force(endpoint, field)
    if field == "mirror_traffic" and not wanted and not live:
        return ""
    share, other = traffic_names.share(live, name), traffic_names.share(wanted, name)
    return str(share) if share == other else f"{share} (not in force: {other})"


def asset_name(reference: str | None) -> str:
    """``azureml:/subscriptions/.../models/pets/versions/1`` -> ``pets:1``.

    A name that Azure's SDK has made, of 64 digits, is cut: it would fill the terminal alone.
    """
    parsed = parse_asset(reference or "")
    if parsed is None:
        return reference or ""
    name, version = parsed[:2]
    return ":".join(part for part in (_MADE_NAME.sub(r"\1...", name), version) if part)


def _free(resource: Mapping[str, Any] | None) -> str:
    return f"{resource['free']}/{resource['total']}" if resource else ""


def _names(types: Sequence[Item] | None) -> str:
    return ", ".join(str(one["name"]) for one in types or ())


def _message(item: Item) -> str:
    """What the columns do not say: the first line of an error or of the progress, or notes."""
    status = item.get("status") or {}
    if error := status.get("error"):
        return _first_line(error.get("message"))
    if status.get("phase") == "Ready":
        return "; ".join(status.get("notes") or ())
    return _first_line(status.get("message"))


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
