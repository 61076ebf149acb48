"""What is wanted: endpoints and deployments as the store holds them, and the immutable workloads they ask for.

Decides the shape of desired state and how a document becomes one. Must not know the database, processes or Envoy.
Documents are the snake_case ones of ``amphitrite.schemas`` and are valid when they get here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from amphitrite.controlplane.core.desired.containers import SCORING_MODEL, Container
from amphitrite.dataplane.table.routing_table import Auth, Secret
from amphitrite.schemas.names import key

#: Ours where Azure's would starve Triton (Azure: 1 request at a time per instance; Triton batches concurrent ones).
DEFAULT_REQUEST_TIMEOUT_MS = 5_000
DEFAULT_MAX_CONCURRENT_REQUESTS_PER_INSTANCE = 128

#: Azure's name for what a Kubernetes deployment gets that names no instance type.
DEFAULT_INSTANCE_TYPE = "defaultinstancetype"

#: The property of a deployment document that holds its ``CapacityPolicy``.
CAPACITY_POLICY = "amphitrite.capacity_policy"

#: The property of an endpoint document that names the origins whose pages may score, separated by commas.
CORS = "amphitrite.cors"

#: The property of a deployment document that holds its ``Retry``.
RETRY = "amphitrite.retry"

#: The built-in compute: this machine.
LOCAL = "local"

#: What to do with instances that the compute has no room for now. refuse: say so before anything changes. wait: until
#: there is room. drain-first: where new and old do not fit side by side, old ones make room, one by one.
CapacityPolicy = Literal["refuse", "wait", "drain-first"]

#: Which requests run again on another instance. not-run: those that certainly did not run. lost-requests: also those
#: whose instance was lost before it answered, which may have run.
Retry = Literal["not-run", "lost-requests"]


@dataclass(frozen=True, slots=True)
class Probe:
    """Seconds and counts, as Azure's probe settings."""

    initial_delay: int
    period: int
    timeout: int
    success_threshold: int
    failure_threshold: int


