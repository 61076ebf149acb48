"""One control plane, from its settings to its end.

Decides the order of starting and stopping: what is checked before anything changes, what must run before "running" is
said, and what goes on when this process ends. Must not know routes, plans or how an instance is run.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import uvicorn

from amphitrite.controlplane import addresses, agent_process, certificates, credentials, logs, server_file
from amphitrite.controlplane.agent_process import AgentProcess
from amphitrite.controlplane.agents import AgentRegistry, TableFeed
from amphitrite.controlplane.api.services import Services
from amphitrite.controlplane.app import create_app
from amphitrite.controlplane.certificates import Certificates
from amphitrite.controlplane.home import Home
from amphitrite.controlplane.maintenance import Maintenance
from amphitrite.controlplane.reconciler import Reconciler
from amphitrite.controlplane.runtimes.local import LocalRuntime
from amphitrite.controlplane.settings import Settings
from amphitrite.controlplane.store.blobs import Limits
from amphitrite.controlplane.store.database import open_store
from amphitrite.controlplane.store.models import ModelStore
from amphitrite.dataplane import ports, processes
from amphitrite.schemas.errors import Error

log = logging.getLogger(__name__)

#: From the first line to "running": migrations, TLS, agent, Envoy (seconds).
START_TIMEOUT_S = 60.0
#: How often the agent's process is looked after.
KEEP_S = 0.5


def start(settings: Settings) -> bool:
    """Run until SIGTERM (only this process ends, everything goes on serving) or SIGINT (True: the caller is to stop
    the rest too). Raises Error, with nothing changed, when it cannot start."""
    stop, everything = threading.Event(), threading.Event()

    def ask(number: int, _frame: object) -> None:
        if number == signal.SIGINT:
            everything.set()
        stop.set()

    os.umask(0o077)  # Logs and sockets too, whichever of our processes makes them.
    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    settings.home.require_plain()
    _require_ports(settings)
    settings.home.create()
    with _lock(settings.home):
        run(settings, stop)
    return everything.is_set()


def run(settings: Settings, stop: threading.Event) -> None:
    """Everything between the lock and its release; returns after ``stop`` is set and all threads have ended."""
    home = settings.home
    logs.configure(home.logs / "controlplane.log")
    with ExitStack() as stack:
        hosts = addresses.certificate_hosts(settings.host)
        tls = certificates.ensure(home, hosts, time.time())
        secrets = credentials.ensure(home)
        server_file.write(settings, tls, "starting")
        stack.callback(server_file.ended, home)

        store = open_store(settings.database_url)
        stack.callback(store.close)
        models = ModelStore(store.database, home.models, Limits(file_bytes=settings.limits.file_bytes))
        feed = TableFeed()
        body_limit = settings.limits.scoring_body_bytes
        runtime = LocalRuntime(home, models.repository, max_input_bytes=body_limit)
        stack.callback(runtime.close)
        registry = AgentRegistry(lambda: reconciler.wake())
        reconciler = Reconciler(store, runtime, registry, feed, time.time, max_body_bytes=body_limit)
        runtime.watch(reconciler.wake)

        services = Services(
            settings=settings,
            credentials=secrets,
            store=store,
            models=models,
            blobs=models.blobs,
            agents=registry,
            feed=feed,
            runtime=runtime,
            wake=reconciler.wake,
            clock=time.time,
            last_pass=lambda: reconciler.last_pass,
        )
        web = _web(settings, tls, services)
        agent = AgentProcess(home, agent_process.command(settings, tls))
        maintenance = Maintenance(home, hosts, store, models, runtime, reload=reloader(web))

        _thread(stack, "web", web.run, lambda: setattr(web, "should_exit", True))
        stack.callback(feed.close)
        _thread(stack, "reconciler", lambda: reconciler.run(stop), reconciler.wake)
        _thread(stack, "agent", lambda: _every(stop, KEEP_S, agent.keep), stop.set)
        _thread(stack, "maintenance", lambda: maintenance.run(stop), stop.set)
        _await_running(settings, stop, web, registry, agent)
        server_file.write(settings, tls, "running")
        log.info("running: api %s, scoring %s", settings.api_url, settings.scoring_url)
        stop.wait()
        log.info("ending; what serves goes on serving")


def _await_running(
    settings: Settings, stop: threading.Event, web: uvicorn.Server, registry: AgentRegistry, agent: AgentProcess
) -> None:
    """Until the API answers and a proxy has acknowledged a table."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not stop.is_set():
        if web.started and any(a.acknowledged_version > 0 for a in registry.live(time.time())):
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


