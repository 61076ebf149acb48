"""Names and ARM ids: what a name may be, and how resources are addressed.

Decides the name rule (contract section 9; Azure's own), that names compare without case, and the shape of ARM ids.
Must not know documents or databases.
"""

from __future__ import annotations

import re

NAME_PATTERN = r"^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$"
NAME_MIN, NAME_MAX = 3, 32
PROVIDER = "Microsoft.MachineLearningServices"

_ASSET = re.compile(r"^azureml:(?P<name>[^:@/]+)(?::(?P<version>[^:@/]+)|@(?P<label>[^:@/]+))?$")
_ARM_ASSET = re.compile(
    r"^(?:azureml:)?/subscriptions/[^/]+/resourceGroups/[^/]+/providers/" + re.escape(PROVIDER) +
    r"/workspaces/[^/]+/(?P<kind>models|environments|codes)/(?P<name>[^/]+)/versions/(?P<version>[^/]+)$",
    re.IGNORECASE,
)


def key(name: str) -> str:
    """The form in which two names are compared (names are equal without case)."""
    return name.lower()


def workspace_id(subscription: str, resource_group: str, workspace: str) -> str:
    """The ARM id of a workspace. Segment casing matters to the SDK's regexes (azure-contract.md (h) 15)."""
    return (
        f"/subscriptions/{subscription}/resourceGroups/{resource_group}"
        f"/providers/{PROVIDER}/workspaces/{workspace}"
    )


def parse_asset(reference: str) -> tuple[str, str | None, str | None] | None:
    """``azureml:n:v``, ``azureml:n@label``, ``azureml:n`` or a full ARM id -> (name, version, label); else None."""
    if match := _ARM_ASSET.match(reference):
        return match["name"], match["version"], None
    if match := _ASSET.match(reference):
        return match["name"], match["version"], match["label"]
    return None
