"""The objects of a workload as releases until 0.2 made them, where they are not as they are today.

Decides what is taken out of them while their pods run on: the environment variables, which were in
an annotation and in a ConfigMap that no container read. The pod template keeps them, because a
change of it would replace the pods. Must not know how a patch is sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import SPEC_ANNOTATION
from amphitrite.controlplane.runtimes.kubernetes.workloads.workload_json import from_json, to_json

#: What takes the variables out of the ConfigMap.
CONFIG_MAP_PATCH: Mapping[str, Any] = {"data": {"workload.json": None}}


def deployment_patch(deployment: Mapping[str, Any]) -> dict[str, Any] | None:
    """What takes the variables out of the annotation, None where there are none."""
    text = (deployment["metadata"].get("annotations") or {}).get(SPEC_ANNOTATION, "")
    if '"environment_variables":[]' in text:  # As almost all are.
        return None
    try:
        if not json.loads(text)["environment_variables"]:
            return None
        clean = to_json(from_json(text))
    except (ValueError, KeyError, TypeError):
        return None
    return {"metadata": {"annotations": {SPEC_ANNOTATION: clean}}}
