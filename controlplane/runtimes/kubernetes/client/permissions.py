"""What a control plane may do in the namespace of its instances, verb by verb, and why.

Decides the smallest sufficient Role. The Helm chart grants exactly this Role, and a test removes
each verb and checks what fails. Must not know how it is granted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
    Rule("apps", "deployments", ("get",), "read a Deployment again that somebody else has changed"),
    Rule("apps", "deployments", ("list", "watch"), "find the existing workloads"),
    Rule("apps", "deployments", ("create", "patch"), "create a workload (server-side apply) and scale it"),
    Rule("apps", "deployments", ("delete",), "delete a workload without instances"),
    Rule("", "pods", ("list", "watch"), "read instances, their addresses and what keeps them from starting"),
    Rule("", "pods", ("patch",), "select the pod to delete when a workload is scaled down"),
    Rule("", "pods/log", ("get",), "show logs, and find out why a container exited"),
    Rule("", "events", ("list", "watch"), "read the kubelet's messages about volumes and probes"),
    Rule("", "events", ("create",), "show faults in kubectl"),
    Rule("", "services", ("create", "patch"), "create DNS names for a workload's pods"),
    Rule("", "configmaps", ("create", "patch"), "store the certificate authority that the fetcher trusts"),
    Rule("networking.k8s.io", "networkpolicies", ("create", "patch"), "allow only proxies to reach instances"),
    Rule(
        "policy", "poddisruptionbudgets", ("create", "patch", "delete"), "protect workloads with more than one instance"
    ),
)

#: In the whole cluster, optional: without them no request can be refused for lack of capacity
#: before it is tried.
CLUSTER_RULES: tuple[Rule, ...] = (
    Rule("", "nodes", ("list",), "read the capacity of nodes"),
    Rule("", "pods", ("list",), "read the capacity in use"),
)


def policy_rules(rules: tuple[Rule, ...]) -> list[dict[str, Any]]:
    """A Role's ``rules``: one for each resource."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        verbs.setdefault((rule.group, rule.resource), []).extend(rule.verbs)
    return [{"apiGroups": [g], "resources": [r], "verbs": sorted(set(many))} for (g, r), many in verbs.items() if many]
