"""What a deployment answers at its scoring address: its models with their inputs and outputs.

Decides which deployment of an endpoint is described, and where its files are read. Must not know
HTTP or the form of the description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from amphitrite.controlplane.core.desired.resources import Deployment
from amphitrite.controlplane.core.planning.routing import scoring_path
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.store.content.manifest_files import StoredFiles
from amphitrite.controlplane.store.state.store import Record
from amphitrite.schemas.errors import Error
from amphitrite.schemas.names import key
from amphitrite.schemas.repository import Signature, signatures


@dataclass(frozen=True, slots=True)
class ScoringDescription:
    """``scoring_uri``: ends with a slash. ``score_path``: what a POST to it is answered by; None if
    the deployment serves several models. ``models``: by name; None for unknown inputs."""

    endpoint: str
    deployment: str
    scoring_uri: str
    score_path: str | None
    models: Mapping[str, Signature | None]


def describe(services: Services, endpoint: Record, pin: str | None) -> ScoringDescription:
    """The deployment that ``pin`` names (the header ``azureml-model-deployment``), else the one
    with most of the traffic. Raises Error ResourceNotFound."""
    name = key(pin) if pin else _by_traffic(endpoint)
    world = services.store.load_world()
    found = [one for one in world.deployments if (one.endpoint, one.name) == (endpoint.ref.endpoint, name)]
    if not found:
        # A name of traffic is that of a deployment, so this is the pin.
        raise Error("ResourceNotFound", f"endpoint '{endpoint.name}' has no deployment '{name}'", target=name)
    path, _ = scoring_path(found[0].workload, found[0].scoring_model)
    scoring_uri = services.settings.scoring_uri(endpoint.name)
    return ScoringDescription(endpoint.name, name, scoring_uri, path, _models(services, found[0]))


def _by_traffic(endpoint: Record) -> str:
    shares = [(int(share), key(name)) for name, share in (endpoint.document.get("traffic") or {}).items() if int(share)]
    if not shares:
        message = f"no deployment of endpoint '{endpoint.name}' has traffic"
        hint = "set its traffic, or send the header azureml-model-deployment"
        raise Error("ResourceNotFound", message, target=endpoint.name, hint=hint)
    return min(shares, key=lambda share: (-share[0], share[1]))[1]


def _models(services: Services, deployment: Deployment) -> dict[str, Signature | None]:
    """Empty for an image whose own command decides what it serves."""
    workload = deployment.workload
    if not workload.model.model_names:
        return {}
    files, container = services.models.layout(workload.model.digest).files, workload.container
    if container is not None and container.folder and container.repository == "":
        # The repository is the directory above the one that was uploaded.
        files = tuple(replace(file, path=f"{container.folder}/{file.path}") for file in files)
    found = signatures(StoredFiles(services.blobs.content, files))
    return {name: found.get(name) for name in workload.model.model_names}
