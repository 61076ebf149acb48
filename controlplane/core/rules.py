"""Checks that need more than one field or more than one resource, after the JSON Schemas had their say.

Decides what a valid document may still not ask for: shares that do not add up, names of what is not there, limits.
(What this server cannot honour: ``unsupported``.) Must not know the store, HTTP or where a document came from.

Every check returns violations, all of them; whoever calls raises one error. Sources: Azure ML's rules for online
endpoints (traffic 0 or 100, one mirror of at most 50 %, 20 deployments, 50 instances, 180 s).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from amphitrite.controlplane.core import instance_types, unsupported
from amphitrite.controlplane.core.resources import shares
from amphitrite.schemas.errors import Violation
from amphitrite.schemas.names import key

Document = Mapping[str, Any]

#: What decides which libraries an instance loads and where it finds its parts: not for documents to change.
RESERVED = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "PATH", "PYTHONPATH", "PYTHONHOME"})
RESERVED_PREFIX = "AMPHITRITE_"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

#: How much of an endpoint's traffic may be copied (Azure's bound).
MIRROR_MAX = 50


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one server; ``variable`` names what raises each (see ``settings.Limits``)."""

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
    found = _traffic(document, deployments) + _mirror(document, deployments)
    return found + unsupported.in_endpoint(document)


def check_deployment(
    document: Document, *, siblings: Collection[str], model: ModelFacts | None, bounds: Bounds
) -> list[Violation]:
    """Violations of a deployment document. ``siblings``: names of the endpoint's other deployments; ``model``: what
    its reference names, None when there is no such version."""
    found = _model(document, model)
    if len(siblings) >= bounds.deployments_per_endpoint:
        found.append(
            _limit(
                ("name",),
                f"the endpoint has {len(siblings)} deployments already",
                "deployments_per_endpoint",
                bounds.deployments_per_endpoint,
            )
        )
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


def _traffic(document: Document, deployments: Collection[str]) -> list[Violation]:
    traffic: Document = document.get("traffic") or {}
    found = _shares("traffic", traffic, deployments)
    total = sum(int(share) for share in traffic.values())
    if total not in (0, 100):
        listed = ", ".join(f"{name}={share}" for name, share in traffic.items())
        found.append(Violation(("traffic",), f"{listed} sum to {total}", "percentages must sum to 0 or 100"))
    return found


def _mirror(document: Document, deployments: Collection[str]) -> list[Violation]:
    mirror: Document = document.get("mirror_traffic") or {}
    found = _shares("mirror_traffic", mirror, deployments)
    copied = [name for name, share in mirror.items() if int(share)]
    if len(copied) > 1:
        message = f"{len(copied)} deployments get mirrored traffic: {', '.join(copied)}"
        found.append(Violation(("mirror_traffic",), message, "traffic can be mirrored to one deployment only"))
    live = {name for name, _ in shares(document.get("traffic"))}
    for name in copied:
        if int(mirror[name]) > MIRROR_MAX:
            message = f"{mirror[name]} % is mirrored; allowed: up to {MIRROR_MAX}"
            found.append(Violation(("mirror_traffic", name), message))
        if key(name) in live:
            message = f"{name} receives live traffic too"
            hint = "mirror to a deployment whose traffic is 0"
            found.append(Violation(("mirror_traffic", name), message, hint))
    return found


def _shares(field: str, given: Document, deployments: Collection[str]) -> list[Violation]:
    """What holds for both maps: each percentage, each name once, each name that of a deployment."""
    found = []
    known = {key(name): name for name in deployments}
    for name, count in Counter(key(name) for name in given).items():
        if count > 1:
            found.append(Violation((field,), f"{name} is named {count} times", "names compare without case"))
    for name, share in given.items():
        if not 0 <= int(share) <= 100:
            found.append(Violation((field, name), f"{share} is not a percentage", "allowed: 0 to 100"))
        if int(share) and key(name) not in known:
            there = ", ".join(sorted(known.values())) or "none"
            hint = f"deployments of this endpoint: {there}"
            found.append(Violation((field, name), f"there is no deployment {name}", hint))
    return found


def _model(document: Document, model: ModelFacts | None) -> list[Violation]:
    if model is None:
        message = f"there is no model {document.get('model')}"
        return [Violation(("model",), message, "register it first: ml model create")]
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


def _instances(document: Document, bounds: Bounds) -> list[Violation]:
    found = []
    count = int(document.get("instance_count", 1))
    if count < 1:
        hint = "to stop serving, delete the deployment"
        found.append(Violation(("instance_count",), f"{count} is too few; allowed: 1 and more", hint))
    if count > bounds.instances_per_deployment:
        limit = bounds.instances_per_deployment
        found.append(_limit(("instance_count",), f"{count} are asked for", "instances_per_deployment", limit))
    wanted = document.get("instance_type")
    if wanted is not None and instance_types.find(str(wanted)) is None:
        found.append(Violation(("instance_type",), f"{wanted!r} is not known", _instance_type_hint(str(wanted))))
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
