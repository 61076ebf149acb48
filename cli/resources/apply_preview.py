"""Compares requested resources with those of the control plane, and returns the steps between them.

Decides which requests the comparison needs (the control plane validates and compares with
``?dryRun=true``), and how to preview resources that refer to others which do not exist yet. Changes
nothing. Must not know how steps are printed or executed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amphitrite.cli.assets import environment_registration, model_registration, uploads
from amphitrite.cli.documents.apply_documents import RequestedResource
from amphitrite.cli.documents.document_input import Submission, is_remote
from amphitrite.cli.resources import lookups, resource_changes, traffic_names
from amphitrite.cli.resources.apply_steps import Change, Step, differences
from amphitrite.cli.resources.traffic_names import SHARES
from amphitrite.schemas import wire
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import environment_id, key, model_id, parse_asset

if TYPE_CHECKING:
    from amphitrite.cli.session.rest_client import Client
    from amphitrite.cli.terminal.progress import Progress


class Preview:
    """Makes steps in the order of the items.

    Each step assumes that the steps before it are done.
    """

    def __init__(self, client: Client, progress: Progress) -> None:
        self._client, self._progress = client, progress
        # What earlier steps create: ARM ids of assets in lower case; (kind of asset, name) -> the
        # ARM id of its latest version; names of endpoints in lower case.
        self._planned_assets: set[str] = set()
        self._planned_latest: dict[tuple[str, str], str] = {}
        self._planned_endpoints: set[str] = set()
        # Endpoint in lower case -> the deployments that the documents hold for it.
        self._requested_deployments: dict[str, list[str]] = defaultdict(list)

    def steps(self, items: Sequence[RequestedResource]) -> list[Step]:
        """The steps.

        Raises the Errors of the control plane, with the locations of their violations.
        """
        for item in items:
            if item.kind == "deployment":
                document = item.submission.document
                self._requested_deployments[key(document["endpoint_name"])].append(document["name"])
        return [self._step(item) for item in items]

    def _step(self, item: RequestedResource) -> Step:
        preview = {
            "model": self._model,
            "environment": self._environment,
            "endpoint": self._endpoint,
            "deployment": self._deployment,
        }[item.kind]
        with item.submission.with_locations():
            return preview(item)

    # -- assets ------------------------------------------------------------------------------------
    def _model(self, item: RequestedResource) -> Step:
        document = item.submission.document
        name = document["name"]
        uri = self._address(document["path"])
        version, existing = self._version(document, uri)
        after = {**document, "path": uri, "version": version}
        before = None if existing is None else wire.model_from_wire(name, version, existing)
        if before is None:
            self._plan_asset("models", name, model_id(self._client.workspace, name, version))
        return self._asset(item, f"{name}:{version}", before, after)

    def _version(self, document: Mapping[str, Any], uri: str) -> tuple[str, dict[str, Any] | None]:
        """The version of a model document, and its resource if it exists."""
        name, version = document["name"], document.get("version")
        if version is not None:
            return str(version), self._client.find(model_id(self._client.workspace, name, version))
        newest = model_registration.find_latest(self._client, name)
        if newest is not None and newest["properties"]["modelUri"] == uri:
            return str(newest["name"]), newest
        return model_registration.next_version(self._client, name), None

    def _environment(self, item: RequestedResource) -> Step:
        document = environment_registration.with_conda_text(item.submission.document)
        name = document["name"]
        version, before = self._version_of_environment(document)
        if before is None:
            self._plan_asset("environments", name, environment_id(self._client.workspace, name, version))
        return self._asset(
            item, f"{name}:{version}", before, {**environment_registration.DEFAULTS, **document, "version": version}
        )

    def _version_of_environment(self, document: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
        """The version that ``register`` would choose, and its document if it exists."""
        name, version = document["name"], document.get("version")
        path = environment_id(self._client.workspace, name)
        if version is not None:
            existing = self._client.find(f"{path}/versions/{version}")
            return str(version), None if existing is None else wire.environment_from_wire(name, str(version), existing)
        container = self._client.find(path)
        if container is None:
            return "1", None
        newest = str(container["properties"]["latestVersion"])
        current = wire.environment_from_wire(name, newest, self._client.get(f"{path}/versions/{newest}"))
        if environment_registration.same_content(current, document):
            return newest, current
        return str(container["properties"]["nextVersion"]), None

    def _asset(
        self, item: RequestedResource, name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any]
    ) -> Step:
        fields = differences(before, after)
        return Step(item, name, "create" if before is None else "update" if fields else "none", (), fields)

    def _plan_asset(self, kind: str, name: str, arm_id: str) -> None:
        self._planned_assets.add(key(arm_id))
        self._planned_latest[(kind, key(name))] = arm_id

    def _address(self, path: str) -> str:
        return path if is_remote(path) else uploads.upload_uri(self._client, Path(path), self._progress)

    # -- endpoints and deployments -----------------------------------------------------------------
    def _endpoint(self, item: RequestedResource) -> Step:
        document, name = item.submission.document, item.submission.document["name"]
        path = lookups.endpoint_path(self._client, name)
        existing = self._client.find(path)
        found = [] if existing is None else [one["name"] for one in self._client.list_all(f"{path}/deployments")]
        traffic_names.require_known(document, [*found, *self._requested_deployments[key(name)]])
        if existing is None:
            self._planned_endpoints.add(key(name))
            return Step(item, name, "create", (), differences(None, document))
        before = _without_zeros(wire.endpoint_from_wire(name, existing))
        requested = _without_zeros({**{f: before[f] for f in SHARES if f in before}, **document})
        # The control plane cannot check the traffic of deployments that this command creates.
        deployments = {key(one) for one in found}
        testable = {
            **requested,
            **{f: before.get(f, {}) for f in SHARES if not _names(requested.get(f)) <= deployments},
        }
        answer = self._dry_run(
            path, resource_changes.endpoint_body(self._client, Submission(testable, item.submission.source))
        )
        after = _without_zeros(wire.endpoint_from_wire(name, answer["resource"]))
        after |= {f: requested[f] for f in SHARES if f in requested}
        fields = differences(before, after)
        change: Change = answer["change"] if answer["change"] != "none" or not fields else "update"
        return Step(item, name, change, (), fields)

    def _deployment(self, item: RequestedResource) -> Step:
        document = item.submission.document
        endpoint, name = document["endpoint_name"], document["name"]
        path = lookups.deployment_path(self._client, endpoint, name)
        references = {}
        for field, kind in (("model", "models"), ("environment", "environments")):
            if document.get(field) is not None:
                with item.submission.naming(field):
                    references[field] = self._reference(kind, document[field])
        document = {**document, **references}
        existing = self._client.find(path) if key(endpoint) not in self._planned_endpoints else None
        planned = {field for field, reference in references.items() if key(reference) in self._planned_assets}
        if existing is None:
            if key(endpoint) not in self._planned_endpoints:
                resource_changes.require_endpoint(self._client, item.submission)
            if not planned and key(endpoint) not in self._planned_endpoints:
                self._dry_run(path, self._body(document))
            return Step(item, item.name, "create", (), differences(None, document))
        before = wire.deployment_from_wire(endpoint, existing["name"], existing)
        checked = {**document, **{field: before[field] for field in planned if field in before}}
        answer = self._dry_run(path, self._body(checked))
        after = wire.deployment_from_wire(endpoint, existing["name"], answer["resource"])
        after |= {field: references[field] for field in planned}
        replaced = {*answer["reasons"], *planned}
        change: Change = "replace" if replaced else answer["change"]
        return Step(item, item.name, change, tuple(sorted(replaced)), differences(before, after))

    def _reference(self, kind: Any, reference: Any) -> str:
        """The ARM id that a deployment's model or environment has, or will have."""
        if isinstance(reference, Mapping):
            return self._inline(kind, reference)
        name, version, label = parse_asset(reference) or (None, None, None)
        if name is not None and label == "latest" and (kind, key(name)) in self._planned_latest:
            return self._planned_latest[(kind, key(name))]
        if name is not None and version is not None and not reference.startswith(("/", "azureml:/")):
            make = model_id if kind == "models" else environment_id
            if key(make(self._client.workspace, name, version)) in self._planned_assets:
                return make(self._client.workspace, name, version)
        return model_registration.resolve_reference(self._client, kind, reference)

    def _inline(self, kind: Any, asset: Mapping[str, Any]) -> str:
        """The ARM id that ``register_inline`` will return."""
        if kind != "models":
            arm_id = environment_registration.inline_id(self._client, asset)
        else:
            uri = self._address(asset["path"])
            if asset.get("name") is None:
                arm_id = model_id(self._client.workspace, model_registration.content_name(uri), "1")
            else:
                arm_id = model_id(self._client.workspace, asset["name"], self._version(asset, uri)[0])
        if self._client.find(arm_id) is None:
            self._planned_assets.add(key(arm_id))
        return arm_id

    def _body(self, document: Mapping[str, Any]) -> dict[str, Any]:
        return wire.deployment_to_wire(document, resource_changes.LOCATION)

    def _dry_run(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.send("PUT", path, params={"dryRun": "true"}, json=body).json()
        if "change" not in answer:
            raise Error("Unsupported", "this control plane does not support dryRun", hint="upgrade the control plane")
        return answer


def _without_zeros(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without shares of 0, which have no effect."""
    shares = {f: {n: int(s) for n, s in document[f].items() if int(s)} for f in SHARES if document.get(f)}
    return {**{field: value for field, value in document.items() if field not in SHARES}, **shares}


def _names(shares: Mapping[str, int] | None) -> set[str]:
    return {key(name) for name in shares or {}}
