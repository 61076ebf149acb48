"""Checks that need more than the document itself: other resources, and the limits of this server.

Decides what a valid document may still not ask for: names of what is not there, too many, too long. What one document
shows by itself is in ``schemas.documents.cross_field_rules``; what this server cannot honour is in
``unsupported_fields``. Must not know the store, HTTP or where a document came from.

Every check returns violations, all of them; whoever calls raises one error. The limits' defaults are Azure ML's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from amphitrite.controlplane.core.desired import containers, instance_types
from amphitrite.controlplane.core.desired.compute_clusters import Compute
from amphitrite.controlplane.core.desired.resources import (
    CAPACITY_POLICY,
    CORS,
    LOCAL,
    RETRY,
    CapacityPolicy,
    Retry,
    origins,
)
from amphitrite.controlplane.core.rules import compute_rules, unsupported_fields
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import key, parse_asset, parse_compute

Document = Mapping[str, Any]

#: What decides which libraries an instance loads and where it finds its parts: not for documents to change.
RESERVED = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "PATH", "PYTHONPATH", "PYTHONHOME"})
RESERVED_PREFIX = "AMPHITRITE_"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

#: Scheme, host in lower case and perhaps a port; no path.
ORIGIN = re.compile(r"(https|http|[a-z][a-z0-9+.-]*-extension)://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?\Z")

#: Characters of all of an endpoint's origins: they become one regular expression, whose size Envoy bounds.
ORIGINS_MAX = 800


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one server; ``ML_LIMIT_<NAME>`` raises each (see ``settings.Limits``)."""

    deployments_per_endpoint: int = 20
    instances_per_deployment: int = 50
    request_timeout_ms: int = 180_000


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a deployment's model reference resolved to. ``model_names``: the Triton models in it; in a custom_model they
    are looked for only where a container serves it. ``sequences``: one of them keeps state between requests."""

    name: str
    version: str
    type: str
    archived: bool
    model_names: tuple[str, ...]
    sequences: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where an endpoint's instances run. ``compute`` None: on this machine. ``chosen``: the endpoint's document names
    the compute, which makes it a Kubernetes endpoint."""

    compute: Compute | None = None
    chosen: bool = False

    @property
    def name(self) -> str:
        """Of the compute."""
        return LOCAL if self.compute is None else self.compute.name


def check_endpoint(
    document: Document, *, deployments: Collection[str], computes: Collection[str] = (), former: Document | None = None
) -> list[Violation]:
    """Violations of an endpoint document; ``deployments`` are the names of those that exist and stay, ``computes``
    those of clusters; ``former``: the document that it replaces."""
    found = []
    for field in ("traffic", "mirror_traffic"):
        found += _shares(field, document.get(field) or {}, deployments)
    found += _compute(document, computes, former) + _cors(document)
    return found + unsupported_fields.in_endpoint(document)


def check_deployment(
    document: Document, *, siblings: int, model: ModelFacts | None, bounds: Bounds, place: Place = Place()
) -> list[Violation]:
    """Violations of a deployment document. ``siblings``: how many other deployments the endpoint has; ``model``: what
    its reference names, None when there is no such version; ``place``: where the endpoint's instances run."""
    found, limit = _model(document, model), bounds.deployments_per_endpoint
    if siblings >= limit:
        message = f"the endpoint has {siblings} deployments already"
        found.append(_limit(("name",), message, "deployments_per_endpoint", limit))
    found += _type(document, place) + _instances(document, bounds) + _instance_type(document, place)
    found += _request_settings(document, bounds) + _environment_variables(document) + _pods(document, place)
    found += _retry(document, model)
    return found + unsupported_fields.in_deployment(document, on_cluster=place.compute is not None)


def _shares(field: str, given: Document, deployments: Collection[str]) -> list[Violation]:
    """Each name with a share is that of a deployment."""
    known = {key(name) for name in deployments}
    hint = f"deployments of this endpoint: {', '.join(sorted(deployments)) or 'none'}"
    return [
        Violation((field, name), f"there is no deployment {name}", hint)
        for name, share in given.items()
        if int(share) and key(name) not in known
    ]


def _compute(document: Document, computes: Collection[str], former: Document | None) -> list[Violation]:
    """It is there, and it is the one that the endpoint was created with."""
    named = _compute_name(document)
    if former is not None and (was := _compute_name(former)) != named:
        message = f"cannot be changed after creation; it is {f'azureml:{was}' if was else 'not set'}"
        return [Violation(("compute",), message, "create another endpoint, or leave compute as it is")]
    if named is None or named in {key(name) for name in computes}:
        return []
    known = f"attached: {', '.join(sorted(computes))}" if computes else "none is attached"
    if named == LOCAL:
        return [Violation(("compute",), "local is no Kubernetes compute", f"remove compute; {known}")]
    hint = f"{known}; attach one with ml compute attach --type kubernetes, or remove compute"
    return [Violation(("compute",), f"there is no compute {named}", hint)]


