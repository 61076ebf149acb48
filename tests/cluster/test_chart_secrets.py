"""What the chart made once stays as it is: over an upgrade, a rollback, and a new name in a
certificate.

No image is needed: Helm does not wait for pods here.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from kubernetes import client

from ..helm.chart import CHART
from .node import Cluster

pytestmark = pytest.mark.cluster

RELEASE = "kept"
GENERATED = ("authority", "credentials", "controlplane-tls", "dataplane-tls")
VALUES = (
    *("--set", "controlplane.replicas=1", "--set", "dataplane.replicas=1"),
    *("--set", "database.existingSecret.name=somewhere", "--set", "models.s3.bucket=models"),
    *("--set", "rbac.clusterCapacity=false", "--set", "images.controlplane.pullPolicy=Never"),
    *("--set", "images.dataplane.pullPolicy=Never"),
)


class Release:
    """A release in a namespace, and what is in its Secrets."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster, self._namespace = cluster, namespace

    def helm(self, verb: str, *arguments: str) -> None:
        self._cluster.helm(verb, RELEASE, *arguments, "--namespace", self._namespace)

    def secret(self, name: str) -> dict[str, str]:
        found: Any = self._cluster.core.read_namespaced_secret(f"{RELEASE}-amphitrite-{name}", self._namespace)
        return dict(found.data or {})

    def generated(self) -> dict[str, dict[str, str]]:
        return {name: self.secret(name) for name in GENERATED}

    def write(self) -> None:
        """As a leading control plane would."""
        body = {"data": {"routing-table.json.gz": base64.b64encode(b"table").decode()}}
        self._cluster.core.patch_namespaced_secret(f"{RELEASE}-amphitrite-routing-table", self._namespace, body)
        leases = client.CoordinationV1Api(self._cluster.api)
        lease = {"spec": {"holderIdentity": "leader"}}
        leases.patch_namespaced_lease(f"{RELEASE}-amphitrite-controlplane", self._namespace, lease)

    def holder(self) -> str | None:
        leases = client.CoordinationV1Api(self._cluster.api)
        lease: Any = leases.read_namespaced_lease(f"{RELEASE}-amphitrite-controlplane", self._namespace)
        holder: str | None = lease.spec.holder_identity if lease.spec else None
        return holder


@pytest.fixture
def release(cluster: Cluster, namespace: str) -> Release:
    made = Release(cluster, namespace)
    made.helm("install", str(CHART), *VALUES)
    return made


def names(certificate: str) -> set[str]:
    loaded = x509.load_pem_x509_certificate(base64.b64decode(certificate))
    extension = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return set(extension.value.get_values_for_type(x509.DNSName))


def test_an_upgrade_and_a_rollback_keep_everything(release: Release) -> None:
    made = release.generated()
    assert all(made["credentials"].values())
    release.write()
    release.helm("upgrade", str(CHART), *VALUES, "--set", "controlplane.logFormat=text")
    assert release.generated() == made
    release.helm("rollback", "1")
    assert release.generated() == made
    assert base64.b64decode(release.secret("routing-table")["routing-table.json.gz"]) == b"table"
    assert release.holder() == "leader"


def test_a_new_name_makes_a_new_certificate_of_the_same_authority(release: Release) -> None:
    made = release.generated()
    release.helm("upgrade", str(CHART), *VALUES, "--set", "dataplane.hosts={scoring.example.com}")
    after = release.generated()
    assert names(after["dataplane-tls"]["tls.crt"]) == {*names(made["dataplane-tls"]["tls.crt"]), "scoring.example.com"}
    unchanged = [name for name in GENERATED if name != "dataplane-tls"]
    assert {name: after[name] for name in unchanged} == {name: made[name] for name in unchanged}


def test_a_key_that_is_missing_is_made_and_the_others_stay(release: Release, cluster: Cluster, namespace: str) -> None:
    """As after an upgrade from a release that knew fewer."""
    made = release.secret("credentials")
    name = f"{RELEASE}-amphitrite-credentials"
    cluster.core.patch_namespaced_secret(name, namespace, {"data": {"fetch-key": None}})
    release.helm("upgrade", str(CHART), *VALUES)
    after = release.secret("credentials")
    assert after["fetch-key"] not in ("", made["fetch-key"])
    assert {**after, "fetch-key": made["fetch-key"]} == made
