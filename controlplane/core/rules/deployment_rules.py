"""Rules that need more than the document: other resources, and the limits of this server.

Decides what a valid document may still not ask for: resources that do not exist, values above a
limit. ``schemas.documents.cross_field_rules`` checks a document by itself; ``unsupported_fields``
refuses what this server does not support. Must not know the store, HTTP or where a document came
from.

Each check returns all violations; the caller raises one error. The default limits are Azure ML's.
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
    cors_origins,
)
from amphitrite.controlplane.core.rules import compute_rules, scale_rules, unsupported_fields
from amphitrite.schemas.errors import Error, Violation
from amphitrite.schemas.names import key, nearest, parse_asset, parse_compute

Document = Mapping[str, Any]

#: These decide which libraries an instance loads, so a document may not set them.
RESERVED = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "PATH", "PYTHONPATH", "PYTHONHOME"})
RESERVED_PREFIX = "AMPHITRITE_"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

#: Scheme, host in lower case and an optional port; no path (RFC 6454, section 6.2).
ORIGIN = re.compile(r"(https|http|[a-z][a-z0-9+.-]*-extension)://([a-z0-9_.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?\Z")

#: The maximum total length of an endpoint's origins. They become one regular expression, whose size
#: Envoy limits.
ORIGINS_MAX = 800


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of this server. ``ML_LIMIT_<NAME>`` changes each (see
    ``settings.settings.Limits``)."""

    deployments_per_endpoint: int = 20
    instances_per_deployment: int = 50
    request_timeout_ms: int = 180_000


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The model version that a deployment's reference resolved to.

    ``model_names``: the Triton models in it; in a custom_model only if a container serves it.
    ``sequences``: one of them keeps state between requests.
    """

    name: str
    version: str
    type: str
    archived: bool
    model_names: tuple[str, ...]
    sequences: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where an endpoint's instances run. ``compute``: None for this machine. ``chosen``: the
    endpoint's document names the compute, which makes it a Kubernetes endpoint."""

    compute: Compute | None = None
    chosen: bool = False

    @property
    def name(self) -> str:
        """The name of the compute."""
        return LOCAL if self.compute is None else self.compute.name


def check_endpoint(
    document: Document, *, deployments: Collection[str], computes: Collection[str] = (), former: Document | None = None
) -> list[Violation]:
    """Violations of an endpoint document.

    ``deployments``: the names of its deployments that are not being deleted. ``computes``: the
    names of attached clusters. ``former``: the existing document, None if the endpoint is new.
    """
    violations = []
    for field in ("traffic", "mirror_traffic"):
        violations += _shares(field, document.get(field) or {}, deployments, (former or {}).get(field) or {})
    violations += _compute(document, computes, former) + _cors(document)
    return violations + unsupported_fields.in_endpoint(document)


def check_deployment(
    document: Document, *, siblings: int, model: ModelFacts | None, bounds: Bounds, place: Place = Place()
) -> list[Violation]:
    """Violations of a deployment document.

    ``siblings``: how many other deployments the endpoint has. ``model``: what the model reference
    resolves to, None if that version does not exist. ``place``: where the endpoint's instances run.
    """
    violations, limit = _model(document, model), bounds.deployments_per_endpoint
    if siblings >= limit:
        message = f"the endpoint has {siblings} deployments already"
        violations.append(_limit(("name",), message, "deployments_per_endpoint", limit))
    violations += _type(document, place) + _instance_type(document, place)
    violations += scale_rules.check(document, bounds.instances_per_deployment)
    violations += _request_settings(document, bounds) + _environment_variables(document) + _pods(document, place)
    violations += _retry(document, model)
    return violations + unsupported_fields.in_deployment(document, on_cluster=place.compute is not None)


def _shares(field: str, given: Document, deployments: Collection[str], former: Document) -> list[Violation]:
    """Every name must be a deployment, whatever its share. Only a share of 0 that the stored
    document (``former``) has too may outlive its deployment."""
    names, stored = {key(name) for name in deployments}, {key(name) for name in former}
    hint = f"deployments of this endpoint: {', '.join(sorted(deployments)) or 'none'}"
    return [
        Violation((field, name), f"there is no deployment {name}", _did_you_mean(name, deployments, hint))
        for name, share in given.items()
        if key(name) not in names and (int(share) or key(name) not in stored)
    ]


def _did_you_mean(name: str, known: Collection[str], hint: str) -> str:
    near = nearest(name, known)
    return f"did you mean {near}? {hint}" if near else hint


def _compute(document: Document, computes: Collection[str], former: Document | None) -> list[Violation]:
    """The compute must exist, and must be the one that the endpoint was created with."""
    compute = _compute_name(document)
    if former is not None and (was := _compute_name(former)) != compute:
        message = f"cannot be changed after creation; the current value is {f'azureml:{was}' if was else 'not set'}"
        return [Violation(("compute",), message, "create another endpoint, or leave compute as it is")]
    if compute is None or compute in {key(name) for name in computes}:
        return []
    attached = f"attached: {', '.join(sorted(computes))}" if computes else "no compute is attached"
    if compute == LOCAL:
        return [Violation(("compute",), "local is not a Kubernetes compute", f"remove compute; {attached}")]
    hint = f"{attached}; attach one with ml compute attach --type kubernetes, or remove compute"
    return [Violation(("compute",), f"there is no compute {compute}", hint)]


