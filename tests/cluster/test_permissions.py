"""The least Role is enough, and not more: with it nothing is refused, and without any one verb
something is, by name.

The instances here fit no node, so that making and removing them takes no time.
"""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import kubernetes.client
import pytest
import yaml

from amphitrite.controlplane.core.desired.compute_clusters import BUILT_IN, PodShape
from amphitrite.controlplane.core.desired.resources import ModelReference, PodSettings, workload_spec
from amphitrite.controlplane.runtimes.kubernetes.client import api_client
from amphitrite.controlplane.runtimes.kubernetes.client.permissions import RULES, Rule
from amphitrite.controlplane.runtimes.kubernetes.kubernetes_runtime import KubernetesRuntime
from amphitrite.controlplane.runtimes.kubernetes.pods.object_cache import ObjectCache
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_logs import lines_of
from amphitrite.controlplane.runtimes.kubernetes.workload_writer import Writer
from amphitrite.controlplane.runtimes.kubernetes.workloads.object_names import SERVER
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import KubernetesSettings
from amphitrite.schemas.errors import Error

from ..controlplane.runtimes.runtime_subjects import PROBE
from ..waiting import wait_until
from .node import Cluster

pytestmark = [pytest.mark.serving, pytest.mark.cluster]

ACCOUNT = "least"
NOWHERE = PodShape("nowhere", (("cpu", "1m"),), (), {"nodeSelector": {"there-is": "no-such-node"}})
SPEC = workload_spec(
    "ep", "blue", ModelReference("m", "1", "0" * 64, ("m",)), "nowhere", {}, BUILT_IN, PodSettings(requests=())
)
VERBS = [(rule, verb) for rule in RULES for verb in rule.verbs]


