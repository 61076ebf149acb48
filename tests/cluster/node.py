"""The cluster that the tests run on: one that somebody names, or a real one-node Kubernetes that
they start themselves.

Decides which, starts and ends it once for all processes that use it, and reaches it: kubectl, Helm,
the official client, images brought to its nodes. Must not know what is tested.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from kubernetes import client, config

from .. import tiers
from . import namespaces
from .machine import ROOT, cache, is_root_on_linux, locked, run

KUBE = ROOT.parent / "shared" / "cluster" / "kube"
HOW_TO = (
    "set AMPHITRITE_TEST_KUBECONFIG to the kubeconfig of a cluster of your own (kind, k3s, a lab) and "
    "AMPHITRITE_TEST_LOAD to a command that brings an image archive to its nodes (`kind load image-archive`)"
)


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    ``own``: the directory of the one-node Kubernetes, None for a cluster that somebody named.
    ``host``: the address under which pods reach this machine, None where nobody said
    (``AMPHITRITE_TEST_HOST``).
    """

    kubeconfig: Path
    own: Path | None
    host: str | None

    def counts_storage(self) -> bool:
        """Whether its nodes have ephemeral storage to give."""
        return all("ephemeral-storage" in node.status.allocatable for node in self.core.list_node().items)

    def kubectl(self, *argv: str, stdin: str | bytes | None = None, check: bool = True, timeout_s: float = 120) -> str:
        """What kubectl printed on stdout; AssertionError with both outputs when it fails and
        ``check`` is on."""
        command = (self._binary("kubectl"), f"--kubeconfig={self.kubeconfig}", *argv)
        return run(*command, stdin=stdin, check=check, timeout_s=timeout_s)

    def helm(self, *argv: str, stdin: str | None = None, check: bool = True, timeout_s: float = 300) -> str:
        """The same for Helm 3."""
        command = (self._binary("helm"), f"--kubeconfig={self.kubeconfig}", *argv)
        return run(*command, stdin=stdin, check=check, timeout_s=timeout_s)

    @cached_property
    def api(self) -> client.ApiClient:
        """The official client, for any of its classes: ``client.NetworkingV1Api(cluster.api)``."""
        return config.new_client_from_config(config_file=str(self.kubeconfig))

    @cached_property
    def core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.api)

    @cached_property
    def apps(self) -> client.AppsV1Api:
        return client.AppsV1Api(self.api)

    def log(self, namespace: str, pod: str, **options: int) -> str:
        """What the pod's container wrote. (The client's own way of decoding it gives Python's text
        for bytes.)"""
        answer = self.core.read_namespaced_pod_log(pod, namespace, _preload_content=False, **options)
        return bytes(answer.data).decode()

    def namespace(self, *, prefix: str = "test", empty: bool = True) -> AbstractContextManager[str]:
        """A new namespace's name; see :func:`namespaces.namespace`."""
        return namespaces.namespace(self, prefix=prefix, empty=empty)

    def leftovers(self, namespace: str) -> set[str]:
        """What is in the namespace that a new one does not have."""
        return namespaces.leftovers(self, namespace)

    def shared_volume(self, namespace: str, *, name: str = "shared") -> AbstractContextManager[str]:
        """A claim's name; see :func:`namespaces.shared_volume`."""
        return namespaces.shared_volume(self, namespace, name=name)

    @contextmanager
    def turn(self, *, alone: bool = False) -> Iterator[None]:
        """Keeps away whoever must be ``alone``, or everybody else: who drains a node.

        Everybody comes in by one door, and whoever waits to be alone keeps it shut: those who are
        in leave one by one, and nobody follows them.
        """
        directory = state_of(self.own) if self.own is not None else cache()
        with (directory / "turns").open("w") as file:
            with locked(directory / "door"):
                fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield

    def load(self, archive: Path) -> None:
        """Brings the image archive (as `docker save` writes it) to the nodes."""
        if self.own is not None:
            self.ctr("images", "import", archive)
        else:
            run(*shlex.split(_required("AMPHITRITE_TEST_LOAD")), archive)

    def ctr(self, *argv: str | Path) -> str:
        """The image store of the one-node Kubernetes."""
        assert self.own is not None
        return run("ctr", "-a", self.own / "run" / "containerd.sock", "-n", "k8s.io", *argv)

    def _binary(self, name: str) -> str:
        if found := shutil.which(name, path=f"{self.own}/bin" if self.own else None):
            return found
        pytest.skip(f"{name} is not on PATH; get it from its project's releases page")


@contextmanager
def running() -> Iterator[Cluster]:
    """The cluster, shared with every other process that asks for it; skips the test where there is
    none."""
    tiers.needs("cluster")
    if named := os.environ.get("AMPHITRITE_TEST_KUBECONFIG"):
        if not Path(named).is_file():
            pytest.fail(f"AMPHITRITE_TEST_KUBECONFIG names {named}, which is not a file")
        yield Cluster(Path(named), None, os.environ.get("AMPHITRITE_TEST_HOST"))
    elif KUBE.is_file() and is_root_on_linux():
        with one_node(KUBE, Path(os.environ.get("KUBE_DIR", "/tmp/amphitrite-kube"))) as cluster:
            yield cluster
    else:
        what = "as root on Linux x86-64" if KUBE.is_file() else f"with {KUBE}"
        pytest.skip(f"no Kubernetes: the tests start one only {what}; otherwise {HOW_TO}")


@contextmanager
def one_node(kube: Path, directory: Path) -> Iterator[Cluster]:
    """`kube up` once, `kube down` by the last one out if a test had started it.

    Whoever uses the cluster holds a shared lock on ``users``, which the kernel takes back from a
    killed process.
    """
    state = state_of(directory)
    cluster = Cluster(directory / "admin.kubeconfig", directory, "198.18.254.1")
    with (state / "users").open("w") as users:
        with locked(state / "turn"):
            if not _answers(cluster):
                run(kube, "up")
                (state / "started").touch()
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield cluster
        finally:
            with locked(state / "turn"), contextlib.suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if (state / "started").exists():
                    run(kube, "down")
                    (state / "started").unlink()


def state_of(directory: Path) -> Path:
    """Where the processes that use the one-node Kubernetes of ``directory`` keep their locks."""
    state = directory.with_name(f"{directory.name}.tests")
    state.mkdir(exist_ok=True)
    return state


def _answers(cluster: Cluster) -> bool:
    if not (cluster.kubeconfig.is_file() and (cluster.kubeconfig.parent / "pid").is_file()):
        return False
    return cluster.kubectl("get", "--raw", "/readyz", "--request-timeout=5s", check=False) == "ok"


def _required(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set: {HOW_TO}")
    return value
