"""Desired state: endpoints and deployments as the store holds them, and their immutable workloads.

Decides the shape of desired state and how a document becomes one. Must not know the database,
processes or Envoy. Documents are the snake_case ones of ``amphitrite.schemas``, already validated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from amphitrite.controlplane.core.desired import scale_settings
from amphitrite.controlplane.core.desired.containers import SCORING_MODEL, Container
from amphitrite.controlplane.core.desired.scale_settings import ScaleSettings
from amphitrite.dataplane.table.routing_table import Auth, Comparison, Secret
from amphitrite.schemas.names import key

#: These defaults differ from Azure's. Azure allows 1 concurrent request per instance; Triton
#: batches concurrent requests, so it needs more of them.
DEFAULT_REQUEST_TIMEOUT_MS = 5_000
DEFAULT_MAX_CONCURRENT_REQUESTS_PER_INSTANCE = 128

#: Azure's name for the type of a Kubernetes deployment that sets no instance type.
DEFAULT_INSTANCE_TYPE = "defaultinstancetype"

#: The property of a deployment document that holds its ``CapacityPolicy``.
CAPACITY_POLICY = "amphitrite.capacity_policy"

#: The endpoint property with the allowed CORS origins, separated by commas.
CORS = "amphitrite.cors"

#: The property of a deployment document that holds its ``Retry``.
RETRY = "amphitrite.retry"

#: The built-in compute: this machine.
LOCAL = "local"

#: What to do if the compute lacks capacity for new instances. refuse: reject the change. wait: wait
#: until capacity is available. drain-first: drain old instances, one by one, to free capacity.
CapacityPolicy = Literal["refuse", "wait", "drain-first"]

#: Which requests are retried on another instance. not-run: those that certainly did not run.
#: lost-requests: also those whose instance was lost before it answered; they may have run.
Retry = Literal["not-run", "lost-requests"]


@dataclass(frozen=True, slots=True)
class Probe:
    """Probe settings with Azure's names; times in seconds."""

    initial_delay: int
    period: int
    timeout: int
    success_threshold: int
    failure_threshold: int


#: A stopped server refuses connections or answers 503 at once; the timeout only finds servers that
#: hang. It must not fail on a busy machine: with 2 s, requests within their own timeout were
#: answered 503.
DEFAULT_READINESS_PROBE = Probe(initial_delay=0, period=2, timeout=5, success_threshold=1, failure_threshold=2)
DEFAULT_LIVENESS_PROBE = Probe(initial_delay=10, period=10, timeout=5, success_threshold=1, failure_threshold=3)


@dataclass(frozen=True, slots=True)
class ModelReference:
    """A registered model version. ``digest``: of its manifest, so it changes whenever a file
    changes.

    ``model_names``: the Triton models in it (top-level directories), sorted.
    """

    name: str
    version: str
    digest: str
    model_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PodSettings:
    """The settings of a deployment that only new pods can get. For computes on a cluster only.

    ``readiness`` and ``liveness``: None if the document does not set them. ``requests`` and
    ``limits``: sorted (resource, quantity) pairs that override the instance type's.
    ``model_mount_path``: None for the runtime's default.
    """

    readiness: Probe | None = None
    liveness: Probe | None = None
    requests: tuple[tuple[str, str], ...] = ()
    limits: tuple[tuple[str, str], ...] = ()
    model_mount_path: str | None = None


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """What one instance runs. It is immutable: changing a field makes another workload
    (``core.planning.rollout.REPLACES``).

    ``name``: ``<endpoint>-<deployment>-<hash>`` in lower case, with a hash of all other fields.
    ``compute``: the name of the compute that it runs on. ``pod``: None exactly if that is
    ``LOCAL``. ``container``: what runs instead of this server's own Triton, None for that Triton.
    ``environment_variables``: a record of an instance may lack them, because they may be secret
    (``is_complete``). Workloads are compared without them: the name stands for them.
    """

    name: str
    endpoint: str
    deployment: str
    model: ModelReference
    instance_type: str
    environment_variables: tuple[tuple[str, str], ...] = field(default=(), compare=False)
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
    """A workload, with its name computed from the other fields."""
    variables = tuple(sorted(environment_variables.items()))
    content: list[Any] = [model.name, model.version, model.digest, key(instance_type), variables]
    if pod is not None:
        content += [compute, asdict(pod)]
    if container is not None:
        content.append(asdict(container))
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]
    name = f"{key(endpoint)}-{key(deployment)}-{digest}"
    return WorkloadSpec(name, key(endpoint), key(deployment), model, instance_type, variables, compute, pod, container)


def is_complete(workload: WorkloadSpec) -> bool:
    """Whether nothing of what its name stands for is missing."""
    made = workload_spec(
        workload.endpoint,
        workload.deployment,
        workload.model,
        workload.instance_type,
        dict(workload.environment_variables),
        workload.compute,
        workload.pod,
        workload.container,
    )
    return made.name == workload.name