#: A server that has gone refuses or answers 503, at once; the timeout is only for one that hangs, and must not take one
#: for hung that shares a busy machine: two seconds did, and answered 503 for what the model's own timeout allows.
DEFAULT_READINESS_PROBE = Probe(initial_delay=0, period=2, timeout=5, success_threshold=1, failure_threshold=2)
DEFAULT_LIVENESS_PROBE = Probe(initial_delay=10, period=10, timeout=5, success_threshold=1, failure_threshold=3)


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A registered version of model files. ``digest``: of the manifest, so it changes exactly when a file does.

    ``model_names``: the Triton models in it (top-level directories), sorted.
    """

    name: str
    version: str
    digest: str
    model_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodSettings:
    """What a deployment asks of its pods, and what only new pods can be given. On a cluster only.

    ``readiness`` and ``liveness``: None where the document leaves them to us. ``requests`` and ``limits``: sorted
    (resource, quantity), over what the instance type says. ``model_mount_path``: None for the runtime's own place.
    """

    readiness: Probe | None = None
    liveness: Probe | None = None
    requests: tuple[tuple[str, str], ...] = ()
    limits: tuple[tuple[str, str], ...] = ()
    model_mount_path: str | None = None


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """What one instance runs. Immutable: a change to any field is another workload (see ``rollout.REPLACES``).

    ``name`` is ``<endpoint>-<deployment>-<hash>`` in lower case, the hash over all other fields. ``compute``: the name
    of the compute that it runs on; ``pod`` is None exactly on ``LOCAL``. ``container``: what runs in place of our own
    Triton, None for that.
    """

    name: str
    endpoint: str
    deployment: str
    model: ModelReference
    instance_type: str
    environment_variables: tuple[tuple[str, str], ...] = ()
    compute: str = LOCAL
    pod: PodSettings | None = None
    container: Container | None = None


def workload_spec(
    endpoint: str,
    deployment: str,
    model: ModelReference,
    instance_type: str,
    environment_variables: Mapping[str, str],
    compute: str = LOCAL,
    pod: PodSettings | None = None,
    container: Container | None = None,
) -> WorkloadSpec:
    """A workload with its derived name."""
    variables = tuple(sorted(environment_variables.items()))
    content: list[Any] = [model.name, model.version, model.digest, key(instance_type), variables]
    if pod is not None:
        content += [compute, asdict(pod)]
    if container is not None:
        content.append(asdict(container))
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]
    name = f"{key(endpoint)}-{key(deployment)}-{digest}"
    return WorkloadSpec(name, key(endpoint), key(deployment), model, instance_type, variables, compute, pod, container)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A wanted deployment. ``endpoint`` and ``name`` are lower case (names compare without case). ``changed_at``: when
    the user last asked for it, in seconds since the epoch; failures before that are forgiven. ``sequences``: a model of
    it keeps state between the requests of one sequence."""

    endpoint: str
    name: str
    workload: WorkloadSpec
    instance_count: int
    request_timeout_ms: int
    max_concurrent_requests_per_instance: int
    readiness_probe: Probe
    liveness_probe: Probe
    scoring_model: str | None
    generation: int
    observed_generation: int
    deleting: bool
    ever_succeeded: bool
    changed_at: float
    capacity_policy: CapacityPolicy = "refuse"
    sequences: bool = False
    retry: Retry = "not-run"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A wanted endpoint. ``name`` as the user wrote it; ``traffic`` and ``mirror_traffic`` sorted, zeros left out;
    ``cors``: origins in the order given."""

    name: str
    keys: tuple[Secret, ...]
    traffic: tuple[tuple[str, int], ...]
    mirror_traffic: tuple[tuple[str, int], ...]
    generation: int
    observed_generation: int
    deleting: bool
    auth_mode: Auth = "key"
    cors: tuple[str, ...] = ()


def resolved(model: Mapping[str, Any]) -> tuple[ModelReference, Container | None]:
    """What ``Store.put_deployment`` was given as ``model``: the version, and the container that serves it, if any."""
    reference = ModelReference(model["name"], model["version"], model["digest"], tuple(model["model_names"]))
    container = model.get("container")
    return reference, Container(**container) if container is not None else None


def deployment_from_document(
    document: Mapping[str, Any],
    *,
    endpoint: str,
    model: ModelReference,
    container: Container | None = None,
    sequences: bool = False,
    compute: str = LOCAL,
    generation: int,
    observed_generation: int,
    deleting: bool,
    ever_succeeded: bool,
    changed_at: float,
) -> Deployment:
    """A valid deployment document, and what its model, environment and compute resolved to, as desired state with
    defaults."""
    settings = document.get("request_settings") or {}
    properties = document.get("properties") or {}
    variables = {k: str(v) for k, v in (document.get("environment_variables") or {}).items()}
    return Deployment(
        endpoint=key(endpoint),
        name=key(document["name"]),
        workload=workload_spec(
            endpoint,
            document["name"],
            model,
            str(document.get("instance_type") or DEFAULT_INSTANCE_TYPE),
            variables,
            compute,
            None if compute == LOCAL else pod_settings(document),
            container,
        ),
        instance_count=int(document.get("instance_count", 1)),
        request_timeout_ms=int(settings.get("request_timeout_ms", DEFAULT_REQUEST_TIMEOUT_MS)),
        max_concurrent_requests_per_instance=int(
            settings.get("max_concurrent_requests_per_instance", DEFAULT_MAX_CONCURRENT_REQUESTS_PER_INSTANCE)
        ),
        readiness_probe=probe(document.get("readiness_probe"), DEFAULT_READINESS_PROBE),
        liveness_probe=probe(document.get("liveness_probe"), DEFAULT_LIVENESS_PROBE),
        scoring_model=properties.get(SCORING_MODEL),
        generation=generation,
        observed_generation=observed_generation,
        deleting=deleting,
        ever_succeeded=ever_succeeded,
        changed_at=changed_at,
        capacity_policy=properties.get(CAPACITY_POLICY, "refuse"),
        sequences=sequences,
        retry=properties.get(RETRY, "not-run"),
    )


def pod_settings(document: Mapping[str, Any]) -> PodSettings:
    """What only new pods can be given."""
    resources = document.get("resources") or {}
    readiness, liveness = document.get("readiness_probe"), document.get("liveness_probe")
    return PodSettings(
        readiness=probe(readiness, DEFAULT_READINESS_PROBE) if readiness else None,
        liveness=probe(liveness, DEFAULT_LIVENESS_PROBE) if liveness else None,
        requests=_quantities(resources.get("requests")),
        limits=_quantities(resources.get("limits")),
        model_mount_path=document.get("model_mount_path"),
    )


def _quantities(given: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    """With Kubernetes' name for what Azure's documents call ``gpu`` for short."""
    names = {"gpu": "nvidia.com/gpu"}
    return tuple(sorted((names.get(name, name), str(quantity)) for name, quantity in (given or {}).items()))


def probe(settings: Mapping[str, Any] | None, default: Probe) -> Probe:
    """Probe settings of a document over our defaults."""
    values = settings or {}
    return Probe(
        initial_delay=int(values.get("initial_delay", default.initial_delay)),
        period=int(values.get("period", default.period)),
        timeout=int(values.get("timeout", default.timeout)),
        success_threshold=int(values.get("success_threshold", default.success_threshold)),
        failure_threshold=int(values.get("failure_threshold", default.failure_threshold)),
    )


def endpoint_from_document(
    document: Mapping[str, Any],
    *,
    keys: tuple[Secret, ...],
    generation: int,
    observed_generation: int,
    deleting: bool,
) -> Endpoint:
    """A valid endpoint document as desired state."""
    return Endpoint(
        name=document["name"],
        keys=keys,
        traffic=shares(document.get("traffic")),
        mirror_traffic=shares(document.get("mirror_traffic")),
        generation=generation,
        observed_generation=observed_generation,
        deleting=deleting,
        auth_mode=document.get("auth_mode", "key"),
        cors=origins(document.get("properties")),
    )


def origins(properties: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Those that the property ``CORS`` names, each once."""
    given = str((properties or {}).get(CORS, "")).split(",")
    return tuple(dict.fromkeys(origin.strip() for origin in given if origin.strip()))


def shares(traffic: Mapping[str, Any] | None) -> tuple[tuple[str, int], ...]:
    """A traffic map as sorted (lower-case name, percent) pairs without zeros."""
    return tuple(sorted((key(name), int(share)) for name, share in (traffic or {}).items() if int(share)))
