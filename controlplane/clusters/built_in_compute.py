"""The built-in compute of ``--runtime kubernetes``.

Decides its name and instance types, which an operator may keep in a file. Must not know the
Kubernetes client.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from amphitrite.controlplane.core.desired.compute_clusters import (
    BUILT_IN,
    Compute,
    PodShape,
    instance_types_from_document,
)
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.schemas import bounded_yaml
from amphitrite.schemas.errors import Error


def built_in(settings: Settings) -> Compute | None:
    """The built-in compute. None with the local runtime.

    Raises Error("BadArgument") for instance types that cannot be read.
    """
    if settings.runtime != "kubernetes":
        return None
    cluster = settings.cluster
    shapes = _instance_types(cluster.instance_types) if cluster.instance_types is not None else ()
    return Compute(BUILT_IN, cluster.namespace, None, shapes)


def _instance_types(file: Path) -> tuple[PodShape, ...]:
    try:
        document = bounded_yaml.load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as exc:
        message = f"cannot read the instance types in {file}: {exc}"
        raise Error("BadArgument", message, target="ML_INSTANCE_TYPES") from exc
    if not isinstance(document, dict):
        raise Error("BadArgument", f"{file} is not an InstanceTypes document", target="ML_INSTANCE_TYPES")
    return instance_types_from_document(document, str(file))
