"""The objects of one workload: a Deployment and its dependents.

Decides their fields, with pure functions. Must not know what exists in the cluster. The Deployment
is created with zero replicas and scaled once its dependents exist. Its template never changes,
because another workload is another Deployment. It owns all other objects.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from amphitrite.controlplane.core.desired.resources import WorkloadSpec
from amphitrite.controlplane.runtimes.kubernetes.workloads import grants
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import (
    GRPC_PORT,
    HASH_ANNOTATION,
    METRICS_PORT,
    SPEC_ANNOTATION,
    grpc_port,
    http_port,
    labels,
    object_name,
    selector_labels,
)
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_probes import load_budget_s, termination
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_resources import demand
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import KubernetesSettings
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_template import (
    CA_FILE,
    cpu_configurations,
    pod_template,
    secret_values,
)
from amphitrite.controlplane.runtimes.kubernetes.workloads.workload_json import to_json

#: Seconds after which Kubernetes reports that the Deployment makes no progress, beyond the time for
#: loading. Only for people.
_PROGRESS_MARGIN_S = 120
#: A label that Kubernetes gives each namespace.
_NAMESPACE_NAME = "kubernetes.io/metadata.name"


def deployment(workload: WorkloadSpec, settings: KubernetesSettings, request_timeout_s: float) -> dict[str, Any]:
    """Raises Error("InvalidDeploymentSpec"), and what ``settings.shape`` raises."""
    facts = settings.facts(workload.model.digest)
    shape = demand(settings.shape(workload.instance_type), workload.pod, facts)
    template = pod_template(workload, shape, settings, termination(request_timeout_s), facts)
    manifest = _object(workload, settings, "apps/v1", "Deployment")
    marks = {} if settings.cache.kind == "image" else grants.mark(settings.grant(workload))
    manifest["metadata"]["annotations"] = {SPEC_ANNOTATION: to_json(workload), **marks}
    manifest["spec"] = {
        "replicas": 0,
        "revisionHistoryLimit": 1,
        "progressDeadlineSeconds": load_budget_s(workload.pod, facts) + _PROGRESS_MARGIN_S,
        # For people who restart it by hand. Another workload is another Deployment.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "selector": {"matchLabels": selector_labels(workload)},
        "template": template,
    }
    return _hashed(manifest)


def dependents(workload: WorkloadSpec, settings: KubernetesSettings, owner_uid: str) -> list[dict[str, Any]]:
    """Service, ConfigMap, NetworkPolicy and Secret, without those that would be empty.
    ``owner_uid``: the Deployment's."""
    manifest = [_service(workload, settings)]
    if (config := _config_map(workload, settings))["data"]:
        manifest.append(config)
    if settings.network_policy:
        manifest.append(_network_policy(workload, settings))
    owned = [_hashed(_owned(one, workload, owner_uid)) for one in manifest]
    # Without a hash: from it a short value could be guessed.
    if (secret := _secret(workload, settings))["data"]:
        owned.append(_owned(secret, workload, owner_uid))
    return owned


