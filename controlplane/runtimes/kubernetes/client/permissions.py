"""What a control plane may do in the namespace of its instances, verb by verb, and why.

Decides the smallest sufficient Role. The Helm chart grants exactly this Role, and a test removes
each verb and checks what fails. Must not know how it is granted.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """``group``: an API group, empty for the core group. ``resource``: may include a subresource,
    as in ``pods/log``."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str


#: In the namespace of the instances.
RULES: tuple[Rule, ...] = (
    Rule("apps", "deployments", ("get",), "read again what another client has changed"),
    Rule("apps", "deployments", ("list", "watch"), "see which workloads exist"),
    Rule("apps", "deployments", ("create", "patch"), "make a workload (server-side apply), scale it"),
    Rule("apps", "deployments", ("delete",), "remove a workload whose last instance is gone"),
    Rule("", "pods", ("list", "watch"), "see instances, their addresses and what keeps them from starting"),
    Rule("", "pods", ("patch",), "choose the pod to delete when a workload scales down"),
    Rule("", "pods/log", ("get",), "show logs, and find why a container ended"),
    Rule("", "events", ("list", "watch"), "read the kubelet's reports on volumes and probes"),
    Rule("", "events", ("create",), "report faults to users of kubectl"),
    Rule("", "services", ("create", "patch"), "give a workload's pods names"),
    Rule("", "configmaps", ("create", "patch"), "hold the certificate authority that the fetcher trusts"),
    Rule("", "secrets", ("create", "patch"), "hold environment variables and the grant of the fetcher"),
    Rule("networking.k8s.io", "networkpolicies", ("create", "patch"), "let only proxies reach instances"),
    Rule("policy", "poddisruptionbudgets", ("create", "patch", "delete"), "protect workloads of several instances"),
)

#: In the whole cluster, optional: without them no request can be refused for lack of capacity
#: before it is tried.
CLUSTER_RULES: tuple[Rule, ...] = (
    Rule("", "nodes", ("list",), "see the cluster's capacity"),
    Rule("", "pods", ("list",), "see how much of it is in use"),
)
