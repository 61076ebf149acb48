"""The wire form of managed and Kubernetes deployments.

Decides the field of each wire property, and which properties are read-only. Must not validate
values or look up resources: the caller's ``resolve`` converts references to ARM ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from amphitrite.schemas import casing
from amphitrite.schemas.errors import Error
from amphitrite.schemas.wire.endpoints import ENVELOPE, STATE, TAGS, without_system_values
from amphitrite.schemas.wire.field_tables import Field, Reader, enumeration, milliseconds, seconds, write

#: (kind of asset, reference in the document) -> ARM id without ``azureml:``.
Resolve = Callable[[Literal["models", "environments", "codes", "data"], str], str]


def without_prefix(kind: str, reference: str) -> str:
    """The default ``Resolve``, for references that are ARM ids."""
    return reference.removeprefix("azureml:")


def _write_collector(collector: Mapping[str, Any]) -> dict[str, Any]:
    """In a document the collector has one sampling rate; on the wire each collection has it."""
    collections = {}
    for name, entry in collector["collections"].items():
        enabled = entry["enabled"] == "true"
        collections[name] = {"dataCollectionMode": "Enabled" if enabled else "Disabled"}
        collections[name].update(write((Field("data", "dataId"), Field("client_id", "clientId")), entry))
        collections[name].update(write([Field("sampling_rate", "samplingRate")], collector))
    body: dict[str, Any] = {"collections": collections}
    body.update(write([enumeration("rolling_rate", "rollingRate"), _REQUEST_LOGGING], collector))
    return body


def _read_collector(body: object) -> dict[str, Any]:
    if not isinstance(body, Mapping) or not isinstance(body.get("collections"), Mapping):
        raise ValueError("must be a JSON object with a property `collections`, which is a JSON object")
    reader = Reader()
    document: dict[str, Any] = {"collections": {}}
    for name, entry in body["collections"].items():
        read = reader.read(_COLLECTION, reader.object(entry, (name,)), ("collections", name))
        mode = casing.to_document(read.pop("mode", "enabled"))
        if "sampling_rate" in read:
            document["sampling_rate"] = read.pop("sampling_rate")
        enabled = {"enabled": "true", "disabled": "false"}.get(str(mode), str(mode))
        document["collections"][name] = {"enabled": enabled, **read}
    rest = {key: value for key, value in body.items() if key != "collections"}
    document.update(reader.read([enumeration("rolling_rate", "rollingRate"), _REQUEST_LOGGING], rest, ()))
    if reader.violations:
        raise ValueError(str(reader.violations[0]))
    return document


_REQUEST_LOGGING = Field("request_logging", "requestLogging", fields=(Field("capture_headers", "captureHeaders"),))
_COLLECTION = (
    Field("mode", "dataCollectionMode"),
    Field("data", "dataId"),
    Field("client_id", "clientId"),
    Field("sampling_rate", "samplingRate"),
)
_QUANTITIES = (Field("cpu", "cpu"), Field("memory", "memory"), Field("gpu", "gpu"))
PROBE = (
    seconds("period", "period"),
    seconds("initial_delay", "initialDelay"),
    seconds("timeout", "timeout"),
    Field("success_threshold", "successThreshold"),
    Field("failure_threshold", "failureThreshold"),
)
CODE_CONFIGURATION = Field(
    "code_configuration",
    "codeConfiguration",
    fields=(Field("code", "codeId"), Field("scoring_script", "scoringScript")),
)
SCALE_SETTINGS = Field(
    "scale_settings",
    "scaleSettings",
    fields=(
        enumeration("type", "scaleType"),
        Field("min_instances", "minInstances"),
        Field("max_instances", "maxInstances"),
        seconds("polling_interval", "pollingInterval"),
        Field("target_utilization_percentage", "targetUtilizationPercentage"),
        seconds("idle_timeout", "idleTimeout"),
        enumeration("mode", "mode"),
    ),
)
REQUEST_SETTINGS = Field(
    "request_settings",
    "requestSettings",
    fields=(
        milliseconds("request_timeout_ms", "requestTimeout"),
        Field("max_concurrent_requests_per_instance", "maxConcurrentRequestsPerInstance"),
        milliseconds("max_queue_wait_ms", "maxQueueWait"),
    ),
)
RESOURCES = Field(
    "resources",
    "containerResourceRequirements",
    fields=(
        Field("requests", "containerResourceRequests", fields=_QUANTITIES),
        Field("limits", "containerResourceLimits", fields=_QUANTITIES),
    ),
)
DATA_COLLECTOR = Field("data_collector", "dataCollector", _write_collector, _read_collector)
PROPERTIES = (
    Field("description", "description"),
    Field("properties", "properties"),
    Field("model", "model"),
    Field("model_mount_path", "modelMountPath"),
    CODE_CONFIGURATION,
    Field("environment", "environmentId"),
    Field("environment_variables", "environmentVariables"),
    Field("app_insights_enabled", "appInsightsEnabled"),
    SCALE_SETTINGS,
    REQUEST_SETTINGS,
    Field("liveness_probe", "livenessProbe", fields=PROBE),
    Field("readiness_probe", "readinessProbe", fields=PROBE),
    enumeration("type", "endpointComputeType"),
    Field("instance_type", "instanceType"),
    RESOURCES,
    DATA_COLLECTOR,
    enumeration("egress_public_network_access", "egressPublicNetworkAccess"),
    Field("private_network_connection", "privateNetworkConnection"),
)
_SKU = Field("instance_count", "capacity")
_SKU_READ_ONLY = frozenset({"name", "tier", "size", "family"})
#: Defaults that clients and our own responses write out. They are dropped, so that equal documents
#: compare equal.
_DEFAULTS = {"type": "managed", "app_insights_enabled": False, "scale_settings": {"type": "default"}}


def deployment_to_wire(document: Mapping[str, Any], location: str, resolve: Resolve = without_prefix) -> dict[str, Any]:
    """The PUT body of a deployment.

    ``resolve`` converts references to models, environments, code and data to ARM ids. Raises Error
    BadArgument for an inline one, which the caller must register first.
    """
    body: dict[str, Any] = {"properties": {}, "environmentVariables": {}, "appInsightsEnabled": False}
    body.update(write(PROPERTIES, {"type": "managed", **_resolved(document, resolve)}))
    return {
        "location": location,
        "tags": document.get("tags") or {},
        "sku": {"name": "Default", "capacity": document.get("instance_count", 1)},
        "properties": body,
    }


def _resolved(document: Mapping[str, Any], resolve: Resolve) -> dict[str, Any]:
    def reference(kind: Literal["models", "environments", "codes", "data"], value: object, at: str) -> str:
        if not isinstance(value, str):
            raise Error("BadArgument", f"{at} must be a reference here; found an inline definition", target=at)
        return resolve(kind, value)

    resolved = dict(document)
    if "model" in resolved:
        resolved["model"] = reference("models", resolved["model"], "model")
    if "environment" in resolved:
        resolved["environment"] = reference("environments", resolved["environment"], "environment")
    code = resolved.get("code_configuration")
    if code and "code" in code:
        code = {**code, "code": reference("codes", code["code"], "code_configuration.code")}
        resolved["code_configuration"] = code
    collector = resolved.get("data_collector")
    if collector:
        collections = {}
        for name, entry in collector["collections"].items():
            if "data" in entry:
                at = f"data_collector.collections.{name}.data"
                entry = {**entry, "data": reference("data", entry["data"], at)}
            collections[name] = entry
        resolved["data_collector"] = {**collector, "collections": collections}
    return resolved


def deployment_from_wire(endpoint: str, name: str, body: object) -> dict[str, Any]:
    """The document of deployment ``name`` of ``endpoint``; references stay ARM ids.

    Raises Error BadArgument.
    """
    reader = Reader()
    envelope = reader.object(body, ())
    document: dict[str, Any] = {"name": name, "endpoint_name": endpoint}
    document.update(reader.read([TAGS], envelope, (), ENVELOPE | {"properties", "sku", "identity"}))
    sku = reader.object(envelope.get("sku"), ("sku",))
    document.update(reader.read([_SKU], sku, ("sku",), _SKU_READ_ONLY))
    properties = reader.object(envelope.get("properties"), ("properties",))
    document.update(reader.read(PROPERTIES, properties, ("properties",), STATE))
    reader.finish(f"onlineEndpoints/{endpoint}/deployments/{name}")
    document = without_system_values(document)
    return {k: v for k, v in document.items() if k not in _DEFAULTS or v != _DEFAULTS[k]}