def _web(settings: Settings, tls: Certificates, services: Services) -> uvicorn.Server:
    config = uvicorn.Config(
        create_app(services),
        host=settings.host,
        port=settings.port,
        ssl_certfile=str(tls.certificate_file),
        ssl_keyfile=str(tls.key_file),
        log_config=None,
        access_log=False,
        server_header=False,
        # An idle TLS connection counts as open until the peer answers its closing, which an idle client does not.
        timeout_graceful_shutdown=1,
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return uvicorn.Server(config)


def reloader(web: uvicorn.Server) -> Callable[[Certificates], None]:
    """New connections get a renewed certificate without a restart."""

    def reload(tls: Certificates) -> None:
        if web.config.loaded and web.config.ssl is not None:
            web.config.ssl.load_cert_chain(tls.certificate_file, tls.key_file)

    return reload


def _thread(stack: ExitStack, name: str, target: Callable[[], None], ask_to_end: Callable[[], None]) -> None:
    """A thread that the stack ends and joins."""
    thread = threading.Thread(target=target, name=name, daemon=True)

    def end() -> None:
        ask_to_end()
        thread.join(10)

    thread.start()
    stack.callback(end)


def _every(stop: threading.Event, seconds: float, action: Callable[[], None]) -> None:
    while not stop.is_set():
        try:
            action()
        except Exception:
            log.exception("keeping the agent running failed; trying again")
        stop.wait(seconds)


def _require_ports(settings: Settings) -> None:
    """Both ports are free, or the scoring port is held by the data plane that this home left serving."""
    running = server_file.running(settings.home)
    if running is not None:
        raise Error(
            "Conflict",
            f"a control plane of {settings.home.root} runs already: pid {running['pid']}, {running['api_url']}",
            hint="ml server stop",
        )
    ports.require_free(settings.host, settings.port, "--port")
    serving = agent_process.listening(settings.home)
    if serving is None:
        ports.require_free(settings.host, settings.scoring_port, "--scoring-port")
    elif serving != f"{settings.host}:{settings.scoring_port}":
        raise Error(
            "Conflict",
            f"the data plane of {settings.home.root} still serves on {serving}",
            hint=f"start with that --host and --scoring-port, or first: ML_HOME={settings.home.root} ml server stop",
        )


@contextmanager
def _lock(home: Home) -> Iterator[None]:
    """One control plane for each home. The kernel frees the lock when the process ends, however it ends."""
    descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            message = f"another control plane of {home.root} is starting or ending"
            raise Error("Conflict", message, hint="ml server status") from exc
        yield
    finally:
        os.close(descriptor)


def stop(home: Home, *, keep_serving: bool, stop_instances: Callable[[Home, float], None]) -> None:
    """End the control plane of ``home`` if it runs, then (unless ``keep_serving``) Envoy with its agent, after
    draining, and every instance. Afterwards no process and no socket of this home is left."""
    record = processes.read(home.server_file)
    if record is not None and processes.send_signal(record, signal.SIGTERM):
        agent_process.wait_gone(record, 30.0)
        processes.send_signal(record, signal.SIGKILL)
        agent_process.wait_gone(record, 5.0)
    if not keep_serving:
        agent_process.stop(home, deadline_s=200.0)
        stop_instances(home, 10.0)
    server_file.ended(home)
