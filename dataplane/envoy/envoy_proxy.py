"""Envoy as the agent's proxy: the parts, put together.

Decides how the Envoy process, the discovery service, the table updates, the metrics and the
certificate files work together, and in which order they start and stop. Must not know where tables
come from or who hears of the outcome: see ``amphitrite.dataplane.proxy``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from amphitrite.dataplane.comparison.answers import BODY_MAX
from amphitrite.dataplane.envoy.answers.comparer import Comparer
from amphitrite.dataplane.envoy.answers.sample_service import SampleService
from amphitrite.dataplane.envoy.callouts.hold_service import HoldService
from amphitrite.dataplane.envoy.callouts.queue_service import QueueService
from amphitrite.dataplane.envoy.callouts.server import CalloutServer
from amphitrite.dataplane.envoy.callouts.waiting_room import WaitingRoom
from amphitrite.dataplane.envoy.process import file_names
from amphitrite.dataplane.envoy.process.admin_client import AdminClient
from amphitrite.dataplane.envoy.process.binary import find_envoy, version_text
from amphitrite.dataplane.envoy.process.hot_restart import HotRestart
from amphitrite.dataplane.envoy.process.launch_command import Launch
from amphitrite.dataplane.envoy.process.log_output import FileOutput, StreamOutput
from amphitrite.dataplane.envoy.process.process import EnvoyProcess
from amphitrite.dataplane.envoy.translate.bootstrap import BootstrapSettings, bootstrap
from amphitrite.dataplane.envoy.xds.ads_server import AdsServer
from amphitrite.dataplane.envoy.xds.certificate_files import CertificateFiles
from amphitrite.dataplane.envoy.xds.delta_stream import Rejection
from amphitrite.dataplane.envoy.xds.demand_sampler import DemandSampler
from amphitrite.dataplane.envoy.xds.metrics_collector import MetricsCollector
from amphitrite.dataplane.envoy.xds.table_updates import TableUpdater
from amphitrite.dataplane.machine import cgroup_limits, open_files, processes
from amphitrite.dataplane.machine.log_rotation import rotate
from amphitrite.dataplane.metrics.counters import Series
from amphitrite.dataplane.proxy.proxy import AgentCallbacks, GracefulShutdown, Progress, ProxyProcess, ProxySettings
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.dataplane.table.saved_table import SavedTable

#: How long the last reading of the counters may take to reach the disk.
_METRICS_SAVE_TIMEOUT_S = 2.0
_CONNECTIONS_MAX = 50_000


class EnvoyProxy:
    """A :class:`amphitrite.dataplane.proxy.proxy.Proxy`. Raises Error(RuntimeUnavailable) when
    there is no usable Envoy."""

    def __init__(self, settings: ProxySettings, agent: AgentCallbacks) -> None:
        self._agent = agent
        self._record = file_names.process_record(settings.state)
        self._admin_socket = file_names.admin_socket(settings.run)
        self._logs = (file_names.access_log(settings.logs), file_names.envoy_log(settings.logs))
        self._draining = threading.Event()  #: the metrics are read more often from now on
        self._closed = threading.Event()
        self._metrics_thread: threading.Thread | None = None
        self._admin = AdminClient(self._admin_socket)
        self._certificates = CertificateFiles(settings.certificate, settings.private_key)
        self._queue = QueueService()
        self._waiting_room = WaitingRoom(self._admin.hosts, self._sample_now)
        services = self._queue, HoldService(self._waiting_room)
        self._callouts = CalloutServer(file_names.callout_socket(settings.run), services)
        changed = threading.Condition()
        self._ads = AdsServer(file_names.ads_socket(settings.run), changed, self._on_rejection)
        self._process = EnvoyProcess(_launch(settings), self._admin, self._ads.serve_only)
        self._updater = TableUpdater(
            self._ads,
            self._admin,
            changed,
            save=agent.save_table,
            on_progress=self._on_progress,
            before_routes=self._waiting_room.close,
            on_table=self._waiting_room.in_force,
            predecessor_has_clients=self._process.predecessor_has_clients,
            scoring_domain=settings.scoring_domain,
            on_limits=self._queue.set_places,
            waiting=self._queue.waiting,
        )
        self._comparer = Comparer(lambda: self._updater.table)
        # A server of its own: nobody waits for what goes through it, and it has bodies.
        self._samples = CalloutServer(
            file_names.answers_socket(settings.run), (SampleService(self._comparer),), BODY_MAX
        )
        self._collector = MetricsCollector(
            self._admin_socket,
            lambda: processes.read(self._record),
            lambda: self._updater.table,
            file_names.metrics_file(settings.state),
            settings.metrics_every_s,
            agent.on_metrics,
            waiting=self._queue.waiting,
            answers=self._comparer.take,
        )
        self._sampler = DemandSampler(
            self._admin_socket,
            lambda: processes.read(self._record),
            lambda: self._updater.table,
            agent.on_samples,
            self._held,
        )

    def prepare(self, table: SavedTable | None) -> None:
        self._follow_certificate()
        if table is not None:
            self._updater.restore(table)
        self._callouts.start(self._agent.start_thread)
        self._comparer.start(self._agent.start_thread)
        self._samples.start(self._agent.start_thread)
        self._ads.start()
        self._agent.start_thread("apply", self._updater.run)

    def has_predecessor(self) -> bool:
        return processes.read(self._record) is not None

    def start(self, predecessor_grace_s: float) -> None:
        self._process.start(predecessor_grace_s)
        self._agent.start_thread("watch", self._process.supervise)
        collect = self._collector.run
        self._agent.start_thread("demand", lambda: self._sampler.run(self._closed))
        self._metrics_thread = self._agent.start_thread("metrics", lambda: collect(self._draining, self._closed))

    def submit(self, table: RoutingTable) -> None:
        self._updater.submit(table)

    def maintain(self) -> None:
        self._follow_certificate()
        rotate([path for path in self._logs if path is not None], self._admin.reopen_logs)

    def stop(self, shutdown: GracefulShutdown) -> None:
        self._draining.set()
        self._process.stop(shutdown)
        self._admin_socket.unlink(missing_ok=True)

    def close(self) -> None:
        self._draining.set()
        self._closed.set()
        self._sampler.wake()
        self._updater.stop()
        self._ads.stop()
        self._callouts.stop()
        self._samples.stop()
        self._comparer.stop()
        self._admin.close()
        if self._metrics_thread is not None:
            self._metrics_thread.join(_METRICS_SAVE_TIMEOUT_S)

    def progress(self) -> Progress:
        return self._updater.progress()

    def process(self) -> ProxyProcess:
        return ProxyProcess(self._process.pid, self._process.version)

    def metrics(self) -> Mapping[str, Any]:
        return self._collector.content()

    def samples(self) -> Mapping[str, Any] | None:
        return self._sampler.take()

    def samples_sent(self) -> None:
        self._sampler.sent()

    def drain_timeout_s(self) -> float:
        return self._updater.drain_timeout_s

    def children(self) -> tuple[int, ...]:
        return self._process.children

    def _held(self) -> Mapping[Series, int]:
        """The requests that wait, for an instance or for a place, by deployment."""
        asleep, waiting = self._waiting_room.held(), self._queue.waiting()
        if not waiting:
            return asleep
        targets = [(route.name, target) for route in self._updater.table.routes for target in route.targets]
        queued = {(name, t.name): waiting[t.cluster] for name, t in targets if t.cluster in waiting}
        return {series: queued.get(series, 0) + asleep.get(series, 0) for series in {*queued, *asleep}}

    def _on_rejection(self, rejection: Rejection) -> None:
        self._updater.on_rejection(rejection)

    def _sample_now(self) -> None:
        self._sampler.wake()

    def _on_progress(self) -> None:
        """Envoy has nothing to serve by when it has refused its very first table."""
        progress = self._updater.progress()
        self._process.set_ready(progress.acknowledged_version > 0 or progress.rejected_version is None)
        self._agent.on_progress()

    def _follow_certificate(self) -> None:
        secrets = self._certificates.changed()
        if secrets is not None:
            self._updater.set_certificate(secrets)


def _connections_max(files_max: int) -> int:
    """Of clients. The rest is for connections to instances: Envoy ends when it gets no descriptor
    for one."""
    return min(_CONNECTIONS_MAX, files_max * 3 // 4)


def _heap_bytes() -> int:
    """The control group's limit counts only in a container: elsewhere other programs may share
    it."""
    contained = cgroup_limits.heap_bytes() if processes.is_init() else None
    return cgroup_limits.machine_heap_bytes() if contained is None else contained


def _launch(settings: ProxySettings) -> Launch:
    executable, envoy_log = find_envoy(), file_names.envoy_log(settings.logs)
    return Launch(
        executable=executable,
        version=version_text(executable),
        bootstrap=bootstrap(
            BootstrapSettings(
                id=settings.id,
                listen=settings.listen,
                agent_socket=file_names.ads_socket(settings.run),
                callout_socket=file_names.callout_socket(settings.run),
                admin_socket=file_names.admin_socket(settings.run),
                answers_socket=file_names.answers_socket(settings.run),
                access_log=file_names.access_log(settings.logs),
                metrics_every_s=settings.metrics_every_s,
                connections_max=_connections_max(open_files.raise_limit()),
                heap_bytes=_heap_bytes(),
                scoring_domain=settings.scoring_domain,
            )
        ),
        bootstrap_file=file_names.bootstrap_file(settings.state),
        record=file_names.process_record(settings.state),
        output=StreamOutput() if envoy_log is None else FileOutput(envoy_log),
        listen=settings.listen,
        workers=settings.concurrency or cgroup_limits.workers(),
        hot_restart=HotRestart.of(settings.state, settings.run) if HotRestart.supported() else None,
    )
