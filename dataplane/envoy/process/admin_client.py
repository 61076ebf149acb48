"""A client of Envoy's admin interface on its UNIX socket.

Decides how Envoy is asked and what its answers mean. Must not know why. Source: Envoy's page
"Administration interface".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from amphitrite.dataplane.envoy.process.hot_restart import ServerState
from amphitrite.dataplane.table.routing_table import Address, InstanceAddress, SocketAddress
from amphitrite.schemas.errors import Error

#: The longest filter, in characters before URL encoding. A URL may hold 65,536.
_FILTER_MAX = 8_000


@dataclass(frozen=True, slots=True)
class Host:
    """One address of a cluster, as Envoy sees it. ``active``: requests in flight or waiting for a
    connection."""

    address: InstanceAddress
    healthy: bool
    active: int


class AdminClient:
    """Every method raises Error(RuntimeUnavailable) when Envoy does not answer."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._client = httpx.Client(
            # No connection is kept: after a hot restart the next request must reach the new Envoy.
            transport=httpx.HTTPTransport(uds=str(socket), limits=httpx.Limits(max_keepalive_connections=0)),
            base_url="http://envoy",
            timeout=5,
            trust_env=False,
        )

    def close(self) -> None:
        self._client.close()

    def hosts(self, clusters: Iterable[str]) -> dict[str, list[Host]]:
        """The addresses of ``clusters``, by cluster. Clusters that Envoy does not have are left
        out."""
        names = set(clusters)
        pattern = "^(" + "|".join(re.escape(name) for name in sorted(names)) + ")$"
        parameters = {"format": "json", "filter": pattern}
        if len(pattern) > _FILTER_MAX:  # That many are about all of them.
            del parameters["filter"]
        answer = self._get("/clusters", parameters).json()
        return {
            status["name"]: [_host(host) for host in status.get("host_statuses", ())]
            for status in answer.get("cluster_statuses", ())
            if status["name"] in names
        }

    def requests_in_flight(self) -> int:
        """Client requests that are not answered yet."""
        return self._gauge("downstream_rq_active")

    def connections(self) -> int:
        """Client connections."""
        return self._gauge("downstream_cx_active")

    def stats(self, pattern: str) -> str:
        """The counters whose names match ``pattern``, in Prometheus' text format. Counters that
        were never used are left out."""
        return self._get("/stats", {"format": "prometheus", "usedonly": "", "filter": pattern}).text

    def version(self) -> str:
        """Envoy's version, for instance ``1.40.0``."""
        text = str(self._get("/server_info", {}).json()["version"])
        return text.split("/")[1] if text.count("/") > 1 else text

    def epoch(self) -> int:
        """How many Envoys the present one has replaced by hot restarts."""
        return int(self._get("/server_info", {}).json()["command_line_options"]["restart_epoch"])

    def server_state(self) -> ServerState:
        """What Envoy reports about itself. It is draining after :meth:`fail_health_checks`, whoever
        called that."""
        state = self._get("/server_info", {}).json()["state"]
        version = self._get("/hot_restart_version", {}).text.strip()
        return ServerState(state == "LIVE", state == "DRAINING", None if version == "disabled" else version)

    def fail_health_checks(self) -> None:
        """Answer 503 to health checks of the listener, and close each client's connection with its
        next response."""
        self._post("/healthcheck/fail")

    def pass_health_checks(self) -> None:
        """Undo :meth:`fail_health_checks`."""
        self._post("/healthcheck/ok")

    def drain_listeners(self) -> None:
        """Accept no more connections. Open connections go on."""
        self._post("/drain_listeners")

    def reopen_logs(self) -> None:
        self._post("/reopen_logs")

    def _gauge(self, name: str) -> int:
        pattern = rf"^http\.scoring\.{name}$"
        stats = self._get("/stats", {"format": "json", "filter": pattern}).json()["stats"]
        return sum(int(stat["value"]) for stat in stats if "value" in stat)

    def _get(self, path: str, parameters: dict[str, str]) -> httpx.Response:
        return self._call("GET", path, params=parameters)

    def _post(self, path: str) -> None:
        self._call("POST", path)

    def _call(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            return self._client.request(method, path, **more).raise_for_status()
        except httpx.HTTPError as exc:
            raise Error("RuntimeUnavailable", f"Envoy's admin interface: {exc}", target=str(self._socket)) from exc


def _host(status: dict[str, Any]) -> Host:
    health = status["health_status"]
    gauges = {stat["name"]: int(stat.get("value", 0)) for stat in status["stats"]}
    failed = [key for key, value in health.items() if key != "eds_health_status" and value]
    return Host(
        address=_address(status["address"]),
        healthy=not failed and health.get("eds_health_status", "HEALTHY") == "HEALTHY",
        active=gauges.get("rq_active", 0) + gauges.get("rq_pending_active", 0),
    )


def _address(message: dict[str, Any]) -> InstanceAddress:
    """Of an ``Address`` message."""
    if "pipe" in message:
        return SocketAddress(str(message["pipe"]["path"]))
    socket = message.get("socket_address", {})
    return Address(str(socket.get("address", "")), int(socket.get("port_value", 0)))
