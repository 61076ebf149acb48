"""The life of one control plane, from the lock of its home to its release.

Decides what must run before it is "running", and the order of shutdown: first it is no longer
ready, then it stops leading, then it finishes requests. Must not know how the parts are created.
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
from amphitrite.controlplane.process.handshakes import Handshakes
from amphitrite.controlplane.process.threads import Threads
from amphitrite.controlplane.runtimes.isolation import support
from amphitrite.controlplane.settings import addresses
from amphitrite.controlplane.settings.settings import Settings
from amphitrite.dataplane.machine import open_files, thread_stacks
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: Seconds from the start to "running": migrations, TLS, agent, Envoy.
START_TIMEOUT_S = 60.0
#: Seconds between checks of the agent's process.
AGENT_CHECK_S = 0.5
#: Seconds for which requests are still answered after SIGTERM, because load balancers need time to
#: notice.
SHUTDOWN_DELAY_S = 2.0
#: Seconds that each thread may take to end; in a pod all of it takes less than 5 s.
JOIN_S, JOIN_POD_S = 10.0, 2.0


def run(settings: Settings, stop: threading.Event, on_running: Callable[[], None] = lambda: None) -> None:
    """Runs a control plane. Returns after ``stop`` is set and all threads have ended.

    ``on_running`` is called once it runs. Raises Error, also if an indispensable thread is lost.
    """
    home = settings.home
    logs.configure(
        home.logs / "controlplane.log" if settings.log_to == "file" else None,
        settings.log_level,
        text=settings.log_format == "text",
    )
    with ExitStack() as stack:
        isolation = support.choose(settings.isolation.mode)
        load = renewal.certificate_loader(settings, _hosts(settings), addresses.machine_hosts(settings.host))
        tls, secrets = load(time.time()), renewal.load_credentials(settings, home)
        server_file.write(settings, tls, "starting", isolation.text)
        stack.callback(server_file.ended, home)
        fetch_ca = None if tls.ca_file == tls.bundle_file else tls.ca_file.read_text(encoding="ascii")
        files_max = open_files.raise_limit()  # Before anything is started that inherits it.
        parts = assemble(settings, secrets, fetch_ca, isolation, stack, stop)
        thread_stacks.raise_limit()
        pending = Handshakes(https_server.pending_at_most(files_max))
        server = https_server.server(settings, tls, create_app(parts.services), pending, files_max)
        renewal_task = Renewal(
            load,
            https_server.reloader(server),
            renewal.credentials_refresher(settings, secrets),
            renewal.period_s(settings),
        )

        threads = Threads(stack, stop, JOIN_S if settings.embedded else JOIN_POD_S)
        listening = https_server.sockets(settings, pending)
        threads.start_once("web", lambda: server.run(listening), lambda: setattr(server, "should_exit", True))
        stack.callback(parts.services.feed.close)
        if not settings.embedded:
            stack.callback(_keep_answering, stop)
        threads.start("renewal", lambda: renewal_task.run(stop), stop.set)
        threads.start("stored changes", lambda: parts.stored_changes.run(stop), parts.stored_changes.wake)
        threads.start("leadership", lambda: parts.leadership.run(stop, parts.leader_tasks), stop.set)
        if settings.embedded:
            agent = AgentProcess(home, agent_process.command(settings, tls))
            threads.start("agent", lambda: _every(stop, AGENT_CHECK_S, agent.ensure_running), stop.set)
            _wait_for_proxy(settings, stop, server, parts, agent)
        else:
            _wait_for_table(stop, server, parts)
        if not stop.is_set():
            server_file.write(settings, tls, "running", isolation.text)
            log.info(
                "running: api %s, scoring %s; isolation %s", settings.api_url, settings.scoring_url, isolation.text
            )
            on_running()
        stop.wait()
        log.info("stopping; the data plane keeps serving")
    if threads.lost is not None:
        message = f"the control plane ended, because its thread {threads.lost} did"
        raise Error("InternalServerError", message, hint="run `ml server logs`")


def _hosts(settings: Settings) -> tuple[str, ...]:
    """The hosts that our own certificate must name: the server's, and those of URLs for clients."""
    public_urls = [
        url for url in (settings.public_api_url, settings.public_scoring_url, settings.cluster.fetch_url) if url
    ]
    subdomains = (f"*.{settings.scoring_domain}",) if settings.scoring_domain else ()
    return addresses.certificate_hosts(settings.host, (*(addresses.host(url) for url in public_urls), *subdomains))


def _wait_for_proxy(
    settings: Settings, stop: threading.Event, server: uvicorn.Server, parts: ControlPlane, agent: AgentProcess
) -> None:
    """Waits until the API answers and a proxy has acknowledged a table."""
    # The database may have a report of a proxy that has ended, so only reports to this process
    # count.
    began, deadline = time.time(), time.monotonic() + START_TIMEOUT_S
    while not stop.is_set():
        live = parts.services.agents.live(time.time()) if server.started else ()
        if any(a.acknowledged_version > 0 and a.seen_at >= began for a in live):
            return
        if error := agent.exit_error():
            stop.set()
            raise error
        if time.monotonic() > deadline:
            stop.set()
            raise Error(
                "RuntimeUnavailable",
                f"the proxy on {settings.host}:{settings.scoring_port} was not ready within {START_TIMEOUT_S:.0f} s",
                hint="run `ml server logs`",
            )
        stop.wait(0.02)


def _wait_for_table(stop: threading.Event, server: uvicorn.Server, parts: ControlPlane) -> None:
    """Waits until the API answers and there is a table for the proxies.

    There is no deadline: probes use ``/readyz``, and exiting would not bring the database or a
    leader back.
    """
    while not stop.is_set() and not (server.started and parts.services.feed.has_table()):
        stop.wait(0.05)


def _keep_answering(stop: threading.Event) -> None:
    """Answers for a moment longer, until load balancers stop sending requests here."""
    stop.set()
    threading.Event().wait(SHUTDOWN_DELAY_S)


def _every(stop: threading.Event, seconds: float, action: Callable[[], None]) -> None:
    while not stop.is_set():
        try:
            action()
        except Exception:
            log.exception("cannot keep the agent running; retrying")
        stop.wait(seconds)
