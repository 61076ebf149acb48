"""``helm uninstall``: what the control plane has made goes too.

Decides that this happens after the last control plane has ended, which would make it anew. Deletes
Deployments alone: what belongs to one is owned by it, and Kubernetes deletes it with its owner.
Models and databases are not touched.
"""

from __future__ import annotations

import os
import sys
import time

from kubernetes import client, config

NAMESPACE = os.environ["NAMESPACE"]
DEADLINE = time.monotonic() + float(os.environ["TIMEOUT_S"])
PAUSE_S = 1.0


def main() -> int:
    config.load_incluster_config()
    core, apps = client.CoreV1Api(), client.AppsV1Api()
    while core.list_namespaced_pod(NAMESPACE, label_selector=os.environ["CONTROLPLANES"]).items:
        if not waited("a control plane still runs"):
            return 1
    # Foreground: a Deployment is gone only when its pods are.
    options = client.V1DeleteOptions(propagation_policy="Foreground")
    while found := apps.list_namespaced_deployment(NAMESPACE, label_selector=os.environ["WORKLOADS"]).items:
        for deployment in found:
            if deployment.metadata.deletion_timestamp is None:
                print(f"deleting deployment {deployment.metadata.name}", flush=True)
                try:
                    apps.delete_namespaced_deployment(deployment.metadata.name, NAMESPACE, body=options)
                except client.ApiException as exc:
                    if exc.status != 404:
                        raise
        if not waited(f"{len(found)} deployments are not gone"):
            return 1
    return 0


def waited(why: str) -> bool:
    """False when the time is over."""
    if time.monotonic() > DEADLINE:
        print(f"gave up: {why}", file=sys.stderr)
        return False
    time.sleep(PAUSE_S)
    return True


if __name__ == "__main__":
    sys.exit(main())
