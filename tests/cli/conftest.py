"""``ml`` in process against the real control plane: its app, store and reconciler. Instances and
proxy are stand-ins.

Everything happens within requests: after each one the reconciler makes passes until nothing
changes, so that an operation has ended when it is first asked for and no test waits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from amphitrite.cli.main import main
from amphitrite.cli.session.rest_client import Client
from amphitrite.cli.terminal import progress
from amphitrite.cli.terminal.options import Options, scope
from amphitrite.cli.terminal.request_trace import Trace
from amphitrite.controlplane.agents.agent_registry import AgentRegistry, TableFeed
from amphitrite.controlplane.auth import credentials
from amphitrite.controlplane.auth.fetch_grants import Delivery
from amphitrite.controlplane.core.capacity.node_capacity import NodeCapacity, PodDemand
from amphitrite.controlplane.core.observed.observations import AgentReport
from amphitrite.controlplane.process.app import create_app
from amphitrite.controlplane.reconciliation.autoscaler import Autoscaler
from amphitrite.controlplane.reconciliation.demand_scaler import TargetUtilization
from amphitrite.controlplane.reconciliation.reconciler import Reconciler
from amphitrite.controlplane.reconciliation.rollout_driver import RolloutDriver
from amphitrite.controlplane.services.services import Services
from amphitrite.controlplane.settings import settings
from amphitrite.controlplane.store.assets.code_store import CodeStore
from amphitrite.controlplane.store.assets.environment_store import EnvironmentStore
from amphitrite.controlplane.store.assets.model_store import ModelStore
from amphitrite.controlplane.store.content.directory_content import ContentDirectory
from amphitrite.controlplane.store.reports.demand_samples import StoredSamples
from amphitrite.controlplane.store.reports.key_uses import KeyUses
from amphitrite.controlplane.store.reports.metric_minutes import StoredMetrics
from amphitrite.controlplane.store.state.database import SqlStore

from ..asgi import InProcess
from ..controlplane.runtimes.memory_runtime import MemoryRuntime
from ..stores import new_store

SCORING = "https://127.0.0.1:9443/endpoints/"
START = 1_800_000_000.0
#: What every cluster that is attached has.
NODE = NodeCapacity(
    "node-1",
    {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4", "pods": "110"},
    (PodDemand("kube-system/dns", {"cpu": "100m"}),),
    {"pool": "gpu"},
)


@dataclass
class Clock:
    """Seconds since the epoch; every look at it is a millisecond later."""

    now: float = START

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


class Machine(httpx.BaseTransport):
    """The control plane and what it controls, as seen from a client's socket."""

    def __init__(
        self, services: Services, runtime: MemoryRuntime, reconciler: Reconciler, clock: Clock, portal: BlockingPortal
    ) -> None:
        self.services, self.runtime, self._reconciler = services, runtime, reconciler
        self.clock = clock
        scaler = TargetUtilization(
            services.store, services.samples, services.agents, runtime, services.store.list_computes
        )
        self._autoscaler = Autoscaler(services.store, [scaler], lambda: None)
        self._rollouts = RolloutDriver(services.store, services.metrics, services.agents, services.wake)
        self._app = InProcess(create_app(services), portal)
        self.requests: list[str] = []
        self.faults: list[Exception] = []
        #: Uploads of files until the connection is cut, once; None: it is not.
        self.cut_after: int | None = None
        #: In which request the user presses Ctrl-C, once.
        self.interrupted_in: Callable[[httpx.Request], bool] | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(f"{request.method} {request.url.path}")
        if self.faults:
            raise self.faults.pop(0)
        if self.interrupted_in is not None and self.interrupted_in(request):
            self.interrupted_in = None
            raise KeyboardInterrupt
        if self.cut_after is not None and request.url.path.startswith("/storage") and request.method == "PUT":
            self.cut_after -= 1
            if self.cut_after < 0:
                self.cut_after = None
                raise httpx.WriteError("the connection was cut")
        if str(request.url).startswith(SCORING):
            return self._score(request)
        response = self._app.handle_request(request)
        response.headers["date"] = formatdate(self.clock.now, usegmt=True)
        self.settle()
        return response

    def _score(self, request: httpx.Request) -> httpx.Response:
        """The proxy's part: the key, the pin, and an answer that tells what arrived."""
        name = request.url.path.split("/")[2]
        primary, _ = self.services.store.get_keys(name)
        if request.headers["authorization"] != f"Bearer {primary.reveal()}":
            return httpx.Response(401, json={"error": {"code": "AuthenticationFailed", "message": "wrong key"}})
        body = json.loads(request.read() or b"null")
        return httpx.Response(200, json={"deployment": request.headers.get("azureml-model-deployment"), "got": body})

    def settle(self) -> None:
        """Passes until every change has its outcome; the proxy obeys at once, and time flies to the
        next thing due."""
        before: object = None
        self._rollouts.make_pass(self.clock.now)
        while True:
            self.runtime.settle()
            wake_at = self._reconciler.run_once()
            world = self.services.store.load_world()
            self.services.agents.report(
                AgentReport("proxy", world.table.version, world.table.version, self.services.clock())
            )
            self._autoscaler.make_pass(self.clock.now)
            if before != (now := (self.runtime.observe(), world)):
                before = now
            elif wake_at is None or all(d.observed_generation >= d.generation for d in world.deployments):
                return
            else:
                self.clock.now = max(self.clock.now, wake_at)


