"""Proxies in pods with a seed and without any control plane: ready when they can serve, gone
without a lost request."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from amphitrite.dataplane.table.routing_table import Address, Cluster, HealthCheck, Route, RoutingTable, Secret, Target
from amphitrite.dataplane.table.seed import encode_seed

from ..certificate import write_certificate
from ..waiting import wait_until
from . import node
from .images import Images
from .pods import create, restricted_pod, told

pytestmark = [pytest.mark.cluster, pytest.mark.early]
KEY = "a-key-of-this-test"
PORT = 9443
CONFIG = "/etc/amphitrite"

#: An instance: ready, and answers whatever it is asked.
INSTANCE = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", 65536
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    do_GET = do_POST
    def log_message(self, *words): pass
ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""

#: Clients on kept connections until /tmp/stop is there; then the counts, by status or kind of
#: failure.
LOAD = f"""
import collections, http.client, json, os, ssl, threading
counts, seen, pause = collections.Counter(), threading.Lock(), threading.Event()
context = ssl._create_unverified_context()
def client():
    connection = None
    while not os.path.exists("/tmp/stop"):
        try:
            if connection is None:
                connection = http.client.HTTPSConnection("proxy", {PORT}, timeout=10, context=context)
            connection.request("POST", "/endpoints/images/", "{{}}", {{"authorization": "Bearer {KEY}"}})
            answer = connection.getresponse()
            answer.read()
            outcome = str(answer.status)
            if answer.will_close:
                connection = None
        except Exception as exc:
            outcome, connection = repr(exc), None
        with seen:
            counts[outcome] += 1
            if counts.total() % 500 == 0:
                print(json.dumps(counts), flush=True)
        pause.wait(0.01)
threads = [threading.Thread(target=client) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(counts), flush=True)
"""


def proxy_pod(name: str, image: str) -> dict[str, Any]:
    """As the chart makes it: everything but the seed must be there, the seed may be."""
    pod = restricted_pod(
        name,
        image,
        args=[
            *("--id", "$(POD_NAME)", "--state", "/var/lib/amphitrite/state", "--run", "/run/amphitrite", "--logs", "-"),
            *("--control-plane", "https://nobody.invalid:8443", "--ca-file", f"{CONFIG}/tls.crt"),
            *("--token-file", f"{CONFIG}/token", "--listen", f"0.0.0.0:{PORT}"),
            *("--certificate", f"{CONFIG}/tls.crt", "--private-key", f"{CONFIG}/tls.key"),
            *("--seed", f"{CONFIG}/routing-table.json.gz", "--linger-s", "2", "--grace-s", "10"),
        ],
    )
    pod["metadata"]["labels"] = {"app": name}
    pod["spec"]["terminationGracePeriodSeconds"] = 20
    pod["spec"]["restartPolicy"] = "Always"
    pod["spec"]["volumes"].append({"name": "config", "secret": {"secretName": name, "defaultMode": 0o444}})
    (container,) = pod["spec"]["containers"]
    container["env"] = [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    container["resources"] = {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m"}}
    container["volumeMounts"].append({"name": "config", "mountPath": CONFIG, "readOnly": True})
    container["readinessProbe"] = {
        "httpGet": {"path": "/healthz", "port": PORT, "scheme": "HTTPS"},
        "periodSeconds": 1,
        "failureThreshold": 1,
    }
    return pod


def secret(name: str, directory: Path, seed: bytes | None) -> dict[str, Any]:
    chain, key = write_certificate(directory)
    data = {"tls.crt": chain.read_bytes(), "tls.key": key.read_bytes(), "token": b"a-token"}
    if seed is not None:
        data["routing-table.json.gz"] = seed
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }


def table(host: str) -> RoutingTable:
    target = Target("blue", "blue", 30.0, "/v2/models/m/infer")
    # Long enough for an instance that waits for its turn on a busy machine: without it there is no
    # other.
    check = HealthCheck(interval_s=0.5, timeout_s=10.0)
    cluster = Cluster("blue", (Address(host, 8000),), 64, 5.0, check)
    return RoutingTable(7, (Route("images", (Secret(KEY),), (target,), (("blue", 100),)),), (cluster,))


def test_proxies_without_a_control_plane(cluster: node.Cluster, images: Images, namespace: str, tmp_path: Path) -> None:
    kubectl = cluster.kubectl
    create(cluster, namespace, restricted_pod("instance", images.dataplane, command=["python", "-c", INSTANCE]))
    host = wait_until(
        lambda: cluster.core.read_namespaced_pod("instance", namespace).status.pod_ip, "the instance has an address"
    )
    pod = proxy_pod("proxy", images.dataplane)
    create(
        cluster,
        namespace,
        secret("proxy", tmp_path, encode_seed(table(host))),
        secret("bare", tmp_path, None),
        proxy_pod("bare", images.dataplane),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "proxy"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "proxy"}},
                "template": {"metadata": {"labels": {"app": "proxy"}}, "spec": pod["spec"]},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "proxy"},
            "spec": {"selector": {"app": "proxy"}, "ports": [{"port": PORT, "targetPort": PORT}]},
        },
    )
    kubectl("rollout", "status", "deployment/proxy", "-n", namespace, "--timeout=60s")

    create(cluster, namespace, restricted_pod("load", images.dataplane, command=["python", "-c", LOAD]))

    def served(at_least: int) -> None:
        def look() -> bool:
            with contextlib.suppress(client.ApiException):  # Not started yet.
                line = cluster.log(namespace, "load", tail_lines=1)
                return line.startswith("{") and int(json.loads(line).get("200", 0)) >= at_least
            return False

        wait_until(look, f"{at_least} requests are answered", detail=lambda: told(cluster, namespace, "load"))

    served(500)
    first = kubectl("get", "pods", "-n", namespace, "-l", "app=proxy", "-o", "name").split()
    for name in first:
        kubectl("delete", name, "-n", namespace, "--wait=true", "--timeout=60s")
        kubectl("rollout", "status", "deployment/proxy", "-n", namespace, "--timeout=60s")
    served(2000)
    kubectl("exec", "load", "-n", namespace, "--", "touch", "/tmp/stop")
    wait_until(
        lambda: cluster.core.read_namespaced_pod("load", namespace).status.phase == "Succeeded", "the load has ended"
    )
    counts = json.loads(kubectl("logs", "load", "-n", namespace).splitlines()[-1])
    assert set(counts) == {"200"}

    # One that has neither seed nor control plane runs, and takes no requests.
    bare = cluster.core.read_namespaced_pod("bare", namespace).status
    assert (bare.phase, bare.container_statuses[0].ready) == ("Running", False)
    last = kubectl("get", "pods", "-n", namespace, "-l", "app=proxy", "-o", "name").split()[0]
    assert all(json.loads(line) for line in kubectl("logs", last, "-n", namespace).splitlines())
