"""Two control planes before one real Lease: who leads, who takes over, how long that takes, and
what a follower does.

Each is the product's own process with an external data plane, on the test's machine, in the
cluster's namespace.
"""

from __future__ import annotations

import base64
import os
import secrets
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from kubernetes.client import CoordinationV1Api

from amphitrite.controlplane.leadership.lease_rules import DURATION_S
from amphitrite.dataplane.table.json_codec import from_json
from amphitrite.dataplane.table.seed import decode_seed

from .. import postgresql
from ..certificate import write_certificate
from ..ports import free_ports
from ..waiting import DEADLINE_S, wait_until
from .node import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.early]
WORKSPACE = "/subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/local"


@dataclass
class Replica:
    """One control plane. ``role``: what ``/healthz`` says, None while it does not answer."""

    root: Path
    environment: dict[str, str]
    client: httpx.Client
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> None:
        argv = [sys.executable, "-m", "amphitrite.controlplane", "start", "--home", str(self.root / "home")]
        with (self.root / "output").open("ab") as output:
            self.process = subprocess.Popen(argv, env=self.environment, stdout=output, stderr=output)

    def role(self) -> str | None:
        try:
            return str(self.client.get("/healthz").json()["role"])
        except httpx.TransportError:
            return None

    def ready(self) -> int | None:
        try:
            return self.client.get("/readyz").status_code
        except httpx.TransportError:
            return None


@pytest.fixture
def replicas(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[list[Replica]]:
    """Two that share a database, a Lease and a Secret for the table."""
    cluster.kubectl("create", "secret", "generic", "table", "-n", namespace)
    given = tmp_path / "given"
    given.mkdir()
    for name in ("token", "agent-token", "identity-header", "fetch-key"):
        (given / name).write_text(secrets.token_urlsafe(32))
    chain, key = write_certificate(tmp_path)
    (given / "tls.key").write_bytes(key.read_bytes())
    for name in ("tls.crt", "ca.crt"):
        (given / name).write_bytes(chain.read_bytes())
    trust = ssl.create_default_context(cafile=str(given / "ca.crt"))
    headers = {"Authorization": f"Bearer {(given / 'token').read_text()}"}
    made = []
    with postgresql.database() as url:
        for number, port in enumerate(free_ports(2)):
            root = tmp_path / f"replica-{number}"
            root.mkdir()
            environment = {
                "PATH": os.environ["PATH"],
                "ML_PORT": str(port),
                "ML_DATAPLANE": "external",
                "ML_RUNTIME": "kubernetes",
                "ML_KUBECONFIG": str(cluster.kubeconfig),
                "ML_KUBERNETES_NAMESPACE": namespace,
                "ML_POD_NAMESPACE": namespace,
                "ML_POD_NAME": f"replica-{number}",
                "ML_LEASE_NAME": "controlplane",
                "ML_TABLE_SECRET": "table",
                "ML_DATABASE_URL": url,
                "ML_MODELS_URL": f"file://{tmp_path}/models",
                "ML_TLS_DIRECTORY": str(given),
                "ML_CREDENTIALS_DIRECTORY": str(given),
                "ML_API_URL": "https://controlplane.example:8443",
                "ML_SCORING_URL": "https://scoring.example",
                "ML_LOG_TO": "stdout",
            }
            client = httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trust, headers=headers, timeout=30)
            made.append(Replica(root, environment, client))
        try:
            for replica in made:
                replica.start()
            yield made
        finally:
            for replica in made:
                replica.process.kill()
                replica.process.wait()
                replica.client.close()


def elapsed(condition: Callable[[], Any], what: str) -> float:
    began = time.monotonic()
    wait_until(condition, what)
    return time.monotonic() - began


def leader_and_follower(replicas: list[Replica]) -> tuple[Replica, Replica]:
    wait_until(lambda: {r.role() for r in replicas} == {"leader", "follower"}, "one leads, the other follows")
    first, second = replicas
    return (first, second) if first.role() == "leader" else (second, first)


def test_takeover(cluster: Cluster, namespace: str, replicas: list[Replica]) -> None:
    leader, follower = leader_and_follower(replicas)
    wait_until(lambda: (leader.ready(), follower.ready()) == (200, 200), "both are ready")

    # A change accepted by the follower is carried out by the leader, and both tell the proxies of
    # it.
    body = {"location": "local", "properties": {"authMode": "Key"}}
    answer = follower.client.put(f"{WORKSPACE}/onlineEndpoints/cats", json=body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["properties"]["scoringUri"] == "https://scoring.example/endpoints/cats/"
    for replica in replicas:
        table = wait_until(lambda r=replica: routes(r), "the table names the endpoint")  # type: ignore[misc]
        assert [route.name for route in from_json(table).routes] == ["cats"]
    wait_until(lambda: stored(cluster, namespace) == ["cats"], "the Secret holds the table")

    leader.process.send_signal(signal.SIGTERM)
    wait_until(lambda: leader.ready() != 200, "the leader is not ready any more")
    graceful = elapsed(lambda: follower.role() == "leader", "the follower leads")
    assert leader.process.wait(DEADLINE_S) == 0

    leader.start()
    leader, follower = leader_and_follower(replicas)
    leader.process.kill()
    leader.process.wait()
    killed = elapsed(lambda: follower.role() == "leader", "the follower leads")
    print(f"takeover after SIGTERM {graceful:.2f} s, after SIGKILL {killed:.2f} s")

    # Why the first is the shorter one: the Lease is given back, and need not run out.
    leader.start()
    leader, follower = leader_and_follower(replicas)
    follower.process.send_signal(signal.SIGSTOP)
    held = lease(cluster, namespace)
    assert held.holder_identity.startswith(leader.environment["ML_POD_NAME"])
    assert held.lease_duration_seconds == DURATION_S
    leader.process.send_signal(signal.SIGTERM)
    assert leader.process.wait(DEADLINE_S) == 0
    assert not lease(cluster, namespace).holder_identity
    follower.process.send_signal(signal.SIGCONT)
    wait_until(lambda: follower.role() == "leader", "the follower leads")


def lease(cluster: Cluster, namespace: str) -> Any:
    return CoordinationV1Api(cluster.api).read_namespaced_lease("controlplane", namespace).spec


def routes(replica: Replica) -> Any:
    answer = replica.client.get("/dataplane/v1/routing-table")
    return answer.json() if answer.status_code == 200 and answer.json()["routes"] else None


def stored(cluster: Cluster, namespace: str) -> list[str]:
    data = cluster.kubectl("get", "secret", "table", "-n", namespace, "-o", r"jsonpath={.data.routing-table\.json\.gz}")
    return [route.name for route in decode_seed(base64.b64decode(data)).routes] if data else []
