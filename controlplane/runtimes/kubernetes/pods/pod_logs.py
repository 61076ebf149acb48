"""The logs of an instance's current and previous containers.

Decides which logs a pod has, and what is shown instead of a missing one. Must not know deployments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.runtimes.kubernetes.client.api_client import Cluster
from amphitrite.controlplane.runtimes.kubernetes.client.api_paths import path
from amphitrite.controlplane.runtimes.kubernetes.pods.pod_facts import Json, name, state
from amphitrite.controlplane.runtimes.runtime import LogQuery
from amphitrite.schemas.errors import Error

#: The maximum bytes of one container's log.
_MAX_BYTES = 4 * 1024 * 1024
#: Enough lines and bytes to find out why a container exited.
_CRASH_LINES, _CRASH_BYTES = 200, 64 * 1024


def read(
    cluster: Cluster,
    namespace: str,
    instances: Sequence[Instance],
    pods: Sequence[Json],
    query: LogQuery,
) -> Iterator[tuple[Instance, list[str]]]:
    """Each instance with its lines. An instance without a log shows what it waits for instead."""
    by_name = {name(pod): pod for pod in pods}
    newest_exit = {pod_of(one): one for one in instances if one.phase == "exited"}
    container = query.container
    for instance in instances:
        pod_name = pod_of(instance)
        pod = by_name.get(pod_name)
        waits = [f"amphitrite: {instance.fault.message}"] if instance.fault is not None else []
        if pod is None:
            yield instance, waits
        elif instance.phase != "exited":
            lines = [] if _between(pod, container) else _lines(cluster, namespace, pod_name, query)
            yield instance, lines or waits
        elif instance is newest_exit[pod_name]:
            before = not _between(pod, container)
            yield instance, _lines(cluster, namespace, pod_name, query, previous=before)
        elif instance.reason:
            yield instance, [f"amphitrite: {instance.reason}"]


def pod_of(instance: Instance) -> str:
    """The name of its pod: attempts of a container have the pod in common."""
    return instance.id.partition("#")[0]


def _lines(cluster: Cluster, namespace: str, pod: str, query: LogQuery, *, previous: bool = False) -> list[str]:
    since_s = query.since_s
    return lines_of(cluster, namespace, pod, query.container, query.tail, previous=previous, since_s=since_s)


def crash_log(cluster: Cluster, namespace: str, pod: str, container: str, *, previous: bool) -> str:
    """The end of an exited container's log, to find out why it exited."""
    where = path("Pod", namespace, pod, "log")
    query = {"container": container, "previous": str(previous).lower()}
    return cluster.text(where, **query, tailLines=_CRASH_LINES, limitBytes=_CRASH_BYTES)


def lines_of(
    cluster: Cluster,
    namespace: str,
    pod: str,
    container: str,
    tail: int,
    *,
    previous: bool = False,
    since_s: float | None = None,
) -> list[str]:
    """The lines of a log; empty if the container has not started or the pod is gone."""
    if tail <= 0:
        return []
    query = {"container": container, "previous": str(previous).lower()}
    if since_s is not None:
        query["sinceSeconds"] = str(math.ceil(since_s))
    try:
        text = cluster.text(path("Pod", namespace, pod, "log"), **query, tailLines=tail, limitBytes=_MAX_BYTES)
    except Error as error:
        # 404, or 400 if it has not started.
        if error.code in ("ResourceNotFound", "InvalidDeploymentSpec"):
            return []
        raise
    return text.splitlines()


def _between(pod: Json, container: str) -> bool:
    """Whether the newest container has exited and the next has not started, so that the current log
    is the exited one's."""
    return state(pod, container, "running") is None and state(pod, container, "terminated") is None
