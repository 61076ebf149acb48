"""From a model reference in a document to the registered version it names now.

Decides what ``azureml:n:v``, ``azureml:n@latest`` and ARM ids lead to. Must not judge what was found.
"""

from __future__ import annotations

from amphitrite.controlplane.core.rules import ModelFacts
from amphitrite.controlplane.store.models import ModelStore, ModelVersion
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import model_id, parse_asset


def find(models: ModelStore, reference: str) -> ModelFacts | None:
    """What ``reference`` names, None when it names nothing here."""
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


def _facts(models: ModelStore, found: ModelVersion) -> ModelFacts:
    kind = str(found.document.get("type", "custom_model"))
    archived = found.is_archived or models.get_container(found.name).is_archived
    return ModelFacts(found.name, found.version, kind, archived, found.model_names)