@dataclass
class Stage:
    """A machine and a user's shell before it: ``run`` is one command line in ``directory``."""

    machine: Machine
    client: httpx.Client
    directory: Path
    capture: pytest.CaptureFixture[str]
    options: list[Options] = field(default_factory=list)

    def connect(self, options: Options) -> Client:
        self.options.append(options)
        return Client(self.client, scope(options), trace=Trace.of(options), unreachable_hint="run `ml server start -d`")

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """(exit code, stdout, stderr) of ``ml`` with these arguments."""
        self.capture.readouterr()
        code = main(arguments, self.connect)
        said = self.capture.readouterr()
        return code, said.out, said.err


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Stage]:
    directory = tmp_path / "work"
    directory.mkdir()
    monkeypatch.chdir(directory)
    for name in ("ML_SUBSCRIPTION", "ML_RESOURCE_GROUP", "ML_WORKSPACE", "ML_SERVER_URL", "ML_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ML_HOME", str(tmp_path / "home"))
    # What a command prints must not depend on how long it takes on a busy machine.
    monkeypatch.setattr(progress, "SILENT_S", 3600.0)
    monkeypatch.setenv("COLUMNS", "80")
    chosen = settings.read({"ML_HOME": str(tmp_path / "home")})
    chosen.home.create()
    clock = Clock()
    store: SqlStore = new_store(chosen.home.database)
    content = ContentDirectory(chosen.home.models, clock)
    models = ModelStore(store.database, content, chosen.home.models, clock=clock)
    runtime, agents, feed = MemoryRuntime(clock, nodes=(NODE,)), AgentRegistry(lambda: None), TableFeed()
    reconciler = Reconciler(store, runtime, agents, feed, clock, max_body_bytes=1_000_000)
    secrets = credentials.ensure(chosen.home)
    services = Services(
        settings=chosen,
        credentials=secrets,
        delivery=Delivery(secrets.fetch_key, clock),
        store=store,
        models=models,
        environments=EnvironmentStore(store.database),
        codes=CodeStore(store.database, models.blobs),
        blobs=models.blobs,
        runtime=runtime,
        agents=agents,
        metrics=StoredMetrics(store.database),
        key_uses=KeyUses(store.database),
        samples=StoredSamples(store.database),
        feed=feed,
        wake=lambda: None,
        clock=clock,
        last_pass=lambda: reconciler.last_pass,
        attach_check=lambda compute: None,
    )
    with start_blocking_portal() as portal:
        machine = Machine(services, runtime, reconciler, clock, portal)
        machine.settle()
        headers = {"Authorization": f"Bearer {services.credentials.token.reveal()}"}
        with httpx.Client(transport=machine, base_url="https://127.0.0.1:8443", headers=headers) as client:
            yield Stage(machine, client, directory, capsys)
    store.close()
