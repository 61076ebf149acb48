"""Names and ARM ids: how resources are addressed.

Decides that names compare without case, and the shape of ARM ids. What a name may be is in the JSON
Schemas. Must not know documents or databases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

PROVIDER = "Microsoft.MachineLearningServices"

_ASSET = re.compile(r"^azureml:(?P<name>[^:@/]+)(?::(?P<version>[^:@/]+)|@(?P<label>[^:@/]+))?$")
_ARM_ASSET = re.compile(
    r"^(?:azureml:)?/subscriptions/[^/]+/resourceGroups/[^/]+/providers/"
    + re.escape(PROVIDER)
    + r"/workspaces/[^/]+/(?P<kind>models|environments|codes)/(?P<name>[^/]+)/versions/(?P<version>[^/]+)$",
    re.IGNORECASE,
)
_COMPUTE = re.compile(
    r"^(?:azureml:(?P<name>[^:@/]+)|(?:azureml:)?/subscriptions/[^/]+/resourceGroups/[^/]+/providers/"
    + re.escape(PROVIDER)
    + r"/workspaces/[^/]+/computes/(?P<arm_name>[^/]+))$",
    re.IGNORECASE,
)


def key(name: str) -> str:
    """The form in which two names are compared: names are equal without regard to case."""
    return name.lower()


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of ``known`` that is most like ``name``; None if none is."""
    by_key = {key(one): one for one in known}
    matches = get_close_matches(key(name), by_key, n=1)
    return by_key[matches[0]] if matches else None


def workspace_id(subscription: str, resource_group: str, workspace: str) -> str:
    """The ARM id of a workspace. Azure ML's SDK parses ids with this case of their segments."""
    return f"/subscriptions/{subscription}/resourceGroups/{resource_group}/providers/{PROVIDER}/workspaces/{workspace}"


def endpoint_id(workspace: str, endpoint: str) -> str:
    """The ARM id of an endpoint. ``workspace``: the ARM id of its workspace."""
    return f"{workspace}/onlineEndpoints/{endpoint}"


def deployment_id(workspace: str, endpoint: str, deployment: str) -> str:
    """The ARM id of a deployment. ``workspace``: the ARM id of its workspace."""
    return f"{endpoint_id(workspace, endpoint)}/deployments/{deployment}"


def model_id(workspace: str, name: str, version: str | None = None) -> str:
    """The ARM id of a model version; without ``version`` that of the container."""
    return f"{workspace}/models/{name}" + (f"/versions/{version}" if version is not None else "")


def registry_id(workspace: str, name: str) -> str:
    """The ARM id of the container registry of a workspace, in its resource group."""
    return f"{workspace.partition('/providers/')[0]}/providers/Microsoft.ContainerRegistry/registries/{name}"


def environment_id(workspace: str, name: str, version: str | None = None) -> str:
    """The ARM id of an environment version; without ``version`` that of the container."""
    return f"{workspace}/environments/{name}" + (f"/versions/{version}" if version is not None else "")


def code_id(workspace: str, name: str, version: str) -> str:
    """The ARM id of a code version."""
    return f"{workspace}/codes/{name}/versions/{version}"


def compute_id(workspace: str, reference: str) -> str:
    """The ARM id of a compute from ``azureml:name``, a name or an ARM id."""
    name = reference.removeprefix("azureml:")
    return name if name.startswith("/") else f"{workspace}/computes/{name}"


def parse_compute(reference: str) -> str | None:
    """The name of a compute from ``azureml:name`` or an ARM id; None for any other text."""
    match = _COMPUTE.match(reference)
    return match["name"] or match["arm_name"] if match else None


def parse_asset(reference: str) -> tuple[str, str | None, str | None] | None:
    """(name, version, label) of a reference; None for any other text.

    A reference is ``azureml:n:v``, ``azureml:n@label``, ``azureml:n`` or an ARM id.
    """
    if match := _ARM_ASSET.match(reference):
        return match["name"], match["version"], None
    if match := _ASSET.match(reference):
        return match["name"], match["version"], match["label"]
    return None
