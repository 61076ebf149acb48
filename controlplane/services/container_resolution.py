"""From a deployment's reference to an environment to the container that it runs.

Decides where the facts come from that ``core.containers`` decides by: the environment's document, the files of the
model. Must not judge them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

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
class Resolved:
    """``id``: the ARM id of the version, None without environment and for one that is not there. ``model_names``: the
    Triton models in the model's files, None where nobody has looked."""

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
) -> Resolved:
    """The container of a deployment document. ``model``: what its model's reference names; ``former``: the deployment
    of this name that is there already."""
    reference = document.get("environment")
    if not reference:
        return Resolved()
    found = _find(services, str(reference))
    if found is None:
        return Resolved(violations=(_nothing(str(reference)),))
    arm_id = environment_id(services.workspace, found.name, found.version)
    same = former is not None and former.document.get("environment") == arm_id
    if not same and (found.is_archived or services.environments.get_container(found.name).is_archived):
        # It may be archived while it is in use: it is new users that it is hidden from.
        message = f"environment {found.name}:{found.version} is archived"
        hint = f"ml environment restore -n {found.name} -v {found.version}"
        return Resolved(id=arm_id, violations=(Violation(("environment",), message, hint),))
    # Without a model that can be served, which is said elsewhere, the rest is judged all the same.
    files = ModelFiles("", "", "", "") if model is None or model.type == "mlflow_model" else _files(services, model)
    container, violations = containers.resolve_container(
        document,
        found.document,
        files,
        on_cluster=place.compute is not None,
        local_images=services.settings.local_triton_images,
    )
    return Resolved(container, arm_id, files.model_names, tuple(violations))


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


def _nothing(reference: str) -> Violation:
    """Why ``reference`` leads to nothing."""
    at = ("environment",)
    if "://registries/" in reference or reference.removeprefix("azureml:").startswith("AzureML-"):
        message = f"{reference}: Azure's registries of curated environments are not here"
        hint = "a triton_model needs no environment; for a container write environment.image, an image of Triton"
        return Violation(at, message, hint)
    name, version, label = parse_asset(reference) or (None, None, None)
    if name is None:
        hint = "write azureml:<name>:<version>, or the environment inline with image and inference_config"
        return Violation(at, f"{reference} is no environment of this workspace", hint)
    if version is None and label != "latest":
        return Violation(
            at, f"{reference}: the one label is latest", f"write azureml:{name}:<version> or {name}@latest"
        )
    hint = "register it first (ml environment create), or write it inline"
    return Violation(at, f"there is no environment {name}:{version or label}", hint)


def _files(services: Services, model: ModelFacts) -> ModelFiles:
    version = services.models.get_version(model.name, model.version)
    paths = [file.path for file in services.models.layout(version.digest).files]
    # The address ends with the name of what was uploaded; clients do not agree on whether it is percent-encoded.
    folder = PurePosixPath(unquote(str(version.document["path"]))).name
    folder = "" if paths == [folder] else folder
    try:
        where, names = repository_layout.locate(paths, folder)
    except Error as error:
        return ModelFiles(version.name, version.version, folder, None, (), error.violations)
    return ModelFiles(version.name, version.version, folder, where, names)
