"""The agent's side of the conversation with the control plane: tables come in, reports go out, both over HTTPS.

Decides how long to wait, how to try again, and which tables count as news. Must not know what a table means. A control
plane that is away is normal: the data plane goes on with what it has.

Versions only grow, and a proxy never goes back. Behind one address there may be several control planes that share a
store; one that lags behind by a version has nothing to say to whoever holds a newer one. A control plane with another
history (a new store, or one restored from a backup) may begin below the version that a proxy holds: it hears that
version in the proxy's report and goes on above it. Should both hold one version of different content, the digest that
the agent sends along shows it, and the control plane's counts.
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
from amphitrite.dataplane.table.json_codec import from_json
from amphitrite.dataplane.table.routing_table import RoutingTable
from amphitrite.dataplane.table.text_codec import TableText, changed
from amphitrite.schemas.errors import Error

#: How long the control plane may hold a request until there is something new (it allows 60).
_WAIT_S = 25
_REPORT_EVERY_S = 5.0
#: After a connection that worked the first attempt is made at once: another control plane may be there already.
_BACK_OFF_S = (0.0, 0.2, 0.4, 0.8, 1.6, 2.0)
_FAREWELL_WITHIN_S = 2.0
#: A control plane whose machine has vanished says nothing more: its connection is given up after about 11 seconds.
_KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 11_000),
)


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Where it is, whom to trust and what to show it. The files are read anew for each connection."""

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
            timeout=httpx.Timeout(10.0, read=_WAIT_S + 10.0),
            trust_env=False,
        )


def follow(
    control_plane: ControlPlane,
    have: RoutingTable | None,
    on_table: Callable[[RoutingTable], None],
    stop: threading.Event,
) -> None:
    """Hand on each table that is news to whoever has ``have``, until ``stop``."""
    text = TableText()

    def once(client: httpx.Client) -> None:
        nonlocal have
        version, content = (0, "") if have is None else (have.version, text.digest(have))
        parameters: dict[str, str | int] = {"after": version, "digest": content, "wait_s": _WAIT_S, "changes": "true"}
        answer = client.get("/dataplane/v1/routing-table", params=parameters).raise_for_status()
        if answer.status_code != 200:
            return
        table = _table(answer, have)
        if table.version < version or (table.version == version and text.digest(table) == content):
            raise Error("InternalServerError", f"table {table.version} is no news: this proxy has {version}")
        have = table
        on_table(table)

    _again_and_again(control_plane, "routing table", once, stop, lambda: None)


def report(
    control_plane: ControlPlane,
    agent_id: str,
    content: Callable[[], Mapping[str, Any]],
    changed: threading.Event,
    stop: threading.Event,
) -> None:
    """Send ``content()`` whenever ``changed`` is set, and every 5 seconds, until ``stop``."""
    _tell(control_plane, "report", _agent(agent_id), content, changed, stop, _REPORT_EVERY_S)


def report_metrics(
    control_plane: ControlPlane,
    agent_id: str,
    content: Callable[[], Mapping[str, Any]],
    changed: threading.Event,
    stop: threading.Event,
) -> None:
    """Send ``content()`` whenever ``changed`` is set, until ``stop``."""
    _tell(control_plane, "metrics", f"{_agent(agent_id)}/metrics", content, changed, stop, _WAIT_S)


def _tell(
    control_plane: ControlPlane,
    what: str,
    path: str,
    content: Callable[[], Mapping[str, Any]],
    changed: threading.Event,
    stop: threading.Event,
    every_s: float,
) -> None:
    def once(client: httpx.Client) -> None:
        changed.clear()
        client.put(path, json=dict(content())).raise_for_status()

    _again_and_again(control_plane, what, once, stop, lambda: changed.wait(every_s))


def farewell(control_plane: ControlPlane, agent_id: str) -> None:
    """Say that this agent has ended, so that nobody waits for its reports. A control plane that is away need not know:
    it forgets an agent that is silent."""
    try:
        with control_plane.connect() as client:
            client.delete(_agent(agent_id), timeout=_FAREWELL_WITHIN_S).raise_for_status()
    except (httpx.HTTPError, Error) as exc:
        log("info", "left without a farewell", error=str(exc))


def _agent(agent_id: str) -> str:
    return f"/dataplane/v1/agents/{quote(agent_id, safe='')}"


def _again_and_again(
    control_plane: ControlPlane,
    what: str,
    once: Callable[[httpx.Client], None],
    stop: threading.Event,
    pause: Callable[[], object],
) -> None:
    """Call ``once`` on one connection as long as that works; else begin anew after a pause. Only changes are logged."""
    failures = 0
    while not stop.is_set():
        try:
            with control_plane.connect() as client:
                while not stop.is_set():
                    once(client)
                    if failures:
                        log("info", "control plane is back", what=what)
                        failures = 0
                    pause()
        except (httpx.HTTPError, Error) as exc:
            if not failures:
                log("warning", "control plane does not answer; going on without it", what=what, error=str(exc))
            stop.wait(_BACK_OFF_S[min(failures, len(_BACK_OFF_S) - 1)])
            failures += 1


def _table(answer: httpx.Response, have: RoutingTable | None) -> RoutingTable:
    """The table itself, or ``have`` with what has changed since. Should the two sides ever differ in what that makes,
    the digest of the next request shows it."""
    try:
        value = answer.json()
        return changed(have, value) if have is not None and "since" in value else from_json(value)
    except (ValueError, KeyError, TypeError) as exc:
        raise Error("InternalServerError", f"not a routing table: {type(exc).__name__}") from exc
