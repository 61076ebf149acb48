"""Where the grant of a workload's fetcher is, and whether it is the current one.

Decides its place in the Secret, and the mark on the Deployment by which everybody sees which grant
the Secret has without reading it. Must not know what a grant authorizes, or how a patch is sent.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Literal

#: The key in the workload's Secret. No environment variable has such a name.
GRANT_KEY = "fetch-grant"
GRANT_VARIABLE = "AMPHITRITE_FETCH_GRANT"
#: On a Deployment: the first part of the SHA-256 of the grant in its Secret.
GRANT_ANNOTATION = "amphitrite.io/fetch-grant"


def place(deployment: Mapping[str, Any]) -> Literal["secret", "template"] | None:
    """Where the pods' grant is: in the pod template if an earlier release has made it. None for
    pods that fetch nothing."""
    pod = (deployment["spec"].get("template") or {}).get("spec") or {}
    for container in pod.get("initContainers") or ():
        for variable in container.get("env") or ():
            if variable["name"] == GRANT_VARIABLE:
                return "template" if "value" in variable else "secret"
    return None


def mark(grant: str) -> dict[str, str]:
    """The annotation for this grant."""
    return {GRANT_ANNOTATION: hashlib.sha256(grant.encode()).hexdigest()[:16]}


def is_marked(deployment: Mapping[str, Any], grant: str) -> bool:
    return mark(grant).items() <= (deployment["metadata"].get("annotations") or {}).items()


def secret_patch(grant: str) -> dict[str, Any]:
    return {"data": {GRANT_KEY: base64.b64encode(grant.encode()).decode()}}
