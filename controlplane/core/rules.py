"""Checks that need more than the document itself: other resources, and the limits of this server.

Decides what a valid document may still not ask for: names of what is not there, too many, too long. (What one document
shows by itself: ``amphitrite.schemas.consistency``; what this server cannot honour: ``unsupported``.) Must not know the
store, HTTP or where a document came from.

Every check returns violations, all of them; whoever calls raises one error. The limits' defaults are Azure ML's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from amphitrite.controlplane.core import instance_types, unsupported
from amphitrite.controlplane.core.resources import shares
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import key, parse_asset

Document = Mapping[str, Any]

#: What decides which libraries an instance loads and where it finds its parts: not for documents to change.
RESERVED = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "PATH", "PYTHONPATH", "PYTHONHOME"})
RESERVED_PREFIX = "AMPHITRITE_"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one server; ``ML_LIMIT_<NAME>`` raises each (see ``settings.Limits``)."""

    deployments_per_endpoint: int = 20
    instances_per_deployment: int = 50
    request_timeout_ms: int = 180_000


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a deployment's model reference resolved to."""

    name: str
    version: str
    type: str
    archived: bool
    model_names: tuple[str, ...]


def check_endpoint(document: Document, *, deployments: Collection[str]) -> list[Violation]:
    """Violations of an endpoint document; ``deployments`` are the names of those that exist and stay."""
    found = []
    for field in ("traffic", "mirror_traffic"):
        found += _shares(field, document.get(field) or {}, deployments)
    return found + unsupported.in_endpoint(document)


def check_deployment(document: Document, *, siblings: int, model: ModelFacts | None, bounds: Bounds) -> list[Violation]:
    """Violations of a deployment document. ``siblings``: how many other deployments the endpoint has; ``model``: what
    its reference names, None when there is no such version."""
    found, limit = _model(document, model), bounds.deployments_per_endpoint
    if siblings >= limit:
        message = f"the endpoint has {siblings} deployments already"
        found.append(_limit(("name",), message, "deployments_per_endpoint", limit))
    found += _instances(document, bounds) + _request_settings(document, bounds)
    return found + _environment_variables(document) + unsupported.in_deployment(document)


def check_removal(endpoint: Document, deployment: str) -> list[Violation]:
    """Why ``deployment`` cannot be deleted now: requests would go nowhere."""
    found = []
    for name, share in shares(endpoint.get("traffic")):
        if name == key(deployment):
            message = f"deployment {deployment} receives {share} % of the traffic of endpoint {endpoint['name']}"
            found.append(Violation(("traffic", name), message, f"set its traffic to 0 first: --traffic {name}=0"))
    for name, share in shares(endpoint.get("mirror_traffic")):
        if name == key(deployment):
            message = f"deployment {deployment} receives {share} % of the mirrored traffic of {endpoint['name']}"
            found.append(Violation(("mirror_traffic", name), message, f"first: --mirror-traffic {name}=0"))
    return found


def _shares(field: str, given: Document, deployments: Collection[str]) -> list[Violation]:
    """Each name with a share is that of a deployment."""
    known = {key(name) for name in deployments}
    hint = f"deployments of this endpoint: {', '.join(sorted(deployments)) or 'none'}"
    return [
        Violation((field, name), f"there is no deployment {name}", hint)
        for name, share in given.items()
        if int(share) and key(name) not in known
    ]


def _model(document: Document, model: ModelFacts | None) -> list[Violation]:
    if model is None:
        return [_no_model(document.get("model"))]
    found = []
    named = f"model {model.name}:{model.version}"
    if model.type != "triton_model":
        message = f"{named} is a {model.type}; this server serves triton_model"
        found.append(Violation(("model",), message, "register the files as type: triton_model"))
    elif not model.model_names:
        hint = "lay the files out as <model name>/<version number>/<model file>"
        found.append(Violation(("model",), f"{named} holds no model directory", hint))
    if model.archived:
        found.append(Violation(("model",), f"{named} is archived", f"ml model restore -n {model.name}"))
    chosen = (document.get("properties") or {}).get("amphitrite.scoring_model")
    if chosen is not None and model.type == "triton_model" and chosen not in model.model_names:
        message = f"{named} holds no model {chosen!r}"
        hint = f"allowed: {', '.join(model.model_names)}"
        found.append(Violation(("properties", "amphitrite.scoring_model"), message, hint))
    return found


def _no_model(reference: str | None) -> Violation:
    """Why ``reference`` leads to nothing; None: there is none."""
    if reference is None:
        return Violation(
            ("model",), "required: there is nothing else to serve", "write model: azureml:<name>:<version>"
        )
    name, version, label = parse_asset(reference) or (None, None, None)
    if name is None:
        return Violation(("model",), f"{reference} is not in this workspace", "register it here: ml model create")
    if version is None and label != "latest":
        found = f"label {label!r}" if label else "no version"
        return Violation(("model",), f"{reference} has {found}", f"write azureml:{name}:<version> or {name}@latest")
    return Violation(("model",), f"there is no model {name}:{version or label}", "register it first: ml model create")


def _instances(document: Document, bounds: Bounds) -> list[Violation]:
    found = []
    count = int(document.get("instance_count", 1))
    if count < 1:
        hint = "to stop serving, delete the deployment"
        found.append(Violation(("instance_count",), f"{count} is too few; allowed: 1 and more", hint))
    if count > bounds.instances_per_deployment:
        limit = bounds.instances_per_deployment
        found.append(_limit(("instance_count",), f"{count} are asked for", "instances_per_deployment", limit))
    if document.get("type", "managed") != "managed":
        return found  # an instance type of a Kubernetes compute is that compute's, which is refused as a whole
    try:
        instance_types.find(str(document.get("instance_type", "")))
    except Error as error:
        found.append(Violation(("instance_type",), error.message, error.hint))
    return found


def _request_settings(document: Document, bounds: Bounds) -> list[Violation]:
    timeout = int((document.get("request_settings") or {}).get("request_timeout_ms", 0))
    if timeout <= bounds.request_timeout_ms:
        return []
    path = ("request_settings", "request_timeout_ms")
    return [_limit(path, f"{timeout} ms is too long", "request_timeout_ms", bounds.request_timeout_ms)]


def _environment_variables(document: Document) -> list[Violation]:
    found = []
    for name in document.get("environment_variables") or {}:
        path = ("environment_variables", name)
        if name.upper() in RESERVED or name.upper().startswith(RESERVED_PREFIX):
            found.append(Violation(path, f"{name} is set by the server itself", "remove it or rename it"))
        elif not VARIABLE.match(name):
            hint = "letters, digits and _, not starting with a digit"
            found.append(Violation(path, f"{name!r} is no name of an environment variable", hint))
    return found


def _limit(path: tuple[str | int, ...], message: str, name: str, value: int) -> Violation:
    raise_it = f"the limit {name} is {value}; raise it with ML_LIMIT_{name.upper()} and restart the server"
    return Violation(path, f"{message}; at most {value}", raise_it)
