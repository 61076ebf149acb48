"""From a reference in a document to what it names now: a registered version of a model, a compute.

Decides what ``azureml:n:v``, ``azureml:n@latest``, ``azureml:compute`` and ARM ids lead to. Must not judge what was
found.
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
    """What ``reference`` names, None when it names nothing services."""
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
    """The ARM id of the version, which a stored document carries: a label may mean another version tomorrow."""
    return model_id(workspace, model.name, model.version)


def clusters(services: Services) -> list[Compute]:
    """The cluster that this server was given, if any, then the attached ones."""
    return [*([services.built_in] if services.built_in is not None else []), *services.store.list_computes()]


def compute(services: Services, name: str) -> Compute:
    """A cluster by its name. Raises Error("ResourceNotFound")."""
    found = compute_clusters.find_compute(name, clusters(services))
    if found is None:
        known = ", ".join(one.name for one in clusters(services)) or "none"
        hint = f"attached are: {known}"
        raise Error("ResourceNotFound", f"there is no Kubernetes compute {name}", target=name, hint=hint)
    return found


def place(services: Services, endpoint: Mapping[str, Any]) -> Place:
    """Where the instances of a stored endpoint document run. Raises Error("ResourceNotFound")."""
    reference = endpoint.get("compute")
    if not reference:
        return Place(services.built_in)
    return Place(compute(services, parse_compute(str(reference)) or str(reference)), chosen=True)


def compute_arm_id(services: Services, reference: str) -> str:
    """The ARM id of a compute that is there, which a stored document carries."""
    return compute_id(services.workspace, compute(services, parse_compute(reference) or reference).name)


def _facts(models: ModelStore, found: ModelVersion) -> ModelFacts:
    kind = str(found.document.get("type", "custom_model"))
    archived = found.is_archived or models.get_container(found.name).is_archived
    sequences = models.keeps_sequences(found)
    return ModelFacts(found.name, found.version, kind, archived, found.model_names, sequences)