def disruption_budget(workload: WorkloadSpec, settings: KubernetesSettings, owner_uid: str) -> dict[str, Any]:
    """For more than one instance: all but one must stay. As ``maxUnavailable: 1`` it is right for
    any number of instances, so it cannot block a node's drain while the number changes."""
    manifest = _object(workload, settings, "policy/v1", "PodDisruptionBudget")
    manifest["spec"] = {
        "maxUnavailable": 1,
        "selector": {"matchLabels": selector_labels(workload)},
        # Pods that are not ready may be evicted.
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return _hashed(_owned(manifest, workload, owner_uid))


def _service(workload: WorkloadSpec, settings: KubernetesSettings) -> dict[str, Any]:
    """Headless: DNS names of the pods, for people and Prometheus. The proxies have the pods'
    addresses."""
    manifest = _object(workload, settings, "v1", "Service")
    port = http_port(workload)
    ports = [{"name": "http", "port": port, "targetPort": port, "protocol": "TCP", "appProtocol": "http"}]
    if grpc_port(workload) is not None:
        grpc = {"name": "grpc", "port": GRPC_PORT, "targetPort": GRPC_PORT, "protocol": "TCP"}
        ports.append({**grpc, "appProtocol": "kubernetes.io/h2c"})
    if workload.container is None:
        ports.append({"name": "metrics", "port": METRICS_PORT, "targetPort": METRICS_PORT, "protocol": "TCP"})
    manifest["spec"] = {"clusterIP": "None", "selector": selector_labels(workload), "ports": ports}
    return manifest


def _config_map(workload: WorkloadSpec, settings: KubernetesSettings) -> dict[str, Any]:
    facts = settings.facts(workload.model.digest)
    shape = demand(settings.shape(workload.instance_type), workload.pod, facts)
    manifest = _object(workload, settings, "v1", "ConfigMap")
    manifest["data"] = {
        **({CA_FILE: settings.fetch_ca} if settings.fetch_ca else {}),
        **{key: one.text for key, one in cpu_configurations(workload, shape, facts).items()},
    }
    return manifest


def _secret(workload: WorkloadSpec, settings: KubernetesSettings) -> dict[str, Any]:
    manifest = _object(workload, settings, "v1", "Secret")
    manifest["type"] = "Opaque"
    values = secret_values(workload, settings)
    manifest["data"] = {name: base64.b64encode(text.encode()).decode() for name, text in values.items()}
    return manifest


def _network_policy(workload: WorkloadSpec, settings: KubernetesSettings) -> dict[str, Any]:
    manifest = _object(workload, settings, "networking.k8s.io/v1", "NetworkPolicy")
    anywhere: dict[str, Any] = {"namespaceSelector": {}}
    labelled = {"podSelector": {"matchLabels": dict(settings.proxy_selector or ())}}
    home = {"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: settings.proxy_namespace}}}
    proxies = [{**(home if settings.proxy_namespace else anywhere), **labelled}] if settings.proxy_selector else None
    watchers = [anywhere] if settings.metrics_from is None else [dict(peer) for peer in settings.metrics_from]
    egress = _egress(settings)
    ports = [_tcp(http_port(workload))] + ([_tcp(GRPC_PORT)] if grpc_port(workload) is not None else [])
    manifest["spec"] = {
        "podSelector": {"matchLabels": selector_labels(workload)},
        "policyTypes": ["Ingress", *(["Egress"] if egress is not None else [])],
        "ingress": [
            {**({"from": proxies} if proxies else {}), "ports": ports},
            # The other ports of a custom container are unknown.
            *([{"from": watchers, "ports": [_tcp(METRICS_PORT)]}] if workload.container is None and watchers else []),
        ],
        **({"egress": egress} if egress is not None else {}),
    }
    return manifest


def _egress(settings: KubernetesSettings) -> list[dict[str, Any]] | None:
    """A NetworkPolicy is fixed for a pod's lifetime and has no host names, so the ports for
    downloads are open to any host."""
    if settings.egress_ports is None:
        return None
    url = urlsplit(settings.fetch_url)
    ports = sorted({url.port or 443, *settings.egress_ports})
    dns = [{"port": 53, "protocol": "UDP"}, _tcp(53)]
    return [{"ports": dns}, {"ports": [_tcp(port) for port in ports]}]


def _tcp(port: int) -> dict[str, Any]:
    return {"port": port, "protocol": "TCP"}


def _object(workload: WorkloadSpec, settings: KubernetesSettings, api_version: str, kind: str) -> dict[str, Any]:
    metadata = {
        "name": object_name(workload),
        "namespace": settings.namespace,
        "labels": labels(workload, settings.release),
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _owned(manifest: dict[str, Any], workload: WorkloadSpec, owner_uid: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": object_name(workload), "uid": owner_uid}
    manifest["metadata"]["ownerReferences"] = [owner]
    return manifest


def _hashed(manifest: dict[str, Any]) -> dict[str, Any]:
    """With a hash of its content in an annotation, which shows whether somebody else has changed
    it."""
    content: Sequence[Any] = [value for name, value in sorted(manifest.items()) if name != "metadata"]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    manifest["metadata"].setdefault("annotations", {})[HASH_ANNOTATION] = digest
    return manifest