@dataclass(frozen=True, slots=True)
class Pause:
    """Somebody has paused a deployment. ``at``: seconds since the epoch. ``by``: who, as the client
    says; empty if it did not."""

    at: float
    by: str = ""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment that a user wants.

    ``endpoint`` and ``name`` are lower case (names are compared without case). ``changed_at``: when
    the user last changed it, in seconds since the epoch; failures before that do not count.
    ``sequences``: one of its models keeps state between the requests of a sequence. ``number_ids``:
    one of these takes the id of the sequence as a number. ``instance_count``: the number that is
    wanted now: none while it is paused, else the document's, unless a scaler sets it
    (``core.scaling.scales``). ``scale_reason``: why that scaler changed it last. ``pause``: None
    unless it is paused.
    """

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
    number_ids: bool = False
    retry: Retry = "not-run"
    scale_settings: ScaleSettings | None = None
    max_queue_wait_ms: int = 0
    scale_reason: str = ""
    pause: Pause | None = None

    @property
    def may_sleep(self) -> bool:
        """Whether it has no instance after a while without requests, and the next one wakes it."""
        settings = self.scale_settings
        return settings is not None and settings.mode == "apply" and settings.min_instances == 0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that a user wants.

    ``name``: as the user wrote it. ``traffic`` and ``mirror_traffic``: sorted, without zeros.
    ``cors``: origins in the order given. ``comparison``: whose answers a rollout compares now.
    """

    name: str
    keys: tuple[Secret, ...]
    traffic: tuple[tuple[str, int], ...]
    mirror_traffic: tuple[tuple[str, int], ...]
    generation: int
    observed_generation: int
    deleting: bool
    auth_mode: Auth = "key"
    cors: tuple[str, ...] = ()
    comparison: Comparison | None = None

    @property
    def token_binding(self) -> str:
        """What binds a token to this very endpoint until its keys change (``token_binding``)."""
        return token_binding(self.name, self.keys)


def token_binding(name: str, keys: Iterable[Secret]) -> str:
    """32 hexadecimal digits that no other endpoint has, also no later one of the same name, since
    keys are random. Regenerating one of ``keys`` changes it, which revokes all tokens with it."""
    content = json.dumps([key(name), *(one.reveal() for one in keys)])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def stored_model(model: Mapping[str, Any]) -> tuple[ModelReference, Container | None]:
    """The model version, and its container if any, from the ``model`` that ``Store.put_deployment``
    got."""
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
    number_ids: bool = False,
    compute: str = LOCAL,
    generation: int,
    observed_generation: int,
    deleting: bool,
    ever_succeeded: bool,
    changed_at: float,
    pause: Pause | None = None,
) -> Deployment:
    """A deployment from a valid document and from what its model, environment and compute resolved
    to. Defaults are filled in."""
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
        instance_count=0 if pause is not None else int(document.get("instance_count", 1)),
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
        number_ids=number_ids,
        retry=properties.get(RETRY, "not-run"),
        scale_settings=scale_settings.of_document(document),
        max_queue_wait_ms=int(settings.get("max_queue_wait_ms", 0)),
        pause=pause,
    )


def pod_settings(document: Mapping[str, Any]) -> PodSettings:
    """The settings of a deployment document that only new pods can get."""
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
    """Sorted quantities; Azure's short name ``gpu`` becomes Kubernetes' resource name."""
    names = {"gpu": "nvidia.com/gpu"}
    return tuple(sorted((names.get(name, name), str(quantity)) for name, quantity in (given or {}).items()))


def probe(settings: Mapping[str, Any] | None, default: Probe) -> Probe:
    """Probe settings of a document; missing values come from ``default``."""
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
    """An endpoint from a valid document."""
    return Endpoint(
        name=document["name"],
        keys=keys,
        traffic=traffic_shares(document.get("traffic")),
        mirror_traffic=traffic_shares(document.get("mirror_traffic")),
        generation=generation,
        observed_generation=observed_generation,
        deleting=deleting,
        auth_mode=document.get("auth_mode", "key"),
        cors=cors_origins(document.get("properties")),
    )


def cors_origins(properties: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The origins in the property ``CORS``, each once."""
    given = str((properties or {}).get(CORS, "")).split(",")
    return tuple(dict.fromkeys(origin.strip() for origin in given if origin.strip()))


def traffic_shares(traffic: Mapping[str, Any] | None) -> tuple[tuple[str, int], ...]:
    """A traffic map as sorted (lower-case name, percent) pairs without zeros."""
    return tuple(sorted((key(name), int(share)) for name, share in (traffic or {}).items() if int(share)))
