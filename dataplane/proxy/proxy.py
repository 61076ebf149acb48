"""The protocol between the agent and its proxy, and the values that they exchange.

Decides what a proxy must be able to do, and in which order the agent asks for it. Must not know how
a proxy is configured, started or measured, nor the control plane.

The agent calls, in this order: the :data:`ProxyFactory`, ``prepare``, ``start``, then ``submit``,
``maintain`` and the queries as often as needed, then ``stop`` (left out where the proxy process
must outlive the agent) and ``close``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from amphitrite.dataplane.table.routing_table import Address, RoutingTable
from amphitrite.dataplane.table.saved_table import SavedTable


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """What a proxy is built from.

    - ``id``: its name, unique among the proxies of one control plane.
    - ``state``, ``run``, ``logs``: directories for files that survive a restart, for UNIX sockets,
      and for log files. ``logs`` None: one line for each request goes to standard output, all else
      to the agent's log.
    - ``listen``: where clients connect.
    - ``certificate``, ``private_key``: PEM files, which may be replaced at any time.
    - ``concurrency``: worker threads. None: as many as the machine and the CPU quota allow.
    - ``metrics_every_s``: seconds between two readings of the proxy's counters.
    - ``scoring_domain``: endpoints are also served at ``<endpoint>.<scoring_domain>``. None: only
      at ``/endpoints/<endpoint>/``.
    """

    id: str
    state: Path
    run: Path
    logs: Path | None
    listen: Address
    certificate: Path
    private_key: Path
    concurrency: int | None = None
    metrics_every_s: float = 5.0
    scoring_domain: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The part of an agent's report that is about routing tables.

    - ``acknowledged_version``: the newest table in force; 0: none.
    - ``drained_version``: no request is in flight on anything that this table does not name.
    - ``rejected_version``, ``error``: the table that the proxy has refused last, and why.
    """

    acknowledged_version: int = 0
    drained_version: int = 0
    rejected_version: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ProxyProcess:
    """The process that serves clients. None stands for: not known yet."""

    pid: int | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True)
class GracefulShutdown:
    """The limits of a graceful shutdown, in seconds.

    - ``linger_s``: how long the proxy still accepts connections while its health check fails, so
      that load balancers and the kubelet notice.
    - ``grace_s``: the longest wait for requests in flight after that.
    """

    linger_s: float = 0.0
    grace_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AgentCallbacks:
    """What a proxy needs of its agent. Each may be called from any thread.

    - ``start_thread``: run a function in a named thread. An exception that it raises is logged and
      ends the agent with status 1.
    - ``save_table``: write the table that has come into force to disk. It returns when the file is
      complete.
    - ``on_progress``: :meth:`Proxy.progress` has changed.
    - ``on_metrics``: :meth:`Proxy.metrics` has changed.
    - ``on_samples``: :meth:`Proxy.samples` has something to send.
    """

    start_thread: Callable[[str, Callable[[], None]], threading.Thread]
    save_table: Callable[[SavedTable], None]
    on_progress: Callable[[], None]
    on_metrics: Callable[[], None]
    on_samples: Callable[[], None]


class Proxy(Protocol):
    """One proxy. ``prepare``, ``start``, ``maintain``, ``stop`` and ``close`` belong to the agent's
    main thread; all else may be called from any thread."""

    def prepare(self, table: SavedTable | None) -> None:
        """Get ready to serve ``table``, if there is one. No client is served yet, unless by the
        proxy process of an earlier agent.

        Raises Error(LocalFileError) when the certificate cannot be read.
        """

    def has_predecessor(self) -> bool:
        """Whether an earlier agent of the same state has left a proxy process, which may serve by
        an earlier table. Call between ``prepare`` and ``start``."""

    def start(self, predecessor_grace_s: float) -> None:
        """Adopt the proxy process of an earlier agent, replace it or start the first one, then
        supervise it and read its counters.

        ``predecessor_grace_s``: how long requests in flight on a process that is replaced may take.
        Raises Error(RuntimeUnavailable, PortInUse or BadArgument) when no process can be started. A
        process that ran before goes on then.
        """

    def submit(self, table: RoutingTable) -> None:
        """Put ``table`` into force, in place of any that is not in force yet. Returns at once."""

    def maintain(self) -> None:
        """Routine work, about once a second: follow the certificate files, rotate the logs. Raises
        Error for work that is tried again next time."""

    def stop(self, shutdown: GracefulShutdown) -> None:
        """Drain the proxy process and end it. Tables and metrics go on meanwhile."""

    def close(self) -> None:
        """End all threads and release all sockets, and leave a proxy process that still runs alone.
        The counters are saved."""

    def progress(self) -> Progress: ...

    def process(self) -> ProxyProcess: ...

    def metrics(self) -> Mapping[str, Any]:
        """The newest counters in their wire form: see ``metrics.counters.totals_to_json``."""

    def samples(self) -> Mapping[str, Any] | None:
        """The samples of demand that are to be sent, in their wire form, or None. They stay the
        same until :meth:`samples_sent`."""

    def samples_sent(self) -> None:
        """What :meth:`samples` has returned has arrived."""

    def drain_timeout_s(self) -> float:
        """The longest time that the table in force gives a request, in seconds; 0: there is
        none."""

    def children(self) -> tuple[int, ...]:
        """The pids of child processes that the proxy itself waits for."""


#: Builds a proxy and starts nothing. Raises Error(RuntimeUnavailable) when it is not installed.
ProxyFactory = Callable[[ProxySettings, AgentCallbacks], Proxy]