def policy_rules(rules: tuple[Rule, ...]) -> list[dict[str, Any]]:
    """As a Role's ``rules``: one for each resource."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for rule in rules:
        verbs.setdefault((rule.group, rule.resource), []).extend(rule.verbs)
    return [{"apiGroups": [g], "resources": [r], "verbs": sorted(set(many))} for (g, r), many in verbs.items() if many]


@dataclass(frozen=True)
class Place:
    """A namespace with a service account that has a Role of ours."""

    cluster: Cluster
    namespace: str

    def create(self) -> None:
        """The account, with a Role that allows nothing yet."""
        self.cluster.core.create_namespaced_service_account(self.namespace, {"metadata": {"name": ACCOUNT}})
        self._roles.create_namespaced_role(self.namespace, {"metadata": {"name": ACCOUNT}, "rules": []})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT}
        account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": self.namespace}
        binding = {"metadata": {"name": ACCOUNT}, "roleRef": role, "subjects": [account]}
        self._roles.create_namespaced_role_binding(self.namespace, binding)

    def allow(self, rules: tuple[Rule, ...]) -> None:
        body = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": ACCOUNT, "namespace": self.namespace},
            "rules": policy_rules(rules),
        }
        self._roles.replace_namespaced_role(ACCOUNT, self.namespace, body)

    def may(self, rule: Rule, verb: str) -> bool:
        resource, _, part = rule.resource.partition("/")
        of = {"namespace": self.namespace, "group": rule.group, "resource": resource, "subresource": part, "verb": verb}
        asked = {"user": f"system:serviceaccount:{self.namespace}:{ACCOUNT}", "resourceAttributes": of}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
        reviews = kubernetes.client.AuthorizationV1Api(self.cluster.api)
        return bool(reviews.create_subject_access_review(review).status.allowed)

    def settings(self) -> KubernetesSettings:
        return KubernetesSettings(
            namespace=self.namespace,
            shape=lambda name: NOWHERE,
            grant=lambda workload: "Bearer none",
            facts=lambda digest: None,
            fetch_url="https://controlplane.invalid",
            fetch_ca="an authority",
        )

    def api(self) -> api_client.Cluster:
        return api_client.Cluster(api_client.from_text(self._kubeconfig))

    def clear(self) -> None:
        """Nothing is left of what a life has made."""
        apps, policies = self.cluster.apps, kubernetes.client.PolicyV1Api(self.cluster.api)
        apps.delete_collection_namespaced_deployment(self.namespace)
        policies.delete_collection_namespaced_pod_disruption_budget(self.namespace)
        self.cluster.core.delete_collection_namespaced_event(self.namespace)
        wait_until(
            lambda: (
                not apps.list_namespaced_deployment(self.namespace).items
                and not policies.list_namespaced_pod_disruption_budget(self.namespace).items
            ),
            "the deployments are gone",
        )

    @cached_property
    def _kubeconfig(self) -> str:
        request: dict[str, Any] = {"spec": {}}
        made = self.cluster.core.create_namespaced_service_account_token(ACCOUNT, self.namespace, request)
        return kubeconfig(self.cluster, made.status.token)

    @property
    def _roles(self) -> kubernetes.client.RbacAuthorizationV1Api:
        return kubernetes.client.RbacAuthorizationV1Api(self.cluster.api)


@pytest.fixture(scope="module")
def place(cluster: Cluster) -> Iterator[Place]:
    with cluster.namespace(prefix="permissions", empty=False) as namespace:
        place = Place(cluster, namespace)
        place.create()
        yield place


def kubeconfig(cluster: Cluster, token: str) -> str:
    """As a user would hand it in."""
    configuration = cluster.api.configuration
    ca = base64.b64encode(Path(configuration.ssl_ca_cert).read_bytes()).decode()
    return yaml.safe_dump(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {"server": configuration.host, "certificate-authority-data": ca}}],
            "users": [{"name": "u", "user": {"token": token}}],
        }
    )


class Life:
    """One workload from its first instance to its end; ``refusals``: everything that anybody
    refused on the way."""

    def __init__(self, place: Place, caplog: pytest.LogCaptureFixture) -> None:
        self._place, self._caplog = place, caplog
        self._errors: list[str] = []
        self._changed = threading.Event()
        self.runtime = KubernetesRuntime(BUILT_IN, place.api(), place.settings())

    @property
    def refusals(self) -> list[str]:
        problem = self.runtime.problem()
        logged = [record.getMessage() for record in self._caplog.records if record.levelno >= logging.WARNING]
        return [*self._errors, *logged, *([problem.message] if problem else [])]

    def attempt(self, what: Any) -> None:
        try:
            what()
        except Error as error:
            self._errors.append(error.message)

    def reach(self, condition: Any) -> bool:
        """Until it holds, or somebody refused something."""
        wait_until(
            lambda: bool(condition()) or bool(self.refusals),
            "a step is done or refused",
            30.0,
            detail=lambda: "\n".join(map(str, self.runtime.observe())),
        )
        return not self.refusals

    def live(self) -> None:
        there = self.runtime.observe
        if not self.reach(lambda: not self.runtime.unknown()):
            return
        for slot in (0, 1):
            self.attempt(lambda slot=slot: self.runtime.start(SPEC, slot, 1, PROBE, PROBE))
        if not self.reach(lambda: len([i for i in there() if i.fault]) == 2 and self._told()):
            return
        self.attempt(lambda: lines_of(self._place.api(), self._place.namespace, there()[0].id, SERVER, 10))
        self.attempt(self._stop_what_somebody_else_has_changed)
        if not self.reach(lambda: len(there()) == 1):
            return
        self.attempt(lambda: self.runtime.stop(there()[0].id, 0))
        self.reach(lambda: not there())

    def _told(self) -> bool:
        return any(
            event.involved_object.kind == "Deployment" and event.reason == "PodUnschedulable"
            for event in self._place.cluster.core.list_namespaced_event(self._place.namespace).items
        )

    def _stop_what_somebody_else_has_changed(self) -> None:
        admin = api_client.Cluster(self._place.cluster.api)
        where = f"/apis/apps/v1/namespaces/{self._place.namespace}/deployments/{SPEC.name}"
        before = admin.get(where)
        admin.patch(where, {"metadata": {"annotations": {"somebody": "else"}}}, "somebody")
        pod = next(i.id for i in self.runtime.observe())
        Writer(self._place.api(), self._place.settings(), ObjectCache(lambda: 0.0, lambda: None)).release(before, pod)


@pytest.fixture
def life(place: Place, caplog: pytest.LogCaptureFixture) -> Iterator[Life]:
    made: list[Life] = []

    class Born(Life):
        def __init__(self) -> None:
            super().__init__(place, caplog)
            made.append(self)

    yield Born  # type: ignore[misc]
    for one in made:
        one.runtime.close()
    place.clear()


def test_the_role_is_enough(place: Place, life: type[Life]) -> None:
    place.allow(RULES)
    wait_until(lambda: place.may(*VERBS[0]), "the Role counts")
    one = life()  # type: ignore[call-arg]
    one.live()
    assert one.refusals == []
    assert one.runtime.observe() == ()
    assert one.runtime.capacity(one.runtime.compute) is None, "nodes are the cluster's: not to see them is no failure"


@pytest.mark.parametrize(("rule", "verb"), VERBS, ids=[f"{verb}-{rule.resource}" for rule, verb in VERBS])
def test_no_verb_is_too_many(place: Place, life: type[Life], rule: Rule, verb: str) -> None:
    rest = tuple(v for v in rule.verbs if v != verb)
    place.allow(tuple(replace(r, verbs=rest) if r is rule else r for r in RULES))
    wait_until(lambda: not place.may(rule, verb), "the Role counts")
    one = life()  # type: ignore[call-arg]
    one.live()
    resource = rule.resource + (f".{rule.group}" if rule.group else "")
    assert any(f"{verb} {resource}" in told for told in one.refusals), one.refusals