def _cors(document: Document) -> list[Violation]:
    """Origins must be in the form that browsers send; no other form would ever match."""
    path, allowed_origins = ("properties", CORS), cors_origins(document.get("properties"))
    hint = "write origins as browsers send them, such as https://app.example or http://localhost:3000, or * for any"
    invalid = [one for one in allowed_origins if one != "*" and not ORIGIN.match(one)]
    violations = [Violation(path, f"{one!r} is not a valid origin", hint) for one in invalid]
    if (length := sum(map(len, allowed_origins))) > ORIGINS_MAX:
        message = f"the origins have {length} characters; at most {ORIGINS_MAX}"
        violations.append(Violation(path, message, "list fewer origins, or use * for any"))
    return violations


def _compute_name(document: Document) -> str | None:
    reference = document.get("compute")
    name = parse_compute(str(reference)) if reference else None
    return key(name) if name is not None else None


def _type(document: Document, place: Place) -> list[Violation]:
    """Deployments of a Kubernetes endpoint must be Kubernetes deployments, and no others may be."""
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
    """The type must exist on the compute. If the deployment's own type is wrong, that is reported
    instead."""
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
    """Pod settings and the capacity policy."""
    violations = []
    policy = (document.get("properties") or {}).get(CAPACITY_POLICY)
    if policy is not None and policy not in get_args(CapacityPolicy):
        message = f"unknown policy {policy!r}; allowed: {', '.join(get_args(CapacityPolicy))}"
        hint = "refuse: reject the change; wait: wait for capacity; drain-first: stop old instances to free capacity"
        violations.append(Violation(("properties", CAPACITY_POLICY), message, hint))
    if place.compute is None:
        return violations
    if not document.get("environment"):  # With an environment, ``containers`` checks it.
        violations += containers.check_mount_path(document)
    return violations + compute_rules.quantities(document.get("resources") or {}, ("resources",))


def _model(document: Document, model: ModelFacts | None) -> list[Violation]:
    if model is None:
        return [_no_model(document.get("model"))]
    violations = []
    label = f"model {model.name}:{model.version}"
    contained = bool(document.get("environment"))
    if model.type == "custom_model" and not contained:
        message = f"{label} is a custom_model; without an environment, this server serves only triton_model"
        hint = "register the files as type: triton_model, or set an environment with a Triton image"
        violations.append(Violation(("model",), message, hint))
    elif model.type == "mlflow_model":
        message = f"{label} is an mlflow_model; this server serves triton_model, and custom_model with an environment"
        hint = "export the model (to ONNX, for example) and register the files as type: triton_model"
        violations.append(Violation(("model",), message, hint))
    elif not model.model_names and not contained:
        hint = "arrange the files as <model name>/<version number>/<model file>"
        violations.append(Violation(("model",), f"{label} contains no model directory", hint))
    if model.archived:
        violations.append(
            Violation(("model",), f"{label} is archived", f"restore it: ml model restore -n {model.name}")
        )
    chosen = (document.get("properties") or {}).get(containers.SCORING_MODEL)
    serves = model.type == "triton_model" or (contained and model.type == "custom_model")
    if chosen is not None and serves and chosen not in model.model_names:
        message = f"{label} contains no model {chosen!r}"
        hint = f"allowed: {', '.join(model.model_names) or 'none'}"
        violations.append(Violation(("properties", containers.SCORING_MODEL), message, hint))
    return violations


def _no_model(reference: str | None) -> Violation:
    """Why ``reference`` resolves to no model version. None: the document has no reference."""
    if reference is None:
        return Violation(("model",), "required: the deployment names no model", "set model: azureml:<name>:<version>")
    name, version, label = parse_asset(reference) or (None, None, None)
    if name is None:
        return Violation(("model",), f"{reference} is not in this workspace", "register it here: ml model create")
    if version is None and label != "latest":
        tail = f"label {label!r}" if label else "no version"
        return Violation(("model",), f"{reference} has {tail}", f"write azureml:{name}:<version> or {name}@latest")
    return Violation(("model",), f"there is no model {name}:{version or label}", "register it first: ml model create")


def _request_settings(document: Document, bounds: Bounds) -> list[Violation]:
    timeout = int((document.get("request_settings") or {}).get("request_timeout_ms", 0))
    if timeout <= bounds.request_timeout_ms:
        return []
    path = ("request_settings", "request_timeout_ms")
    return [_limit(path, f"{timeout} ms is too long", "request_timeout_ms", bounds.request_timeout_ms)]


def _retry(document: Document, model: ModelFacts | None) -> list[Violation]:
    """A request of a sequence must not run twice, because that would corrupt the model's state."""
    path, chosen = ("properties", RETRY), (document.get("properties") or {}).get(RETRY)
    if chosen is not None and chosen not in get_args(Retry):
        hint = "not-run: retry only requests that did not run; lost-requests: retry also those that may have run"
        return [Violation(path, f"unknown value {chosen!r}; allowed: {', '.join(get_args(Retry))}", hint)]
    if chosen == "lost-requests" and model is not None and model.sequences:
        message = f"model {model.name}:{model.version} serves sequences, whose requests must not run twice"
        return [Violation(path, message, f"remove {RETRY}, or set it to not-run")]
    return []


def _environment_variables(document: Document) -> list[Violation]:
    violations = []
    for name in document.get("environment_variables") or {}:
        path = ("environment_variables", name)
        if name.upper() in RESERVED or name.upper().startswith(RESERVED_PREFIX):
            violations.append(Violation(path, f"{name} is reserved for the server", "remove it or rename it"))
        elif not VARIABLE.match(name):
            hint = "use letters, digits and _, and do not start with a digit"
            violations.append(Violation(path, f"{name!r} is not a valid name of an environment variable", hint))
    return violations


def _limit(path: tuple[str | int, ...], message: str, name: str, value: int) -> Violation:
    raise_it = f"the limit {name} is {value}; raise it with ML_LIMIT_{name.upper()} and restart the server"
    return Violation(path, f"{message}; at most {value}", raise_it)
