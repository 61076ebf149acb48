"""The container that a deployment runs, from its reference to an environment.

Decides where the input of ``core.desired.containers`` comes from: the environment's document and
the files of the model. Must not know the rules for containers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amphitrite.controlplane.core.desired import containers
from amphitrite.controlplane.core.desired.containers import Container, ModelFiles
from amphitrite.controlplane.core.rules.deployment_rules import ModelFacts, Place
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.assets.environment_store import EnvironmentVersion
from amphitrite.controlplane.store.state.store import Record
from amphitrite.dataplane.triton import repository_layout
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import environment_id, parse_asset


@dataclass(frozen=True, slots=True)
class Resolution:
    """The result for one deployment document.

    ``id``: the ARM id of the environment version; None without an environment, or if it does not
    exist. ``model_names``: the Triton models in the model's files; None if the files were not read.
    """

    container: Container | None = None
    id: str | None = None
    model_names: tuple[str, ...] | None = None
    violations: tuple[Violation, ...] = ()


def resolve(
    services: Services,
    document: Mapping[str, Any],
    model: ModelFacts | None,
    former: Record | None,
    place: Place,
) -> Resolution:
    """The container of a deployment document.

    ``model``: the model that the document names. ``former``: the stored deployment of this name, if
    any.
    """
    reference = document.get("environment")
    if not reference:
        return Resolution()
    environment = _find(services, str(reference))
    if environment is None:
        return Resolution(violations=(_not_found(str(reference)),))
    arm_id = environment_id(services.workspace, environment.name, environment.version)
    same = former is not None and former.document.get("environment") == arm_id
    archived = environment.is_archived or services.environments.get_container(environment.name).is_archived
    if archived and not same:
        # A deployment keeps an environment that is archived later. Only new references are refused.
        message = f"environment {environment.name}:{environment.version} is archived"
        hint = f"ml environment restore -n {environment.name} -v {environment.version}"
        return Resolution(id=arm_id, violations=(Violation(("environment",), message, hint),))
    # deployment_rules reports a model that cannot be served. The container is checked all the same.
    files = ModelFiles("", "", "", "") if model is None or model.type == "mlflow_model" else _files(services, model)
    container, violations = containers.resolve_container(
        document,
        environment.document,
        files,
        on_cluster=place.compute is not None,
        local_images=services.settings.local_triton_images,
    )
    return Resolution(container, arm_id, files.model_names, tuple(violations))


def _find(services: Services, reference: str) -> EnvironmentVersion | None:
    name, version, label = parse_asset(reference) or (None, None, None)
    try:
        if name is not None and version is not None:
            return services.environments.get_version(name, version)
        if name is not None and label == "latest":
            return services.environments.latest(name)
    except Error as error:
        if error.code != "ResourceNotFound":
            raise
    return None


def _not_found(reference: str) -> Violation:
    """Why ``reference`` names no environment."""
    at = ("environment",)
    if "://registries/" in reference or reference.removeprefix("azureml:").startswith("AzureML-"):
        message = f"{reference}: Azure's registries of curated environments are not available"
        hint = "remove environment (a triton_model needs none), or set environment.image to an image of Triton"
        return Violation(at, message, hint)
    name, version, label = parse_asset(reference) or (None, None, None)
    if name is None:
        hint = "write azureml:<name>:<version>, or define the environment inline with image and inference_config"
        return Violation(at, f"{reference} does not name an environment of this workspace", hint)
    if version is None and label != "latest":
        return Violation(
            at, f"{reference}: the only label is latest", f"write azureml:{name}:<version> or {name}@latest"
        )
    hint = "create it first (ml environment create), or define it inline"
    return Violation(at, f"there is no environment {name}:{version or label}", hint)


def _files(services: Services, model: ModelFacts) -> ModelFiles:
    """The files of a model version, with the folder of its repository."""
    version = services.models.get_version(model.name, model.version)
    paths = [file.path for file in services.models.layout(version.digest).files]
    folder = services.models.folder(version)
    try:
        where, names = repository_layout.locate(paths, folder)
    except Error as error:
        return ModelFiles(version.name, version.version, folder, None, (), error.violations)
    return ModelFiles(version.name, version.version, folder, where, names)
