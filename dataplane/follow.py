"""The agent's side of the conversation with the control plane: tables come in, reports go out, both over HTTPS.

Decides how long to wait and how to try again. Must not know what a table means. A control plane that is away is normal:
the data plane goes on with what it has.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from amphitrite.dataplane.log import log
from amphitrite.dataplane.routing import RoutingTable, from_json
from amphitrite.schemas.errors import Error

#: How long the control plane may hold a request until there is something new (it allows 60).
_WAIT_S = 25
_REPORT_EVERY_S = 5.0
_BACK_OFF_S = (0.2, 0.4, 0.8, 1.6, 2.0)


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
            verify=context,
            headers={"authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(10.0, read=_WAIT_S + 10.0),
            trust_env=False,
        )


def follow(control_plane: ControlPlane, on_table: Callable[[RoutingTable], None], stop: threading.Event) -> None:
    """Hand on each new table until ``stop``. The first answer is the current table, whatever its version."""
    after = 0

    def once(client: httpx.Client) -> None:
        nonlocal after
        parameters = {"after": after, "wait_s": _WAIT_S}
        answer = client.get("/dataplane/v1/routing-table", params=parameters).raise_for_status()
        if answer.status_code == 200:
            table = _table(answer)
            after = table.version
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

    def once(client: httpx.Client) -> None:
        changed.clear()
        client.put(f"/dataplane/v1/agents/{agent_id}", json=dict(content())).raise_for_status()

    _again_and_again(control_plane, "report", once, stop, lambda: changed.wait(_REPORT_EVERY_S))


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


def _table(answer: httpx.Response) -> RoutingTable:
    try:
        return from_json(answer.json())
    except (ValueError, KeyError, TypeError) as exc:
        raise Error("InternalServerError", f"not a routing table: {type(exc).__name__}") from exc
