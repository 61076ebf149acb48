"""``ml server``: the control plane and data plane of this machine.

Decides what is said about them. Must not know how they are run (``process``) or found by others (``connection``).
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from amphitrite.cli import home as homes
from amphitrite.cli.command import group, verb
from amphitrite.cli.connection import START_HINT, default_url
from amphitrite.cli.session import Session
from amphitrite.schemas.errors import Error

app = group("server", "The control plane and data plane on this machine.")

_COLUMNS = ("state", "version", "runtime", "api_url", "scoring_url", "pid", "home")
_HEALTH_TIMEOUT_S = 3.0
_LOGS = ("controlplane", "agent", "envoy")


@verb(app, "start", columns=_COLUMNS)
def start(
    session: Session,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when it runs.")] = False,
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the control plane. [default: 8443]")] = None,
    scoring_port: Annotated[int | None, typer.Option(help="Port for scoring. [default: 9443]")] = None,
    runtime: Annotated[str | None, typer.Option(help="Where instances run: local. [default: local]")] = None,
    database: Annotated[str | None, typer.Option(help="Database URL. [default: SQLite in ML_HOME]")] = None,
) -> None:
    """Start the control plane of ML_HOME, and with it the data plane."""
    from amphitrite.cli import process

    process.require_server()
    home = homes.path()
    given = {"--host": host, "--port": port, "--scoring-port": scoring_port, "--runtime": runtime}
    given["--database"] = database
    arguments = [text for name, value in given.items() if value is not None for text in (name, str(value))]
    running = _running(home)
    if running is not None and detach and _as_asked(running, host, port, scoring_port, runtime, database):
        session.note(f"already running: {running['api_url']} (pid {running['pid']})")
        return
    if not detach:
        process.run_in_foreground(home, arguments, lambda state: session.note(_addresses(state)))
        return
    with session.progress("control plane") as progress:
        state = process.detach(home, arguments, progress)
        progress.done("running")
    session.note(_addresses(state))


def _addresses(state: dict[str, Any]) -> str:
    return f"control plane: {state['api_url']}\nscoring: {state['scoring_url']}"


def _as_asked(
    running: dict[str, Any],
    host: str | None,
    port: int | None,
    scoring_port: int | None,
    runtime: str | None,
    database: str | None,
) -> bool:
    """Whether what runs has every setting that was asked for; a database cannot be compared."""
    if database is not None or runtime not in (None, running["runtime"]):
        return False
    from urllib.parse import urlsplit

    api, scoring = urlsplit(running["api_url"]), urlsplit(running["scoring_url"])
    return host in (None, api.hostname) and port in (None, api.port) and scoring_port in (None, scoring.port)


@verb(app, "stop")
def stop(
    session: Session,
    keep_serving: Annotated[
        bool, typer.Option("--keep-serving", help="End only the control plane; Envoy and the instances go on.")
    ] = False,
) -> None:
    """End what runs of ML_HOME."""
    from amphitrite.cli import process

    process.require_server()
    home = homes.path()
    was_running = _running(home) is not None
    if home.exists():
        with session.progress("control plane") as progress:
            progress.phase("stopping")
            process.stop(home, keep_serving=keep_serving)
    session.note("stopped" if was_running else "no control plane was running")


@verb(app, "status", columns=_COLUMNS)
def status(session: Session) -> dict[str, Any]:
    """Whether the control plane of ML_HOME runs, and where: running, starting, unhealthy or stopped."""
    from importlib.metadata import version

    home = homes.path()
    state = homes.read_state(home)
    fields = ("runtime", "api_url", "scoring_url", "studio_url", "ca_file")
    shown: dict[str, Any] = {"state": "stopped", "version": version("amphitrite")}
    if state is None:
        return {**shown, **dict.fromkeys(fields), "home": str(home), "pid": None}
    shown.update({name: state.get(name) for name in ("version", *fields)}, home=str(home), pid=None)
    if homes.is_alive(state):
        shown.update(state=_health(session, state), pid=state["pid"])
    return shown


def _health(session: Session, state: dict[str, Any]) -> str:
    """``starting``, ``running``, or ``unhealthy`` when the process lives and does not say that it is ready."""
    if state["state"] != "running":
        return str(state["state"])
    try:
        answer = session.at(state["api_url"]).exchange("GET", "/readyz", timeout_s=_HEALTH_TIMEOUT_S)
        return "running" if answer.is_success else "unhealthy"
    except Error as error:
        if error.code == "ServerUnreachable":
            return "unhealthy"
        raise


@verb(app, "env")
def env(
    session: Session,
    shell: Annotated[str, typer.Option(help='sh for `eval "$(ml server env)"`, or json.')] = "sh",
) -> dict[str, str] | None:
    """Print what clients of Azure ML, tritonclient and curl need to find this server."""
    if shell not in ("sh", "json"):
        raise Error("UsageError", f"--shell `{shell}` is not one of sh, json")
    state = homes.read_state(homes.path())
    if state is None:
        raise Error("ServerUnreachable", f"no control plane at {default_url()}", hint=START_HINT)
    variables = {
        "AZUREML_DEV_URL_MFE": state["api_url"],
        "IDENTITY_ENDPOINT": state["identity_endpoint"],
        "IDENTITY_HEADER": _read(state["identity_header_file"]).strip(),
        "REQUESTS_CA_BUNDLE": state["bundle_file"],
        "SSL_CERT_FILE": state["bundle_file"],
        # Where it is set already, curl reads it rather than SSL_CERT_FILE.
        "CURL_CA_BUNDLE": state["bundle_file"],
        "ML_SUBSCRIPTION": state["subscription"],
        "ML_RESOURCE_GROUP": state["resource_group"],
        "ML_WORKSPACE": state["workspace"],
    }
    if shell == "json" or session.options.output or session.options.query:
        return variables
    sys.stdout.write("".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()))
    return None


@verb(app, "logs")
def logs(
    session: Session,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is written from now on.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-l", min=0, help="Last lines of each log.")] = 200,
) -> None:
    """Print the logs of the control plane, the agent and Envoy, each line with the name of its log."""
    from amphitrite.cli import tail

    directory = homes.logs(homes.path())
    files = {name: directory / f"{name}.log" for name in _LOGS}
    if not any(file.exists() for file in files.values()):
        raise Error("LocalFileError", f"no logs in {directory}", hint=START_HINT)
    for name, line in tail.lines(files, lines, follow=follow):
        sys.stdout.write(f"{name}: {line}\n")
        sys.stdout.flush()


def _running(home: Path) -> dict[str, Any] | None:
    state = homes.read_state(home)
    return state if state is not None and homes.is_alive(state) else None


def _read(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError as exc:
        raise Error("LocalFileError", f"cannot read {file}: {exc}") from exc
