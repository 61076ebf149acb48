"""The real app over the real store on SQLite, in process; only the runtime and the clock are
stand-ins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal

from amphitrite.controlplane.agents.agent_registry import AgentRegistry, TableFeed
from amphitrite.controlplane.auth import credentials
from amphitrite.controlplane.auth.fetch_grants import Delivery
from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity
from amphitrite.controlplane.core.desired.compute_clusters import Compute, PodShape
from amphitrite.controlplane.core.desired.resources import Probe, WorkloadSpec
from amphitrite.controlplane.core.observed.observations import Instance
from amphitrite.controlplane.core.observed.status import Ref, Status
from amphitrite.controlplane.core.storage.garbage import StoredItem
from amphitrite.controlplane.process.app import create_app
from amphitrite.controlplane.runtimes.kubernetes.workloads import pod_resources
from amphitrite.controlplane.runtimes.runtime import LogQuery
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.settings import settings
from amphitrite.controlplane.store.assets.code_store import CodeStore
from amphitrite.controlplane.store.assets.environment_store import EnvironmentStore
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.content_store import open_content
from amphitrite.controlplane.store.reports.demand_samples import StoredSamples
from amphitrite.controlplane.store.reports.key_uses import KeyUses
from amphitrite.controlplane.store.reports.metric_minutes import StoredMetrics
from amphitrite.controlplane.store.state.database import SqlStore
from amphitrite.schemas.errors import Error

from ...asgi import InProcess
from ...stores import new_store

WS = "/subscriptions/local/resourceGroups/local/providers/Microsoft.MachineLearningServices/workspaces/local"
BLOBS = "/storage/local.blob.core.windows.net/azureml-blobstore"
URI = "azureml://subscriptions/local/resourcegroups/local/workspaces/local/datastores/workspaceblobstore/paths"


@dataclass
class Clusters:
    """What is out there: ``nodes`` by the name of the compute, and what attaching one comes to."""

    nodes: dict[str, tuple[NodeCapacity, ...]] = field(default_factory=dict)
    refusal: Error | None = None
    silent: bool = False
    asked: list[Compute] = field(default_factory=list)
    #: Is done once while a cluster is checked.
    meanwhile: Callable[[], object] = lambda: None

    def check(self, compute: Compute) -> None:
        self.asked.append(compute)
        meanwhile, self.meanwhile = self.meanwhile, lambda: None
        meanwhile()
        if self.refusal is not None:
            raise self.refusal

    def capacity(self, compute: str) -> tuple[NodeCapacity, ...] | None:
        if self.silent:
            raise Error("KubernetesUnaccessible", "the cluster does not answer")
        return self.nodes.get(compute)


class Logs:
    """A runtime that runs nothing on ``clusters`` and remembers which log was asked for."""

    name = "logs"

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self.asked: list[tuple[str, str, LogQuery]] = []

    def observe(self) -> tuple[Instance, ...]:
        return ()

    def start(self, workload: WorkloadSpec, slot: int, attempt: int, readiness: Probe, liveness: Probe) -> None: ...

    def stop(self, instance_id: str, grace_s: float) -> None: ...

    def forget(self, instance_id: str) -> None: ...

    def logs(self, endpoint: str, deployment: str, query: LogQuery) -> str:
        self.asked.append((endpoint, deployment, query))
        return "server ready\n"

    def capacity(self, compute: str) -> tuple[NodeCapacity, ...] | None:
        return self._clusters.capacity(compute)

    def demand(self, workload: WorkloadSpec, shape: PodShape) -> PodShape | None:
        return pod_resources.demand(shape, workload.pod, None)

    def stored(self) -> tuple[StoredItem, ...]:
        return ()

    def discard(self, item: StoredItem) -> bool:
        raise AssertionError(item)

    def watch(self, wake: Callable[[], None]) -> None: ...

    def close(self) -> None: ...


@dataclass
class World:
    """One control plane's HTTP side, and the hands of its reconciler."""

    services: Services
    client: httpx.Client
    store: SqlStore
    runtime: Logs
    clusters: Clusters
    now: list[float]
    wakes: list[None] = field(default_factory=list)

    def settle(self, **facts: Any) -> None:
        """What the reconciler does when everything goes well."""
        found = self.store.load_world()
        gone = [Ref(d.endpoint, d.name) for d in found.deployments if d.deleting]
        self.store.remove(gone + [Ref(e.name.lower()) for e in found.endpoints if e.deleting], now=self.now[0])
        for endpoint in self.store.load_world().endpoints:
            self.record(Ref(endpoint.name.lower()), endpoint.generation, "Succeeded")
        for deployment in self.store.load_world().deployments:
            ref = Ref(deployment.endpoint, deployment.name)
            self.record(ref, deployment.generation, "Succeeded", facts=facts)

    def record(self, ref: Ref, generation: int, state: Any, **more: Any) -> None:
        self.store.record({ref: Status(state, generation, "Ready", "all is well", **more)}, now=self.now[0])

    def upload(self, name: str = "m", files: tuple[str, ...] = ("model_1/1/model.onnx",)) -> str:
        """Blobs below ``LocalUpload/<name>/models``; the address of the directory."""
        for path in files:
            url = f"{BLOBS}/LocalUpload/{name}/models/{path}"
            assert self.client.put(url, content=path.encode(), headers=BLOCK_BLOB).status_code == 201
        return f"{URI}/LocalUpload/{name}/models"

    def model(self, name: str = "m", version: str = "1", kind: str = "triton_model") -> str:
        """A registered model; its ARM id."""
        body = {"properties": {"modelType": kind, "modelUri": self.upload(name)}}
        answer = self.client.put(f"{WS}/models/{name}/versions/{version}", json=body)
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["id"])

    def endpoint(self, name: str = "ep1", **properties: Any) -> Any:
        return self.client.put(f"{WS}/onlineEndpoints/{name}", json=endpoint_body(**properties))

    def deployment(self, name: str = "blue", endpoint: str = "ep1", count: int = 1, **properties: Any) -> Any:
        url = f"{WS}/onlineEndpoints/{endpoint}/deployments/{name}"
        return self.client.put(url, json=deployment_body(count, **properties))


BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}


def endpoint_body(**properties: Any) -> dict[str, Any]:
    return {
        "location": "local",
        "identity": {"type": "SystemAssigned"},
        "tags": {},
        "properties": {"authMode": "Key", "properties": {}, "traffic": {}, "mirrorTraffic": {}, **properties},
    }


def deployment_body(count: int = 1, **properties: Any) -> dict[str, Any]:
    return {
        "location": "local",
        "tags": {},
        "sku": {"name": "Default", "capacity": count},
        "properties": {
            "model": f"{WS}/models/m/versions/1",
            "instanceType": "Standard_NC6s_v3",
            "endpointComputeType": "Managed",
            "environmentVariables": {},
            "appInsightsEnabled": False,
            **properties,
        },
    }


@contextmanager
def opened(home: Path, built_in: Compute | None = None, models_url: str = "", **environment: str) -> Iterator[World]:
    chosen = settings.read({"ML_HOME": str(home), "ML_LIMIT_JSON_BODY_BYTES": "20000", **environment})
    chosen.home.create()
    store = new_store(chosen.home.database)
    content = open_content(models_url or f"file://{chosen.home.models}", chosen.home.models, time.time)
    models = ModelStore(store.database, content, chosen.home.models)
    now, wakes, clusters = [1_800_000_000.0], [], Clusters()
    runtime = Logs(clusters)
    wake = lambda: wakes.append(None)  # noqa: E731 - one line, no name needed
    secrets = credentials.ensure(chosen.home)
    services = Services(
        settings=chosen,
        credentials=secrets,
        delivery=Delivery(secrets.fetch_key, lambda: now[0]),
        store=store,
        models=models,
        environments=EnvironmentStore(store.database),
        codes=CodeStore(store.database, models.blobs),
        blobs=models.blobs,
        runtime=runtime,
        agents=AgentRegistry(wake),
        metrics=StoredMetrics(store.database),
        key_uses=KeyUses(store.database),
        samples=StoredSamples(store.database),
        feed=TableFeed(),
        wake=wake,
        clock=lambda: now[0],
        last_pass=lambda: now[0],
        built_in=built_in,
        attach_check=clusters.check,
    )
    token = services.credentials.token.reveal()
    with start_blocking_portal() as portal:
        transport = InProcess(create_app(services), portal)
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(transport=transport, base_url="https://test:8443", headers=headers) as client:
            yield World(services, client, store, runtime, clusters, now, wakes)
    store.close()


def serving(world: World) -> World:
    """A model, endpoint ``ep1`` and its deployment ``blue``, which serves."""
    world.model()
    assert world.endpoint().status_code == 201
    assert world.deployment().status_code == 201
    world.settle()
    return world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with opened(tmp_path / "home") as world:
        yield world


@pytest.fixture
def ready(world: World) -> World:
    return serving(world)


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[World]:
    """The workspace in which the requests of ``data/requests.jsonl`` were recorded."""
    names = {"ML_SUBSCRIPTION": "0000", "ML_RESOURCE_GROUP": "rg", "ML_WORKSPACE": "ws"}
    with opened(tmp_path / "home", **names) as world:
        yield world


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """As ``ready``, one for all tests of a file: for those that change nothing."""
    with opened(tmp_path_factory.mktemp("unchanged") / "home") as world:
        yield serving(world)