def _cors(document: Document) -> list[Violation]:
    """Origins as browsers write them: anything else would never match one."""
    path, given = ("properties", CORS), origins(document.get("properties"))
    hint = "write origins as browsers send them, such as https://app.example or http://localhost:3000, or * for any"
    wrong = [one for one in given if one != "*" and not ORIGIN.match(one)]
    found = [Violation(path, f"{one!r} is no origin", hint) for one in wrong]
    if (length := sum(map(len, given))) > ORIGINS_MAX:
        message = f"the origins have {length} characters; at most {ORIGINS_MAX}"
        found.append(Violation(path, message, "name fewer, or * for any"))
    return found


def _compute_name(document: Document) -> str | None:
    reference = document.get("compute")
    name = parse_compute(str(reference)) if reference else None
    return key(name) if name is not None else None


def _type(document: Document, place: Place) -> list[Violation]:
    """Deployments of a Kubernetes endpoint are Kubernetes deployments, and no others are."""
    kind = str(document.get("type", "managed"))
    if place.chosen and kind != "kubernetes":
        message = f"{kind}: the endpoint runs on compute {place.name}, so its deployments are of type kubernetes"
        return [Violation(("type",), message, "set type: kubernetes")]
    if not place.chosen and kind != "managed":
        where = f"compute {place.name}" if place.compute else f"this machine (compute {place.name})"
        message = f"{kind}: the endpoint names no compute, and its instances run on {where}"
        hint = "set type: managed, or create the endpoint with compute: azureml:<name of an attached compute>"
        return [Violation(("type",), message, hint)]
    return []


def _instance_type(document: Document, place: Place) -> list[Violation]:
    """It is known where the instances run; a deployment of another type than its place has is about something else."""
    if place.compute is None and document.get("type", "managed") != "managed":
        return []
    name = str(document.get("instance_type") or "")
    try:
        if place.compute is None:
            instance_types.find(name)
        else:
            instance_types.shape(name or place.compute.default_instance_type, place.compute)
    except Error as error:
        return [Violation(("instance_type",), error.message, error.hint)]
    return []


def _pods(document: Document, place: Place) -> list[Violation]:
    """What concerns pods, and what to do where they lack room."""
    found = []
    policy = (document.get("properties") or {}).get(CAPACITY_POLICY)
    if policy is not None and policy not in get_args(CapacityPolicy):
        message = f"found {policy!r}; allowed: {', '.join(get_args(CapacityPolicy))}"
        hint = "refuse: say so before anything changes; wait: until there is room; drain-first: old ones make room"
        found.append(Violation(("properties", CAPACITY_POLICY), message, hint))
    if place.compute is None:
        return found
    if not document.get("environment"):  # With one, ``containers`` judges it.
        found += containers.mount_path(document)
    return found + compute_rules.quantities(document.get("resources") or {}, ("resources",))


def _model(document: Document, model: ModelFacts | None) -> list[Violation]:
    if model is None:
        return [_no_model(document.get("model"))]
    found = []
    named = f"model {model.name}:{model.version}"
    contained = bool(document.get("environment"))
    if model.type == "custom_model" and not contained:
        message = f"{named} is a custom_model; without environment this server serves triton_model"
        hint = "register the files as type: triton_model, or give environment with an image of Triton"
        found.append(Violation(("model",), message, hint))
    elif model.type == "mlflow_model":
        message = f"{named} is an mlflow_model; this server serves triton_model, and custom_model with environment"
        hint = "export the model (to ONNX, for example) and register the files as type: triton_model"
        found.append(Violation(("model",), message, hint))
    elif not model.model_names and not contained:
        hint = "lay the files out as <model name>/<version number>/<model file>"
        found.append(Violation(("model",), f"{named} holds no model directory", hint))
    if model.archived:
        found.append(Violation(("model",), f"{named} is archived", f"ml model restore -n {model.name}"))
    chosen = (document.get("properties") or {}).get(containers.SCORING_MODEL)
    serves = model.type == "triton_model" or (contained and model.type == "custom_model")
    if chosen is not None and serves and chosen not in model.model_names:
        message = f"{named} holds no model {chosen!r}"
        hint = f"allowed: {', '.join(model.model_names) or 'none'}"
        found.append(Violation(("properties", containers.SCORING_MODEL), message, hint))
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
    return found


def _request_settings(document: Document, bounds: Bounds) -> list[Violation]:
    timeout = int((document.get("request_settings") or {}).get("request_timeout_ms", 0))
    if timeout <= bounds.request_timeout_ms:
        return []
    path = ("request_settings", "request_timeout_ms")
    return [_limit(path, f"{timeout} ms is too long", "request_timeout_ms", bounds.request_timeout_ms)]


def _retry(document: Document, model: ModelFacts | None) -> list[Violation]:
    """A part of a sequence that runs twice spoils the state that the model keeps."""
    path, chosen = ("properties", RETRY), (document.get("properties") or {}).get(RETRY)
    if chosen is not None and chosen not in get_args(Retry):
        hint = "not-run: only what certainly did not run; lost-requests: also what a lost instance may have run"
        return [Violation(path, f"found {chosen!r}; allowed: {', '.join(get_args(Retry))}", hint)]
    if chosen == "lost-requests" and model is not None and model.sequences:
        message = f"model {model.name}:{model.version} serves sequences, whose requests must not run twice"
        return [Violation(path, message, f"remove {RETRY}, or set it to not-run")]
    return []


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
