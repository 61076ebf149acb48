"""Names and ARM ids: how resources are addressed.

Decides that names compare without case, and the shape of ARM ids. What a name may be is in the JSON Schemas.
Must not know documents or databases.
"""

from __future__ import annotations

import re

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
    """The form in which two names are compared (names are equal without case)."""
    return name.lower()


def workspace_id(subscription: str, resource_group: str, workspace: str) -> str:
    """The ARM id of a workspace. Segment casing matters to the SDK's regexes (azure-contract.md (h) 15)."""
    return f"/subscriptions/{subscription}/resourceGroups/{resource_group}/providers/{PROVIDER}/workspaces/{workspace}"


def endpoint_id(workspace: str, endpoint: str) -> str:
    """``workspace`` is a workspace's ARM id."""
    return f"{workspace}/onlineEndpoints/{endpoint}"


def deployment_id(workspace: str, endpoint: str, deployment: str) -> str:
    return f"{endpoint_id(workspace, endpoint)}/deployments/{deployment}"


def model_id(workspace: str, name: str, version: str | None = None) -> str:
    """A model version's ARM id; without ``version`` that of all versions together."""
    return f"{workspace}/models/{name}" + (f"/versions/{version}" if version is not None else "")


def environment_id(workspace: str, name: str, version: str | None = None) -> str:
    """An environment version's ARM id; without ``version`` that of all versions together."""
    return f"{workspace}/environments/{name}" + (f"/versions/{version}" if version is not None else "")


def code_id(workspace: str, name: str, version: str) -> str:
    return f"{workspace}/codes/{name}/versions/{version}"


def compute_id(workspace: str, reference: str) -> str:
    """``azureml:name``, a name or an ARM id -> the compute's ARM id."""
    name = reference.removeprefix("azureml:")
    return name if name.startswith("/") else f"{workspace}/computes/{name}"


def parse_compute(reference: str) -> str | None:
    """``azureml:name`` or an ARM id -> the compute's name; else None."""
    match = _COMPUTE.match(reference)
    return match["name"] or match["arm_name"] if match else None


def parse_asset(reference: str) -> tuple[str, str | None, str | None] | None:
    """``azureml:n:v``, ``azureml:n@label``, ``azureml:n`` or a full ARM id -> (name, version, label); else None."""
    if match := _ARM_ASSET.match(reference):
        return match["name"], match["version"], None
    if match := _ASSET.match(reference):
        return match["name"], match["version"], match["label"]
    return None
