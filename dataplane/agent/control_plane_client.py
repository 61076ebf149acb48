"""The agent's client of the control plane: it receives tables and sends reports, over HTTPS.

Decides how long to wait, how to try again, and which tables are newer. Must not know what a table
means. A control plane that does not answer is normal: the data plane goes on with what it has.

Versions only grow, and a proxy never goes back:

- Several control planes may share a store behind one address. The table of one that lags behind is
  ignored.
- A control plane with another history (a new store, or one restored from a backup) may begin below
  the version that a proxy has. It reads that version in the proxy's report and continues above it.
- If both have one version with different content, the agent's digest shows it, and the control
  plane's table counts.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from amphitrite.dataplane.machine.json_log import log
from amphitrite.dataplane.proxy.proxy import Progress, ProxyProcess
from amphitrite.dataplane.table.json_codec import from_json
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.dataplane.table.text_codec import TableText, apply_change
from amphitrite.schemas.errors import Error

#: How long the control plane may hold a request until there is a new table (it allows 60 seconds).
_LONG_POLL_S = 25
_REPORT_EVERY_S = 5.0
#: The pauses before further attempts. The first is made at once after a connection that worked:
#: another control plane may be there already.
_BACK_OFF_S = (0.0, 0.2, 0.4, 0.8, 1.6, 2.0)
_DEREGISTER_TIMEOUT_S = 2.0
#: Statuses of a body that is refused however often it is sent.
_NEVER_TAKEN = (400, 404, 413, 422)
#: A control plane whose machine has vanished never closes its connection: the kernel gives that up
#: after about 11 seconds.
_KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 11_000),
)


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """``url``: where it is. ``ca_file``: whom to trust, PEM. ``token_file``: the bearer token. Both
    files are read again for each connection."""

    url: str
    ca_file: Path
    token_file: Path

    def connect(self) -> httpx.Client:
        """Raises Error(LocalFileError) when a file cannot be used."""
        try:
            context = ssl.create_default_context(cafile=str(self.ca_file))
            token = self.token_file.read_text(encoding="utf-8").strip()
        except (OSError, ssl.SSLError) as exc:
            raise Error("LocalFileError", f"cannot use {self.ca_file} or {self.token_file}: {exc}") from exc
        return httpx.Client(
            base_url=self.url,
            transport=httpx.HTTPTransport(verify=context, socket_options=_KEEP_ALIVE, trust_env=False),
            headers={"authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(10.0, read=_LONG_POLL_S + 10.0),
            trust_env=False,
        )


def follow(
    control_plane: ControlPlane,
    current: RoutingTable | None,
    on_table: Callable[[RoutingTable], None],
    stop: threading.Event,
) -> None:
    """Call ``on_table`` with each table that is newer than ``current``, until ``stop``."""
    text = TableText()

    def request(client: httpx.Client) -> None:
        nonlocal current
        version, digest = (0, "") if current is None else (current.version, text.digest(current))
        parameters: dict[str, str | int] = {
            "after": version,
            "digest": digest,
            "wait_s": _LONG_POLL_S,
            "changes": "true",
        }
        response = client.get("/dataplane/v1/routing-table", params=parameters).raise_for_status()
        if response.status_code != 200:
            return
        table = _table(response, current)
        if table.version < version or (table.version == version and text.digest(table) == digest):
            raise Error("InternalServerError", f"table {table.version} is not new: this proxy has {version}")
        current = table
        on_table(table)

    _repeat(control_plane, "routing table", request, stop, lambda: None)


def report(
    control_plane: ControlPlane,
    agent_id: str,
    state: Callable[[], tuple[Progress, ProxyProcess]],
    due: threading.Event,
    stop: threading.Event,
) -> None:
    """Send a report of ``state()`` whenever ``due`` is set, and every 5 seconds, until ``stop``."""
    _send(control_plane, "report", _agent(agent_id), lambda: report_body(*state()), due, stop, _REPORT_EVERY_S)


def report_body(progress: Progress, process: ProxyProcess) -> dict[str, Any]:
    """The body of ``PUT /dataplane/v1/agents/{id}``. Its field ``envoy`` holds the proxy's process,
    whichever proxy it is."""
    return {
        "acknowledged_version": progress.acknowledged_version,
        "drained_version": progress.drained_version,
        "rejected_version": progress.rejected_version,
        "error": progress.error,
        "envoy": {"pid": process.pid, "version": process.version},
    }


def report_metrics(
    control_plane: ControlPlane,
    agent_id: str,
    content: Callable[[], Mapping[str, Any]],
    due: threading.Event,
    stop: threading.Event,
) -> None:
    """Send ``content()`` whenever ``due`` is set, and every 25 seconds, until ``stop``."""
    _send(control_plane, "metrics", f"{_agent(agent_id)}/metrics", content, due, stop, _LONG_POLL_S)


def report_samples(
    control_plane: ControlPlane,
    agent_id: str,
    content: Callable[[], Mapping[str, Any] | None],
    on_sent: Callable[[], None],
    due: threading.Event,
    stop: threading.Event,
) -> None:
    """Send ``content()``, unless it is None, whenever ``due`` is set, until ``stop``. ``on_sent``:
    it has arrived; until then the same content is sent again."""

    def request(client: httpx.Client) -> None:
        due.clear()
        while not stop.is_set() and (flush := content()) is not None:
            response = client.put(f"{_agent(agent_id)}/samples", json=dict(flush))
            if response.status_code in _NEVER_TAKEN:
                log("error", "the control plane refuses samples; they are dropped", status=response.status_code)
            else:
                response.raise_for_status()
            on_sent()

    _repeat(control_plane, "samples", request, stop, due.wait)


def _send(
    control_plane: ControlPlane,
    what: str,
    path: str,
    content: Callable[[], Mapping[str, Any]],
    due: threading.Event,
    stop: threading.Event,
    every_s: float,
) -> None:
    def request(client: httpx.Client) -> None:
        due.clear()
        client.put(path, json=dict(content())).raise_for_status()

    _repeat(control_plane, what, request, stop, lambda: due.wait(every_s))


def deregister(control_plane: ControlPlane, agent_id: str) -> None:
    """Tell the control plane that this agent has ended, so that it waits for no more reports. If
    that fails, the control plane forgets the agent after a while without reports."""
    try:
        with control_plane.connect() as client:
            client.delete(_agent(agent_id), timeout=_DEREGISTER_TIMEOUT_S).raise_for_status()
    except (httpx.HTTPError, Error) as exc:
        log("info", "could not deregister from the control plane", error=str(exc))


def _agent(agent_id: str) -> str:
    return f"/dataplane/v1/agents/{quote(agent_id, safe='')}"


def _repeat(
    control_plane: ControlPlane,
    what: str,
    request: Callable[[httpx.Client], None],
    stop: threading.Event,
    pause: Callable[[], object],
) -> None:
    """Call ``request`` on one connection as long as that works, else connect again after a pause.
    Only the first failure of a row is logged, and its end."""
    failures = 0
    while not stop.is_set():
        try:
            with control_plane.connect() as client:
                while not stop.is_set():
                    request(client)
                    if failures:
                        log("info", "the control plane answers again", what=what)
                        failures = 0
                    pause()
        except (httpx.HTTPError, Error) as exc:
            if not failures:
                log("warning", "the control plane does not answer; going on without it", what=what, error=str(exc))
            stop.wait(_BACK_OFF_S[min(failures, len(_BACK_OFF_S) - 1)])
            failures += 1


def _table(response: httpx.Response, current: RoutingTable | None) -> RoutingTable:
    """The table, or ``current`` with a change applied. If the two sides ever differ in the result,
    the digest of the next request shows it."""
    try:
        value = response.json()
        return apply_change(current, value) if current is not None and "since" in value else from_json(value)
    except (ValueError, KeyError, TypeError) as exc:
        raise Error("InternalServerError", f"not a routing table: {type(exc).__name__}") from exc
