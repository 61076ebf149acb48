"""The whole product as a cluster has it: the chart installed in a namespace, and somebody who uses
it from outside.

Decides how the release is set up for tests: two control planes on a PostgreSQL outside the cluster,
two proxies behind a node port, models and the node cache on shared volumes. Must not know what is
tested.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from ..postgresql import Server, own_server
from ..system.user import User
from ..waiting import wait_until
from .images import Images
from .machine import ROOT
from .node import Cluster

CHART = ROOT / "deploy" / "helm" / "amphitrite"
EXAMPLE = ROOT / "examples" / "single-model"
NAME = "amphitrite"
LOAD = ROOT / "tests" / "load" / "closed_loop.py"
#: What clients under ``load`` do between two requests, where something else is named than the
#: test's own pause. 0 is as fast as they can, which leaves less to the other tests.
THINK_MS = os.environ.get("AMPHITRITE_LOAD_THINK_MS")
#: Instance types as the example names them, in sizes that many of them fit one small node.
SMALL = {
    "requests": {"cpu": "50m", "memory": "400Mi"},
    "limits": {"memory": "400Mi"},
}
GPU = {
    "requests": {**SMALL["requests"], "nvidia.com/gpu": "1"},
    "limits": {**SMALL["limits"], "nvidia.com/gpu": "1"},
}


class Release(User):
    """An installed chart. ``environment`` makes ``ml`` and clients talk to it."""

    def __init__(
        self,
        cluster: Cluster,
        images: Images,
        in_namespace: str,
        files: Path,
        ports: tuple[int, int],
        postgresql: Server,
    ) -> None:
        self.cluster, self.images, self.namespace, self.files = cluster, images, in_namespace, files
        self.postgresql = postgresql
        addresses = cluster.core.list_node().items[0].status.addresses
        self.node = next(each.address for each in addresses if each.type == "InternalIP")
        self.api_url = f"https://{self.node}:{ports[0]}"
        self.scoring = (self.node, ports[1])
        self.scoring_url = f"https://{self.node}:{ports[1]}"
        self.ca_file = files / "ca.pem"
        self.environment: dict[str, str] = {}
        self.given: dict[str, Any] = {}
        self._token = ""

    def token(self) -> str:
        return self._token

    def values(self, database_url: str, **more: Any) -> dict[str, Any]:
        """Of the chart; ``more`` on top, key by key."""
        values: dict[str, Any] = {
            "images": {
                name: _image(getattr(self.images, name)) for name in ("controlplane", "dataplane", "fetcher", "triton")
            },
            "database": {"url": database_url},
            "models": {"persistence": {"enabled": True, "existingClaim": "models"}},
            "modelCache": {"type": "pvc", "pvc": {"existingClaim": "cache"}},
            "controlplane": {
                "hosts": [self.node],
                "url": self.api_url,
                "service": {"type": "NodePort", "nodePort": int(self.api_url.rpartition(":")[2])},
                "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
            },
            "dataplane": {
                "hosts": [self.node],
                "url": self.scoring_url,
                "service": {"type": "NodePort", "nodePort": self.scoring[1]},
                "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
            },
            "instances": {"storageRequests": self.cluster.counts_storage()},
            "networkPolicy": {"controlplane": {"ingressFrom": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}},
            "test": {"instanceType": "Standard_DS3_v2"},
            "instanceTypes": [
                {"name": "Standard_DS3_v2", "resources": SMALL},
                {"name": "Standard_NC6s_v3", "resources": GPU},
                {"name": "no-image", "resources": SMALL, "image": "docker.io/amphitrite/absent:1"},
                {"name": "no-node", "resources": SMALL, "node_selector": {"example.org/absent": "true"}},
            ],
        }
        for key, value in more.items():
            values[key] = {**values.get(key, {}), **value} if isinstance(value, dict) else value
        return values

    def install(self, values: dict[str, Any], verb: str = "install") -> None:
        """Until every pod of the chart is ready."""
        self.given = values
        document = self.files / "values.json"
        document.write_text(json.dumps(values))
        document.chmod(0o600)
        arguments = ("-n", self.namespace, "-f", str(document), "--wait", "--timeout", "180s")
        self.cluster.helm(verb, NAME, str(CHART), *arguments, timeout_s=200)
        self._connect()

    def uninstall(self) -> None:
        self.cluster.helm("uninstall", NAME, "-n", self.namespace, "--wait", "--timeout", "120s", timeout_s=150)

    def _connect(self) -> None:
        data = [secret.data or {} for secret in self.cluster.core.list_namespaced_secret(self.namespace).items]
        self._token = next(base64.b64decode(d["token"]).decode().strip() for d in data if "token" in d)
        authorities = {base64.b64decode(d["ca.crt"]).decode() for d in data if d.get("ca.crt")}
        self.ca_file.write_text("\n".join(sorted(authorities)))
        self.environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}",
            "HOME": str(self.files),
            "LANG": "C.UTF-8",
            "ML_SERVER_URL": self.api_url,
            "ML_TOKEN": self._token,
            "SSL_CERT_FILE": str(self.ca_file),
        }

    # -- pods --------------------------------------------------------------------------------------
    def pods(self, selector: str) -> list[dict[str, Any]]:
        # By the client: a process for each look would take the cores from those whom tests wait
        # for.
        found = self.cluster.core.list_namespaced_pod(self.namespace, label_selector=selector, _preload_content=False)
        pods: list[dict[str, Any]] = json.loads(found.data)["items"]
        return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]

    def ready(self, selector: str) -> list[str]:
        """Names of ready pods."""
        return [
            pod["metadata"]["name"]
            for pod in self.pods(selector)
            if any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
        ]

    def kill(self, pod: str) -> None:
        """SIGKILL, as when a node is lost: nothing is told to stop first."""
        if self.cluster.own is None:
            arguments = ("--grace-period=0", "--force", "--wait=false")
            self.cluster.kubectl("delete", "pod", pod, "-n", self.namespace, *arguments)
            return
        for container in self.cluster.core.read_namespaced_pod(pod, self.namespace).status.container_statuses:
            self.cluster.ctr("tasks", "kill", "-s", "SIGKILL", container.container_id.rpartition("/")[2])

    def restarts(self, pod: str) -> int:
        """Of its containers; 0 for a pod that is gone."""
        found = [p for p in self.pods("app.kubernetes.io/part-of=amphitrite") if p["metadata"]["name"] == pod]
        return sum(int(c["restartCount"]) for p in found for c in p["status"].get("containerStatuses", ()))

    def leader(self) -> str:
        """The identity that holds the Lease: a pod's name and what tells its processes apart."""
        leases = client.CoordinationV1Api(self.cluster.api).list_namespaced_lease(self.namespace).items
        return str(leases[0].spec.holder_identity or "") if leases else ""

    # -- load --------------------------------------------------------------------------------------
    @contextmanager
    def load(
        self, path: str, body: bytes, *, at_least: int = 200, connections: int = 4, think_ms: int = 40
    ) -> Iterator[dict[str, Any]]:
        """Requests from before the block begins until it has ended and there were ``at_least``; the
        dict holds what ``closed_loop`` reports then."""
        stop, payload, count = (self.files / name for name in ("stop", "body.json", "count"))
        for file in (stop, count):
            file.unlink(missing_ok=True)
        payload.write_bytes(body)
        running = subprocess.Popen(
            [
                *(sys.executable, str(LOAD), "--json", "--connections", str(connections), "--until-file", str(stop)),
                *("--count-file", str(count), "--requests", str(at_least), "--think-ms", THINK_MS or str(think_ms)),
                *("--url", f"{self.scoring_url}{path}", "--cafile", str(self.ca_file), "--body-file", str(payload)),
                *("--header", f"Authorization: Bearer {self.keys()[0]}"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        result: dict[str, Any] = {}
        try:
            wait_until(lambda: count.exists() and int(count.read_text() or 0), "the load is answered")
            yield result
        finally:
            stop.touch()
            output, _ = running.communicate(timeout=300)
            result.update(json.loads(output))


def _image(reference: str) -> dict[str, str]:
    registry, _, rest = reference.partition("/")
    repository, _, tag = rest.rpartition(":")
    return {"registry": registry, "repository": repository, "tag": tag, "pullPolicy": "Never"}


def _free_ports(cluster: Cluster, count: int) -> list[int]:
    """Node ports that no service has."""
    services = cluster.core.list_service_for_all_namespaces().items
    taken = {port.node_port for service in services for port in service.spec.ports or ()}
    start = 30_000 + os.getpid() % 2_000
    return [port for port in range(start, 32_767) if port not in taken][:count]


@contextmanager
def installed(cluster: Cluster, images: Images, files: Path, **values: Any) -> Iterator[Release]:
    """A release in a namespace of its own, with a PostgreSQL on this machine. When it has been
    uninstalled nothing is left there."""
    if cluster.host is None:
        pytest.skip("AMPHITRITE_TEST_HOST does not say under which address pods reach this machine")
    postgresql = own_server(cluster.host)
    with ExitStack() as stack:
        name = stack.enter_context(cluster.namespace(prefix="product"))
        for claim in ("models", "cache"):
            stack.enter_context(cluster.shared_volume(name, name=claim))
        api, scoring = _free_ports(cluster, 2)
        release = Release(cluster, images, name, files, (api, scoring), postgresql)
        release.install(release.values(postgresql.create_database(), **values))
        try:
            yield release
        finally:
            release.uninstall()
