"""One control plane from the lock of its home to the release of it.

Decides what must run before "running" is said, and in which order everything ends: first this process is not ready any
more, then it stops leading, then requests are finished. Must not know how the parts are made.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import uvicorn

from amphitrite.controlplane.auth import renewal
from amphitrite.controlplane.auth.renewal import Renewal
from amphitrite.controlplane.process import agent_process, https_server, logs, server_file
from amphitrite.controlplane.process.agent_process import AgentProcess
from amphitrite.controlplane.process.app import create_app
from amphitrite.controlplane.process.assembly import ControlPlane, assemble
from amphitrite.controlplane.settings import addresses
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: From the first line to "running": migrations, TLS, agent, Envoy (seconds).
START_TIMEOUT_S = 60.0
#: How often the agent's process is looked after.
KEEP_S = 0.5
#: Requests that a load balancer still sends after we were asked to end are answered this long.
LINGER_S = 2.0
#: How long each thread may take to end; in a pod all of it takes less than 5 s.
JOIN_S, JOIN_POD_S = 10.0, 2.0


def run(settings: Settings, stop: threading.Event, told: Callable[[], None] = lambda: None) -> None:
    """Everything between the lock and its release; returns after ``stop`` is set and all threads have ended.
    ``told`` is called once it runs."""
    home = settings.home
    logs.configure(
        home.logs / "controlplane.log" if settings.log_to == "file" else None, text=settings.log_format == "text"
    )
    with ExitStack() as stack:
        load = renewal.certificate_loader(settings, _hosts(settings))
        tls, secrets = load(time.time()), renewal.load_credentials(settings, home)
        server_file.write(settings, tls, "starting")
        stack.callback(server_file.ended, home)
        fetch_ca = None if tls.ca_file == tls.bundle_file else tls.ca_file.read_text(encoding="ascii")
        parts = assemble(settings, secrets, fetch_ca, stack, stop)
        server = https_server.server(settings, tls, create_app(parts.services))
        renewing = Renewal(
            load,
            https_server.reloader(server),
            renewal.credentials_refresher(settings, secrets),
            renewal.period_s(settings),
        )

        threads = _Threads(stack, JOIN_S if settings.embedded else JOIN_POD_S)
        threads.begin("web", server.run, lambda: setattr(server, "should_exit", True))
        stack.callback(parts.services.feed.close)
        if not settings.embedded:
            stack.callback(_linger, stop)
        threads.begin("renewal", lambda: renewing.run(stop), stop.set)
        threads.begin("following", lambda: parts.following.run(stop), parts.following.wake)
        threads.begin("leadership", lambda: parts.leadership.run(stop, parts.duties), stop.set)
        if settings.embedded:
            agent = AgentProcess(home, agent_process.command(settings, tls))
            threads.begin("agent", lambda: _every(stop, KEEP_S, agent.keep), stop.set)
            _await_proxy(settings, stop, server, parts, agent)
        else:
            _await_table(stop, server, parts)
        if not stop.is_set():
            server_file.write(settings, tls, "running")
            log.info("running: api %s, scoring %s", settings.api_url, settings.scoring_url)
            told()
        stop.wait()
        log.info("ending; what serves goes on serving")


class _Threads:
    """Threads that the stack ends and joins, the last one begun first."""

    def __init__(self, stack: ExitStack, join_s: float) -> None:
        self._stack, self._join_s = stack, join_s

    def begin(self, name: str, target: Callable[[], None], ask_to_end: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)

        def end() -> None:
            ask_to_end()
            thread.join(self._join_s)

        thread.start()
        self._stack.callback(end)


def _hosts(settings: Settings) -> tuple[str, ...]:
    """What our own certificate must cover: where we listen, and what clients are told."""
    told = [url for url in (settings.public_api_url, settings.public_scoring_url, settings.cluster.fetch_url) if url]
    below = (f"*.{settings.scoring_domain}",) if settings.scoring_domain else ()
    return addresses.certificate_hosts(settings.host, (*(addresses.host(url) for url in told), *below))


def _await_proxy(
    settings: Settings, stop: threading.Event, server: uvicorn.Server, parts: ControlPlane, agent: AgentProcess
) -> None:
    """Until the API answers and a proxy has acknowledged a table."""
    # A database may still know what a proxy said that has ended since: only words to this process count.
    began, deadline = time.time(), time.monotonic() + START_TIMEOUT_S
    while not stop.is_set():
        live = parts.services.agents.live(time.time()) if server.started else ()
        if any(a.acknowledged_version > 0 and a.seen_at >= began for a in live):
            return
        if error := agent.died():
            stop.set()
            raise error
        if time.monotonic() > deadline:
            stop.set()
            raise Error(
                "RuntimeUnavailable",
                f"the proxy on {settings.host}:{settings.scoring_port} did not come up within {START_TIMEOUT_S:.0f} s",
                hint="see: ml server logs",
            )
        stop.wait(0.02)


def _await_table(stop: threading.Event, server: uvicorn.Server, parts: ControlPlane) -> None:
    """Until the API answers and there is a table for the proxies. There is no deadline: whoever started us asks
    ``/readyz``, and ending would not bring the database or a leader back."""
    while not stop.is_set() and not (server.started and parts.services.feed.known()):
        stop.wait(0.05)


def _linger(stop: threading.Event) -> None:
    """Go on answering for a moment: whoever sends requests to us has yet to hear that we end."""
    stop.set()
    threading.Event().wait(LINGER_S)


def _every(stop: threading.Event, seconds: float, action: Callable[[], None]) -> None:
    while not stop.is_set():
        try:
            action()
        except Exception:
            log.exception("keeping the agent running failed; trying again")
        stop.wait(seconds)
