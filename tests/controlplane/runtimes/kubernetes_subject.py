"""The Kubernetes runtime under test: pods with the product's fetcher and a real Triton, in a
namespace of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from amphitrite.controlplane.core.desired.compute_clusters import BUILT_IN, PodShape
from amphitrite.controlplane.core.desired.resources import ModelReference, PodSettings, WorkloadSpec, workload_spec
from amphitrite.controlplane.runtimes.kubernetes.client import api_client
from amphitrite.controlplane.runtimes.kubernetes.kubernetes_runtime import KubernetesRuntime
from amphitrite.controlplane.runtimes.kubernetes.workloads.model_facts import ModelFacts, model_facts
from amphitrite.controlplane.runtimes.kubernetes.workloads.pod_settings import KubernetesSettings
from amphitrite.controlplane.runtimes.runtime import Runtime

from ...cluster.node import Cluster
from .model_source import GRANT, ModelSource
from .runtime_subjects import DEADLINE_S, repository

#: Next to no cores: what the tests of others ask for on a small machine must not decide these.
SMALL = PodShape("small", (("cpu", "1m"), ("memory", "512Mi")), (("memory", "512Mi"),))


class Pods:
    """``images``: of the fetcher and of Triton."""

    #: What has ended because we said so leaves nothing behind.
    keeps_records = False

    def __init__(self, cluster: Cluster, root: Path, images: tuple[str, str]) -> None:
        if cluster.host is None:
            pytest.skip("AMPHITRITE_TEST_HOST does not say how pods reach this machine")
        self._gpu = repository(root / "models")("gpu")
        self.cluster, self.source, self._images = cluster, ModelSource(root / "models"), images
        self._space: AbstractContextManager[str] = cluster.namespace(prefix="runtime")
        self.namespace = self._space.__enter__()
        self.changed = threading.Event()
        self.runtime: Runtime = self.open()
        self.until(lambda: not self.runtime.unknown())

    def settings(self) -> KubernetesSettings:
        fetcher, triton = self._images
        return KubernetesSettings(
            namespace=self.namespace,
            shape=lambda name: replace(SMALL, name=name),
            grant=lambda workload: GRANT,
            facts=self._facts,
            fetch_url=f"http://{self.cluster.host}:{self.source.port}",
            triton_image=triton,
            fetcher_image=fetcher,
            storage_requests=self._counts_storage(),
        )

    def _counts_storage(self) -> bool:
        """Whether the kubelets of this cluster count what pods write to their disks."""
        return all("ephemeral-storage" in node.status.allocatable for node in self.cluster.core.list_node().items)

    def _facts(self, digest: str) -> ModelFacts | None:
        """Of the model for a GPU alone: what others need must not depend on their files."""
        if digest != self.source.digests["gpu"]:
            return None
        files = [path for path in self._gpu.rglob("*") if path.is_file()]
        named = [(path.relative_to(self._gpu).as_posix(), path.stat().st_size) for path in files]
        return model_facts(named, lambda path: (self._gpu / path).read_text())

    def open(self, settings: KubernetesSettings | None = None, api: object = None) -> KubernetesRuntime:
        """A runtime as the next control plane would have it."""
        cluster = api_client.Cluster(api or api_client.from_file(self.cluster.kubeconfig))
        runtime = KubernetesRuntime(BUILT_IN, cluster, settings or self.settings())
        runtime.watch(self.changed.set)
        return runtime

    def noted(self, note: str) -> str:
        return note

    def workload(self, model: str = "good", deployment: str = "blue", **settings: object) -> WorkloadSpec:
        reference = ModelReference("m", "1", self.source.digests.get(model, model), ("tiny",))
        pod = PodSettings(**settings)  # type: ignore[arg-type]
        return workload_spec("ep", deployment, reference, "small", {}, BUILT_IN, pod)

    def until(self, condition: Callable[[], bool]) -> None:
        """Woken by the runtime alone: a change without a wake is a failure."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            self.changed.clear()
            if condition():
                return
            if not self.changed.wait(max(0.0, deadline - time.monotonic())):
                told = self.cluster.kubectl("get", "pods,deployments,events", "-n", self.namespace, check=False)
                raise AssertionError(f"{self.runtime.observe()}\n{told}")

    def crash(self, instance_id: str) -> None:
        """SIGKILL to the server, which nobody in its container could send to it."""
        self.cluster.ctr("tasks", "kill", "-s", "SIGKILL", self._container(instance_id))

    def freeze(self, instance_id: str) -> None:
        """The server stands still until ``thaw``."""
        self.cluster.ctr("tasks", "pause", self._container(instance_id))

    def thaw(self, instance_id: str) -> None:
        self.cluster.ctr("tasks", "resume", self._container(instance_id))

    def _container(self, instance_id: str) -> str:
        if self.cluster.own is None:
            pytest.skip("only on the one-node Kubernetes can a container be reached from outside")
        pod = self.cluster.core.read_namespaced_pod(instance_id, self.namespace)
        (status,) = pod.status.container_statuses
        return str(status.container_id.rpartition("/")[2])

    def close(self) -> None:
        """Nothing may be left of what was stopped; the namespace says so."""
        failed = True
        try:
            for instance in self.runtime.observe():
                self.runtime.stop(instance.id, 0)
            self.until(lambda: not self._rest())
            self.runtime.close()
            failed = False
        finally:
            self.source.close()
            error = AssertionError("the runtime did not end") if failed else None
            self._space.__exit__(type(error) if error else None, error, None)

    def _rest(self) -> bool:
        rest = self.runtime.observe()
        for instance in rest:
            self.runtime.stop(instance.id, 0)
        return bool(rest)
