"""The model version or compute that a reference in a document names now.

Decides what ``azureml:n:v``, ``azureml:n@latest``, ``azureml:compute`` and ARM ids stand for. Must
not know whether a document may use the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from amphitrite.controlplane.core.desired import compute_clusters
from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.core.rules.deployment_rules import ModelFacts, Place
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.assets.model_store import ModelStore, ModelVersion
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import compute_id, model_id, parse_asset, parse_compute


def find(models: ModelStore, reference: str) -> ModelFacts | None:
    """The model version that ``reference`` names. None if there is none."""
    name, version, label = parse_asset(reference) or (None, None, None)
    try:
        if name is not None and version is not None:
            return _facts(models, models.get_version(name, version))
        if name is not None and label == "latest":
            return _facts(models, models.latest(name))
    except Error as error:
        if error.code != "ResourceNotFound":
            raise
    return None


def arm_id(workspace: str, model: ModelFacts) -> str:
    """The ARM id of the version. Stored documents have it, because a label may name another version
    later."""
    return model_id(workspace, model.name, model.version)


def clusters(services: Services) -> list[Compute]:
    """The built-in cluster, if any, then the attached ones."""
    return [*([services.built_in] if services.built_in is not None else []), *services.store.list_computes()]


def compute(services: Services, name: str) -> Compute:
    """A cluster by its name. Raises Error("ResourceNotFound")."""
    cluster = compute_clusters.find_compute(name, clusters(services))
    if cluster is None:
        known = ", ".join(one.name for one in clusters(services)) or "none"
        hint = f"attached computes: {known}"
        raise Error("ResourceNotFound", f"there is no Kubernetes compute {name}", target=name, hint=hint)
    return cluster


def place(services: Services, endpoint: Mapping[str, Any]) -> Place:
    """Where the instances of a stored endpoint document run. Raises Error("ResourceNotFound")."""
    reference = endpoint.get("compute")
    if not reference:
        return Place(services.built_in)
    return Place(compute(services, parse_compute(str(reference)) or str(reference)), chosen=True)


def compute_arm_id(services: Services, reference: str) -> str:
    """The ARM id of an existing compute. Stored documents have it. Raises
    Error("ResourceNotFound")."""
    return compute_id(services.workspace, compute(services, parse_compute(reference) or reference).name)


def _facts(models: ModelStore, model: ModelVersion) -> ModelFacts:
    kind = str(model.document.get("type", "custom_model"))
    archived = model.is_archived or models.get_container(model.name).is_archived
    sequences = models.keeps_sequences(model)
    return ModelFacts(model.name, model.version, kind, archived, model.model_names, sequences)
