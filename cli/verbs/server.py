"""``ml server``: the control plane and data plane of this machine.

Decides the options and the output. Must not know how processes run (``server_process``) or how
clients find them (``connection``).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from amphitrite.cli.session.connection import START_HINT, Server, default_url, find_remote_server
from amphitrite.cli.session.session import Session
from amphitrite.cli.session.verb_declaration import group, verb
from amphitrite.cli.terminal import home_directory as homes
from amphitrite.cli.terminal import options
from amphitrite.cli.terminal.options import scope
from amphitrite.cli.verbs import server_data, server_storage
from amphitrite.schemas import database_urls
from amphitrite.schemas.errors import Error

app = group("server", "The control plane and data plane on this machine.")

_COLUMNS = ("state", "version", "runtime", "api_url", "scoring_url", "pid", "home", "isolation")
_HEALTH_TIMEOUT_S = 3.0
_LOGS = ("controlplane", "agent", "envoy")
_LINES = 200
_SERVING = "Envoy and the instances go on answering"


@verb(app, "start", columns=_COLUMNS)
def start(
    session: Session,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Run in the background. Return as soon as the server is ready.")
    ] = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the control plane. [default: 8443]")] = None,
    scoring_port: Annotated[int | None, typer.Option(help="Port for scoring. [default: 9443]")] = None,
    scoring_domain: Annotated[
        str | None,
        typer.Option(
            metavar="DOMAIN", help="Serve endpoints also at https://<endpoint>.DOMAIN. [default: by path only]"
        ),
    ] = None,
    runtime: Annotated[
        str | None, typer.Option(help="Where instances run: local or kubernetes. [default: local]")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            help="Database: sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME. [default: SQLite in ML_HOME]"
        ),
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Model store: file:///DIRECTORY or s3://BUCKET/PREFIX. [default: in ML_HOME]")
    ] = None,
    kubeconfig: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Kubeconfig of the cluster for --runtime kubernetes. [default: KUBECONFIG]"),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(help="Namespace of the instances in the cluster. [default: default]")
    ] = None,
    isolation: Annotated[
        str | None,
        typer.Option(
            help="Isolate instances on this machine from each other and the server: auto (if possible), required or "
            "off. [default: auto]"
        ),
    ] = None,
) -> None:
    """Start the control plane and the data plane of ML_HOME."""
    from amphitrite.cli.server import server_process

    server_process.require_server()
    database_urls.refuse_password("--database", database, variable="ML_DATABASE_URL")
    home = homes.path()
    settings = {"--host": host, "--port": port, "--scoring-port": scoring_port, "--runtime": runtime}
    settings |= {
        "--database": database,
        "--models": models,
        "--namespace": namespace,
        "--scoring-domain": scoring_domain,
        "--isolation": isolation,
    }
    settings["--kubeconfig"] = None if kubeconfig is None else str(Path(kubeconfig).expanduser().absolute())
    arguments = [text for name, value in settings.items() if value is not None for text in (name, str(value))]
    state = _running(home)
    if state is not None and detach and _has_settings(state, settings):
        session.note(f"already running: {state['api_url']} (pid {state['pid']})")
        return
    if not detach:
        if sys.stderr.isatty():
            session.note("control plane: starting; Ctrl-C stops it and all instances")
        server_process.exec_server(home, arguments)
    with session.progress("control plane") as progress:
        state = server_process.start_detached(home, arguments, progress)
        progress.done("running")
    session.note(_addresses(state))


def _addresses(state: dict[str, Any]) -> str:
    return f"control plane: {state['api_url']}\nscoring: {state['scoring_url']}"


#: Option -> its field in ``server.json``. Other options cannot be compared.
_COMPARED = {
    "--host": "host",
    "--port": "port",
    "--scoring-port": "scoring_port",
    "--scoring-domain": "scoring_domain",
    "--runtime": "runtime",
}


def _has_settings(state: dict[str, Any], settings: dict[str, Any]) -> bool:
    """Whether the running server has all the settings in ``settings``."""
    requested = {name: value for name, value in settings.items() if value is not None}
    return all(name in _COMPARED and state.get(_COMPARED[name]) == value for name, value in requested.items())


@verb(app, "stop")
def stop(
    session: Session,
    keep_serving: Annotated[
        bool, typer.Option("--keep-serving", help="Stop only the control plane. Envoy and the instances keep running.")
    ] = False,
) -> None:
    """Stop the control plane and the data plane of ML_HOME."""
    from amphitrite.cli.server import server_process

    server_process.require_server()
    home = homes.path()
    was_running, was_serving = _running(home) is not None, homes.is_serving(home)
    if home.exists():
        with session.progress("control plane") as progress:
            progress.phase("stopping")
            server_process.stop(home, keep_serving=keep_serving)
    session.note(_stopped(was_running, was_serving, keep_serving))


def _stopped(was_running: bool, was_serving: bool, keep_serving: bool) -> str:
    """What has ended. ``was_serving``: Envoy ran, with a control plane or without one."""
    if was_serving and keep_serving:
        return f"{'stopped' if was_running else 'no control plane was running'}; {_SERVING}"
    if was_serving and not was_running:
        return "no control plane was running; stopped Envoy and the instances, which went on answering"
    return "stopped" if was_running else "no control plane was running"


@verb(app, "status", columns=_COLUMNS)
def status(session: Session) -> dict[str, Any]:
    """Show the state and the addresses of the control plane.

    The state is running, starting, unhealthy or stopped. The control plane is the one of ML_HOME,
    unless --server-url or ML_SERVER_URL is set. `leader` is true for the one that reconciles.
    """
    from importlib.metadata import version

    server = find_remote_server(session.options.server_url)
    if server is not None:
        return _remote_status(session, server)
    home = homes.path()
    state = homes.read_state(home)
    fields = ("runtime", "isolation", "api_url", "scoring_url", "scoring_domain", "studio_url", "ca_file")
    output: dict[str, Any] = {"state": "stopped", "version": version("amphitrite")}
    if (state is None or not homes.is_alive(state)) and homes.is_serving(home):
        session.note(f"note: {_SERVING}: `ml server start -d` takes them over, `ml server stop` stops them")
    if state is None:
        return {**output, **dict.fromkeys(fields), "home": str(home), "pid": None, "leader": None}
    output.update({name: state.get(name) for name in ("version", *fields)}, home=str(home), pid=None, leader=None)
    if homes.is_alive(state):
        health, leader = _health(session, state)
        output.update(state=health, pid=state["pid"], leader=leader)
    return output


def _remote_status(session: Session, server: Server) -> dict[str, Any]:
    """The status of a remote server. Raises Error ServerUnreachable."""
    health, leader = _probe(session, server.url)
    unknown_fields = ("version", "runtime", "isolation", "scoring_url", "scoring_domain", "studio_url", "home", "pid")
    output: dict[str, Any] = dict.fromkeys(unknown_fields)
    ca_file = None if server.ca_file is None else str(server.ca_file)
    return {"state": health, **output, "api_url": server.url, "ca_file": ca_file, "leader": leader}


def _health(session: Session, state: dict[str, Any]) -> tuple[str, bool | None]:
    """(state, whether it leads) of a live process; whether it leads is None if it does not answer.

    The state is ``starting``, ``running``, or ``unhealthy`` if the process is not ready.
    """
    if state["state"] != "running":
        return str(state["state"]), None
    try:
        return _probe(session, state["api_url"])
    except Error as error:
        if error.code == "ServerUnreachable":
            return "unhealthy", None
        raise


def _probe(session: Session, url: str) -> tuple[str, bool | None]:
    client = session.client_for(url)
    ready = client.exchange("GET", "/readyz", timeout_s=_HEALTH_TIMEOUT_S).is_success
    answer = client.exchange("GET", "/healthz", timeout_s=_HEALTH_TIMEOUT_S)
    role = answer.json().get("role") if answer.is_success else None
    return "running" if ready else "unhealthy", None if role is None else role == "leader"


@verb(app, "env")
def env(
    session: Session,
    shell: Annotated[str, typer.Option(help='Output: sh for `eval "$(ml server env)"`, or json.')] = "sh",
    authentication: Annotated[
        str, typer.Option(help="How Azure's clients sign in: managed-identity, or environment (with a client secret).")
    ] = "managed-identity",
    discovery: Annotated[
        str, typer.Option(help="How Azure ML's SDK finds the server: mfe, or metadata (as a separate cloud).")
    ] = "mfe",
) -> dict[str, str] | None:
    """Print the environment variables for clients: Azure ML, tritonclient, curl."""
    from amphitrite.cli.server import client_environment

    client_environment.check(shell=shell, authentication=authentication, discovery=discovery)
    server = find_remote_server(session.options.server_url)
    if server is None:
        state = homes.read_state(homes.path())
        if state is None:
            raise Error("ServerUnreachable", f"no control plane at {default_url()}", hint=START_HINT)
        variables = client_environment.local_variables(state, authentication, discovery)
    else:
        variables = client_environment.remote_variables(server, scope(session.options), authentication, discovery)
    if shell == "json" or session.options.output or session.options.query:
        return {name: value for name, value in variables.items() if value is not None}
    sys.stdout.write(client_environment.shell_exports(variables))
    return None


@verb(app, "logs")
def logs(
    session: Session,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing new lines.")] = False,
    lines: Annotated[
        int | None,
        typer.Option(
            "--lines", "-l", "--tail", min=0, help="Number of last lines of each log. [default: 200; with --since all]"
        ),
    ] = None,
    since: options.Since = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each line as a JSON object, with all its fields.")] = (
        False
    ),
) -> None:
    """Print the logs of the control plane, the agent and Envoy, by time.

    Each line has its time (UTC), its level, the name of its log and its message. Requests that only
    read are not logged, unless the server runs with ML_LOG_LEVEL=debug.
    """
    from amphitrite.cli.server import file_tail, log_lines
    from amphitrite.cli.terminal import ages

    server = find_remote_server(session.options.server_url)
    if server is not None:
        message = f"the logs of {server.url} are stored on its machine only"
        raise Error(
            "Unsupported", message, hint="in Kubernetes, run `kubectl logs -l app.kubernetes.io/name=amphitrite`"
        )
    since_s = ages.seconds("--since", since)
    begin = None if since_s is None else time.time() - since_s
    count = lines if lines is not None else _LINES if since_s is None else sys.maxsize
    directory = homes.log_directory(homes.path())
    files = {name: directory / f"{name}.log" for name in _LOGS}
    if not any(file.exists() for file in files.values()):
        raise Error("LocalFileError", f"no logs in {directory}", hint=START_HINT)
    for batch in file_tail.lines(files, count, follow=follow):
        for line in log_lines.in_order([log_lines.parse(*one) for one in batch], begin):
            sys.stdout.write((line.to_json() if as_json else line.to_text()) + "\n")
        sys.stdout.flush()


# The order of the help: what every user needs comes first.
server_storage.register(app)
server_data.register(app)


def _running(home: Path) -> dict[str, Any] | None:
    state = homes.read_state(home)
    return state if state is not None and homes.is_alive(state) else None
