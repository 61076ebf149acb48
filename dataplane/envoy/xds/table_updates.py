"""Brings a routing table into Envoy, step by step, and knows how far it is.

Decides when each step of ``update_stages`` is taken. It waits for new clusters until Envoy finds
them healthy, and for routes until Envoy has accepted them. It removes what the routes no longer
name when that is drained. A table that Envoy rejects changes nothing. Must not know where tables
come from or who hears of the outcome.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from amphitrite.dataplane.envoy.translate.resources import (
    CLUSTER,
    ENDPOINTS,
    EXTENSION,
    ROUTES,
    SCOPES,
    SECRET,
    Named,
    Translator,
)
from amphitrite.dataplane.envoy.xds.cluster_health import HostStatus, all_healthy, envoy_hosts, in_flight
from amphitrite.dataplane.envoy.xds.delta_stream import Rejection, Snapshot
from amphitrite.dataplane.envoy.xds.drains import DrainTracker
from amphitrite.dataplane.envoy.xds.update_stages import (
    EMPTY,
    Published,
    added_addresses,
    removal_step,
    routing_step,
    warming_step,
)
from amphitrite.dataplane.machine.json_log import log
from amphitrite.dataplane.proxy.proxy import Progress
from amphitrite.dataplane.table.routing_table import InstanceAddress, RoutingTable
from amphitrite.dataplane.table.saved_table import SavedTable
from amphitrite.schemas.errors import Error

#: How long new instances may take to become healthy. After that the routes follow nevertheless.
_HEALTHY_WITHIN_S = 10.0
_HEALTH_POLL_S = 0.05
_DRAIN_POLL_S = 0.1


class ResourceServer(Protocol):
    """The part of ``AdsServer`` that is needed here."""

    @property
    def client_has_resources(self) -> bool: ...
    def publish(self, snapshot: Snapshot) -> None: ...
    def in_force(self) -> bool: ...


class TableUpdater:
    """Brings the newest submitted table into force. ``run`` is a thread of its own, all else may be
    called from any thread.

    - ``changed``: the condition of the ADS server, notified of everything that this class waits
      for.
    - ``save``: called with each table in force, before anybody hears of it.
    - ``predecessor_has_clients``: whether an Envoy that is being replaced still has clients. While
      it has, nothing that it may route to counts as drained.
    - ``scoring_domain``: see ``translate.host_names``.
    - ``on_limits``: called with the limit on requests of each cluster, never above the one that
      Envoy has.
    - ``waiting``: the requests that wait for a place of each cluster. They are in flight too.
    - ``before_routes``: called with each table before Envoy gets its routes. It may block a moment.
    - ``on_table``: called with each table that has come into force.
    """

    def __init__(
        self,
        server: ResourceServer,
        host_status: HostStatus,
        changed: threading.Condition,
        save: Callable[[SavedTable], None],
        on_progress: Callable[[], None],
        predecessor_has_clients: Callable[[], bool] = lambda: False,
        scoring_domain: str | None = None,
        on_limits: Callable[[Mapping[str, int]], None] = lambda limits: None,
        waiting: Callable[[], Mapping[str, int]] = dict,
        before_routes: Callable[[RoutingTable], None] = lambda table: None,
        on_table: Callable[[RoutingTable], None] = lambda table: None,
    ) -> None:
        self._before_routes = before_routes
        self._on_table = on_table
        self._server = server
        self._host_status = host_status
        self._changed = changed
        self._save = save
        self._on_progress = on_progress
        self._predecessor_has_clients = predecessor_has_clients
        self._on_limits, self._waiting = on_limits, waiting
        self._limits: dict[str, int] = {}  #: as told last
        self._drain_withheld = False  #: a predecessor alone keeps something from being drained
        self._translator = Translator(scoring_domain)
        self._drains = DrainTracker()
        self._published = EMPTY  #: what Envoy should have now
        self._accepted = EMPTY  #: what Envoy gets back when it rejects that
        self._published_once = False
        self._secrets: Named = {}
        self._submitted: RoutingTable | None = None
        self._rejection: Rejection | None = None
        self._stopped = False
        self._progress = Progress()

    def restore(self, saved: SavedTable) -> None:
        """Begin with the table that an earlier agent had in force. Call it before ``run``."""
        if saved.drained_version < saved.table.version:
            self._drains.add_unknown(saved.drained_version, saved.drain_timeout_s, time.monotonic())
        self.submit(saved.table)

    def submit(self, table: RoutingTable) -> None:
        with self._changed:
            self._submitted = table
            self._changed.notify_all()

    def set_certificate(self, secrets: Named) -> None:
        """Serve this certificate from now on."""
        with self._changed:
            self._secrets = secrets
            if self._published_once:
                self._publish(self._published)

    def on_rejection(self, rejection: Rejection) -> None:
        """Envoy has rejected a response. Called by the ADS server."""
        with self._changed:
            if rejection.type_url == SECRET:
                log("error", "envoy rejected the certificate", error=rejection.message)
                return
            self._rejection = rejection
            self._changed.notify_all()

    def progress(self) -> Progress:
        with self._changed:
            return self._progress

    @property
    def table(self) -> RoutingTable:
        """The table that Envoy has, or is about to have."""
        with self._changed:
            return self._published.table

    @property
    def drain_timeout_s(self) -> float:
        """The longest time that the table in force gives a request in flight, in seconds."""
        with self._changed:
            return max([0.0, *(c.drain_timeout_s for c in self._published.clusters.values())])

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def run(self) -> None:
        """Bring tables into force until ``stop``."""
        while True:
            with self._changed:
                if not self._superseded() and not self._stopped:
                    self._changed.wait(_DRAIN_POLL_S if self._drains.outstanding() or self._drain_withheld else None)
                if self._stopped:
                    return
                table, self._submitted = self._submitted, None
            if table is not None:
                self._apply(table)
            self._drain()
            self._raise_limits()

    def _superseded(self) -> bool:
        return self._submitted is not None

    def _apply(self, table: RoutingTable) -> None:
        self._rejection = None
        try:
            # What was interrupted may not be healthy yet.
            new = added_addresses(self._accepted, table)
            # An Envoy without resources does not listen before it has all of them: there is no step
            # in between. Nor is there one for a new agent: an Envoy that has connected already has
            # the routes of an earlier agent, which this one would take away.
            if new and self._published_once and self._server.client_has_resources:
                self._publish(warming_step(self._published, table))
                self._await_in_force()
                self._await_healthy(new)
            self._before_routes(table)
            self._publish(routing_step(self._published, table))
            self._await_in_force()
        except _Superseded:
            return
        except Error as error:
            self._reject(table, error)
            return
        self._accept(table)

    def _accept(self, table: RoutingTable) -> None:
        now = time.monotonic()
        self._accepted = self._published
        self._drains.acknowledge(self._published.unrouted(), self._progress.acknowledged_version, now)
        self._report_progress(Progress(table.version, self._drained_version(table.version)))
        self._on_table(table)
        log("info", "table in force", version=table.version)

    def _reject(self, table: RoutingTable, error: Error) -> None:
        message = _redacted(error.message, table)
        log("error", "table rejected", version=table.version, error=message)
        self._publish(self._accepted)
        self._on_table(self._accepted.table)
        with self._changed:
            at = self._progress
            self._progress = Progress(at.acknowledged_version, at.drained_version, table.version, message)
        self._on_progress()

    def _drain(self) -> None:
        outstanding = self._drains.outstanding()
        if not (outstanding or self._drain_withheld) or self._superseded():
            return
        active = in_flight(self._host_status, outstanding, self._waiting())
        finished = self._drains.observe(active, time.monotonic())
        if finished:
            self._publish(removal_step(self._published, finished))
            self._accepted = self._published
        at = self._progress
        drained = self._drained_version(at.acknowledged_version)
        if finished or drained != at.drained_version:
            self._report_progress(Progress(at.acknowledged_version, drained, at.rejected_version, at.error))

    def _drained_version(self, acknowledged: int) -> int:
        at = self._progress.drained_version
        drained = self._drains.drained_version(acknowledged)
        self._drain_withheld = drained > at and self._predecessor_has_clients()
        return at if self._drain_withheld else drained

    def _report_progress(self, progress: Progress) -> None:
        """Save first: whoever hears of the progress may stop what the table saved before still
        names."""
        seconds_left = self._drains.seconds_left(time.monotonic())
        self._save(SavedTable(self._published.table, progress.drained_version, seconds_left))
        with self._changed:
            self._progress = progress
        self._on_progress()

    def _publish(self, published: Published) -> None:
        clusters = published.clusters.values()
        with self._changed:
            snapshot = {
                SECRET: self._secrets,
                CLUSTER: self._translator.clusters(clusters, published.draining),
                ENDPOINTS: self._translator.endpoints(clusters, published.draining),
                EXTENSION: self._translator.extensions(published.table),
                ROUTES: self._translator.routes(published.table),
                SCOPES: self._translator.scopes(published.table),
            }
            # Nobody gets a place that Envoy is about to lose, nor one that it does not have yet.
            self._tell_limits({c.name: min(c.max_requests, self._limits.get(c.name, c.max_requests)) for c in clusters})
            self._server.publish(snapshot)
            self._published = published
            self._published_once = True

    def _raise_limits(self) -> None:
        """Once Envoy has the new limits."""
        with self._changed:
            limits = {c.name: c.max_requests for c in self._published.clusters.values()}
            if limits != self._limits and self._server.in_force():
                self._tell_limits(limits)

    def _tell_limits(self, limits: dict[str, int]) -> None:
        if limits != self._limits:
            self._limits = limits
            self._on_limits(limits)

    def _await_in_force(self) -> None:
        """Raises Error(RoutingRejected) when Envoy rejects, _Superseded when there is something
        newer to do."""
        with self._changed:
            while not self._server.in_force():
                if self._rejection is not None:
                    raise Error("RoutingRejected", self._rejection.message)
                self._changed.wait()
                self._raise_if_superseded()

    def _await_healthy(self, new: Collection[tuple[str, InstanceAddress]]) -> None:
        hosts, deadline = envoy_hosts(new), time.monotonic() + _HEALTHY_WITHIN_S
        while (now := time.monotonic()) < deadline:
            if all_healthy(self._host_status, hosts):
                return
            with self._changed:
                self._changed.wait(min(_HEALTH_POLL_S, deadline - now))
                self._raise_if_superseded()
        names = sorted({cluster for cluster, _ in hosts})
        log("warning", "new instances are not healthy yet; routing to them nevertheless", clusters=names)

    def _raise_if_superseded(self) -> None:
        if self._stopped or self._submitted is not None:
            raise _Superseded


class _Superseded(Exception):
    """Something newer is to be done. What is published stays until then."""


def _redacted(text: str, table: RoutingTable) -> str:
    """``text`` without the credentials of ``table``: Envoy quotes the message that it rejects."""
    for route in table.routes:
        for credential in route.credentials:
            text = text.replace(credential.reveal(), "***")
    return text
