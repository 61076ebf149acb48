"""The objects of one workload: a Deployment, and what belongs to it and goes with it.

Decides their fields, purely. Must not know what is in the cluster already. The Deployment is applied without instances
first and scaled when everything else is there; its template never changes, because another workload is another
Deployment. Everything else has it as its owner.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from amphitrite.controlplane.core.desired.resources import WorkloadSpec
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
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_probes import ending, load_budget_s
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_resources import demand
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import KubernetesSettings
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_template import CA_FILE, WORKLOAD_FILE, pod_template
from amphitrite.controlplane.runtimes.kubernetes.workloads.workload_json import to_json

#: The Deployment says that it does not get on when loading should long have ended; only people read it.
_PROGRESS_MARGIN_S = 120


def deployment(workload: WorkloadSpec, settings: KubernetesSettings, request_timeout_s: float) -> dict[str, Any]:
    """Raises Error("InvalidDeploymentSpec") and what ``settings.shape`` raises."""
    facts = settings.facts(workload.model.digest)
    asks = demand(settings.shape(workload.instance_type), workload.pod, facts)
    template = pod_template(workload, asks, settings, ending(request_timeout_s), facts)
    made = _object(workload, settings, "apps/v1", "Deployment")
    made["metadata"]["annotations"] = {SPEC_ANNOTATION: to_json(workload)}
    made["spec"] = {
        "replicas": 0,
        "revisionHistoryLimit": 1,
        "progressDeadlineSeconds": load_budget_s(workload.pod, facts) + _PROGRESS_MARGIN_S,
        # For people who restart it by hand; a change of the workload is another Deployment.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "selector": {"matchLabels": selector_labels(workload)},
        "template": template,
    }
    return _hashed(made)


def companions(workload: WorkloadSpec, settings: KubernetesSettings, owner_uid: str) -> list[dict[str, Any]]:
    """Service, ConfigMap and NetworkPolicy; ``owner_uid``: the Deployment's."""
    made = [_service(workload, settings), _config_map(workload, settings)]
    if settings.network_policy:
        made.append(_network_policy(workload, settings))
    return [_hashed(_owned(one, workload, owner_uid)) for one in made]


def disruption_budget(workload: WorkloadSpec, settings: KubernetesSettings, owner_uid: str) -> dict[str, Any]:
    """For more than one instance: all but one stay. Said as the one that may go, it is right for every number of
    them, so that it cannot stand in the way of a drain while the number changes."""
    made = _object(workload, settings, "policy/v1", "PodDisruptionBudget")
    made["spec"] = {
        "maxUnavailable": 1,
        "selector": {"matchLabels": selector_labels(workload)},
        # What serves nothing yet need not be waited for.
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return _hashed(_owned(made, workload, owner_uid))


def _service(workload: WorkloadSpec, settings: KubernetesSettings) -> dict[str, Any]:
    """Headless: names for the pods, for people and Prometheus; the proxies have the pods' addresses themselves."""
    made = _object(workload, settings, "v1", "Service")
    port = http_port(workload)
    ports = [{"name": "http", "port": port, "targetPort": port, "protocol": "TCP", "appProtocol": "http"}]
    if grpc_port(workload) is not None:
        grpc = {"name": "grpc", "port": GRPC_PORT, "targetPort": GRPC_PORT, "protocol": "TCP"}
        ports.append({**grpc, "appProtocol": "kubernetes.io/h2c"})
    if workload.container is None:
        ports.append({"name": "metrics", "port": METRICS_PORT, "targetPort": METRICS_PORT, "protocol": "TCP"})
    made["spec"] = {"clusterIP": "None", "selector": selector_labels(workload), "ports": ports}
    return made


def _config_map(workload: WorkloadSpec, settings: KubernetesSettings) -> dict[str, Any]:
    made = _object(workload, settings, "v1", "ConfigMap")
    made["data"] = {WORKLOAD_FILE: to_json(workload), **({CA_FILE: settings.fetch_ca} if settings.fetch_ca else {})}
    return made


def _network_policy(workload: WorkloadSpec, settings: KubernetesSettings) -> dict[str, Any]:
    made = _object(workload, settings, "networking.k8s.io/v1", "NetworkPolicy")
    anywhere: dict[str, Any] = {"namespaceSelector": {}}
    labelled = {"podSelector": {"matchLabels": dict(settings.proxy_selector or ())}}
    proxies = [{**anywhere, **labelled}] if settings.proxy_selector else None
    egress = _egress(settings)
    ports = [_tcp(http_port(workload))] + ([_tcp(GRPC_PORT)] if grpc_port(workload) is not None else [])
    made["spec"] = {
        "podSelector": {"matchLabels": selector_labels(workload)},
        "policyTypes": ["Ingress", *(["Egress"] if egress is not None else [])],
        "ingress": [
            {**({"from": proxies} if proxies else {}), "ports": ports},
            # What a container has on its other ports is not known.
            *([{"from": [anywhere], "ports": [_tcp(METRICS_PORT)]}] if workload.container is None else []),
        ],
        **({"egress": egress} if egress is not None else {}),
    }
    return made


def _egress(settings: KubernetesSettings) -> list[dict[str, Any]] | None:
    """A policy holds for a pod's whole life and knows no host names: what fetching needs is open, by port, to all."""
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


def _owned(made: dict[str, Any], workload: WorkloadSpec, owner_uid: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": object_name(workload), "uid": owner_uid}
    made["metadata"]["ownerReferences"] = [owner]
    return made


def _hashed(made: dict[str, Any]) -> dict[str, Any]:
    """With a digest of its content, by which a later look sees whether somebody else has changed it."""
    content: Sequence[Any] = [value for name, value in sorted(made.items()) if name != "metadata"]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
    made["metadata"].setdefault("annotations", {})[HASH_ANNOTATION] = digest
    return made
